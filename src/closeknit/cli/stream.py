"""The command `closeknit stream`: reads rows and publishes them in batches until the input ends."""

from __future__ import annotations

import os
import stat
import sys
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from closeknit.cli.command_errors import handle_errors, print_stderr
from closeknit.cli.csv_options import NO_CSV, CsvOptions
from closeknit.cli.options import Engine, expand_groups
from closeknit.cli.stop_signals import wake_on_signals, watch_signals
from closeknit.cli.stream_addresses import Address, TableAddress, place_of
from closeknit.cli.stream_options import (
    CertificateFile,
    Checkpoint,
    CountersFile,
    Every,
    Flush,
    Input,
    InputFormat,
    InputTable,
    Lines,
    Output,
    OutputFormat,
    OutputTable,
    Pipe,
    PipeKind,
    RejectsFile,
    Replace,
    Strict,
)
from closeknit.cli.stream_spark import NO_SPARK, SparkOptions, SparkPlaces, refuse_options, run_on_spark
from closeknit.cli.stream_watch import Watch, describe_end
from closeknit.core.errors import BadInput

if TYPE_CHECKING:
    from closeknit.api.recipe import Recipe
    from closeknit.core.schema import Schema
    from closeknit.io.csv import CsvFormat
    from closeknit.streams.arrival_order import ArrivalOrder
    from closeknit.streams.sinks import Sink
    from closeknit.streams.sources import Source
    from closeknit.streams.stream_run import StreamRun

STANDARD = Path("-")
NOT_ON_SPARK = ("has no effect with --engine spark", "leave it out")
CSV_SUFFIXES = (".csv", ".tsv", ".tab", ".txt")


@expand_groups
def stream(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE", help="A recipe with the key 'stream'.")],
    input: Input = None,
    output: Output = None,
    input_table: InputTable = None,
    output_table: OutputTable = None,
    input_format: InputFormat = None,
    output_format: OutputFormat = None,
    written: CsvOptions = NO_CSV,
    checkpoint: Checkpoint = None,
    every: Every = 100_000,
    pipe: PipeKind = None,
    counters: CountersFile = None,
    certificate: CertificateFile = None,
    rejects: RejectsFile = None,
    strict: Strict = False,
    force: Replace = False,
    engine: Engine = None,
    on_spark: SparkOptions = NO_SPARK,
    flush: Flush = False,
) -> None:
    """Read rows as NDJSON or CSV and publish them in batches that meet a recipe's guarantees, within its delay.

    A file, Redis or PostgreSQL gets each row exactly once, even if the process is killed and restarted with its checkpoint. On
    standard output and in pipes each batch is a line with its number: after a restart it may be repeated, with the same number.
    SIGTERM and SIGINT save a checkpoint and stop; without --checkpoint they flush the pending rows and stop.

    \b
    closeknit stream recipe.yaml < in.ndjson > out.ndjson
    closeknit stream recipe.yaml -i in.csv -o out/rows.csv --checkpoint home/checkpoint --rejects home/rejects.ndjson
    closeknit stream recipe.yaml -i 'redis://localhost/0/in?group=g&consumer=c' -o redis://localhost/0/out --checkpoint home/ck
    closeknit stream recipe.yaml -i '${CLINIC}' --input-table patients -o '${CLINIC}' --output-table out --checkpoint home/ck
    closeknit stream recipe.yaml --engine spark -i inbox/ -o out/ --checkpoint home/ck --by age --shards 8
    """
    with handle_errors(), ExitStack() as stack:
        from closeknit.api.distributed import wants_spark
        from closeknit.api.recipe import Recipe

        requested = Recipe.read(recipe)
        if requested.stream is None:
            raise BadInput("the recipe has no stream", file=recipe, right="give it the key stream: {k: 100, delta: 10000}")
        home, csv = None if checkpoint is None else Path(checkpoint), written.format
        if wants_spark(requested.data if input is None else None, engine, on_spark.master):
            refuse_options({"pipe": pipe, "rejects": rejects, "strict": strict, "force": force}, *NOT_ON_SPARK)
            refuse_options({"input_table": input_table, "output_table": output_table}, *NOT_ON_SPARK)
            named = input if input is not None or requested.data is None else str(requested.data)
            spark_places = SparkPlaces(named, output, checkpoint, input_format, output_format, csv or requested.csv)
            _refuse_shared_folder(Path(output or "") / "part", {"--checkpoint": home, "--counters": counters})
            run_on_spark(requested, spark_places, on_spark, flush, counters, certificate)
            return
        on_spark.refuse_given()
        source, target = _origin(requested, input, input_table), _target(requested, output, output_table)
        csv = _input_format(requested, source, input_format, csv)
        places = Places(source, csv, target, output_format, home, rejects, pipe, force, flush)
        places.refuse_same({"the recipe": recipe, "--counters": counters, "--certificate": certificate})
        if places.to_file:
            _refuse_shared_folder(Path(str(target)), {"--checkpoint": home, "--counters": counters, "--rejects": rejects})
        running = _prepare_run(requested, places, stack)
        watch = Watch(counters, certificate, every)
        running.every, running.strict, running.watch = every, strict, watch
        _run(running, watch, checkpoint, stack)
        if running.first_aside and rejects is None:
            print_stderr(f"{running.first_aside}; --rejects FILE keeps all such lines with their reasons")


def _run(running: StreamRun, watch: Watch, checkpoint: str | None, stack: ExitStack) -> None:
    watch.write(running)  # refuses a file that cannot be written before the first checkpoint
    if not running.number:
        running.begin()
    running.stopping = stack.enter_context(watch_signals())
    idle = running.stream.ended
    with watch:
        ended = running.run()
    watch.write(running)
    print_stderr(describe_end(running.stream, not ended, idle, checkpoint, running.set_aside))


def _origin(recipe: Recipe, input: str | None, table: str | None) -> Path | Address | None:
    """Where rows come from; None is standard input."""
    named = (recipe.data or STANDARD) if input is None else input
    return None if str(named) == str(STANDARD) else place_of(named, table, "--input-table")


def _target(recipe: Recipe, output: str | None, table: str | None) -> Path | Address:
    """Where rows go to."""
    return place_of((recipe.target or STANDARD) if output is None else output, table, "--output-table")


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
    flush: bool

    def __post_init__(self) -> None:
        if self.flush and not isinstance(self.source, TableAddress):
            raise BadInput("--flush is for Spark and databases", right="leave it out: the end of the input flushes")
        if self.output_format == Lines.parquet:
            raise BadInput("Parquet files are written with --engine spark only", right="use ndjson or csv")
        if isinstance(self.output, Address) and self.csv_out:
            raise BadInput(f"rows cannot be sent to {self.output.scheme} as CSV", right="leave --output-format out")
        if isinstance(self.source, TableAddress) and self.checkpoint is None:
            what = "what was read from a database is noted in a checkpoint, and there is none"
            raise BadInput(what, right="name a private folder with --checkpoint")
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


def _prepare_run(requested: Recipe, places: Places, stack: ExitStack) -> StreamRun:
    """Open everything, and position it where the stream resumes; a new one is yet to begin."""
    from closeknit.streams.checkpoint import refuse_other
    from closeknit.streams.checkpoint_folder import CheckpointFolder
    from closeknit.streams.sinks import Rejects
    from closeknit.streams.stream_run import StreamRun

    assert requested.stream is not None
    stream = requested.build_stream()
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
    order = requested.stream.order(requested.schema)
    source = stack.enter_context(closing(_source(places, stack.enter_context(wake_on_signals()), order)))
    sink = stack.enter_context(closing(_sink(places, requested.schema, resuming)))
    rejects = stack.enter_context(closing(Rejects(places.rejects)))
    running = StreamRun(stream, source, sink, order, rejects, time.time, folder)
    if resuming:
        running.resume(marks, ticks)
    return running


def _source(places: Places, wake: int, order: ArrivalOrder) -> Source:
    from closeknit.streams.sources import FileSource

    if isinstance(places.source, Address):
        return places.source.open_source(order, places.flush)  # type: ignore[no-any-return]
    if places.source is None and sys.stdin is None:  # another file may have its number by now
        raise BadInput("standard input is closed", right="name a file with -i")
    replay = None if places.pipe is None else places.pipe == Pipe.replay
    return FileSource(places.source, places.csv, wake, replay, order.check_header)


def _sink(places: Places, schema: Schema, resuming: bool) -> Sink:
    from closeknit.streams.sinks import FileSink, PipeSink

    if isinstance(places.output, Address):
        return _connect_sink(places, places.output.open_sink(schema), resuming)
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


def _connect_sink(places: Places, sink: Any, resuming: bool) -> Sink:
    if not resuming and sink.begun:
        if not places.force:
            right = "choose another one, or use --force to replace it"
            sink.close()
            named = f"the table '{places.output.database.table}'" if isinstance(places.output, TableAddress) else "it"
            raise BadInput(f"{named} is not empty", file=sink.place, right=right)
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

    if format == Lines.parquet:
        raise BadInput("Parquet files are read with --engine spark only", right="use ndjson or csv")
    if isinstance(source, Address) and (format or csv):
        raise BadInput(f"rows from {source.scheme} have no file format", right="leave the options for files out")
    suffix = "" if source is None else source.suffix.lower()
    if suffix == ".gz":
        raise BadInput("a stream cannot resume within a compressed file", file=source, right="decompress it first")
    if format == Lines.ndjson or (format is None and suffix not in CSV_SUFFIXES and csv is None):
        return None
    usual = CsvFormat(delimiter=None if suffix == ".txt" else "\t" if suffix in (".tsv", ".tab") else ",")
    return csv or requested.csv or usual
