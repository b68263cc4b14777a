"""Groups of rows with like sensitive values, and the plan by which every class draws from each of them.

Rows that agree in all sensitive attributes are one *cell*: a point with a weight, so grouping costs what the cells cost, not
the rows. Which rows of a cell go to which group is free; they are dealt far apart in the order of the table, so that every
group has rows from everywhere.

Source: the paper on multiple sensitive attributes, sec. 4 (adjustment of k, PCA grouping, GenerateEquivalenceClasses).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closeknit.core.domain import Domain
from closeknit.core.embedding import embed_codes
from closeknit.core.errors import Unsatisfiable
from closeknit.core.row_sorting import groups as equal_rows
from closeknit.core.table import Table
from closeknit.kernels.arrays import Int64, Reals
from closeknit.plans.fragment_sizes import deal_sizes
from closeknit.plans.plan import Plan

DIGITS = 9  # scores are compared to so many digits: the rest differs between machines
TIED = 1e-6  # eigenvalues that are nearer than this (of the largest) leave the direction open: a rule chooses it


def adjust_k(n: int, k: int) -> int:
    """k' >= k groups of q = floor(n/k) rows: as many as leave fewer than q rows over, so that no class takes two of them.

    >>> adjust_k(45_222, 20), adjust_k(19, 10), adjust_k(20, 10)
    (20, 19, 10)
    """
    if n < k:
        raise Unsatisfiable(f"{k}-anonymity", f"the table has {n:,} rows", f"ask for k of at most {n:,}")
    return k + (n % k) // (n // k)


@dataclass(frozen=True, eq=False)
class Cells:
    """Combinations of sensitive values that occur: `points[c]` where cell c lies, `rows[c]` how many rows it has, `of_row`
    whose.
    """

    of_row: NDArray[np.int32]
    points: Reals
    rows: Int64

    @classmethod
    def of(cls, table: Table, columns: Sequence[str], embedding: str = "tree", scaled: bool = True) -> Cells:
        """Of these sensitive attributes. `tree`: the isometric embedding; `one-hot`: an axis a value, numbers as they are."""
        secrets = [table.secret(name) for name in columns]
        of_row, count = equal_rows([(codes, domain.size + 1) for codes, domain in secrets], len(table))
        if not secrets:
            of_row, count = np.zeros(len(table), dtype=np.int32), 1
        rows = np.bincount(of_row, minlength=count)
        first = np.full(count, len(table), dtype=np.int64)
        np.minimum.at(first, of_row, np.arange(len(table)))
        codes = np.stack([codes[first] for codes, _ in secrets], axis=1) if secrets else np.zeros((count, 0), dtype=np.int32)
        domains = [domain for _, domain in secrets]
        blocks = (
            embed_codes(codes, domains)
            if embedding == "tree"
            else [_one_hot(codes[:, j], domain) for j, domain in enumerate(domains)]
        )
        blocks = [_unit_variance(block, rows) for block in blocks] if scaled else blocks
        return cls(of_row, np.ascontiguousarray(np.concatenate([*blocks, np.zeros((count, 0))], axis=1)), rows)

    def __len__(self) -> int:
        return len(self.rows)

    def in_order(self, order: NDArray[np.integer]) -> Int64:
        """Rows, cell after cell in this order; inside a cell any stretch of them has rows from the whole cell."""
        place = np.empty(len(self), dtype=np.int64)
        place[order] = np.arange(len(self))
        by_cell = np.argsort(self.of_row, kind="stable")
        starts = np.cumsum(self.rows) - self.rows
        rank = np.empty(len(by_cell), dtype=np.int64)
        rank[by_cell] = np.arange(len(by_cell)) - starts[self.of_row[by_cell]]
        return np.lexsort((_reverse_bits(rank), place[self.of_row]))


def _one_hot(codes: NDArray[np.int32], domain: Domain) -> Reals:
    """The source's columns: numbers as they are, of all other values one column each (missing: one more)."""
    if domain.tree is None and domain.numbers is not None:
        missing = codes == domain.size
        return np.stack([np.append(domain.numbers, domain.numbers[:1].sum())[codes], missing], axis=1).astype(np.float64)
    return (codes[:, None] == np.unique(codes)).astype(np.float64)


def _unit_variance(block: Reals, rows: Int64) -> Reals:
    """The block scaled so that its axes together have variance 1; without variance it stays."""
    variance = (rows @ (block - rows @ block / rows.sum()) ** 2).sum() / rows.sum()
    return block / np.sqrt(variance) if variance > 0 else block


def _reverse_bits(rank: Int64) -> Int64:
    """Ranks with their bits mirrored: sorting by them spreads neighbours far apart.

    >>> np.argsort(_reverse_bits(np.arange(8))).tolist()
    [0, 4, 2, 6, 1, 5, 3, 7]
    """
    width = int(rank.max(initial=0)).bit_length()
    mirrored = np.zeros_like(rank)
    for bit in range(width):
        mirrored |= ((rank >> bit) & 1) << (width - 1 - bit)
    return mirrored


def principal(cells: Cells) -> Reals:
    """Scores `[cells, 2]` on the first two principal components, as rounded shares of the farthest one.

    The largest loading of each component is positive. Where eigenvalues tie, any direction among theirs would do: taken is the
    one nearest to a single axis, so that the same table gives the same scores on every machine.

    >>> points = np.array([[0.0, 0.0], [1.0, 0.1], [2.0, 0.0]])
    >>> principal(Cells(np.arange(3), points, np.ones(3, np.int64)))[:, 0].round(3).tolist()
    [-1.0, 0.0, 1.0]
    """
    centred = cells.points - cells.rows @ cells.points / cells.rows.sum()
    spread = (centred * cells.rows[:, None]).T @ centred
    if cells.points.shape[1] == 0 or np.trace(spread) <= 0:
        return np.zeros((len(cells), 2))
    values, vectors = np.linalg.eigh(np.round(spread / np.trace(spread), 12))
    directions = _directions(values[::-1], vectors[:, ::-1])
    scores: Reals = centred @ directions
    return np.round(scores / np.abs(scores).max(), DIGITS)


def _directions(values: Reals, vectors: Reals) -> Reals:
    """Two unit vectors, each out of the first eigenspace that is not used up; eigenvalues fall."""
    found = np.zeros((len(values), 2))
    for i in range(min(2, len(values))):
        tied = np.flatnonzero(np.abs(values - values[i]) <= TIED * values[0])
        space = vectors[:, tied] @ vectors[:, tied].T
        space -= found @ (found.T @ space)
        axis = int(np.argmax(np.round(np.diag(space), DIGITS)))
        found[:, i] = space[:, axis] / np.linalg.norm(space[:, axis])
        loading = int(np.argmax(np.round(np.abs(found[:, i]), DIGITS)))
        found[:, i] *= np.sign(found[loading, i])
    return found


def pca_groups(cells: Cells, c: int) -> NDArray[np.int32]:
    """Group of each row: rows sorted by the first component and cut into c runs; the middle one takes what is left over.

    >>> line = Cells(np.arange(7), np.arange(7.0)[:, None], np.ones(7, np.int64))
    >>> pca_groups(line, 3).tolist()
    [0, 0, 1, 1, 1, 2, 2]
    """
    n = len(cells.of_row)
    sizes = np.full(c, n // c)
    sizes[(c - 1) // 2] += n % c
    scores = principal(cells)
    group_of = np.empty(n, dtype=np.int32)
    group_of[cells.in_order(np.lexsort((scores[:, 1], scores[:, 0])))] = np.repeat(np.arange(c, dtype=np.int32), sizes)
    return group_of


def plan_draws(group_of: NDArray[np.int32], cell_of: NDArray[np.int32], k: int = 1) -> Plan:
    """As many classes as the smallest group has rows, or floor(n/k) if that is less; each draws from every group.

    What a group has left over is dealt on from class to class, so class sizes differ by one at most.
    Empty groups are dropped. Groups of one and the same cell become one bucket with as many seats: they are interchangeable.

    >>> plan_draws(np.array([0, 0, 1, 1, 1, 1, 1]), np.arange(7)).class_sizes.tolist()
    [4, 3]
    """
    sizes = np.bincount(group_of)
    order = np.argsort(np.where(sizes > 0, sizes, len(group_of) + 1), kind="stable")[: int((sizes > 0).sum())]
    allotments = deal_sizes(sizes[order], min(int(sizes[order[0]]), max(1, len(group_of) // k)))
    bucket_of_group = _buckets(group_of, cell_of, order)
    merged = np.zeros((len(allotments), int(bucket_of_group.max()) + 1), dtype=np.int64)
    for place, group in enumerate(order):
        merged[:, bucket_of_group[group]] += allotments[:, place]
    plan = Plan(bucket_of_group[group_of].astype(np.int32), merged.sum(axis=0), merged)
    plan.check(np.ones(len(group_of), dtype=np.int64))
    return plan


def _buckets(group_of: NDArray[np.int32], cell_of: NDArray[np.int32], order: Int64) -> Int64:
    """Bucket of each group, numbered in the order of the groups; -1 for an empty group."""
    lowest = np.full(int(group_of.max()) + 1, np.iinfo(np.int64).max)
    highest = np.full(len(lowest), -1)
    np.minimum.at(lowest, group_of, cell_of)
    np.maximum.at(highest, group_of, cell_of)
    bucket_of, bucket_of_cell = np.full(len(lowest), -1), dict[int, int]()
    fresh = 0
    for group in order.tolist():
        pure = lowest[group] == highest[group]
        bucket = bucket_of_cell.get(int(lowest[group]), fresh) if pure else fresh
        if pure:
            bucket_of_cell[int(lowest[group])] = bucket
        bucket_of[group] = bucket
        fresh += bucket == fresh
    return bucket_of
