"""Kinds of column: numbers, codes with a significant prefix, values without structure; and what all kinds share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from closeknit.core.errors import BadValue
from closeknit.core.kind import Kind, Losses, Nominal, bind_tree, leaf_losses, texts_of, tree_losses
from closeknit.core.numeric_kind import Numeric, numbers_of, numeric
from closeknit.core.prefix_kind import Prefix, prefix
from closeknit.core.tree import Tree


@dataclass(frozen=True)
class Flat(Nominal):
    """Values without structure: a cell is one value or `*`.

    >>> import numpy as np
    >>> Flat().bind(np.array(["m", "f"], dtype=object))[1].tolist()
    [1, 0]
    """

    name: ClassVar[str] = "flat"

    def tree(self, texts: Sequence[str]) -> Tree:
        """One level under `*`."""
        return Tree.of(dict.fromkeys(texts) or {"none": None})


def flat() -> Flat:
    """A column of values without structure.

    >>> flat()
    Flat()
    """
    return Flat()


__all__ = [
    "BadValue",
    "Flat",
    "Kind",
    "Losses",
    "Nominal",
    "Numeric",
    "Prefix",
    "bind_tree",
    "flat",
    "leaf_losses",
    "numbers_of",
    "numeric",
    "prefix",
    "texts_of",
    "tree_losses",
]
