"""How much a body may be and how slowly it may come: counted while it comes, and refused without reading on."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections import Counter
from typing import Any

from starlette.exceptions import HTTPException

from closeknit.web.cases import SPACE
from closeknit.web.responses import refusal
from closeknit.web.settings import Settings

CLOSE = {"connection": "close"}
STRANGER = 16 * 1024  # bytes of somebody who has not shown a token yet: enough for the form with it


class Turns:
    """So many requests of one owner are answered at the same time, and the others wait: nobody can take all threads."""

    def __init__(self, app: Any, settings: Settings) -> None:
        self.app, self.settings = app, settings
        self._turns: dict[str, asyncio.Semaphore] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        owner = scope.get("state", {}).get("owner", "")
        if not owner:  # strangers must not wait for each other: they are given little to do
            await self.app(scope, receive, send)
            return
        async with self._turns.setdefault(owner, asyncio.Semaphore(self.settings.turns)):
            await self.app(scope, receive, send)


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
        most = self._most(owner, given.get(b"content-type", b""))
        if (why := self._find_fault(owner, length, large, most)) is not None:
            await refusal(scope, *why, CLOSE)(scope, receive, send)
            return
        self._coming[owner] += large
        try:
            await self.app(scope, self._limit_body(receive, most), send)
        finally:
            self._coming[owner] -= large

    def _most(self, owner: str, kind: bytes) -> int:
        """Only the files of a form are written to the disk as they come: everything else is held in memory."""
        if not owner:
            return STRANGER
        spooled = kind.partition(b";")[0].strip().lower() == b"multipart/form-data"
        return self.settings.body if spooled else min(self.settings.body, self.settings.text)

    def _find_fault(self, owner: str, length: bytes, large: bool, most: int) -> tuple[int, str] | None:
        if not length.isdigit() or int(length) > most:
            return 413, _too_large(most)
        if large and self._coming[owner] >= self.settings.uploads:
            return 429, "too many uploads of yours are coming already; wait until one of them is done"
        if large and shutil.disk_usage(self.settings.home).free < SPACE + 2 * int(length):
            return 429, "the disk of this server is nearly full; try again later"
        return None

    def _limit_body(self, receive: Any, most: int) -> Any:
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
            if taken > most:
                raise HTTPException(413, _too_large(most), CLOSE)
            if time.monotonic() - began > self.settings.patience + taken / self.settings.slowest:
                raise HTTPException(408, "the upload comes too slowly; try again", CLOSE)
            return message

        return counted


def _too_large(most: int) -> str:
    return f"that is more than this server takes at once: {most:,} bytes"
