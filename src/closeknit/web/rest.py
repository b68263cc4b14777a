"""The REST service. A job is a table with its recipe and starts at once; an audit is a job too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO, Annotated, Any

from fastapi import APIRouter, Form, Response, UploadFile
from starlette.responses import FileResponse

from closeknit.core.errors import BadInput
from closeknit.io.folders import write_whole
from closeknit.release.release_paths import CERTIFICATE, PAGE
from closeknit.web.cases import Case, Gone, NotReady
from closeknit.web.headers import DOCUMENT
from closeknit.web.rest_records import AttackRequest, CompareRequest, Job, Problem, Work
from closeknit.web.routing import AllCases, AllTasks, LimitedRoute, OwnCase, Owner
from closeknit.web.settings import Settings

REFUSALS: dict[int | str, dict[str, Any]] = {
    401: {"model": Problem, "description": "No token, or an unknown one"},
    403: {"model": Problem, "description": "Request from a page of another site"},
    422: {"model": Problem, "description": "Unknown or missing fields, or wrong types"},
}
NO_JOB: dict[int | str, dict[str, Any]] = {404: {"model": Problem, "description": "No such job of this user"}}
NOT_YET: dict[int | str, dict[str, Any]] = {409: {"model": Problem, "description": "Not done, or failed"}, **NO_JOB}
FILE: dict[str, Any] = {  # of a route that returns a file
    "responses": {200: {"content": {"application/octet-stream": {}}}, **NOT_YET},
    "response_class": FileResponse,
}
UPLOAD: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "A file that cannot be read"},
    408: {"model": Problem, "description": "Upload too slow"},
    413: {"model": Problem, "description": "Upload too large"},
    429: {"model": Problem, "description": "Too many tables or tasks already"},
}
STARTED: dict[int | str, dict[str, Any]] = {429: UPLOAD[429], 400: UPLOAD[400], 410: {"model": Problem}, **NO_JOB}

router = APIRouter(prefix="/api", route_class=LimitedRoute, responses=REFUSALS, tags=["jobs"])
ROUTERS = (router,)


@router.post("/jobs", status_code=202, responses=UPLOAD)
def create_job(
    response: Response,
    owner: Owner,
    cases: AllCases,
    tasks: AllTasks,
    recipe: UploadFile,
    table: UploadFile,
    report: Annotated[bool, Form(description="whether the folders get a report")] = True,
) -> Job:
    """Anonymize a table by a recipe. The recipe's `data` path is ignored: the table is the uploaded one.

    Mistakes in recipe or table are reported in the job's state, not in this response.
    """
    text = read_small(recipe, cases.settings, "recipe")
    case = cases.new(owner, table.filename or "", table.file)
    write_whole(case.draft, text, 0o600)
    return _start_job(response, case, tasks, "anonymize", report=report)


@router.post("/audits", status_code=202, responses=UPLOAD)
def create_audit(
    response: Response, owner: Owner, cases: AllCases, tasks: AllTasks, release: UploadFile, certificate: UploadFile
) -> Job:
    """Audit anyone's release against its certificate; the result is at `/api/jobs/{id}/audit`."""
    text = read_small(certificate, cases.settings, "certificate")
    case = cases.new(owner, release.filename or "", release.file, "release")
    write_whole(case.folder / CERTIFICATE, text, 0o600)
    return _start_job(response, case, tasks, "audit")


def _start_job(response: Response, case: Case, tasks: AllTasks, kind: str, **requested: Any) -> Job:
    tasks.start_first(case, kind, **requested)
    response.headers["location"] = f"/api/jobs/{case.id}"
    return Job.of(case, tasks)


@router.get("/jobs")
def list_jobs(owner: Owner, cases: AllCases, tasks: AllTasks) -> list[Job]:
    """List the jobs of this user, newest first."""
    return [Job.of(case, tasks) for case in cases.list_owned(owner)]


@router.get("/jobs/{id}", responses=NO_JOB)
async def show_job(case: OwnCase, tasks: AllTasks) -> Job:
    """Show state and progress of a job."""
    return Job.of(case, tasks)


@router.delete("/jobs/{id}", status_code=204, responses=NO_JOB)
def delete_job(case: OwnCase, tasks: AllTasks) -> None:
    """Stop a job and delete its data."""
    tasks.remove(case)


@router.get("/jobs/{id}/certificate", responses=NOT_YET)
def show_certificate(case: OwnCase) -> dict[str, Any]:
    """Return the certificate of the release."""
    return dict(json.loads(check_file(case, case.out / CERTIFICATE).read_text(encoding="utf-8")))


@router.get("/jobs/{id}/report", responses={200: {"content": {"text/html": {}}}, **NOT_YET}, response_class=FileResponse)
def show_report(case: OwnCase) -> FileResponse:
    """Return the public report."""
    return show_document(case, case.out / PAGE)


@router.get("/jobs/{id}/release", **FILE)
def fetch_release(case: OwnCase) -> FileResponse:
    """Download the release."""
    files = json.loads(check_file(case, case.out / CERTIFICATE).read_text(encoding="utf-8"))["files"]
    return download(case.out / Path(files[0]["name"]).name)


@router.get("/jobs/{id}/release.zip", **FILE)
def fetch_public(case: OwnCase) -> FileResponse:
    """Download the public files: release, certificate and report."""
    return download(check_file(case, case.folder / "release.zip"))


@router.get("/jobs/{id}/private", **FILE)
def fetch_private(case: OwnCase) -> FileResponse:
    """Download the private files: recipe with its seed, classes and private report. Do not share them."""
    return download(check_file(case, case.folder / "private.zip"))


@router.post("/jobs/{id}/attack", status_code=202, responses=STARTED)
def start_attack(case: OwnCase, tasks: AllTasks, requested: AttackRequest | None = None) -> Work:
    """Measure the disclosure risk of the release."""
    return Work.of(tasks.start(case, "attack", **({} if requested is None else requested.model_dump())))


@router.post("/jobs/{id}/compare", status_code=202, responses=STARTED)
def start_comparison(case: OwnCase, tasks: AllTasks, requested: CompareRequest | None = None) -> Work:
    """Compare methods under the guarantees of the recipe."""
    return Work.of(tasks.start(case, "compare", **({} if requested is None else requested.model_dump())))


@router.get("/jobs/{id}/attack", responses=NOT_YET)
def show_attack(case: OwnCase, tasks: AllTasks) -> dict[str, Any]:
    """Return the results of the attacks, worst first. They use the original table: do not share them."""
    return dict(tasks.find_result(case, "attack"))


@router.get("/jobs/{id}/compare", responses=NOT_YET)
def show_comparison(case: OwnCase, tasks: AllTasks) -> dict[str, Any]:
    """Return measured level, loss and time of each method. Do not share it."""
    return dict(tasks.find_result(case, "compare"))


@router.get("/jobs/{id}/audit", responses=NOT_YET)
def show_audit(case: OwnCase, tasks: AllTasks) -> dict[str, Any]:
    """Return the result of the audit of an uploaded release."""
    return dict(tasks.find_result(case, "audit"))


def read_small(upload: UploadFile, settings: Settings, what: str) -> bytes:
    """Read a small uploaded file; a longer one is refused."""
    file: IO[bytes] = upload.file
    text = file.read(settings.text + 1)
    if len(text) > settings.text:
        raise BadInput(f"the {what} is longer than {settings.text:,} bytes", right="give a shorter one")
    return text


def read_small_text(upload: UploadFile, settings: Settings, what: str) -> str:
    """Read a small uploaded text file; one that is not UTF-8 is refused."""
    try:
        return read_small(upload, settings, what).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadInput(f"the {what} is not UTF-8 text", right="save it as UTF-8") from None


def check_file(case: Case, place: Path) -> Path:
    """Return a file of a finished release; refused if there is none."""
    if case.gone is not None:
        raise Gone(case.gone)
    if not case.finished or not place.is_file():
        raise NotReady("there is no release yet; see the state of the job")
    return place


def show_document(case: Case, place: Path, kind: str = "text/html") -> FileResponse:
    """Return a report or a chart of a finished release, to be read as a page of its own."""
    return FileResponse(check_file(case, place), media_type=kind, headers=DOCUMENT)


def download(place: Path) -> FileResponse:
    """Return a file for download, which browsers never show as a page."""
    return FileResponse(place, media_type="application/octet-stream", filename=place.name)
