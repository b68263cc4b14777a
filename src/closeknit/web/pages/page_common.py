"""What all pages of a table share: the five steps, the running task, and redirects after a form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.responses import RedirectResponse, Response

from closeknit.core.errors import BadInput
from closeknit.web.cases import Case, Gone
from closeknit.web.responses import templates
from closeknit.web.routing import OwnCase
from closeknit.web.tasks import Task, Tasks

UNFIT = 422  # a form with a mistake: its page is shown again, with a sentence at the field
WORKS = {  # title of a running task
    "look": "Reading the table",
    "reach": "Measuring the table",
    "choices": "Comparing the methods",
    "frontier": "Trying stricter and looser guarantees",
    "anonymize": "Anonymizing the table",
    "population": "Reading the population",
    "dossier": "Writing the dossier",
    "learn": "Training a model on the release",
}
STEP_OF = {
    "reach": ("guarantees",),
    "choices": ("methods",),
    "frontier": ("methods",),
    "anonymize": ("release",),
    "population": ("guarantees",),
    "dossier": ("release",),
    "learn": ("release",),
}


@dataclass(frozen=True)
class Step:
    """One of the five steps in the head of a page."""

    name: str
    title: str
    open: bool  # whether it can be visited


def steps(case: Case, tasks: Tasks) -> list[Step]:
    """Return the steps, and which of them are open."""
    started = case.draft.is_file()
    released = case.finished or tasks.last(case, "anonymize") is not None
    names = ("table", "roles", "guarantees", "methods", "release")
    return [Step(name, name.title(), name == "table" or (released if name == "release" else started)) for name in names]


def page(request: Request, case: Case, tasks: Tasks, step: str, status: int = 200, **shown: Any) -> Response:
    """Render the page of a step."""
    context = {"case": case, "step": step, "steps": steps(case, tasks), "errors": {}, **shown}
    return templates().TemplateResponse(request, f"{step}.html", context, status)


def address(case: Case, *parts: object) -> str:
    """Return the address of a page of a case.

    >>> from pathlib import Path
    >>> address(Case("0a", "ann", "people.csv", ".csv", 0.0, folder=Path()), "columns", 3)
    '/tables/0a/columns/3'
    """
    return "/".join(["/tables", case.id, *map(str, parts)])


def redirect_to(case: Case, *parts: object) -> Response:
    """Redirect to a page of a case, after a form."""
    return RedirectResponse(address(case, *parts), 303)


async def _require_started(case: OwnCase) -> Case:
    if case.gone is not None:
        raise Gone(case.gone)
    if not case.draft.is_file():
        raise BadInput("this table has not been read yet", right="start at its first step")
    return case


StartedCase = Annotated[Case, Depends(_require_started)]  # the case of a path, refused before its table is read


@dataclass(frozen=True)
class Work:
    """The newest task of a kind: running, done for the current draft, or out of date."""

    task: Task | None
    found: Any  # its result
    fresh: bool

    @property
    def running(self) -> bool:
        """Whether a page should wait."""
        return self.task is not None and not self.task.over

    @property
    def title(self) -> str:
        """The title of the task."""
        return WORKS.get(self.task.kind, "Working") if self.task else ""

    @property
    def failed(self) -> str | None:
        """Why there is no result."""
        if self.task is None or self.task.state in ("waiting", "running", "done"):
            return None
        return self.task.sentence or "the task was cancelled"


def work_of(tasks: Tasks, case: Case, kind: str, mark: str | None = None) -> Work:
    """Return the newest task of a kind; it is fresh if it was started for this `mark`."""
    task = tasks.last(case, kind)
    return Work(task, tasks.result(case, task), task is not None and (mark is None or task.options.get("of") == mark))
