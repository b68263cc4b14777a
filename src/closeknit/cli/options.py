"""Options and output that several commands share."""

from __future__ import annotations

import inspect
import json
import os
import stat
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from closeknit.cli.command_errors import print_stderr
from closeknit.core.errors import BadInput

if TYPE_CHECKING:
    from closeknit.api.recipe import Recipe

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of text.")]
Engine = Annotated[str | None, typer.Option(help="Engine: local, or spark (needs closeknit[spark]).", metavar="NAME")]
Master = Annotated[
    str | None, typer.Option(help="Spark cluster, such as spark://host:7077; default: this machine.", metavar="URL")
]
Sheet = Annotated[str | None, typer.Option(help="Sheet of a spreadsheet: its name, or its number from 1.", metavar="NAME")]
HeaderRow = Annotated[
    int | None, typer.Option(min=1, help="Row of a spreadsheet with the names of the columns.", metavar="NUMBER")
]
Labels = Annotated[
    bool | None, typer.Option("--labels/--codes", help="Value labels or codes of a statistical file; default: labels.")
]
Catalog = Annotated[str | None, typer.Option(help="Catalogue of formats of a SAS file (.sas7bcat).", metavar="FILE")]
Version = Annotated[
    str | None, typer.Option(help="Version of a Delta table, or snapshot of an Iceberg table.", metavar="NUMBER")
]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]


def expand_groups(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters that are groups of options (dataclasses) are one option for each of their fields."""
    given = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {name: each.annotation for name, each in given.items() if is_dataclass(each.annotation)}
    options: list[inspect.Parameter] = []
    for name, each in given.items():
        if name not in groups:
            options.append(each.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        types = get_type_hints(groups[name], include_extras=True)
        options += [
            inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=types[field.name])
            for field in fields(groups[name])
        ]

    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {each.name: each.annotation for each in options}
    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    return run


def methods_of(text: str | None) -> list[Any] | None:
    """Parse names or `name: {parameter: value}`, as a recipe lists them."""
    if text is None:
        return None
    import yaml

    try:
        listed: list[Any] = yaml.safe_load(f"[{text}]")
    except (yaml.YAMLError, ValueError, AttributeError, RecursionError):  # also 2024-13-45 and !!int x
        right = "separate names by commas, or write 'sabre: {fill: knn}, burel'"
        raise BadInput(f"--methods {text!r} cannot be read", right=right) from None
    return listed


def free_object_folder(address: str | None, force: bool) -> str:
    """Return the address of a folder in an object store; one that cannot be written is refused before the work starts."""
    from closeknit.io.object_folders import ObjectFolder
    from closeknit.release.release_paths import CERTIFICATE, is_own_file

    ObjectFolder(address or "", CERTIFICATE).check(force, is_own_file)
    return address or ""


def describe_object_folder(address: str) -> list[str]:
    """Say what is where after a release was saved in an object store."""
    from closeknit.io.object_folders import ObjectFolder
    from closeknit.release.release_paths import CERTIFICATE

    folder = ObjectFolder(address, CERTIFICATE)
    return [
        f"{folder.place}/  the release, {CERTIFICATE} and the report: public, may be shared",
        f"{shorten_path(folder.private)}/  private, do not share",
    ]


def free_folder(folder: str | Path | None, force: bool) -> Path | None:
    """Return the folder; one that cannot be written in the end is refused before the work starts."""
    if folder is None:
        return None
    place = Path(os.path.abspath(folder))
    if not place.name:
        raise BadInput("this cannot be the folder of a release", file=folder, right="name a new folder")
    refuse_existing(place, force)
    private = place.with_name(place.name + ".private")
    if os.path.lexists(private) and not force:
        what = f"this private folder exists without {place.name}, so a run was interrupted"
        raise BadInput(what, file=private, right="remove it, or use --force to replace it")
    return place


def read_recipe(path: Path, seed: int | None) -> Recipe:
    """Read a recipe; a seed overrides its own."""
    from closeknit.api.recipe import Recipe

    recipe = Recipe.read(path)
    if recipe.preset is not None:
        print_stderr(f"preset {recipe.preset.name}: {'; '.join(recipe.preset.says)}")
    recipe.seed = recipe.seed if seed is None else seed
    return recipe


def refuse_existing(place: Path, force: bool) -> None:
    if os.path.lexists(place) and not force:
        raise BadInput("it exists already", file=place, right="choose another name, or use --force to replace it")


def free_file(place: Path, force: bool) -> None:
    """Refuse a file that cannot be written in the end, before the work starts."""
    from closeknit.io.folders import refuse_no_parent

    if place.is_dir():
        raise BadInput("this is a folder, not a file", file=place, right="name a file in it")
    refuse_no_parent(place)
    refuse_existing(place, force)


def file_of_output(output: Path | None) -> Path | None:
    """Return the file that a command writes: `output`, or standard output if the system knows its file."""
    if output is not None:
        return Path(os.path.realpath(output))
    try:
        number = sys.stdout.fileno()
        return Path(os.readlink(f"/proc/self/fd/{number}")) if stat.S_ISREG(os.fstat(number).st_mode) else None
    except (OSError, ValueError):  # a system without /proc, or a stream that is not a file
        return None


def path_from(file: Path, folder: Path | None) -> str:
    """Return the path of `file` relative to `folder`; the absolute path if the folder is unknown.

    >>> path_from(Path("/study/data/patients.csv"), Path("/study/recipes")), path_from(Path("/study/patients.csv"), None)
    ('../data/patients.csv', '/study/patients.csv')
    """
    real = os.path.join(os.path.realpath(file.parent), file.name)
    return real if folder is None else os.path.relpath(real, folder)


def data_keys(source: Any, csv: Mapping[str, Any], folder: Path | None) -> tuple[str, Mapping[str, Any]]:
    """Return path and further keys of `data` in a recipe that is written into `folder`.

    >>> data_keys("/study/patients.csv", {"delimiter": ";"}, Path("/study"))
    ('patients.csv', {'delimiter': ';'})
    """
    from closeknit.io.source import Source

    if not isinstance(source, Source):
        return path_from(Path(source), folder), csv
    keys = source.form()
    place = keys.pop(source.where())
    keys |= {name: path_from(Path(keys[name]), folder) for name in source.files if name in keys}
    return path_from(Path(place), folder) if source.where() == "path" and "://" not in place else place, keys


def print_utf8(text: str) -> None:
    """Print UTF-8 in any locale: a recipe is read back as UTF-8."""
    typer.echo(text.encode(), nl=False)


def print_json(record: dict[str, Any]) -> None:
    print_utf8(json.dumps(record, indent=2, ensure_ascii=False) + "\n")


def shorten_path(place: Path) -> str:
    """Return the shorter of the relative and the absolute path."""
    return min(os.path.relpath(place), str(place), key=len)
