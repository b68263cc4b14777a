"""Guarantees judged where a sensitive attribute is not alone in its group: in each class once more by what is known next to
the sensitive attribute.

In a sliced release whoever knows the cells next to a sensitive attribute sees only the part of a bucket that has them. So a
bucket keeps a guarantee if each of its parts does. The rows' pairs of (known part, secret) are counted as one sensitive
attribute of their own, which every fill, cut and merge carries along. Pairs of one part are neighbours, so a histogram of
pairs is cut into those of its parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes, Histogram
from closeknit.core.combined_secrets import CodedSecret, Secret, join_secrets, parts
from closeknit.core.domain import Domain
from closeknit.core.model import DerivedModel, Model
from closeknit.core.table import Table


@dataclass(frozen=True, eq=False)
class KnownPartModel(DerivedModel):
    """A guarantee about a sensitive attribute, met by a class only if every known part of it meets it."""

    name = "known_part"

    model: Model
    secret: Secret
    domain: Domain
    column: Secret  # the pairs
    part_of: NDArray[np.int64]  # of each pair
    value_of: NDArray[np.int32]
    reference: NDArray[np.int64]  # of the sensitive attribute alone

    def holds(self, classes: Classes) -> NDArray[np.bool_]:
        """Whether all parts of each class meet the guarantee."""
        seen, owner = self._parts(classes)
        broken = np.bincount(owner, weights=~self.model.holds(seen), minlength=len(classes))
        kept: NDArray[np.bool_] = broken == 0
        return kept

    def levels(self, classes: Classes) -> NDArray[np.float64]:
        """What the worst part of each class reaches."""
        seen, owner = self._parts(classes)
        worst = np.full(len(classes), np.inf if self.model.higher_is_safer else -np.inf)
        (np.minimum if self.model.higher_is_safer else np.maximum).at(worst, owner, self.model.levels(seen))
        return worst

    def describe(self, domain: Domain | None) -> str:
        """The guarantee and where it is judged."""
        return f"{self.model.describe(self.domain)}, next to every value of its group"

    def _parts(self, classes: Classes) -> tuple[Classes, NDArray[np.int64]]:
        """The parts of all classes as classes of their own, and the class of each."""
        pairs = classes.histograms[self.column]
        part, owner = self.part_of[pairs.values], pairs.owner
        first = np.ones(len(part), dtype=bool)
        first[1:] = (part[1:] != part[:-1]) | (owner[1:] != owner[:-1])
        starts = np.append(np.flatnonzero(first), len(part))
        seen = Histogram(starts, self.value_of[pairs.values], pairs.counts, self.reference, self.domain)
        sizes = seen.totals
        return Classes(sizes, sizes, {self.secret: seen}), owner[first]


def judge_known_parts(
    table: Table, models: Sequence[Model], known: dict[Secret, NDArray[np.int32]]
) -> tuple[Table, list[Model]]:
    """The table with pairs to be counted, and the guarantees that look at them; `known`: codes of what is next to a sensitive
    attribute.

    >>> import closeknit as ck
    >>> schema = ck.Schema(quasi={"zip": ck.flat()}, sensitive={"disease": ck.flat()})
    >>> cells = {"zip": ["a", "a", "b", "b"], "disease": ["flu", "gout", "flu", "flu"]}
    >>> from closeknit.core.columns import Columns
    >>> table = schema.encode(Columns.of(cells))
    >>> diverse = [ck.LDiversity("disease", 2)]
    >>> paired, judges = judge_known_parts(table, diverse, {"disease": table.quasi[:, 0]})
    >>> diverse[0].holds(table.one_class()).tolist(), judges[0].holds(paired.one_class()).tolist()
    ([True], [False])
    """
    joints, judged = dict(table.joints), []
    for model in models:
        parts_known = known.get(model.column) if model.column is not None else None
        if model.column is None or parts_known is None:
            judged.append(model)
            continue
        name = ("", *parts(model.column))  # no column has an empty name
        codes, domain = table.secret(model.column)
        joints[name] = pairs = _pairs(parts_known, (codes, domain))
        part_of, value_of = np.zeros(pairs[1].size, dtype=np.int64), np.zeros(pairs[1].size, dtype=np.int32)
        part_of[pairs[0]], value_of[pairs[0]] = parts_known, codes
        reference = table.references.get(model.column, table.count_values(model.column).reference)
        judged.append(KnownPartModel(model, model.column, domain, name, part_of, value_of, reference))
    return replace(table, joints=joints), judged


def _pairs(known: NDArray[np.int32], secret: CodedSecret) -> CodedSecret:
    return join_secrets([(known, Domain(tuple(map(str, range(int(known.max(initial=0)) + 1))))), secret])
