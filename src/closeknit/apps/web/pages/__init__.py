"""The pages: one file a step; each has a `router`. Every step is an address; forms are posted and lead to an address."""

from __future__ import annotations

from closeknit.apps.web.pages import columns, elsewhere, methods, promises, release, roles, start, table

ROUTERS = tuple(step.router for step in (start, table, roles, columns, promises, methods, release, elsewhere))
