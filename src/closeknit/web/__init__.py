"""The page and the service: one server, a skin over `api`; the only home of the web framework."""
