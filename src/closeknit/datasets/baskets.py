"""Market baskets: several rows per person, one per item; can be joined to a table of persons. Drawn from a seed."""

from __future__ import annotations

import numpy as np

from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadInput
from closeknit.core.params import whole

ITEMS = 1000


def baskets(persons: int = 1000, mean_length: int = 10, items: int = ITEMS, seed: int = 7) -> Columns:
    """One basket per person: `pid`, `tid` and `item`, one row per item; the rows of a basket are adjacent.

    Lengths have a Poisson distribution, at least 1; items are rarer the higher their number.

    Args:
        persons: number of persons.
        mean_length: mean number of items in a basket.
        items: number of distinct items.
        seed: seed of the generator.

    >>> table = baskets(persons=3, mean_length=2)
    >>> table["pid"].cells(), table["tid"].cells()
    ([1, 1, 1, 2, 2, 3, 3, 3], [1, 1, 1, 2, 2, 3, 3, 3])
    """
    persons, mean_length, items = whole("persons", persons, 1), whole("mean_length", mean_length, 1), whole("items", items, 1)
    rng = np.random.default_rng(whole("seed", seed, 0))
    lengths = np.maximum(rng.poisson(mean_length, persons), 1)
    owner = np.repeat(np.arange(persons), lengths).astype(np.int32)
    share = np.cumsum(1 / np.arange(1, items + 1))
    bought = np.searchsorted(share, rng.random(len(owner)) * share[-1], side="right") + 1
    names, codes = np.unique(bought, return_inverse=True)
    numbers = np.arange(1, persons + 1)
    texts = np.array([f"item {one}" for one in names.tolist()], dtype=object)
    cells = {"pid": Column(numbers, owner), "tid": Column(numbers, owner), "item": Column(texts, codes.astype(np.int32))}
    return Columns(cells, len(owner))


def with_baskets(table: Columns, mean_length: int = 10, items: int = ITEMS, seed: int = 7) -> Columns:
    """Give every row of a table a basket: the cells of the row are repeated for each item.

    Args:
        table: the table of persons.
        mean_length: mean number of items in a basket.
        items: number of distinct items.
        seed: seed of the generator.

    >>> joined = with_baskets(Columns.of({"age": [30, 41, 52]}), mean_length=2)
    >>> list(joined), joined["age"].cells()
    (['age', 'pid', 'tid', 'item'], [30, 30, 30, 41, 41, 52, 52, 52])
    """
    for name in ("pid", "tid", "item"):
        if name in table:
            raise BadInput("is a column of the baskets too", column=name, right="give it another name")
    bought = baskets(table.rows, mean_length, items, seed)
    return Columns({**table.take(bought["pid"].codes).columns, **bought.columns}, bought.rows)
