"""`perdure policy simulate`: a retry policy under load, in virtual time."""
