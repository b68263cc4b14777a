"""Splitting a cluster before it is published: SPLIT^k by persons, SPLIT^l by persons and values.

Source: the thesis on SABRE and BUREL, sec. 5.5. Different from the source: all rows of a person go to one part, so that parts
never share a person; the nearest row represents a person whose quasi-identifiers changed; shares of a value are rounded up
(rounded down they lose both k and l), and the row that begins a part is one of its share; parts of l values and k near rows are
tried too, and the split that loses less is used; the row that represents a person is chosen so that these rows have as many
values as possible; and if no part can be formed the cluster stays whole, where the source would lose its rows.
"""

from __future__ import annotations

import numpy as np

from closeknit.kernels.arrays import Reals
from closeknit.kernels.geometry.declared_axes import Axes, box_costs, boxes_of
from closeknit.kernels.streaming.splitting import split_persons, split_values
from closeknit.streams.arrivals import Ints


def split_k(axes: Axes, quasi: Reals, persons: Ints, k: int, draw: np.random.Generator) -> tuple[Ints, int]:
    """The part of each row, and the number of parts; each has at least k persons.

    >>> from kernel_inputs import number_axes
    >>> ages = np.array([[30.0], [70.0], [31.0], [72.0], [33.0]])
    >>> part_of, parts = split_k(number_axes([100.0]), ages, np.array([7, 8, 9, 5, 7]), 2, np.random.default_rng(1))
    >>> len(set(part_of[[0, 2, 4]].tolist())), len(set(part_of[[1, 3]].tolist())), parts
    (1, 1, 2)
    """
    person_of, count = number_codes(persons)
    part_of, parts = split_persons(axes, quasi, person_of, draw.permutation(count), k)
    return part_of[person_of], parts


def split_l(
    axes: Axes, quasi: Reals, persons: Ints, values: Ints, k: int, l: int, draw: np.random.Generator
) -> list[tuple[Ints, int]]:
    """As `split_k`, and each part has l values of l different persons: two splits, the one with less loss first.

    >>> from kernel_inputs import number_axes
    >>> ages = np.array([[20.0], [70.0], [21.0], [71.0]])
    >>> splits = split_l(number_axes([100.0]), ages, np.arange(4), np.array([5, 5, 6, 6]), 2, 2, np.random.default_rng(1))
    >>> [(len(set(part_of[[0, 2]].tolist())), parts) for part_of, parts in splits]
    [(1, 2), (1, 2)]
    """
    person_of, count = number_codes(persons)
    value_of, kinds = number_codes(values)
    heads, order = representatives(person_of, count, value_of, kinds), draw.permutation(count)
    splits = [split_values(axes, quasi[heads], value_of[heads], kinds, order, k, l, fair) for fair in (False, True)]
    formed = [(part_of[person_of], parts) for part_of, parts in splits if parts > 0]
    return sorted(formed, key=lambda split: _loss(axes, quasi, *split))


def _loss(axes: Axes, quasi: Reals, part_of: Ints, parts: int) -> float:
    return float(np.bincount(part_of, minlength=parts) @ box_costs(axes, *boxes_of(quasi, part_of, parts)))


def number_codes(codes: Ints) -> tuple[Ints, int]:
    """The same codes as numbers 0, 1, .. in order of first occurrence, and how many.

    >>> number_codes(np.array([9, 4, 9, 7]))[0].tolist()
    [0, 1, 0, 2]
    """
    _, first, at = np.unique(codes, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[at], len(first)


def representatives(person_of: Ints, count: int, value_of: Ints, kinds: int) -> Ints:
    """One row of each person, so that these rows have as many different values as possible.

    >>> representatives(np.array([0, 0, 1]), 2, np.array([0, 1, 0]), 2).tolist()
    [1, 2]
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    rows = np.arange(len(person_of))
    if len(rows) == count:
        return rows
    rare = np.bincount(value_of, minlength=kinds)[value_of]
    order = np.lexsort((rows, rare, person_of))
    heads = order[np.searchsorted(person_of[order], np.arange(count))]  # the row of each person with the rarest value
    graph = csr_array((np.ones(len(rows), dtype=np.int8), (person_of, value_of)), shape=(count, kinds))
    value = maximum_bipartite_matching(graph, perm_type="column")
    matched = np.flatnonzero(value[person_of] == value_of)
    heads[person_of[matched][::-1]] = matched[::-1]
    return heads
