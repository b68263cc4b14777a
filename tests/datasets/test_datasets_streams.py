"""Generated rows for streams: power laws and baskets."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import closeknit as ck
from closeknit.core.columns import Columns


@pytest.mark.parametrize("alpha", [0, 0.5, 1, "1.5", 2])
def test_values_follow_the_power_law(alpha: float | str) -> None:
    table = ck.datasets.power_law(rows=60_000, columns=2, values=20, alpha=alpha, seed=3)
    expected = np.arange(1, 21) ** -float(alpha)
    expected *= table.rows / expected.sum()
    for name in ("a1", "a2"):
        found = Counter(table[name].cells())
        assert set(found) <= set(range(1, 21))
        for value, mean in enumerate(expected, 1):
            assert abs(found[value] - mean) < 6 * np.sqrt(mean)


def test_columns_of_a_power_law_do_not_depend_on_each_other() -> None:
    table = ck.datasets.power_law(rows=20_000, columns=3, values=9, alpha=1)
    cells = np.array([table[name].cells() for name in ("a1", "a2", "a3", "s")])
    assert np.abs(np.corrcoef(cells) - np.eye(4)).max() < 0.03
    ck.datasets.power_law_schema(3, 9).encode(table)


@pytest.mark.parametrize("mean_length", [1, 5, 10, 15])
def test_baskets_have_the_length_asked_for(mean_length: int) -> None:
    table = ck.datasets.baskets(persons=4000, mean_length=mean_length)
    lengths = Counter(table["pid"].cells())
    assert set(lengths) == set(range(1, 4001)), "everyone buys something"
    usual = mean_length + np.exp(-mean_length)  # an empty basket gets one item
    assert abs(np.mean(list(lengths.values())) - usual) < 6 * np.sqrt(mean_length / 4000)
    assert table["pid"].cells() == sorted(table["pid"].cells()), "a basket is not torn"


def test_every_item_is_next_to_its_person() -> None:
    people = Columns.of({"age": [30, 41, 30, 52], "sex": ["f", "m", None, "f"]})
    table = ck.datasets.with_baskets(people, mean_length=5)
    for i in range(table.rows):
        row = table["pid"].cells()[i] - 1  # type: ignore[operator]
        assert (table["age"].cells()[i], table["sex"].cells()[i]) == (people["age"].cells()[row], people["sex"].cells()[row])
    with pytest.raises(ck.BadInput, match="pid"):
        ck.datasets.with_baskets(Columns.of({"pid": [1]}))


def test_the_seed_decides_everything() -> None:
    for made in (ck.datasets.power_law, ck.datasets.baskets):
        one, same, other = made(500, seed=1), made(500, seed=1), made(500, seed=2)
        cells = [[column.cells() for column in table.values()] for table in (one, same, other)]
        assert cells[0] == cells[1] != cells[2]


@pytest.mark.parametrize(
    ("made", "params"),
    [
        (ck.datasets.power_law, {"rows": 0}),
        (ck.datasets.power_law, {"alpha": -1}),
        (ck.datasets.power_law, {"values": 1}),
        (ck.datasets.power_law, {"columns": "two"}),
        (ck.datasets.baskets, {"persons": 0}),
        (ck.datasets.baskets, {"mean_length": 0}),
        (ck.datasets.baskets, {"items": 1.5}),
    ],
)
def test_wrong_parameters_are_named(made, params) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ck.BadInput, match=next(iter(params))):
        made(**params)
