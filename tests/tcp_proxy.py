"""A TCP proxy on loopback that cuts a connection after some bytes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType


class Proxy:
    """Passes bytes on to a port of this machine; both sides are cut after `cut` bytes from the client, for good.

    Args:
        target: the port of the server.
        cut: how many bytes of each connection pass, or a function that returns it for the next one; None = all.
        port: where it listens; by default a free port.
    """

    def __init__(self, target: int, cut: Callable[[], int | None] | int | None = None, port: int = 0) -> None:
        self.target, self.cut, self.passed = target, cut, 0
        self.ends: list[socket.socket] = []
        self.listener = socket.create_server(("127.0.0.1", port))
        self.port = int(self.listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.target))
            self.ends += [client, server]
            cut = self.cut() if callable(self.cut) else self.cut
            threading.Thread(target=self._pass, args=(client, server, cut), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, None), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, cut: int | None) -> None:
        passed = 0
        try:
            while data := source.recv(4096):
                sink.sendall(data if cut is None else data[: max(cut - passed, 0)])
                passed += len(data)
                self.passed = passed if cut is not None or self.cut is None else self.passed
                if cut is not None and passed >= cut:
                    break
        except OSError:
            pass
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def stop(self) -> None:
        """Refuse connections, and cut those that are open."""
        for end in (self.listener, *self.ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.listener.close()
