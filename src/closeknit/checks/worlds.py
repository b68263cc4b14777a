"""The posteriors of a sliced release by enumeration: every way to combine the column groups of its buckets.

This is the oracle of `p(t,s)`: dictionaries and rationals, deliberately slow, sharing no code with what it checks. A bucket is
a list of column groups, each the list of its cells; in the group of the sensitive attribute a cell is the pair (known part,
sensitive value).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from fractions import Fraction
from itertools import permutations, product
from typing import Any

Bucket = Sequence[Sequence[Any]]
Row = tuple[Any, ...]


def worlds(bucket: Bucket) -> Iterator[list[Row]]:
    """Yield the rows of a bucket for every way to combine its column groups.

    >>> [sorted(rows) for rows in worlds([[22, 33], ["flu", "ulcer"]])]
    [[(22, 'flu'), (33, 'ulcer')], [(22, 'ulcer'), (33, 'flu')]]
    """
    first, *others = bucket
    for orders in product(*(permutations(group) for group in others)):
        yield list(zip(first, *orders, strict=True))


def posterior(buckets: Sequence[Bucket], place: int, profile: Sequence[Hashable]) -> dict[Hashable, Fraction]:
    """Return the share of each sensitive value among the rows that match the profile, expected over all worlds.

    The result is empty if no row matches. Buckets are independent, so the expected numbers of their rows add up.

    >>> shares = posterior([[[22, 33], [("", "flu"), ("", "ulcer")]], [[22], [("", "flu")]]], 1, (22, ""))
    >>> shares == {"flu": Fraction(3, 4), "ulcer": Fraction(1, 4)}
    True
    """
    expected: dict[Hashable, Fraction] = {}
    for bucket in buckets:
        every = list(worlds(bucket))
        for rows in every:
            for row in rows:
                known = tuple(cell[0] if group == place else cell for group, cell in enumerate(row))
                if known == tuple(profile):
                    secret = row[place][1]
                    expected[secret] = expected.get(secret, Fraction(0)) + Fraction(1, len(every))
    total = sum(expected.values(), Fraction(0))
    return {secret: count / total for secret, count in expected.items()}
