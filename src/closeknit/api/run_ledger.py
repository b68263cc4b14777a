"""How often a method that may run once per table has run: a private file of this user, with one line per run.

eps-transparency is about one run. Whoever runs `SoftStop` several times on a table and publishes the release that they like
best publishes more than one run reveals, without a bound. So the first run on a table is attested and later ones are not.
"""

from __future__ import annotations

import os
import secrets
import warnings
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from closeknit.core.errors import BadInput
from closeknit.core.method import Method
from closeknit.core.model import Model
from closeknit.core.table import Table
from closeknit.core.table_digest import digest_table

STATE = "CLOSEKNIT_STATE"  # the environment variable that names the folder


def ledger_file() -> Path:
    """The file, in the folder that `CLOSEKNIT_STATE` names, else where this system keeps the state of programs.

    >>> ledger_file().name
    'runs'
    """
    usual = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "closeknit"
    return Path(os.environ.get(STATE) or usual) / "runs"


class RunLedger:
    """The runs of this user. Lines are hashes of tables with a salt of the file: they show no table to anyone else.

    Args:
        file: where it is kept; created with mode 0600.

    >>> import tempfile, closeknit as ck
    >>> table = ck.datasets.hospital_schema().encode(ck.datasets.hospital(20))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = RunLedger(Path(folder, "state", "runs"))
    ...     before = ledger.count_runs(table)
    ...     ledger.record_run(table)
    ...     before, ledger.count_runs(table)
    (0, 1)
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(os.open(file, os.O_CREAT | os.O_APPEND | os.O_RDWR, 0o600), "a+", encoding="ascii") as lines:
                if os.fstat(lines.fileno()).st_size == 0:
                    lines.write(f"{secrets.token_hex(16)}\n")
        except OSError as error:
            raise BadInput(f"runs cannot be counted: {error.strerror}", file=file, right=f"name a folder in {STATE}") from None

    def count_runs(self, table: Table) -> int:
        """How many runs on a table are recorded.

        Args:
            table: the table in canonical order.
        """
        salt, *lines = self.file.read_text(encoding="ascii").splitlines()
        return lines.count(_line(salt, table))

    def record_run(self, table: Table) -> None:
        """Record a run on a table.

        Args:
            table: the table in canonical order.
        """
        with self.file.open("r+", encoding="ascii") as lines:
            salt = lines.readline().strip()
            lines.seek(0, os.SEEK_END)
            lines.write(f"{_line(salt, table)}\n")


def _line(salt: str, table: Table) -> str:
    return sha256(salt.encode() + digest_table(table)).hexdigest()


def keep_attestable(models: Sequence[Model], requested: Sequence[Model], table: Table, given_seed: bool) -> list[Model]:
    """The guarantees without those of the method that this run cannot attest; requested ones are refused then.

    Args:
        models: all guarantees.
        requested: those that the user named.
        table: the table in canonical order.
        given_seed: whether the user chose the seed.
    """
    if given_seed:
        why, right = "the seed was given, and only a seed that no one chose is secret", "leave the seed out"
    elif RunLedger(ledger_file()).count_runs(table):
        why, right = (
            "the method has run on this table before, and the best of several runs reveals more",
            "publish the first run",
        )
    else:
        return list(models)
    named = [model for model in requested if model.of_method]
    if named:
        raise BadInput(f"{named[0].describe(None)} cannot be attested: {why}", right=right)
    for model in models:
        if model.of_method:
            warnings.warn(f"{model.describe(None)} is not attested: {why}; {right}", stacklevel=4)
    return [model for model in models if not model.of_method]


def record_run(method: Method, table: Table) -> None:
    """Record a run of a method that may run once per table.

    Args:
        method: any method.
        table: the table in canonical order.
    """
    if method.runs_once:
        RunLedger(ledger_file()).record_run(table)
