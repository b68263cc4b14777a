"""Special uniques: the published example, and every set of columns tried on random tables."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import closeknit as ck
from closeknit.core.columns import Columns
from conftest import examples

NAMES = ["residence", "gender", "education", "labour"]
ROWS = [
    text.split()
    for text in (
        "U F SI E", "U F SI E", "U F PI N", "U M SC E", "R F SC U", "U M SC E", "U F PC N", "U M PS U", "U F SI N", "U F SI N"
    )
]  # fmt: skip


def table_of(rows: list[list[str | None]], names: list[str]) -> Columns:
    return Columns.of({name: [row[j] for row in rows] for j, name in enumerate(names)})


def schema_of(names: list[str]) -> ck.Schema:
    return ck.Schema(quasi=dict.fromkeys(names, ck.flat()))


@pytest.mark.parametrize(
    ("fraction", "dis", "levels"),
    [("0.01", 0.006688963, [0.0049868, 0.0113830, 0.0091667]), ("0.1", 2 / 29, [0.0522492, 0.1124167, 0.0923665])],
)
def test_the_published_example(fraction: str, dis: float, levels: list[float]) -> None:
    found = ck.suda(table_of(ROWS, NAMES), schema_of(NAMES), sampling_fraction=fraction)
    assert found.scores.tolist() == [0, 0, 6, 0, 12, 0, 6, 10, 0, 0]
    low, middle, high = levels[0], levels[2], levels[1]
    assert found.dis_suda == pytest.approx([0, 0, low, 0, high, 0, low, middle, 0, 0], abs=5e-8)
    assert found.dis == pytest.approx(dis, abs=5e-10) and (found.uniques, found.pairs) == (4, 3)
    assert found.msus == {1: 4, 2: 5}
    assert found.column_shares == {"residence": 8 / 34, "gender": 6 / 34, "education": 22 / 34, "labour": 8 / 34}
    assert found.shares[7].tolist() == [0.2, 0.2, 0.6, 0.4]


def test_edges() -> None:
    same = ck.suda(table_of([["a", "b"]] * 3, ["x", "y"]), schema_of(["x", "y"]), sampling_fraction=0.1)
    assert same.scores.tolist() == [0, 0, 0] and same.dis_suda.tolist() == [0, 0, 0] and same.dis == 0
    apart = table_of([["a", "b"], ["c", "d"], ["e", "f"]], ["x", "y"])
    assert ck.suda(apart, schema_of(["x", "y"]), sampling_fraction=0.1).dis_suda.tolist() == [1, 1, 1]  # no pairs
    whole = ck.suda(table_of(ROWS, NAMES), schema_of(NAMES), sampling_fraction=1)
    assert set(whole.dis_suda.tolist()) == {0, 1}
    assert ck.suda(apart, schema_of(["x", "y"])).dis_suda is None
    one = ck.suda(table_of([["a", "b"]], ["x", "y"]), schema_of(["x", "y"]))
    assert one.scores.tolist() == [2]
    few = ck.suda(table_of(ROWS, NAMES), schema_of(NAMES), most=1)
    assert few.scores.tolist() == [0, 0, 6, 0, 6, 0, 6, 6, 0, 0]


@pytest.mark.parametrize("fraction", [0, -0.1, 1.5])
def test_fractions_that_cannot_be(fraction: float) -> None:
    with pytest.raises(ck.BadInput, match="sampling_fraction"):
        ck.suda(table_of(ROWS, NAMES), schema_of(NAMES), sampling_fraction=fraction)


def test_too_many_columns() -> None:
    names = [f"c{j}" for j in range(21)]
    with pytest.raises(ck.BadInput, match="at most 20"):
        ck.suda(table_of([["a"] * 21], names), schema_of(names))
    with pytest.raises(ck.BadInput, match="sets of columns"):
        ck.suda(table_of([["a"] * 20], names[:20]), schema_of(names[:20]), most=9)


def test_a_suppressed_cell_singles_no_one_out() -> None:
    release = table_of([["*", "a"], ["m", "a"], ["m", "a"]], ["x", "y"])
    assert ck.suda(release, schema_of(["x", "y"])).scores.tolist() == [0, 0, 0]


def naive_scores(rows: list[list[str | None]], width: int, most: int) -> list[float]:
    """Every set of columns by the definition."""
    scores = []
    for row in rows:
        score, found = 0, []
        known = [j for j in range(width) if row[j] is not None]
        for size in range(1, most + 1):
            for some in combinations(known, size):
                alone = sum(all(other[j] == row[j] for j in some) for other in rows) == 1
                if alone and not any(set(smaller) <= set(some) for smaller in found):
                    found.append(some)
                    score += factorial(width - size)
        scores.append(score)
    return scores


@settings(max_examples=examples(40))
@given(st.data(), st.integers(1, 5), st.integers(1, 5))
def test_random_tables_against_the_definition(data: st.DataObject, width: int, most: int) -> None:
    cell = st.sampled_from(["a", "b", "c", None])
    rows = data.draw(st.lists(st.lists(cell, min_size=width, max_size=width), min_size=1, max_size=14))
    names = [f"c{j}" for j in range(width)]
    found = ck.suda(table_of(rows, names), schema_of(names), most=most, sampling_fraction=Fraction(1, 3))
    assert found.scores.tolist() == naive_scores(rows, width, most)
    assert np.all(found.contributions.sum(axis=1) >= found.scores)
