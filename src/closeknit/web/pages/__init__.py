"""The pages: one module per step, each with a `router`. Every step has an address; forms redirect to an address."""

from __future__ import annotations

from closeknit.web.pages import (
    column_editor,
    guarantees_step,
    methods_step,
    redirects,
    regulators,
    release_step,
    roles_step,
    start,
    streams,
    table_step,
)

STEPS = (
    start,
    table_step,
    roles_step,
    column_editor,
    guarantees_step,
    methods_step,
    release_step,
    regulators,
    streams,
    redirects,
)
ROUTERS = tuple(step.router for step in STEPS)
