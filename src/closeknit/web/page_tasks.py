"""The tasks of a worker for the pages: short computations on the table, which stays in memory between them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from closeknit.api.dossiers import dossier, save_dossier
from closeknit.api.suggestion import suggest
from closeknit.core.certificate import Certificate
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.core.method import Progress
from closeknit.io.files import read_written, write_parquet
from closeknit.io.source import Source
from closeknit.io.sources import source_of
from closeknit.io.spreadsheets import list_sheets
from closeknit.metrics.learning import release_accuracy
from closeknit.models.population import check_people, count_all, list_people
from closeknit.release.release_paths import RECIPE
from closeknit.web.case_tasks import Kind, TaskOptions, draft_of, find_release, load_recipe, save_draft, table_at
from closeknit.web.cases import Case
from closeknit.web.desk.choices import compare_methods, vary_guarantee
from closeknit.web.desk.column_files import save_columns
from closeknit.web.desk.draft import confine_paths, draft_text, read_draft, start_draft
from closeknit.web.desk.guarantees import assess_table
from closeknit.web.desk.protection import carry_over
from closeknit.web.desk.roles import list_suggestions
from closeknit.web.desk.table_preview import Limits, csv_format, open_table, preview_table, write_example

DOSSIER = "dossier.private"  # the folder of the newest dossier; its owner sees it whatever its edition is


def inspect_table(case: Case, requested: TaskOptions, limits: Limits, progress: Progress) -> Any:
    """Preview the table, guess roles and kinds, and save the first draft; `builtin` generates the table first."""
    progress("reading", 0.1)
    if requested.get("builtin"):
        save_draft(case, write_example(case.table))
    data = source_of(case.table, requested.get("sheet"))
    table, form = open_table(data, case.name, limits, csv_format(requested.get("csv")))
    table_at.cache_clear()
    save_columns(table, case.folder / "columns")
    progress("guessing", 0.5)
    guess = suggest(table)
    if not requested.get("builtin"):
        first = start_draft(guess, case.table.name, form)
        save_draft(case, carry_over(draft_of(case), first, list(table)) if case.draft.is_file() else first)
    return {
        "looked": asdict(preview_table(table)),
        "suggested": list_suggestions(table, guess),
        "csv": form,
        "sheets": list_sheets(data),
    }


def run_assessment(case: Case, requested: TaskOptions, limits: Limits, progress: Progress) -> Any:
    """Measure the levels of the raw table, for every guarantee that could be requested."""
    progress("counting", 0.2)
    recipe, table = load_recipe(case, requested, limits)
    return asdict(assess_table(table, recipe.schema, None if case.people is None else count_all(str(case.people))))


def read_population(case: Case, requested: TaskOptions, limits: Limits, progress: Progress) -> Any:
    """Read an uploaded population and keep its quasi-identifiers and identifiers; it must list no one twice."""
    progress("reading", 0.1)
    upload = case.folder / str(requested["file"])
    try:
        people, _ = open_table(upload, str(requested["name"]), limits)
    finally:
        upload.unlink(missing_ok=True)
    recipe, table = load_recipe(case, {"recipe": {"models": []}}, limits)
    schema = recipe.schema
    list_people(check_people(people), schema, list(schema.quasi))
    wanted = [name for name in (*schema.quasi, *schema.unique, *filter(None, [schema.person])) if name in people]
    if people.rows < table.rows and schema.person is None:
        what = f"the population has {people.rows:,} people, and the table {table.rows:,} rows"
        raise BadInput(what, right="give everyone from whom the table is drawn")
    number = 1 + max((int(place.stem.partition("-")[2]) for place in case.folder.glob("people-*.parquet")), default=0)
    write_parquet(people.select(wanted), case.folder / f"people-{number}.parquet")
    return {"name": requested["name"], "people": people.rows}


def write_dossier(case: Case, requested: TaskOptions, limits: Limits, progress: Progress) -> Any:
    """Write the dossier of the release for a framework, from the public files alone or with the original."""
    if not case.finished:
        raise BadInput("there is no release yet", right="anonymize the table first")
    progress("computing", 0.1)
    framework = str(requested["framework"])
    if requested["edition"] == "private":
        with TemporaryDirectory(prefix=".dossier-", dir=case.folder) as place:
            for file in case.private.glob("*.csv"):
                Path(place, file.name).symlink_to(file.resolve())
            saved = read_draft((case.private / RECIPE).read_text(encoding="utf-8"))
            recipe = Path(place, RECIPE)
            recipe.write_text(draft_text(confine_paths(saved, str(case.table.resolve()), case.people)), encoding="utf-8")
            people = None
            if case.people is not None:
                people = Path(place, "population.parquet")  # the name that the dossier states
                people.symlink_to(case.people)
            found = dossier(case.out, framework, recipe=recipe, population=people)
    else:
        found = dossier(case.out, framework)
    save_dossier(found, case.folder / DOSSIER, force=True)
    return {"framework": found.framework, "title": found.title, "edition": found.edition, "open": found.open_boxes}


def choices(case: Case, requested: TaskOptions, limits: Limits, progress: Progress) -> Any:
    """Compare the methods on a sample of `rows`, or on all rows."""
    return asdict(compare_methods(draft_of(case), case.folder, **_sample_options(case, requested, limits), progress=progress))


def frontier(case: Case, requested: TaskOptions, limits: Limits, progress: Progress) -> Any:
    """Measure what stricter or looser guarantees would cost, on a sample of `rows`, or on all."""
    options = {**_sample_options(case, requested, limits), "vary": requested.get("vary"), "progress": progress}
    return asdict(vary_guarantee(draft_of(case), case.folder, **options))


@dataclass(frozen=True)
class SavedRelease:
    """The written cells of a saved release, and its certificate."""

    columns: Columns
    certificate: Certificate


def learn_target(case: Case, requested: TaskOptions, limits: Limits, progress: Progress) -> Any:
    """Train a classifier on the release for a chosen column, and test it on the original."""
    if not case.finished:
        raise BadInput("there is no release to learn from yet", right="anonymize the table first")
    progress("training", 0.2)
    recipe, file, certificate = find_release(case)
    data = recipe.data if isinstance(recipe.data, Source) else case.table
    original = table_at(data, case.name, limits, recipe.csv)
    release = SavedRelease(read_written(file), Certificate.from_json(certificate.read_text(encoding="utf-8")))
    found = release_accuracy(release, original, recipe.schema, str(requested.get("target")))
    lines = (
        ("the release", found.release),
        ("the original", found.original),
        ("no row: the most frequent value", found.majority),
    )
    scores = [[name, each.accuracy, each.balanced] for name, each in lines]
    return {"target": found.target, "sentence": str(found), "scores": scores}


def _sample_options(case: Case, requested: TaskOptions, limits: Limits) -> dict[str, Any]:
    _, table = load_recipe(case, requested, limits)
    return {"columns": table, "rows": requested.get("rows"), "names": requested.get("methods")}


PAGE_KINDS: dict[str, Kind] = {
    "look": inspect_table,
    "reach": run_assessment,
    "choices": choices,
    "frontier": frontier,
    "population": read_population,
    "dossier": write_dossier,
    "learn": learn_target,
}
