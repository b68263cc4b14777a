"""Arriving rows of a stream on Spark: a folder of Parquet, CSV or NDJSON files, or JSON texts such as the values of Kafka.

A file source of Spark needs its columns before the first row. They are read from the files that are there when the stream
begins, and kept in the checkpoint: a resumed stream reads the same columns, whatever is left in the folder. Parquet files keep
their types. Cells of CSV and NDJSON files are texts, read by the rules of streams on one machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from closeknit.core.errors import BadInput
from closeknit.io.batches import Block, read_lists, texts_block
from closeknit.io.csv import CsvFormat
from closeknit.io.ndjson import BadLine, row_of
from closeknit.spark.maps import Types, ddl, each_batch
from closeknit.spark.session import read_csv, read_frame, refuse_bad_bytes, translate_errors
from closeknit.streams.arrival_order import ArrivalOrder
from closeknit.streams.lines import ArrivedRow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS = ("parquet", "csv", "ndjson")
ONE_FILE = "move a finished file into it, and start again: columns and types are read from the first file"


@dataclass(frozen=True)
class InputFolder:
    """A folder to which files are added; each is read once.

    Args:
        path: the folder, or an address that Spark can read.
        format: one of `FORMATS`.
        csv: the format of CSV files; None for the usual one.

    >>> InputFolder("inbox", "xml")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: inbox: files of 'xml' cannot be read; choose one of: parquet, csv, ndjson
    """

    path: str
    format: str
    csv: CsvFormat | None = None

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            right = f"choose one of: {', '.join(FORMATS)}"
            raise BadInput(f"files of '{self.format}' cannot be read", file=self.path, right=right)

    def read_columns(self, spark: SparkSession) -> str:
        """The columns of the files that are there, as Spark's DDL.

        Args:
            spark: the session.
        """
        if self.format == "ndjson":
            return "`value` string"
        from pyspark.errors import AnalysisException

        try:
            found = read_frame(spark, self.path, self.csv or CsvFormat() if self.format == "csv" else None)
        except BadInput as bad:
            if isinstance(bad.__context__, AnalysisException) and "UNABLE_TO_INFER_SCHEMA" in str(bad.__context__):
                raise BadInput(f"the folder has no {self.format} file", file=self.path, right=ONE_FILE) from None
            raise
        if not found.columns:
            raise BadInput(f"the folder has no {self.format} file", file=self.path, right=ONE_FILE)
        return ddl({field.name: field.dataType.simpleString() for field in found.schema})

    def open(self, spark: SparkSession, columns: str, order: ArrivalOrder) -> DataFrame:
        """A streaming frame of the rows.

        Args:
            spark: the session.
            columns: what `read_columns` found when the stream began.
            order: the columns of the stream, and those for position and time.
        """
        reader = spark.readStream.schema(columns)
        with translate_errors(self.path):
            if self.format == "parquet":
                return reader.parquet(self.path)
            if self.format == "ndjson":
                return decode_json(refuse_bad_bytes(reader.text(self.path)), "value", order)
            return type_order(read_csv(reader, self.path, self.csv), order)


def decode_json(frame: DataFrame, column: str, order: ArrivalOrder) -> DataFrame:
    """Rows from JSON objects, as text cells; a text that is not a row of this stream ends the query with a sentence.

    Args:
        frame: a frame with the texts.
        column: where they are, as text or bytes; empty ones are skipped.
        order: the columns of the stream, and those for position and time.
    """
    types = dict.fromkeys((*order.schema.identifier, *order.schema.used), "string")
    types |= _order_types(order)

    def decode_block(block: Block) -> Block | None:
        found = read_lists(block)
        texts = [text.encode() if isinstance(text, str) else text or b"" for text in found[column]]
        lines = [text for text in texts if text.strip()]
        return _cells_block([decode_row(line, order) for line in lines], types) if lines else None

    return each_batch(frame.select(column), decode_block, types)


def decode_row(line: bytes, order: ArrivalOrder) -> dict[str, Any]:
    """The cells of one JSON object, as texts; position and time as numbers.

    Args:
        line: the object.
        order: the columns of the stream, and those for position and time.

    >>> from closeknit.core.kinds import numeric
    >>> from closeknit.core.schema import Schema
    >>> order = ArrivalOrder(Schema(quasi={"age": numeric(0, 100)}), position="nr")
    >>> decode_row(b'{"age": 41, "nr": "7"}', order)
    {'age': '41', 'nr': 7}
    >>> decode_row(b'{"age": 41, "nr": "7", "shoe": 3}', order)
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: an arriving row is refused: 'shoe' has no role in the schema; correct or remove it, ...
    """
    try:
        return _type_cells(row_of(line), order)
    except BadLine as bad:
        raise _refuse_row(str(bad)) from None


def type_order(frame: DataFrame, order: ArrivalOrder) -> DataFrame:
    """Text cells; position and time become numbers.

    Args:
        frame: a frame of texts.
        order: the columns of the stream, and those for position and time.
    """
    order.check_header(frame.columns)
    types = dict.fromkeys(frame.columns, "string") | _order_types(order)

    def type_block(block: Block) -> Block:
        cells = read_lists(block)
        rows = [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]
        return _cells_block([_type_cells(row, order) for row in rows], types)

    return each_batch(frame, type_block, types) if _order_types(order) else frame


def _order_types(order: ArrivalOrder) -> Types:
    types = {order.position: "bigint", order.time: "double"}
    return {name: kind for name, kind in types.items() if name is not None}


def _type_cells(row: dict[str, Any], order: ArrivalOrder) -> dict[str, Any]:
    """The cells as texts; Spark sorts by position and time, so that no row is late here."""
    _, bad = ArrivalOrder(order.schema, order.position, order.time).check_rows([ArrivedRow(row, 1, 0)])
    if bad:
        raise _refuse_row(bad[0].why)
    cells: dict[str, Any] = {name: None if cell is None else str(cell) for name, cell in row.items()}
    cells |= {} if order.position is None else {order.position: int(row[order.position])}
    return cells | ({} if order.time is None else {order.time: order.time_of(row)})


def _refuse_row(why: str) -> BadInput:
    return BadInput(f"an arriving row is refused: {why}", right="correct or remove it, and start the command again")


def _cells_block(rows: Sequence[dict[str, Any]], types: Types) -> Block:
    numbers = {"bigint": np.int64, "double": np.float64}
    return texts_block(
        {
            name: [row[name] for row in rows] if kind == "string" else np.array([row[name] for row in rows], numbers[kind])
            for name, kind in types.items()
        }
    )
