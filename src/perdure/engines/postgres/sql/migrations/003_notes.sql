-- Version 3: notes, by which a repeated request is known again.

CREATE TABLE perdure.notes (
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    made_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (kind, key)
);

CREATE INDEX notes_made ON perdure.notes (kind, made_at);

CREATE INDEX notes_expiring ON perdure.notes (expires_at);
