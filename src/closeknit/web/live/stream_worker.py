"""The process of a stream: `python -m closeknit.web.live.stream_worker OPTIONS`; a byte on its input announces a request.

It resumes from its checkpoint. If it fails, it writes one sentence and ends; the server starts it again after a while. The end
of its input stops it, with a checkpoint.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from closeknit.api.recipe import Recipe
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput, CloseknitError
from closeknit.io.database import Database
from closeknit.io.folders import write_whole
from closeknit.streams.checkpoint_folder import CheckpointFolder
from closeknit.streams.sinks import BufferedSink, FileSink, Mark, Rejects, Sink
from closeknit.streams.stream_run import StreamRun
from closeknit.web.child_setup import BROKEN, limit_memory, set_up
from closeknit.web.desk.draft import confine_paths, read_draft, recipe_of
from closeknit.web.live.batch_log import BatchLog
from closeknit.web.live.inbox_source import InboxSource
from closeknit.web.live.stream_watch import StreamWatch

if TYPE_CHECKING:
    from closeknit.streams.postgresql_sink import PostgresqlSink

BATCHES = "batches"  # the sink whose batches are fetched by their number
TABLE = "table"  # the sink that is a table of PostgreSQL, which the recipe names
SINKS = (BATCHES, "rows.ndjson", "rows.csv", TABLE)
FAILED = "failed.json"
FULL = "the stream needs more memory than this server allows; choose a shorter delay"


class SinkDown(CloseknitError):
    """The output could not be written."""


def main() -> None:
    """Run the stream of a folder until it ends or the server does."""
    options = json.loads(sys.argv[1])
    folder = Path(options["folder"])
    set_up()
    limit_memory(options["memory"])
    failure = try_stream(folder, options["sink"], options["every"], options["published"], 0)
    if failure is not None:
        write_whole(folder / FAILED, json.dumps(failure).encode(), 0o600)
    os._exit(0 if failure is None else 1)  # an ordinary exit may abort on a library's thread that is just starting


def try_stream(folder: Path, sink: str, every: int, published: int, wake: int | None) -> dict[str, str] | None:
    """Run a stream; if it fails, return the reason as one sentence without a place of the server, and what failed."""
    try:
        with warnings.catch_warnings(action="ignore"):
            run_stream(folder, sink, every, published, wake)
        return None
    except SinkDown as error:
        return {"what": "sink", "sentence": _hide(str(error), folder)}
    except CloseknitError as error:
        return {"what": "stream", "sentence": _hide(str(error), folder)}
    except MemoryError:
        return {"what": "stream", "sentence": FULL}
    except Exception as error:
        return {"what": "stream", "sentence": BROKEN.format(name=type(error).__name__)}


def run_stream(
    folder: Path, sink: str, every: int, published: int, wake: int | None, stopping: Callable[[], bool] = lambda: False
) -> bool:
    """Run a stream from its last checkpoint on.

    Args:
        folder: its folder.
        sink: one of `SINKS`.
        every: rows between checkpoints.
        published: bytes of batches that may wait for their recipient.
        wake: a file descriptor that becomes readable when a request arrives, and ends with the server.
        stopping: whether the run should stop.

    Returns:
        Whether the stream has ended.
    """
    recipe = read_recipe((folder / "recipe.yaml").read_text(encoding="utf-8"))
    assert recipe.stream is not None
    with ExitStack() as stack:
        checkpoints = stack.enter_context(closing(CheckpointFolder(folder / "checkpoint")))
        resuming = checkpoints.begun
        output = stack.enter_context(closing(_sink(folder, sink, published, recipe, resuming)))
        log = output if isinstance(output, BatchLog) else None

        def is_full() -> bool:
            return log is not None and log.full

        source = InboxSource(folder / "inbox", wake, is_full)
        saved, marks, ticks = checkpoints.load() if resuming else (None, {}, [])
        stream = saved or recipe.build_stream()
        if stream.timed:
            stream.clock = "tick"
        order = recipe.stream.order(recipe.schema)
        run = StreamRun(stream, source, WatchedSink(output), order, Rejects(None), time.time, checkpoints, every)
        report = StreamWatch(folder, source, is_full, every)

        def watch(run: StreamRun, saved: bool) -> None:
            report(run, saved)
            if log is not None:
                log.delete_acknowledged()

        run.resume(marks, ticks) if resuming else run.begin()
        run.watch, run.stopping = watch, lambda: source.stopped or stopping()
        report.write(run)
        (folder / FAILED).unlink(missing_ok=True)
        ended = run.run()
        report.write(run)
        return ended


def read_recipe(text: str) -> Recipe:
    """Read the recipe of a stream; one without a stream, or that names files, is refused.

    Args:
        text: the recipe.

    >>> read_recipe("schema: {quasi: {age: {numeric: {lo: 0, hi: 9}}}}\\nmodels: []\\nstream: {k: 2, delta: 4}").stream.name
    'knit_stream'
    >>> read_recipe("schema: {quasi: {age: numeric}}\\nmodels: []")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: the recipe has no stream; give it the key stream: {k: 100, delta: 10000}
    """
    recipe = recipe_of(confine_paths(read_draft(text), "rows"))
    if recipe.stream is None:
        raise BadInput("the recipe has no stream", right="give it the key stream: {k: 100, delta: 10000}")
    return recipe


def open_table(recipe: Recipe, resuming: bool = False) -> PostgresqlSink:
    """Open the table into which a stream publishes; one that is not empty is refused.

    Args:
        recipe: the recipe, which names it.
        resuming: whether the rows in it are those of this stream.
    """
    from closeknit.streams.postgresql_sink import PostgresqlSink

    assert isinstance(recipe.target, Database)
    table = PostgresqlSink(recipe.target, recipe.schema)
    if not resuming and table.begun:
        table.close()
        raise BadInput(f"the table '{recipe.target.table}' exists already", file=table.place, right="name another one")
    return table


def _sink(folder: Path, sink: str, published: int, recipe: Recipe, resuming: bool) -> BatchLog | FileSink | PostgresqlSink:
    try:
        if sink == BATCHES:
            return BatchLog(folder / "published", published)
        if sink == TABLE:
            return open_table(recipe, resuming)
        (folder / "out").mkdir(mode=0o700, exist_ok=True)
        return FileSink(folder / "out" / sink, csv=sink.endswith(".csv"), mode=0o600)
    except (OSError, CloseknitError) as error:
        raise SinkDown(str(error)) from None


class WatchedSink:
    """A sink whose errors are `SinkDown`, so that the page can name what failed."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def write(self, number: int, batch: Columns) -> None:
        """As `Sink`."""
        self._try(self._sink.write, number, batch)

    def mark(self) -> Mark:
        """As `Sink`."""
        return dict(self._try(self._sink.mark))

    def seek(self, mark: Mark) -> None:
        """As `Sink`."""
        self._try(self._sink.seek, mark)

    def empty(self) -> None:
        """As `Sink`."""
        self._try(self._sink.empty)

    def settle(self, certificate: Callable[[], str], saving: bool) -> None:
        """As `BufferedSink`."""
        if isinstance(self._sink, BufferedSink):
            self._try(self._sink.settle, certificate, saving)

    def close(self) -> None:
        """As `Sink`."""
        self._try(self._sink.close)

    def _try(self, act: Callable[..., Any], *given: Any) -> Any:
        try:
            return act(*given)
        except (OSError, CloseknitError) as error:
            raise SinkDown(str(error)) from None


def _hide(sentence: str, folder: Path) -> str:
    for place in (folder.resolve(), folder):
        sentence = sentence.replace(f"{place}/", "")
    return sentence


if __name__ == "__main__":
    main()
