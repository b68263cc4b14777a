"""The process of a case: `python -m closeknit.web.worker LIMITS`, with a line on standard input for each task.

It keeps the table in memory between tasks, so that short tasks of a page do not read it again. Every error becomes one
sentence in a file; nothing is printed, because the error of a library may contain cells.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import resource
import sys
import threading
import time
import warnings
from pathlib import Path

from closeknit.api.compile_progress import with_compiling
from closeknit.core.errors import CloseknitError
from closeknit.io.folders import write_whole
from closeknit.web.case_tasks import KINDS
from closeknit.web.cases import Case
from closeknit.web.child_setup import BROKEN, limit_memory, set_up
from closeknit.web.desk.table_preview import Limits
from closeknit.web.page_tasks import PAGE_KINDS

EACH = 0.1  # seconds between two updates of the progress
FULL = "the table does not fit into the memory that this server allows; try fewer rows or columns"


def main() -> None:
    """Run tasks of a case, one after the other."""
    options = json.loads(sys.argv[1])
    memory, limits = options.pop("memory"), Limits(**options)
    set_up()
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    if lines.empty():  # no task waits yet
        warm()
    limit_memory(memory)
    while True:
        line = json.loads(lines.get())
        work(Path(line["folder"]), line["task"], limits)


def work(folder: Path, number: int, limits: Limits) -> None:
    """Run a task of the case in this folder, and write its result or the reason of its failure next to it."""
    place = folder / "tasks"
    task = json.loads((place / f"{number}.json").read_text(encoding="utf-8"))
    case = Case.read(folder)
    name, record = f"{number}.failed.json", None
    try:
        with warnings.catch_warnings(action="ignore"):
            do = (KINDS | PAGE_KINDS)[task["kind"]]
            with with_compiling(Progress(place / f"{number}.progress")) as progress:
                record = do(case, task["options"], limits, progress)
            name = f"{number}.result.json"
    except CloseknitError as error:
        record = {"sentence": without_places(str(error), case), "status": error.status}
    except MemoryError:
        record = {"sentence": FULL, "status": 2}
    except Exception as error:
        full = _is_full() or "start new thread" in str(error)
        record = {"sentence": FULL if full else BROKEN.format(name=type(error).__name__), "status": 3}
    write_whole(place / name, json.dumps(record, allow_nan=False).encode(), 0o600)


class Progress:
    """Writes the current step and the share of the work done, a few times a second."""

    def __init__(self, place: Path) -> None:
        self._place, self._last, self._words = place, 0.0, ""

    def __call__(self, what: str, share: float) -> None:
        if what == self._words and time.monotonic() - self._last < EACH:
            return
        self._last, self._words = time.monotonic(), what
        new = self._place.with_suffix(".progress-new")
        new.write_text(json.dumps({"words": what, "share": min(1.0, max(0.0, float(share)))}), encoding="utf-8")
        os.replace(new, self._place)


def without_places(sentence: str, case: Case) -> str:
    """Return a sentence with the owner's name of the table instead of folders of the server.

    >>> case = Case("0", "ann", "people.csv", ".csv", 0, folder=Path("home/0"))
    >>> without_places("home/0/table.csv, row 2: bad", case)
    'people.csv, row 2: bad'
    >>> without_places(f"{Path('home/0').resolve()}/out/release.csv: no space is left", case)
    'out/release.csv: no space is left'
    """
    for place in (case.table.resolve(), case.table):  # the longer one first, since it may contain the other
        sentence = sentence.replace(str(place), case.name)
    for folder in (case.folder.resolve(), case.folder):
        sentence = sentence.replace(f"{folder}/", "")
    return sentence.encode("utf-8", "replace").decode()  # a lone surrogate, which JSON can write, would break every answer


def _is_full() -> bool:
    """Whether hardly any memory is left: some libraries raise other errors than `MemoryError`."""
    limit, _ = resource.getrlimit(resource.RLIMIT_DATA)
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmData:"):
                return limit != resource.RLIM_INFINITY and int(line.split()[1]) * 1024 > 0.9 * limit
    return False


def warm() -> None:
    """Load the chart renderer, the slowest import."""
    from closeknit.report.charts import bars

    bars([{"name": "a", "value": 1.0}], value="b", title="c", most=1)


def _listen(lines: queue.SimpleQueue[bytes]) -> None:
    """Pass on lines as they arrive; the input ends with the server."""
    for line in sys.stdin.buffer:
        lines.put(line)
    os._exit(0)  # an ordinary exit may abort on a library's thread that is just starting


if __name__ == "__main__":
    main()
