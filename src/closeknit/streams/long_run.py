"""The long run: the distribution of sensitive values over all rows, older rows with less weight; and closeness to it.

A window in which all rows have the same sensitive value is close to itself, whatever it reveals. A second guarantee requires a
class to be close to the stream over a long time, too. These counts are private.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes
from closeknit.core.columns import array_cells
from closeknit.core.combined_secrets import CodedSecret
from closeknit.core.domain import Domain
from closeknit.core.kinds import Kind
from closeknit.core.model import DerivedModel, Model
from closeknit.streams.arrivals import Arrivals, Ints
from closeknit.streams.window_tables import secret_codes

UNIT = 256  # weight of a new row; whole numbers keep every verdict exact


@dataclass(frozen=True, eq=False)
class LongRun(DerivedModel):
    """A guarantee of closeness whose reference is the long run, counted under its own name next to that of the window.

    >>> import closeknit as ck
    >>> LongRun(ck.TCloseness("disease", 0.4)).describe(None)
    't-closeness of disease, t = 0.4, distance by the kind of the column, to the long run'
    """

    name = "long_run"
    compares = True
    forms = frozenset({"generalized"})
    why_attested = "its reference, the long run, is private"

    model: Model

    @property
    def secret(self) -> str:
        """The sensitive attribute."""
        return str(self.model.column)

    @property
    def column(self) -> tuple[str, str]:
        """A name of its own: no column has an empty name."""
        return ("", self.secret)

    def describe(self, domain: Domain | None) -> str:
        """The guarantee and its reference."""
        return f"{self.model.describe(domain)}, to the long run"

    def refuse(self, classes: Classes) -> None:
        """As the guarantee itself."""
        self.model.refuse(self._select_secret(classes))

    def levels(self, classes: Classes) -> NDArray[np.float64]:
        """Distances to the long run."""
        return self.model.levels(self._select_secret(classes))

    def holds(self, classes: Classes) -> NDArray[np.bool_]:
        """Whether each is at most the limit."""
        return self.model.holds(self._select_secret(classes))

    def exact_level(self, classes: Classes, index: int) -> Fraction | None:
        """One distance as a rational."""
        return self.model.exact_level(self._select_secret(classes), index)

    def _select_secret(self, classes: Classes) -> Classes:
        return Classes(classes.sizes, classes.persons, {self.secret: classes.histograms[self.column]})


class DecayedCounts:
    """Decaying counts of one sensitive attribute: each block of rows reduces the older weights by the share `1 / memory`.

    Args:
        kind: the kind of the attribute.
        memory: the number of blocks after which a weight has fallen to about a third.

    >>> from closeknit.core.kinds import flat
    >>> counts = DecayedCounts(flat(), memory=2)
    >>> for secrets in ([1, 1], [2]):
    ...     counts.add(np.array(secrets), np.array([{1: "flu", 2: "gout"}[s] for s in secrets], dtype=object))
    >>> counts.encode(np.array([2, 1]))[0].tolist(), counts.reference().tolist()
    ([1, 0], [256, 256, 0])
    """

    def __init__(self, kind: Kind, memory: int) -> None:
        self.kind, self.memory = kind, memory
        self.weights: dict[int, list[Any]] = {}  # by digest: the weight of its rows, and the published value

    def add(self, digests: Ints, cells: NDArray[np.object_]) -> None:
        """Add a block of rows."""
        faded = {key: [left * (self.memory - 1) // self.memory, cell] for key, (left, cell) in self.weights.items()}
        self.weights = {key: entry for key, entry in faded.items() if entry[0] > 0}
        found, first, counts = np.unique(digests, return_index=True, return_counts=True)
        for key, cell, rows in zip(found.tolist(), cells[first].tolist(), counts.tolist(), strict=True):
            self.weights.setdefault(key, [0, cell])[0] += UNIT * rows

    def encode(self, digests: Ints) -> CodedSecret:
        """Codes of rows in the domain of the long run, which includes them."""
        keys, codes, domain = self._bind_values()
        return codes[np.searchsorted(keys, digests)], domain

    def reference(self) -> Ints:
        """The weight of every leaf."""
        keys, codes, domain = self._bind_values()
        left = np.array([self.weights[key][0] for key in keys.tolist()], dtype=np.int64)
        counts = np.zeros(domain.size + 1, dtype=np.int64)
        np.add.at(counts, codes, left)
        return counts

    def _bind_values(self) -> tuple[Ints, NDArray[np.int32], Domain]:
        keys = np.array(sorted(self.weights), dtype=np.int64)
        cells = array_cells([self.weights[key][1] for key in keys.tolist()])
        return keys, *secret_codes(self.kind, keys, cells)


def add_secrets(rows: Arrivals, names: list[str], counts: dict[str, DecayedCounts], kept: NDArray[np.bool_]) -> None:
    """Add the `kept` rows of a block to the counts of every sensitive attribute."""
    for name, decayed in counts.items():
        decayed.add(rows.secrets[kept, names.index(name)], rows.cells[name][kept])
