"""What the service says of jobs, typed: these stand in its description."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from closeknit.core.limits import MOST_RUNS
from closeknit.web.cases import Case
from closeknit.web.tasks import Task, Tasks


class State(StrEnum):
    """Where a task stands."""

    waiting = "waiting"
    running = "running"
    done = "done"
    failed = "failed"
    cancelled = "cancelled"
    interrupted = "interrupted"


class Problem(BaseModel):
    """Why something was refused."""

    error: str


class Work(BaseModel):
    """One task of a job."""

    kind: str
    state: State
    share: float = Field(ge=0, le=1, description="how much of it is done")
    words: str = Field(description="what is being done now")
    sentence: str | None = Field(description="why it failed")

    @classmethod
    def of(cls, task: Task) -> Work:
        """From a task."""
        return cls(kind=task.kind, state=State(task.state), share=task.share, words=task.words, sentence=task.sentence)


class Job(BaseModel):
    """A table and what is done with it. Its state is that of the task that was started last."""

    id: str
    name: str = Field(description="of the uploaded file")
    made: datetime
    state: State
    share: float = Field(ge=0, le=1)
    words: str
    sentence: str | None
    released: bool = Field(description="whether there is a release to be fetched")
    tasks: list[Work]

    @classmethod
    def of(cls, case: Case, tasks: Tasks) -> Job:
        """From a case; one without a task is a table at which somebody works on the page."""
        works = [Work.of(task) for task in tasks.history(case)]
        last = works[-1] if works else Work(kind="", state=State.done, share=0, words="open", sentence=None)
        return cls(
            id=case.id,
            name=case.name,
            made=datetime.fromtimestamp(case.made, UTC),
            state=last.state,
            share=last.share,
            words=last.words,
            sentence=last.sentence or case.gone,
            released=case.finished,
            tasks=works,
        )


class CompareRequest(BaseModel):
    """Which methods; left out, all that serve the guarantees of the recipe."""

    model_config = ConfigDict(extra="forbid")

    methods: list[str] | None = Field(None, min_length=1, max_length=40)


class AttackRequest(BaseModel):
    """How often the method is run again to attack its minimality."""

    model_config = ConfigDict(extra="forbid")

    runs: int | None = Field(None, ge=1, le=MOST_RUNS)
