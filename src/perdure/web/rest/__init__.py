"""The operations of the API, one file per resource."""
