"""The running server: its socket, its timeouts for slow clients, its shutdown."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from closeknit.core.errors import BadInput
from closeknit.web.server import make_app
from closeknit.web.settings import Settings

HEADERS = 32 * 1024  # bytes of the head of a request
GRACE = 3  # seconds for unfinished responses when the server stops


def serve(
    settings: Settings,
    tokens: dict[str, bytes] | None,
    opened: Callable[[FastAPI, Settings], None],
    tls: tuple[Path, Path] | None = None,
) -> None:
    """Serve until a signal arrives; `opened` is called when the server listens."""
    listening = bind_socket(settings)
    settings = replace(settings, port=listening.getsockname()[1])
    app = make_app(settings, tokens)
    logging.basicConfig(level=logging.WARNING, format="closeknit: %(message)s")
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # it would log characters of broken forms
    tempfile.tempdir = str(settings.home)  # uploads are spooled to unnamed files: on this disk, not in memory
    # uvicorn raises the signal that stopped it once more after its shutdown; both are an ordinary end.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))  # its terminal was closed
    try:
        with suppress(KeyboardInterrupt):
            NotifyingServer(configure_server(app, settings, tls), lambda: opened(app, settings)).run(sockets=[listening])
    finally:
        listening.close()


def configure_server(app: FastAPI, settings: Settings, tls: tuple[Path, Path] | None = None) -> uvicorn.Config:
    """Return the configuration of uvicorn."""
    given: dict[str, Any] = {} if tls is None else {"ssl_certfile": tls[0], "ssl_keyfile": tls[1]}
    return uvicorn.Config(
        app,
        http=partial(PatientProtocol, settings),  # type: ignore[arg-type]
        ws="none",
        loop="asyncio",
        log_config=None,
        log_level="error",  # broken requests are not worth a line
        access_log=False,  # addresses contain codes, and requests are private
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=GRACE,
        limit_concurrency=settings.connections,
        h11_max_incomplete_event_size=HEADERS,
        **given,
    )


def bind_socket(settings: Settings) -> socket.socket:
    """Bind the address, so that a free port is known before the server answers."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(
        family, socket.SOCK_STREAM, socket.IPPROTO_TCP
    )  # without the protocol, asyncio delays each answer by 40 ms
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except (OSError, OverflowError) as error:
        listening.close()
        where = f"{settings.host}, port {settings.port}"
        raise BadInput(f"cannot listen on {where} ({error})", right="choose another port, or 0 for any") from None
    return listening


class NotifyingServer(uvicorn.Server):
    """Calls `opened` when it listens."""

    def __init__(self, config: uvicorn.Config, opened: Callable[[], None]) -> None:
        super().__init__(config)
        self._opened = opened

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start as usual, then notify."""
        await super().startup(sockets)
        if self.started:
            self._opened()


class PatientProtocol(H11Protocol):
    """Closes a connection without a complete request head, or whose client does not read its response.

    Otherwise a few clients could occupy all connections.
    """

    _reader: asyncio.TimerHandle | None = None

    def __init__(self, settings: Settings, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._settings = settings

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer for the head of a request."""
        super().connection_made(transport)
        self._clock = self.loop.call_later(self._settings.patience_with_heads, self._close_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timers."""
        self._clock.cancel()
        self._cancel_reader()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Start the timer for the reader: the send buffer is full."""
        super().pause_writing()
        self._cancel_reader()
        self._reader = self.loop.call_later(self._settings.patience_with_readers, self.transport.abort)

    def resume_writing(self) -> None:
        """Cancel that timer: the client reads."""
        super().resume_writing()
        self._cancel_reader()

    def on_response_complete(self) -> None:
        """Restart the timer for the next request."""
        super().on_response_complete()
        self._clock.cancel()
        self._clock = self.loop.call_later(self._settings.patience_with_heads, self._close_idle)

    def _cancel_reader(self) -> None:
        if self._reader is not None:
            self._reader.cancel()

    def _close_idle(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            if self.transport.get_write_buffer_size():  # close() alone would wait until everything is read
                self.transport.abort()
            self.transport.close()
