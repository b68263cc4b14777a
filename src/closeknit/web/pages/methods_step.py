"""The fourth step: the methods compared, as points of which the user chooses one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from markupsafe import Markup
from starlette.responses import Response

from closeknit.core.errors import BadInput
from closeknit.core.params import whole
from closeknit.web.case_tasks import draft_of
from closeknit.web.cases import Case
from closeknit.web.desk.chart import frontier_svg
from closeknit.web.desk.choices import SAMPLE, Choices, choose_point, methods
from closeknit.web.desk.fields import number_of
from closeknit.web.desk.protection import refuse_unconfirmed
from closeknit.web.desk.roles import draft_faults
from closeknit.web.pages.drafts import change, mark
from closeknit.web.pages.page_common import UNFIT, StartedCase, Work, page, redirect_to, work_of
from closeknit.web.pages.roles_step import columns_of
from closeknit.web.routing import AllTasks, LimitedRoute
from closeknit.web.tasks import Tasks

router = APIRouter(route_class=LimitedRoute, include_in_schema=False)
Short = Annotated[str, Form(max_length=40)]
REQUESTED = ("data", "schema", "models", "suppress", "form", "allow_vacuous")  # what a comparison depends on
RELEASED = (*REQUESTED, "method", "escape_formulas")  # what a release depends on


@router.get("/tables/{id}/methods")
def show_methods(request: Request, case: StartedCase, tasks: AllTasks, point: int | None = None) -> Response:
    """Show the newest comparison and the selected point."""
    return _page(request, case, tasks, point)


def _page(
    request: Request, case: Case, tasks: Tasks, point: int | None = None, error: dict[str, str] | None = None
) -> Response:
    draft = draft_of(case)
    work = newest(tasks, case, mark(draft, *REQUESTED))
    found = Choices.read(work.found) if work.found else None
    faults = faults_of(draft)
    shown: dict[str, Any] = {"work": work, "found": found, "faults": faults, "sample": SAMPLE, "rows": columns_of(case).rows}
    shown["offers"] = [] if faults else methods(draft)
    shown["about"] = {offer.name: offer.about for offer in shown["offers"]}
    shown["method"], shown["models"] = method_name(draft), draft.get("models")
    if found is not None:
        number = point if point is not None and 0 <= point < len(found.points) else choose_first(found, draft)
        shown["point"] = None if number is None else found.points[number]
        shown["chart"] = Markup(frontier_svg(found, lambda each: f"?point={each.number}#chosen", number))
    return page(request, case, tasks, "methods", UNFIT if error else 200, errors=error or {}, **shown)


def faults_of(draft: Mapping[str, Any]) -> list[str]:
    """Return why no method can be chosen yet.

    >>> schema = {"quasi": {"age": "numeric"}, "sensitive": {"wage": "flat"}}
    >>> faults_of({"schema": schema, "models": [{"k_anonymity": {"k": 2}}]})
    ['no guarantee protects wage; request one in step 3, or confirm there that none is wanted']
    """
    try:
        refuse_unconfirmed(draft)
    except BadInput as bad:
        return [*draft_faults(draft), str(bad)]
    return draft_faults(draft)


def choose_first(found: Choices, draft: Mapping[str, Any]) -> int | None:
    """Return the point with the least loss under the requested guarantees; under varied ones only if there is no other."""
    done = [each for each in found.points if each.ok and each.loss is not None and each.models in (None, draft.get("models"))]
    return min(done, key=lambda each: (each.loss, each.number)).number if done else found.best


def newest(tasks: Tasks, case: Case, now: str) -> Work:
    """Return the newest comparison of both kinds."""
    both = [work_of(tasks, case, kind, now) for kind in ("choices", "frontier")]
    return max(both, key=lambda work: work.task.number if work.task else 0)


def method_name(draft: dict[str, Any]) -> str:
    """Return the method of a draft, without its parameters.

    >>> method_name({"method": {"sabre": {"fill": "knn"}}}), method_name({})
    ('sabre', '')
    """
    method = draft.get("method") or ""
    return method if isinstance(method, str) else next(iter(method))


@router.post("/tables/{id}/methods")
def compare(
    request: Request,
    case: StartedCase,
    tasks: AllTasks,
    do: Short = "sample",
    rows: Short = "",
    name: Annotated[list[Short] | None, Form()] = None,
) -> Response:
    """Compare on a sample or on all rows, or vary the parameter of a guarantee."""
    draft = draft_of(case)
    if faults := faults_of(draft):
        return _page(request, case, tasks, error={"methods": faults[0]})
    try:
        few = None if do == "all" else whole("rows", number_of("rows", rows.strip() or str(SAMPLE)), least=1)
    except BadInput as bad:
        return _page(request, case, tasks, error={"sample": str(bad)})
    known = [offer.name for offer in methods(draft) if not offer.refused]
    names = [each for each in name or known if each in known]
    tasks.start(case, "frontier" if do == "vary" else "choices", rows=few, methods=names, of=mark(draft, *REQUESTED))
    return redirect_to(case, "methods")


@router.post("/tables/{id}/release")
def release(
    request: Request, case: StartedCase, tasks: AllTasks, point: Annotated[int | None, Form()] = None, method: Short = ""
) -> Response:
    """Anonymize with the chosen point, or with a chosen method."""
    draft = draft_of(case)
    try:
        if point is not None:
            work = newest(tasks, case, mark(draft, *REQUESTED))
            points = Choices.read(work.found).points if work.found else ()
            if not 0 <= point < len(points):
                raise BadInput("this point does not exist any more", right="compare again")
            draft = choose_point(draft, points[point])
        elif method and method != method_name(draft):
            draft = {**draft, "method": method}
        if faults := faults_of(draft):
            raise BadInput(faults[0])
    except BadInput as bad:
        return _page(request, case, tasks, point, {"methods": str(bad)})
    change(case, draft)
    tasks.start(case, "anonymize", pictures=True, of=mark(draft, *RELEASED))
    return redirect_to(case, "release")
