"""How much a body may be and how slowly it may come: counted while it comes, and refused without reading on."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections import Counter
from typing import Any

from starlette.exceptions import HTTPException

from closeknit.apps.web.answers import refusal
from closeknit.apps.web.cases import SPACE
from closeknit.apps.web.settings import Settings

CLOSE = {"connection": "close"}


class BodyLimits:
    """Around everything that reads a body."""

    def __init__(self, app: Any, settings: Settings) -> None:
        self.app, self.settings = app, settings
        self._coming: Counter[str] = Counter()  # large bodies under way, by owner

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        given = dict(scope.get("headers", []))
        length = given.get(b"content-length", b"0")
        if scope["type"] != "http" or (length == b"0" and b"transfer-encoding" not in given):
            await self.app(scope, receive, send)
            return
        owner = scope.get("state", {}).get("owner", "")
        large = not length.isdigit() or int(length) > self.settings.text or b"transfer-encoding" in given
        if (why := self._why_not(owner, length, large)) is not None:
            await refusal(scope, *why, CLOSE)(scope, receive, send)
            return
        self._coming[owner] += large
        try:
            await self.app(scope, self._counted(receive), send)
        finally:
            self._coming[owner] -= large

    def _why_not(self, owner: str, length: bytes, large: bool) -> tuple[int, str] | None:
        if not length.isdigit() or int(length) > self.settings.body:
            return 413, self._too_large()
        if large and self._coming[owner] >= self.settings.uploads:
            return 429, "too many uploads of yours are coming already; wait until one of them is done"
        if large and shutil.disk_usage(self.settings.home).free < SPACE + 2 * int(length):
            return 429, "the disk of this server is nearly full; try again later"
        return None

    def _counted(self, receive: Any) -> Any:
        began, taken, over = time.monotonic(), 0, False

        async def counted() -> Any:
            nonlocal taken, over
            if over:  # nothing but the end of the connection is waited for, which may take its time
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), self.settings.patience)
            except TimeoutError:
                raise HTTPException(408, "the upload stood still for too long; try again", CLOSE) from None
            taken += len(message.get("body", b""))
            over = not message.get("more_body", False)
            if taken > self.settings.body:
                raise HTTPException(413, self._too_large(), CLOSE)
            if time.monotonic() - began > self.settings.patience + taken / self.settings.slowest:
                raise HTTPException(408, "the upload comes too slowly; try again", CLOSE)
            return message

        return counted

    def _too_large(self) -> str:
        return f"that is more than this server takes at once: {self.settings.body:,} bytes"
