"""The tree of cuts that forms shards: the code space is split where every guarantee allows it, on exact counts of all rows.

A level of the tree takes one pass over the rows. For every shard that is too large it counts the rows of each column's codes
together with each guaranteed sensitive attribute, and the box of the rows of each code. The candidates are the cuts of each
column next to some eighths of its rows and, in trees, between the children of the node over the shard, in order of the loss of
both sides. The first cut is used whose sides, as one class each, meet every guarantee, judged against the distribution of the
sensitive attributes over *all* rows.

The driver gets these counts. Codes are counted in runs, at most `STEPS` per column and shard, fewer if there are many shards
and sensitive values; the runs of a shard lie between its own cuts, so they become finer as shards become smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import filterfalse

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes, Histogram
from closeknit.core.combined_secrets import Secret
from closeknit.core.domain import Domain
from closeknit.core.errors import BadInput
from closeknit.core.geometry import scales
from closeknit.core.model import Model
from closeknit.core.table import Table
from closeknit.io.batches import Block, block_from, codes_in, numbers_in
from closeknit.kernels.geometry.boxes import box_losses, boxes
from closeknit.spark.coding import Coding
from closeknit.spark.packed_frame import PackedFrame
from closeknit.spark.person_marks import count_persons, is_tally, list_tallies, tally_leaves

STEPS = 4_096  # runs of codes of a column that are counted
ENTRIES = 400_000  # counts of a pass, as long as there are `LEAST` runs
LEAST = 8
DENSE = 4_000_000  # possible counts up to which a table of all of them is used
EIGHTHS = (2, 3, 4, 5, 6)  # of the rows: a smaller side would take too many levels
ENTRY = ("shard", "place", "secret", "run", "leaf")
SUMS = {"rows": "sum", "low": "min", "high": "max"}
BOX = -1

Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CutTree:
    """Cuts of the code space: rows of node i with `code <= cut[i]` in `column[i]` belong to `left[i]`, the others to the next
    node.

    >>> tree = CutTree.whole().split_shards({0: (1, 4)})
    >>> tree.shard_of(np.array([[9, 3], [0, 5]], np.int32)).tolist()
    [1, 2]
    """

    column: NDArray[np.int32]  # -1: a shard
    cut: NDArray[np.int32]
    left: NDArray[np.int32]

    @classmethod
    def whole(cls) -> CutTree:
        """One shard of everything."""
        return cls(np.array([-1], np.int32), np.zeros(1, np.int32), np.zeros(1, np.int32))

    def __len__(self) -> int:
        return len(self.column)

    def split_shards(self, cuts: dict[int, tuple[int, int]]) -> CutTree:
        """The tree with these shards cut at a code of a column; each gets two new nodes, in order."""
        column, cut, left = (list(part) for part in (self.column.tolist(), self.cut.tolist(), self.left.tolist()))
        for node, (where, code) in cuts.items():
            column[node], cut[node], left[node] = where, code, len(column)
            column, cut, left = [*column, -1, -1], [*cut, 0, 0], [*left, 0, 0]
        return CutTree(*(np.array(part, np.int32) for part in (column, cut, left)))

    def shard_of(self, quasi: NDArray[np.int32]) -> NDArray[np.int32]:
        """The shard of each row."""
        node = np.zeros(len(quasi), dtype=np.int32)
        columns = {j: np.ascontiguousarray(quasi[:, j]) for j in np.unique(self.column).tolist() if j >= 0}
        open_ = [(0, np.arange(len(quasi), dtype=np.int32))]
        while open_:
            at, rows = open_.pop()
            if self.column[at] < 0:
                node[rows] = at
            else:
                right = columns[int(self.column[at])][rows] > self.cut[at]
                open_ += [(int(self.left[at]) + side, rows[right == side]) for side in (0, 1)]
        return node


@dataclass(frozen=True, eq=False)
class _Open:
    """A shard that may be cut: its rows, the rows of every leaf of each guaranteed attribute, and its codes per column."""

    rows: int
    secrets: dict[Secret, Counts]
    first: Counts
    last: Counts


@dataclass(frozen=True, eq=False)
class _Cut:
    """A candidate cut, the loss of both sides together, and the sides."""

    loss: float
    column: int
    code: int
    sides: tuple[_Open, _Open]


def cut_tree(coding: Coding, coded: PackedFrame, models: Sequence[Model], enough: int, most: int) -> CutTree:
    """Cut until every shard has at most `enough` rows; one without an allowed cut may have `most`."""
    tree = CutTree.whole()
    references: dict[Secret, Counts] = {
        model.column: coding.head.references[model.column] for model in models if model.column is not None
    } | list_tallies(coding, models)
    sizes = np.array([domain.size for domain in coding.head.quasi_domains], dtype=np.int64)  # the code of a missing cell
    open_ = {0: _Open(coding.rows, references, np.zeros_like(sizes), sizes)} if coding.rows > enough else {}
    while open_:
        cuts: dict[int, _Cut] = {}
        for node, candidates in _list_cuts(coding, coded, tree, open_).items():
            allowed = next((cut for cut in candidates if _meets_models(coding, cut, models)), None)
            if allowed is not None:
                cuts[node] = allowed
            elif open_[node].rows > most:
                _refuse(open_[node].rows, most)
        sides = [side for cut in cuts.values() for side in cut.sides]  # in the order of `split_shards`
        open_ = {len(tree) + i: side for i, side in enumerate(sides) if side.rows > enough}
        tree = tree.split_shards({node: (cut.column, cut.code) for node, cut in cuts.items()})
    return tree


def _refuse(rows: int, most: int) -> None:
    what = f"one shard has {rows:,} rows, and no cut of it meets every guarantee"
    right = f"an executor holds at most {most:,}: relax a guarantee, or choose sabre or burel with fill='sweep', or incognito"
    raise BadInput(what, right=right)


def _meets_models(coding: Coding, cut: _Cut, models: Sequence[Model]) -> bool:
    sides = _classes(coding, cut.sides)
    return all(model.holds(sides).all() for model in models)


def _classes(coding: Coding, sides: Sequence[_Open]) -> Classes:
    sizes = np.array([side.rows for side in sides])
    histograms: dict[Secret, Histogram] = {}
    for name in filterfalse(is_tally, sides[0].secrets):
        rows = np.stack([side.secrets[name] for side in sides])
        histograms[name] = coding.own(name).recount(rows)
    return count_persons(Classes(sizes, sizes, histograms), [side.secrets for side in sides], surely=True)


# Counting --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Runs:
    """The codes of shard i in column j, in `count[i, j]` runs of about equal length."""

    first: Counts
    length: Counts
    count: Counts

    @classmethod
    def of(cls, open_: Sequence[_Open], most: int) -> _Runs:
        first = np.stack([shard.first for shard in open_])
        length = np.stack([shard.last for shard in open_]) - first + 1
        return cls(first, length, np.minimum(length, most))

    def run_of(self, shard: NDArray[np.integer], column: int, codes: NDArray[np.integer]) -> Counts:
        """The run of each row's code, by its shard."""
        return (codes - self.first[shard, column]) * self.count[shard, column] // self.length[shard, column]

    def last_code(self, shard: int, column: int, run: int) -> int:
        """The last code of a run; for run -1, the code before all."""
        first, length, count = (int(part[shard, column]) for part in (self.first, self.length, self.count))
        return first - (-(run + 1) * length // count) - 1


def _list_cuts(coding: Coding, coded: PackedFrame, tree: CutTree, open_: dict[int, _Open]) -> dict[int, list[_Cut]]:
    """The candidate cuts of each open shard, best first."""
    leaves = sum(len(counts) for counts in next(iter(open_.values())).secrets.values())
    entries = len(open_) * len(coding.quasi_names) * max(leaves, 1)
    runs = _Runs.of(list(open_.values()), min(max(ENTRIES // entries, LEAST), STEPS))
    found = _count_runs(coding, coded, tree, open_, runs)
    places = found["shard"] * len(coding.quasi_names) + found["place"]
    order = np.argsort(places, kind="stable")
    starts = np.searchsorted(places[order], np.arange(len(open_) * len(coding.quasi_names) + 1))
    candidates: dict[int, list[_Cut]] = {}
    for i, (node, whole) in enumerate(open_.items()):
        cuts: list[_Cut] = []
        for j in range(len(coding.quasi_names)):
            at = i * len(coding.quasi_names) + j
            mine = order[starts[at] : starts[at + 1]]
            cuts += _cuts(coding.head, whole, runs, i, j, {name: column[mine] for name, column in found.items()})
        candidates[node] = sorted(cuts, key=lambda cut: (cut.loss, cut.column, cut.code))
    return candidates


def _cuts(head: Table, whole: _Open, runs: _Runs, i: int, j: int, found: dict[str, Counts]) -> list[_Cut]:
    """The cuts of column j in open shard i; none if all rows are in one run."""
    rows = np.bincount(found["run"], np.where(found["secret"] == 0, found["rows"], 0)).astype(np.int64)
    there, before = np.flatnonzero(rows), np.cumsum(rows)
    if len(there) < 2:
        return []
    low, high = _boxes(len(rows), len(head.quasi_domains), found)
    wanted = {int(there[np.argmin(np.abs(8 * before[there[:-1]] - eighth * whole.rows))]) for eighth in EIGHTHS}
    for code in _ends_of_children(head.quasi_domains[j], int(low[:, j].min()), int(high[:, j].max())):
        run = int(runs.run_of(np.array([i]), j, np.array([code]))[0])
        if runs.last_code(i, j, run) == code and whole.rows <= 8 * before[run] <= 7 * whole.rows:
            wanted.add(run)
    places = np.array(sorted(wanted))
    left = np.minimum.accumulate(low)[places], np.maximum.accumulate(high)[places]
    right = np.minimum.accumulate(low[::-1])[::-1][places + 1], np.maximum.accumulate(high[::-1])[::-1][places + 1]
    geometry, rest = scales(head), whole.rows - before[places]
    losses = before[places] * box_losses(geometry, *left) + rest * box_losses(geometry, *right)
    codes = [runs.last_code(i, j, run) for run in places.tolist()]
    return [
        _Cut(float(loss), j, code, _sides(whole, j, code, int(before[run]), found, found["run"] <= run))
        for loss, code, run in zip(losses, codes, places.tolist(), strict=True)
    ]


def _boxes(runs: int, columns: int, found: dict[str, Counts]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The smallest and the largest code of every column in each run; for a run without rows the smallest is the larger one."""
    low = np.full((runs, columns), np.iinfo(np.int32).max, dtype=np.int32)
    high = np.full((runs, columns), -1, dtype=np.int32)
    mine = found["secret"] == BOX
    at = found["run"][mine], found["leaf"][mine]
    low[at], high[at] = found["low"][mine], found["high"][mine]
    return low, high


def _ends_of_children(domain: Domain, low: int, high: int) -> list[int]:
    """The last code of each child, except the last one, of the smallest node over these codes."""
    if domain.tree is None:
        return []
    tree = domain.tree
    over = np.flatnonzero((tree.lo <= low) & (tree.hi >= high))
    node = over[np.argmin(tree.hi[over] - tree.lo[over])]
    ends = tree.hi[(tree.parent == node) & (np.arange(len(tree.parent)) != node)]
    return sorted(int(end) for end in ends if low <= end < high)


def _sides(
    whole: _Open, j: int, code: int, rows: int, found: dict[str, Counts], left: NDArray[np.bool_]
) -> tuple[_Open, _Open]:
    secrets = {}
    for s, (name, counts) in enumerate(whole.secrets.items()):
        mine = left & (found["secret"] == s)
        secrets[name] = np.bincount(found["leaf"][mine], found["rows"][mine], len(counts)).astype(np.int64)
    last, first = whole.last.copy(), whole.first.copy()
    last[j], first[j] = code, code + 1
    rest = {name: counts - secrets[name] for name, counts in whole.secrets.items()}
    return _Open(rows, secrets, whole.first, last), _Open(whole.rows - rows, rest, first, whole.last)


def _count_runs(coding: Coding, coded: PackedFrame, tree: CutTree, open_: dict[int, _Open], runs: _Runs) -> dict[str, Counts]:
    """The rows of every open shard (by its place among these), column, attribute, run and leaf; without attributes the leaf
    is 0.

    In an entry of the attribute `BOX` the leaf is a column, with its smallest and largest code among the rows of the run.
    """
    from pyspark.sql import functions as F

    secrets = {name: len(counts) for name, counts in next(iter(open_.values())).secrets.items()}
    shared = coded.share(coding)
    place_of = np.full(len(tree), -1, dtype=np.int32)
    place_of[list(open_)] = np.arange(len(open_))

    def count_block(block: Block) -> Block:
        quasi = codes_in(block, shared.value.place_names)
        shard = place_of[tree.shard_of(quasi)]
        mine = np.flatnonzero(shard >= 0)
        shard, quasi = shard[mine], quasi[mine]
        found = [np.empty((8, 0), dtype=np.int64)]
        leaves = _leaves(shared.value, secrets, block, mine)
        for j in range(quasi.shape[1] if len(mine) else 0):
            most = int(runs.count[:, j].max())
            place = shard * np.int64(most) + runs.run_of(shard, j, quasi[:, j])
            for s, (leaf, width) in enumerate(leaves):
                keys, rows = _sums(place * width + leaf, len(open_) * most * width)
                found.append(_entries(keys // width // most, j, s, keys // width % most, keys % width, rows, rows, rows))
            low, high = boxes(quasi, place.astype(np.int32), len(open_) * most)
            keys = np.flatnonzero(low[:, 0] <= high[:, 0])
            for column in range(quasi.shape[1]):
                ends = low[keys, column], high[keys, column]
                found.append(_entries(keys // most, j, BOX, keys % most, column, 0, *ends))
        return block_from(dict(zip((*ENTRY, *SUMS), np.concatenate(found, axis=1), strict=True)))

    types = dict.fromkeys((*ENTRY, *SUMS), "bigint")
    every = coded.each(count_block).rows(types).groupBy(*ENTRY)
    entries = every.agg(*(getattr(F, how)(name).alias(name) for name, how in SUMS.items())).toArrow()
    return {name: numbers_in(entries, name).astype(np.int64) for name in types}


def _entries(shard: Counts, *others: NDArray[np.integer] | int) -> Counts:
    return np.stack([np.broadcast_to(np.asarray(column, dtype=np.int64), shard.shape) for column in (shard, *others)])


def _leaves(
    coding: Coding, secrets: dict[Secret, int], block: Block, mine: NDArray[np.int64]
) -> list[tuple[NDArray[np.int32], int]]:
    """For each guaranteed attribute the leaf of every row, and the number of leaves."""
    found = [
        ((tally_leaves(coding, secret, block) if is_tally(secret) else coding.leaves_of(secret, block))[mine], leaves)
        for secret, leaves in secrets.items()
    ]
    return found or [(np.zeros(len(mine), dtype=np.int32), 1)]


def _sums(keys: Counts, limit: int) -> tuple[Counts, Counts]:
    """The keys that occur, and how often; all are below `limit`."""
    if limit <= max(2 * len(keys), DENSE):
        rows = np.bincount(keys, minlength=1).astype(np.int64)
        there = np.flatnonzero(rows)
        return there, rows[there]
    there, rows = np.unique(keys, return_counts=True)
    return there, rows.astype(np.int64)
