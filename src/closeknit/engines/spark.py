"""A table anonymized on Spark: coded, worked on as the method scales, written, sorted, judged. No row comes to the driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.core.joint import CodedSecret, Secret
from closeknit.core.method import Method, deals_by_rank, usual_form
from closeknit.core.model import Model, joints
from closeknit.core.published import secret_codes
from closeknit.core.schema import Schema
from closeknit.core.table import Form
from closeknit.doors.batches import Block
from closeknit.engines.spark_coding import Coding, Combinations, coded_packs, coding_of, combinations, read_packs
from closeknit.engines.spark_counted import counted, leveled
from closeknit.engines.spark_hash import content_hash_of, offsets
from closeknit.engines.spark_judging import Judge, Measured
from closeknit.engines.spark_maps import Work
from closeknit.engines.spark_packs import Packs
from closeknit.engines.spark_persons import marked
from closeknit.engines.spark_ranks import RankedMethod, ranked
from closeknit.engines.spark_shards import sharded
from closeknit.engines.spark_writing import Cells, in_files, in_release_order, shown_columns, shown_frame
from closeknit.forms.cells import label_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, eq=False)
class WrittenOnSpark:
    """Written rows, sorted and kept by Spark, and what the driver knows of their cells."""

    coding: Coding
    ordered: Packs
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
        return shown_frame(self.ordered, self.coding, self.cells)

    def in_files(self, as_text: bool = False) -> DataFrame:
        """The release with a partition for each file; files end at fixed ranks, so where they end tells nothing."""
        return shown_frame(in_files(self.ordered, self.coding, self.places), self.coding, self.cells, as_text)

    def content_hash(self) -> str:
        """As of the same release in a file."""
        shared = self.ordered.frame.sparkSession.sparkContext.broadcast((self.coding, self.cells))

        def shown(block: Block) -> Columns:
            return shown_columns(*shared.value, block)

        return content_hash_of(self.ordered, shown, self.coding.head.schema.published, self.places)

    def measured(self, schema: Schema, models: Sequence[Model], joint: Model | None, withheld: int = 0) -> Measured:
        """Every promise, sizes and loss, judged on the written cells; `schema` is that of the published columns."""
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
        known = {names: self._combined(names, secrets) for names in wanted}
        together = {names: found for names, found in known.items() if found is not None}
        references |= {names: combined.reference for names, combined in together.items()}
        judge = Judge(
            schema, models, quasi, counts, secrets, references, together,
            joint if joint and joint.column in together else None, coding.head.schema.person is not None,
        )  # fmt: skip
        return judge.measured(self.ordered, coding.rows, withheld)

    def _combined(self, names: tuple[str, ...], secrets: Mapping[str, CodedSecret]) -> Combinations | None:
        """Several secrets as one, in the codes of what was written."""
        places = [list(self.coding.head.schema.sensitive).index(name) for name in names]
        return combinations(self.ordered, [f"s{j}" for j in places], [secrets[name] for name in names])


def refuse_unscaled(method: Method, schema: Schema, form: Form, withholds: bool) -> None:
    """What has to see all rows in one place, or cannot be done again with the same result, says so."""
    if getattr(method, "clocked", False):
        what = f"{method.name} by a clock cannot run on Spark: a task that is done again has to give the same"
        raise BadInput(what, right="give proposals instead of seconds, or neither")
    if withholds and (method.scale != "count" or getattr(form, "withheld", "") != "removed"):
        what = "rows can be withheld on Spark by incognito alone, and are removed: others weigh at once which ones to leave out"
        raise BadInput(what, right="leave suppress out, choose incognito without a form, or anonymize without an engine")
    if schema.person is not None and method.scale == "count":
        what = f"{method.name} counts persons anew for every vector, which cannot be done on Spark: it has counted rows only"
        right = "choose another method, such as mondrian, or anonymize without an engine"
        raise BadInput(what, column=schema.person, right=right)
    if usual_form(method) != "generalized" or form.name != "generalized":
        other = form.name if form.name != "generalized" else usual_form(method)
        right = "without an engine one machine writes it; on Spark choose a method of generalized cells, such as mondrian"
        raise BadInput(f"the form '{other}' cannot be written on Spark: its buckets are numbered over all rows", right=right)


def coded_on_spark(frame: DataFrame, schema: Schema, models: Sequence[Model], part: Work | None = None,
                   keep: bool = False) -> tuple[Coding, Packs]:  # fmt: skip
    """What is known of a whole frame, and its rows as codes; what was read is kept by Spark.

    `part` leaves rows out as they are read; `keep`: dictionaries are still needed.
    """
    read = read_packs(frame, schema)
    read = (read if part is None else read.each(part)).kept()
    coding = coding_of(read, schema, {field.name: field.dataType.simpleString() for field in frame.schema.fields})
    coded = coded_packs(read, coding)
    coding = replace(coding.joined(coded, joints(models)), leaves=coding.leaves if keep else {})
    if schema.person is None:
        return coding, coded
    coded, coding = marked(coded, coding, models)
    read.forgotten()
    return coding, coded


def written_on_spark(coding: Coding, coded: Packs, method: Method, models: Sequence[Model], form: Form,
                     seed: int) -> WrittenOnSpark:  # fmt: skip
    """The written rows of a coded frame, in the order of a release."""
    return _in_order(coding, coded, _way(method, coding)(coding, coded, method, models, form, seed))


def leveled_on_spark(coding: Coding, coded: Packs, form: Form, notes: tuple[str, ...], seed: int) -> WrittenOnSpark:
    """The same where the levels are known."""
    return _in_order(coding, coded, (leveled(coding, coded, form, seed), form, notes, []))


def _in_order(coding: Coding, coded: Packs, way: _Way) -> WrittenOnSpark:
    written, form, notes, kept = way
    written = written.kept()
    cells = Cells.of(coding, written)
    for packs in (coded, *kept):  # what they were written from can go
        packs.forgotten()
    ordered = in_release_order(written, coding, cells).kept()
    places = offsets(ordered)
    written.forgotten()
    return WrittenOnSpark(coding, ordered, places, cells, form, notes)


def _by_shards(coding: Coding, coded: Packs, method: Method, models: Sequence[Model], form: Form, seed: int) -> _Way:
    frame, shards = sharded(coding, coded, method, models, form, seed)
    return frame, form, (f"rows were cut into {shards} shards",) if shards > 1 else (), []


def _by_ranks(coding: Coding, coded: Packs, method: Method, models: Sequence[Model], form: Form, seed: int) -> _Way:
    frame, kept = ranked(coding, coded, cast(RankedMethod, method), models, form, seed)
    return frame, form, (), [kept]


def _by_counts(coding: Coding, coded: Packs, method: Method, models: Sequence[Model], form: Form, seed: int) -> _Way:
    frame, outcome = counted(coding, coded, method, models, form, seed)
    return frame, outcome.form or form, outcome.notes, []


# written rows, the form they have, notes for the recipe, and what Spark keeps until they are sorted
_Way = tuple[Packs, Form, tuple[str, ...], list[Packs]]


def _way(method: Method, coding: Coding) -> Callable[..., _Way]:
    """How a method scales; a plan that is not one of ranks, or whose ranks would part persons, is made in every shard."""
    if method.scale == "count":
        return _by_counts
    return _by_ranks if deals_by_rank(method, coding.head.schema) else _by_shards
