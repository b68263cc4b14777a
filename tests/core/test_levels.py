"""Levels: nested cuts of a tree, the columns of a file, and the form that writes whole nodes of them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import closeknit as ck
from closeknit.checks import form_checks
from closeknit.checks.tables import edge_tables
from closeknit.core.levels import at_level, level_nodes, top_level
from closeknit.core.table import Partition
from closeknit.core.tree import Tree
from closeknit.forms import generalized
from conftest import examples
from exhaustive import AXES, encoded

trees = st.recursive(st.none(), lambda below: st.lists(below, min_size=1, max_size=3), max_leaves=12)


def named(shape: Any, name: str = "n") -> Any:
    return None if shape is None else {f"{name}{i}": named(child, f"{name}{i}") for i, child in enumerate(shape)}


@settings(max_examples=examples(100))
@given(trees.filter(bool))
def test_levels_are_nested_cuts_from_the_leaves_to_the_star(shape: Any) -> None:
    tree = Tree.of({"*": named(shape)})
    levels = level_nodes(tree)
    assert levels[0].tolist() == tree.leaf_node.tolist() and not levels[-1].any()
    for low, high in itertools.pairwise(levels):
        goes = {}
        for a, b in zip(low.tolist(), high.tolist(), strict=True):
            assert goes.setdefault(a, b) == b and tree.lo[b] <= tree.lo[a] and tree.hi[a] <= tree.hi[b]
    for nodes in levels:
        covered = sorted(leaf for node in set(nodes.tolist()) for leaf in range(tree.lo[node], tree.hi[node] + 1))
        assert covered == list(range(tree.size + 1))  # each leaf once: nodes of a level do not overlap
    assert all((levels[i, :-1] != levels[i + 1, :-1]).any() for i in range(len(levels) - 1))


def test_levels_of_a_file_are_its_columns(data_folder: Path) -> None:
    file = data_folder / "adult" / "hierarchies" / "adult_hierarchy_education.csv"
    domain, codes = ck.Hierarchy.read_csv(file).bind(np.array(["Bachelors", "11th"], dtype=object))
    lines = [line.split(";") for line in file.read_text().splitlines() if line.startswith(("Bachelors", "11th"))]
    assert top_level(domain) == 3
    for level in range(4):
        assert at_level(domain, level).labels(codes, codes) == [line[level] for line in lines]


@pytest.mark.parametrize("name", ["missing cells", "odd codes and trees", "steps", "only missing cells"])
def test_whole_levels_pass_the_checks_of_a_form(name: str) -> None:
    case = next(case for case in edge_tables() if case.name == name)
    domains = case.schema.encode(case.columns).quasi_domains
    for part in (0, 1):
        tops = {column: top_level(domain) for column, domain in zip(case.schema.quasi, domains, strict=True)}
        form = generalized(levels={column: top * part // 2 for column, top in tops.items()})
        for check in form_checks(form, [case]):
            check.run()


def test_a_cell_is_the_whole_node_though_a_tighter_one_would_do() -> None:
    axes = {"job": AXES["job"], "visits": AXES["visits"]}
    rows = [{"job": "farmer", "visits": visits, "blood": "A"} for visits in (1, 2, 3, 4)]
    table = encoded(rows, axes, [1, 1], ["blood"])
    everyone = Partition.of([0] * 4)
    cells = generalized(levels={"job": 2, "visits": 1}).write(table, everyone).columns
    assert {name: set(cells[name].cells()) for name in axes} == {"job": {"field"}, "visits": {"[0, 10]"}}
    tight = generalized().write(table, everyone).columns
    assert {name: set(tight[name].cells()) for name in axes} == {"job": {"farmer"}, "visits": {"[1, 4]"}}


@pytest.mark.parametrize(
    ("levels", "word"),
    [([2], "mapping"), ({"age": -1}, "age"), ({"age": 1.5}, "age"), ({"ward": 0}, "ward"), ({"sex": 9}, "are 0 to 1")],
)
def test_wrong_levels_are_refused(levels: Any, word: str) -> None:
    table = ck.datasets.hospital_schema().encode(ck.datasets.hospital(20))
    with pytest.raises(ck.BadInput, match=word):
        generalized(levels=levels).write(table, Partition.of([0] * 20))


def test_levels_of_one_column_do_not_silence_the_note_on_another():
    table, schema = ck.datasets.hospital(200), ck.datasets.hospital_schema()
    release = ck.anonymize(
        table, schema, [ck.KAnonymity(4)], ck.Mondrian(), form=ck.generalized(levels={"sex": 0}), seed=2**100
    )
    assert any(cell.startswith("[") for cell in release.columns["age"].cells())
    assert any("'age': both ends" in note for note in release.certificate.notes)


def test_levels_from_numpy_can_be_saved(tmp_path):
    table, schema = ck.datasets.hospital(50), ck.datasets.hospital_schema()
    form = ck.generalized(levels={"zip": np.int64(2)})
    ck.anonymize(table, schema, [ck.KAnonymity(2)], ck.Mondrian(), form=form, seed=2**100).save(tmp_path / "out")
