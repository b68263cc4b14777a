"""The user behind a local connection: all users of a machine can reach a page that one of them serves."""

from __future__ import annotations

import os
from collections.abc import Container
from contextlib import suppress
from pathlib import Path

ROOT = 0
TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))  # Linux only


def of_another_user(client: int, server: int, tables: tuple[Path, ...] = TABLES, trusted: Container[int] = (ROOT,)) -> bool:
    """Whether another local user than the one who runs the server opened the connection between these ports.

    Every user can read the single-use code in the command line of the browser. `trusted` users may.

    >>> of_another_user(1, 2)
    False
    """
    for table in tables:
        with suppress(OSError, ValueError, IndexError):
            for line in table.read_text(encoding="ascii").splitlines()[1:]:
                parts = line.split()
                if (_port(parts[1]), _port(parts[2])) == (client, server):
                    return (user := int(parts[7])) not in trusted and user != os.getuid()
    return False


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)
