"""`ItemSet`: set-valued columns, such as all diagnoses of a visit in one cell. Every item is generalized in its own hierarchy.

A level writes each item as its node of that level, and equal nodes once: with codes that are masked from the right,
`E10,E11,I10` is `E1*,I1*` one level up and `E**,I**` two levels up. Two sets with equal cells at one level have equal cells at
every level above, so the sets that occur form a tree, and a class writes the lowest level on which its sets agree, or `*`.

A written cell means: every item of the row is under one of these nodes, and under each of these nodes the row has at least one
item. How many items a row has is not written, except at level 0. An adversary who knows some items of a person finds at least
the rows of that person's class.

The loss of a cell is that of its most general node, because a mean would fall when equal nodes are joined. It follows from the
written cell and the declared hierarchy of the items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import comb
from typing import Any, ClassVar

import numpy as np

from closeknit.core.domain import Domain, Values
from closeknit.core.errors import BadInput, BadValue
from closeknit.core.hierarchy import Hierarchy
from closeknit.core.kind import read_each
from closeknit.core.kinds import Flat, Kind, Losses, Nominal, Prefix, bind_tree, texts_of
from closeknit.core.levels import level_nodes, tree_of
from closeknit.core.params import whole
from closeknit.core.tree import STAR, Tree
from closeknit.kernels.arrays import Int32

MOST_ITEMS, MOST_SETS = 100, 500_000  # of a declared set; of a declared domain
ITEM_KINDS = "flat, prefix, or a hierarchy that is not derived from data"


@dataclass(frozen=True)
class ItemSet(Nominal):
    """A column of sets.

    Args:
        items: the kind of the items: `Flat`, `Prefix` or a declared `Hierarchy`.
        separator: what separates the items of a raw cell; written cells have a comma.
        most: the largest number of items in a cell; a stream needs it, and a declared hierarchy, in advance.

    >>> domain, codes = ItemSet(Prefix(3)).bind(np.array(["E11, I10", "I10,E12", "E11"], dtype=object))
    >>> domain.texts, domain.labels(np.array([1, 0]), np.array([2, 2]))
    (('E11', 'E11,I10', 'E12,I10'), ['E1*,I1*', '*'])
    >>> ItemSet(Prefix(3)).losses(["E11,I10", "E1*,I1*", "*"])[:, 0].round(3).tolist()
    [0.0, 0.333, 1.0]
    """

    name: ClassVar[str] = "itemset"
    items: Kind = field(default_factory=Flat)
    separator: str = ","
    most: int | None = None

    def __post_init__(self) -> None:
        from closeknit.core.kind_forms import kind_from  # which lists this kind as well

        object.__setattr__(self, "items", kind_from(self.items))
        declared = isinstance(self.items, Flat | Prefix) or (isinstance(self.items, Hierarchy) and not self.items.from_data)
        if not declared or (isinstance(self.items, Hierarchy) and self.items.edges is not None):
            raise BadInput(f"itemset has items of the kind {self.items.name}", right=f"choose {ITEM_KINDS}")
        if not isinstance(self.separator, str) or not self.separator.strip(" ") or len(self.separator) > 3:
            raise BadInput(f"itemset has separator={self.separator!r}", right='write a short text, such as ";"')
        if self.most is not None:
            whole("most", self.most, least=1, most=MOST_ITEMS)

    @property
    def is_declared(self) -> bool:
        """Whether all sets that may occur are known in advance."""
        return self.most is not None and isinstance(self.items, Hierarchy)

    def list_sets(self) -> Values:
        """All sets of at most `most` items of the declared hierarchy, for a stream: the rows are not known yet."""
        assert self.most is not None
        items = self.items.bind(np.array([], dtype=object))[0].texts
        sizes = range(1, min(self.most, len(items)) + 1)
        if sum(comb(len(items), size) for size in sizes) > MOST_SETS:
            right = "declare a smaller most, or a hierarchy with fewer leaves"
            raise BadInput(f"itemset has more than {MOST_SETS:,} sets of at most {self.most} items", right=right)
        return np.array([",".join(one) for size in sizes for one in combinations(items, size)], dtype=object)

    def read_cells(self, values: Values) -> list[str | None]:
        """Each raw value as a set is written; None for what is no set, or has too many items.

        Args:
            values: raw values.

        >>> ItemSet(separator=";", most=2).read_cells(np.array(["b; a", "a;b;c", ";"], dtype=object))
        ['a,b', None, None]
        """
        return read_each(lambda i, text: _join(self._split(i, text)), values)

    def bind(self, values: Values) -> tuple[Domain, Int32]:
        """Leaves are the sets that occur; an item that its kind cannot read is refused."""
        sets = [self._split(i, text) for i, text in enumerate(texts_of(values))]
        if not sets:
            return bind_tree(Tree.of({"none": None}), [])
        items = sorted({item for one in sets for item in one})
        try:
            domain, codes = self.items.bind(np.array(items, dtype=object))
        except BadValue as bad:
            index = next(i for i, one in enumerate(sets) if items[bad.index] in one)
            raise BadValue(index, f"item {bad.what}", bad.right) from None
        item_tree = tree_of(domain)
        levels = level_nodes(item_tree)[:, codes]  # node of each item at each level
        place = {item: i for i, item in enumerate(items)}
        nested: dict[str, Any] = {}
        for one in sorted({_join(one) for one in sets}):
            rows = [place[item] for item in one.split(",")]
            here = nested
            for level in range(len(levels) - 2, 0, -1):
                here = here.setdefault(_join(item_tree.labels[node] for node in levels[level, rows]), {})
            here[one] = None
        tree = Tree.of({STAR: nested})
        found, leaves = bind_tree(tree, [_join(one) for one in sets])
        return replace(found, node_loss=self.losses(tree.labels)[:, 0]), leaves

    def _split(self, index: int, text: str) -> frozenset[str]:
        separator = self.separator if self.separator in text else ","  # of a written cell
        items = frozenset(item for part in text.split(separator) if (item := part.strip()))
        if not items:
            raise BadValue(index, f"'{text}' has no items", "list it under missing")
        if STAR in items:
            raise BadValue(index, f"'{text}' has the item '*'", "give the items, or list the cell under missing")
        if any("," in item for item in items):
            raise BadValue(index, f"'{text}' has an item with a comma", "remove it: written cells separate items by commas")
        if self.most is not None and len(items) > self.most:
            raise BadValue(index, f"'{text}' has {len(items)} items", f"at most {self.most} are declared: raise most")
        return items

    @property
    def has_fixed_losses(self) -> bool:
        return self.items.has_fixed_losses

    def losses(self, cells: Sequence[str]) -> Losses:
        """The loss of the most general node of each cell; the same in both variants, as far as they are for items."""
        split = [() if cell in (STAR, "") else tuple(cell.split(",")) for cell in cells]
        items = sorted({item for one in split for item in one})
        try:
            lost = dict(zip(items, self.items.losses(items).tolist(), strict=True)) if items else {}
        except BadValue as bad:
            index = next(i for i, one in enumerate(split) if items[bad.index] in one)
            raise BadValue(index, f"item {bad.what}", bad.right) from None
        worst = [
            np.max([lost[item] for item in one], axis=0) if one else [float(cell == STAR)] * 2
            for cell, one in zip(cells, split, strict=True)
        ]
        return np.array(worst, dtype=np.float64).reshape(len(cells), 2)

    def publish_kind(self, cells: Sequence[str], sensitive: bool = False) -> Kind:
        """As declared, with the separator of written cells."""
        return replace(self, separator=",")

    def spec(self) -> dict[str, Any]:
        """Parameters as a recipe writes them."""
        from closeknit.core.kind_forms import kind_form

        given = {"items": kind_form(self.items), "separator": self.separator, "most": self.most}
        return {name: value for name, value in given.items() if value not in ("flat", ",", None)}


def _join(items: Any) -> str:
    return ",".join(sorted(set(items)))


def itemset(items: Kind | str | dict[str, Any] = "flat", separator: str = ",", most: int | None = None) -> ItemSet:
    """A column of sets, such as codes that are separated by commas.

    Args:
        items: the kind of the items: `flat()`, `prefix()` or a declared `Hierarchy`.
        separator: what separates the items of a raw cell.
        most: the largest number of items in a cell; a stream needs it, and a declared `Hierarchy`, in advance.

    >>> itemset(Prefix(3), separator=";")
    ItemSet(items=Prefix(length=3), separator=';', most=None)
    """
    return ItemSet(items, separator, most)  # type: ignore[arg-type]
