"""The command `closeknit risk`: the re-identification risk of a raw table or of a release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from closeknit import __version__
from closeknit.cli.command_errors import handle_errors
from closeknit.cli.csv_options import NO_CSV, CsvOptions
from closeknit.cli.options import Json, expand_groups, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from closeknit.risks.risk_record import RiskRecord, UniquesRecord
    from closeknit.risks.suda import Suda


@expand_groups
def risk(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A raw table, or a release (its file or public folder).")],
    recipe: Annotated[
        Path | None, typer.Option(help="A recipe with the schema; a release with its certificate needs none.")
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="The certificate of a release that is not next to it.")] = None,
    release: Annotated[
        Path | None, typer.Option(help="A release of this table: the risk before and after.", metavar="FILE")
    ] = None,
    population: Annotated[
        str | None, typer.Option(help="All people from whom the table was drawn: a file, or their number.", metavar="FILE")
    ] = None,
    sampling_fraction: Annotated[
        str | None, typer.Option(help="Share of the population that is in the table, such as 0.1.", metavar="SHARE")
    ] = None,
    weights: Annotated[str | None, typer.Option(help="Column with the sample weights.", metavar="COLUMN")] = None,
    household: Annotated[str | None, typer.Option(help="Column that names the household.", metavar="COLUMN")] = None,
    suda: Annotated[bool, typer.Option("--suda", help="Find which columns single rows out (SUDA2).")] = False,
    written: CsvOptions = NO_CSV,
    as_json: Json = False,
) -> None:
    """Measure the re-identification risk of a raw table or of a release: prosecutor, journalist, marketer.

    A release is judged by its written cells. With a population or a sampling fraction, the risk from attackers who do not know
    who is in the table is smaller, and population uniques are estimated. The exit status is 0 whatever the risk is.

    \b
    closeknit risk patients.csv --recipe recipe.yaml
    closeknit risk out/
    closeknit risk patients.csv --recipe recipe.yaml --release out/
    closeknit risk survey.csv --recipe recipe.yaml --weights weight --household house --suda
    closeknit risk patients.csv --recipe recipe.yaml --population citizens.csv --json
    """
    with handle_errors():
        from closeknit.api import risk as measure
        from closeknit.api import suda as find_uniques
        from closeknit.api.recipe import Recipe
        from closeknit.cli import show

        requested = None if recipe is None else Recipe.read(recipe)
        schema = None if requested is None else requested.schema
        given = written.format
        csv = requested.csv if given is None and requested is not None else given
        people: Any = int(population) if population is not None and population.isdecimal() else population
        options: dict[str, Any] = {"sampling_fraction": sampling_fraction, "csv": csv}
        found = measure(file, schema, people, weights=weights, household=household, certificate=certificate, **options)
        after = None if release is None else measure(release, schema, people, **options)
        uniques = find_uniques(file, schema, certificate=certificate, **options) if suda else None
        if as_json:
            record = {"closeknit": __version__, **found.record.model_dump(mode="json")}
            record |= {} if after is None else {"after": after.record.model_dump(mode="json")}
            print_json(record | ({} if uniques is None else {"suda": _suda_record(uniques)}))
            return
        out = show.console()
        _show(out, found.record)
        if after is not None:
            _show_change(out, found.record, after.record)
        if uniques is not None:
            _show_suda(out, uniques)
        if schema is not None:
            out.print(f"\n{show.PRIVATE}", markup=False)


def _show(out: Console, found: RiskRecord) -> None:
    from closeknit.core.grids import align_grid
    from closeknit.risks.risk_record import render_people

    lines = [f"{found.people:,} {found.counted} in {found.classes:,} classes; {found.uniques:,} are unique.", ""]
    lines += [*align_grid(found.grid()), "", *found.legend(), ""]
    number, share = render_people(found.expected_reidentifications), found.global_risk
    lines.append(f"Expected re-identifications: {number} ({share:.4g} of all), {found.basis}.")
    if found.household_expected_reidentifications is not None:
        number = render_people(found.household_expected_reidentifications)
        lines.append(f"Expected people whose household is re-identified: {number} (members taken as independent).")
    lines += _uniques_lines(found.population_uniques) if found.population_uniques else []
    lines += [f"Note: {note}." for note in found.notes]
    out.print("\n".join(lines), markup=False, soft_wrap=True)


def _uniques_lines(found: UniquesRecord) -> list[str]:
    from closeknit.risks.risk_record import ESTIMATOR_NAMES, render_people

    lines = ["", f"Unique in the population of {found.population:,.0f}, expected:"]
    for name, number in found.expected.items():
        share = "" if number is None else f" ({100 * number / found.population:.2f} %)"
        chosen = ", chosen by Dankar's rule" if name == found.rule else ""
        why = f"no fit: {found.reasons[name]}" if name in found.reasons else f"{render_people(number)}{share}{chosen}"
        lines.append(f"  {ESTIMATOR_NAMES[name]}: {why}")
    return [*lines, found.spread]


def _show_change(out: Console, before: RiskRecord, after: RiskRecord) -> None:
    from closeknit.core.grids import align_grid
    from closeknit.risks.risk_record import compare_risks

    out.print("\n".join(["", "Before and after:", *align_grid(compare_risks(before, after))]), markup=False, soft_wrap=True)


def _show_suda(out: Console, found: Suda) -> None:
    from closeknit.core.grids import align_grid

    scored = int((found.scores > 0).sum())
    sets = ", ".join(f"{count:,} of {size}" for size, count in found.msus.items()) or "none"
    shares = sorted(found.column_shares.items(), key=lambda item: (-item[1], item[0]))
    lines = ["", f"SUDA: {scored:,} of {len(found.scores):,} rows are singled out by {found.most} columns or fewer."]
    lines += [f"Minimal sets of columns that single a row out: {sets}.", ""]
    lines += align_grid([["column", "share of the score"], *([name, f"{share:.3f}"] for name, share in shares)])
    if found.dis is not None and found.dis_suda is not None:
        highest = float(found.dis_suda.max(initial=0.0))
        lines += ["", f"A unique match is correct with probability {found.dis:.4g} (DIS); largest DIS-SUDA: {highest:.4g}."]
    out.print("\n".join(lines), markup=False, soft_wrap=True)


def _suda_record(found: Suda) -> dict[str, Any]:
    return {
        "rows_with_score": int((found.scores > 0).sum()),
        "most_columns": found.most,
        "minimal_sets": {str(size): count for size, count in found.msus.items()},
        "column_shares": found.column_shares,
        "dis": found.dis,
        "largest_dis_suda": None if found.dis_suda is None else float(found.dis_suda.max(initial=0.0)),
    }
