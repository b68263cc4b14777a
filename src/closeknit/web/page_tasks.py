"""The tasks of a worker for the pages: short computations on the table, which stays in memory between them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from closeknit.api.suggestion import suggest
from closeknit.core.method import Progress
from closeknit.web.case_tasks import Kind, TaskOptions, draft_of, load_recipe, save_draft, table_at
from closeknit.web.cases import Case
from closeknit.web.desk.choices import compare_methods, vary_guarantee
from closeknit.web.desk.column_files import save_columns
from closeknit.web.desk.draft import start_draft
from closeknit.web.desk.guarantees import assess_table
from closeknit.web.desk.protection import carry_over
from closeknit.web.desk.roles import list_suggestions
from closeknit.web.desk.table_preview import Limits, csv_format, open_table, preview_table, write_example


def inspect_table(case: Case, requested: TaskOptions, limits: Limits, progress: Progress) -> Any:
    """Preview the table, guess roles and kinds, and save the first draft; `builtin` generates the table first."""
    progress("reading", 0.1)
    if requested.get("builtin"):
        save_draft(case, write_example(case.table))
    table, form = open_table(case.table, case.name, limits, csv_format(requested.get("csv")))
    table_at.cache_clear()
    save_columns(table, case.folder / "columns")
    progress("guessing", 0.5)
    guess = suggest(table)
    if not requested.get("builtin"):
        first = start_draft(guess, case.table.name, form)
        save_draft(case, carry_over(draft_of(case), first, list(table)) if case.draft.is_file() else first)
    return {"looked": asdict(preview_table(table)), "suggested": list_suggestions(table, guess), "csv": form}


def run_assessment(case: Case, requested: TaskOptions, limits: Limits, progress: Progress) -> Any:
    """Measure the levels of the raw table, for every guarantee that could be requested."""
    progress("counting", 0.2)
    recipe, table = load_recipe(case, requested, limits)
    return asdict(assess_table(table, recipe.schema))


def choices(case: Case, requested: TaskOptions, limits: Limits, progress: Progress) -> Any:
    """Compare the methods on a sample of `rows`, or on all rows."""
    return asdict(compare_methods(draft_of(case), case.folder, **_sample_options(case, requested, limits), progress=progress))


def frontier(case: Case, requested: TaskOptions, limits: Limits, progress: Progress) -> Any:
    """Measure what stricter or looser guarantees would cost, on a sample of `rows`, or on all."""
    options = {**_sample_options(case, requested, limits), "vary": requested.get("vary"), "progress": progress}
    return asdict(vary_guarantee(draft_of(case), case.folder, **options))


def _sample_options(case: Case, requested: TaskOptions, limits: Limits) -> dict[str, Any]:
    _, table = load_recipe(case, requested, limits)
    return {"columns": table, "rows": requested.get("rows"), "names": requested.get("methods")}


PAGE_KINDS: dict[str, Kind] = {"look": inspect_table, "reach": run_assessment, "choices": choices, "frontier": frontier}
