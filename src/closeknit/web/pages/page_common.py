"""What all pages about a table share: the five steps, the work that is under way, and the way on after a form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from closeknit.core.errors import BadInput
from closeknit.web.cases import Case, Gone
from closeknit.web.responses import templates
from closeknit.web.tasks import Task, Tasks

UNFIT = 422  # a form that cannot be meant: its page again, with the sentence at the field
WORKS = {  # what is going on, for the page that waits for it
    "look": "Looking at the table",
    "reach": "Counting what the table reaches today",
    "choices": "Comparing the methods",
    "frontier": "Trying stricter and looser guarantees",
    "anonymize": "Making the release",
}
STEP_OF = {
    "reach": ("guarantees",),
    "choices": ("methods",),
    "frontier": ("methods",),
    "anonymize": ("release",),
}  # where it is waited for


@dataclass(frozen=True)
class Step:
    """One of the five, as the head of a page shows it."""

    name: str
    title: str
    open: bool  # whether there is something to be seen


def steps(case: Case, tasks: Tasks) -> list[Step]:
    """Which steps can be gone to."""
    begun = case.draft.is_file()
    made = case.finished or tasks.last(case, "anonymize") is not None
    named = {"table": "Table", "roles": "Roles", "guarantees": "Guarantees", "methods": "Methods", "release": "Release"}
    return [Step(name, title, name == "table" or (made if name == "release" else begun)) for name, title in named.items()]


def page(request: Request, case: Case, tasks: Tasks, step: str, status: int = 200, **told: Any) -> Response:
    """The page of a step."""
    shown = {"case": case, "step": step, "steps": steps(case, tasks), "errors": {}, **told}
    return templates().TemplateResponse(request, f"{step}.html", shown, status)


def address(case: Case, *parts: object) -> str:
    """A page of a case.

    >>> from pathlib import Path
    >>> address(Case("0a", "ann", "people.csv", ".csv", 0.0, folder=Path()), "columns", 3)
    '/tables/0a/columns/3'
    """
    return "/".join(["/tables", case.id, *map(str, parts)])


def redirect_to(case: Case, *parts: object) -> Response:
    """After a form: the page that shows what came of it."""
    return RedirectResponse(address(case, *parts), 303)


def check_started(case: Case) -> None:
    """Refuse steps for which the table must have been looked at."""
    if case.gone is not None:
        raise Gone(case.gone)
    if not case.draft.is_file():
        raise BadInput("this table has not been looked at yet", right="begin at its first step")


@dataclass(frozen=True)
class Work:
    """The newest task of a kind: under way, done for what is asked now, or out of date."""

    task: Task | None
    found: Any  # its result
    fresh: bool

    @property
    def running(self) -> bool:
        """Whether a page should wait."""
        return self.task is not None and not self.task.over

    @property
    def title(self) -> str:
        """What is going on."""
        return WORKS.get(self.task.kind, "Working") if self.task else ""

    @property
    def failed(self) -> str | None:
        """Why nothing came of it."""
        if self.task is None or self.task.state in ("waiting", "running", "done"):
            return None
        return self.task.sentence or "this was cancelled"


def work_of(tasks: Tasks, case: Case, kind: str, mark: str | None = None) -> Work:
    """How things stand with a kind of work; `mark` is what it must have been asked about."""
    task = tasks.last(case, kind)
    return Work(task, tasks.result(case, task), task is not None and (mark is None or task.options.get("of") == mark))
