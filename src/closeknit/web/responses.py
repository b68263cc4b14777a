"""Refusals: one sentence, as JSON for programs and as a page for people."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.templating import Jinja2Templates

from closeknit.core.errors import keep_printable

FAULT = "the server failed; this message contains nothing of your table"


def refusal(scope: Any, status: int, sentence: str, headers: dict[str, str] | None = None, login: bool = False) -> Response:
    """Build the response to a refused request; with `login` the page shows the form for the token.

    >>> refusal({"path": "/api/jobs"}, 404, "there is no such case").body
    b'{"error":"there is no such case"}'
    """
    line = keep_printable(sentence)
    if scope["path"] == "/api" or scope["path"].startswith("/api/"):
        return JSONResponse({"error": line}, status, headers)
    page = templates().get_template("refusal.html").render(sentence=line, login=login)
    return HTMLResponse(page, status, headers)


@functools.cache
def templates() -> Jinja2Templates:
    """Return the page templates; every inserted text is escaped."""
    from closeknit.report.page import mark_code

    found = Jinja2Templates(Path(__file__).with_name("templates"))
    found.env.filters["code"] = mark_code
    return found
