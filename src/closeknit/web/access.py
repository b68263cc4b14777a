"""Access control: every route needs a token or a cookie, except those that hand out cookies, and static files."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from starlette.datastructures import Headers as Given
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response

from closeknit.web.peers import of_another_user
from closeknit.web.responses import refusal
from closeknit.web.settings import Settings
from closeknit.web.tokens import Logins

OPEN = ("/enter", "/login")
NO_TOKEN = "this needs a token: send the header 'Authorization: Bearer TOKEN'"
USED = "this single-use link was used already or has expired; start 'closeknit ui' again"

router = APIRouter(include_in_schema=False)


class Access:
    """Finds the owner of a request before its body is read, and stores the name in `request.state.owner`."""

    def __init__(self, app: Any, settings: Settings, logins: Logins) -> None:
        self.app, self.settings, self.logins = app, settings, logins

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN or scope["path"].startswith("/static/"):
            await self.app(scope, receive, send)
            return
        owner = self.owner(Given(scope=scope))
        if owner is None:
            await self._build_refusal(scope)(scope, receive, send)
            return
        scope.setdefault("state", {})["owner"] = owner
        await self.app(scope, receive, send)

    def owner(self, given: Given) -> str | None:
        """Return the owner by the token, or else by the cookie."""
        authorization = given.getlist("authorization")
        if authorization:
            scheme, _, token = authorization[0].partition(" ")
            return self.logins.by_token(token.strip()) if scheme.lower() == "bearer" and len(authorization) == 1 else None
        cookie = cookie_parser("; ".join(given.getlist("cookie"))).get(cookie_name(self.settings), "")
        return self.logins.by_cookie(cookie)

    def _build_refusal(self, scope: Any) -> Response:
        headers = {"www-authenticate": "Bearer", "connection": "close"}
        if scope["path"].startswith("/api") or scope["method"] != "GET":
            return refusal(scope, 401, NO_TOKEN, headers)
        return refusal(scope, 401, "You are not logged in, or your session has expired.", headers, login=True)


def cookie_name(settings: Settings) -> str:
    """Return the name of the cookie. Browsers send it to every port of a machine, so it names the port."""
    return "__Host-closeknit" if settings.secure else f"closeknit-{settings.port}"


def with_cookie(settings: Settings, cookie: str, to: str = "/") -> Response:
    """Redirect to a page and set the cookie, so that the address has no code in it."""
    answer = RedirectResponse(to, 303)
    answer.set_cookie(cookie_name(settings), cookie, path="/", secure=settings.secure, httponly=True, samesite="strict")
    return answer


@router.get("/enter")
def enter(request: Request, code: str = "") -> Response:
    """Exchange the single-use code of the link that `closeknit ui` opens for a cookie."""
    if "prefetch" in request.headers.get("sec-purpose", ""):
        return Response(status_code=503)  # a browser that prefetches the link must not use up the code
    port = request.app.state.settings.port
    if request.client is not None and of_another_user(request.client.port, port):
        return refusal(request.scope, 403, "this page belongs to another user of this machine")  # the code stays valid
    cookie = request.app.state.logins.enter(code)
    if cookie is None:
        return refusal(request.scope, 401, USED)
    return with_cookie(request.app.state.settings, cookie)


@router.get("/login")
def ask_for_token(request: Request) -> Response:
    """Show the form for the token."""
    return refusal(request.scope, 200, "Enter your token.", login=True)


@router.post("/login")
def login(request: Request, token: Annotated[str, Form(max_length=1000)] = "") -> Response:
    """Exchange a token for a cookie."""
    cookie = request.app.state.logins.login(token)
    if cookie is None:
        return refusal(request.scope, 401, "This token is unknown.", login=True)
    return with_cookie(request.app.state.settings, cookie)


@router.post("/logout")
def logout(request: Request) -> Response:
    """End the session."""
    name = cookie_name(request.app.state.settings)
    request.app.state.logins.logout(request.cookies.get(name, ""))
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(name, path="/", secure=request.app.state.settings.secure, httponly=True, samesite="strict")
    return answer
