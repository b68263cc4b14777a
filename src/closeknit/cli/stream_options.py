"""Options of `closeknit stream`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from closeknit.core.errors import suggest_name


class Lines(StrEnum):
    """How rows are written; Parquet on Spark only."""

    ndjson = "ndjson"
    csv = "csv"
    parquet = "parquet"


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


Input = Annotated[
    str | None,
    typer.Option(
        "-i",
        "--input",
        help="A file, named pipe, redis://... or postgresql://...; default: the recipe's data, or standard input.",
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        "-o", "--output", help="A file, named pipe, redis://... or postgresql://...; default: the recipe's, or standard output."
    ),
]
InputTable = Annotated[str | None, typer.Option(metavar="NAME", help="Table of the input database.")]
OutputTable = Annotated[str | None, typer.Option(metavar="NAME", help="Table of the output database.")]
InputFormat = Annotated[Lines | None, typer.Option(help="Default: by the suffix of the input, or ndjson; Spark: parquet.")]
OutputFormat = Annotated[Lines | None, typer.Option(help="Default: by the suffix of the output, or ndjson; Spark: parquet.")]
Checkpoint = Annotated[str | None, typer.Option(metavar="DIR", help="Private folder to resume from.")]
Every = Annotated[int, typer.Option(min=1, help="Rows between two checkpoints.")]
PipeKind = Annotated[
    Pipe | None,
    typer.Option(
        parser=parse_pipe, metavar="replay|resume", help="After a restart: whether the pipe replays from the start or resumes."
    ),
]
CountersFile = Annotated[Path | None, typer.Option(metavar="FILE", help="Private JSON file for the counters.")]
CertificateFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Certificate of the published rows, rewritten at each checkpoint.")
]
RejectsFile = Annotated[Path | None, typer.Option(metavar="FILE", help="Private file for lines that are not rows.")]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at a line that is not a row.")]
Replace = Annotated[bool, typer.Option("--force", help="Replace the output of an earlier stream.")]
Flush = Annotated[bool, typer.Option("--flush", help="Spark and databases: no more rows arrive; end the stream.")]
