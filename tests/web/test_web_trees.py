"""Hierarchies behind the page: shown, built, edited, imported and exported without losing a value, an order or a mark."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import closeknit as ck
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.core.kind_forms import kind_form, kind_from
from closeknit.core.levels import at_level, top_level
from closeknit.web.desk import draft, roles, tree_builders, tree_edits, trees
from conftest import examples

HOSPITAL = ck.datasets.hospital(300)
DRAFT: dict[str, Any] = ck.datasets.hospital_recipe("table.csv")
JOBS = HOSPITAL["job"]


def test_a_tree_counts_each_row_once_and_says_what_it_leaves_out() -> None:
    seen = trees.bind_column(JOBS, "job", kind_form(ck.datasets.hospital_schema().quasi["job"]))
    root = trees.tree_view(seen, depth=9)
    times = Counter(JOBS.cells())

    def check(node: trees.Node) -> None:
        below = sum(child.rows for child in node.children) + node.more_rows
        assert node.rows == (times[node.path[-1]] if node.leaf else below)
        for child in node.children:
            check(child)

    check(root)
    few = trees.tree_view(seen, breadth=2)
    assert few.more == len(root.children) - 2 and few.more_rows == sum(node.rows for node in root.children[2:])
    rest = trees.tree_view(seen, start=2, depth=9)
    assert rest.children == root.children[2:]
    assert trees.tree_view(seen, root.children[1].path, depth=9) == root.children[1]


@pytest.mark.parametrize("name", ["age", "zip", "job", "admission", "sex"])
def test_a_preview_reads_as_the_column_would(name: str) -> None:
    form = kind_form(ck.datasets.hospital_schema().quasi[name])
    seen = trees.bind_column(HOSPITAL[name], name, form)
    shown = trees.preview(seen)
    assert shown.levels == top_level(seen.domain) + 1
    for cells in shown.rows:
        leaf = np.array([seen.domain.texts.index(cells[0])], dtype=np.int32)
        assert list(cells) == [at_level(seen.domain, level).labels(leaf, leaf)[0] for level in range(shown.levels)]
    assert set(shown.values) <= {str(value) for value in HOSPITAL[name].values.tolist()}
    assert shown.different[-1] == 1 and shown.smallest[-1] == HOSPITAL.rows


@settings(max_examples=examples(50))
@given(st.lists(st.integers(-50, 50), min_size=1, max_size=60), st.integers(1, 9))
def test_quantiles_are_those_of_all_rows(numbers: list[int], bins: int) -> None:
    column = Columns.of({"n": [*numbers, None]})["n"]
    made = tree_builders.build_kind("quantiles", column, "n", {"bins": str(bins)})
    assert kind_from(made) == ck.Hierarchy.quantiles(numbers, bins)


@pytest.mark.parametrize(
    ("builder", "name", "typed"),
    [
        ("flat", "sex", {}),
        ("numeric", "age", {"lo": "0", "hi": "120", "step": "5", "bins": ""}),
        ("intervals", "age", {"lo": "0", "hi": "120", "width": "5", "fanout": "3"}),
        ("intervals", "age", {"edges": "0, 18; 65 120"}),
        ("quantiles", "age", {"bins": "6"}),
        ("prefix", "zip", {"length": "5"}),
        ("dates", "admission", {"levels": "month, year"}),
        ("rare", "job", {"limit": "20", "label": "(few)"}),
        ("balanced", "job", {"fanout": "3"}),
    ],
)
def test_what_a_builder_makes_fits_its_column_and_stands_in_a_recipe(builder: str, name: str, typed: dict[str, str]) -> None:
    assert builder in tree_builders.list_builders(HOSPITAL[name], name)
    form = tree_builders.build_kind(builder, HOSPITAL[name], name, typed)
    changed = roles.with_kind(DRAFT, name, form)
    assert roles.column_faults(HOSPITAL, changed) == {}
    again = draft.recipe_of(draft.read_draft(draft.draft_text(changed))).schema
    assert again.quasi[name] == kind_from(form)
    assert getattr(again.quasi[name], "from_data", False) == (builder in ("quantiles", "rare", "balanced"))


@pytest.mark.parametrize(
    ("builder", "name", "typed"),
    [
        ("intervals", "age", {}),
        ("intervals", "age", {"lo": "x"}),
        ("quantiles", "job", {"bins": "3"}),
        ("rare", "job", {}),
        ("dates", "admission", {"levels": "week"}),
        ("numeric", "age", {"depth": "3"}),
        ("spline", "age", {}),
    ],
)
def test_what_was_typed_wrongly_is_said(builder: str, name: str, typed: dict[str, str]) -> None:
    with pytest.raises(BadInput):
        tree_builders.build_kind(builder, HOSPITAL[name], name, typed)


TREES = st.recursive(st.none(), lambda below: st.lists(below, min_size=1, max_size=3), max_leaves=12)


def grown(shape: Any, path: str = "n") -> Any:
    """A tree of this shape with a name of its own for each node."""
    return None if shape is None else {f"{path}{i}": grown(part, f"{path}{i}.") for i, part in enumerate(shape)}


@settings(max_examples=examples(60))
@given(st.lists(TREES, min_size=1, max_size=3), st.booleans(), st.booleans(), st.data())
def test_edits_keep_every_value_and_the_mark(shape: Any, star: bool, from_data: bool, data: st.DataObject) -> None:
    nested = grown(shape)
    tree = ck.Hierarchy({"*": nested} if star else nested, from_data)
    seen = trees.tree_view(trees.bind_column(Columns.of({"n": tree.tree.leaf_labels})["n"], "n", tree), breadth=99, depth=99)
    nodes = []

    def collect(node: trees.Node) -> None:
        for child in node.children:
            nodes.append(child)
            collect(child)

    collect(seen)
    one, other = data.draw(st.sampled_from(nodes)), data.draw(st.sampled_from(nodes))
    for edit in (
        lambda: tree_edits.rename_node(tree, one.path, "new"),
        lambda: tree_edits.move_nodes(tree, [one.path], other.path),
        lambda: tree_edits.merge_nodes(tree, [one.path, other.path], "new"),
        lambda: tree_edits.dissolve_node(tree, one.path),
    ):
        try:
            made = edit()
        except BadInput:
            continue
        assert sorted(made.tree.leaf_labels) == sorted(tree.tree.leaf_labels) and made.from_data == from_data
        assert tree_edits.import_csv(tree_edits.export_csv(made), from_data=from_data).tree.to_nested() == made.tree.to_nested()
    assert tree.nested == ck.Hierarchy({"*": nested} if star else nested, from_data).nested


def test_edits_do_what_they_say() -> None:
    tree = ck.Hierarchy({"all": {"A": ["a", "b"], "C": {"D": ["d"], "e": None}}})
    assert tree_edits.rename_node(tree, ["all", "A"], "B").nested["all"]["B"] == {"a": None, "b": None}
    moved = tree_edits.move_nodes(tree, [["all", "A", "a"], ["all", "A", "b"]], ["all", "C", "D"])
    assert moved.nested == {"all": {"C": {"D": {"d": None, "a": None, "b": None}, "e": None}}}
    merged = tree_edits.merge_nodes(tree, [["all", "C", "e"], ["all", "A"]], "new")
    assert merged.nested == {"all": {"C": {"D": {"d": None}, "new": {"e": None, "a": None, "b": None}}}}
    coarse = tree_edits.coarsen_values(tree, 1)
    assert tree_edits.rename_node(coarse, ["all", "A"], "B").level == 1  # an edit does not publish finer values again
    for wrong in (
        lambda: tree_edits.coarsen_values(tree, 3),
        lambda: tree_edits.rename_node(tree, ["all", "A", "a"], "z"),
        lambda: tree_edits.rename_node(tree, ["all", "A"], "C"),
        lambda: tree_edits.rename_node(tree, ["all", "A"], "*"),
        lambda: tree_edits.move_nodes(tree, [["all", "C"]], ["all", "C", "D"]),
        lambda: tree_edits.move_nodes(tree, [["all", "A"]], ["all", "C", "e"]),
        lambda: tree_edits.merge_nodes(tree, [["all", "A"], ["all", "A", "a"]], "z"),
        lambda: tree_edits.rename_node(tree, ["no"], "z"),
    ):
        with pytest.raises(BadInput):
            wrong()


def test_edited_intervals_still_hold_their_numbers() -> None:
    tree = ck.Hierarchy.intervals(edges=[0, 10, 20, 30, 40], fanout=2)
    low, high = ["[0, 20)"], ["[20, 40]"]
    moved = tree_edits.move_nodes(tree, [[*low, "[10, 20)"]], high)
    shown = trees.preview(trees.bind_column(Columns.of({"n": [5, 15, 40]})["n"], "n", moved))
    assert list(zip(shown.values, (row[1] for row in shown.rows), strict=True))[1] == ("15", "[20, 40]")
    domain, codes = moved.bind(np.array([5, 15, 25, 40]))
    assert [domain.texts[code] for code in codes] == ["[0, 10)", "[10, 20)", "[20, 30)", "[30, 40]"]
    assert tree_edits.import_csv(tree_edits.export_csv(moved), from_data=False) == moved
    with pytest.raises(BadInput, match="not neighbours"):
        tree_edits.move_nodes(tree, [[*low, "[0, 10)"]], high)


def test_numbers_without_nodes_cannot_be_edited() -> None:
    with pytest.raises(BadInput, match="build intervals"):
        tree_edits.edit_tree(DRAFT, HOSPITAL["age"], "age", lambda tree: tree)
    changed = tree_edits.edit_tree(DRAFT, HOSPITAL["zip"], "zip", lambda tree: tree_edits.dissolve_node(tree, ["0****"]))
    assert draft.recipe_of(changed).schema.quasi["zip"].from_data


@pytest.mark.parametrize("text", ["", "a", "a;*\na;*", "a;B;*\nb;B;C", "a;;*", 'a;"'])
def test_an_imported_tree_is_checked_and_its_place_is_not_shown(text: str) -> None:
    with pytest.raises(BadInput) as caught:
        tree_edits.import_csv(text, from_data=False)
    assert str(caught.value).startswith("the hierarchy") and "tmp" not in str(caught.value)
