"""`Hierarchy`: its file, its builders, what it refuses, and what a tree derived from data may disclose."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_trees import nested_trees

from closeknit.core.errors import BadInput
from closeknit.core.hierarchy import Hierarchy
from closeknit.core.kinds import BadValue
from closeknit.core.tree import STAR
from closeknit.core.written_kinds import WrittenNodes

labels = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters="*"), min_size=1)


def texts(*values: str) -> np.ndarray:
    return np.array(values, dtype=object)


def lines_of(nested: dict[str, Any], above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Leaf first, root last."""
    lines = []
    for label, below in nested.items():
        path = (label, *above)
        lines += [path] if below is None else lines_of(below, path)
    return lines


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "tree.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


# --- the file


@given(nested_trees())
def test_a_file_gives_its_tree_back(tmp_path_factory: pytest.TempPathFactory, nested: dict[str, Any]) -> None:
    rooted = nested if len(nested) == 1 and next(iter(nested.values())) else {STAR: nested}
    path = written(tmp_path_factory.mktemp("tree"), "".join(";".join(line) + "\n" for line in lines_of(rooted)))
    read = Hierarchy.read_csv(path)
    assert read == Hierarchy(rooted)
    assert read.tree.labels == Hierarchy(rooted).tree.labels


def test_quotes_marks_blank_lines_and_other_delimiters_are_read(tmp_path: Path) -> None:
    path = written(tmp_path, b'\xef\xbb\xbf"a,b",A,*\r\n\r\nc,A,*\r\nd,*,*\r\n')
    read = Hierarchy.read_csv(path, delimiter=",")
    assert read.nested == {STAR: {"A": {"a,b": None, "c": None}, "d": None}}
    latin = Hierarchy.read_csv(written(tmp_path, "é;*\nü;*\n".encode("latin-1")), encoding="latin-1")
    assert latin.tree.leaf_labels == ["é", "ü"]


def test_a_name_may_go_on_over_several_levels(tmp_path: Path) -> None:
    tree = Hierarchy.read_csv(written(tmp_path, "1;1;1;*\n2;2-3;2-3;*\n3;2-3;2-3;*\n")).tree
    assert tree.leaf_labels == ["1", "2", "3"]
    assert tree.height[0] == 3
    assert [tree.labels[node] for node in tree.cover([0, 1, 0], [0, 2, 2])] == ["1", "2-3", STAR]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["empty"]),
        ("\n\n", ["empty"]),
        ("a;A;*\nb;A;all\n", ["row 2", "'b'", "'all'", "level 2", "'*'"]),
        ("a;X;P;*\nb;X;Q;*\n", ["row 2", "not nested", "'X'", "level 1", "'P'", "'Q'"]),
        ("a;X;*\nb;X;P;*\n", ["row 2", "not nested", "'X'", "level 1", "'P'", "'*'"]),
        ("a;X;X;*\nb;X;*\n", ["not nested", "'X'", "level"]),
        ("a;A;*\na;A;*\n", ["row 2", "'a'", "level 0", "row 1"]),
        ("a;A;*\na;B;*\n", ["row 2", "'a'", "level 0", "row 1"]),
        ("a;;*\n", ["row 1", "level 1", "'a'", "empty"]),
        ("a;A;*\n;A;*\n", ["row 2", "level 0", "empty"]),
        ("a;A;*\nb;A;\n", ["row 2", "level 2", "'b'", "empty"]),
        ("a;b;*\nb;*\n", ["row 1", "'b'", "level 1", "leaf"]),
        ("a;b;*\nb;b;*\n", ["row 1", "'b'", "level 1", "leaf"]),
        ("a;*\nb\n", ["row 2", "'b'", "no level above"]),
        ("a;*;all\n", ["row 1", "level 1", "'*'"]),
        ('"a;*\n', ["not CSV"]),
        (b"a;*\n\xff;*\n", ["byte 4", "utf-8"]),
    ],
)
def test_a_wrong_file_is_refused_by_name_value_and_level(tmp_path: Path, text: str | bytes, words: list[str]) -> None:
    path = written(tmp_path, text)
    with pytest.raises(BadInput) as refused:
        Hierarchy.read_csv(path)
    assert all(word in str(refused.value) for word in [str(path), *words]), str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    for path, word in ((tmp_path / "no.csv", "no such"), (tmp_path, "cannot be read")):
        with pytest.raises(BadInput) as refused:
            Hierarchy.read_csv(path)
        assert str(path) in str(refused.value) and word in str(refused.value)
    with pytest.raises(BadInput, match="encoding 'klingon'"):
        Hierarchy.read_csv(written(tmp_path, "a;*\n"), encoding="klingon")
    with pytest.raises(BadInput, match="delimiter"):
        Hierarchy.read_csv(written(tmp_path, "a;*\n"), delimiter=";;")


def test_public_hierarchies_are_read_and_cover_their_columns(data_folder: Path) -> None:
    files = sorted(data_folder.glob("*/hierarchies/*.csv"))
    assert len(files) == 14
    for path in files:
        tree = Hierarchy.read_csv(path).tree
        lines = path.read_text(encoding="utf-8").splitlines()
        assert tree.size == len(lines)
        for line in lines:
            leaf, *above = line.split(";")
            node, path_up = int(tree.leaf_node[tree.leaf_labels.index(leaf)]), []
            while node:
                node = int(tree.parent[node])
                path_up.append(tree.labels[node])
            assert path_up == above
    with gzip.open(data_folder / "adult" / "adult.csv.gz", "rt", encoding="utf-8") as rows:
        header, *cells = [line.rstrip("\n").split(",") for line in rows]
    for name in ("age", "workclass", "occupation", "native-country", "salary-class"):
        read = Hierarchy.read_csv(data_folder / "adult" / "hierarchies" / f"adult_hierarchy_{name}.csv")
        present = sorted({row[header.index(name)] for row in cells} - {"?"})
        values = np.array([int(age) for age in present]) if name == "age" else texts(*present)
        domain, codes = read.bind(values)
        assert [domain.texts[code] for code in codes] == present


# --- nested mappings


def test_nested_takes_lists_mappings_and_numbers_as_names() -> None:
    hierarchy = Hierarchy.from_nested({"odd": [1, 3.0, {"big": [5, 7.5]}], "flags": [True, False], 2: None})
    assert hierarchy.nested == {
        "odd": {"1": None, "3": None, "big": {"5": None, "7.5": None}},
        "flags": {"true": None, "false": None},
        "2": None,
    }
    assert hierarchy.bind(np.array([7.5, 3.0, 2.0]))[1].tolist() == [3, 1, 6]
    assert hierarchy.bind(np.array([False, True]))[1].tolist() == [5, 4]


@pytest.mark.parametrize(
    ("nested", "words"),
    [
        ({"A": "x"}, ["'x'", "level 2"]),
        ({"A": ["x", "x"]}, ["'x'", "twice", "level 2"]),
        ({"A": [{"B": ["x"]}, {"B": ["y"]}]}, ["'B'", "twice", "level 2"]),
        ({"A": ["x"], "B": ["x"]}, ["'x'", "twice"]),
        ({"A": [None]}, ["without a name"]),
        ({}, ["at least one leaf"]),
        ({"A": ["x"], "B": ["A"]}, ["'A'", "level 1 and level 2"]),
    ],
)
def test_wrong_nesting_is_refused(nested: object, words: list[str]) -> None:
    with pytest.raises(BadInput) as refused:
        Hierarchy.from_nested(nested)
    assert all(word in str(refused.value) for word in words), str(refused.value)


def test_a_value_that_no_leaf_covers_is_named() -> None:
    hierarchy = Hierarchy.from_nested({"A": ["x"], "B": ["y"]})
    for value, word in (("z", "'z' is not a leaf"), ("A", "a node, not a leaf"), ("X", "'X' is not a leaf")):
        with pytest.raises(BadValue) as refused:
            hierarchy.bind(texts("x", value))
        assert refused.value.index == 1 and word in refused.value.what


def test_the_given_mapping_is_not_kept() -> None:
    given_mapping = {"A": {"x": None}, "B": None}
    hierarchy = Hierarchy(given_mapping)
    given_mapping["A"]["y"] = None  # type: ignore[index]
    assert hierarchy.nested == {"A": {"x": None}, "B": None}


# --- builders: each gives a tree that covers its values


edges_lists = st.lists(st.integers(-50, 50), min_size=2, max_size=12, unique=True).map(sorted)


@given(edges_lists, st.integers(2, 4), st.data())
def test_intervals_hold_the_numbers_they_say(edges: list[int], fanout: int, data: st.DataObject) -> None:
    hierarchy = Hierarchy.intervals(edges, fanout=fanout)
    numbers = data.draw(st.lists(st.floats(edges[0], edges[-1]) | st.sampled_from(edges), min_size=1))
    domain, codes = hierarchy.bind(np.array(numbers, dtype=np.float64))
    assert domain.size == len(edges) - 1 and domain.numbers is not None and (np.diff(domain.numbers) > 0).all()
    for number, code in zip(numbers, codes.tolist(), strict=True):
        last = code == len(edges) - 2
        assert edges[code] <= number < edges[code + 1] or (last and number == edges[-1])
        assert domain.texts[code] == f"[{edges[code]}, {edges[code + 1]}{']' if last else ')'}"
    assert hierarchy.bind(texts(*domain.texts))[1].tolist() == list(range(domain.size))
    depths = {_depth(domain.tree, int(node)) for node in domain.tree.leaf_node[:-1]}  # type: ignore[union-attr]
    assert len(depths) == 1
    for node, label in enumerate(domain.tree.labels[1:-1], start=1):  # type: ignore[union-attr]
        lo, hi = int(domain.tree.lo[node]), int(domain.tree.hi[node])  # type: ignore[union-attr]
        assert label == f"[{edges[lo]}, {edges[hi + 1]}{']' if edges[hi + 1] == edges[-1] else ')'}"


def _depth(tree: Any, node: int) -> int:
    return 0 if node == 0 else 1 + _depth(tree, int(tree.parent[node]))


def test_intervals_by_width_keep_decimals_as_written() -> None:
    hierarchy = Hierarchy.intervals(lo=0.1, hi=0.75, width=0.1, levels=[2])
    assert hierarchy.tree.leaf_labels[2] == "[0.3, 0.4)" and hierarchy.tree.leaf_labels[-1] == "[0.7, 0.75]"
    domain, codes = hierarchy.bind(np.array([0.3, 0.1 + 0.2 - 1e-12, 0.75]))
    assert codes.tolist() == [2, 1, 6]
    assert domain.labels(np.array([0, 6]), np.array([1, 6])) == ["[0.1, 0.3)", "[0.7, 0.75]"]


@pytest.mark.parametrize("value", [-0.001, 10.001, np.inf, np.nan])
def test_a_number_outside_all_intervals_is_named(value: float) -> None:
    with pytest.raises(BadValue) as refused:
        Hierarchy.intervals([0, 5, 10]).bind(np.array([5.0, value]))
    assert refused.value.index == 1 and "from 0 to 10" in refused.value.right


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"edges": [1]}, "two edges"),
        ({"edges": [1, 1]}, "ascending"),
        ({"edges": [1, 3, 2]}, "edge 2 follows 3"),
        ({"edges": [0, "x"]}, "'x'"),
        ({"lo": 0, "hi": 10}, "width"),
        ({"lo": 10, "hi": 0, "width": 1}, "below"),
        ({"lo": 0, "hi": 10, "width": 0}, "width"),
        ({"lo": 0, "hi": 1e9, "width": 0.001}, "at most 10,000"),
        ({"edges": [0, 1, 2], "fanout": 1}, "fanout"),
        ({"edges": [0, 1, 2], "levels": [1]}, "levels"),
    ],
)
def test_wrong_intervals_are_refused(params: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        Hierarchy.intervals(**params)


@given(
    st.lists(st.integers(-20, 20) | st.none(), min_size=1).filter(lambda v: any(x is not None for x in v)), st.integers(1, 6)
)
def test_quantiles_cover_their_values_and_are_marked(values: list[int | None], bins: int) -> None:
    hierarchy = Hierarchy.quantiles(values, bins)
    assert hierarchy.from_data and hierarchy.tree.size <= bins
    present = np.unique([value for value in values if value is not None]).astype(np.float64)
    domain, codes = hierarchy.bind(present)
    assert sorted(set(codes.tolist())) == list(range(domain.size))
    assert codes.tolist() == sorted(codes.tolist())


@given(st.lists(st.text("0123456789", min_size=1, max_size=5), min_size=1, unique=True))
def test_prefix_covers_its_codes_by_their_first_characters(codes: list[str]) -> None:
    hierarchy = Hierarchy.prefix(codes)
    domain, leaf = hierarchy.bind(texts(*codes))
    width = max(map(len, codes))
    for a in range(len(codes)):
        for b in range(a + 1, len(codes)):
            lo, hi = sorted((int(leaf[a]), int(leaf[b])))
            (cell,) = domain.labels(np.array([lo]), np.array([hi]))
            kept = cell.rstrip("*")
            assert len(cell) == width or cell == STAR
            assert codes[a].startswith(kept) and codes[b].startswith(kept)
            same = next((i for i, (x, y) in enumerate(zip(codes[a], codes[b], strict=False)) if x != y), None)
            if same is not None:  # neither code begins with the other: all that they share is kept
                assert kept == codes[a][:same]


@given(st.lists(st.dates(), min_size=1, unique=True))
def test_dates_cover_their_days(days: list[Any]) -> None:
    hierarchy = Hierarchy.dates(days, ["day", "month", "year"])
    domain, _ = hierarchy.bind(texts(*(day.isoformat() for day in days)))
    assert domain.tree is not None and domain.tree.leaf_labels == sorted(day.isoformat() for day in days)
    assert domain.tree.height[0] == 3


@given(
    st.lists(labels, min_size=1, max_size=40, unique=True).filter(lambda v: not any(".." in x for x in v)), st.integers(2, 5)
)
def test_balanced_keeps_order_fanout_and_depth(values: list[str], fanout: int) -> None:
    tree = Hierarchy.balanced(values, fanout).tree
    assert tree.leaf_labels == values
    children = np.bincount(tree.parent[1:-1])
    assert children.max() <= fanout
    assert {_depth(tree, int(node)) for node in tree.leaf_node[:-1]} == {int(tree.height[0])}
    for node in range(1, len(tree.labels) - 1):
        first, last = values[tree.lo[node]], values[tree.hi[node]]
        assert tree.labels[node] == (first if first == last else f"{first}..{last}")
    assert fanout ** int(tree.height[0]) >= len(values) > fanout ** (int(tree.height[0]) - 1) or len(values) == 1


@given(st.dictionaries(labels, st.integers(1, 20), min_size=1, max_size=20), st.integers(1, 10))
def test_rare_merges_rare_values_only(counts: dict[str, int], limit: int) -> None:
    if "(rare)" in counts:
        return
    hierarchy = Hierarchy.rare(counts, limit)
    again = Hierarchy.rare([value for value, times in counts.items() for _ in range(times)] + [None], limit)
    assert hierarchy == again and hierarchy.from_data
    tree = hierarchy.tree
    assert sorted(tree.leaf_labels) == sorted(counts)
    rare = {value for value, times in counts.items() if times < limit}
    for code, value in enumerate(tree.leaf_labels):
        merged = tree.labels[tree.parent[tree.leaf_node[code]]] == "(rare)"
        assert merged == (value in rare and len(rare) > 1)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Hierarchy.balanced([], 2), "at least one leaf"),
        (lambda: Hierarchy.balanced(["a", "b", "a"], 2), "'a' occurs twice"),
        (lambda: Hierarchy.balanced("ab", 1), "fanout"),
        (lambda: Hierarchy.rare(["a"], 0), "limit"),
        (lambda: Hierarchy.rare([None], 2), "at least one leaf"),
        (lambda: Hierarchy.rare(["(rare)"], 2), "itself a value"),
        (lambda: Hierarchy.quantiles([None], 2), "at least one value"),
        (lambda: Hierarchy.quantiles([1], 0), "bins"),
        (lambda: Hierarchy.prefix(["123", "12"], length=3), "'12' has 2 characters"),
        (lambda: Hierarchy.prefix([]), "at least one leaf"),
        (lambda: Hierarchy.dates(["2024-02-30"]), "'2024-02-30' is not a date"),
        (lambda: Hierarchy.dates(["2024-02-28"], ["week"]), "no level 'week'"),
        (lambda: Hierarchy({"a": None, "b": None}, edges=(0, 1)), "2 leaves has edges for 1"),  # type: ignore[arg-type]
        (lambda: Hierarchy({"a": None, "b": None}, edges=(0, 2, 1)), "ascend"),  # type: ignore[arg-type]
        (lambda: Hierarchy({"a": None}, from_data="yes"), "from_data"),  # type: ignore[arg-type]
    ],
)
def test_builders_name_what_is_wrong(build: Any, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        build()


# --- made from data


@given(nested_trees(), st.data())
def test_a_tree_from_data_shows_only_what_occurs(nested: dict[str, Any], data: st.DataObject) -> None:
    hierarchy = Hierarchy.from_nested(nested, from_data=True)
    leaves = hierarchy.tree.leaf_labels
    present = data.draw(st.lists(st.sampled_from(leaves), min_size=1, unique=True))
    domain, codes = hierarchy.bind(texts(*present))
    assert sorted(domain.texts) == sorted(present) and [domain.texts[code] for code in codes] == present
    secret = hierarchy.publish_kind(domain.texts, sensitive=True)
    assert isinstance(secret, Hierarchy) and secret.from_data
    assert (set(leaves) - set(present)).isdisjoint(secret.tree.labels)
    assert secret.tree.leaf_labels == list(domain.texts)
    again, same = secret.bind(texts(*present))
    assert again.tree is not None and domain.tree is not None
    for array in ("parent", "lo", "hi", "height"):
        assert getattr(again.tree, array).tolist() == getattr(domain.tree, array).tolist()
    assert same.tolist() == codes.tolist()


def test_groups_of_a_sensitive_tree_from_data_are_named_by_written_values() -> None:
    """`balanced` names a group by its ends, `c` and `f` here, which no published row has."""
    shown = Hierarchy.balanced("abcdef", 3, from_data=True).publish_kind(["a", "b", "d"], sensitive=True)
    assert isinstance(shown, Hierarchy) and shown.nested == {STAR: {"a..b": {"a": None, "b": None}, "d": {"d": None}}}
    tree = Hierarchy({"A": ["a", "b"], "C": ["a..b", "c"]}, from_data=True)  # a name that is a value elsewhere is changed
    shown = tree.publish_kind(["a", "b", "a..b", "c"], sensitive=True)
    assert isinstance(shown, Hierarchy) and list(shown.nested[STAR] or {}) == ["a..b'", "a..b..c"]


def test_a_tree_from_data_shows_its_written_nodes_without_what_is_below_them() -> None:
    hierarchy = Hierarchy.from_nested({"A": ["a", "b", "c"], "D": ["d", "e"]}, from_data=True)
    shown = hierarchy.publish_kind(["e", "A", STAR, ""])
    assert shown == WrittenNodes({"A": "group", "e": "value"})
    cells = ["A", "e", STAR, ""]
    assert shown.losses(cells).tolist() == hierarchy.losses(cells).tolist() == [[0.5, 0.5], [0, 0], [1, 1], [0, 0]]
    with pytest.raises(BadValue, match="'D'"):
        shown.losses(["D"])
    assert hierarchy.bind(texts())[0].texts == ("none",)
    with pytest.raises(BadValue):
        hierarchy.bind(texts("none"))
    rooted = Hierarchy.from_nested({"all": {"A": ["a"], "D": ["d", "e"]}}, from_data=True)
    assert rooted.losses(["all", "A", "a"])[:, 0].tolist() == [1, 0.5, 0], "a group of one value is still a group"


def test_a_declared_tree_stays_whole() -> None:
    hierarchy = Hierarchy.from_nested({"A": ["a", "b", "c"], "D": ["d", "e"]})
    domain, _ = hierarchy.bind(texts("a", "e"))
    assert domain.size == 5 and domain.declared
    assert hierarchy.publish_kind(["A"]) is hierarchy and hierarchy.publish_kind(["a", "e"], sensitive=True) is hierarchy


def test_one_branch_that_is_left_stays_below_the_star() -> None:
    hierarchy = Hierarchy.from_nested({"A": ["a", "b"], "D": ["d"]}, from_data=True)
    domain, _ = hierarchy.bind(texts("a", "b"))
    assert domain.tree is not None
    assert domain.tree.height[0] == 2 and domain.labels(np.array([0]), np.array([1])) == ["A"]


def test_quantiles_of_a_secret_are_published_with_gaps_and_keep_their_order() -> None:
    hierarchy = Hierarchy.quantiles(range(100), bins=10)
    home, _ = hierarchy.bind(np.array([95.0, 3.0, 42.0]))
    shown = hierarchy.publish_kind(home.texts, sensitive=True)
    recipient, codes = shown.bind(texts(*home.texts))
    assert recipient.texts == home.texts and codes.tolist() == [0, 1, 2] and not recipient.declared
    assert recipient.numbers is not None and home.numbers is not None
    assert recipient.numbers.tolist() == home.numbers.tolist()
