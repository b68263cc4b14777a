"""The command `closeknit frontier`: what a stricter or looser guarantee would cost, as a table and as a chart."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from closeknit.cli.command_errors import handle_errors
from closeknit.cli.options import Force, Json, methods_of, print_utf8, read_recipe, refuse_existing, shorten_path
from closeknit.core.errors import BadInput


def frontier(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE", help="A recipe; its method comes first.")],
    vary: Annotated[
        str | None, typer.Option(help="A parameter, or one with values: t=0.1,0.2; default: that of the main guarantee.")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="Other methods, separated by commas; default: a few; '' for none.", metavar="NAMES")
    ] = None,
    match: Annotated[
        str | None, typer.Option(help="loss, t, ...: tune the other methods until they reach this level of the first one.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; default: one per core if the table is large.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Private folder for frontier.json, frontier.csv and frontier.svg.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of all methods; default: as in the recipe, or random.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Print what a stricter or looser guarantee would cost: measured level and loss for each value and method.

    A star marks rows on the frontier. A setting that is refused gets a row too, with its reason. No release is written. The
    numbers come from the original table: keep them private. Status 0 if at least one setting gives a release.

    \b
    closeknit frontier recipe.yaml
    closeknit frontier recipe.yaml --vary t=0.1,0.15,0.2,0.3 --methods sabre,mondrian -o frontier.private/
    closeknit frontier recipe.yaml --vary k=5,10,20 --match loss --json
    """
    with handle_errors():
        from closeknit.api import frontier_recipe, save_frontier
        from closeknit.cli import show
        from closeknit.cli.progress import ProgressBar

        if output is not None:
            refuse_existing(Path(os.path.abspath(output)), force)
        requested = read_recipe(recipe, seed)
        varied = parse_vary(vary)
        with ProgressBar() as bar:
            found = frontier_recipe(requested, methods_of(methods), vary=varied, match=match, jobs=jobs, progress=bar)
        if output is not None:
            save_frontier(found, output, force)
        if as_json:
            print_utf8(found.to_json())
        else:
            show.show_frontier(show.console(), found)
            if output is not None:
                typer.echo(f"{shorten_path(output)}/  frontier.json, frontier.csv, frontier.svg: private, do not share")
    if not found.ok:
        raise typer.Exit(1)


def parse_vary(text: str | None) -> str | dict[str, list[int | float | str]] | None:
    """Parse the option `--vary`: a parameter alone, or with its values.

    >>> parse_vary("t"), parse_vary("k=5,10"), parse_vary("t=0.1,1/6")
    ('t', {'k': [5, 10]}, {'t': [0.1, '1/6']})
    """
    if text is None or "=" not in text:
        return text
    name, _, values = text.partition("=")
    given = [value.strip() for value in values.split(",")]
    if not all(given):
        raise BadInput(f"--vary {text!r} cannot be read", right="separate values by commas: t=0.1,0.2")
    return {name.strip(): [_number(value) for value in given]}


def _number(text: str) -> int | float | str:
    """Anything but a plain number stays text: a fraction, or a mistake that the guarantee itself reports."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
