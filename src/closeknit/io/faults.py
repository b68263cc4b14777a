"""Messages for errors of the operating system, and for characters that no table may contain."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput

NUL = "a cell holds a NUL character"
SIGNATURES = {
    b"PK\3\4": "a zip archive, as Excel and OpenDocument write them",
    b"\xd0\xcf\x11\xe0": "a file of an old version of Excel or Word",
    b"PAR1": "a Parquet file",
    b"SQLite format 3": "an SQLite database",
    b"%PDF": "a PDF",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"\x7fELF": "a program",
}
BINARY = 0.05  # the least share of control characters, NUL apart, in what is no text
_CONTROL = bytes(set(range(1, 32)) - set(b"\t\n\v\f\r\x1a\x1b"))

_SENTENCES = {
    errno.ENOENT: ("there is no such file or folder", "check the path"),
    errno.ENOTDIR: ("a part of the path is a file, not a folder", "check the path"),
    errno.EISDIR: ("this is a folder, not a file", "name a file in it"),
    errno.EACCES: ("no permission", "change the rights of the file or folder, or choose another"),
    errno.EPERM: ("no permission", "change the rights of the file or folder, or choose another"),
    errno.EROFS: ("the file system is read-only", "choose another folder"),
    errno.ENOSPC: ("the disk is full", "free some space, or choose another folder"),
    errno.EDQUOT: ("the disk quota is used up", "free some space, or choose another folder"),
    errno.EEXIST: ("it exists already", "remove it, or choose another name"),
    errno.ENOTEMPTY: ("it exists already", "remove it, or choose another name"),
    errno.ENAMETOOLONG: ("the name is too long", "choose a shorter one"),
}


def explain_os_error(error: OSError, path: str | PathLike[str]) -> BadInput:
    """The message for an error of the operating system.

    >>> print(explain_os_error(OSError(errno.ENOSPC, "No space left on device"), "out"))
    out: the disk is full; free some space, or choose another folder
    """
    reason = error.strerror or str(error) or type(error).__name__
    what, right = _SENTENCES.get(error.errno or 0, (f"the system refuses it ({reason.lower()})", None))
    return BadInput(what, file=path, right=right)


@contextmanager
def name_os_errors(path: str | PathLike[str]) -> Iterator[None]:
    """Raise errors of the operating system as `BadInput` with a path.

    Args:
        path: the file or folder that is used.
    """
    try:
        yield
    except OSError as error:
        raise explain_os_error(error, path) from None


def refuse_nul(columns: Columns, file: object = None, right: str = "remove it") -> None:
    """Refuse text with a NUL character: databases, C programs and spreadsheets would cut the cell there.

    >>> refuse_nul(Columns.of({"name": ["Ann", "B\\0b"]}))
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: column 'name', row 2: a cell holds a NUL character; remove it
    """
    for name, column in columns.items():
        if column.values.dtype.kind == "O":
            bad = [code for code, value in enumerate(column.values.tolist()) if "\0" in str(value)]
            if bad:
                raise BadInput(NUL, file=file, column=name, row=min(map(column.first_row, bad[:1000])), right=right)


def refuse_binary(data: bytes, file: object, encoding: str = "utf-8") -> None:
    """Refuse what is no text, before a sign in it is taken for a delimiter; in UTF-16 letters have bytes of control characters.

    >>> refuse_binary(b"PK\\3\\4" + bytes(20), "patients.csv")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: patients.csv: it is a zip archive, as Excel and OpenDocument write them, not a text file; \
give a CSV file, or the file under a name that ends in its own format
    """
    found = next((what for begin, what in SIGNATURES.items() if data.startswith(begin)), None)
    head = data[:4096]
    controls = len(head) - len(head.translate(None, _CONTROL))
    if found is None and controls >= max(8, BINARY * len(head)) and not re.match("utf.?(16|32)", encoding, re.IGNORECASE):
        found = "binary data"
    if found is not None:
        right = "give a CSV file, or the file under a name that ends in its own format"
        raise BadInput(f"it is {found}, not a text file", file=file, right=right)
