"""`Case`: one table of one owner and all that was made of it, in a private folder. `Cases`: all of them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from closeknit.core.errors import BadInput, CloseknitError
from closeknit.io.files import kind_of
from closeknit.io.folders import write_whole
from closeknit.web.desk.tree_edits import PASSING
from closeknit.web.settings import Settings

BLOCK = 1024 * 1024
LONGEST_NAME = 120
SPACE = 256 * BLOCK  # bytes that must be free
RECORD = "case.json"
KEPT = (RECORD, "tasks")  # of a case whose work was cut off: enough to say so


class CaseNotFound(CloseknitError):
    """There is no such case, or it is somebody else's: the answer is the same."""


class LimitExceeded(CloseknitError):
    """A limit of the server is reached: try again later."""


class Gone(CloseknitError):
    """What it needs is no longer there."""


class NotReady(CloseknitError):
    """It is still being made, or could not be."""


@dataclass
class Case:
    """A folder and what is known of it; the name of the upload is text to be shown and never a path."""

    id: str
    owner: str
    name: str
    suffix: str  # .csv, .parquet, ...: one of those that a door reads
    made: float
    stem: str = "table"  # of a table that is a release to be audited: "release", as in its certificate
    gone: str | None = None  # why nothing but this record is left
    folder: Path = field(default=Path(), compare=False)
    touched: float = field(default=0.0, compare=False)  # when its owner last asked for it

    @property
    def table(self) -> Path:
        """The upload as it came."""
        return self.folder / f"{self.stem}{self.suffix}"

    @property
    def draft(self) -> Path:
        """The recipe under way."""
        return self.folder / "draft.yaml"

    @property
    def out(self) -> Path:
        """What may leave; there only when it is whole."""
        return self.folder / "out"

    @property
    def private(self) -> Path:
        """What stays at home."""
        return self.folder / "out.private"

    @property
    def finished(self) -> bool:
        """Whether there is a release."""
        return (self.out / "certificate.json").is_file()

    def save(self) -> None:
        """Write its record."""
        record = {name: value for name, value in asdict(self).items() if name not in ("folder", "touched")}
        write_whole(self.folder / RECORD, json.dumps(record).encode(), 0o600)

    @classmethod
    def read(cls, folder: Path) -> Case:
        """From its folder; the time of its record is when it was last touched."""
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        return cls(**record, folder=folder, touched=(folder / RECORD).stat().st_mtime)

    def touch(self) -> None:
        """Its owner has asked for it."""
        if time.time() - self.touched > 1:
            self.touched = time.time()
            with contextlib.suppress(FileNotFoundError):
                os.utime(self.folder / RECORD)


class Cases:
    """All cases of a server, found again after a restart.

    >>> import io, tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     cases = Cases(Settings(home=Path(home)))
    ...     case = cases.new("ann", "../../people.csv", io.BytesIO(b"age\\n30\\n"))
    ...     case.name, case.table.name, cases.of("ann", case.id) is case
    ('people.csv', 'table.csv', True)
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._lock = threading.Lock()
        self._cases: dict[str, Case] = {}
        settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in settings.home.iterdir():
            self._find(folder)

    def new(self, owner: str, name: str, stream: IO[bytes] | None, stem: str = "table") -> Case:
        """A case with this table; without a stream one whose table is still to come."""
        shown = clean_name(name)
        suffix = suffix_of(shown)
        if shutil.disk_usage(self.settings.home).free < SPACE:
            raise LimitExceeded("the disk of this server is nearly full; try again later")
        case = self._open(owner, shown, suffix, stem)
        try:
            if stream is not None:
                write_upload(stream, case.table)
            case.save()
        except BaseException:
            self.remove(case)
            raise
        return case

    def of(self, owner: str, id: str) -> Case:
        """The case of this owner, touched."""
        case = self._cases.get(id)
        if case is None or case.owner != owner:
            raise CaseNotFound("there is no such case here: it has expired, was removed, or never was")
        case.touch()
        return case

    def by_id(self, id: str) -> Case:
        """For the server itself, which has checked the owner before."""
        return self._cases[id]

    def list_owned(self, owner: str) -> list[Case]:
        """All of this owner, the newest first."""
        return sorted((case for case in self.all() if case.owner == owner), key=lambda case: -case.made)

    def all(self) -> list[Case]:
        """Everybody's."""
        with self._lock:
            return list(self._cases.values())

    def remove(self, case: Case) -> None:
        """With everything in its folder; its tasks must have been cancelled."""
        with self._lock:
            self._cases.pop(case.id, None)
        empty_folder(case.folder, ())
        shutil.rmtree(case.folder, ignore_errors=True)

    def list_expired(self) -> Iterator[Case]:
        """Those that nobody touched for long."""
        limit = time.time() - self.settings.keep
        yield from (case for case in self.all() if case.touched < limit)

    def delete_data(self, case: Case, why: str) -> None:
        """Delete all but the record of a case that is not finished, so that no raw cell stays behind."""
        empty_folder(case.folder, KEPT)
        for file in (case.folder / "tasks").iterdir():  # results and progress may have cells in them
            if not (file.stem.isdecimal() and file.suffix == ".json"):
                file.unlink(missing_ok=True)
        case.gone = why
        case.save()

    def _open(self, owner: str, name: str, suffix: str, stem: str) -> Case:
        now = time.time()
        with self._lock:
            if sum(case.owner == owner for case in self._cases.values()) >= self.settings.cases:
                raise LimitExceeded(f"you have {self.settings.cases} tables here already; remove one of them first")
            id = secrets.token_hex(16)
            case = Case(id, owner, name, suffix, now, stem, folder=self.settings.home / id, touched=now)
            case.folder.mkdir(mode=0o700)
            (case.folder / "tasks").mkdir(mode=0o700)
            self._cases[id] = case
        return case

    def _find(self, folder: Path) -> None:
        """A folder of an earlier run; one without a record is what is left of a broken upload."""
        if folder.is_symlink() or not folder.is_dir():
            return
        if folder.name.startswith(PASSING):
            shutil.rmtree(folder, ignore_errors=True)
        if not re.fullmatch(r"[0-9a-f]{32}", folder.name):
            return
        try:
            case = Case.read(folder)
        except (OSError, ValueError, TypeError):
            shutil.rmtree(folder, ignore_errors=True)
            return
        self._cases[case.id] = case


def clean_name(name: str) -> str:
    """The last part of a name, for people to read.

    >>> clean_name("C:\\\\ward\\\\people.csv"), clean_name("../../etc/passwd"), clean_name("\\x00")
    ('people.csv', 'passwd', 'table')
    """
    last = re.split(r"[/\\]", name)[-1]
    plain = "".join(sign for sign in last if sign.isprintable()).strip(". ")
    return plain[-LONGEST_NAME:] or "table"


def suffix_of(name: str) -> str:
    """How the table is written, from its name; refused where no door reads it.

    >>> suffix_of("people.CSV.gz"), suffix_of("people.pq")
    ('.csv.gz', '.parquet')
    >>> suffix_of("people.zip")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: people.zip: the suffix '.zip' does not say how the file is written; use .csv, ...
    """
    kind = kind_of(Path(name).name)
    packed = name.lower().endswith(".gz")
    if packed and kind in (".parquet", ".arrow"):
        raise BadInput("this kind of file is packed already", file=name, right="upload it without .gz")
    return kind + (".gz" if packed else "")


def write_upload(stream: IO[bytes], place: Path) -> None:
    """A file that only its owner can read."""
    with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        shutil.copyfileobj(stream, file, BLOCK)


def empty_folder(folder: Path, kept: Iterable[str]) -> None:
    """Delete what stands in a folder, the table first."""
    for place in sorted(folder.glob("*"), key=lambda place: not place.name.startswith("table")):
        if place.name in kept:
            continue
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place, ignore_errors=True)
        else:
            place.unlink(missing_ok=True)


def read_json(place: Path) -> Any:
    """What a file of JSON says; None where there is none."""
    try:
        return json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
