"""Where a release lies: its file and its certificate, found by the public folder or by the file alone."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from closeknit.core.certificate import Certificate
from closeknit.core.errors import BadInput
from closeknit.core.strict_json import read_limited
from closeknit.release.release import FORMATS

CERTIFICATE = "certificate.json"


def release_file(data: Any) -> Any:
    """The file of a release (or the folder of its part files), where `data` is the public folder; else `data` itself.

    >>> release_file("people.csv")
    'people.csv'
    """
    if not isinstance(data, str | PathLike) or not (Path(data) / CERTIFICATE).exists():
        return data
    folder = Path(data)
    listed = [Path(file.name).name for file in read_certificate(folder / CERTIFICATE).files]
    names = [*listed, *(f"release.{format}" for format in FORMATS)]
    file = next((folder / name for name in names if (folder / name).exists()), None)
    if file is None:
        right = f"put the release next to it, as {' or '.join(names[-len(FORMATS) :])}"
        raise BadInput(f"the folder has a {CERTIFICATE} and no release", file=folder, right=right)
    return file


def certificate_file(file: str | PathLike[str]) -> Path:
    """The certificate next to a release.

    >>> certificate_file("nowhere/people.csv")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: nowhere/people.csv: there is no such file or folder; check the path
    """
    place = Path(file)
    if not place.exists():
        raise BadInput("there is no such file or folder", file=file, right="check the path")
    found = place.parent / CERTIFICATE
    if not found.exists():
        where = "in this folder or next to it" if place.is_dir() else "next to it"
        right = "name it with --certificate, or what to check with --recipe (in Python: certificate=, or schema and models)"
        raise BadInput(f"there is no {CERTIFICATE} {where}", file=file, right=right)
    return found


def read_certificate(given: Certificate | str | PathLike[str]) -> Certificate:
    """A certificate as it is, or from its file.

    >>> read_certificate("nowhere.json")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: nowhere.json: cannot be read (No such file or directory); name a certificate.json
    """
    if isinstance(given, Certificate):
        return given
    file = Path(given)
    try:
        return Certificate.from_json(read_limited(file), file)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise BadInput(f"cannot be read ({why})", file=file, right=f"name a {CERTIFICATE}") from None
