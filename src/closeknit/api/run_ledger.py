"""How often a method that may run once per table has run: a private file of this user, with one line per run.

eps-transparency is about one run. Whoever runs `SoftStop` several times on a table and publishes the release that they like
best publishes more than one run reveals, without a bound. So the first run on a table is attested and later ones are not.
"""

from __future__ import annotations

import os
import secrets
import warnings
from collections.abc import Sequence
from fcntl import LOCK_EX, flock
from hashlib import sha256
from pathlib import Path

import numpy as np

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.core.kinds import texts_of
from closeknit.core.model import Model

AGAIN = "the method has run on this table before, and the best of several runs reveals more"
STATE = "CLOSEKNIT_STATE"  # the environment variable that names the folder


def ledger_file() -> Path:
    """The file, in the folder that `CLOSEKNIT_STATE` names, else where this system keeps the state of programs.

    >>> ledger_file().name
    'runs'
    """
    usual = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "closeknit"
    return Path(os.environ.get(STATE) or usual) / "runs"


def digest_columns(columns: Columns) -> bytes:
    """SHA-256 of the raw cells of a table; the order of rows and columns plays no part.

    Args:
        columns: the table as it was read.

    >>> one, other = Columns.of({"a": [1, 2], "b": ["x", "y"]}), Columns.of({"b": ["y", "x"], "a": [2, 1]})
    >>> digest_columns(one) == digest_columns(other), digest_columns(one) == digest_columns(Columns.of({"a": [1, 2]}))
    (True, False)
    """
    found, ranks = sha256(repr(sorted(columns)).encode()), []
    for name in sorted(columns):
        used, codes = np.unique(columns[name].codes, return_inverse=True)
        texts = np.array([*texts_of(columns[name].values), ""], dtype=object)[used].tolist()  # the last is missing
        order = sorted(range(len(used)), key=lambda place: (used[place] < 0, texts[place]))
        found.update(repr([(texts[place], bool(used[place] < 0)) for place in order]).encode())
        ranks.append(np.argsort(order)[codes])
    rows = np.column_stack(ranks).astype("<i8") if ranks else np.empty((0, 0))
    found.update(np.ascontiguousarray(rows[np.lexsort(rows.T[::-1])] if rows.size else rows).tobytes())
    return found.digest()


class RunLedger:
    """The runs of this user. Lines are hashes of tables with a salt of the file: they show no table to anyone else.

    Args:
        file: where it is kept; created with mode 0600.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = RunLedger(Path(folder, "state", "runs"))
    ...     ledger.record_run(b"table"), ledger.record_run(b"table"), ledger.count_runs(b"table")
    (0, 1, 2)
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(os.open(file, os.O_CREAT | os.O_APPEND | os.O_RDWR, 0o600), "a+", encoding="ascii") as lines:
                flock(lines, LOCK_EX)
                if os.fstat(lines.fileno()).st_size == 0:
                    lines.write(f"{secrets.token_hex(16)}\n")
        except OSError as error:
            raise BadInput(f"runs cannot be counted: {error.strerror}", file=file, right=f"name a folder in {STATE}") from None

    def count_runs(self, identity: bytes) -> int:
        """How many runs on a table are recorded.

        Args:
            identity: the digest of the table.
        """
        salt, *lines = self.file.read_text(encoding="ascii").splitlines()
        return lines.count(_line(salt, identity))

    def record_run(self, identity: bytes) -> int:
        """Record a run on a table, and return how many there were before.

        Args:
            identity: the digest of the table.
        """
        with self.file.open("r+", encoding="ascii") as lines:
            flock(lines, LOCK_EX)  # two runs at once must not both be the first
            salt, *before = lines.read().splitlines()
            lines.write(f"{_line(salt, identity)}\n")
        return before.count(_line(salt, identity))


def _line(salt: str, identity: bytes) -> str:
    return sha256(salt.encode() + identity).hexdigest()


def keep_attestable(models: Sequence[Model], requested: Sequence[Model], identity: bytes, given_seed: bool) -> list[Model]:
    """The guarantees without those of the method that this run cannot attest; requested ones are refused then.

    Args:
        models: all guarantees.
        requested: those that the user named.
        identity: the digest of the table.
        given_seed: whether the user chose the seed.
    """
    if given_seed:
        why, right = "the seed was given, and only a seed that no one chose is secret", "leave the seed out"
    elif RunLedger(ledger_file()).count_runs(identity):
        why, right = AGAIN, "publish the first run"
    else:
        return list(models)
    named = [model for model in requested if model.of_method]
    if named:
        raise BadInput(f"{named[0].describe(None)} cannot be attested: {why}", right=right)
    for model in models:
        if model.of_method:
            warnings.warn(f"{model.describe(None)} is not attested: {why}; {right}", stacklevel=4)
    return [model for model in models if not model.of_method]


def record_run(identity: bytes, models: Sequence[Model]) -> None:
    """Record a run of a method that may run once per table; a second one that would attest its guarantee is refused.

    Args:
        identity: the digest of the table; empty where runs are not counted.
        models: the guarantees of this run.
    """
    if identity and RunLedger(ledger_file()).record_run(identity) and any(model.of_method for model in models):
        raise BadInput(f"a guarantee cannot be attested: {AGAIN}", right="publish the first run")
