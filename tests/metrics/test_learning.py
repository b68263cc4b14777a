"""Utility for learning: what is drawn from a release fits it, a release that says everything teaches everything."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import closeknit as ck
from bench_runs import bench
from closeknit.core.columns import Columns
from closeknit.core.table import Form, Partition
from closeknit.forms.column_axes import axes_of
from closeknit.metrics import learning_accuracy, split_train_test
from closeknit.metrics.learning import draw_rows

COLOURS = {"warm": {"red": None, "orange": None}, "cold": {"blue": None, "green": None}}
SCHEMA = ck.Schema(
    quasi={"x": ck.numeric(0, 100), "colour": ck.Hierarchy(COLOURS)}, sensitive={"kind": ck.flat(), "wage": ck.numeric()}
)
GROUPED = [ck.bucketized(), ck.multiset(), ck.sliced([["x", "kind"], ["colour", "wage"]])]


def table_of(rows: int, seed: int = 1) -> Columns:
    """`kind` follows from x and colour, but for one row in ten."""
    rng = np.random.default_rng(seed)
    x, colour = rng.integers(0, 101, rows), rng.integers(0, 4, rows)
    kind = np.where(rng.random(rows) < 0.1, rng.integers(0, 3, rows), np.where(x > 50, 0, np.where(colour < 2, 1, 2)))
    names = ["red", "orange", "blue", "green"]
    cells: dict[str, list[Any]] = {
        "x": x.tolist(),
        "colour": [names[i] for i in colour],
        "kind": [f"k{i}" for i in kind],
        "wage": (x * 10).tolist(),
    }
    return Columns.of(cells)


def read_back(form: Form, table: Columns, class_of: Any) -> Any:
    coded = SCHEMA.encode(table)
    partition = Partition.of(np.asarray(class_of)[coded.rows])
    return form.read(form.write(coded, partition, 0).columns, SCHEMA)


@pytest.mark.parametrize("form", [ck.generalized(), *GROUPED], ids=lambda form: form.name)
def test_a_release_of_single_rows_teaches_what_the_table_does(form: Form) -> None:
    train, test = split_train_test(table_of(600), SCHEMA)
    found = learning_accuracy(read_back(form, train, np.arange(train.rows)), train, test, SCHEMA, "kind")
    assert abs(found.release.accuracy - found.original.accuracy) < 0.05  # rows stand in another order
    assert found.original.accuracy > 0.8 > found.majority.accuracy + 0.2
    assert found.majority.balanced == pytest.approx(1 / 3)
    assert found.kept is not None and 0.85 < found.kept < 1.15


def test_one_class_teaches_nothing_and_small_ones_more() -> None:
    train, test = split_train_test(table_of(600), SCHEMA)
    whole = learning_accuracy(read_back(ck.bucketized(), train, np.zeros(train.rows)), train, test, SCHEMA, "kind")
    assert whole.release.accuracy < whole.original.accuracy - 0.15
    release = ck.anonymize(train, SCHEMA, [ck.KAnonymity(5)], ck.Mondrian())
    small = learning_accuracy(release, train, test, SCHEMA, "kind")
    assert small.release.accuracy > whole.release.accuracy
    assert small.original == whole.original and small.majority == whole.majority
    assert (small.trained, small.tested) == (450, 150)
    assert f"{small.release.accuracy:.1%} of 150 other rows" in str(small)


def test_drawn_values_lie_in_their_cells() -> None:
    table = table_of(200)
    release = ck.anonymize(table, SCHEMA, [ck.KAnonymity(10)], ck.Mondrian())
    axes = axes_of(table, SCHEMA)
    rows = draw_rows(release, axes, np.random.default_rng(2))
    # the order is that of the classes, so cells and draws are compared as wholes
    lo, hi = axes["x"].ranges(release.columns["x"])
    codes = release.columns["x"].codes
    assert lo[codes].min() <= rows["x"].min() and rows["x"].max() <= hi[codes].max()
    assert lo[codes].mean() < rows["x"].mean() < hi[codes].mean()
    assert set(rows["colour"].tolist()) <= {0.0, 1.0, 2.0, 3.0}
    secrets = axes["kind"].leaf_column(table["kind"], SCHEMA).codes
    assert sorted(rows["kind"].tolist()) == sorted(secrets.tolist())


@pytest.mark.parametrize("form", GROUPED, ids=lambda form: form.name)
def test_groups_are_put_together_inside_their_bucket_only(form: Form) -> None:
    table = table_of(120)
    bucket = np.arange(120) % 2
    x = np.array(table["x"].cells())
    marked = Columns({**table.columns, "wage": Columns.of({"wage": (bucket * 1000 + x).tolist()})["wage"]}, 120)
    axes = axes_of(marked, SCHEMA)
    rows = draw_rows(read_back(form, marked, bucket), axes, np.random.default_rng(3))
    assert (rows["wage"][:60] < 1000).all() != (rows["wage"][60:] < 1000).all(), "bucket after bucket"
    for part in (slice(0, 60), slice(60, 120)):
        number = int(rows["wage"][part][0] >= 1000)
        assert sorted(rows["x"][part]) == sorted(x[bucket == number])
    together = (rows["x"] == rows["wage"] % 1000).mean()
    assert together < 0.5, "x and wage do not line up"


def test_cells_of_one_group_stay_together() -> None:
    table = table_of(120)
    form = ck.sliced([["x", "wage"], ["colour", "kind"]])
    rows = draw_rows(read_back(form, table, np.zeros(120)), axes_of(table, SCHEMA), np.random.default_rng(3))
    assert (rows["x"] * 10 == rows["wage"]).all()


def test_seed_repeats_and_row_order_does_not_matter() -> None:
    table = table_of(200)
    turned = table.take(np.arange(200)[::-1])
    pairs = [split_train_test(t, SCHEMA, seed=5) for t in (table, turned)]
    for one, other in zip(*pairs, strict=True):
        assert [column.cells() for column in one.values()] == [column.cells() for column in other.values()]
    train, test = pairs[0]
    reading = read_back(ck.bucketized(), train, np.arange(train.rows) // 5)
    first, again, other = (learning_accuracy(reading, train, test, SCHEMA, "kind", seed=seed) for seed in (1, 1, 2))
    assert first == again != other


def test_missing_targets_and_features_are_left_out() -> None:
    table = table_of(200)
    cells = {name: column.cells() for name, column in table.items()}
    cells["kind"][:50] = [None] * 50
    cells["x"][100:150] = [None] * 50
    train, test = split_train_test(Columns.of(cells), SCHEMA)
    found = learning_accuracy(read_back(ck.generalized(), train, np.arange(train.rows)), train, test, SCHEMA, "kind")
    assert found.original.accuracy > 0.6


def test_a_classifier_of_ones_own() -> None:
    from sklearn.tree import DecisionTreeClassifier

    train, test = split_train_test(table_of(300), SCHEMA)
    own = DecisionTreeClassifier(max_depth=1, random_state=0)
    reading = read_back(ck.generalized(), train, np.arange(train.rows))
    found = learning_accuracy(reading, train, test, SCHEMA, "kind", own)
    usual = learning_accuracy(reading, train, test, SCHEMA, "kind")
    assert found.original.accuracy < usual.original.accuracy
    assert not hasattr(own, "tree_"), "what was given is not changed"


@pytest.mark.parametrize("target, says", [("wage", "is a number"), ("nothing", "choose one of: x, colour, kind, wage")])
def test_wrong_targets_are_named(target: str, says: str) -> None:
    train, test = split_train_test(table_of(40), SCHEMA)
    with pytest.raises(ck.BadInput, match=says):
        learning_accuracy(read_back(ck.generalized(), train, np.arange(train.rows)), train, test, SCHEMA, target)


@pytest.mark.parametrize("share", [0, 1, 1.5, 0.001, "all"])
def test_wrong_shares_are_refused(share: Any) -> None:
    with pytest.raises(ck.BadInput, match="share"):
        split_train_test(table_of(40), SCHEMA, share)


def test_without_scikit_learn_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    train, test = split_train_test(table_of(40), SCHEMA)
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    with pytest.raises(ck.BadInput, match=r"closeknit\[learn\]"):
        learning_accuracy(read_back(ck.generalized(), train, np.arange(train.rows)), train, test, SCHEMA, "kind")


def test_no_row_with_a_target_is_refused() -> None:
    cells = {name: column.cells() for name, column in table_of(40).items()}
    train, test = split_train_test(Columns.of({**cells, "kind": [None] * 40}), SCHEMA)
    with pytest.raises(ck.BadInput, match="no row"):
        learning_accuracy(read_back(ck.generalized(), train, np.arange(train.rows)), train, test, SCHEMA, "kind")


def test_benchmark_puts_the_same_guarantee_into_every_form(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    done = bench(page, "workload")
    assert done.returncode == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    assert "is generated (300 rows" in text, "a stand-in is never silent"
    for name in ("Mondrian, generalized", "Mondrian, bucketized", "Anatomy, near rows", "Slicing ", "Mondrian, multiset"):
        assert text.count(f"| {name}") >= 3, name  # at two values of l at least, and in the table over lambda and theta
    assert text.count("| the table ") == text.count("| the most frequent value ") == 1
