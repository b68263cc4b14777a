"""Guarantees judged on Spark: rows with equal written cells meet in one partition, and each partition tells its worst classes.

Models, records and class order are those of a release on one machine; what is added here is how partial records are merged:
a guarantee holds if it holds everywhere, its worst class is the worst of all, and of equals the one whose cells come first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.certificate import ClassSizes, Guarantee, Joint, LossRecord, WorstClass
from closeknit.core.certifying import PrivateContext, joint_distance, judge, loss_record, worst_of
from closeknit.core.classes import Classes
from closeknit.core.columns import Column, Columns
from closeknit.core.combined_secrets import CodedSecret, Secret
from closeknit.core.domain import Domain
from closeknit.core.kinds import texts_of
from closeknit.core.loss import cell_losses, weigh_losses
from closeknit.core.model import Model, least_rows
from closeknit.core.reading import Reading
from closeknit.core.row_sorting import groups
from closeknit.core.schema import Schema
from closeknit.io.batches import Block, block_from, codes_in, numbers_in, read_lists, texts_block
from closeknit.spark.coding import WHO, Combinations, count_codes, hash_codes
from closeknit.spark.maps import partitions
from closeknit.spark.packed_frame import PackedFrame


@dataclass(frozen=True)
class SparkMeasurement:
    """What a certificate or an audit says of the rows."""

    guarantees: tuple[Guarantee, ...]
    classes: ClassSizes
    joint: Joint | None
    loss: LossRecord
    private_notes: tuple[str, ...] = ()  # what guarantees reach that were counted in persons: not to be published


@dataclass(frozen=True, eq=False)
class Judge:
    """What an executor needs to judge rows of codes q0, q1, ... and s0, s1, ...: the cell of each code, the leaf of each."""

    schema: Schema  # of the published columns
    models: Sequence[Model]
    quasi: Mapping[str, Column]  # the written cell of each code
    counts: Mapping[str, NDArray[np.int64]]  # rows of each distinct cell, the missing one last
    secrets: Mapping[str, tuple[NDArray[np.int32], Domain]]  # the leaf of each code, -1 where it is suppressed
    references: Mapping[Secret, NDArray[np.int64]]
    joints: Mapping[tuple[str, ...], Combinations] = field(default_factory=dict)
    joint: Model | None = None  # measures all secrets as one
    in_persons: bool = False  # who is behind each row is known here, and k and diversity count them

    @property
    def quasi_names(self) -> list[str]:
        """Columns of codes by which classes are told apart."""
        return [f"q{j}" for j in range(len(self.quasi))]

    @property
    def secret_names(self) -> list[str]:
        """Columns of codes of the secrets."""
        return [f"s{j}" for j in range(len(self.secrets))]

    def measure(self, packs: PackedFrame, rows: int, suppressed: int = 0) -> SparkMeasurement:
        """All of it, from counted rows."""
        shared, count = packs.frame.sparkSession.sparkContext.broadcast(self), partitions(packs.frame, rows)
        names, home = [*self.quasi_names, *self.secret_names], self.in_persons

        def judge_block(block: Block) -> Block:
            return texts_block({"record": [shared.value.record(block)]})

        def place_of(block: Block) -> NDArray[np.int64]:
            return hash_codes(shared.value.cells(block), count)

        def count_rows(block: Block) -> Block:
            if not home:
                return count_codes(block, names)  # a large class moves as a small one
            each = {name: block.column(name) for name in (*names, WHO)}
            return block_from({**each, "rows": np.ones(block.num_rows, dtype=np.int64)})

        counted = packs.each(count_rows)
        found = read_lists(counted.repartition(place_of, count).each(judge_block).rows({"record": "string"}).toArrow())[
            "record"
        ]
        records = [json.loads(str(record)) for record in found]
        return SparkMeasurement(
            tuple(
                self._merge_guarantees(i, [Guarantee(**record["guarantees"][i]) for record in records])
                for i in range(len(self.models))
            ),
            self._sizes([record["classes"] for record in records]),
            self._joint([Joint(**record["joint"]) for record in records if record["joint"]]),
            loss_record(weigh_losses(self._losses(), self.counts, self.schema, rows, suppressed)),
            tuple(self._describe_private([record["at_home"] for record in records])),
        )

    def cells(self, block: Block) -> NDArray[np.int32]:
        """Equal numbers for equal written cells: several codes may stand for a missing one."""
        codes = codes_in(block, self.quasi_names)
        return np.stack([column.codes[codes[:, j]] for j, column in enumerate(self.quasi.values())], axis=1)

    def record(self, block: Block) -> str:
        """Of the classes in these counted rows: guarantees with their worst classes, and sizes."""
        rows = numbers_in(block, "rows").astype(np.int64)
        codes, secret = codes_in(block, self.quasi_names), codes_in(block, self.secret_names)
        quasi = {name: column.take(codes[:, j]) for j, (name, column) in enumerate(self.quasi.items())}
        class_of, count = groups([(c.codes + 1, len(c.values) + 1) for c in quasi.values()], len(rows))
        leaves = [leaf_of[secret[:, j]] for j, (leaf_of, _) in enumerate(self.secrets.values())]
        names = list(self.secrets)
        coded: dict[Secret, CodedSecret] = {name: (leaves[j], self.secrets[name][1]) for j, name in enumerate(names)}
        coded |= {
            joint: (known.place(np.stack([leaves[names.index(name)] for name in joint], axis=1)), known.domain)
            for joint, known in self.joints.items()
        }
        persons = numbers_in(block, WHO).astype(np.int64) if self.in_persons else None
        classes = Classes.of(class_of, count, coded, persons, self.references, rows)
        reading = Reading(Columns(quasi, len(rows)), self.schema, class_of, classes, tuple(self.quasi))
        together, home = joint_distance(reading, self.joint), PrivateContext(True) if self.in_persons else None
        sizes = classes.sizes
        return json.dumps(
            {
                "guarantees": [guarantee.model_dump(mode="json") for guarantee in judge(reading, self.models, home)],
                "joint": together and together.model_dump(mode="json"),
                "at_home": [_worst_level(model, classes) for model in self._list_attested()],
                "classes": [len(sizes), int(sizes.min()), int(sizes.max()), int(sizes.sum()), int((sizes * sizes).sum())],
            }
        )

    def _list_attested(self) -> list[Model]:
        return [model for model in self.models if self.in_persons and "persons" in model.needs]

    def _describe_private(self, levels: list[list[float]]) -> Iterator[str]:
        for model, measured in zip(self._list_attested(), zip(*levels, strict=True), strict=True):
            worst = min(measured) if model.higher_is_safer else max(measured)
            domain = self.secrets[model.column][1] if isinstance(model.column, str) else None
            yield f"{model.describe(domain)}: the worst class reaches {worst:.6g}, counted in persons"

    def _merge_guarantees(self, i: int, parts: list[Guarantee]) -> Guarantee:
        return worst_of(parts, self.models[i], lambda part: self._place(part.worst))

    def _joint(self, parts: list[Joint]) -> Joint | None:
        return min(parts, key=lambda part: (-part.measured, -part.counted, self._place(part.worst)), default=None)

    def _place(self, worst: WorstClass | None) -> tuple[int, ...]:
        """Where a class stands among all: in the order of its cells, a missing one first."""
        if worst is None:
            return ()
        return tuple(self._codes(name).get(cell, -1) for name, cell in worst.cells.items())

    def _codes(self, name: str) -> dict[str, int]:
        return {text: code for code, text in enumerate(texts_of(self.quasi[name].values))}

    def _sizes(self, parts: list[list[int]]) -> ClassSizes:
        count, smallest, largest, rows, squares = zip(*parts, strict=True) if parts else ((0,),) * 5
        mean, k = sum(rows) / max(sum(count), 1), least_rows(self.models)
        return ClassSizes(
            count=sum(count),
            smallest=min(smallest),
            mean=mean,
            largest=max(largest),
            discernibility=sum(squares),
            average_ratio=mean / k if k else None,
        )

    def _losses(self) -> dict[str, Any]:
        return cell_losses(Columns(dict(self.quasi), 0), self.schema)


def _worst_level(model: Model, classes: Classes) -> float:
    levels = np.concatenate([model.levels(view) for view in classes.views(model.column)])
    return float(levels.min() if model.higher_is_safer else levels.max())
