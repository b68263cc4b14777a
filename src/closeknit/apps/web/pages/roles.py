"""The second step: what each column is."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from closeknit.apps.web.cases import Case
from closeknit.apps.web.desk.kept import kept
from closeknit.apps.web.desk.roles import CHOICES, MEANS, missing_of, role_rows, with_missing, with_role
from closeknit.apps.web.pages.drafts import change, changes, undo
from closeknit.apps.web.pages.shown import UNFIT, begun, onward, page, work_of
from closeknit.apps.web.routing import AllTasks, LimitedRoute, Mine
from closeknit.apps.web.tasks import Tasks
from closeknit.apps.web.work import draft_of
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput

router = APIRouter(route_class=LimitedRoute, include_in_schema=False)


@router.get("/tables/{id}/roles")
def roles(request: Request, case: Mine, tasks: AllTasks) -> Response:
    """A line for each column: its role, why, and what is wrong with it."""
    begun(case)
    return _page(request, case, tasks)


def _page(request: Request, case: Case, tasks: Tasks, errors: dict[str, str] | None = None) -> Response:
    found, draft, table = work_of(tasks, case, "look").found or {}, draft_of(case), columns_of(case)
    looked = {column["name"]: column for column in found.get("looked", {}).get("columns", [])}
    marks = missing_of(draft)
    told: dict[str, Any] = {
        "rows": role_rows(table, draft, found.get("suggested", {})),
        "looked": looked,
        "choices": {role: MEANS[role] for role in CHOICES},
        "markers": list(dict.fromkeys([*marks, *(mark for column in looked.values() for mark in column["markers"])])),
        "missing": marks,
        "changes": changes(case),
        "errors": errors or {},
    }
    return page(request, case, tasks, "roles", UNFIT if errors else 200, **told)


@router.post("/tables/{id}/roles/{number}")
def chosen(request: Request, case: Mine, tasks: AllTasks, number: int, role: Annotated[str, Form(max_length=40)]) -> Response:
    """Another role for a column."""
    begun(case)
    name = column_name(columns_of(case), number)
    found = work_of(tasks, case, "look").found or {}
    usual = found.get("suggested", {}).get(name, {}).get("kind", "flat")
    try:
        change(case, with_role(draft_of(case), name, role, usual))
    except BadInput as bad:
        return _page(request, case, tasks, {name: str(bad)})
    return onward(case, "roles")


@router.post("/tables/{id}/missing")
def missing(case: Mine, marker: Annotated[list[str] | None, Form()] = None,
            another: Annotated[str, Form(max_length=40)] = "") -> Response:  # fmt: skip
    """The signs that stand for no value."""
    begun(case)
    change(case, with_missing(draft_of(case), [*(marker or []), another.strip()]))
    return onward(case, "roles")


@router.post("/tables/{id}/undo")
def back(case: Mine, to: Annotated[int | None, Form()] = None) -> Response:
    """Take the last change back."""
    begun(case)
    undo(case)
    return onward(case, "roles") if to is None else onward(case, "columns", to)


def columns_of(case: Case) -> Columns:
    """The columns of the table, as the look at it kept them."""
    try:
        return kept(case.folder / "columns")
    except FileNotFoundError:
        raise BadInput(
            "the table is not looked at yet, or just again", right="wait a moment, or begin at its first step"
        ) from None


def column_name(table: Columns, number: int) -> str:
    """The name of the column at a place: a name itself may have any sign in it, and stands in no address."""
    names = list(table)
    if not 0 <= number < len(names):
        raise BadInput(f"there is no column number {number}", right="choose one of the table")
    return names[number]
