"""Addresses that only take forms: whoever goes to one of them by hand is led to the page that the form stands on."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from closeknit.web.pages.page_common import redirect_to
from closeknit.web.routing import LimitedRoute, OwnCase

router = APIRouter(route_class=LimitedRoute, include_in_schema=False)
PAGES = {
    "missing": ["roles"],
    "undo": ["roles"],
    "roles": ["roles"],
    "guarantees": ["guarantees"],
    "suppress": ["guarantees"],
    "form": ["guarantees"],
}


@router.get("/tables/{id}/{rest:path}")
async def redirect_to_page(case: OwnCase, rest: str) -> Response:
    """The nearest page."""
    first, _, others = rest.partition("/")
    number = others.partition("/")[0]
    return redirect_to(
        case, *(["columns", number] if first == "columns" and number.isdecimal() and others != number else PAGES.get(first, []))
    )
