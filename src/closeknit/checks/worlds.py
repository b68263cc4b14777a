"""What a sliced release tells, by counting: every way to put the column groups of its buckets together again, one by one.

The judge of `p(t,s)`: dictionaries and rationals, slow on purpose, and nothing shared with what it judges. A bucket is a list
of column groups, each the list of its cells; in the group that holds the secret a cell is the pair (known part, secret).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from fractions import Fraction
from itertools import permutations, product
from typing import Any

Bucket = Sequence[Sequence[Any]]
Row = tuple[Any, ...]


def worlds(bucket: Bucket) -> Iterator[list[Row]]:
    """The rows of a bucket in every way in which its column groups fit together.

    >>> [sorted(rows) for rows in worlds([[22, 33], ["flu", "ulcer"]])]
    [[(22, 'flu'), (33, 'ulcer')], [(22, 'ulcer'), (33, 'flu')]]
    """
    first, *others = bucket
    for orders in product(*(permutations(group) for group in others)):
        yield list(zip(first, *orders, strict=True))


def posterior(buckets: Sequence[Bucket], place: int, profile: Sequence[Hashable]) -> dict[Hashable, Fraction]:
    """Of the rows that look like the profile, expected over all worlds, the share of each secret; empty if there are none.

    Buckets are put together independently, so that the expected numbers of their rows add up.

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
