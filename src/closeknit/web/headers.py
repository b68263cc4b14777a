"""Headers of every response: nothing from other hosts, no frames, no caching; and no traceback is ever sent."""

from __future__ import annotations

import logging
import traceback
from typing import Any

from starlette.requests import ClientDisconnect

from closeknit.web.responses import FAULT, refusal

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; font-src 'self'; "
    "form-action 'self'; frame-src 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# A report or a chart contains its styles and no script; the sandbox makes it read-only.
DOCUMENT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'self'"
ALWAYS = {
    "x-content-type-options": "nosniff",
    # Not no-referrer: browsers would send `Origin: null` with forms. This one discloses as little to other hosts.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
USUAL = {"content-security-policy": POLICY, "x-frame-options": "DENY", "cache-control": "no-store"}
DOCUMENT = {"content-security-policy": DOCUMENT_POLICY, "x-frame-options": "SAMEORIGIN"}
HSTS = {"strict-transport-security": "max-age=31536000"}

log = logging.getLogger("closeknit.web")


class Headers:
    """The outermost layer. It logs type and place of an error only: the message may contain cells."""

    def __init__(self, app: Any, secure: bool) -> None:
        self.app, self.always = app, {**ALWAYS, **(HSTS if secure else {})}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def with_headers(message: Any) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                there = {name.lower() for name, _ in message["headers"]}
                added = {**USUAL, **self.always}
                message["headers"] = [
                    *message["headers"],
                    *((name.encode(), value.encode()) for name, value in added.items() if name.encode() not in there),
                ]
            await send(message)

        try:
            await self.app(scope, receive, with_headers)
        except ClientDisconnect:
            return  # there is no one to answer
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            log.error("%s at %s:%s while answering %s", type(error).__name__, place.name, place.lineno, scope["method"])
            if not started:
                await refusal(scope, 500, FAULT, {"connection": "close"})(scope, receive, with_headers)
