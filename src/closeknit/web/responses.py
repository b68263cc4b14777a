"""What is said when something is refused: one sentence, as JSON to a program and as a page to a person."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.templating import Jinja2Templates

FAULT = "something went wrong in the server; nothing of your table is in this message"


def refusal(scope: Any, status: int, sentence: str, headers: dict[str, str] | None = None, login: bool = False) -> Response:
    """An answer that tells the user, and not the stack; with `login` a person is shown the form for the token.

    >>> refusal({"path": "/api/jobs"}, 404, "there is no such case").body
    b'{"error":"there is no such case"}'
    """
    line = "".join(sign if sign.isprintable() else "\ufffd" for sign in sentence)
    if scope["path"] == "/api" or scope["path"].startswith("/api/"):
        return JSONResponse({"error": line}, status, headers)
    page = templates().get_template("refusal.html").render(sentence=line, login=login)
    return HTMLResponse(page, status, headers)


@functools.cache
def templates() -> Jinja2Templates:
    """The pages; every text that goes into one is escaped."""
    return Jinja2Templates(Path(__file__).with_name("templates"))
