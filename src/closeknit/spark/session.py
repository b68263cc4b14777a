"""Access to Spark: an active session, or a new one for this machine or a cluster; reading frames; errors as sentences."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from closeknit.core.errors import BadInput, Unsatisfiable
from closeknit.core.formulas import FORMULA
from closeknit.io.csv import CsvFormat
from closeknit.spark.maps import quote_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH = 65_536  # rows of an Arrow batch: kernels are faster than with Spark's 10,000
BYTES = "64m"  # of an Arrow batch: packs are large
MACHINE = "local[*]"
MASTER = re.compile(r"local(\[(\d+|\*)(, *\d+)?\])?|local-cluster\[.+\]|spark://[^\s/]+:\d+|yarn|k8s://\S+")
DAEMON = "closeknit.spark.daemon"
_CSV = r"\.(csv|tsv|tab|txt)(\.gz)?/*$"
OUR_ERRORS = f"{BadInput.__module__}."
OURS = re.compile(rf"^{re.escape(OUR_ERRORS)}(BadInput|Unsatisfiable): (.+)$", re.M)
RAGGED = "MALFORMED_RECORD_IN_PARSING"


def is_spark_frame(data: object) -> bool:
    """Whether this is a Spark frame; does not import pyspark.

    >>> is_spark_frame([1, 2])
    False
    """
    module = sys.modules.get("pyspark.sql")
    return module is not None and isinstance(data, module.DataFrame)


def session(master: str | None = None) -> SparkSession:
    """The active session, or a new one.

    Args:
        master: the address of a cluster; by default the active session, or this machine.
    """
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError:
        raise BadInput("pyspark is not installed", right="pip install 'closeknit[spark]'") from None
    if master is not None and not MASTER.fullmatch(master):  # otherwise Java prints a stack trace
        right = "write local[2], local[*], spark://host:port, yarn or k8s://..."
        raise BadInput(f"{master!r} is not the address of a Spark cluster", right=right)
    active = SparkSession.getActiveSession()
    if active is not None and master is None:
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # executors must find the same packages
    builder = (
        SparkSession.builder.appName("closeknit").master(master or MACHINE).config("spark.ui.showConsoleProgress", "false")
    )
    if (master or MACHINE).startswith("local"):
        for name in ("spark.driver.host", "spark.driver.bindAddress"):
            builder = builder.config(name, "127.0.0.1")
        builder = (
            builder.config("spark.python.daemon.module", DAEMON)
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", str(2 * (os.cpu_count() or 2)))
            .config("spark.sql.adaptive.enabled", "false")  # each shuffle here names its number of partitions
        )
    try:
        found = builder.getOrCreate()
    except (PySparkException, RuntimeError, OSError) as error:
        right = "install Java 17 or newer (Debian: openjdk-17-jre-headless), and check the master's address"
        raise BadInput(f"Spark does not start ({str(error).splitlines()[0]})", right=right) from None
    found.sparkContext.setLogLevel("FATAL")  # errors are raised as sentences
    found.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(BATCH))
    found.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", BYTES)
    return found


def read_frame(spark: SparkSession, data: Any, csv: CsvFormat | None = None) -> DataFrame:
    """Read a table with Spark.

    Args:
        spark: the session.
        data: a Spark frame, the path of a CSV (read as text) or Parquet file, or the name of a table.
        csv: the format of a CSV file.
    """
    if is_spark_frame(data):
        frame: DataFrame = data
        return frame
    if not isinstance(data, str | os.PathLike):
        right = "give a Spark frame, a path or the name of a table; or leave the engine out"
        raise BadInput(f"Spark cannot read a {type(data).__name__}", right=right)
    text = os.fspath(data)
    if csv is not None or re.search(_CSV, text):
        return read_csv(spark.read, text, csv)
    with translate_errors(text):
        return spark.table(text) if is_table(text) else spark.read.parquet(text)


def read_csv(reader: Any, text: str, csv: CsvFormat | None = None) -> DataFrame:
    """Read CSV files as text.

    Args:
        reader: `spark.read`, or `spark.readStream` with its schema.
        text: a file or folder.
        csv: the format of the files.
    """
    if csv is not None and (csv.decimal not in (None, ".") or csv.thousands):
        what = "Spark reads numbers with a decimal point and without thousands separators only"
        raise BadInput(what, file=text, right="convert the numbers, or anonymize without an engine")
    usual = "\t" if re.search(r"\.(tsv|tab)(\.gz)?$", text) else ","
    delimiter, encoding = (csv.delimiter or usual, csv.encoding) if csv else (usual, None)
    with translate_errors(text):
        # whole lines: otherwise a line that is too short passes if its end is not read
        frame = reader.option("columnPruning", "false").csv(
            text, header=True, sep=delimiter, encoding=encoding, quote='"', escape='"', enforceSchema=False, mode="FAILFAST"
        )
        return refuse_bad_bytes(frame) if encoding is None else frame


def refuse_bad_bytes(frame: DataFrame) -> DataFrame:
    """A frame that refuses bytes that are not UTF-8: Spark replaces each by the same character, which merges values."""
    from pyspark.sql import functions as F

    def cell(name: str) -> Any:
        bad = BadInput("bytes cannot be read as utf-8", column=name, right="name the encoding, e.g. latin-1 or cp1252")
        found = F.col(quote_name(name))
        return F.when(found.contains("\ufffd"), F.raise_error(f"\n{OUR_ERRORS}BadInput: {bad}\n")).otherwise(found).alias(name)

    return frame.select(*map(cell, frame.columns))


def count_repeats(frame: DataFrame, name: str, missing: Sequence[str]) -> tuple[int, int]:
    """The rows that repeat the identifier of another row, and all rows; missing identifiers do not repeat.

    Args:
        frame: the table.
        name: the identifier.
        missing: missing-value codes.
    """
    from pyspark.sql import functions as F

    text = F.col(quote_name(name)).cast("string")
    nothing = [*missing, *(["NaN"] if frame.schema[name].dataType.simpleString() in ("float", "double") else [])]
    known = F.when((F.trim(text) != "") & ~text.isin(nothing), text)
    found = frame.agg(F.count(known), F.countDistinct(known), F.count(F.lit(1))).first()
    filled, distinct, rows = found or (0, 0, 0)
    return filled - distinct, rows


def find_formulas(frame: DataFrame, names: Sequence[str]) -> list[str]:
    """The columns among `names` with a text that a spreadsheet may execute."""
    from pyspark.sql import functions as F

    texts = [name for name in names if frame.schema[name].dataType.simpleString() == "string"]
    found = frame.agg(*(F.max(F.col(quote_name(name)).rlike(FORMULA)) for name in texts)).first() if texts else None
    return [name for name, there in zip(texts, found or (), strict=True) if there]


def is_table(text: str) -> bool:
    """Whether this names a table of Spark's catalogue rather than a path.

    >>> is_table("warehouse.patients"), is_table("patients.parquet"), is_table("hdfs:///patients")
    (True, False, False)
    """
    return not re.search(r"[/\\]|\.(parquet|pq)$", text) and not re.search(_CSV, text) and not os.path.exists(text)


@contextmanager
def translate_errors(file: object = None) -> Iterator[None]:
    """Raise errors of Spark as one sentence: ours if an executor raised one, else that of Spark; no Java stack trace."""
    from py4j.protocol import Py4JError
    from pyspark.errors import AnalysisException, PySparkException

    try:
        yield
    except AnalysisException as error:
        raise BadInput(_first_sentence(str(error)), file=file, right="name a file or table that Spark can read") from None
    except (PySparkException, Py4JError) as error:
        text = str(error)
        if ours := OURS.search(text):
            raise _rebuild_error(*ours.groups()) from None
        if RAGGED in text:
            right = "give every row as many cells as the header; cells with line breaks can only be read from Parquet"
            raise BadInput("a line of the CSV does not have as many cells as its header", file=file, right=right) from None
        causes = re.findall(r"^Caused by: [\w.$]+: (.+)$", text, re.M)
        cause = causes[-1] if causes else _first_sentence(text)
        raise BadInput(f"Spark failed: {cause}", right="see the log of Spark") from None


def _rebuild_error(kind: str, words: str) -> BadInput | Unsatisfiable:
    """The error that an executor raised, from its text."""
    if kind == "BadInput":
        return BadInput(words)
    requested, _, rest = words.partition(f" {Unsatisfiable.verdict}: ")
    reachable, _, hint = rest.partition("; ")
    return Unsatisfiable(requested, reachable, hint)


def _first_sentence(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[0].strip() if lines else "it gives no reason"
