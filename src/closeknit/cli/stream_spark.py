"""`closeknit stream --engine spark`: the same recipe as a query of Spark, from a folder of files to a folder of files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from closeknit.cli.command_errors import print_stderr
from closeknit.cli.options import Master
from closeknit.cli.stop_signals import watch_signals
from closeknit.cli.stream_watch import describe_counts, describe_end, write_counts
from closeknit.core.errors import BadInput

if TYPE_CHECKING:
    from closeknit.api.recipe import Recipe
    from closeknit.io.csv import CsvFormat
    from closeknit.streams.stream import Stream

By = Annotated[str | None, typer.Option(metavar="COLUMN", help="Spark: column that determines the shard of a row.")]
ShardsOption = Annotated[
    str | None, typer.Option("--shards", metavar="N", help="Spark: number of shards, or the numbers between them: 18,40,65.")
]
Late = Annotated[str | None, typer.Option(metavar="TIME", help="Spark: how late a row may arrive after its time, such as 10s.")]
TriggerOption = Annotated[
    str | None,
    typer.Option("--trigger", metavar="WHEN", help="Spark: available-now (default), once, or an interval: '10 seconds'."),
]


@dataclass(frozen=True)
class SparkOptions:
    """Options that only Spark has, as given on the command line."""

    master: Master = None
    by: By = None
    shards: ShardsOption = None
    late: Late = None
    trigger: TriggerOption = None

    def refuse_given(self) -> None:
        """Refuse them without the engine."""
        refuse_options(vars(self), "works with --engine spark only", "add --engine spark, or leave it out")


NO_SPARK = SparkOptions()


def refuse_options(given: Mapping[str, object], why: str, right: str) -> None:
    """Refuse the first option that has a value.

    Args:
        given: the options by name.
        why: what is wrong with it.
        right: what to do.

    >>> refuse_options({"pipe": None, "strict": True}, "has no effect here", "leave it out")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: --strict has no effect here; leave it out
    """
    for name, value in given.items():
        if value not in (None, False):
            raise BadInput(f"--{name.replace('_', '-')} {why}", right=right)


def read_shards(text: str | None) -> int | Sequence[float]:
    """The option `--shards`: a number, or the numbers between the shards.

    Args:
        text: what is given.

    >>> read_shards("8"), read_shards("18,40,65")
    (8, [18.0, 40.0, 65.0])
    """
    try:
        return 1 if text is None else [float(part) for part in text.split(",")] if "," in text else int(text)
    except ValueError:
        raise BadInput(f"--shards {text} cannot be read", right="write a number, or numbers: 18,40,65") from None


@dataclass(frozen=True)
class SparkPlaces:
    """Input, output and private files as given on the command line."""

    input: str | None
    output: str | None
    checkpoint: str | None
    input_format: str | None
    output_format: str | None
    csv: CsvFormat | None

    def __post_init__(self) -> None:
        for what, named, option in (("input", self.input, "-i"), ("output", self.output, "-o")):
            if named in (None, "-"):
                raise BadInput(f"Spark needs a folder of files as {what}", right=f"name it with {option}")
        if self.checkpoint is None:
            raise BadInput("Spark needs a checkpoint", right="name a private folder with --checkpoint")


def run_on_spark(
    requested: Recipe, places: SparkPlaces, options: SparkOptions, flush: bool, counters: Path | None, certificate: Path | None
) -> None:
    """Run the stream of a recipe as a query of Spark.

    Args:
        requested: the recipe.
        places: where rows come from and go to.
        options: how Spark runs it.
        flush: whether no more rows will arrive.
        counters: the private file of the counters.
        certificate: the file of the certificate.
    """
    from closeknit.api.streaming import read_late
    from closeknit.spark.session import session
    from closeknit.spark.stream_checkpoint import CheckpointLocation
    from closeknit.spark.stream_input import InputFolder
    from closeknit.spark.stream_job import AVAILABLE, StreamJob, read_trigger
    from closeknit.spark.stream_shards import Shards

    assert requested.stream and places.input and places.output
    stream = requested.build_stream()
    trigger = read_trigger(options.trigger or AVAILABLE)
    refuse_endless(stream, requested.stream.time, options.trigger or AVAILABLE, flush)
    shards = Shards.of(requested.schema, options.by, read_shards(options.shards))
    folder = InputFolder(absolute(places.input), places.input_format or "parquet", places.csv)
    spark = session(options.master)
    location = CheckpointLocation.at(spark, absolute(places.checkpoint or ""))
    order = requested.stream.order(requested.schema)
    written = places.output_format or "parquet"
    late = read_late(options.late)
    job = StreamJob(spark, stream, location, folder, absolute(places.output), written, order, shards, late)
    idle = location.ended
    with watch_signals() as stopping:
        done = idle or job.run(trigger, stopping)
        rest = job.flush() if done and flush else None  # also if it was killed the last time
    whole = job.sum_counters()
    write_counts(whole, counters, certificate)
    if rest is None:
        print_stderr(describe_end(whole, not idle, idle, places.checkpoint))
    else:
        print_stderr(f"{describe_counts(whole)}; the last rows are in {os.path.basename(rest)}/")


def absolute(place: str) -> str:
    """A path that does not depend on the folder in which Spark runs; an address as it is.

    Args:
        place: a path or an address.

    >>> absolute("hdfs://host/inbox"), os.path.isabs(absolute("inbox"))
    ('hdfs://host/inbox', True)
    """
    return place if "://" in place else os.path.abspath(place)


def refuse_endless(stream: Stream, time: str | None, trigger: str, flush: bool) -> None:
    """Refuse a trigger that never ends where an end is needed.

    Args:
        stream: the stream.
        time: the column with a row's time; None if there is none.
        trigger: when micro-batches begin.
        flush: whether no more rows will arrive.
    """
    if trigger == "available-now" and stream.timed and time is None:
        what = "with a delay in seconds, available-now does not end, because a row may always become due"
        raise BadInput(what, right="use --trigger once or an interval, or name the column of the time in the recipe")
    if flush and trigger not in ("once", "available-now"):
        right = "use --trigger available-now for the last run"
        raise BadInput(f"--flush ends a stream, and a query with --trigger '{trigger}' does not end", right=right)
