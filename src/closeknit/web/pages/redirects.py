"""Addresses that only accept forms: a visitor is redirected to the page with the form."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from closeknit.web.pages.page_common import redirect_to
from closeknit.web.routing import LimitedRoute, OwnCase

router = APIRouter(route_class=LimitedRoute, include_in_schema=False)
PAGES = {"roles": ("missing", "undo", "roles", "persons"), "guarantees": ("guarantees", "suppress", "form", "options")}


@router.get("/tables/{id}/{rest:path}")
async def redirect_to_page(case: OwnCase, rest: str) -> Response:
    """Redirect to the nearest page."""
    first, _, others = rest.partition("/")
    number = others.partition("/")[0]
    if first == "columns" and number.isdecimal() and others != number:
        return redirect_to(case, "columns", number)
    return redirect_to(case, *(page for page, forms in PAGES.items() if first in forms))
