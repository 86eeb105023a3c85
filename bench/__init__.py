"""Perdure beside its peers and beside the raw engines: the same work, the same servers, one run."""
