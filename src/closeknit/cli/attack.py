"""The command `closeknit attack`: what a release still gives away, worst first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from closeknit.cli.command_errors import handle_errors
from closeknit.cli.csv_options import Decimal, Delimiter, Encoding, Thousands, csv_format
from closeknit.cli.options import Json, print_utf8

if TYPE_CHECKING:
    from rich.console import Console

    from closeknit.api import AttackReport


def attack(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A release: its file (CSV or Parquet), or its public folder.")],
    certificate: Annotated[Path | None, typer.Option(help="Its certificate; else certificate.json next to the file.")] = None,
    recipe: Annotated[
        Path | None, typer.Option(help="The private recipe: the table, its schema, the method and its seed.")
    ] = None,
    population: Annotated[
        Path | None, typer.Option(help="A list of all who may be in the table, with quasi-identifiers.", metavar="FILE")
    ] = None,
    other: Annotated[
        Path | None, typer.Option(help="Another release of the same people, its certificate beside it.", metavar="FILE")
    ] = None,
    baskets: Annotated[
        str | None, typer.Option(help="Secrets whose cells have several items, with commas between.", metavar="NAMES")
    ] = None,
    runs: Annotated[
        int | None, typer.Option(min=1, help="Runs of the method to be tried; else as many as the table allows.")
    ] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    as_json: Json = False,
) -> None:
    """Try attacks on a release and print what they reach, the worst first, and which could not be tried.

    A stranger's attacks need the release and its certificate. Others need what only some people have: with the private recipe
    the original rows are compared and the method is run again. What these find stays at home. Status 0 whatever is found.

    \b
    closeknit attack out/
    closeknit attack out/release.csv --population voters.csv
    closeknit attack out/release.csv --recipe out.private/recipe.yaml --other last_year/release.csv --json
    """
    with handle_errors():
        from closeknit.api import attack as attacked
        from closeknit.cli import show

        found = attacked(
            file,
            certificate=certificate,
            recipe=recipe,
            population=population,
            other=other,
            baskets=[name.strip() for name in (baskets or "").split(",") if name.strip()],
            runs=runs,
            csv=csv_format(delimiter, encoding, decimal, thousands),
        )
        if as_json:
            print_utf8(found.to_json())
        else:
            _show(show.console(), found, at_home=recipe is not None)


def _show(out: Console, found: AttackReport, at_home: bool) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from closeknit.core.combined_secrets import render_secret

    out.print(f"{found.rows:,} rows, the worst first. Risk 0: nothing is added to what was known; 1: somebody is given away.\n")
    for each in found.findings:
        of = f" of {render_secret(each.column)}" if each.column else ""
        number = "no limit" if each.number is None else f"{each.number:.4g}"
        head = f"{each.risk:.3f}  {each.attack.replace('_', ' ')}{of} ({each.measure}: {number})"
        out.print(head, markup=False, soft_wrap=True)
        out.print(Padding(Text(each.sentence), (0, 0, 0, 7)))
    lines = ["", *(f"not tried: {reason}" for reason in found.untried)] if found.untried else []
    lines += ["Made beside the original table: this stays at home."] if at_home else []
    if lines:
        out.print("\n".join(lines), markup=False, soft_wrap=True)
