"""`Case`: one table of one owner and everything derived from it, in a private folder. `Cases`: all of them."""

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
from closeknit.release.release_paths import CERTIFICATE, private_folder
from closeknit.web.desk.tree_edits import PASSING
from closeknit.web.settings import Settings

BLOCK = 1024 * 1024
LONGEST_NAME = 120
SPACE = 256 * BLOCK  # bytes that must be free
RECORD = "case.json"
KEPT = (RECORD, "tasks")  # of a case whose work was interrupted: enough to report that
DISK_FULL = "the disk of this server is nearly full; try again later"


class CaseNotFound(CloseknitError):
    """There is no such case, or another owner's: the answer is the same."""


class LimitExceeded(CloseknitError):
    """A limit of the server is reached: try again later."""


class Gone(CloseknitError):
    """The data of this case were deleted."""


class NotReady(CloseknitError):
    """The result does not exist yet, or its task failed."""


@dataclass
class Case:
    """A folder and its record; the name of the upload is text for display and never a path."""

    id: str
    owner: str
    name: str
    suffix: str  # .csv, .parquet, ...: a format that `io` reads
    made: float
    stem: str = "table"  # "release" for a release to audit, as in its certificate
    gone: str | None = None  # why only this record is left
    folder: Path = field(default=Path(), compare=False)
    touched: float = field(default=0.0, compare=False)  # time of the owner's last request

    @property
    def table(self) -> Path:
        """The uploaded file."""
        return self.folder / f"{self.stem}{self.suffix}"

    @property
    def draft(self) -> Path:
        """The draft recipe."""
        return self.folder / "draft.yaml"

    @property
    def people(self) -> Path | None:
        """The population as it was uploaded last; None if there is none."""
        found = sorted(self.folder.glob("people-*.parquet"), key=lambda place: int(place.stem.partition("-")[2]))
        return found[-1].resolve() if found else None

    @property
    def out(self) -> Path:
        """The public files; the folder appears only when they are complete."""
        return self.folder / "out"

    @property
    def private(self) -> Path:
        """The private files."""
        return private_folder(self.out)

    @property
    def finished(self) -> bool:
        """Whether there is a release."""
        return (self.out / CERTIFICATE).is_file()

    def save(self) -> None:
        """Write its record."""
        record = {name: value for name, value in asdict(self).items() if name not in ("folder", "touched")}
        write_whole(self.folder / RECORD, json.dumps(record).encode(), 0o600)

    @classmethod
    def read(cls, folder: Path) -> Case:
        """Read a case from its folder; the time of its record is when it was last touched."""
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        return cls(**record, folder=folder, touched=(folder / RECORD).stat().st_mtime)

    def touch(self) -> None:
        """Note that its owner uses it."""
        self.touched = touch_record(self.folder / RECORD, self.touched)


class Cases:
    """All cases of a server, including those of an earlier run.

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
        """Create a case with this table; without a stream the table follows later."""
        shown = clean_name(name)
        suffix = suffix_of(shown)
        if shutil.disk_usage(self.settings.home).free < SPACE:
            raise LimitExceeded(DISK_FULL)
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
        """Return this case of this owner, and touch it."""
        case = self._cases.get(id)
        if case is None or case.owner != owner:
            raise CaseNotFound("there is no such table here: it has expired, was removed, or never existed")
        case.touch()
        return case

    def by_id(self, id: str) -> Case:
        """Return a case without checking its owner: for the server itself."""
        return self._cases[id]

    def list_owned(self, owner: str) -> list[Case]:
        """Return all cases of this owner, newest first."""
        return sorted((case for case in self.all() if case.owner == owner), key=lambda case: -case.made)

    def all(self) -> list[Case]:
        """Return the cases of all owners."""
        with self._lock:
            return list(self._cases.values())

    def remove(self, case: Case) -> None:
        """Remove a case with its folder; its tasks must have been cancelled."""
        with self._lock:
            self._cases.pop(case.id, None)
        empty_folder(case.folder, ())
        shutil.rmtree(case.folder, ignore_errors=True)

    def list_expired(self) -> Iterator[Case]:
        """Yield cases that were not touched for `keep` seconds."""
        limit = time.time() - self.settings.keep
        yield from (case for case in self.all() if case.touched < limit)

    def delete_data(self, case: Case, why: str) -> None:
        """Delete all but the record of an unfinished case, so that no raw cell remains."""
        empty_folder(case.folder, KEPT)
        for file in (case.folder / "tasks").iterdir():  # results and progress may contain cells
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
        """Register a folder of an earlier run; one without a record is left from an interrupted upload."""
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
    """Return the last part of a name, for display.

    >>> clean_name("C:\\\\ward\\\\people.csv"), clean_name("../../etc/passwd"), clean_name("\\x00")
    ('people.csv', 'passwd', 'table')
    """
    last = re.split(r"[/\\]", name)[-1]
    plain = "".join(sign for sign in last if sign.isprintable()).strip(". ")
    return plain[-LONGEST_NAME:] or "table"


def suffix_of(name: str) -> str:
    """Return the format of the table by its name; an unknown one is refused.

    >>> suffix_of("people.CSV.gz"), suffix_of("people.pq")
    ('.csv.gz', '.parquet')
    >>> suffix_of("people.zip")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: people.zip: the suffix '.zip' is unknown; use one of .csv, ...
    """
    kind = kind_of(Path(name).name)
    packed = name.lower().endswith(".gz")
    if packed and kind in (".parquet", ".arrow"):
        raise BadInput("this format is compressed already", file=name, right="upload it without .gz")
    return kind + (".gz" if packed else "")


def write_upload(stream: IO[bytes], place: Path) -> None:
    """Write a file that only its owner can read."""
    with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        shutil.copyfileobj(stream, file, BLOCK)


def empty_folder(folder: Path, kept: Iterable[str]) -> None:
    """Delete the contents of a folder, the table first."""
    for place in sorted(folder.glob("*"), key=lambda place: not place.name.startswith("table")):
        if place.name in kept:
            continue
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place, ignore_errors=True)
        else:
            place.unlink(missing_ok=True)


def touch_record(record: Path, touched: float) -> float:
    """Note on disk, at most once a second, that an owner uses what a record is about; return when that was noted last."""
    if time.time() - touched <= 1:
        return touched
    with contextlib.suppress(FileNotFoundError):
        os.utime(record)
    return time.time()


def read_json(place: Path) -> Any:
    """Read a JSON file; None if it is missing or broken."""
    try:
        return json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
