"""`perdure demo`: a few hundred jobs against services that fail on purpose."""
