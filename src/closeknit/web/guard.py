"""Checks of Host and Origin: requests that another site caused are refused."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import Headers as Given

from closeknit.web.responses import refusal
from closeknit.web.settings import Settings

SAFE = ("GET", "HEAD", "OPTIONS")
FOREIGN = ("cross-site", "same-site")  # "same-site": another port of this machine


class Guard:
    """Refuses foreign host names (which another site may point here) and requests that other sites cause."""

    def __init__(self, app: Any, settings: Settings) -> None:
        self.app, self.settings = app, settings

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] == "http" and (why := self.find_fault(scope["method"], Given(scope=scope))) is not None:
            await refusal(scope, 403, why, {"connection": "close"})(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def find_fault(self, method: str, given: Given) -> str | None:
        """Return what is wrong with the origin of a request; None if it may pass.

        >>> from pathlib import Path
        >>> guard = Guard(None, Settings(home=Path("cases"), port=8000))
        >>> guard.find_fault("GET", Given({"host": "127.0.0.1:8000"}))
        >>> guard.find_fault("GET", Given({"host": "evil.example"}))
        'this server is not known by that name'
        >>> guard.find_fault("POST", Given({"host": "127.0.0.1:8000"}))
        'a request that changes something must come from a page of this server, or carry a token'
        """
        hosts = [host.lower() for host in given.getlist("host")]
        if len(hosts) != 1 or hosts[0] not in self.settings.hosts:
            return "this server is not known by that name"
        origins = given.getlist("origin")
        ours = [f"{self.settings.scheme}://{hosts[0]}"]
        if origins and origins != ours:
            return "this request comes from a page of another site"
        visit = method == "GET" and given.get("sec-fetch-mode") == "navigate" and given.get("sec-fetch-dest") == "document"
        if given.get("sec-fetch-site") in FOREIGN and not visit:
            return "this request comes from a page of another site"
        if method not in SAFE and not origins and not given.get("authorization", "").lower().startswith("bearer "):
            return "a request that changes something must come from a page of this server, or carry a token"
        return None
