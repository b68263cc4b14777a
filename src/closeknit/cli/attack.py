"""The command `closeknit attack`: the disclosure risk of a release, worst first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from closeknit.cli.command_errors import handle_errors
from closeknit.cli.csv_options import NO_CSV, CsvOptions
from closeknit.cli.database_options import Table, data_of
from closeknit.cli.options import Json, expand_groups, print_utf8

if TYPE_CHECKING:
    from rich.console import Console

    from closeknit.api import AttackReport


@expand_groups
def attack(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A release: its file, its public folder, or a database.")],
    table: Table = None,
    certificate: Annotated[Path | None, typer.Option(help="Its certificate; default: the certificate.json next to it.")] = None,
    recipe: Annotated[
        Path | None, typer.Option(help="The private recipe: the table, its schema, the method and its seed.")
    ] = None,
    population: Annotated[
        Path | None, typer.Option(help="A list of all persons who may be in the table, with quasi-identifiers.", metavar="FILE")
    ] = None,
    other: Annotated[
        Path | None, typer.Option(help="Another release of the same people, with its certificate next to it.", metavar="FILE")
    ] = None,
    baskets: Annotated[
        str | None, typer.Option(help="Sensitive columns whose cells list several items, separated by commas.", metavar="NAMES")
    ] = None,
    runs: Annotated[
        int | None, typer.Option(min=1, help="How often to rerun the method; default: chosen by the size of the table.")
    ] = None,
    solves: Annotated[
        int | None, typer.Option(min=1, help="How many integer programs refinement solves for an attribute; default: 200.")
    ] = None,
    neighbours: Annotated[
        int | None,
        typer.Option(min=2, help="Rerun the method on so many rows around a drawn person; default: on the whole table."),
    ] = None,
    written: CsvOptions = NO_CSV,
    as_json: Json = False,
) -> None:
    """Run attacks on a release and print their results, worst first, and which attacks could not run.

    The attacks of a recipient need the release and its certificate only. With the private recipe, further attacks compare with
    the original rows and rerun the method; keep their results private. The exit status is 0 whatever the attacks find.

    \b
    closeknit attack out/
    closeknit attack out/release.csv --population voters.csv
    closeknit attack out/release.csv --recipe out.private/recipe.yaml --other last_year/release.csv --json
    """
    with handle_errors():
        from closeknit.api import attack as attack_release
        from closeknit.cli import show

        found = attack_release(
            data_of(file, table=table),
            certificate=certificate,
            recipe=recipe,
            population=population,
            other=other,
            baskets=[name.strip() for name in (baskets or "").split(",") if name.strip()],
            runs=runs,
            solves=solves,
            neighbours=neighbours,
            csv=written.format,
        )
        if as_json:
            print_utf8(found.to_json())
        else:
            _show(show.console(), found, private=recipe is not None)


def _show(out: Console, found: AttackReport, private: bool) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from closeknit.cli.show import PRIVATE
    from closeknit.core.combined_secrets import render_secret
    from closeknit.core.grids import render_measured

    out.print(f"{found.rows:,} rows, worst first. Risk 0: nothing new is learned; 1: a value or a person is fully disclosed.\n")
    for each in found.findings:
        of = f" of {render_secret(each.column)}" if each.column else ""
        head = f"{each.risk:.3f}  {each.attack.replace('_', ' ')}{of} ({each.measure}: {render_measured(each.number)})"
        out.print(head, markup=False, soft_wrap=True)
        out.print(Padding(Text(each.sentence), (0, 0, 0, 7)))
    lines = ["", *(f"not tried: {reason}" for reason in found.untried)] if found.untried else []
    lines += [PRIVATE] if private else []
    if lines:
        out.print("\n".join(lines), markup=False, soft_wrap=True)
