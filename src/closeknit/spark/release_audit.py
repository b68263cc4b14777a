"""The audit of a release on Spark: its cells are coded as they are written, and judged where they are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from closeknit.core.audit import Recomputation
from closeknit.core.certificate import WorstClass
from closeknit.core.columns import Column, Columns
from closeknit.core.combined_secrets import Secret
from closeknit.core.errors import BadInput, refuse_empty, suggest_name
from closeknit.core.model import Model
from closeknit.core.reading import secret_codes, without_markers
from closeknit.core.schema import Schema
from closeknit.io.batches import Block, block_from, cells_in, encode_block
from closeknit.io.csv import CsvFormat
from closeknit.spark.coding import ValueCounts, count_values
from closeknit.spark.content_hash import content_hash_of, offsets
from closeknit.spark.judging import Judge
from closeknit.spark.maps import quote_name
from closeknit.spark.packed_frame import PackedFrame
from closeknit.spark.session import is_spark_frame, read_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def release_frame(spark: SparkSession, data: object, csv: CsvFormat | None = None) -> DataFrame:
    """A release in its written order: the files of a folder one after the other, by name."""
    frame = read_frame(spark, data, csv)
    files = [] if is_spark_frame(data) else sorted(frame.inputFiles())  # as URLs, in which a space is %20
    if len(files) < 2:
        return frame
    requested = csv or (CsvFormat() if str(os.fspath(data)).rstrip("/").endswith(".csv") else None)  # type: ignore[call-overload]
    return reduce(lambda one, other: one.unionByName(other), [read_frame(spark, unquote(file), requested) for file in files])


def count_cells(frame: DataFrame, schema: Schema) -> dict[str, ValueCounts]:
    """The distinct cells of every judged column, and their rows."""
    for name in (*schema.quasi, *schema.sensitive):
        if name not in frame.columns:
            raise BadInput("is not in the release", column=name, right=suggest_name(name, frame.columns))
    names = list(dict.fromkeys([*schema.quasi, *schema.sensitive]))
    found = count_values(PackedFrame.of(frame.select(*map(quote_name, names))), names)
    refuse_empty(next(iter(found.values())).rows, what="the release")
    return found


def list_values(frame: DataFrame, found: dict[str, ValueCounts]) -> Columns:
    """The columns of a release; judged columns have each distinct value once."""
    longest = max(len(counted.values) for counted in found.values())
    nothing = Column(np.empty(0, dtype=object), np.full(longest, -1, dtype=np.int32))
    columns = {name: _once(found[name], longest) if name in found else nothing for name in frame.columns}
    return Columns(columns, longest)


def _once(counted: ValueCounts, longest: int) -> Column:
    codes = np.full(longest, -1, dtype=np.int32)
    codes[: len(counted.values)] = np.arange(len(counted.values))
    return Column(counted.values, codes)


def content_hash(frame: DataFrame) -> str:
    """The content hash of the same release in one file."""
    names = list(frame.columns)
    kept = PackedFrame.of(frame).each(lambda block: encode_block(cells_in(block, names))).persist()
    found = content_hash_of(kept, lambda block: cells_in(block, names), names, offsets(kept))
    kept.unpersist()
    return found


def measure_release(
    frame: DataFrame,
    schema: Schema,
    models: Sequence[Model],
    joint: Model | None,
    suppressed: int,
    found: dict[str, ValueCounts],
) -> Recomputation:
    """Judge every guarantee on the cells, with class sizes and loss.

    Args:
        frame: the release.
        schema: of its columns.
        models: the guarantees.
        joint: closeness of several sensitive attributes together, if it is measured.
        suppressed: the number of suppressed rows.
        found: the result of `count_cells`.
    """
    cells = {name: Column(c.values, np.append(np.arange(len(c.values)), -1).astype(np.int32)) for name, c in found.items()}
    rows = {name: np.append(counted.counts, counted.none) for name, counted in found.items()}
    quasi = {name: without_markers(cells[name], schema.missing) for name in schema.quasi}
    secrets = {name: secret_codes(cells[name], name, schema) for name in schema.sensitive}
    references: dict[Secret, NDArray[np.int64]] = {}
    for name, (leaves, domain) in secrets.items():
        shown = leaves >= 0
        references[name] = np.bincount(leaves[shown], rows[name][shown], domain.size + 1).astype(np.int64)
    coded = _encode_frame(frame, found, schema).persist()
    judge = Judge(schema, models, quasi, rows, secrets, references).join(coded, joint)
    measured = judge.measure(coded, next(iter(found.values())).rows, suppressed)
    coded.unpersist()
    every = {name: (domain, judge.references[name]) for name, domain in judge.domains.items()}
    return Recomputation(measured.certify(schema, {}), every, lambda _, worst, over: _rows_of(frame, schema, worst))


def _encode_frame(frame: DataFrame, found: dict[str, ValueCounts], schema: Schema) -> PackedFrame:
    """Rows as q0, q1, ... and s0, s1, ...: the place of each cell among the values of its column, -1 if it is empty."""
    places = {
        **{f"q{j}": name for j, name in enumerate(schema.quasi)},
        **{f"s{j}": name for j, name in enumerate(schema.sensitive)},
    }
    code_of = {name: {value: code for code, value in enumerate(counted.values.tolist())} for name, counted in found.items()}
    shared = frame.sparkSession.sparkContext.broadcast(code_of)

    def look_up_codes(block: Block) -> Block:
        columns, codes = cells_in(block, list(shared.value)), {}
        for place, name in places.items():
            known = [*(shared.value[name][value] for value in columns[name].values.tolist()), -1]
            codes[place] = np.array(known, dtype=np.int32)[columns[name].codes]
        return block_from(codes)

    return PackedFrame.of(frame.select(*map(quote_name, found))).each(look_up_codes)


def _rows_of(frame: DataFrame, schema: Schema, worst: WorstClass) -> int:
    """The number of rows with the cells of a class."""
    from pyspark.sql import functions as F

    if set(worst.cells) != set(schema.quasi):
        return 0
    for name, cell in worst.cells.items():
        frame = frame.filter(F.coalesce(F.col(quote_name(name)).cast("string"), F.lit("")) == cell)
    return frame.count()
