"""A PostgreSQL and a MariaDB of our own for tests: loopback only, one of each per run, shared by the processes of a run."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

import pytest

from closeknit.io.database import Database

PASSWORD = "S3cret/w@rd:#1"  # must be escaped in a URL, and must never be seen again
ESCAPED = "S3cret%2Fw%40rd%3A%231"
USER = "closeknit"
# Ends the server when the run has ended, however that happened, and removes its folder.
GUARD = 'controller=$1 folder=$2; shift 2; "$@" & server=$!; trap "kill $server" TERM; ' + (
    "while { kill -0 $controller 2>/dev/null || test -d /proc/$controller; } && kill -0 $server 2>/dev/null; "
    "do sleep 0.2; done; "
    "kill $server; wait $server; rm -rf $folder"
)


@dataclass(frozen=True)
class Server:
    """A running server: its port, and the process that ends it."""

    scheme: str
    port: int
    guard: int

    def url(self, database: str = "closeknit", password: str = ESCAPED, port: int | None = None) -> str:
        return f"{self.scheme}://{USER}:{password}@127.0.0.1:{port or self.port}/{database}"


def postgresql_folder() -> Path | None:
    """The folder of PostgreSQL's programs, which Debian keeps off the path."""
    if there := shutil.which("postgres"):
        return Path(there).resolve().parent
    return max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)


def start_postgresql(folder: Path) -> Server:
    programs = postgresql_folder()
    assert programs is not None
    data, given, port = folder / "data", folder / "password", free_port()
    given.write_text(PASSWORD, encoding="utf-8")
    user = lower_rights(folder, "postgres")
    options = ["-U", USER, "-A", "scram-sha-256", f"--pwfile={given}", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"]
    subprocess.run([programs / "initdb", "-D", data, *options], check=True, stdout=subprocess.DEVNULL, **user)
    settings = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": "", "fsync": "off"}
    words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    guard = start_guarded([programs / "postgres", "-D", data, *words], folder, user)
    import psycopg

    def connect() -> None:
        with psycopg.connect(Server("postgresql", port, 0).url("postgres"), autocommit=True) as connection:
            connection.execute("CREATE DATABASE closeknit")

    return wait_for(Server("postgresql", port, guard.pid), guard, connect, psycopg.OperationalError)


def start_mariadb(folder: Path) -> Server:
    data, port = folder / "data", free_port()
    user = lower_rights(folder, "mysql")
    files = [f"--datadir={data}", "--skip-networking=0", "--bind-address=127.0.0.1", f"--port={port}"]
    files += [f"--socket={folder}/s", f"--pid-file={folder}/pid", "--innodb-flush-log-at-trx-commit=0"]
    install = [
        "mariadb-install-db",
        "--no-defaults",
        f"--datadir={data}",
        "--skip-test-db",
        "--auth-root-authentication-method=normal",
    ]
    subprocess.run(install, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **user)
    guard = start_guarded(["mariadbd", "--no-defaults", *files], folder, user)
    import pymysql

    def connect() -> None:
        with pymysql.connect(host="127.0.0.1", port=port, user="root") as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE USER {USER}@'%%' IDENTIFIED BY %s", (PASSWORD,))
            cursor.execute(f"GRANT ALL ON *.* TO {USER}@'%'")
            cursor.execute("CREATE DATABASE closeknit")

    return wait_for(Server("mariadb", port, guard.pid), guard, connect, pymysql.err.OperationalError)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def lower_rights(folder: Path, name: str) -> dict[str, object]:
    """Options of a child process that may write into this folder and is not root: both servers refuse root."""
    if os.geteuid() != 0:
        return {}
    import pwd

    try:
        user = pwd.getpwnam(name)
    except KeyError:
        user = pwd.getpwnam("nobody")
    for place in (folder, *folder.iterdir()):
        os.chown(place, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "cwd": folder}


def start_guarded(command: list[object], folder: Path, user: dict[str, object]) -> subprocess.Popen[bytes]:
    controller = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    words = ["sh", "-c", GUARD, "guard", str(controller), str(folder), *map(str, command)]
    with open(folder / "log", "wb") as log:
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, **user)


def wait_for(server: Server, guard: subprocess.Popen[bytes], connect: Callable[[], None], starting: type[Exception]) -> Server:
    while True:
        try:
            connect()
            return server
        except starting:
            assert guard.poll() is None, f"{server.scheme} has ended"
            time.sleep(0.05)


@contextmanager
def share(run: Path, name: str, start: Callable[[Path], Server]) -> Iterator[Server]:
    """The server of this run: the first process starts it, the last one stops it."""
    place = run / f"{name}.json"
    with lock(run / f"{name}.lock"):
        known = json.loads(place.read_text(encoding="utf-8")) if place.exists() else None
        if known is None:
            folder = Path(mkdtemp(prefix=f"closeknit-{name}-"))  # pytest's own folders are for its user only
            known = {"server": list(vars(start(folder)).values()), "users": 0}
        known["users"] += 1
        place.write_text(json.dumps(known), encoding="utf-8")
    yield Server(*known["server"])
    with lock(run / f"{name}.lock"):
        known = json.loads(place.read_text(encoding="utf-8"))
        known["users"] -= 1
        if known["users"]:
            place.write_text(json.dumps(known), encoding="utf-8")
        else:
            place.unlink()
            os.kill(known["server"][2], signal.SIGTERM)


@contextmanager
def lock(place: Path) -> Iterator[None]:
    with open(place, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run_folder(factory: pytest.TempPathFactory) -> Path:
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def execute(url: str, *statements: str) -> list[tuple[object, ...]]:
    """Run statements as anyone would, and return the rows of the last one."""
    with Database(url)._connect(writes=True) as connection:
        rows: list[tuple[object, ...]] = []
        for statement in statements:
            rows = connection.fetch(statement)
        connection.connection.commit()
        return rows
