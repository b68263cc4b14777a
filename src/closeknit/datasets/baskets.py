"""Baskets of goods: several rows of one person. Joined to a table of persons, one row for every item; made by a seed."""

from __future__ import annotations

import numpy as np

from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadInput
from closeknit.core.params import whole

ITEMS = 1000


def baskets(persons: int = 1000, mean_length: int = 10, items: int = ITEMS, seed: int = 7) -> Columns:
    """One basket of every person, in the order of the tills: `pid`, `tid` and `item`, one row for every item.

    Lengths follow a Poisson law with this mean, at least 1; items are the rarer the higher their number. The rows of a basket
    follow one another.

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
    """Every row of a table as a person who goes shopping: the same cells beside each item of the basket.

    >>> joined = with_baskets(Columns.of({"age": [30, 41, 52]}), mean_length=2)
    >>> list(joined), joined["age"].cells()
    (['age', 'pid', 'tid', 'item'], [30, 30, 30, 41, 41, 52, 52, 52])
    """
    for name in ("pid", "tid", "item"):
        if name in table:
            raise BadInput("is a column of the baskets too", column=name, right="give it another name")
    bought = baskets(table.rows, mean_length, items, seed)
    return Columns({**table.take(bought["pid"].codes).columns, **bought.columns}, bought.rows)
