"""`Settings`: the address of the server and its limits. Everything that a client may send has a limit."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

MEGABYTE = 1024 * 1024
GIGABYTE = 1024 * MEGABYTE
USUAL_PORTS = {"http": 80, "https": 443}
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Settings:
    """Folder, address and limits of the server.

    >>> settings = Settings(home=Path("cases"), port=8000)
    >>> settings.address, settings.hosts
    ('http://127.0.0.1:8000', ('127.0.0.1:8000', 'localhost:8000', '[::1]:8000'))
    """

    home: Path  # a folder for each case
    host: str = "127.0.0.1"
    port: int = 0
    names: tuple[str, ...] = ()  # host names of this server, with the port if users write it
    secure: bool = False  # https: by this server, or by the proxy in front of it
    body: int = GIGABYTE  # bytes of a request, so of an uploaded table
    fields: int = 1_200  # of a form: one per column, and some more
    text: int = MEGABYTE  # bytes of a body without files, and of a recipe
    files: int = 40  # in a form
    unpacked: int = 4 * GIGABYTE  # bytes of a compressed table after decompression
    rows: int = 20_000_000
    columns: int = 1_000
    cases: int = 100  # of one owner
    at_once: int = field(default_factory=lambda: max(1, (os.cpu_count() or 2) // 2))  # tasks that run
    each: int = 1  # tasks of one owner that run, so that long ones do not block other owners
    waiting: int = 50  # tasks of one owner
    waiting_all: int = 500
    memory: int = field(default_factory=lambda: usual_memory())  # bytes of a task's process
    longest: float = 4 * 3600.0  # seconds of a task
    keep: float = 24 * 3600.0  # seconds for which a case is kept after it was last touched
    session: float = 12 * 3600.0  # seconds for which a login is valid
    code: float = 600.0  # seconds for which the single-use code is valid
    patience: float = 20.0  # seconds without a byte
    patience_with_heads: float = 15.0  # seconds for the head of a request, from the connection or the last response on
    patience_with_readers: float = 60.0  # seconds for a client that reads nothing of its response
    slowest: int = 20_000  # bytes a second of a body, beyond the first seconds of patience
    connections: int = 500
    turns: int = 12  # requests of one owner that are answered at the same time; there are 40 threads for all
    uploads: int = 8  # large bodies of one owner at the same time
    streams: int = 10  # of one owner
    streams_all: int = 20  # that run, each in a process of its own
    queue: int = 100_000  # rows of a stream that are accepted and in no checkpoint yet
    queue_bytes: int = 64 * MEGABYTE
    published: int = GIGABYTE  # bytes of published batches that no one has acknowledged
    quiet: float = 60.0  # seconds without a row after which the page of a stream says so
    databases: tuple[str, ...] | None = ()  # addresses whose tables users may read; None: any, for the only user of `ui`
    outputs: tuple[str, ...] | None = ()  # those into whose tables the streams of users may publish; None: any
    spare: bool = True  # keep a process ready for the next case
    idle: int = 2  # processes that keep the table of a case after its task
    idle_for: float = 300.0  # seconds

    @property
    def scheme(self) -> str:
        """Scheme of the addresses that users see."""
        return "https" if self.secure else "http"

    @property
    def address(self) -> str:
        """Address of the pages for a browser on this machine."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{self.names[0] if self.names else f'{host}:{self.port}'}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """Allowed values of the header Host: any other may be a name that another site points to this address."""
        local = [f"[{host}]" if ":" in host else host for host in LOOPBACK]
        usual = local if self.port == USUAL_PORTS[self.scheme] else []  # browsers leave out the usual port
        return (*self.names, *(f"{host}:{self.port}" for host in local), *usual)


def usual_memory() -> int:
    """Return half of the machine's memory, but not more than a large table needs, nor less than the libraries reserve.

    >>> 2 * GIGABYTE <= usual_memory() <= 8 * GIGABYTE
    True
    """
    have = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(2 * GIGABYTE, min(8 * GIGABYTE, have // 2))
