"""Anonymizing a table on Spark: encode, apply the method as it scales, write, sort, judge. No row reaches the driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Columns
from closeknit.core.combined_secrets import Secret
from closeknit.core.errors import BadInput
from closeknit.core.measurement import Measurement
from closeknit.core.method import Method, deals_by_rank
from closeknit.core.model import Model, joints
from closeknit.core.reading import secret_codes
from closeknit.core.schema import Schema
from closeknit.core.table import Form
from closeknit.forms.cell_labels import label_column
from closeknit.io.batches import Block
from closeknit.spark.coding import Coding, build_coding, encode_packs, read_packs
from closeknit.spark.content_hash import content_hash_of, offsets
from closeknit.spark.counting import write_by_counts, write_levels
from closeknit.spark.judging import Judge
from closeknit.spark.maps import Work
from closeknit.spark.packed_frame import PackedFrame
from closeknit.spark.person_marks import mark_persons
from closeknit.spark.ranking import write_by_ranks
from closeknit.spark.row_writing import Cells, WrittenPacks, render_columns, render_frame, sort_release, split_files
from closeknit.spark.sharding import write_by_shards

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, eq=False)
class SparkOutput:
    """Written rows, sorted and persisted, and what the driver knows of their cells."""

    coding: Coding
    ordered: PackedFrame
    places: dict[tuple[Any, ...], int]  # rows before each partition
    cells: Cells
    form: Form
    notes: tuple[str, ...]

    @property
    def columns(self) -> Columns:
        """Each written value at least once."""
        return self.cells.columns()

    @property
    def frame(self) -> DataFrame:
        """The release."""
        return render_frame(self.ordered, self.coding, self.cells)

    def split_files(self, as_text: bool = False) -> DataFrame:
        """The release with a partition for each file; files end at fixed ranks, which reveals nothing."""
        return render_frame(split_files(self.ordered, self.coding, self.places), self.coding, self.cells, as_text)

    def content_hash(self) -> str:
        """The content hash of the same release in a file."""
        shared = self.ordered.share((self.coding, self.cells))

        def render_block(block: Block) -> Columns:
            return render_columns(*shared.value, block)

        return content_hash_of(self.ordered, render_block, self.coding.head.schema.published, self.places)

    def measure(self, schema: Schema, models: Sequence[Model], joint: Model | None, suppressed: int = 0) -> Measurement:
        """Every guarantee, sizes and loss, judged on the written cells; `schema` is that of the published columns."""
        cells, coding = self.cells, self.coding
        quasi, counts = {}, {}
        for name, labels in cells.labels.items():
            quasi[name] = label_column(labels, np.arange(len(labels), dtype=np.int32))
            empty = np.array([label == "" for label in labels])
            counts[name] = np.append(cells.counts[name][~empty], cells.counts[name][empty].sum())
        secrets = {name: secret_codes(column, name, schema) for name, column in cells.shown.items()}
        references: dict[Secret, NDArray[np.int64]] = {
            name: np.bincount(leaves, coding.counts[name], domain.size + 1).astype(np.int64)
            for name, (leaves, domain) in secrets.items()
        }
        in_persons = coding.head.schema.person is not None
        judge = Judge(schema, models, quasi, counts, secrets, references, in_persons=in_persons)
        return judge.join(self.ordered, joint).measure(self.ordered, coding.rows, suppressed)


def refuse_unscaled(method: Method, schema: Schema, form: Form, suppresses: bool) -> None:
    """Refuse what needs all rows in one place, or cannot be repeated with the same result."""
    if method.clocked:
        what = f"{method.name} with a time limit cannot run on Spark: a repeated task must have the same result"
        raise BadInput(what, right="give proposals instead of seconds, or neither")
    if method.scale == "local":
        what = f"{method.name} cannot run on Spark: its guarantee is about one run over all rows"
        raise BadInput(what, right="anonymize without an engine, or choose another method, such as mondrian")
    if suppresses and (method.scale != "count" or form.suppressed != "removed"):
        what = (
            "on Spark rows can be suppressed by incognito only, which removes them: other methods need all rows to choose them"
        )
        raise BadInput(what, right="leave suppress out, choose incognito without a form, or anonymize without an engine")
    if schema.person is not None and method.scale == "count":
        what = f"{method.name} counts persons for every vector of levels, and Spark has counts of rows only"
        right = "choose another method, such as mondrian, or anonymize without an engine"
        raise BadInput(what, column=schema.person, right=right)
    if method.usual_form != "generalized" or form.name != "generalized":
        other = form.name if form.name != "generalized" else method.usual_form
        right = "without an engine one machine writes it; on Spark choose a method of generalized cells, such as mondrian"
        raise BadInput(f"the form '{other}' cannot be written on Spark: its buckets are numbered over all rows", right=right)
    if form.attested or form.list_columns(schema) != schema.published:
        right = "leave cells out, or anonymize without an engine"
        raise BadInput("numbers in place of ranges (cells=) cannot be written on Spark yet", right=right)


def encode_on_spark(
    frame: DataFrame, schema: Schema, models: Sequence[Model], part: Work | None = None, keep: bool = False
) -> tuple[Coding, PackedFrame]:
    """The coding of a whole frame, and its rows as codes; the rows that were read are persisted.

    Args:
        frame: the table.
        schema: roles and kinds of its columns.
        models: the guarantees.
        part: a step that drops rows as they are read.
        keep: whether the dictionaries are needed later.
    """
    read = read_packs(frame, schema)
    read = (read if part is None else read.each(part)).persist()
    coding = build_coding(read, schema, {field.name: field.dataType.simpleString() for field in frame.schema.fields})
    coded = encode_packs(read, coding)
    coding = replace(coding.add_joints(coded, joints(models)), leaves=coding.leaves if keep else {})
    if schema.person is None:
        return coding, coded
    coded, coding = mark_persons(coded, coding, models)
    read.unpersist()
    return coding, coded


def write_on_spark(
    coding: Coding, coded: PackedFrame, method: Method, models: Sequence[Model], form: Form, seed: int
) -> SparkOutput:
    """The written rows of a coded frame, in the order of a release."""
    return _sort_output(coding, coded, _choose_writer(method, coding)(coding, coded, method, models, form, seed))


def write_levels_on_spark(coding: Coding, coded: PackedFrame, form: Form, notes: tuple[str, ...], seed: int) -> SparkOutput:
    """As `write_on_spark`, where the levels are known."""
    return _sort_output(coding, coded, WrittenPacks(write_levels(coding, coded, form, seed), form, notes))


def _sort_output(coding: Coding, coded: PackedFrame, result: WrittenPacks) -> SparkOutput:
    written = result.packs.persist()
    cells = Cells.of(coding, written)
    for packs in (coded, *result.persisted):  # the written rows are persisted now
        packs.unpersist()
    ordered = sort_release(written, coding, cells).persist()
    places = offsets(ordered)
    written.unpersist()
    return SparkOutput(coding, ordered, places, cells, result.form, result.notes)


def _choose_writer(method: Method, coding: Coding) -> Callable[..., WrittenPacks]:
    """The writer for how a method scales; a plan without ranks, or that would separate a person's rows, runs per shard."""
    if method.scale == "count":
        return write_by_counts
    return write_by_ranks if deals_by_rank(method, coding.head.schema) else write_by_shards
