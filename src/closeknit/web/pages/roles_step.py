"""The second step: the role of each column."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.risks.attackers import least_class_size
from closeknit.risks.risk_record import THRESHOLDS
from closeknit.web.case_tasks import draft_of
from closeknit.web.cases import Case
from closeknit.web.desk.column_files import load_columns
from closeknit.web.desk.protection import guarantees_of, set_aside
from closeknit.web.desk.role_risk import measure_roles
from closeknit.web.desk.roles import (
    BOTH,
    CHOICES,
    MEANS,
    missing_of,
    role_of,
    role_rows,
    sensitive_of,
    with_missing,
    with_role,
    with_rows_as_persons,
)
from closeknit.web.pages.drafts import change, changes, undo
from closeknit.web.pages.page_common import UNFIT, StartedCase, page, redirect_to, work_of
from closeknit.web.routing import AllTasks, LimitedRoute
from closeknit.web.tasks import Tasks

router = APIRouter(route_class=LimitedRoute, include_in_schema=False)
Role = Annotated[str, Form(max_length=40)]


@router.get("/tables/{id}/roles")
def roles(request: Request, case: StartedCase, tasks: AllTasks, filter: str = "") -> Response:
    """Show each column whose name contains the filter: its role, the reason, and what is wrong with it."""
    return _page(request, case, tasks, filter=filter)


def _page(request: Request, case: Case, tasks: Tasks, errors: dict[str, str] | None = None, filter: str = "") -> Response:
    found, draft, table = work_of(tasks, case, "look").found or {}, draft_of(case), columns_of(case)
    looked = {column["name"]: column for column in found.get("looked", {}).get("columns", [])}
    marks = missing_of(draft)
    schema = draft.get("schema") or {}
    shown: dict[str, Any] = {
        "rows": [row for row in role_rows(table, draft, found.get("suggested", {})) if filter.lower() in row.name.lower()],
        "numbers": {name: number for number, name in enumerate(table)},
        "filter": filter,
        "person": schema.get("person"),
        "rows_are_persons": bool(schema.get("rows_are_persons")),
        "guarantees": {name: guarantees_of(draft, name) for name in sensitive_of(draft)},
        "aside": set_aside(draft),
        "quasi": any(role_of(draft, name) in ("quasi", BOTH) for name in table),
        "looked": looked,
        "choices": {role: MEANS[role] for role in CHOICES},
        "markers": list(dict.fromkeys([*marks, *(mark for column in looked.values() for mark in column["markers"])])),
        "missing": marks,
        "changes": changes(case),
        "errors": errors or {},
    }
    return page(request, case, tasks, "roles", UNFIT if errors else 200, **shown)


@router.get("/tables/{id}/risk")
def risk(request: Request, case: StartedCase, tasks: AllTasks) -> Response:
    """Show the risk of the raw table with the roles of the draft; the page of roles shows it after every change."""
    sizes = {threshold: least_class_size(threshold) for threshold in THRESHOLDS}
    try:
        return page(request, case, tasks, "risk", risk=measure_roles(columns_of(case), draft_of(case)), sizes=sizes)
    except BadInput as bad:
        return page(request, case, tasks, "risk", wrong=str(bad))


@router.post("/tables/{id}/roles")
def set_roles(
    request: Request,
    case: StartedCase,
    tasks: AllTasks,
    role: Role,
    column: Annotated[list[int] | None, Form()] = None,
    filter: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Set one role for all ticked columns."""
    try:
        if not column:
            raise BadInput("no column is ticked", right="tick those that get this role")
        if role == "person" and len(column) > 1:
            raise BadInput(f"{len(column)} columns are ticked", right="tick one: at most one column can be the person")
        _change_roles(case, tasks, column, role)
    except BadInput as bad:
        return _page(request, case, tasks, {"several": str(bad)}, filter)
    return redirect_to(case, "roles" + (f"?{urlencode({'filter': filter})}" if filter else ""))


def _change_roles(case: Case, tasks: Tasks, numbers: list[int], role: str) -> None:
    """Set the role of these columns, as one change."""
    table, draft = columns_of(case), draft_of(case)
    found = work_of(tasks, case, "look").found or {}
    for number in numbers:
        name = column_name(table, number)
        draft = with_role(draft, name, role, found.get("suggested", {}).get(name, {}).get("kind", "flat"))
    change(case, draft)


@router.post("/tables/{id}/roles/{number}")
def set_role(request: Request, case: StartedCase, tasks: AllTasks, number: int, role: Role) -> Response:
    """Set the role of a column."""
    name = column_name(columns_of(case), number)
    try:
        _change_roles(case, tasks, [number], role)
    except BadInput as bad:
        return _page(request, case, tasks, {name: str(bad)})
    return redirect_to(case, "roles")


@router.post("/tables/{id}/missing")
def missing(
    case: StartedCase, marker: Annotated[list[str] | None, Form()] = None, another: Annotated[str, Form(max_length=40)] = ""
) -> Response:
    """Set the missing-value codes."""
    change(case, with_missing(draft_of(case), [*(marker or []), another.strip()]))
    return redirect_to(case, "roles")


@router.post("/tables/{id}/persons")
def set_persons(case: StartedCase, rows_are_persons: Annotated[str, Form(max_length=10)] = "") -> Response:
    """Declare that every row is another person, or take that back."""
    change(case, with_rows_as_persons(draft_of(case), bool(rows_are_persons)))
    return redirect_to(case, "roles")


@router.post("/tables/{id}/undo")
def undo_change(case: StartedCase, to: Annotated[int | None, Form()] = None) -> Response:
    """Undo the last change."""
    undo(case)
    return redirect_to(case, "roles") if to is None else redirect_to(case, "columns", to)


def columns_of(case: Case) -> Columns:
    """Return the columns of the table, saved when it was read."""
    try:
        return load_columns(case.folder / "columns")
    except FileNotFoundError:
        raise BadInput("the table is not read yet", right="wait a moment, or start at its first step") from None


def column_name(table: Columns, number: int) -> str:
    """Return the name of a column by its number: names may contain any character and are not part of addresses."""
    names = list(table)
    if not 0 <= number < len(names):
        raise BadInput(f"there is no column number {number}", right="choose one of the table")
    return names[number]
