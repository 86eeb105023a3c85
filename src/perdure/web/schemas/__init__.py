"""The types of requests and responses, for the checks and for OpenAPI."""
