"""The layout of a saved release: names of the public and private files, where they are, and how they are found.

`out/` is public: the release, `certificate.json`, and a report made from these alone. `out.private/` is not shared: the recipe
with its seed, the class of each row, the labels for later rows, and the report that compares with the original.
"""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path
from typing import Any

from closeknit.core.certificate import Certificate
from closeknit.core.errors import BadInput
from closeknit.core.strict_json import read_text
from closeknit.io.source import NAME_IT, Source
from closeknit.io.sources import source_of
from closeknit.io.written_files import FORMATS

RELEASE, CERTIFICATE, README = "release", "certificate.json", "README.txt"
SIGNATURE = "certificate.sig"  # a DSSE envelope, next to the certificate
RECIPE, CLASSES, RECODING = "recipe.yaml", "classes.csv", "recoding.json"
PAGE, REPORT = "report.html", "report.json"  # one of each in both folders
OWN_FILES = re.compile(
    rf"(release|quasi|sensitive|slice_\d+)\.({'|'.join(FORMATS)})|certificate\.(json|sig)|recipe\.yaml|classes\.csv|recoding\.json|"
    r"report\.(html|json)|README\.txt"
)
ALLOWED_FILES = re.compile(
    r"certificate\.json|report\.(html|json)|README[^/]*|[^/]*\.sig"
)  # next to the files of a certificate


def private_folder(public: str | PathLike[str]) -> Path:
    """The private folder of a public one.

    Args:
        public: the folder that is shared.

    >>> private_folder("results/out").name
    'out.private'
    """
    folder = Path(public).absolute()
    return folder.with_name(folder.name + ".private")


def is_own_file(name: str) -> bool:
    """Whether a file of this name may be one of an earlier release, which `force` replaces.

    Args:
        name: of a file in a public or private folder.

    >>> is_own_file("classes.csv"), is_own_file("thesis.docx")
    (True, False)
    """
    return OWN_FILES.fullmatch(name) is not None


def release_file(data: Any) -> Any:
    """The file of a release (or the folder of its part files), where `data` is the public folder; else `data` itself.

    Args:
        data: a folder, a file, or a frame.

    >>> release_file("people.csv")
    'people.csv'
    """
    if not isinstance(data, str | PathLike) or not (Path(data) / CERTIFICATE).exists():
        return data
    folder = Path(data)
    listed = [Path(file.name).name for file in read_certificate(folder / CERTIFICATE).files]
    usual = [f"{RELEASE}.{format}" for format in FORMATS]
    file = next((folder / name for name in [*listed, *usual] if (folder / name).exists()), None)
    if file is None:
        right = f"put the release next to it, as {' or '.join(usual)}"
        raise BadInput(f"the folder has a {CERTIFICATE} and no release", file=folder, right=right)
    return file


def certificate_file(file: str | PathLike[str], right: str = NAME_IT) -> Path:
    """The certificate next to a release.

    Args:
        file: the release.
        right: what to do where there is none.

    >>> certificate_file("nowhere/people.csv")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: nowhere/people.csv: there is no such file or folder; check the path
    """
    place = Path(file)
    if not place.exists():
        raise BadInput("there is no such file or folder", file=file, right="check the path")
    found = place.parent / CERTIFICATE
    if not found.exists():
        folder = place if place.is_dir() else place.parent
        public = folder.with_suffix("") if folder.suffix == ".private" else folder
        if (public / CERTIFICATE).exists():
            raise BadInput("these are the private files of a release", file=file, right=f"name its public folder, {public}")
        where = "in this folder or next to it" if place.is_dir() else "next to it"
        raise BadInput(f"there is no {CERTIFICATE} {where}", file=file, right=right)
    return found


def find_certificate(data: Any, right: str = NAME_IT) -> Certificate | Path | None:
    """The certificate with a release: next to its file, or where its source has it; None for a frame.

    Args:
        data: the file of the release, its address, a `Source`, or a frame.
        right: what to do where there is none next to a file.

    >>> find_certificate({"age": [30]}) is None
    True
    """
    source = source_of(data)
    if isinstance(source, Source) and not (isinstance(data, str | PathLike) and (Path(data).parent / CERTIFICATE).exists()):
        return Certificate.from_json(source.read_certificate(), source.place)
    return certificate_file(data, right) if isinstance(data, str | PathLike) else None


def read_certificate(given: Certificate | str | PathLike[str]) -> Certificate:
    """A certificate as it is, or from its file.

    Args:
        given: the certificate, or the path of its file.

    >>> read_certificate("nowhere.json")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: nowhere.json: cannot be read (No such file or directory); name a certificate.json
    """
    if isinstance(given, Certificate):
        return given
    return Certificate.from_json(read_text(given, f"name a {CERTIFICATE}"), Path(given))
