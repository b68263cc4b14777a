"""The typed records of the REST service, which its OpenAPI description lists."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from closeknit.core.limits import MOST_RUNS
from closeknit.web.cases import Case
from closeknit.web.routing import UNKNOWN_KEY, unknown_key
from closeknit.web.tasks import Task, Tasks


class State(StrEnum):
    """The state of a task."""

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
    share: float = Field(ge=0, le=1, description="share of the work done")
    words: str = Field(description="the current step")
    sentence: str | None = Field(description="why it failed")

    @classmethod
    def of(cls, task: Task) -> Work:
        """Build the record of a task."""
        return cls(kind=task.kind, state=State(task.state), share=task.share, words=task.words, sentence=task.sentence)


class Job(BaseModel):
    """A table and its tasks. Its state is that of the task that was started last."""

    id: str
    name: str = Field(description="of the uploaded file")
    made: datetime
    state: State
    share: float = Field(ge=0, le=1)
    words: str
    sentence: str | None
    released: bool = Field(description="whether there is a release to download")
    tasks: list[Work]

    @classmethod
    def of(cls, case: Case, tasks: Tasks) -> Job:
        """Build the record of a case; one without a task is a table that is edited on the pages."""
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


class StrictRequest(BaseModel):
    """A JSON body; an unknown key is refused with the nearest known one."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def check_keys(cls, given: Any) -> Any:
        """Refuse an unknown key with a sentence of our own; other types are left to pydantic."""
        unknown = [key for key in given if key not in cls.model_fields] if isinstance(given, dict) else []
        if unknown:
            raise PydanticCustomError(UNKNOWN_KEY, "{sentence}", {"sentence": unknown_key(unknown[0], cls.model_fields)})
        return given


class CompareRequest(StrictRequest):
    """The methods to compare; default: all that can meet the guarantees of the recipe."""

    methods: list[str] | None = Field(None, min_length=1, max_length=40)
    against: Literal["known-algorithm"] | None = None


class AttackRequest(StrictRequest):
    """How often the method is rerun by the minimality attack."""

    runs: int | None = Field(None, ge=1, le=MOST_RUNS)
