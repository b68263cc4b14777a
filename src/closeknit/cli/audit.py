"""`closeknit audit`: recompute every guarantee from the cells of a release."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from closeknit.cli.command_errors import handle_errors
from closeknit.cli.csv_options import NO_CSV, CsvOptions
from closeknit.cli.database_options import Table, data_of
from closeknit.cli.harbor import Reference, Zip3, audit_harbor
from closeknit.cli.options import Engine, HeaderRow, Json, Labels, Master, Sheet, Version, expand_groups

Population = Annotated[
    str | None,
    typer.Option(help="All people from whom the table is drawn: recompute guarantees that count them.", metavar="FILE"),
]


class AuditFormat(StrEnum):
    """How an audit is printed."""

    text = "text"
    json = "json"
    sarif = "sarif"
    junit = "junit"


@expand_groups
def audit(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Anyone's release: a file, a public folder, a database or lake; or several."),
    ],
    table: Table = None,
    certificate: Annotated[Path | None, typer.Option(help="Its certificate; default: the certificate.json next to it.")] = None,
    recipe: Annotated[Path | None, typer.Option(help="Check the schema and guarantees of this recipe instead.")] = None,
    safe_harbor: Annotated[
        bool, typer.Option("--safe-harbor", help="Look for what the HIPAA Safe Harbor rule asks to remove, in any table.")
    ] = False,
    reference: Reference = None,
    zip3: Zip3 = None,
    examples: Annotated[bool, typer.Option("--examples", help="With --safe-harbor: show values; do not share them.")] = False,
    key: Annotated[Path | None, typer.Option(help="The signer's public key: verify the signature.", metavar="FILE")] = None,
    population: Population = None,
    written: CsvOptions = NO_CSV,
    sheet: Sheet = None,
    header_row: HeaderRow = None,
    labels: Labels = None,
    version: Version = None,
    engine: Engine = None,
    master: Master = None,
    format: Annotated[AuditFormat, typer.Option(help="sarif for code scanning, junit for build servers.")] = AuditFormat.text,
    as_json: Json = False,
) -> None:
    """Recompute every guarantee from the cells of a release alone.

    Exit status: 0 all are recomputed and met; 1 one is not met, or the release differs from its certificate; 2 bad input;
    3 met as far as it can be checked: the others are attested by the data owner, or vacuous without a note. Of several
    releases the worst counts: 1 before 3.

    \b
    closeknit audit out/
    closeknit audit releases/*/ --format junit > audit.xml
    closeknit audit out/ --key key.pub
    closeknit audit out/ --population citizens.csv
    closeknit audit received.csv --certificate mailed/certificate.json
    closeknit audit made_elsewhere.csv --recipe recipe.yaml --json
    closeknit audit patients.csv --safe-harbor --reference 2024-12-31 --zip3 populations.csv
    closeknit audit release.xlsx                     its certificate is on its second sheet
    closeknit audit out/release.parquet --engine spark
    closeknit audit '${CLINIC_URL}' --table public.release
    """
    if recipe is not None and (certificate is not None or key is not None):
        raise typer.BadParameter("a recipe replaces the certificate: give --recipe without --certificate and --key")
    if safe_harbor:
        if len(files) > 1 or population is not None:
            raise typer.BadParameter("--safe-harbor looks at one table at a time, without a population")
        audit_harbor(files[0], reference, zip3, written.format, examples, as_json)
        return
    if reference is not None or zip3 is not None or examples:
        raise typer.BadParameter("--reference, --zip3 and --examples belong to --safe-harbor")
    with handle_errors():
        from closeknit.api import audit as audit_release
        from closeknit.api.recipe import Recipe
        from closeknit.cli.audit_output import name_releases, print_audits

        place = {"table": table, "sheet": sheet, "header": header_row, "labels": labels, "version": version}
        options: dict[str, Any] = {"engine": engine, "master": master, "population": population}
        options["csv"] = written.format
        if recipe is not None:
            requested = Recipe.read(recipe)
            options |= {"schema": requested.schema, "models": requested.models, "form": requested.form}
            options["escape_formulas"] = requested.escape_formulas
        else:
            options |= {"certificate": certificate, "key": key}
        releases = {name: data_of(release, **place) for name, release in name_releases(files).items()}
        found = {name: audit_release(release, **options) for name, release in releases.items()}
        status = print_audits(found, AuditFormat.json.value if as_json else format.value)
    if status:
        raise typer.Exit(status)
