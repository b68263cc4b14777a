"""The base of all kinds of column: what is declared about a column before any table is read.

Every kind is a frozen value with a name for recipes. `bind(values)` returns the `Domain` and the leaf code of each distinct
raw value. `losses(cells)` returns the loss of each distinct written cell (variants A and B of the General Loss Metric), from
the written cells alone, so that a recipient computes the same. `publish_kind` returns the kind as a certificate shows it: only
what is declared, and for a tree that is derived from data the nodes that are written.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from closeknit.core.domain import LOOKS_WRITTEN, Domain, Values
from closeknit.core.errors import BadInput, BadValue
from closeknit.core.exact import plain_number
from closeknit.core.params import spec
from closeknit.core.tree import STAR, Tree
from closeknit.kernels.arrays import Int32

Losses = NDArray[np.float64]  # [cells, 2]: variants A and B


class Kind(ABC):
    """Base class of all kinds of column: a frozen dataclass with a name for recipes."""

    name: ClassVar[str]
    default_distance: ClassVar[str] = "equal"  # ground distance of t-closeness if none is given
    from_data: bool = False  # whether a domain that is written out is derived from data
    step: float | None = None  # ranges end at its multiples
    bins: int | None = None  # number of equally wide intervals of a numeric column

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Declared bounds, if any."""
        return None

    @abstractmethod
    def bind(self, values: Values) -> tuple[Domain, Int32]:
        """The domain of distinct values, and the leaf of each.

        Args:
            values: distinct raw values, or written ones of a sensitive attribute.
        """

    @property
    def declared_domain(self) -> Domain:
        """The domain without any values: what is known of it in advance."""
        return replace(self.bind(np.array([], dtype=object))[0], default_distance=self.default_distance)

    def losses(self, cells: Sequence[str]) -> Losses:
        """Loss of each distinct written cell; here a cell is one value (0) or `*` (1).

        Args:
            cells: the distinct written cells.
        """
        loss = np.array([float(cell == STAR) for cell in cells])
        return np.stack([loss, loss], axis=1)

    @property
    def has_fixed_losses(self) -> bool:
        """Whether the loss of a written cell is the same next to any other cells; not where cells determine the domain."""
        return True

    def publish_kind(self, cells: Sequence[str], sensitive: bool = False) -> Kind:
        """The kind that a certificate shows: as declared, since by default nothing of a kind is derived from data.

        Args:
            cells: the written cells; for a sensitive column its leaves.
            sensitive: whether the column is sensitive.
        """
        return self

    def notes(self, name: str) -> list[str]:
        """What a certificate notes of a column of this kind: values that were changed before the method saw them.

        Args:
            name: the column.
        """
        return []

    def spec(self) -> dict[str, Any]:
        """Parameters as a recipe writes them."""
        return spec(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in spec(self).items())})"


def texts_of(values: Values) -> list[str]:
    """Raw values as text: numbers without a needless `.0`, dates as ISO days."""
    if values.dtype.kind in "iuf":
        return [plain_number(value) for value in values.tolist()]
    if values.dtype.kind == "b":
        return ["true" if value else "false" for value in values.tolist()]
    return [str(value) for value in values.tolist()]


def raw_texts(values: Values) -> list[str]:
    """As `texts_of`, but refuses a raw value that looks like a written range or `*`: the two could be confused."""
    texts = texts_of(values)
    for i, text in enumerate(texts):
        if LOOKS_WRITTEN.fullmatch(text):
            raise BadValue(i, f"'{text}' looks like a written range or '*'", "give the raw value, or list it under missing")
    return texts


def read_each(read: Callable[[int, str], str], values: Values) -> list[str | None]:
    """What is read from each raw value; None for what is refused.

    Args:
        read: reads the text of a value at an index.
        values: raw values.
    """
    found = list[str | None]()
    for i, text in enumerate(texts_of(values)):
        try:
            found.append(read(i, text))
        except BadValue:
            found.append(None)
    return found


class Nominal(Kind):
    """Base class of kinds whose leaves are the values that occur and whose cells are nodes of a tree."""

    def tree(self, texts: Sequence[str]) -> Tree:
        """The tree over these values."""
        raise BadInput(f"{self.name} columns have no tree of their own")

    def bind(self, values: Values) -> tuple[Domain, Int32]:
        """Leaves are the values that occur, in the order of their text."""
        texts = raw_texts(values)
        return bind_tree(self.tree(sorted(set(texts))), texts)


def bind_tree(tree: Tree, texts: Sequence[str], numbers: NDArray[np.float64] | None = None) -> tuple[Domain, Int32]:
    """Leaf codes of raw texts in a tree; a text that is no leaf is refused."""
    leaves = {label: i for i, label in enumerate(tree.leaf_labels)}
    for i, text in enumerate(texts):
        if text not in leaves:
            node = " (it is a node, not a leaf)" if text in tree.labels else ""
            right = "add it to the hierarchy or list it under missing"
            raise BadValue(i, f"'{text}' is not a leaf of the hierarchy{node}", right)
    codes = np.array([leaves[text] for text in texts], dtype=np.int32)
    return Domain(tuple(tree.leaf_labels), tree, numbers), codes


def leaf_losses(counts: NDArray[np.int64], total: int, star: Sequence[bool]) -> Losses:
    """Variants A and B from leaf counts; `*` is 1 even where it covers a single value and the missing one."""
    a = np.where(counts <= 1, 0.0, counts / max(total, 1))
    b = np.where(counts <= 1, 0.0, (counts - 1) / max(total - 1, 1))
    stars = np.array(star, dtype=bool)
    return np.stack([np.where(stars, 1.0, a), np.where(stars, 1.0, b)], axis=1)


def tree_losses(tree: Tree, cells: Sequence[str]) -> Losses:
    """Losses of written nodes of a declared tree, of any level."""
    leaves = dict(zip(tree.labels, tree.leaves.tolist(), strict=True))
    for i, cell in enumerate(cells):
        if cell not in leaves:
            raise BadValue(i, f"'{cell}' is neither a value nor a node of the hierarchy", "write a leaf, a node or '*'")
    counts = np.array([leaves[cell] for cell in cells], dtype=np.int64)
    return leaf_losses(counts, tree.size, [cell == STAR for cell in cells])
