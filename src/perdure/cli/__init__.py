"""The command line: every command is a thin skin over admin/, the clients and the app."""
