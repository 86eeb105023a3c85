"""`perdure doctor`: finds what is wrong with a store, its workers and its configuration."""
