"""The command `closeknit stream`: reads rows and publishes them in batches until the input ends."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from closeknit.cli.command_errors import handle_errors, print_stderr
from closeknit.cli.csv_options import Decimal, Delimiter, Encoding, Thousands, csv_format
from closeknit.core.errors import BadInput, suggest_name

if TYPE_CHECKING:
    from closeknit.api.recipe import Recipe
    from closeknit.io.csv import CsvFormat
    from closeknit.streams.sinks import Sink
    from closeknit.streams.sources import Check, Source
    from closeknit.streams.stream_run import StreamRun

STANDARD = Path("-")
CONNECTORS = {"redis": "redis_streams", "rediss": "redis_streams"}  # for addresses scheme://...: files of streams/
CSV_SUFFIXES = (".csv", ".tsv", ".tab", ".txt")


class Lines(StrEnum):
    """How rows are written."""

    ndjson = "ndjson"
    csv = "csv"


class Pipe(StrEnum):
    """What a pipe sends after a restart from a checkpoint: all rows from the start, or only the remaining ones."""

    replay = "replay"
    resume = "resume"


RENAMED = {"again": Pipe.replay, "goes-on": Pipe.resume}  # values of version 0.1


def parse_pipe(text: str) -> Pipe:
    """Parse the option `--pipe`; a value of an earlier version is refused with its new name.

    >>> parse_pipe("replay")
    <Pipe.replay: 'replay'>
    """
    if text in RENAMED:
        raise typer.BadParameter(f"'{text}' is now called '{RENAMED[text].value}'; write --pipe {RENAMED[text].value}")
    if text not in list(Pipe):
        raise typer.BadParameter(f"'{text}' is unknown; {suggest_name(text, Pipe)}")
    return Pipe(text)


def stream(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE", help="A recipe with the key 'stream'.")],
    input: Annotated[
        str | None,
        typer.Option("-i", "--input", help="A file, named pipe or redis://...; default: the recipe's data, or standard input."),
    ] = None,
    output: Annotated[
        str, typer.Option("-o", "--output", help="A file, named pipe or redis://...; default: standard output.")
    ] = str(STANDARD),
    input_format: Annotated[Lines | None, typer.Option(help="Default: by the suffix of the input, or ndjson.")] = None,
    output_format: Annotated[Lines | None, typer.Option(help="Default: by the suffix of the output, or ndjson.")] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    checkpoint: Annotated[Path | None, typer.Option(metavar="DIR", help="Private folder to resume from.")] = None,
    every: Annotated[int, typer.Option(min=1, help="Rows between two checkpoints.")] = 100_000,
    pipe: Annotated[
        Pipe | None,
        typer.Option(
            parser=parse_pipe,
            metavar="replay|resume",
            help="After a restart: whether the pipe replays from the start or resumes.",
        ),
    ] = None,
    counters: Annotated[Path | None, typer.Option(metavar="FILE", help="Private JSON file for the counters.")] = None,
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Certificate of the published rows, rewritten at each checkpoint.")
    ] = None,
    rejects: Annotated[Path | None, typer.Option(metavar="FILE", help="Private file for lines that are not rows.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at a line that is not a row.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the output of an earlier stream.")] = False,
) -> None:
    """Read rows as NDJSON or CSV and publish them in batches that meet a recipe's guarantees, within its delay.

    A file or Redis gets each row exactly once, even if the process is killed and restarted with its checkpoint. On standard
    output and in pipes each batch is a line with its number: after a restart a batch may be repeated, with the same number.
    SIGTERM and SIGINT save a checkpoint and stop; without --checkpoint they flush the pending rows and stop.

    \b
    closeknit stream recipe.yaml < in.ndjson > out.ndjson
    closeknit stream recipe.yaml -i in.csv -o out/rows.csv --checkpoint home/checkpoint --rejects home/rejects.ndjson
    closeknit stream recipe.yaml -i 'redis://localhost/0/in?group=g&consumer=c' -o redis://localhost/0/out --checkpoint home/ck
    """
    with handle_errors(), ExitStack() as stack:
        from closeknit.api.recipe import Recipe

        requested = Recipe.read(recipe)
        source = _origin(requested, input)
        csv = _input_format(requested, source, input_format, csv_format(delimiter, encoding, decimal, thousands))
        places = Places(source, csv, _place(output), output_format, checkpoint, rejects, pipe, force)
        places.refuse_same({"the recipe": recipe, "--counters": counters, "--certificate": certificate})
        if places.to_file:
            _refuse_shared_folder(Path(output), {"--checkpoint": checkpoint, "--counters": counters, "--rejects": rejects})
        watch = Watch(counters, certificate, every)
        running = _prepare_run(requested, recipe, places, stack)
        running.every, running.strict, running.watch = every, strict, watch
        watch.write(running)  # refuses a file that cannot be written before the work starts
        running.stopping = stack.enter_context(_signals())
        idle = running.stream.ended
        with watch:
            ended = running.run()
        watch.write(running)
        print_stderr(describe_end(running, ended, idle, checkpoint))


def _origin(recipe: Recipe, input: str | None) -> Path | Address | None:
    """Where rows come from; None is standard input."""
    named = str(recipe.data or STANDARD) if input is None else input
    return None if named == str(STANDARD) else _place(named)


class Address:
    """`scheme://...`: an address of a connector, a module of streams/ with `source(url)` and `sink(url)`."""

    suffix = ""

    def __init__(self, url: str) -> None:
        self.url, self.scheme = url, url.partition("://")[0].lower()
        if self.scheme not in CONNECTORS:
            raise BadInput(f"there is no connector for {self.scheme}://", right=suggest_name(self.scheme, CONNECTORS))

    @property
    def connector(self) -> Any:
        """Its module, imported on first use."""
        return import_module(f"closeknit.streams.{CONNECTORS[self.scheme]}")


def _place(text: str) -> Path | Address:
    return Address(text) if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text) else Path(text)


@dataclass(frozen=True)
class Places:
    """Input, output and private files as given on the command line."""

    source: Path | Address | None
    csv: CsvFormat | None
    output: Path | Address
    output_format: Lines | None
    checkpoint: Path | None
    rejects: Path | None
    pipe: Pipe | None
    force: bool

    def __post_init__(self) -> None:
        if isinstance(self.output, Address) and self.csv_out:
            raise BadInput(f"rows cannot be sent to {self.output.scheme} as CSV", right="leave --output-format out")
        if isinstance(self.source, Address) and self.checkpoint is None:
            what = f"rows from {self.source.scheme} are acknowledged only in a checkpoint, and there is none"
            raise BadInput(what, right="name a private folder with --checkpoint")
        if self.csv_out and self.checkpoint is not None and not self.to_file:
            right = "write ndjson, whose lines carry the number of their batch, or write to a file"
            raise BadInput("CSV in a pipe cannot mark a batch that is repeated after a restart", right=right)

    @property
    def csv_out(self) -> bool:
        """Whether rows are written as CSV."""
        return (self.output_format or ("csv" if self.output.suffix.lower() in CSV_SUFFIXES else "ndjson")) == Lines.csv

    @property
    def to_file(self) -> bool:
        """Whether the output is a regular file, which can be truncated to a checkpoint."""
        if isinstance(self.output, Address) or self.output == STANDARD:
            return False
        return not self.output.exists() or stat.S_ISREG(self.output.stat().st_mode)

    def refuse_same(self, others: dict[str, Path | None]) -> None:
        """Refuse an output that is also an input or another output."""
        named: dict[str, str] = {}
        own = {"the input": self.source, "the output": self.output, "--rejects": self.rejects}
        for what, path in {**own, **others}.items():
            if not isinstance(path, Path) or path == STANDARD or (path.exists() and not path.is_file()):
                continue
            if (other := named.setdefault(os.path.realpath(path), what)) != what:
                raise BadInput(f"{other} and {what} are the same file", file=path, right="give each a file of its own")


def _prepare_run(requested: Recipe, recipe: Path, places: Places, stack: ExitStack) -> StreamRun:
    """Open everything, and position it where the stream starts or resumes."""
    from closeknit.streams.arrival_order import ArrivalOrder
    from closeknit.streams.checkpoint import refuse_other
    from closeknit.streams.checkpoint_folder import CheckpointFolder
    from closeknit.streams.sinks import Rejects
    from closeknit.streams.stream_run import StreamRun

    if requested.stream is None:
        right = "give it the key stream: {k: 100, delta: 10000}"
        raise BadInput("the recipe has no stream", file=recipe, right=right)
    stream = requested.stream.build(requested.schema, requested.models, requested.seed)
    folder = None if places.checkpoint is None else stack.enter_context(closing(CheckpointFolder(places.checkpoint)))
    resuming = folder is not None and folder.begun
    marks: dict[str, Any] = {}
    ticks: list[Any] = []
    if folder is not None and resuming:
        saved, marks, ticks = folder.load()
        refuse_other(saved, stream, folder.path)
        saved.rules, stream = stream.rules, saved
    else:
        _refuse_older(places)
    if stream.timed:
        stream.clock = "tick"
    order = ArrivalOrder(requested.schema, requested.stream.position, requested.stream.time)
    source = stack.enter_context(closing(_source(places, stack.enter_context(_wake_on_signals()), order.check_header)))
    sink = stack.enter_context(closing(_sink(places, resuming)))
    rejects = stack.enter_context(closing(Rejects(places.rejects)))
    running = StreamRun(stream, source, sink, order, rejects, time.time, folder)
    running.resume(marks, ticks) if resuming else running.begin()
    return running


def _source(places: Places, wake: int, check: Check) -> Source:
    from closeknit.streams.sources import FileSource

    if isinstance(places.source, Address):
        return places.source.connector.source(places.source.url)  # type: ignore[no-any-return]
    if places.source is None and sys.stdin is None:  # another file may have its number by now
        raise BadInput("standard input is closed", right="name a file with -i")
    replay = None if places.pipe is None else places.pipe == Pipe.replay
    return FileSource(places.source, places.csv, wake, replay, check)


def _sink(places: Places, resuming: bool) -> Sink:
    from closeknit.streams.sinks import FileSink, PipeSink

    if isinstance(places.output, Address):
        return _connect_sink(places, places.output, resuming)
    if places.to_file:
        return FileSink(places.output, places.csv_out)
    if places.output == STANDARD:
        if sys.stdout is None:  # another file may have its number by now
            raise BadInput("standard output is closed", right="name a file with -o")
        return PipeSink(1, places.csv_out)
    handle = os.open(places.output, os.O_WRONLY)
    try:
        return PipeSink(handle, places.csv_out)
    finally:
        os.close(handle)


def _connect_sink(places: Places, output: Address, resuming: bool) -> Sink:
    sink: Any = output.connector.sink(output.url)
    if not resuming and sink.begun:
        if not places.force:
            right = "choose another one, or use --force to replace it"
            raise BadInput("it is not empty", file=sink.place, right=right)
        sink.empty()  # before the first checkpoint: whatever it holds later is our own
    return sink  # type: ignore[no-any-return]


def _refuse_older(places: Places) -> None:
    """Refuse files that belong to another stream."""
    for path in (Path(str(places.output)) if places.to_file else STANDARD, places.rejects):
        if path is not None and path != STANDARD and not places.force and os.path.lexists(path) and os.path.getsize(path):
            raise BadInput("it exists already", file=path, right="choose another name, or use --force to replace it")


def _refuse_shared_folder(output: Path, private: dict[str, Path | None]) -> None:
    """Refuse a private file in the folder of the output, which is public."""
    folder = Path(os.path.realpath(output)).parent
    for option, path in private.items():
        if path is not None and Path(os.path.realpath(path)).is_relative_to(folder):
            right = "give the output a folder of its own, and keep private files elsewhere"
            raise BadInput(f"{option} is in the folder of the output", file=path, right=right)


def _input_format(
    requested: Recipe, source: Path | Address | None, format: Lines | None, csv: CsvFormat | None
) -> CsvFormat | None:
    """Return the CSV format of the input; None for NDJSON."""
    from closeknit.io.csv import CsvFormat

    if isinstance(source, Address) and (format or csv):
        raise BadInput(f"rows from {source.scheme} have no file format", right="leave the options for files out")
    suffix = "" if source is None else source.suffix.lower()
    if suffix == ".gz":
        raise BadInput("a stream cannot resume within a compressed file", file=source, right="decompress it first")
    if format == Lines.ndjson or (format is None and suffix not in CSV_SUFFIXES and csv is None):
        return None
    usual = CsvFormat(delimiter=None if suffix == ".txt" else "\t" if suffix in (".tsv", ".tab") else ",")
    return csv or requested.csv or usual


@contextmanager
def _wake_on_signals() -> Iterator[int]:
    """Yield a file descriptor that becomes readable when a signal arrives."""
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    before = signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    try:
        yield wake
    finally:
        signal.set_wakeup_fd(before)
        os.close(wake)
        os.close(waker)


@contextmanager
def _signals() -> Iterator[Callable[[], bool]]:
    """Yield whether SIGTERM or SIGINT has arrived; a second one ends the process as usual."""
    requested: list[int] = []
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}

    def stop(number: int, frame: object) -> None:
        requested.append(number)
        for each, usual in before.items():
            signal.signal(each, usual)

    for each in before:
        signal.signal(each, stop)
    try:
        yield lambda: bool(requested)
    finally:
        for each, usual in before.items():
            signal.signal(each, usual)


class Watch:
    """Reports progress: a line at a terminal, a private JSON file, and the certificate of the published rows."""

    def __init__(self, counters: Path | None, certificate: Path | None, every: int) -> None:
        self._counters, self._certificate, self._every = counters, certificate, every
        self._written, self._sentence = 0, 0.0
        self._status: Any = None

    def __enter__(self) -> Watch:
        if sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(stderr=True).status("waiting for rows")
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def __call__(self, running: StreamRun, saved: bool) -> None:
        rows = running.stream.counters.rows_in
        if saved or rows - self._written >= self._every:
            self.write(running)
        if self._status is not None and time.monotonic() - self._sentence > 0.2:
            self._status.update(_sentence(running))
            self._sentence = time.monotonic()

    def write(self, running: StreamRun) -> None:
        """Write the files."""
        from closeknit.io.folders import write_whole

        self._written = running.stream.counters.rows_in
        if self._certificate is not None:
            write_whole(self._certificate, running.stream.certificate.to_json().encode())
        if self._counters is not None:
            counters = running.stream.counters
            mean = counters.delay_sum / counters.rows_out if counters.rows_out else 0.0
            record = {**counters.record(), "delay_mean": mean, "set_aside": running.set_aside}
            write_whole(self._counters, (json.dumps(record, indent=2) + "\n").encode(), 0o600)


def _sentence(running: StreamRun) -> str:
    counted = running.stream.counters.record()
    text = "rows in {rows_in:,}, out {rows_out:,}, pending {pending:,}, suppressed {suppressed:,}".format(**counted)
    aside = f", set aside {running.set_aside:,}" if running.set_aside else ""
    delays = f"delay at most {counted['delay_most']:,}, mean {counted['delay_sum'] / max(counted['rows_out'], 1):,.1f} rows"
    faults = "".join(f"; {fault}" for fault in running.stream.counters.list_faults())
    return f"{text}{aside}; {delays}; loss {counted['loss']:.4f}; batches {counted['batches']:,}{faults}"


def describe_end(running: StreamRun, ended: bool, idle: bool, checkpoint: Path | None) -> str:
    """Return the last line on stderr."""
    if not ended:
        return f"stopped; {_sentence(running)}; to resume, run the same command with --checkpoint {checkpoint}"
    return _sentence(running) + ("; this stream had ended before: choose another --checkpoint for a new one" if idle else "")
