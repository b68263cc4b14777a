"""`FoldedModel`: a guarantee required of the folded values, next to the same guarantee on the values as written.

Folding alone would weaken a guarantee whose distance counts equal values only; the written values alone let six spellings of
one disease pass as six diseases. Both are therefore required where an attribute has look-alike values, and nothing changes
where it has none. Guarantees about several attributes as one are not folded: merging values only lowers their total variation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from unicodedata import unidata_version

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes
from closeknit.core.combined_secrets import Secret
from closeknit.core.domain import Domain
from closeknit.core.model import DerivedModel, Model
from closeknit.core.table import Table

Reference = tuple[Domain, NDArray[np.int64]]  # the leaves of a sensitive attribute and their rows


@dataclass(frozen=True)
class FoldedModel(DerivedModel):
    """A guarantee about one attribute, judged with look-alike values as one; without look-alike values every class meets it.

    `model` is the guarantee as requested.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> cells = {"ill": ["flu", "Flu", "gout"]}
    >>> classes = ck.Schema(sensitive={"ill": ck.flat()}).encode(Columns.of(cells)).one_class()
    >>> model = ck.LDiversity("ill", 3)
    >>> model.holds(classes).tolist(), FoldedModel(model).holds(classes).tolist()
    ([True], [False])
    """

    name = "folded"

    model: Model

    @property
    def needs(self) -> frozenset[str]:
        """As the guarantee."""
        return self.model.needs

    @property
    def by_class(self) -> bool:
        """As the guarantee."""
        return self.model.by_class

    @property
    def forms(self) -> frozenset[str]:
        """As the guarantee."""
        return self.model.forms

    @property
    def column(self) -> str:
        """The attribute."""
        return str(self.model.column)

    def describe(self, domain: Domain | None) -> str:
        """The guarantee, and on which values it is required."""
        return f"{self.model.describe(domain)}, with look-alike values counted as one"

    def levels(self, classes: Classes) -> NDArray[np.float64]:
        """What each class measures on the folded values."""
        return self.model.levels(classes.fold_values(self.column) or classes)

    def holds(self, classes: Classes) -> NDArray[np.bool_]:
        """Whether each class meets the guarantee on the folded values."""
        folded = classes.fold_values(self.column)
        return np.ones(len(classes), dtype=bool) if folded is None else self.model.holds(folded)

    def exact_level(self, classes: Classes, index: int) -> Fraction | None:
        """The level of one class as a rational."""
        return self.model.exact_level(classes.fold_values(self.column) or classes, index)


def with_folded(models: Sequence[Model], table: Table) -> list[Model]:
    """The guarantees, and once more on the folded values those whose attribute has look-alike values in this table.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> schema, models = ck.Schema(sensitive={"ill": ck.flat()}), [ck.KAnonymity(2), ck.LDiversity("ill", 2)]
    >>> [len(with_folded(models, schema.encode(Columns.of({"ill": ["flu", ill]})))) for ill in ("gout", "FLU")]
    [2, 3]
    """
    found = find_look_alikes(references_in(table, models))
    return [*models, *(FoldedModel(model) for model in models if model.column in found)]


def references_in(table: Table, models: Sequence[Model]) -> dict[Secret, Reference]:
    """The leaves and their rows, for every single attribute that a guarantee is about."""
    names = dict.fromkeys(model.column for model in models if isinstance(model.column, str))
    return {name: (table.secret(name)[1], table.reference(name)) for name in names}


def find_look_alikes(references: Mapping[Secret, Reference]) -> dict[Secret, tuple[int, int]]:
    """The attributes with look-alike values: how many of their values look alike, and to how many these fold.

    >>> ill, sex = Domain(("Flu", "flu", "gout")), Domain(("f", "m"))
    >>> find_look_alikes({"ill": (ill, np.array([1, 1, 1, 0])), "sex": (sex, np.ones(3, int))})
    {'ill': (2, 1)}
    """
    found: dict[Secret, tuple[int, int]] = {}
    for name, (domain, counts) in references.items():
        leaf_of = domain.folding(counts) if isinstance(name, str) else None
        if leaf_of is not None:
            _, spellings = np.unique(leaf_of[np.flatnonzero(counts)], return_counts=True)
            found[name] = int(spellings[spellings > 1].sum()), int((spellings > 1).sum())
    return found


def look_alike_notes(references: Mapping[Secret, Reference]) -> list[str]:
    """One sentence for each attribute with look-alike values that a guarantee is about."""
    return [
        f"column '{name}': {many:,} of its values look alike and fold to {few:,} (Unicode {unidata_version}); each guarantee "
        "about it is judged on the values as written and on the folded values, and the worse of the two is reported"
        for name, (many, few) in find_look_alikes(references).items()
    ]
