"""The command line: a thin layer over `api`. The commands import heavy modules themselves, so that help prints at once."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from enum import StrEnum
from io import TextIOWrapper
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from closeknit import __version__
from closeknit.cli.apply import apply
from closeknit.cli.attack import attack
from closeknit.cli.audit import audit
from closeknit.cli.bound import bound_loss
from closeknit.cli.command_errors import exit_now, handle_errors, print_stderr
from closeknit.cli.compare import compare
from closeknit.cli.csv_options import NO_CSV, CsvOptions, describe_format
from closeknit.cli.database_options import Query, Table, data_of, hide_passwords, target_of
from closeknit.cli.dossier import dossier
from closeknit.cli.frontier import frontier
from closeknit.cli.options import (
    Catalog,
    Engine,
    Force,
    HeaderRow,
    Json,
    Labels,
    Master,
    Sheet,
    Version,
    data_keys,
    describe_object_folder,
    expand_groups,
    file_of_output,
    free_file,
    free_folder,
    free_object_folder,
    print_json,
    print_utf8,
    read_recipe,
    shorten_path,
)
from closeknit.cli.presets import presets
from closeknit.cli.report import report
from closeknit.cli.risk import risk
from closeknit.cli.serve import serve, ui
from closeknit.cli.sign import keys, sign
from closeknit.cli.stream import stream

if TYPE_CHECKING:
    from closeknit.release import Release

app = typer.Typer(
    name="closeknit",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


class FileFormat(StrEnum):
    """How a release is saved."""

    csv = "csv"
    parquet = "parquet"
    xlsx = "xlsx"
    dta = "dta"
    sav = "sav"
    xpt = "xpt"


BEFORE_DEMO = """\
A generated hospital table of {rows:,} fictitious patients. Names are dropped; age, sex, zip, job and
admission are generalized; disease, stay and charge are published as they are.
Requested: k = 6, and t = 0.2 on disease.
"""


def main() -> None:
    """Entry point of the command `closeknit`."""
    if isinstance(sys.stdout, TextIOWrapper):  # a name that the terminal cannot encode must not stop a command
        sys.stdout.reconfigure(errors="replace")
    hide_passwords(sys.argv)
    try:
        app(prog_name="closeknit")
    except SystemExit as end:
        exit_now(end.code)


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"closeknit {__version__}")
        raise typer.Exit()


@app.callback()
def closeknit(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Publish tables about people under privacy guarantees that anyone can verify.

    \b
    closeknit demo                                   run end to end on a generated table
    closeknit inspect patients.csv > recipe.yaml     guess the role and kind of each column; then edit the recipe
    closeknit anonymize recipe.yaml -o out/          publish a release with its certificate
    closeknit audit out/release.csv                  verify a release, your own or anyone's
    closeknit apply out.private/recoding.json new    write later rows with the same labels
    closeknit attack out/release.csv                 measure its disclosure risk
    closeknit risk patients.csv --recipe recipe.yaml measure the re-identification risk of a table or release
    closeknit report out/                            render its report, or the private one
    closeknit compare recipe.yaml                    find the method with the least loss under these guarantees
    closeknit frontier recipe.yaml                   see what a stricter or looser guarantee would cost
    closeknit bound recipe.yaml                      see what no release loses less than
    closeknit stream recipe.yaml < in > out          anonymize a stream of rows
    closeknit dossier out/ --for ema -o dossier/     answer the questions of a regulator with numbers
    closeknit sign out/ --key key                    sign a release; recipients verify it with audit --key key.pub
    closeknit ui                                     do all this in the browser
    closeknit serve --token-file tokens ...          serve the same pages and a REST service to a team

    Exit status: 0 done; 1 a guarantee cannot be met or is not met; 2 bad input or usage; 3 (audit) met as far as it can be
    checked: attested guarantees remain.
    """


@app.command(short_help="Run end to end on a generated table.")
def demo(
    rows: Annotated[int, typer.Option(min=1, help="Patients to generate.")] = 10_000,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Save the release in this folder.")] = None,
    table: Annotated[
        Path | None, typer.Option(help="Save the generated table as this CSV file, to try the other commands on.")
    ] = None,
    force: Force = False,
) -> None:
    """Run end to end on a generated hospital table, in seconds: k = 6, and t = 0.2 on disease.

    \b
    closeknit demo
    closeknit demo --rows 2000 -o hospital/          saves hospital/ and hospital.private/
    closeknit demo --table patients.csv              saves the raw table, to try inspect and anonymize on
    """
    with handle_errors():
        from closeknit.api import anonymize as anonymize_table
        from closeknit.cli import show
        from closeknit.cli.progress import ProgressBar
        from closeknit.datasets import hospital, hospital_schema
        from closeknit.io.files import write_csv
        from closeknit.models import KAnonymity, TCloseness

        folder = free_folder(output, force)
        if table is not None:
            free_file(table, force)
        patients, schema = hospital(rows), hospital_schema()
        with ProgressBar() as bar:
            release = anonymize_table(patients, schema, [KAnonymity(6), TCloseness("disease", 0.2)], progress=bar)
        if table is not None:
            write_csv(patients, table)
            release.name_data(table)
        out = show.console()
        out.print(BEFORE_DEMO.format(rows=rows))
        show.show_sample(out, patients, schema, release)
        out.print("\nCertificate, computed from the written cells:")
        out.print(f"{release.certificate}\n", markup=False)
        show.show_loss(out, release)
        _print_duplicates(release)
        if folder is not None:
            release.save(folder, force=force)
        out.print(_after_demo(folder, table), markup=False)


def _print_duplicates(release: Release) -> None:
    """Print the number on standard error, away from output that may be published."""
    if release.duplicates:
        what = f"{release.duplicates:,} input rows repeat another row exactly, in every column that is used"
        print_stderr(f"{what}; only this line and the private report say so")


def _after_demo(folder: Path | None, table: Path | None) -> str:
    steps = []
    if folder is None:
        steps.append(("closeknit demo -o hospital/", "save the release and its certificate"))
    else:
        steps.append((f"closeknit audit {shorten_path(folder)}/release.csv", "verify it as a recipient would"))
        steps.append((f"{shorten_path(folder)}/report.html", "open it in a browser: guarantees, information loss, risks"))
    if table is None:
        steps.append(("closeknit demo --table patients.csv", "save the raw table, for the next two:"))
    raw = shorten_path(table) if table else "patients.csv"
    steps.append((f"closeknit inspect {raw} > recipe.yaml", "guess roles and kinds; then edit the recipe"))
    steps.append(("closeknit anonymize recipe.yaml -o out/", "another k or t, other columns, your own table"))
    width = max(len(command) for command, _ in steps)
    return "\n".join(["", "What to try next:", *(f"  {command:{width}}  {why}" for command, why in steps)])


@app.command(short_help="Guess role and kind of each column; print a recipe.")
@expand_groups
def inspect(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file, or the address of a database.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the recipe to this file instead of standard output.")
    ] = None,
    force: Force = False,
    table: Table = None,
    query: Query = None,
    written: CsvOptions = NO_CSV,
    sheet: Sheet = None,
    header_row: HeaderRow = None,
    labels: Labels = None,
    catalog: Catalog = None,
    version: Version = None,
    as_json: Json = False,
) -> None:
    """Guess role, kind and hierarchy of each column, and print a recipe that you edit by hand.

    The recipe goes to standard output, remarks go to standard error. Every line gives its reason, and says "not sure" where you
    should look first. No column is ever suggested as unprotected. The format of a CSV file is detected; options override it.

    \b
    closeknit inspect patients.csv > recipe.yaml
    closeknit inspect data/export.txt --decimal , --encoding latin-1 -o recipes/recipe.yaml
    closeknit inspect patients.parquet --json
    closeknit inspect patients.xlsx --sheet Patients --header-row 3 -o recipe.yaml
    closeknit inspect 'postgresql://ann:${CLINIC_PASSWORD}@host/clinic' --table public.patients
    """
    with handle_errors():
        from closeknit.api import suggest
        from closeknit.io.folders import write_whole

        if output is not None:
            free_file(output, force)
        place = {"table": table, "query": query, "sheet": sheet, "header": header_row, "labels": labels}
        source = data_of(file, **place, catalog=catalog, version=version)
        suggestion = suggest(source, written.format)
        if as_json:
            guesses = {name: vars(guess) for name, guess in suggestion.reasons.items()}
            print_json({"columns": guesses, "missing": suggestion.schema.missing, "csv": dict(suggestion.csv)})
            return
        written_to = file_of_output(output)
        name = quote("recipe.yaml" if written_to is None else shorten_path(written_to))
        recipe = suggestion.to_recipe(*data_keys(source, suggestion.csv, written_to and written_to.parent), name)
        if output is None:
            print_utf8(recipe)
        else:
            write_whole(output, recipe.encode(), 0o600)
        if suggestion.csv:
            print_stderr(f"the file is written with {describe_format(suggestion.csv)}")
        unsure = ", ".join(suggestion.unsure) or "none"
        print_stderr(f"columns: {len(suggestion.reasons)}, rows: {suggestion.rows:,}, not sure about: {unsure}")
        if not suggestion.schema.sensitive:
            print_stderr("no column looks sensitive: move the sensitive ones under 'sensitive' and add a guarantee for each")
        print_stderr(f"next: edit the recipe, then run 'closeknit anonymize {name} -o out/'")


@app.command(short_help="Publish a release that meets a recipe's guarantees.")
def anonymize(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE", help="A recipe, such as 'closeknit inspect' prints.")],
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", help="Folder of the release; FOLDER.private gets the private files.", metavar="FOLDER"),
    ] = None,
    to: Annotated[str | None, typer.Option(help="Write to this database instead of a folder.", metavar="URL")] = None,
    table: Annotated[str | None, typer.Option(help="With --to: the new table, such as public.release.", metavar="NAME")] = None,
    private_schema: Annotated[
        str | None, typer.Option(help="With --to: schema for recipe and classes; default: SCHEMA_private.", metavar="NAME")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="With --to: replace an earlier release in this table.")] = False,
    format: Annotated[FileFormat | None, typer.Option(help="File format of the release; default: as in the recipe.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Repeat a release; default: as in the recipe, or random.")] = None,
    engine: Engine = None,
    master: Master = None,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Whether each folder gets a report.html.")] = True,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Publish a release that meets every guarantee of a recipe, or say why that is impossible and write nothing.

    OUT gets the public files: the release, its certificate and a report made from these two. OUT.private gets the private
    files, which you do not share: the recipe with its seed, the class of each row, and a report that uses the original table.

    \b
    closeknit anonymize recipe.yaml -o out/
    closeknit anonymize recipe.yaml -o out/ --format parquet --force
    closeknit anonymize recipe.yaml -o out/ --json | jq .loss.a
    closeknit anonymize recipe.yaml -o s3://bucket/out       out.private/ stays here
    closeknit anonymize recipe.yaml -o out/ --engine spark --master spark://host:7077
    closeknit anonymize recipe.yaml --to '${CLINIC_URL}' --table public.release --replace
    """
    if (output is None) == (to is None):
        raise typer.BadParameter("name a folder with -o, or a database with --to")
    if to is None and (table or private_schema or replace):
        raise typer.BadParameter("--table, --private-schema and --replace belong to --to")
    from closeknit.report.drawing import draw_ahead

    with handle_errors(), draw_ahead() if report and engine != "spark" else nullcontext():
        from closeknit.api import run
        from closeknit.cli.progress import ProgressBar
        from closeknit.io.object_folders import is_object_address
        from closeknit.release.release_paths import CERTIFICATE, CLASSES, PAGE, RECIPE

        target = None if to is None else target_of(to, replace, table=table, private_schema=private_schema)
        folder = free_object_folder(output, force) if is_object_address(output or "") else free_folder(output, force)
        requested = read_recipe(recipe, seed)
        with ProgressBar() as bar:
            release = run(requested, progress=bar, engine=engine, master=master)
        if folder is None:
            _write_to(release, target, replace, as_json)
            return
        release.save(folder, format=format.value if format else requested.format, force=force, report=report)
        _print_duplicates(release)
        if isinstance(folder, str):
            _print_written(release, describe_object_folder(folder), as_json)
            return
        certificate = (folder / CERTIFICATE).read_text(encoding="utf-8")
        if as_json:
            print_utf8(certificate)
            return
        name, (file, *parts) = shorten_path(folder), [listed["name"] for listed in json.loads(certificate)["files"]]
        print_utf8(f"{release.certificate}\n\n")
        page = f", {PAGE}" if report and engine != "spark" else ""  # rows on Spark are not collected for a report
        typer.echo(f"{name}/          {', '.join([file, *parts])}, {CERTIFICATE}{page}: public, may be shared")
        classes = "" if engine == "spark" else f", {CLASSES}"
        typer.echo(f"{name}.private/  {RECIPE}{classes}{page}: private, do not share")
        typer.echo(f"next: closeknit audit {name}/{file}{' --engine spark' if engine == 'spark' else ''}")
        if report and engine == "spark":
            typer.echo(f"      closeknit report {name}/   renders its report, on a machine that holds the release")


def _write_to(release: Release, target: Any, replace: bool, as_json: bool) -> None:
    """Write a release to a source, and print what is where."""
    release.write_to(target, replace)
    _print_duplicates(release)
    _print_written(release, target.describe_written(), as_json)


def _print_written(release: Release, lines: Sequence[str], as_json: bool) -> None:
    """Print the certificate, and what is where."""
    if as_json:
        print_utf8(release.certificate.to_json())
        return
    print_utf8(f"{release.certificate}\n\n")
    for line in lines:
        typer.echo(line)


app.command(short_help="Recompute the guarantees of a release.")(audit)


app.command(short_help="Compare methods under a recipe's guarantees.")(compare)
app.command(short_help="Write later rows with the labels of an earlier release.")(apply)
app.command(short_help="Measure the disclosure risk of a release.")(attack)
app.command(short_help="See what a stricter or looser guarantee would cost.")(frontier)
app.command("bound", short_help="Compute what no release loses less than.")(bound_loss)
app.command(short_help="Render the report of a saved release.")(report)
app.command(short_help="List presets, or show one.")(presets)
app.command(short_help="Write what a reviewer of a release reads.")(dossier)
app.command(short_help="Sign a release.")(sign)
app.add_typer(keys, name="keys")
app.command(short_help="Measure the re-identification risk of a table.")(risk)
app.command(short_help="Anonymize a stream of rows.")(stream)
app.command(short_help="Open closeknit in the browser.")(ui)
app.command(short_help="Serve pages and REST service to a team.")(serve)
