"""The REST API over the admin service: an ASGI application, and the server that runs it."""
