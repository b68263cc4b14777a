"""Which attributes of a table are together in a column of a sliced release: those that say much about each other.

Attributes are clustered around medoids, the distance of two being 1 - phi2 (`correlation`). Where there are few sets of medoids
all of them are tried; otherwise the medoids are built one by one (BUILD) and exchanged while the cost falls (SWAP).

Source: the paper on slicing, sec. 4.1.3 (partitioning around medoids); the size of the attribute's column is fixed as in Li,
Li, Zhang and Molloy, Slicing: a new approach for privacy preserving data publishing, 2012.

Different from the source:
- no random start: the same attributes give the same columns, in whatever order they come; ties go by name;
- the sensitive attributes are not clustered: they share the last column with none, or with as many attributes as requested.
  As printed, the method puts next to a sensitive attribute what identifies it best (in the source's own Table 1 zip code and
  age), and an attribute with more different values than a tenth of the rows never joins it;
- an attribute that is quasi-identifier and sensitive attribute at once is alone.

Cost: one correlation per pair of d attributes; then about d * c per set of medoids tried, or c * d^2 per exchange. Distances
are whole numbers of billionths, so that equal costs are equal on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

from closeknit.core.errors import BadInput
from closeknit.core.params import choice, whole
from closeknit.core.table import Table
from closeknit.kernels.arrays import Int64
from closeknit.plans.correlation import HOW, correlations, discretize, has_too_many, mean_square_contingency

UNIT = 10**9  # correlations are compared to so many parts: the rest is rounding
WORK = 1 << 22  # distances looked up at most when all sets of medoids are tried; 15 attributes never need a fifth of it


def attribute_partition(names: Sequence[str], correlation: NDArray[np.float64], count: int) -> list[list[str]]:
    """`count` columns of attributes, none empty; inside a column and among columns the order is that of `names`.

    `correlation[i, j]` from 0 to 1 is symmetric, and 1 for an attribute with itself.

    >>> phi2 = np.array([[1.0, 0.1, 0.6], [0.1, 1.0, 0.2], [0.6, 0.2, 1.0]])
    >>> attribute_partition(["age", "sex", "job"], phi2, 2)
    [['age', 'job'], ['sex']]
    """
    if whole("columns", count, least=1) > len(names):
        raise BadInput(f"{count} columns cannot be made of {len(names)} attributes", right=f"ask for at most {len(names)}")
    by_name = sorted(range(len(names)), key=names.__getitem__)
    distance = UNIT - np.rint(correlation[np.ix_(by_name, by_name)] * UNIT).astype(np.int64)
    few = math.comb(len(names), count) * count * len(names) <= WORK
    medoids = best_medoids(distance, count) if few else build_medoids(distance, count)
    nearest = np.argmin(distance[:, medoids], axis=1)
    nearest[medoids] = np.arange(count)  # one that equals another would leave its own column empty
    medoid_of = dict(zip(by_name, nearest.tolist(), strict=True))
    columns: dict[int, list[str]] = {}
    for i, name in enumerate(names):
        columns.setdefault(medoid_of[i], []).append(name)
    return list(columns.values())


def best_medoids(distance: Int64, count: int) -> Int64:
    """The cheapest set of medoids of all, the first in lexicographic order if several are.

    >>> best_medoids(np.array([[0, 1, 9], [1, 0, 9], [9, 9, 0]]), 2).tolist()
    [0, 2]
    """
    d = len(distance)
    sets = np.fromiter(chain.from_iterable(combinations(range(d), count)), dtype=np.int64).reshape(-1, count)
    return sets[np.argmin(distance[:, sets].min(axis=2).sum(axis=0))]


def build_medoids(distance: Int64, count: int) -> Int64:
    """Medoids that no single exchange makes cheaper, ascending.

    >>> build_medoids(np.array([[0, 1, 9], [1, 0, 9], [9, 9, 0]]), 2).tolist()
    [0, 2]
    """
    medoids = np.empty(0, dtype=np.int64)
    nearest = np.full(len(distance), distance.max(initial=0) + 1)
    for _ in range(count):  # BUILD
        costs = np.minimum(nearest[:, None], distance).sum(axis=0)
        costs[medoids] = np.iinfo(np.int64).max  # one that equals a medoid gains nothing, but may be needed
        medoids = np.append(medoids, np.argmin(costs))
        nearest = np.minimum(nearest, distance[:, medoids[-1]])
    medoids.sort()
    cost = int(nearest.sum())
    while True:  # SWAP
        left = [distance[:, np.delete(medoids, m)].min(axis=1, initial=distance.max(initial=0) + 1) for m in range(count)]
        costs = np.stack([np.minimum(near[:, None], distance).sum(axis=0) for near in left])
        m, other = np.unravel_index(np.argmin(costs), costs.shape)
        if costs[m, other] >= cost:
            return medoids
        cost, medoids[m] = int(costs[m, other]), other
        medoids.sort()


def choose_columns(table: Table, count: int | None = None, attached: int = 0, how: str = "frequency") -> list[list[str]]:
    """The columns of a sliced release of this table: quasi-identifiers by correlation, all sensitive attributes together in
    the last one.

    `attached`: the number of quasi-identifiers, those most correlated with the first sensitive attribute, that join it there. A
    column that is quasi and sensitive is alone. Plain columns are left to the caller. `count` is the number of all columns;
    without it the d clustered attributes form ceil(sqrt(d)) columns: on Adult 5 with all its fifteen attributes, as in the
    source. `how` numbers are put into bins for the correlation: by equal frequency, equal width or kmeans.

    >>> from closeknit.core.columns import Columns
    >>> from closeknit.core.kinds import flat
    >>> from closeknit.core.schema import Schema
    >>> schema = Schema(quasi={"city": flat(), "sex": flat(), "zip": flat()}, sensitive={"disease": flat()})
    >>> rows = {"city": [*"aaaabbbb"], "sex": [*"fmfmfmfm"], "zip": [*"11223344"], "disease": [*"uvuvvuuv"]}
    >>> choose_columns(schema.encode(Columns.of(rows)), count=3)
    [['city', 'zip'], ['sex'], ['disease']]
    """
    quasi, sensitive = list(table.schema.quasi), list(table.schema.sensitive)
    secrets = [name for name in sensitive if name not in quasi]
    alone = [[name] for name in quasi if name in sensitive]
    choice("how", how, HOW)
    if count == 1:
        raise BadInput("one column is the table in clear", right="columns must be at least 2")
    if count is None and not quasi and secrets:
        return [secrets]  # nothing that is known about a person is next to them
    joining = _choose_joining(table, secrets, whole("attached", attached, least=0), how)
    rest = [name for name in quasi if name not in sensitive and name not in joining]
    last = [[*joining, *secrets]] if secrets else []
    number = _count_columns(count, len(alone) + len(last), len(rest))
    binned = [_bin_column(table, name, how) for name in rest]
    clustered = attribute_partition(rest, correlations(binned), number) if rest else []
    first = {name: place for place, name in enumerate(quasi)}
    return sorted([*alone, *clustered], key=lambda column: first[column[0]]) + last


def _count_columns(count: int | None, fixed: int, rest: int) -> int:
    """Columns to be made of the `rest` of the attributes, `fixed` ones being there already."""
    least, most = max(2, fixed + min(rest, 1)), fixed + rest
    if most < 2:
        what = "all attributes would be in one column, which is the table in clear"
        raise BadInput(what, right="at least one quasi-identifier must be in another column")
    if count is None:
        return math.isqrt(rest - 1) + 1 if rest else 0
    if not least <= whole("columns", count, least=2) <= most:
        right = f"it must be {most}" if least == most else f"it must lie between {least} and {most}"
        raise BadInput(f"columns={count} is {'more' if count > most else 'less'} than this table can be given", right=right)
    return count - fixed


def _choose_joining(table: Table, secrets: list[str], attached: int, how: str) -> list[str]:
    """The quasi-identifiers that share a column with the sensitive attributes, in the order of the schema."""
    if attached == 0:
        return []
    if not secrets:
        right = "attached must be 0: each column that is quasi and sensitive is alone"
        raise BadInput(f"attached={attached}, but no column is sensitive alone", right=right)
    quasi = {name: table.quasi[:, place] for place, name in enumerate(table.schema.quasi)}
    able = [name for name, codes in quasi.items() if name not in table.schema.sensitive and not has_too_many(codes)]
    if attached > len(able):
        right = f"it must be at most {len(able)}: the others are sensitive too, or have more values than a tenth of the rows"
        raise BadInput(f"attached={attached} quasi-identifiers cannot join '{secrets[0]}'", right=right)
    codes, domain = table.secret(secrets[0])
    secret = discretize(codes, domain, how=how)
    phi2 = {name: round(mean_square_contingency(_bin_column(table, name, how), secret) * UNIT) for name in able}
    chosen = sorted(able, key=lambda name: (-phi2[name], name))[:attached]
    return [name for name in quasi if name in chosen]


def _bin_column(table: Table, name: str, how: str) -> NDArray[np.int32]:
    place = list(table.schema.quasi).index(name)
    return discretize(table.quasi[:, place], table.quasi_domains[place], how=how)
