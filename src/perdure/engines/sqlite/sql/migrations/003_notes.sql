-- Version 3: notes, by which a repeated request is known again.

CREATE TABLE perdure_notes (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    made_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (kind, key)
) WITHOUT ROWID;

CREATE INDEX perdure_notes_made ON perdure_notes (kind, made_at);

CREATE INDEX perdure_notes_expiring ON perdure_notes (expires_at);
