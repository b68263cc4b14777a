"""The pages and the REST service: one server, a thin layer over `api`; only this package imports the web framework."""
