"""The command `closeknit report`: the reports of a saved release."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from closeknit.cli.command_errors import handle_errors
from closeknit.cli.database_options import Table, data_of
from closeknit.cli.options import Force, Json, print_utf8, shorten_path
from closeknit.core.errors import BadInput


def report(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="The folder of a release, or a database.")],
    table: Table = None,
    recipe: Annotated[
        Path | None, typer.Option("--private", metavar="RECIPE", help="The private recipe: render the private report.")
    ] = None,
    frontier: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A frontier.json to show in the private report.")
    ] = None,
    attacks: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Output of 'closeknit attack --json' to show in the private report.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Train a classifier of this column, for the private report.")
    ] = None,
    bound: Annotated[
        bool, typer.Option("--bound", help="Compute how far the loss is from the best possible, for the private report.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder of the report; default: that of the release or recipe.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Render the report of a saved release from its cells and its certificate alone: report.html and report.json.

    An identical report is left as it is, a different one is replaced only with --force: so a recipient can check the report
    that came with a release. With the private recipe, the command renders the private report, which compares with the original
    and describes how to repeat the release. Do not share it.

    \b
    closeknit report out/
    closeknit report out/ --private out.private/recipe.yaml --frontier frontier.private/frontier.json --force
    closeknit attack out/release.csv --recipe out.private/recipe.yaml --json > attacks.json
    closeknit report out/ --private out.private/recipe.yaml --attacks attacks.json --force
    closeknit report out/ --private out.private/recipe.yaml --target disease --force
    closeknit report out/ --json | jq .findings
    """
    if recipe is None and (bound or not frontier is attacks is target is None):
        what = "--frontier, --attacks, --target and --bound belong to the private report"
        raise typer.BadParameter(f"{what}: name the recipe with --private")
    with handle_errors():
        from closeknit.api.attacking import AttackReport
        from closeknit.api.reporting import load_release
        from closeknit.core.frontier import Frontier
        from closeknit.core.strict_json import read_text
        from closeknit.release.release import report_files
        from closeknit.report.page import private_page, public_page

        data = data_of(folder, table=table)
        release = load_release(data, recipe)
        if recipe is None:
            public = release.public_record()
            files = {} if as_json else report_files(public, public_page(public))
            record = public.to_json()
        else:
            right = "name a JSON file"
            points = None if frontier is None else Frontier.from_json(read_text(frontier, right), frontier)
            attacked = None if attacks is None else AttackReport.from_json(read_text(attacks, right), attacks)
            least = release.bound if bound else None
            private = release.private_record(points, attacked.findings if attacked else None, target, least)
            files = {} if as_json else report_files(private, private_page(private))
            record = private.to_json()
        if as_json:
            print_utf8(record)
            return
        place = output or (recipe.parent if recipe else _folder_of(data))
        _write(Path(os.path.abspath(place)), files, force, 0o600 if recipe else 0o644)
        typer.echo("private: do not share" if recipe else "public: may be shared with the release")


def _folder_of(data: Any) -> Path:
    if not isinstance(data, str):
        raise BadInput("a database has no place for a report", file=data.place, right="name a folder with -o")
    return Path(data) if Path(data).is_dir() else Path(data).parent


def _write(place: Path, files: Mapping[str, str], force: bool, mode: int) -> None:
    """Write the files; identical ones stay as they are."""
    from closeknit.io.folders import write_whole

    if not place.is_dir():
        raise BadInput("there is no such folder", file=place, right="create it first")
    there = [name for name in files if (place / name).exists()]
    others = [name for name in there if (place / name).read_bytes() != files[name].encode()]
    if others and not force:
        right = "another version or another release produced it; use --force to replace it"
        raise BadInput("it exists already and differs", file=place / others[0], right=right)
    for name in files:
        if name in there and name not in others:
            typer.echo(f"{shorten_path(place / name)}  unchanged")
        else:
            write_whole(place / name, files[name].encode(), mode)
            typer.echo(f"{shorten_path(place / name)}  written")
