"""`Tasks`: a queue of work on cases; a few tasks run at once, each in a process of its own."""

from __future__ import annotations

import json
import logging
import shutil
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from closeknit.io.folders import write_whole
from closeknit.web.cases import Case, Cases, Gone, LimitExceeded, NotReady, read_json
from closeknit.web.worker_process import WorkerProcess

REMEMBERED = 3  # finished tasks of each kind
TICK = 0.05  # seconds between two checks of running processes
WAITING, RUNNING, DONE, FAILED, CANCELLED, INTERRUPTED = ("waiting", "running", "done", "failed", "cancelled", "interrupted")
CUT_OFF = "the server stopped before the task was finished, and the table was deleted; upload it again"
STOPPED = "the server stopped before the task was finished; start it again"
ENDED = "the process of this task ended: it needed more memory than the server allows, or was killed"
TOO_LONG = "the task took longer than the {minutes:g} minutes that the server allows; try fewer rows or another method"

log = logging.getLogger("closeknit.web")


@dataclass(frozen=True)
class Task:
    """A task of a case and its progress; `Tasks.result` returns its result."""

    case: str
    number: int
    kind: str
    options: dict[str, Any] = field(default_factory=dict)
    state: str = WAITING
    share: float = 0.0
    words: str = "waiting"
    sentence: str | None = None  # why it failed
    made: float = 0.0
    started: float | None = None
    ended: float | None = None

    @property
    def over(self) -> bool:
        """Whether the task neither waits nor runs."""
        return self.state not in (WAITING, RUNNING)


class Tasks:
    """A queue for a bounded number of processes. One thread starts and ends all of them."""

    def __init__(self, cases: Cases) -> None:
        self.cases, self.settings = cases, cases.settings
        self._lock = threading.RLock()
        self._waiting: list[Task] = []
        self._running: dict[tuple[str, int], WorkerProcess] = {}
        self._idle: dict[str, WorkerProcess] = {}  # by case, least recently used first
        self._spare: WorkerProcess | None = None
        self._set_timer, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._oversee, name="tasks", daemon=True)
        self._after_restart()

    def open(self) -> None:
        """Start working."""
        self._thread.start()

    def close(self) -> None:
        """End every process; unfinished tasks are marked as interrupted."""
        self._stop.set()
        self._set_timer.set()
        if self._thread.is_alive():
            self._thread.join()
        self._after_restart()

    def start(self, case: Case, kind: str, **options: Any) -> Task:
        """Queue a task; refused if its owner has too many waiting."""
        if case.gone is not None:
            raise Gone(case.gone)
        with self._lock:
            self.cases.of(case.owner, case.id)  # it may have been removed meanwhile
            owners = Counter(self._owner(task) for task in self._waiting)
            if owners[case.owner] >= self.settings.waiting or owners.total() >= self.settings.waiting_all:
                raise LimitExceeded("too many tasks are waiting already; try again when some of them are done")
            number = 1 + max((task.number for task in self.history(case)), default=0)
            task = Task(case.id, number, kind, options, made=time.time())
            self._forget(case, kind)
            self._save(case, task)
            self._waiting.append(task)
        self._set_timer.set()
        return task

    def start_first(self, case: Case, kind: str, **options: Any) -> None:
        """Queue the first task of a new case, which is removed if that is refused."""
        try:
            self.start(case, kind, **options)
        except BaseException:
            self.cases.remove(case)
            raise

    def status(self, case: Case, number: int | None = None) -> Task | None:
        """Return a task with its progress; without a number, the last one started."""
        if number is None:
            number = max(_numbers(case), default=0)
        record = read_json(case.folder / "tasks" / f"{number}.json")
        if record is None:
            return None
        task = Task(**record)
        if task.state == RUNNING and (at := read_json(case.folder / "tasks" / f"{number}.progress")):
            task = replace(task, share=at["share"], words=at["words"])
        return task

    def history(self, case: Case) -> list[Task]:
        """Return all tasks of a case, oldest first."""
        return [task for number in sorted(_numbers(case)) if (task := self.status(case, number)) is not None]

    def last(self, case: Case, kind: str) -> Task | None:
        """Return the newest task of a kind."""
        return next((task for task in reversed(self.history(case)) if task.kind == kind), None)

    def result(self, case: Case, task: Task | None) -> Any:
        """Return the result of a finished task as its worker wrote it."""
        return None if task is None or task.state != DONE else read_json(case.folder / "tasks" / f"{task.number}.result.json")

    def find_result(self, case: Case, kind: str) -> Any:
        """Return the result of the newest task of a kind; refused with a sentence if there is none."""
        task = self.last(case, kind)
        if task is None:
            raise NotReady(f"no task of the kind '{kind}' was started yet; start it first")
        if task.state != DONE:
            raise NotReady(task.sentence or f"the task is not done: {task.words}")
        return self.result(case, task)

    def cancel(self, case: Case, number: int | None = None) -> None:
        """Cancel one task of a case, or all of them and the idle process of the case."""
        with self._lock:
            for task in [task for task in self._waiting if task.case == case.id and number in (None, task.number)]:
                self._waiting.remove(task)
                self._over(case, task, state=CANCELLED)
            for key in [key for key in self._running if key[0] == case.id and number in (None, key[1])]:
                self._running.pop(key).end()
                if (running := self.status(case, key[1])) is not None:
                    self._over(case, running, state=CANCELLED)
            if number is None and (idle := self._idle.pop(case.id, None)) is not None:
                idle.end()
        self._set_timer.set()

    def remove(self, case: Case) -> None:
        """Cancel all tasks of a case and delete its folder."""
        with self._lock:
            self.cancel(case)
            self.cases.remove(case)

    def expire(self) -> None:
        """Remove cases that are expired and have no task."""
        for case in self.cases.list_expired():
            with self._lock:
                busy = [task.case for task in self._waiting] + [id for id, _ in self._running]
                if case.id not in busy:
                    self.remove(case)

    def _oversee(self) -> None:
        while not self._stop.is_set():
            with self._lock:
                try:
                    self._collect()
                    self._dispatch()
                    self._dismiss()
                except Exception as error:  # such as a full disk: other tasks must continue when there is room again
                    log.error("%s while managing tasks", type(error).__name__)
                busy = bool(self._running or self._waiting)
            self._set_timer.wait(TICK if busy else 1.0)
            self._set_timer.clear()
        with self._lock:
            for process in [*self._running.values(), *self._idle.values(), *filter(None, [self._spare])]:
                process.end()
            self._running.clear()

    def _dispatch(self) -> None:
        while len(self._running) < self.settings.at_once and (task := self._next()) is not None:
            case = self._case(task)
            self._save(case, replace(task, state=RUNNING, words="starting", started=time.time()))
            self._waiting.remove(task)
            process = self._process(case)
            process.give(case.folder, task.number)
            self._running[case.id, task.number] = process

    def _process(self, case: Case) -> WorkerProcess:
        """Return the process that holds the table already, or the spare one, or a new one."""
        idle = self._idle.pop(case.id, None)
        if idle is not None and idle.alive:
            return idle
        spare, self._spare = self._spare, None
        return spare if spare is not None and spare.alive else WorkerProcess(self.settings)

    def _dismiss(self) -> None:
        """End processes that were idle for long, and keep one ready for the next case."""
        late = time.time() - self.settings.idle_for
        for id, process in list(self._idle.items()):
            if process.since < late or not process.alive or len(self._idle) > self.settings.idle:
                self._idle.pop(id).end()
        if self.settings.spare and not self._running and not (self._spare and self._spare.alive):
            self._spare = WorkerProcess(self.settings)

    def _next(self) -> Task | None:
        """Return the oldest task of the owner with the fewest running ones; owners with `each` running tasks wait."""
        busy = Counter(self.cases.by_id(id).owner for id, _ in self._running)
        ready = [task for task in self._waiting if busy[self._owner(task)] < self.settings.each]
        return min(ready, key=lambda task: (busy[self._owner(task)], task.made), default=None)

    def _collect(self) -> None:
        """Record tasks that are done, failed, killed or too slow; only the process of one that is done is kept."""
        for (id, number), process in list(self._running.items()):
            case, late = self.cases.by_id(id), time.time() - process.since > self.settings.longest
            found = outcome(case.folder / "tasks", number)
            if found is None and process.alive and not late:
                continue
            if found == {"state": DONE} and process.alive and id not in self._idle:
                process.since = time.time()
                self._idle[id] = process
            else:
                process.end()
                found = outcome(case.folder / "tasks", number)  # it may have finished just before its end
            task = self.status(case, number)
            assert task is not None
            why = TOO_LONG.format(minutes=self.settings.longest / 60) if late else ENDED
            self._over(case, task, **(found or {"state": FAILED, "sentence": why}))
            del self._running[id, number]

    def _over(self, case: Case, task: Task, state: str, sentence: str | None = None) -> None:
        share = 1.0 if state == DONE else task.share
        self._save(case, replace(task, state=state, words=state, share=share, sentence=sentence, ended=time.time()))

    def _forget(self, case: Case, kind: str) -> None:
        """Keep only the newest tasks of a kind: a page may start hundreds of small ones."""
        for task in [task for task in self.history(case) if task.kind == kind and task.over][:-REMEMBERED]:
            for place in (case.folder / "tasks").glob(f"{task.number}.*"):
                place.unlink(missing_ok=True)

    def _save(self, case: Case, task: Task) -> None:
        write_whole(case.folder / "tasks" / f"{task.number}.json", json.dumps(asdict(task)).encode(), 0o600)

    def _owner(self, task: Task) -> str:
        return self._case(task).owner

    def _case(self, task: Task) -> Case:
        return self.cases.by_id(task.case)

    def _after_restart(self) -> None:
        """Mark tasks as interrupted, since none runs now, and delete the tables of cases without a release."""
        for case in self.cases.all():
            for task in self.history(case):
                bare = task if case.finished else replace(task, options={})  # options may contain cells
                self._save(case, bare)
                if not task.over:
                    self._over(case, bare, state=INTERRUPTED, sentence=STOPPED if case.finished else CUT_OFF)
            for place in case.folder.glob(".*"):  # folders of unfinished releases
                shutil.rmtree(place, ignore_errors=True)
            if not case.finished and case.gone is None:
                self.cases.delete_data(case, CUT_OFF)


def _numbers(case: Case) -> list[int]:
    return [int(place.stem) for place in (case.folder / "tasks").glob("*.json") if place.stem.isdecimal()]


def outcome(folder: Path, number: int) -> dict[str, str] | None:
    """Return the state that a worker has written for a task, with a sentence if it failed; None if there is none yet."""
    if (folder / f"{number}.result.json").is_file():
        return {"state": DONE}
    failure = read_json(folder / f"{number}.failed.json")
    return None if failure is None else {"state": FAILED, "sentence": failure["sentence"]}
