"""Edits of a hierarchy: rename, move, merge and dissolve nodes; replace values by a level; import and export as CSV.

A node is identified by its path, the labels from below the root. Leaves are values of the table and keep their names. Every
edit returns a new hierarchy, marked `from_data` if the old one was.
"""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from closeknit.core.builders import Dicts
from closeknit.core.columns import Column
from closeknit.core.domain import RANGE_TEXT
from closeknit.core.errors import BadInput
from closeknit.core.hierarchy import Hierarchy
from closeknit.core.kind_forms import kind_form
from closeknit.core.tree import STAR
from closeknit.web.desk.draft import Draft
from closeknit.web.desk.roles import kind_of, missing_of, with_kind
from closeknit.web.desk.trees import as_hierarchy, bind_column

NodePath = Sequence[str]
DELIMITER = ";"
PASSING = "closeknit-hierarchy-"  # name of temporary folders, which the next server deletes if one was killed
LONGEST_TEXT = 16 << 20


def edit_tree(draft: Mapping[str, Any], column: Column, name: str, do: Callable[[Hierarchy], Hierarchy]) -> Draft:
    """Return the draft with a changed tree of a column; a tree derived from the table is written out first.

    >>> from closeknit.core.columns import Columns
    >>> sexes = Columns.of({"sex": ["f", "m"]})["sex"]
    >>> draft = {"schema": {"quasi": {"sex": "flat"}}}
    >>> edit_tree(draft, sexes, "sex", lambda tree: merge_nodes(tree, [["f"], ["m"]], "any"))["schema"]
    {'quasi': {'sex': {'tree': {'*': {'any': ['f', 'm']}}, 'from_data': True}}}
    """
    seen = bind_column(column, name, kind_of(draft, name), missing_of(draft))
    return with_kind(draft, name, kind_form(do(as_hierarchy(seen))))


def rename_node(hierarchy: Hierarchy, path: NodePath, label: str) -> Hierarchy:
    """Rename a node.

    >>> rename_node(Hierarchy({"A": ["a", "b"], "C": ["c"]}), ["A"], "first").nested
    {'*': {'first': {'a': None, 'b': None}, 'C': {'c': None}}}
    """
    name, top = _name(label), _top(hierarchy)
    parent, old = _parent(top, path), path[-1]
    if parent[old] is None:
        raise BadInput(f"'{old}' is a value of the table", right="values keep their names; put it under a node of that name")
    if name != old and name in parent:
        raise BadInput(f"a sibling is called '{name}' already", right="merge the two, or choose another name")
    entries = [(name if key == old else key, below) for key, below in parent.items()]
    parent.clear()
    parent.update(entries)
    return _rebuild(hierarchy, top)


def move_nodes(hierarchy: Hierarchy, paths: Sequence[NodePath], under: NodePath) -> Hierarchy:
    """Move nodes or values under another node (an empty path is the root); empty nodes are removed.

    >>> move_nodes(Hierarchy({"A": ["a", "b"], "C": ["c"]}), [["C", "c"]], ["A"]).nested
    {'*': {'A': {'a': None, 'b': None, 'c': None}}}
    """
    top = _top(hierarchy)
    target = _node(top, under)
    for path in paths:
        if list(under[: len(path)]) == list(path):
            raise BadInput(f"'{path[-1]}' cannot be moved under itself", right="choose a node outside of it")
    for path in paths:
        _add(target, path[-1], _parent(top, path).pop(path[-1]))
    _drop_empty(top)
    return _rebuild(hierarchy, top)


def merge_nodes(hierarchy: Hierarchy, paths: Sequence[NodePath], label: str) -> Hierarchy:
    """Merge several nodes into one of this name, with all their children; values among them become its children.

    >>> merge_nodes(Hierarchy({"A": ["a", "b"], "C": ["c"], "d": None}), [["A"], ["d"]], "A or d").nested
    {'*': {'A or d': {'a': None, 'b': None, 'd': None}, 'C': {'c': None}}}
    """
    name, top = _name(label), _top(hierarchy)
    if len({tuple(path) for path in paths}) < 2:
        raise BadInput("merging takes two nodes at least", right="choose another one too")
    for one in paths:
        if any(list(other[: len(one)]) == list(one) and len(other) > len(one) for other in paths):
            raise BadInput(
                f"'{one[-1]}' is an ancestor of another one of them", right="choose nodes that do not contain others"
            )
    parent = _parent(top, paths[0])
    below: Dicts = {}
    order = list(parent)
    for path in paths:
        taken = _parent(top, path).pop(path[-1])
        for key, part in (taken or {path[-1]: None}).items():
            _add(below, key, part)
    if name in parent or name in below:
        raise BadInput(f"there is a node '{name}' already", right="choose another name")
    others = dict(parent)
    parent.clear()
    for key in order:
        parent.update({name: below} if key == paths[0][-1] else {key: others[key]} if key in others else {})
    _drop_empty(top)
    return _rebuild(hierarchy, top)


def dissolve_node(hierarchy: Hierarchy, path: NodePath) -> Hierarchy:
    """Replace a node by its children.

    >>> dissolve_node(Hierarchy({"A": ["a", "b"], "C": ["c"]}), ["A"]).nested
    {'*': {'a': None, 'b': None, 'C': {'c': None}}}
    """
    top = _top(hierarchy)
    parent, old = _parent(top, path), path[-1]
    below = parent[old]
    if below is None:
        raise BadInput(f"'{old}' is a value of the table", right="a value cannot be removed")
    entries = list(parent.items())
    parent.clear()
    for key, part in entries:
        for inner, deeper in below.items() if key == old else [(key, part)]:
            _add(parent, inner, deeper)
    return _rebuild(hierarchy, top)


def coarsen_values(hierarchy: Hierarchy, level: int) -> Hierarchy:
    """Replace every value by its node at a level before anything else; 0 leaves values as they are.

    >>> coarsen_values(Hierarchy({"A": ["a", "b"], "C": ["c"]}), 1).level
    1
    """
    return replace(hierarchy, level=level)


def _top(hierarchy: Hierarchy) -> Dicts:
    """Return a copy of the nodes under the root."""
    nested: Dicts = hierarchy.nested
    return _copy_nested(nested[STAR] if set(nested) == {STAR} else nested)


def _copy_nested(nested: Mapping[str, Any]) -> Dicts:
    return {label: None if below is None else _copy_nested(below) for label, below in nested.items()}


def _name(label: str) -> str:
    name = label.strip()
    if not name or name == STAR:
        raise BadInput(f"a node cannot be called '{name}'", right="give it a name; '*' is the root")
    return name


def _parent(top: Dicts, path: NodePath) -> Dicts:
    if not path:
        raise BadInput("the root cannot be changed", right="choose a node below it")
    parent = _node(top, path[:-1])
    if path[-1] not in parent:
        raise BadInput(f"the hierarchy has no node '{' > '.join(path)}'", right="choose one of those shown")
    return parent


def _node(top: Dicts, path: NodePath) -> Dicts:
    node: Dicts = top
    for label in path:
        below = node.get(label)
        if below is None:
            value = " (it is a value, and values have no children)" if label in node else ""
            raise BadInput(f"the hierarchy has no node '{' > '.join(path)}'{value}", right="choose one of those shown")
        node = below
    return node


def _add(place: Dicts, label: str, below: Dicts | None) -> None:
    if label in place:
        raise BadInput(f"'{label}' exists there already", right="rename one of the two first")
    place[label] = below


def _drop_empty(nested: Dicts) -> None:
    for label, below in list(nested.items()):
        if below is not None:
            _drop_empty(below)
            if not below:
                del nested[label]


def _rebuild(hierarchy: Hierarchy, top: Dicts) -> Hierarchy:
    """Build the edited hierarchy; intervals are sorted again, and must still be neighbours."""
    if hierarchy.edges is None:
        return Hierarchy(_add_root(hierarchy, top), hierarchy.from_data, level=hierarchy.level)
    ends = dict(zip(hierarchy.tree.leaf_labels, hierarchy.edges, strict=True))
    rooted = _add_root(hierarchy, _by_edge(top, ends))
    edges = tuple(ends[leaf] for leaf in Hierarchy(rooted).tree.leaf_labels)
    if list(edges) != sorted(edges):
        raise BadInput("a node would hold intervals that are not neighbours", right="merge intervals that touch each other")
    return Hierarchy(rooted, hierarchy.from_data, edges)


def _add_root(hierarchy: Hierarchy, top: Dicts) -> Dicts:
    """Keep a named root; otherwise add `*`, because a single remaining branch must not become the root."""
    named = STAR not in hierarchy.nested and len(hierarchy.nested) == 1 and len(top) == 1 and all(top.values())
    return top if named else {STAR: top}


def _by_edge(nested: Dicts, ends: Mapping[str, tuple[float, float]]) -> Dicts:
    parts = {label: None if below is None else _by_edge(below, ends) for label, below in nested.items()}
    return dict(sorted(parts.items(), key=lambda part: _first(part[0], part[1], ends)))


def _first(label: str, below: Dicts | None, ends: Mapping[str, tuple[float, float]]) -> float:
    while below:
        label, below = next(iter(below.items()))
    return ends[label][0]


def export_csv(hierarchy: Hierarchy) -> str:
    """Return one value per line, `leaf;parent;...;root`, as `Hierarchy.read_csv` reads it.

    >>> print(export_csv(Hierarchy({"A": ["a", "b"], "c": None})), end="")
    a;A;*
    b;A;*
    c;*
    """
    tree, text = hierarchy.tree, io.StringIO()
    writer = csv.writer(text, delimiter=DELIMITER, lineterminator="\n")
    root = int(tree.height[0] == tree.height[1])  # a root with a name of its own is node 1
    for node in tree.leaf_node[:-1].tolist():
        above = [tree.labels[node]]
        while node != root:
            node = int(tree.parent[node])
            above.append(tree.labels[node])
        writer.writerow(above)
    return text.getvalue()


def import_csv(text: str, *, from_data: bool) -> Hierarchy:
    """Read a hierarchy from the text of a file; if every value is an interval, it applies to numbers.

    `from_data`: whether it was derived from this table, so that a certificate must not disclose values that do not occur.

    >>> import_csv("a;A;*\\nb;A;*\\nc;*\\n", from_data=False).cover([0], [1])
    ['A']
    >>> import_csv("[0, 10);young;*\\n[10, 20];old;*\\n", from_data=False).edges
    ((0.0, 10.0), (10.0, 20.0))
    """
    if len(text) > LONGEST_TEXT:
        raise BadInput(f"the hierarchy has {len(text):,} characters", right=f"at most {LONGEST_TEXT:,} are allowed")
    with tempfile.TemporaryDirectory(prefix=PASSING) as folder:
        file = Path(folder, "hierarchy.csv")
        file.write_text(text, encoding="utf-8", newline="")
        try:
            read = Hierarchy.read_csv(file, DELIMITER)
        except BadInput as bad:
            raise bad.replace(file="the hierarchy") from None
    ranges = [RANGE_TEXT.fullmatch(leaf) for leaf in read.tree.leaf_labels]
    if not all(ranges):
        return Hierarchy(read.nested, from_data)
    return Hierarchy(read.nested, from_data, tuple((float(match[1]), float(match[2])) for match in ranges if match))
