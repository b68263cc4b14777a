"""Guarantees judged on Spark: rows with equal written cells are in one partition, each partition is measured, and the parts
are added (see `closeknit.core.measurement`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes
from closeknit.core.columns import Column, Columns
from closeknit.core.combined_secrets import CodedSecret, Secret
from closeknit.core.domain import Domain
from closeknit.core.loss import sum_losses
from closeknit.core.measurement import Measurement, PrivateContext
from closeknit.core.model import Model, joints
from closeknit.core.reading import Reading
from closeknit.core.row_sorting import groups
from closeknit.core.schema import Schema
from closeknit.io.batches import Block, block_from, codes_in, numbers_in, read_lists, texts_block
from closeknit.spark.coding import WHO, Combinations, count_codes, find_combinations, hash_codes
from closeknit.spark.maps import partitions
from closeknit.spark.packed_frame import PackedFrame


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
    joint: Model | None = None  # measures all sensitive attributes as one
    in_persons: bool = False  # each row has its person here, and k and diversity count persons

    def join(self, packs: PackedFrame, joint: Model | None) -> Judge:
        """The same with the combinations of attributes that guarantees, or `joint`, count as one; too many are left out."""
        names = list(self.secrets)
        known = {
            wanted: find_combinations(packs, [f"s{names.index(n)}" for n in wanted], [self.secrets[n] for n in wanted])
            for wanted in joints([*self.models, joint])
        }
        found = {wanted: combined for wanted, combined in known.items() if combined is not None}
        references = dict(self.references)
        references |= {wanted: combined.reference for wanted, combined in found.items()}
        measured = joint if joint and joint.column in found else None
        return replace(self, references=references, joints=found, joint=measured)

    @property
    def domains(self) -> dict[Secret, Domain]:
        """The domain of each attribute, and of those that count as one."""
        alone: dict[Secret, Domain] = {name: domain for name, (_, domain) in self.secrets.items()}
        return alone | {names: combined.domain for names, combined in self.joints.items()}

    @property
    def quasi_names(self) -> list[str]:
        """Columns of codes by which classes are distinguished."""
        return [f"q{j}" for j in range(len(self.quasi))]

    @property
    def secret_names(self) -> list[str]:
        """Columns of codes of the sensitive attributes."""
        return [f"s{j}" for j in range(len(self.secrets))]

    def measure(self, packs: PackedFrame, rows: int, suppressed: int = 0) -> Measurement:
        """Every part measured where its rows are, and the parts added."""
        shared, count = packs.share(self), partitions(packs.frame, rows)
        names, in_persons = [*self.quasi_names, *self.secret_names], self.in_persons

        def judge_block(block: Block) -> Block:
            return texts_block({"record": [shared.value.record(block)]})

        def place_of(block: Block) -> NDArray[np.int64]:
            return hash_codes(shared.value.cells(block), count)

        def count_rows(block: Block) -> Block:
            if not in_persons:
                return count_codes(block, names)  # a large class moves as a small one
            each = {name: block.column(name) for name in (*names, WHO)}
            return block_from({**each, "rows": np.ones(block.num_rows, dtype=np.int64)})

        judged = packs.each(count_rows).repartition(place_of, count).each(judge_block).rows({"record": "string"}).toArrow()
        losses = sum_losses(Columns(dict(self.quasi), 0), self.schema, self.counts)
        parts = [Measurement.model_validate_json(str(record)) for record in read_lists(judged)["record"]]
        return sum(parts, Measurement(suppressed=suppressed, losses=losses))

    def cells(self, block: Block) -> NDArray[np.int32]:
        """Equal numbers for equal written cells: several codes may mean a missing cell."""
        codes = codes_in(block, self.quasi_names)
        return np.stack([column.codes[codes[:, j]] for j, column in enumerate(self.quasi.values())], axis=1)

    def record(self, block: Block) -> str:
        """The measurement of the classes in these counted rows, as text."""
        rows = numbers_in(block, "rows").astype(np.int64)
        codes, secret = codes_in(block, self.quasi_names), codes_in(block, self.secret_names)
        quasi = {name: column.take(codes[:, j]) for j, (name, column) in enumerate(self.quasi.items())}
        class_of, count = groups([c.coded for c in quasi.values()], len(rows))
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
        private = PrivateContext(True) if self.in_persons else None
        measured = Measurement.of(reading, self.models, private=private, joint=self.joint, losses={})
        return measured.model_dump_json()


def describe_attested(measured: Measurement) -> list[str]:
    """The levels of attested guarantees, for the private recipe.

    Args:
        measured: what was measured, counted in persons.
    """
    attested = [judged for judged in measured.judged if judged.guarantee.status == "attested"]
    return [f"{judged.guarantee.text}: the worst class reaches {judged.level:.6g}, counted in persons" for judged in attested]
