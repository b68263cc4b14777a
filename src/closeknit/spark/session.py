"""The door to Spark: a session that is there, or one for this machine or a cluster; frames in; its errors as sentences."""

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

BATCH = 65_536  # rows of an Arrow batch: kernels like them larger than Spark's 10,000
BYTES = "64m"  # of an Arrow batch: packs are large
MACHINE = "local[*]"
MASTER = re.compile(r"local(\[(\d+|\*)(, *\d+)?\])?|local-cluster\[.+\]|spark://[^\s/]+:\d+|yarn|k8s://\S+")
DAEMON = "closeknit.spark.daemon"
_CSV = r"\.(csv|tsv|tab|txt)(\.gz)?/*$"
OUR_ERRORS = f"{BadInput.__module__}."
OURS = re.compile(rf"^{re.escape(OUR_ERRORS)}(BadInput|Unsatisfiable): (.+)$", re.M)
RAGGED = "MALFORMED_RECORD_IN_PARSING"


def is_spark_frame(data: object) -> bool:
    """Whether somebody has made a Spark frame; no pyspark is imported to find out.

    >>> is_spark_frame([1, 2])
    False
    """
    module = sys.modules.get("pyspark.sql")
    return module is not None and isinstance(data, module.DataFrame)


def session(master: str | None = None) -> SparkSession:
    """The session that is active, or a new one at `master` (this machine, where none is named)."""
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError:
        raise BadInput("pyspark is not installed", right="pip install 'closeknit[spark]'") from None
    if master is not None and not MASTER.fullmatch(master):  # Java would tell it in a trace
        right = "it is local[2], local[*], spark://host:port, yarn or k8s://..."
        raise BadInput(f"{master!r} is not the address of a Spark cluster", right=right)
    active = SparkSession.getActiveSession()
    if active is not None and master is None:
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # executors must find the same packages
    made = SparkSession.builder.appName("closeknit").master(master or MACHINE).config("spark.ui.showConsoleProgress", "false")
    if (master or MACHINE).startswith("local"):
        for name in ("spark.driver.host", "spark.driver.bindAddress"):
            made = made.config(name, "127.0.0.1")
        made = (
            made.config("spark.python.daemon.module", DAEMON)
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", str(2 * (os.cpu_count() or 2)))
            .config("spark.sql.adaptive.enabled", "false")  # what is shuffled here says itself how many partitions it wants
        )
    try:
        found = made.getOrCreate()
    except (PySparkException, RuntimeError, OSError) as error:
        right = "install Java 17 or newer (Debian: openjdk-17-jre-headless), and check the master's address"
        raise BadInput(f"Spark does not start ({str(error).splitlines()[0]})", right=right) from None
    found.sparkContext.setLogLevel("FATAL")  # errors come as sentences
    found.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(BATCH))
    found.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", BYTES)
    return found


def read_frame(spark: SparkSession, data: Any, csv: CsvFormat | None = None) -> DataFrame:
    """A Spark frame as it is; a path as Spark reads it: CSV with all cells as text, or Parquet; else the name of a table."""
    if is_spark_frame(data):
        frame: DataFrame = data
        return frame
    if not isinstance(data, str | os.PathLike):
        right = "give a Spark frame, a path or the name of a table; or leave the engine out"
        raise BadInput(f"a {type(data).__name__} is not what Spark reads", right=right)
    text = os.fspath(data)
    if csv is not None and (csv.decimal not in (None, ".") or csv.thousands):
        what = "Spark reads numbers with a decimal point and without thousands separators only"
        raise BadInput(what, file=text, right="write the numbers so")
    if csv is not None or re.search(_CSV, text):
        usual = "\t" if re.search(r"\.(tsv|tab)(\.gz)?$", text) else ","
        delimiter, encoding = (csv.delimiter or usual, csv.encoding) if csv else (usual, None)
        with translate_errors(text):
            # whole lines, else one that is too short passes where its end is not read
            frame = spark.read.option("columnPruning", "false").csv(
                text, header=True, sep=delimiter, encoding=encoding, quote='"', escape='"', enforceSchema=False, mode="FAILFAST"
            )
            return _refuse_bad_bytes(frame) if encoding is None else frame
    with translate_errors(text):
        return spark.table(text) if is_table(text) else spark.read.parquet(text)


def _refuse_bad_bytes(frame: DataFrame) -> DataFrame:
    """The same frame, which refuses bytes that are no UTF-8: Spark would make one sign of each, and one value of many."""
    from pyspark.sql import functions as F

    def cell(name: str) -> Any:
        bad = BadInput("bytes cannot be read as utf-8", column=name, right="name the encoding, e.g. latin-1 or cp1252")
        found = F.col(quote_name(name))
        return F.when(found.contains("\ufffd"), F.raise_error(f"\n{OUR_ERRORS}BadInput: {bad}\n")).otherwise(found).alias(name)

    return frame.select(*map(cell, frame.columns))


def count_repeats(frame: DataFrame, name: str, missing: Sequence[str]) -> tuple[int, int]:
    """Rows that repeat the identifier of another row, and all rows.

    Missing identifiers are nobody's: they repeat nothing.
    """
    from pyspark.sql import functions as F

    text = F.col(quote_name(name)).cast("string")
    nothing = [*missing, *(["NaN"] if frame.schema[name].dataType.simpleString() in ("float", "double") else [])]
    said = F.when((F.trim(text) != "") & ~text.isin(nothing), text)
    found = frame.agg(F.count(said), F.countDistinct(said), F.count(F.lit(1))).first()
    filled, distinct, rows = found or (0, 0, 0)
    return filled - distinct, rows


def find_formulas(frame: DataFrame, names: Sequence[str]) -> list[str]:
    """Of these columns those with a text that a spreadsheet may run."""
    from pyspark.sql import functions as F

    texts = [name for name in names if frame.schema[name].dataType.simpleString() == "string"]
    found = frame.agg(*(F.max(F.col(quote_name(name)).rlike(FORMULA)) for name in texts)).first() if texts else None
    return [name for name, there in zip(texts, found or (), strict=True) if there]


def is_table(text: str) -> bool:
    """Whether this is the name of a table of Spark's catalogue rather than a path.

    >>> is_table("warehouse.patients"), is_table("patients.parquet"), is_table("hdfs:///patients")
    (True, False, False)
    """
    return not re.search(r"[/\\]|\.(parquet|pq)$", text) and not re.search(_CSV, text) and not os.path.exists(text)


@contextmanager
def translate_errors(file: object = None) -> Iterator[None]:
    """What goes wrong in Spark, as a sentence instead of a trace of Java: ours where an executor said one, else Spark's."""
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
            raise BadInput("a line of the CSV has not as many cells as its header", file=file, right=right) from None
        causes = re.findall(r"^Caused by: [\w.$]+: (.+)$", text, re.M)
        said = causes[-1] if causes else _first_sentence(text)
        raise BadInput(f"Spark gave up: {said}", right="its log tells more") from None


def _rebuild_error(kind: str, words: str) -> BadInput | Unsatisfiable:
    """An error that an executor raised, again: its words crossed from there as text."""
    if kind == "BadInput":
        return BadInput(words)
    requested, _, rest = words.partition(f" {Unsatisfiable.verdict}: ")
    reachable, _, hint = rest.partition("; ")
    return Unsatisfiable(requested, reachable, hint)


def _first_sentence(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[0].strip() if lines else "no reason was given"
