"""What a worker does for the pages: small looks at the table, which it keeps in memory from one to the next."""

from __future__ import annotations

from typing import Any

from closeknit.apps.web.cases import Case
from closeknit.apps.web.desk.choices import compared, varied
from closeknit.apps.web.desk.draft import begun
from closeknit.apps.web.desk.kept import keep
from closeknit.apps.web.desk.promises import reach
from closeknit.apps.web.desk.protection import carried
from closeknit.apps.web.desk.roles import suggested
from closeknit.apps.web.desk.table import Limits, built_in, csv_format, look, open_table
from closeknit.apps.web.work import Asked, Kind, asked_recipe, draft_of, keep_draft, table_at
from closeknit.core.method import Progress
from closeknit.suggestion import suggest


def looked(case: Case, asked: Asked, limits: Limits, tell: Progress) -> Any:
    """First rows, columns and guesses; the first draft is made of them. `builtin` makes the table first."""
    tell("reading", 0.1)
    if asked.get("builtin"):
        keep_draft(case, built_in(case.table))
    table, form = open_table(case.table, case.name, limits, csv_format(asked.get("csv")))
    table_at.cache_clear()
    keep(table, case.folder / "columns")
    tell("guessing", 0.5)
    guess = suggest(table)
    if not asked.get("builtin"):
        first = begun(guess, case.table.name, form)
        keep_draft(case, carried(draft_of(case), first, list(table)) if case.draft.is_file() else first)
    return {"looked": look(table).record(), "suggested": suggested(table, guess), "csv": form}


def reached(case: Case, asked: Asked, limits: Limits, tell: Progress) -> Any:
    """What the raw table reaches today, and every promise that could be asked of it."""
    tell("counting", 0.2)
    recipe, table = asked_recipe(case, asked, limits)
    return reach(table, recipe.schema).record()


def choices(case: Case, asked: Asked, limits: Limits, tell: Progress) -> Any:
    """What each method makes of a sample of `rows`, or of all rows."""
    _, table = asked_recipe(case, asked, limits)
    draft, rows, names = draft_of(case), asked.get("rows"), asked.get("methods")
    return compared(draft, case.folder, columns=table, rows=rows, names=names, progress=tell).record()


def frontier(case: Case, asked: Asked, limits: Limits, tell: Progress) -> Any:
    """What stricter or looser promises would cost, on a sample of `rows`, or on all."""
    _, table = asked_recipe(case, asked, limits)
    draft, rows, names = draft_of(case), asked.get("rows"), asked.get("methods")
    return varied(draft, case.folder, columns=table, rows=rows, names=names, vary=asked.get("vary"), progress=tell).record()


AT_DESK: dict[str, Kind] = {
    "look": looked,
    "reach": reached,
    "choices": choices,
    "frontier": frontier,
}
