"""The fifth step: the release with its certificate, loss and risks, and separate downloads of public and private files."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from closeknit.api.dossiers import FRAMEWORKS
from closeknit.release.release_paths import CERTIFICATE, PAGE
from closeknit.web.case_tasks import draft_of
from closeknit.web.cases import Case
from closeknit.web.desk.result import result
from closeknit.web.pages.drafts import mark
from closeknit.web.pages.methods_step import RELEASED
from closeknit.web.pages.page_common import page, redirect_to, work_of
from closeknit.web.rest import check_file, download, show_document
from closeknit.web.routing import AllTasks, LimitedRoute, OwnCase
from closeknit.web.tasks import Tasks

router = APIRouter(route_class=LimitedRoute, include_in_schema=False)
PICTURES = ("loss", "risk", "distributions", "associations")


@router.get("/tables/{id}/release")
def release(request: Request, case: OwnCase, tasks: AllTasks) -> Response:
    """Show certificate, sample, loss by column, attacks and downloads."""
    now = mark(draft_of(case), *RELEASED) if case.draft.is_file() else None
    work = work_of(tasks, case, "anonymize", now)
    found = result(case.out, case.name) if case.finished and not work.running else None
    pictures = [name for name in PICTURES if (case.folder / "pictures" / f"{name}.svg").is_file()]
    learned = work_of(tasks, case, "learn", _release_number(case, tasks))
    shown: dict[str, Any] = {"work": work, "found": found, "pictures": pictures, "learned": learned if learned.fresh else None}
    shown |= {"dossier": work_of(tasks, case, "dossier"), "frameworks": FRAMEWORKS}
    targets = [name for name, kind in _list_kinds(case) if kind != "numeric"] if found else []
    return page(request, case, tasks, "release", **shown, targets=targets)


@router.post("/tables/{id}/learn")
def learn(case: OwnCase, tasks: AllTasks, target: Annotated[str, Form(max_length=1000)] = "") -> Response:
    """Train a model for a column on the release, and test it on the original."""
    if case.finished and target in dict(_list_kinds(case)):
        tasks.start(case, "learn", target=target, of=_release_number(case, tasks))
    return redirect_to(case, "release")


def _release_number(case: Case, tasks: Tasks) -> str:
    """Return which release this is, so that the result for an earlier one is not shown."""
    task = tasks.last(case, "anonymize")
    return str(task.number if task else 0)


def _list_kinds(case: Case) -> list[tuple[str, str]]:
    """Return the quasi-identifiers and sensitive attributes of the release, with their kinds."""
    columns = json.loads((case.out / CERTIFICATE).read_text(encoding="utf-8"))["columns"]
    kinds = {**columns.get("quasi", {}), **columns.get("sensitive", {})}
    return [(name, kind if isinstance(kind, str) else next(iter(kind))) for name, kind in kinds.items()]


@router.get("/tables/{id}/report")
def report(case: OwnCase) -> Response:
    """Return the public report."""
    return show_document(case, case.out / PAGE)


@router.get("/tables/{id}/private-report")
def private_report(case: OwnCase) -> Response:
    """Return the private report, which compares with the original."""
    return show_document(case, case.private / PAGE)


@router.get("/tables/{id}/pictures/{name}.svg")
def picture(case: OwnCase, name: str) -> Response:
    """Return a chart of the report."""
    place = case.folder / "pictures" / f"{name if name in PICTURES else PICTURES[0]}.svg"
    return show_document(case, place, "image/svg+xml")


@router.get("/tables/{id}/release.zip")
def download_public(case: OwnCase) -> Response:
    """Download the public files."""
    return download(check_file(case, case.folder / "release.zip"))


@router.get("/tables/{id}/private.zip")
def download_private(case: OwnCase) -> Response:
    """Download the private files."""
    return download(check_file(case, case.folder / "private.zip"))
