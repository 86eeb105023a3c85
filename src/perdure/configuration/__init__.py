"""What can be configured: every setting with its default, and the file perdure.toml."""
