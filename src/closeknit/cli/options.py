"""What several commands take and print."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from closeknit.core.errors import BadInput

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of text.")]
Engine = Annotated[
    str | None, typer.Option(help="Where the rows are worked on: local, or spark (closeknit[spark]).", metavar="NAME")
]
Master = Annotated[
    str | None, typer.Option(help="Address of the Spark cluster, such as spark://host:7077; else this machine.", metavar="URL")
]
Force = Annotated[bool, typer.Option("--force", help="Replace what stands there already.")]


def methods_of(text: str | None) -> list[Any] | None:
    """Names or `name: {parameter: value}`, as a recipe writes a list."""
    if text is None:
        return None
    import yaml

    try:
        listed: list[Any] = yaml.safe_load(f"[{text}]")
    except (yaml.YAMLError, ValueError, AttributeError, RecursionError):  # also 2024-13-45 and !!int x
        right = "write names with commas between, or 'sabre: {fill: knn}, burel'"
        raise BadInput(f"--methods {text!r} cannot be read", right=right) from None
    return listed


def free_folder(folder: Path | None, force: bool) -> Path | None:
    """The folder, refused before any work is done if it cannot be written in the end."""
    if folder is None:
        return None
    place = Path(os.path.abspath(folder))
    if not place.name:
        raise BadInput("this cannot be the folder of a release", file=folder, right="name a new folder")
    refuse_existing(place, force)
    private = place.with_name(place.name + ".private")
    if os.path.lexists(private) and not force:
        what = f"this private folder stands without {place.name}: the mark of a broken run"
        raise BadInput(what, file=private, right="remove it, or use --force to replace it")
    return place


def refuse_existing(place: Path, force: bool) -> None:
    if os.path.lexists(place) and not force:
        raise BadInput("it exists already", file=place, right="choose another name, or use --force to replace it")


def folder_of_output(output: Path | None) -> str | None:
    """The folder of the file that a command writes: of `output`, or of standard output where the system names its file."""
    if output is not None:
        return os.path.dirname(os.path.realpath(output))
    try:
        number = sys.stdout.fileno()
        regular = stat.S_ISREG(os.fstat(number).st_mode)
        return os.path.dirname(os.readlink(f"/proc/self/fd/{number}")) if regular else None
    except (OSError, ValueError):  # no such folder on this system, or a stream that is no file
        return None


def path_from(file: Path, folder: str | None) -> str:
    """How a file in this folder names `file`; an absolute path, which works everywhere, where the folder is not known.

    >>> path_from(Path("/study/data/patients.csv"), "/study/recipes"), path_from(Path("/study/patients.csv"), None)
    ('../data/patients.csv', '/study/patients.csv')
    """
    real = os.path.join(os.path.realpath(file.parent), file.name)
    return real if folder is None else os.path.relpath(real, folder)


def print_utf8(text: str) -> None:
    """UTF-8 whatever the terminal thinks: a recipe is read back as such."""
    typer.echo(text.encode(), nl=False)


def print_json(record: dict[str, Any]) -> None:
    print_utf8(json.dumps(record, indent=2, ensure_ascii=False) + "\n")


def shorten_path(place: Path) -> str:
    """The shorter of the relative and the absolute path."""
    return min(os.path.relpath(place), str(place), key=len)
