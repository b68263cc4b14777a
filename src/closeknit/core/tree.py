"""`Tree`: a hierarchy as arrays. Leaves are numbered depth-first, so every node is a range `[lo, hi]` of leaf codes.

Node 0 is always `*`, which also covers the missing leaf (code `size`, the last child of node 0). A declared root with a name of
its own is node 1. Heights follow the sources: a leaf has 0, a node one more than its highest child; node 0 shares the height
of the declared root, because "missing" is a leaf under the root and not a further level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closeknit.core.errors import BadInput
from closeknit.kernels.arrays import Int32 as Int32

STAR = "*"
Nested = Mapping[str, "Nested | None"]


@dataclass(frozen=True, eq=False)
class Tree:
    """Nodes in pre-order; `labels[i]` covers the leaf codes `lo[i]..hi[i]`.

    >>> tree = Tree.of({"respiratory": {"flu": None, "SARS": None}, "ulcer": None})
    >>> tree.size, [tree.labels[i] for i in tree.cover([0, 1, 0, 3, 2], [1, 1, 2, 3, 3])]
    (3, ['respiratory', 'SARS', '*', '', '*'])
    """

    labels: tuple[str, ...]
    parent: Int32
    lo: Int32
    hi: Int32
    height: Int32
    leaves: Int32  # leaves under the node, without the missing one
    leaf_node: Int32  # node of each leaf code, the missing one last

    @property
    def size(self) -> int:
        """Number of leaves without the missing one; also the code of the missing leaf."""
        return len(self.leaf_node) - 1

    @property
    def leaf_labels(self) -> list[str]:
        """Names of the leaves in code order, without the missing one."""
        return [self.labels[node] for node in self.leaf_node[:-1]]

    @property
    def depth(self) -> NDArray[np.int64]:
        """Levels above each node."""
        depth = np.zeros(len(self.parent), dtype=np.int64)
        for node in range(1, len(depth)):  # parents come before their children
            depth[node] = depth[self.parent[node]] + 1
        return depth

    def cover(self, lo: Sequence[int] | Int32, hi: Sequence[int] | Int32) -> Int32:
        """The lowest node over each range of leaf codes."""
        node: Int32 = self.leaf_node[np.asarray(lo)]
        hi = np.asarray(hi)
        while (short := self.hi[node] < hi).any():
            node = np.where(short, self.parent[node], node)
        return node

    def node_loss(self) -> NDArray[np.float64]:
        """Loss of each node, variant A: 0 for a single leaf, 1 for `*`, else leaves under it / all leaves."""
        loss = np.where(self.leaves <= 1, 0.0, self.leaves / max(self.size, 1))
        loss[0] = 1.0
        return loss

    @classmethod
    def of(cls, nested: Nested) -> Tree:
        """From nested mappings (`None` marks a leaf). A single top node is the root, else (or if named so) `*` is."""
        return _Builder(nested).tree()

    def to_nested(self) -> dict[str, object]:
        """The nested mappings that a recipe or a certificate contains."""
        nodes: list[dict[str, object]] = [{} for _ in self.labels]
        for i in range(1, len(self.labels) - 1):  # the last node is the missing leaf
            leaf = self.leaf_node[self.lo[i]] == i
            nodes[self.parent[i]][self.labels[i]] = None if leaf else nodes[i]
        # a single branch below a declared `*` is a level; without the `*` it would be read back as the root
        lone_branch = len(nodes[0]) == 1 and 0 < self.height[1] < self.height[0]
        return {STAR: nodes[0]} if lone_branch else nodes[0]


class _Builder:
    """Builds the arrays from nested mappings, depth-first."""

    def __init__(self, nested: Nested) -> None:
        self.labels, self.parent = [STAR], [0]
        self.lo, self.hi, self.height = [0], [0], [0]
        self.leaf_node: list[int] = []
        explicit_star = set(nested) == {STAR}
        top = nested[STAR] if explicit_star else nested
        if not top:
            raise BadInput("a hierarchy needs at least one leaf")
        children = [self._add(label, below, 0, 1) for label, below in top.items()]
        named_root = not explicit_star and len(children) == 1 and self.height[children[0]] > 0
        self.height[0] = self.height[children[0]] if named_root else 1 + max(self.height[c] for c in children)

    def _add(self, label: object, below: Nested | None, parent: int, level: int) -> int:
        name = str(label)
        if name in (STAR, ""):
            raise BadInput(f"a hierarchy has a node named '{name}' at level {level} below its root", right="rename it")
        node = len(self.labels)
        self.labels.append(name)
        self.parent.append(parent)
        self.lo.append(len(self.leaf_node))
        self.hi.append(0)
        self.height.append(0)
        if below:
            self.height[node] = 1 + max([self.height[self._add(k, v, node, level + 1)] for k, v in below.items()])
        else:
            self.leaf_node.append(node)
        self.hi[node] = len(self.leaf_node) - 1
        return node

    def tree(self) -> Tree:
        size = len(self.leaf_node)
        self._check_names()
        arrays = [np.array([*x, y], dtype=np.int32) for x, y in ((self.parent, 0), (self.lo, size), (self.hi, size))]
        parent, lo, hi = arrays
        leaves = hi - lo + 1
        hi[0], leaves[0], leaves[-1] = size, size, 0
        leaf_node = np.array([*self.leaf_node, len(self.labels)], dtype=np.int32)
        height = np.array([*self.height, 0], dtype=np.int32)
        return Tree((*self.labels, ""), parent, lo, hi, height, leaves, leaf_node)

    def _check_names(self) -> None:
        """Two nodes may share a label only if they have the same leaves; two leaves may not share one."""
        seen: dict[str, int] = {}
        leaves = set(self.leaf_node)
        for node in range(1, len(self.labels)):
            label = self.labels[node]
            other = seen.setdefault(label, node)
            if other == node:
                continue
            if node in leaves and other in leaves:
                raise BadInput(f"leaf '{label}' occurs twice in its hierarchy", right="each value has one place")
            if (self.lo[node], self.hi[node]) != (self.lo[other], self.hi[other]):
                where = f"level {self._level(other)} and level {self._level(node)} below the root"
                raise BadInput(
                    f"hierarchy is not nested: '{label}' names two nodes with different leaves ({where})",
                    right="give a node one parent, or the two nodes different names",
                )

    def _level(self, node: int) -> int:
        return 0 if node == 0 else 1 + self._level(self.parent[node])
