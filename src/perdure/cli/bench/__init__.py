"""`perdure bench`: measures the user's own engine."""
