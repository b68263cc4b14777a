"""Limits on the size and the slowness of request bodies, checked while they arrive; the rest is not read."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections import Counter
from typing import Any

from starlette.exceptions import HTTPException

from closeknit.web.cases import DISK_FULL, SPACE
from closeknit.web.responses import refusal
from closeknit.web.settings import Settings

CLOSE = {"connection": "close"}
ANONYMOUS = 16 * 1024  # bytes without a token or cookie: enough for the login form


class Turns:
    """Answers a limited number of requests per owner at the same time, so that no one occupies all threads."""

    def __init__(self, app: Any, settings: Settings) -> None:
        self.app, self.settings = app, settings
        self._turns: dict[str, asyncio.Semaphore] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        owner = scope.get("state", {}).get("owner", "")
        if not owner:  # requests without an owner are cheap, and must not block each other
            await self.app(scope, receive, send)
            return
        async with self._turns.setdefault(owner, asyncio.Semaphore(self.settings.turns)):
            await self.app(scope, receive, send)


class BodyLimits:
    """Refuses bodies that are too large, too slow or too many."""

    def __init__(self, app: Any, settings: Settings) -> None:
        self.app, self.settings = app, settings
        self._active: Counter[str] = Counter()  # large bodies in transfer, by owner

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
        self._active[owner] += large
        try:
            await self.app(scope, self._limit_body(receive, most), send)
        finally:
            self._active[owner] -= large

    def _most(self, owner: str, kind: bytes) -> int:
        """Only the files of a form are spooled to disk: everything else is held in memory."""
        if not owner:
            return ANONYMOUS
        spooled = kind.partition(b";")[0].strip().lower() == b"multipart/form-data"
        return self.settings.body if spooled else min(self.settings.body, self.settings.text)

    def _find_fault(self, owner: str, length: bytes, large: bool, most: int) -> tuple[int, str] | None:
        if not length.isdigit() or int(length) > most:
            return 413, _too_large(most)
        if large and self._active[owner] >= self.settings.uploads:
            return 429, "too many of your uploads are in progress; wait until one of them is done"
        if large and shutil.disk_usage(self.settings.home).free < SPACE + 2 * int(length):
            return 429, DISK_FULL
        return None

    def _limit_body(self, receive: Any, most: int) -> Any:
        began, taken, over = time.monotonic(), 0, False

        async def receive_limited() -> Any:
            nonlocal taken, over
            if over:  # only the end of the connection remains, which may take any time
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), self.settings.patience)
            except TimeoutError:
                raise HTTPException(408, "the upload stalled for too long; try again", CLOSE) from None
            taken += len(message.get("body", b""))
            over = not message.get("more_body", False)
            if taken > most:
                raise HTTPException(413, _too_large(most), CLOSE)
            if time.monotonic() - began > self.settings.patience + taken / self.settings.slowest:
                raise HTTPException(408, "the upload is too slow; try again", CLOSE)
            return message

        return receive_limited


def _too_large(most: int) -> str:
    return f"the request is larger than this server accepts: {most:,} bytes"
