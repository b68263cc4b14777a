"""`Tree` against plain recursion over nested mappings: covers, ranges, heights, the way back, losses of written cells."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, count
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from closeknit.core.errors import BadInput
from closeknit.core.kinds import BadValue, tree_losses
from closeknit.core.tree import STAR, Tree

Node = tuple[str, frozenset[str], int]  # label, leaves under it, height

shapes = st.recursive(st.none(), lambda below: st.lists(below, min_size=1, max_size=4), max_leaves=12)


def named(shape: list[Any] | None, numbers: Any, shared: bool) -> dict[str, Any] | None:
    """Labels for a shape; with `shared`, an only child that is a leaf is called like its parent."""
    if shape is None:
        return None
    nested: dict[str, Any] = {}
    for child in shape:
        label = f"n{next(numbers)}"
        nested[label] = {label: None} if shared and child == [None] else named(child, numbers, shared)
    return nested


@st.composite
def nested_trees(draw: st.DrawFn) -> dict[str, Any]:
    """Unbalanced trees with only children, under `*`, under a root with a name, or without a declared root."""
    shape = draw(shapes.filter(lambda shape: shape is not None))
    nested = named(shape, count(), draw(st.booleans()))
    assert nested is not None
    top = draw(st.sampled_from(["", STAR, "root"]))
    return {top: nested} if top else nested


def walk(nested: dict[str, Any]) -> tuple[list[Node], list[str]]:
    """All nodes below the top and the leaves in order, by plain recursion."""
    nodes: list[Node] = []
    leaves: list[str] = []
    for label, below in nested.items():
        if below is None:
            nodes.append((label, frozenset([label]), 0))
            leaves.append(label)
            continue
        under, under_leaves = walk(below)
        children = [height for name, _, height in under if name in below]
        nodes += [(label, frozenset(under_leaves), 1 + max(children)), *under]
        leaves += under_leaves
    return nodes, leaves


def all_nodes(nested: dict[str, Any]) -> tuple[list[Node], list[str]]:
    """As `walk`, with the root on top: a single inner top node is the root, else `*`."""
    inner = nested[STAR] if set(nested) == {STAR} else nested
    nodes, leaves = walk(inner)
    if inner is nested and len(nested) == 1 and next(iter(nested.values())) is not None:
        return nodes, leaves
    top = 1 + max(height for name, _, height in nodes if name in inner)
    return [(STAR, frozenset(leaves), top), *nodes], leaves


@given(nested_trees())
def test_cover_is_the_smallest_node_that_holds_the_range(nested: dict[str, Any]) -> None:
    tree = Tree.of(nested)
    nodes, leaves = all_nodes(nested)
    assert tree.leaf_labels == leaves
    for lo in range(tree.size):
        for hi in range(lo, tree.size):
            wanted = set(leaves[lo : hi + 1])
            smallest = min(len(under) for _, under, _ in nodes if wanted <= under)
            names = {name for name, under, _ in nodes if wanted <= under and len(under) == smallest}
            node = int(tree.cover([lo], [hi])[0])
            assert tree.labels[node] in names
            assert tree.leaves[node] == smallest
            lowest = min(height for _, under, height in nodes if wanted <= under)
            assert tree.height[node] == lowest


@given(nested_trees())
def test_ranges_are_nested_and_follow_the_parents(nested: dict[str, Any]) -> None:
    tree = Tree.of(nested)
    for a, b in combinations(range(len(tree.labels)), 2):
        apart = tree.hi[a] < tree.lo[b] or tree.hi[b] < tree.lo[a]
        inside = tree.lo[a] <= tree.lo[b] and tree.hi[b] <= tree.hi[a]
        assert apart or inside  # b comes later in pre-order, so it never holds a
    for node in range(1, len(tree.labels)):
        parent = tree.parent[node]
        assert parent < node
        assert tree.lo[parent] <= tree.lo[node] and tree.hi[node] <= tree.hi[parent]


@given(nested_trees())
def test_nested_is_the_way_back(nested: dict[str, Any]) -> None:
    tree = Tree.of(nested)
    again = Tree.of(tree.to_nested())  # type: ignore[arg-type]
    assert tree.labels == again.labels
    for name in ("parent", "lo", "hi", "height", "leaves", "leaf_node"):
        assert getattr(tree, name).tolist() == getattr(again, name).tolist()


@given(nested_trees())
def test_a_label_names_one_set_of_leaves(nested: dict[str, Any]) -> None:
    tree = Tree.of(nested)
    ranges: dict[str, tuple[int, int]] = {}
    for label, lo, hi in zip(tree.labels, tree.lo.tolist(), tree.hi.tolist(), strict=True):
        assert ranges.setdefault(label, (lo, hi)) == (lo, hi)


@given(nested_trees())
def test_ground_distance_follows_the_heights(nested: dict[str, Any]) -> None:
    """d(u, v) = height of the lowest common ancestor / height of the tree, an ultrametric."""
    tree = Tree.of(nested)
    nodes, leaves = all_nodes(nested)
    top = nodes[0][2]
    assert tree.height[0] == top
    distance = {}
    for (i, u), (j, v) in combinations(enumerate(leaves), 2):
        expected = Fraction(min(height for _, under, height in nodes if {u, v} <= under), top)
        distance[i, j] = expected
        assert Fraction(int(tree.height[tree.cover([i], [j])[0]]), int(tree.height[0])) == expected
    for i, j, k in combinations(range(len(leaves)), 3):
        assert distance[i, k] <= max(distance[i, j], distance[j, k])


@given(nested_trees())
def test_missing_is_a_leaf_under_the_star_alone(nested: dict[str, Any]) -> None:
    tree = Tree.of(nested)
    size = tree.size
    cells = [tree.labels[node] for node in tree.cover([size, *range(size)], [size] * (size + 1))]
    assert cells == ["", *[STAR] * size]
    assert tree_losses(tree, cells)[:, 0].tolist() == [0.0, *[1.0] * size]


@given(nested_trees())
def test_written_cells_cost_what_their_ranges_cost(nested: dict[str, Any]) -> None:
    tree = Tree.of(nested)
    pairs = [(lo, hi) for lo in range(tree.size + 1) for hi in range(lo, tree.size + 1)]
    nodes = tree.cover([lo for lo, _ in pairs], [hi for _, hi in pairs])
    losses = tree_losses(tree, [tree.labels[node] for node in nodes])
    assert losses[:, 0].tolist() == tree.node_loss()[nodes].tolist()
    for (lo, hi), (a, b), node in zip(pairs, losses, nodes, strict=True):
        under = int(tree.leaves[node])
        if tree.labels[node] == STAR:
            assert a == b == 1
        elif lo == hi or under == 1:
            assert a == b == 0
        else:
            assert a == pytest.approx(under / tree.size)
            assert b == pytest.approx((under - 1) / (tree.size - 1))


def test_only_children_raise_the_heights_above_them() -> None:
    tree = Tree.of({"X": {"Y": {"a": None, "b": None}}, "c": None})
    heights = dict(zip(tree.labels, tree.height.tolist(), strict=True))
    assert heights == {STAR: 3, "X": 2, "Y": 1, "a": 0, "b": 0, "c": 0, "": 0}
    assert [tree.labels[i] for i in tree.cover([0, 0], [1, 2])] == ["Y", STAR]


def test_a_branch_below_a_declared_star_stays_a_level() -> None:
    below_star, as_root = Tree.of({STAR: {"A": {"x": None, "y": None}}}), Tree.of({"A": {"x": None, "y": None}})
    assert (below_star.height[0], as_root.height[0]) == (2, 1)
    assert below_star.to_nested() == {STAR: {"A": {"x": None, "y": None}}}
    assert as_root.to_nested() == {"A": {"x": None, "y": None}}


@pytest.mark.parametrize(
    ("nested", "words"),
    [
        ({}, ["at least one leaf"]),
        ({STAR: {}}, ["at least one leaf"]),
        ({"A": {"x": None}, "B": {"x": None}}, ["leaf 'x' occurs twice"]),
        ({"A": {"x": None}, "B": {"A": {"y": None}}}, ["not nested", "'A'", "level 1 and level 2"]),
        ({"A": {"x": None}, "B": {"A": None}}, ["not nested", "'A'", "level 1 and level 2"]),
        ({"A": {STAR: None}}, ["'*'", "level 2"]),
        ({"A": {"B": {"": None}}}, ["''", "level 3"]),
    ],
)
def test_what_is_no_tree_is_refused_with_value_and_level(nested: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(BadInput) as refused:
        Tree.of(nested)
    assert all(word in str(refused.value) for word in words), str(refused.value)


def test_a_cell_that_is_no_node_is_named() -> None:
    with pytest.raises(BadValue) as refused:
        tree_losses(Tree.of({"A": {"x": None}, "y": None}), ["x", "A", "Q"])
    assert refused.value.index == 2 and "'Q'" in refused.value.what


def test_no_ranges_have_no_cover() -> None:
    assert Tree.of({"a": None}).cover(np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32)).tolist() == []
