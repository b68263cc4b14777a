"""Stack & Deal by the cells of several secrets: what stays true, what the source claims and is not, and how it is asked for."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import closeknit as ck
from closeknit.checks.methods import guarantee_met, run_case
from closeknit.checks.oracle import oracle_level
from closeknit.checks.tables import Case
from closeknit.core.columns import Columns
from closeknit.core.table import Table
from closeknit.kernels.dealing.rounds import literal
from closeknit.plans.stack import band_codes, build_stack
from closeknit.search import candidate_search
from conftest import examples

GOLDEN = {case["id"]: case for case in json.loads((Path(__file__).parents[1] / "golden" / "static.json").read_text())}
Cells = list[tuple[Any, Any]]


def columns_of(cells: Cells) -> Columns:
    first, second = zip(*cells, strict=True)
    return Columns.of({"place": [7 * i % 31 for i in range(len(cells))], "a": list(first), "b": list(second)})


def schema_of(cells: Cells) -> ck.Schema:
    kind = ck.numeric() if isinstance(cells[0][0], int) else ck.flat()
    return ck.Schema(quasi={"place": ck.numeric()}, sensitive={"a": kind, "b": kind})


def encoded(cells: Cells) -> Table:
    return schema_of(cells).encode(columns_of(cells))


def stack_of(cells: Cells, order: str) -> Cells:
    """The cells in stack order."""
    table = encoded(cells)
    return [cells[row] for row in table.rows[build_stack(table, ("a", "b"), order).rows]]


def dealt(stack: Cells, e: int) -> list[Cells]:
    return [[cell for cell, c in zip(stack, literal(len(stack), e), strict=True) if c == d] for d in range(e)]


def distance(part: list[Any], column: list[Any]) -> Fraction:
    return Fraction(oracle_level("t_closeness", part, column, t=1, ground=sorted(set(column))))  # type: ignore[arg-type]


def test_the_printed_example() -> None:
    example = GOLDEN["000-5-T5.2"]
    cells = [tuple(cell) for cell in example["rows"]]
    stack = stack_of(cells, "frequency")
    assert [[*cell, times] for cell, times in Counter(stack).items()] == example["stacked_cells"]
    assert stack == sorted(stack, key=stack.index)  # equal cells stand together
    classes = dealt(stack, len(cells) // example["k"])
    measured = [max(distance([c[s] for c in part], [c[s] for c in cells]) for part in classes) for s in (0, 1)]
    assert [str(level) for level in measured] == example["real_t"]


def test_ties_stand_as_in_a_dictionary() -> None:
    assert stack_of([(1, 0), (0, 1), (1, 1), (1, 1), (0, 0)], "frequency") == [(1, 1), (1, 1), (0, 0), (0, 1), (1, 0)]


def test_classes_are_counted_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """One place of the source has ceil(n/k): ten rows and k = 4 would give classes of 4, 3 and 3 rows."""
    monkeypatch.setattr(candidate_search, "refine_partition", lambda table, partition, models, scales: partition)
    cells = [(i % 3, i % 2) for i in range(10)]
    case = Case("ten", columns_of(cells), schema_of(cells), (ck.KAnonymity(4),))
    release = run_case(ck.StackAndDeal(order="frequency", dealing="literal", column=("a", "b")), case)
    assert sorted(Counter(release.partition.tolist()).values()) == [5, 5]


def alternating() -> Cells:
    """32 cells that take turns at a = 0 and a = 1, with 65, 63, ..., 3 rows."""
    return [(i % 2, i) for i in range(32) for _ in range(65 - 2 * i)]


def test_cells_within_one_do_not_bound_a_secret() -> None:
    """The source claims the best t for both secrets; the counts of a0 in two classes differ by 16."""
    stack = stack_of(alternating(), "frequency")
    classes = dealt(stack, 2)
    assert [len(part) for part in classes] == [544, 544]
    one, other = (Counter(part) for part in classes)
    assert all(abs(one[cell] - other[cell]) <= 1 for cell in set(stack))
    assert [sum(a == 0 for a, _ in part) for part in classes] == [288, 272]


def test_a_dictionary_bounds_the_first_secret() -> None:
    classes = dealt(stack_of(alternating(), "value"), 2)
    assert [sum(a == 0 for a, _ in part) for part in classes] == [280, 280]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), min_size=4, max_size=60),
    st.integers(1, 8),
    st.sampled_from(["value", "frequency"]),
)
@settings(max_examples=examples(50))
def test_sizes_and_cells_within_one(cells: Cells, k: int, order: str) -> None:
    stack = stack_of(cells, order)
    assert Counter(stack) == Counter(cells)
    e = max(len(cells) // k, 1)
    classes = dealt(stack, e)
    sizes, counts = [len(part) for part in classes], [Counter(part) for part in classes]
    assert max(sizes) - min(sizes) <= 1 and min(sizes) >= min(k, len(cells))
    assert all(max(c[cell] for c in counts) - min(c[cell] for c in counts) <= 1 for cell in cells)
    if order == "value":
        first = [a for a, _ in cells]
        assert all(distance([a for a, _ in part], first) <= Fraction(e - 1, e * min(sizes)) for part in classes)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=80), st.integers(1, 12))
@settings(max_examples=examples(40))
def test_bands_keep_the_order(codes: list[int], bands: int) -> None:
    found = band_codes(np.array(codes), bands)
    assert found.min() >= 0 and found.max() < bands
    assert all(
        one <= other for a, one in zip(codes, found, strict=True) for b, other in zip(codes, found, strict=True) if a <= b
    )


def generated(rows: int, models: list[Any]) -> Case:
    rng = np.random.default_rng(rows)
    cells = list(zip(rng.integers(0, 9, rows).tolist(), rng.integers(0, 7, rows).tolist(), strict=True))
    return Case("cells", columns_of(cells), schema_of(cells), tuple(models))


@pytest.mark.parametrize("order", ["value", "frequency"])
@pytest.mark.parametrize("dealing", ["aware", "literal"])
def test_guarantees_are_kept(order: str, dealing: str) -> None:
    models = [ck.KAnonymity(3), ck.TCloseness("a", 0.15), ck.TCloseness("b", 0.2), ck.BetaLikeness("b", 3)]
    guarantee_met(ck.StackAndDeal(order, dealing, ("a", "b")), generated(210, models))


def test_a_list_means_a_tuple_and_the_order_of_names_matters() -> None:
    case = generated(150, [ck.KAnonymity(5)])
    listed = ck.StackAndDeal(column=["a", "b"], dealing="literal")  # as a recipe has it
    assert listed == ck.StackAndDeal(column=("a", "b"), dealing="literal") and hash(listed)
    one, other = run_case(listed, case), run_case(ck.StackAndDeal(column=("b", "a"), dealing="literal"), case)
    assert one.partition.tolist() != other.partition.tolist()


def test_a_recipe_repeats_it(tmp_path: Path) -> None:
    case = generated(100, [ck.KAnonymity(5), ck.TCloseness("a", 0.2)])
    release = run_case(ck.StackAndDeal(column=("b", "a")), case)
    release.save(tmp_path / "out")
    assert "- b" in (tmp_path / "out.private" / "recipe.yaml").read_text()


@pytest.mark.parametrize("column", [3, (), ("a", "a"), ["a", 3], {"a": 1}])
def test_columns_that_cannot_be_stacked(column: Any) -> None:
    with pytest.raises(ck.BadInput, match="column"):
        ck.StackAndDeal(column=column)


def test_halving_follows_two_orders_at_most() -> None:
    with pytest.raises(ck.BadInput, match="two columns instead of 3"):
        ck.StackAndDeal(dealing="halving", column=("a", "b", "c"))


@pytest.mark.parametrize("dealing", ["aware", "halving"])
def test_a_column_that_is_not_sensitive_is_named(dealing: str) -> None:
    with pytest.raises(ck.BadInput, match="column 'place': cannot be stacked"):
        run_case(ck.StackAndDeal(dealing=dealing, column=("a", "place")), generated(20, [ck.KAnonymity(2)]))
