"""Levels of a bound column: from exact values (level 0) up to `*`, every level a cut through the column's tree.

At level i a leaf is written as its highest ancestor whose height is at most i. In a tree of even depth, such as a file
`leaf;parent;...;root` describes, this is the i-th ancestor: column i of the file. In an uneven tree a short branch does not
move up before the others have its height, so the nodes of a level are disjoint, cover every leaf, and consist of whole nodes of
the level below. The last level is `*` for everything; on lower levels a missing value remains missing.

Numbers without a hierarchy have the levels value and `*`, and with a step the cell of the step between them. Decimals are
written as the cell of their step at level 0, too.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from closeknit.core.domain import Domain
from closeknit.core.kinds import Kind
from closeknit.core.tree import STAR, Tree
from closeknit.kernels.arrays import Int32


def tree_of(domain: Domain) -> Tree:
    """The tree whose cuts are the levels: the column's own, or one built from its numbers.

    >>> from closeknit.core.kinds import numeric
    >>> tree_of(numeric(step=10).bind(np.array([3, 7, 12]))[0]).to_nested()
    {'[0, 10]': {'3': None, '7': None}, '[10, 20]': {'12': None}}
    """
    if domain.tree is not None:
        return domain.tree
    if domain.size == 0:  # `*` and the missing leaf
        none = np.zeros(2, dtype=np.int32)
        return Tree((STAR, ""), none, none, none, np.array([1, 0], dtype=np.int32), none, np.ones(1, dtype=np.int32))
    if domain.step is None or domain.coarse:
        return Tree.of({STAR: dict.fromkeys(domain.texts)})
    leaves = np.arange(domain.size, dtype=np.int32)
    nested: dict[str, dict[str, None]] = {}
    for cell, text in zip(domain.labels(leaves, leaves, snap=True), domain.texts, strict=True):
        nested.setdefault(cell, {})[text] = None
    return Tree.of({STAR: nested})


def top_level(domain: Domain) -> int:
    """The level at which everything is `*`.

    >>> from closeknit.core.kinds import numeric, prefix
    >>> codes = np.array([47605, 47602])
    >>> top_level(numeric().bind(codes)[0]), top_level(prefix().bind(codes)[0])
    (1, 5)
    """
    return int(tree_of(domain).height[0])


def level_nodes(tree: Tree) -> Int32:
    """Node of every leaf (the missing one last) at every level: [levels, leaves + 1].

    >>> tree = Tree.of({"respiratory": {"viral": {"flu": None, "SARS": None}, "asthma": None}, "ulcer": None})
    >>> [[tree.labels[node] for node in level] for level in level_nodes(tree)[1:3]]
    [['viral', 'viral', 'asthma', 'ulcer', ''], ['respiratory', 'respiratory', 'respiratory', 'ulcer', '']]
    """
    levels = [tree.leaf_node]
    for height in range(1, int(tree.height[0])):
        above = tree.parent[levels[-1]]
        levels.append(np.where(tree.height[above] == height, above, levels[-1]).astype(np.int32))
    return np.stack([*levels, np.zeros_like(tree.leaf_node)])


def at_level(domain: Domain, level: int) -> Domain:
    """The domain that writes whole nodes of a level, even for a tighter range of codes; a range over several as their cover.

    >>> from closeknit.core.kinds import prefix
    >>> domain, codes = prefix().bind(np.array(["47605", "47602", "47906"], dtype=object))
    >>> at_level(domain, 2).labels(np.array([0, 0, 3]), np.array([0, 2, 3]))
    ['476**', '47***', '']
    """
    tree = tree_of(domain)
    written = max(level, 1) if domain.snap and not domain.coarse else level  # level 0 would write true decimals
    return replace(domain, tree=replace(tree, leaf_node=level_nodes(tree)[written]))


def level_like(old: Domain, level: int, leaves: Int32, new: Domain, codes: Int32) -> int | str:
    """The level of a new domain that corresponds to a level of the old one.

    In a tree of equal height it is the same. Else it is the lowest level that separates the leaves alike; if there is none, the
    lowest that separates none of them further; else `*`.

    Args:
        old: the old domain.
        level: a level of it.
        leaves: leaf codes in the old domain.
        new: the new domain.
        codes: the same leaves in the new domain.

    >>> from closeknit.core.kinds import prefix
    >>> long, codes = prefix().bind(np.array(["111", "112", "12345"], dtype=object))
    >>> short, again = prefix().bind(np.array(["111", "112"], dtype=object))
    >>> level_like(long, 3, codes[:2], short, again)
    1
    """
    before, there = level_nodes(tree_of(old))[level][leaves], level_nodes(tree_of(new))[:-1, codes]
    parts = [len({*zip(before.tolist(), nodes.tolist(), strict=True)}) for nodes in there]
    coarser = [i for i, count in enumerate(parts) if count == len({*before.tolist()})]  # every old node is in one new node
    alike = [i for i in coarser if parts[i] == len({*there[i].tolist()})]
    if len(there) == top_level(old) and level in alike:  # a lower number would disclose what is below the written nodes
        return level
    return next(iter(alike + coarser), STAR)


def leaf_losses(kind: Kind, domain: Domain, level: int, leaves: Int32) -> NDArray[np.float64]:
    """Loss of a row of each of these leaves at a level, variant A.

    Nodes of a tree have the loss that every method minimizes; ranges are measured as if no others were written.

    >>> from closeknit.core.kinds import numeric
    >>> kind = numeric(0, 100, step=10)
    >>> leaf_losses(kind, kind.bind(np.array([3, 7, 12]))[0], 1, np.array([0, 2])).tolist()
    [0.1, 0.1]
    """
    if domain.tree is not None:
        lost: NDArray[np.float64] = domain.node_losses[level_nodes(domain.tree)[level][leaves]]
        return lost
    return kind.losses(at_level(domain, level).labels(leaves, leaves))[:, 0]
