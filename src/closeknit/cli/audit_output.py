"""What `closeknit audit` prints, in each of its formats, and its exit status."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from closeknit import __version__
from closeknit.cli.options import print_utf8, shorten_path
from closeknit.core.audit import MET, NOT_MET, Audit
from closeknit.core.audit_formats import json_of_audits, junit_of_audits, sarif_of_audits
from closeknit.io.sources import place_of
from closeknit.release.release_paths import CERTIFICATE, release_file


def release_of(file: str) -> str:
    """The release that is meant: a certificate stands for the folder it is in, a folder for the file in it.

    Args:
        file: as the user wrote it.

    >>> release_of("out/release.csv")
    'out/release.csv'
    """
    return str(release_file(Path(file).parent if Path(file).name == CERTIFICATE else file))


def place_name(file: str) -> str:
    """The release as an output names it: relative to this folder if it is inside, and without credentials.

    Args:
        file: the path or address.

    >>> place_name("out/release.csv")
    'out/release.csv'
    """
    place = str(place_of(file)).encode(errors="replace").decode()
    return place if "://" in place else shorten_path(Path(place))


def name_releases(files: Iterable[str]) -> dict[str, str]:
    """The releases by the names that an output gives them: each release once, and different ones with equal names numbered.

    Args:
        files: as the user wrote them.

    >>> name_releases(["a.csv", "b.csv", "./a.csv"])
    {'a.csv': 'a.csv', 'b.csv': 'b.csv'}
    """
    named: dict[str, str] = {}
    seen = set()
    for release in map(release_of, files):
        shown = name = place_name(release)
        same = (shown, release if "://" in release else os.path.realpath(release))
        if same in seen:
            continue
        seen.add(same)
        number = 2
        while name in named:
            name, number = f"{shown} ({number})", number + 1
        named[name] = release
    return named


def print_audits(audits: Mapping[str, Audit], format: str) -> int:
    """Print the audits of one or more releases; return the exit status, of which the worst counts.

    Args:
        audits: by the name of the release.
        format: "text", "json", "sarif" or "junit".
    """
    if format == "text":
        texts = [f"{audit}\n" if len(audits) == 1 else f"{place}:\n{audit}\n" for place, audit in audits.items()]
        print_utf8("\n".join(texts))
    elif format == "sarif":
        print_utf8(sarif_of_audits(audits, __version__))
    else:
        print_utf8(json_of_audits(audits) if format == "json" else junit_of_audits(audits))
    outcomes = {audit.status for audit in audits.values()}
    return 1 if NOT_MET in outcomes else 0 if outcomes == {MET} else 3
