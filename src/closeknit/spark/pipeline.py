"""A table anonymized on Spark: coded, worked on as the method scales, written, sorted, judged. No row comes to the driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Columns
from closeknit.core.combined_secrets import CodedSecret, Secret
from closeknit.core.errors import BadInput
from closeknit.core.method import Method, deals_by_rank
from closeknit.core.model import Model, joints
from closeknit.core.reading import secret_codes
from closeknit.core.schema import Schema
from closeknit.core.table import Form
from closeknit.forms.cell_labels import label_column
from closeknit.io.batches import Block
from closeknit.spark.coding import Coding, Combinations, build_coding, encode_packs, find_combinations, read_packs
from closeknit.spark.content_hash import content_hash_of, offsets
from closeknit.spark.counting import write_by_counts, write_levels
from closeknit.spark.judging import Judge, SparkMeasurement
from closeknit.spark.maps import Work
from closeknit.spark.packed_frame import PackedFrame
from closeknit.spark.person_marks import mark_persons
from closeknit.spark.ranking import write_by_ranks
from closeknit.spark.row_writing import Cells, render_columns, render_frame, sort_release, split_files
from closeknit.spark.sharding import write_by_shards

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, eq=False)
class SparkOutput:
    """Written rows, sorted and kept by Spark, and what the driver knows of their cells."""

    coding: Coding
    ordered: PackedFrame
    places: dict[tuple[Any, ...], int]  # rows before each of its partitions
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
        """The release with a partition for each file; files end at fixed ranks, so where they end tells nothing."""
        return render_frame(split_files(self.ordered, self.coding, self.places), self.coding, self.cells, as_text)

    def content_hash(self) -> str:
        """As of the same release in a file."""
        shared = self.ordered.frame.sparkSession.sparkContext.broadcast((self.coding, self.cells))

        def render_block(block: Block) -> Columns:
            return render_columns(*shared.value, block)

        return content_hash_of(self.ordered, render_block, self.coding.head.schema.published, self.places)

    def measure(self, schema: Schema, models: Sequence[Model], joint: Model | None, suppressed: int = 0) -> SparkMeasurement:
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
        wanted = joints([*models, *filter(None, [joint])])
        known = {names: self._combine_secrets(names, secrets) for names in wanted}
        together = {names: found for names, found in known.items() if found is not None}
        references |= {names: combined.reference for names, combined in together.items()}
        judge = Judge(
            schema,
            models,
            quasi,
            counts,
            secrets,
            references,
            together,
            joint if joint and joint.column in together else None,
            coding.head.schema.person is not None,
        )
        return judge.measure(self.ordered, coding.rows, suppressed)

    def _combine_secrets(self, names: tuple[str, ...], secrets: Mapping[str, CodedSecret]) -> Combinations | None:
        """Several secrets as one, in the codes of what was written."""
        places = [list(self.coding.head.schema.sensitive).index(name) for name in names]
        return find_combinations(self.ordered, [f"s{j}" for j in places], [secrets[name] for name in names])


def refuse_unscaled(method: Method, schema: Schema, form: Form, suppresses: bool) -> None:
    """What has to see all rows in one place, or cannot be done again with the same result, says so."""
    if method.clocked:
        what = f"{method.name} by a clock cannot run on Spark: a task that is done again has to give the same"
        raise BadInput(what, right="give proposals instead of seconds, or neither")
    if suppresses and (method.scale != "count" or form.suppressed != "removed"):
        what = (
            "rows can be suppressed on Spark by incognito alone, and are removed: others weigh at once which ones to leave out"
        )
        raise BadInput(what, right="leave suppress out, choose incognito without a form, or anonymize without an engine")
    if schema.person is not None and method.scale == "count":
        what = f"{method.name} counts persons anew for every vector, which cannot be done on Spark: it has counted rows only"
        right = "choose another method, such as mondrian, or anonymize without an engine"
        raise BadInput(what, column=schema.person, right=right)
    if method.usual_form != "generalized" or form.name != "generalized":
        other = form.name if form.name != "generalized" else method.usual_form
        right = "without an engine one machine writes it; on Spark choose a method of generalized cells, such as mondrian"
        raise BadInput(f"the form '{other}' cannot be written on Spark: its buckets are numbered over all rows", right=right)


def encode_on_spark(
    frame: DataFrame, schema: Schema, models: Sequence[Model], part: Work | None = None, keep: bool = False
) -> tuple[Coding, PackedFrame]:
    """What is known of a whole frame, and its rows as codes; what was read is kept by Spark.

    `part` leaves rows out as they are read; `keep`: dictionaries are still needed.
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
    """The same where the levels are known."""
    return _sort_output(coding, coded, (write_levels(coding, coded, form, seed), form, notes, []))


def _sort_output(coding: Coding, coded: PackedFrame, way: _WriterResult) -> SparkOutput:
    written, form, notes, kept = way
    written = written.persist()
    cells = Cells.of(coding, written)
    for packs in (coded, *kept):  # what they were written from can go
        packs.unpersist()
    ordered = sort_release(written, coding, cells).persist()
    places = offsets(ordered)
    written.unpersist()
    return SparkOutput(coding, ordered, places, cells, form, notes)


def _by_shards(
    coding: Coding, coded: PackedFrame, method: Method, models: Sequence[Model], form: Form, seed: int
) -> _WriterResult:
    frame, shards = write_by_shards(coding, coded, method, models, form, seed)
    return frame, form, (f"rows were cut into {shards} shards",) if shards > 1 else (), []


def _by_ranks(
    coding: Coding, coded: PackedFrame, method: Method, models: Sequence[Model], form: Form, seed: int
) -> _WriterResult:
    frame, kept = write_by_ranks(coding, coded, method, models, form, seed)
    return frame, form, (), [kept]


def _by_counts(
    coding: Coding, coded: PackedFrame, method: Method, models: Sequence[Model], form: Form, seed: int
) -> _WriterResult:
    frame, outcome = write_by_counts(coding, coded, method, models, form, seed)
    return frame, outcome.form or form, outcome.notes, []


# written rows, the form they have, notes for the recipe, and what Spark keeps until they are sorted
_WriterResult = tuple[PackedFrame, Form, tuple[str, ...], list[PackedFrame]]


def _choose_writer(method: Method, coding: Coding) -> Callable[..., _WriterResult]:
    """How a method scales; a plan that is not one of ranks, or whose ranks would part persons, is made in every shard."""
    if method.scale == "count":
        return _by_counts
    return _by_ranks if deals_by_rank(method, coding.head.schema) else _by_shards
