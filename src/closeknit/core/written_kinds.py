"""Kinds that only certificates have: columns whose tree is derived from data, by the nodes that are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from closeknit.core.errors import BadInput, BadValue
from closeknit.core.kinds import Losses, Nominal, leaf_losses
from closeknit.core.params import choice, whole
from closeknit.core.tree import STAR, Tree

SHARES = {"value": 0.0, "group": 0.5, "all": 1.0}  # loss of a written node, by what it is


@dataclass(frozen=True)
class WrittenNodes(Nominal):
    """A tree that is derived from data, as a certificate shows it: its written nodes in the order of the tree, and their types.

    A node is a single value, a group of values, or all of them (a root with a name of its own). The number of values in a group
    would disclose something about its members, so every group has the same loss, 1/2.

    Args:
        nodes: "value", "group" or "all" for each node.

    >>> WrittenNodes({"office": "group", "clerk": "value"}).losses(["office", "clerk", "*", ""])[:, 0].tolist()
    [0.5, 0.0, 1.0, 0.0]
    """

    name: ClassVar[str] = "written"
    nodes: dict[str, str]

    def __post_init__(self) -> None:
        if not isinstance(self.nodes, dict):
            raise BadInput(f"written has nodes={self.nodes!r}", right="write the type of each node: nodes: {node: group, ...}")
        for node, what in self.nodes.items():
            choice(f"node '{node}'", what, tuple(SHARES))

    @classmethod
    def of(cls, tree: Tree, cells: Sequence[str]) -> WrittenNodes:
        """The nodes of a tree that occur among the cells.

        >>> WrittenNodes.of(Tree.of({"office": {"clerk": None}, "craft": {"mason": None}}), ["craft", "clerk", "*"])
        WrittenNodes(nodes={'clerk': 'value', 'craft': 'group'})
        """
        leaves, written = set(tree.leaf_labels), set(cells) - {STAR, ""}
        root = {tree.labels[1]} if tree.height[1] == tree.height[0] else set()
        labels = [label for label in dict.fromkeys(tree.labels) if label in written]
        return cls({label: "value" if label in leaves else "all" if label in root else "group" for label in labels})

    @property
    def groups(self) -> list[str]:
        """Nodes that may cover several values."""
        return [node for node, what in self.nodes.items() if what != "value"]

    def losses(self, cells: Sequence[str]) -> Losses:
        """0 for a value, 1/2 for a group, 1 for `*`; a cell that is not a published node is refused."""
        _refuse_unknown(cells, self.nodes)
        shares = SHARES | {STAR: 1.0, "": 0.0}
        loss = np.array([shares[self.nodes.get(cell, cell)] for cell in cells], dtype=np.float64)
        return np.stack([loss, loss], axis=1)


@dataclass(frozen=True)
class Nodes(Nominal):
    """The kind of undeclared domains in certificates of earlier versions: read to audit those, never written.

    Args:
        nodes: number of leaves under each node.
        leaves: number of leaves of the column.

    >>> Nodes(nodes={"47***": 3, "47605": 1}, leaves=9).losses(["47***", "47605", "*", ""])[:, 0].round(3).tolist()
    [0.333, 0.0, 1.0, 0.0]
    """

    name: ClassVar[str] = "nodes"
    nodes: dict[str, int]
    leaves: int

    def __post_init__(self) -> None:
        if not isinstance(self.nodes, dict):
            raise BadInput(f"nodes has {self.nodes!r}", right="write the leaf count of each node: nodes: {node: 3, ...}")
        whole("leaves", self.leaves, least=0)
        for node, leaves in self.nodes.items():
            whole(f"the leaf count of node '{node}'", leaves, least=0)

    @property
    def groups(self) -> list[str]:
        """Nodes that cover several values."""
        return [node for node, leaves in self.nodes.items() if leaves > 1]

    def losses(self, cells: Sequence[str]) -> Losses:
        """Leaves under the node over all leaves; a cell that is not a published node is refused."""
        _refuse_unknown(cells, self.nodes)
        counts = np.array([self.nodes.get(cell, self.leaves if cell == STAR else 0) for cell in cells], dtype=np.int64)
        return leaf_losses(counts, self.leaves, [cell == STAR for cell in cells])


def _refuse_unknown(cells: Sequence[str], nodes: dict[str, str] | dict[str, int]) -> None:
    for i, cell in enumerate(cells):
        if cell not in nodes and cell not in (STAR, ""):
            raise BadValue(i, f"'{cell}' is not one of the published nodes", "the cell was changed after publication")
