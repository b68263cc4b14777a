"""The command `closeknit compare`: methods under the guarantees of a recipe, one row each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from closeknit.cli.command_errors import handle_errors
from closeknit.cli.options import Force, Json, methods_of, print_utf8, read_recipe, refuse_existing, shorten_path


def compare(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE", help="A recipe; its method comes first.")],
    methods: Annotated[
        str | None, typer.Option(help="Other methods, separated by commas; default: all that apply.", metavar="NAMES")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Private folder for comparison.json, comparison.csv, comparison.svg.")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(help="known-algorithm: also measure what an adversary who knows the method learns.", metavar="ADVERSARY"),
    ] = None,
    runs: Annotated[int | None, typer.Option(min=2, help="With --against: how often each method runs; default: 300.")] = None,
    neighbours: Annotated[
        int | None,
        typer.Option(min=2, help="With --against: rows around a drawn person; default: all of a small table, else 200."),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of all methods; default: as in the recipe, or random.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Print measured level, loss and time of each method under a recipe's guarantees: one row each, least loss first.

    A method that refuses gets a row too, with its reason. No release is written. The numbers come from the original table: keep
    them private. Status 0 if at least one method meets the guarantees.

    \b
    closeknit compare recipe.yaml
    closeknit compare recipe.yaml --methods sabre,mondrian,burel -o compare.private/
    closeknit compare recipe.yaml --methods 'sabre: {fill: knn}, sabre: {fill: sweep}' --json
    closeknit compare recipe.yaml --against known-algorithm -o compare.private/
    """
    with handle_errors():
        from closeknit.api import compare_recipe, save_comparison
        from closeknit.cli import show
        from closeknit.cli.progress import ProgressBar

        if output is not None:
            refuse_existing(Path(os.path.abspath(output)), force)
        requested = read_recipe(recipe, seed)
        with ProgressBar() as bar:
            gain = {"runs": runs, "neighbours": neighbours}
            given = {name: value for name, value in gain.items() if value is not None}
            found = compare_recipe(requested, methods_of(methods), progress=bar, against=against, **given)
        if output is not None:
            save_comparison(found, output, force)
        if as_json:
            print_utf8(found.to_json())
        else:
            show.show_comparison(show.console(), found)
            if output is not None:
                files = "comparison.json, comparison.csv, comparison.svg" + (", known_algorithm.svg" if against else "")
                typer.echo(f"{shorten_path(output)}/  {files}: private, do not share")
    if not found.ok:
        raise typer.Exit(1)
