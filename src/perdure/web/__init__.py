"""The REST API and the dashboard: a web application over the admin service."""
