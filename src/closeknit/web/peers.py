"""Whose a connection is: on a machine of many users, all of them can reach a page of one."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

ROOT = 0
TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))  # of Linux; elsewhere nothing is known


def of_another_user(client: int, server: int, tables: tuple[Path, ...] = TABLES) -> bool:
    """Whether the connection between these ports was opened here by somebody else than whoever runs the server.

    The one-time code stands in the command line of the browser that is opened, where every user can read it.

    >>> of_another_user(1, 2)
    False
    """
    for table in tables:
        with suppress(OSError, ValueError, IndexError):
            for line in table.read_text(encoding="ascii").splitlines()[1:]:
                parts = line.split()
                if (_port(parts[1]), _port(parts[2])) == (client, server):
                    return int(parts[7]) not in (ROOT, os.getuid())
    return False


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)
