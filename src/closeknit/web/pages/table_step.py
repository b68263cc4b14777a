"""The first step: the preview of the table, and corrections of its format."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, Request, UploadFile
from pydantic import BaseModel, Field
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from closeknit.core.errors import BadInput
from closeknit.io.sources import source_of
from closeknit.io.spreadsheets import Spreadsheet
from closeknit.release.release_paths import RECIPE
from closeknit.web.case_tasks import draft_of
from closeknit.web.desk.draft import (
    PEOPLE,
    confine_paths,
    draft_text,
    read_draft,
    recipe_of,
    with_population,
    without_page_keys,
)
from closeknit.web.desk.table_preview import csv_format, rename_file
from closeknit.web.pages.drafts import change, mark_table
from closeknit.web.pages.page_common import STEP_OF, UNFIT, StartedCase, Work, page, redirect_to, work_of
from closeknit.web.responses import templates
from closeknit.web.rest import read_small_text
from closeknit.web.routing import AllCases, AllTasks, LimitedRoute, OwnCase

router = APIRouter(route_class=LimitedRoute, include_in_schema=False)
Text = Annotated[str, Field(max_length=20)]


class FormatForm(BaseModel):
    """The format of a CSV file as the page sends it."""

    delimiter: Text = ""
    encoding: Text = ""
    decimal: Text = ""
    quote: Text = ""
    thousands: Text = ""


@router.get("/tables/{id}")
def table(request: Request, case: OwnCase, tasks: AllTasks) -> Response:
    """Show the preview of the table."""
    return _page(request, case, tasks)


def _page(request: Request, case: OwnCase, tasks: AllTasks, errors: dict[str, str] | None = None) -> Response:
    work = work_of(tasks, case, "look")
    options = work.task.options if work.task else {}
    csv = options.get("csv") or (work.found or {}).get("csv") or {}
    shown = {"csv": csv, "sheet": options.get("sheet") or csv, "workbook": Spreadsheet.serves(case.table.name)}
    return page(request, case, tasks, "table", UNFIT if errors else 200, work=work, **shown, errors=errors or {})


@router.post("/tables/{id}/format")
def set_format(request: Request, case: OwnCase, tasks: AllTasks, given: Annotated[FormatForm, Form()]) -> Response:
    """Read the file again in the given format."""
    words = {("delimiter", "tab"): "\t", ("thousands", "space"): " "}
    form = {key: words.get((key, value), value) for key, value in given.model_dump().items() if value}
    try:
        csv_format(form)
    except BadInput as bad:
        return _page(request, case, tasks, {"format": str(bad)})
    tasks.start(case, "look", csv=form or None)
    return redirect_to(case)


@router.post("/tables/{id}/sheet")
def set_sheet(
    request: Request,
    case: OwnCase,
    tasks: AllTasks,
    sheet: Annotated[str, Form(max_length=100)] = "",
    header: Annotated[str, Form(max_length=7)] = "",
) -> Response:
    """Read another sheet of a workbook, or take the names of the columns from another row."""
    given: dict[str, Any] = {"sheet": sheet} if sheet else {}
    if header and not (header.isdecimal() and int(header)):
        return _page(request, case, tasks, {"sheet": f"'{header}' is not a row; give its number, from 1"})
    given |= {"header": int(header)} if header else {}
    try:
        source_of(case.table, given)
    except BadInput as bad:
        return _page(request, case, tasks, {"sheet": str(rename_file(bad, case.table, case.name))})
    tasks.start(case, "look", sheet=given or None)
    return redirect_to(case)


@router.post("/tables/{id}/recipe")
def recipe(request: Request, case: StartedCase, cases: AllCases, tasks: AllTasks, recipe: UploadFile) -> Response:
    """Start from an uploaded recipe, restricted to this table."""
    try:
        given = read_draft(read_small_text(recipe, cases.settings, "recipe"))
        draft = confine_paths(given, case.table.name, case.people)
        recipe_of(draft, case.folder)
    except BadInput as bad:
        return _page(request, case, tasks, {"recipe": str(bad)})
    change(case, draft)
    return redirect_to(case, "roles")


@router.get("/tables/{id}/recipe.yaml")
def recipe_file(case: StartedCase) -> Response:
    """Download the current recipe."""
    headers = {"content-disposition": f'attachment; filename="{RECIPE}"'}
    draft = with_population(draft_of(case), PEOPLE)
    text = draft_text(without_page_keys({**draft, "data": rename_data(draft.get("data"), case.name)}))
    return PlainTextResponse(text, headers=headers)


def rename_data(data: Any, name: str) -> Any:
    """Return the data of a recipe with the owner's name of the table.

    >>> rename_data({"path": "table.csv", "delimiter": ";"}, "people.csv"), rename_data("table.csv", "people.csv")
    ({'path': 'people.csv', 'delimiter': ';'}, 'people.csv')
    """
    return {**data, "path": name} if isinstance(data, dict) else name


@router.post("/tables/{id}/guarantees/look")
def start_assessment(case: OwnCase, tasks: AllTasks) -> Response:
    """Measure the raw table, unless that is done already."""
    now = mark_table(case, draft_of(case))
    work = work_of(tasks, case, "reach", now)
    if not (work.fresh and (work.running or work.found)):
        tasks.start(case, "reach", of=now)
    return redirect_to(case, "guarantees")


@router.get("/tables/{id}/tasks/{number}")
async def progress(request: Request, case: OwnCase, tasks: AllTasks, number: int) -> Response:
    """Return the progress bar of a task; when it is over, the browser reloads the page."""
    task = tasks.status(case, number)
    if task is None or task.over:
        return HTMLResponse("", headers={"hx-refresh": "true"})
    return templates().TemplateResponse(request, "progress.html", {"case": case, "work": Work(task, None, True)})


@router.post("/tables/{id}/tasks/{number}/cancel")
def cancel(case: OwnCase, tasks: AllTasks, number: int) -> Response:
    """Cancel a task."""
    task = tasks.status(case, number)
    tasks.cancel(case, number)
    return redirect_to(case, *(STEP_OF.get(task.kind, ()) if task else ()))
