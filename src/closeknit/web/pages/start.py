"""The first page: the upload of a table, and the list of uploaded tables."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request, UploadFile
from starlette.responses import RedirectResponse, Response

from closeknit.core.duration_texts import UNITS
from closeknit.core.errors import BadInput
from closeknit.io.database import Database
from closeknit.io.files import write_parquet
from closeknit.web.cases import Case, Cases, clean_name
from closeknit.web.pages.page_common import STEP_OF, UNFIT, WORKS, address, redirect_to
from closeknit.web.responses import templates
from closeknit.web.routing import AllCases, AllTasks, LimitedRoute, OwnCase, Owner
from closeknit.web.tasks import Tasks

router = APIRouter(route_class=LimitedRoute, include_in_schema=False)


@dataclass(frozen=True)
class Line:
    """A table of the list: its state, and the page where the user continues."""

    case: Case
    state: str
    address: str
    since: str


@router.get("/")
def start(request: Request, owner: Owner, cases: AllCases, tasks: AllTasks) -> Response:
    """Show all tables of a user."""
    return _page(request, owner, cases, tasks)


def _page(request: Request, owner: str, cases: Cases, tasks: Tasks, error: str | None = None, **database: str) -> Response:
    limit = cases.settings.body // (1024 * 1024)
    shown: dict[str, Any] = {"lines": [_line(case, tasks) for case in cases.list_owned(owner)], "error": error, "limit": limit}
    shown |= {"databases": cases.settings.databases, "refused": database.get("refused"), "given": database}
    return templates().TemplateResponse(request, "start.html", shown, UNFIT if error or database else 200)


@router.post("/tables")
def upload_table(request: Request, owner: Owner, cases: AllCases, tasks: AllTasks, table: UploadFile) -> Response:
    """Take an upload and start reading it."""
    if not table.filename:
        return _page(request, owner, cases, tasks, "no file was chosen; choose a table first")
    try:
        case = cases.new(owner, table.filename, table.file)
    except BadInput as bad:
        return _page(request, owner, cases, tasks, str(bad))
    tasks.start_first(case, "look")
    if "hx-request" in request.headers:  # the browser loads the page itself, so that its address is correct
        return Response(status_code=200, headers={"hx-redirect": address(case)})
    return redirect_to(case)


@router.post("/tables/database")
def read_database(
    request: Request,
    owner: Owner,
    cases: AllCases,
    tasks: AllTasks,
    url: Annotated[str, Form(max_length=2000)] = "",
    table: Annotated[str, Form(max_length=500)] = "",
    query: Annotated[str, Form(max_length=20_000)] = "",
) -> Response:
    """Copy a table of a database; on a server only from the addresses that its operator allows."""
    allowed = cases.settings.databases
    if allowed is not None and url not in allowed:  # anything else would let users reach the network of the server
        return _page(request, owner, cases, tasks, "this database is not among those that the operator allows")
    try:
        if not Database.serves(url):
            raise BadInput("this is not the address of a database", right="write one such as postgresql://user@host/name")
        columns = Database(url, table or None, query or None).read(most=cases.settings.rows)
        if len(columns) > cases.settings.columns:
            raise BadInput(f"the table has {len(columns):,} columns", right=f"choose at most {cases.settings.columns:,}")
        case = cases.new(owner, f"{clean_name(table) if table else 'query'}.parquet", None)
    except BadInput as bad:
        return _page(request, owner, cases, tasks, refused=str(bad), url=_without_password(url), table=table, query=query)
    write_parquet(columns, case.table)
    tasks.start_first(case, "look")
    return redirect_to(case)


def _without_password(url: str) -> str:
    try:
        return Database(url).url
    except BadInput:  # it cannot be read, so it is not known where the password is
        return ""


@router.post("/tables/built-in")
def start_example(owner: Owner, cases: AllCases, tasks: AllTasks) -> Response:
    """Start with the generated hospital table."""
    case = cases.new(owner, "hospital.csv", None)
    tasks.start_first(case, "look", builtin=True)
    return redirect_to(case)


@router.post("/tables/{id}/remove")
def remove_table(case: OwnCase, tasks: AllTasks) -> Response:
    """Stop the tasks of a table and delete its data."""
    tasks.remove(case)
    return RedirectResponse("/", 303)


def _line(case: Case, tasks: Tasks) -> Line:
    last = next((task for task in reversed(tasks.history(case)) if task.kind in (*WORKS, "audit")), None)
    if case.gone is not None:
        return Line(case, case.gone, address(case), ago(case.made))
    if last is not None and not last.over:
        return Line(case, f"{WORKS.get(last.kind, last.kind)} …", address(case, *STEP_OF.get(last.kind, ())), ago(case.made))
    if case.finished:
        return Line(case, "released", address(case, "release"), ago(case.made))
    if last is not None and last.sentence:
        return Line(case, last.sentence, address(case), ago(case.made))
    return Line(case, "not finished", address(case, "roles") if case.draft.is_file() else address(case), ago(case.made))


def ago(when: float) -> str:
    """Return how long ago a time was.

    >>> ago(time.time() - 7000)
    '1 hour ago'
    """
    passed = int(time.time() - when)
    for name, seconds in reversed(UNITS.items()):
        if passed >= seconds > 1:
            count = passed // seconds
            return f"{count} {name}{'s' if count > 1 else ''} ago"
    return "just now"
