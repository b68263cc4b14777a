"""The tree of cuts that makes shards: the space of codes is parted where every promise allows it, on exact counts of all rows.

A level of the tree takes one pass over the rows. It counts, of every shard that is too large, the rows of each column's codes
together with each promised secret. The middle of each column is a cut to be tried. A cut is taken if both sides keep every
promise as one class each, judged against the spread of the secrets over *all* rows; columns are tried in the order of how wide
they are.

What comes to the driver: these counts. Codes are counted in runs, at most `STEPS` for a column and shard, fewer where shards
and leaves of secrets are many; the runs of a shard lie between its own cuts, so they grow finer as shards grow smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import filterfalse

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes, Histogram
from closeknit.core.errors import BadInput
from closeknit.core.joint import Secret, parts
from closeknit.core.model import Model
from closeknit.doors.batches import Block, block_from, codes_in, numbers_in
from closeknit.engines.spark_coding import Coding, summed
from closeknit.engines.spark_packs import Packs
from closeknit.engines.spark_persons import for_cuts, in_persons, is_tally, tally_leaves

STEPS = 4_096  # runs of codes of a column that are counted for a cut
ENTRIES = 4_000_000  # counts of a pass, as long as there are `LEAST` runs
LEAST = 8
ENTRY = ("shard", "place", "secret", "run", "leaf")

Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CutTree:
    """Cuts of the code space: rows of node i with `code <= cut[i]` in `column[i]` go to `left[i]`, the others to the next one.

    >>> tree = CutTree.whole().parted({0: (1, 4)})
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

    def parted(self, cuts: dict[int, tuple[int, int]]) -> CutTree:
        """The same with these shards cut at a code of a column; two new nodes for each, in their order."""
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
    """A shard that may still be cut: its rows, of each promised secret the rows of every leaf, and its codes in each column."""

    rows: int
    secrets: dict[Secret, Counts]
    first: Counts
    last: Counts


@dataclass(frozen=True, eq=False)
class _Cut:
    """The middle of a column, and what it leaves on both sides."""

    column: int
    code: int
    width: float  # of the column in the shard, as it weighs
    sides: tuple[_Open, _Open]


def cut_tree(coding: Coding, coded: Packs, models: Sequence[Model], enough: int, most: int) -> CutTree:
    """Cuts until every shard has `enough` rows at most; one that no cut may part can have `most`."""
    tree = CutTree.whole()
    references: dict[Secret, Counts] = {
        model.column: coding.head.references[model.column] for model in models if model.column is not None
    } | for_cuts(coding, models)
    sizes = np.array([domain.size for domain in coding.head.quasi_domains], dtype=np.int64)  # the code of a missing cell
    open_ = {0: _Open(coding.rows, references, np.zeros_like(sizes), sizes)} if coding.rows > enough else {}
    while open_:
        cuts: dict[int, _Cut] = {}
        for node, offered in _offered(coding, coded, tree, open_).items():
            allowed = next((cut for cut in offered if _keeps(coding, cut, models)), None)
            if allowed is not None:
                cuts[node] = allowed
            elif open_[node].rows > most:
                _refuse(open_[node].rows, most)
        sides = [side for cut in cuts.values() for side in cut.sides]  # in the order in which `parted` puts them
        open_ = {len(tree) + i: side for i, side in enumerate(sides) if side.rows > enough}
        tree = tree.parted({node: (cut.column, cut.code) for node, cut in cuts.items()})
    return tree


def _refuse(rows: int, most: int) -> None:
    what = f"{rows:,} rows stand together in one shard, and no cut of them keeps every promise"
    right = f"an executor holds at most {most:,}: ask for less, or choose sabre or burel with fill='sweep', or incognito"
    raise BadInput(what, right=right)


def _keeps(coding: Coding, cut: _Cut, models: Sequence[Model]) -> bool:
    sides = _classes(coding, cut.sides)
    return all(model.holds(sides).all() for model in models)


def _classes(coding: Coding, sides: Sequence[_Open]) -> Classes:
    sizes = np.array([side.rows for side in sides])
    histograms: dict[Secret, Histogram] = {}
    for name in filterfalse(is_tally, sides[0].secrets):
        rows = np.stack([side.secrets[name] for side in sides])
        owner, values = np.nonzero(rows)
        starts = np.searchsorted(owner, np.arange(len(sides) + 1))
        own = coding.own(name)
        histograms[name] = Histogram(starts, values.astype(np.int32), rows[owner, values], own.reference, own.domain)
    return in_persons(Classes(sizes, sizes, histograms), [side.secrets for side in sides], surely=True)


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
        """The last code of a run; of the one before the first, the code before all."""
        first, length, count = (int(part[shard, column]) for part in (self.first, self.length, self.count))
        return first - (-(run + 1) * length // count) - 1


def _offered(coding: Coding, coded: Packs, tree: CutTree, open_: dict[int, _Open]) -> dict[int, list[_Cut]]:
    """Of each open shard the middle of every column, the widest column first."""
    leaves = sum(len(counts) for counts in next(iter(open_.values())).secrets.values())
    entries = len(open_) * len(coding.quasi_names) * max(leaves, 1)
    runs = _Runs.of(list(open_.values()), min(max(ENTRIES // entries, LEAST), STEPS))
    found = _counted(coding, coded, tree, open_, runs)
    places = found["shard"] * len(coding.quasi_names) + found["place"]
    order = np.argsort(places, kind="stable")
    starts = np.searchsorted(places[order], np.arange(len(open_) * len(coding.quasi_names) + 1))
    offered: dict[int, list[_Cut]] = {}
    for i, (node, whole) in enumerate(open_.items()):
        cuts = []
        for j in range(len(coding.quasi_names)):
            at = i * len(coding.quasi_names) + j
            mine = order[starts[at] : starts[at + 1]]
            cuts.append(_middle(coding, whole, runs, i, j, {name: column[mine] for name, column in found.items()}))
        offered[node] = sorted([cut for cut in cuts if cut], key=lambda cut: (-cut.width, cut.column))
    return offered


def _middle(coding: Coding, whole: _Open, runs: _Runs, i: int, j: int, found: dict[str, Counts]) -> _Cut | None:
    """Of column j in open shard i; None where all rows stand in one run."""
    of_rows = found["secret"] == 0
    rows = np.bincount(found["run"][of_rows], found["rows"][of_rows]).astype(np.int64)
    there, before = np.flatnonzero(rows), np.cumsum(rows)
    if len(there) < 2:
        return None
    run = int(there[np.argmin(np.abs(2 * before[there[:-1]] - whole.rows))])
    code = runs.last_code(i, j, run)
    left = {}
    for s, (name, counts) in enumerate(whole.secrets.items()):
        mine = (found["secret"] == s) & (found["run"] <= run)
        left[name] = np.bincount(found["leaf"][mine], found["rows"][mine], len(counts)).astype(np.int64)
    last, first = whole.last.copy(), whole.first.copy()
    last[j], first[j] = code, code + 1
    rest = {name: counts - left[name] for name, counts in whole.secrets.items()}
    sides = _Open(int(before[run]), left, whole.first, last), _Open(whole.rows - int(before[run]), rest, first, whole.last)
    at = np.append(coding.head.quasi_domains[j].positions(), 1.0)
    reach = float(at[runs.last_code(i, j, int(there[-1]))] - at[runs.last_code(i, j, int(there[0]) - 1) + 1])
    return _Cut(j, code, coding.head.schema.weights()[j] * reach, sides)


def _counted(coding: Coding, coded: Packs, tree: CutTree, open_: dict[int, _Open], runs: _Runs) -> dict[str, Counts]:
    """Rows of every open shard (by its place among these), column, secret, run and leaf; without secrets all have leaf 0."""
    secrets = {name: len(counts) for name, counts in next(iter(open_.values())).secrets.items()}
    shared = coded.frame.sparkSession.sparkContext.broadcast(coding)
    place_of = np.full(len(tree), -1, dtype=np.int32)
    place_of[list(open_)] = np.arange(len(open_))

    def counted(block: Block) -> Block:
        quasi = codes_in(block, shared.value.place_names)
        shard = place_of[tree.shard_of(quasi)]
        mine = np.flatnonzero(shard >= 0)
        shard, quasi = shard[mine], quasi[mine]
        found = [np.empty((6, 0), dtype=np.int64)]
        for s, (leaf, leaves) in enumerate(_leaves(shared.value, secrets, block, mine)):
            for j in range(quasi.shape[1]):
                run, most = runs.run_of(shard, j, quasi[:, j]), int(runs.count[:, j].max())
                keys, rows = _sums((shard.astype(np.int64) * most + run) * leaves + leaf, len(open_) * most * leaves)
                by = [
                    keys // leaves // most,
                    np.full_like(keys, j),
                    np.full_like(keys, s),
                    keys // leaves % most,
                    keys % leaves,
                ]
                found.append(np.stack([*by, rows]))
        return block_from(dict(zip((*ENTRY, "rows"), np.concatenate(found, axis=1), strict=True)))

    entries = summed(coded.each(counted), dict.fromkeys(ENTRY, "bigint")).toArrow()
    return {name: numbers_in(entries, name).astype(np.int64) for name in (*ENTRY, "rows")}


def _leaves(
    coding: Coding, secrets: dict[Secret, int], block: Block, mine: NDArray[np.int64]
) -> list[tuple[NDArray[np.int32], int]]:
    """Of each promised secret the leaf of every row, and how many leaves it has."""
    names, codes = list(coding.head.schema.sensitive), codes_in(block, coding.secret_names)[mine]
    found = []
    for secret, leaves in secrets.items():
        if is_tally(secret):
            found.append((tally_leaves(coding, secret, block)[mine], leaves))
            continue
        own = codes[:, [names.index(name) for name in parts(secret)]]
        found.append((own[:, 0] if isinstance(secret, str) else coding.joints[secret].place(own), leaves))
    return found or [(np.zeros(len(mine), dtype=np.int32), 1)]


def _sums(keys: Counts, limit: int) -> tuple[Counts, Counts]:
    """The keys that occur, and how often; all are less than `limit`."""
    if limit <= max(2 * len(keys), ENTRIES):
        rows = np.bincount(keys, minlength=1).astype(np.int64)
        there = np.flatnonzero(rows)
        return there, rows[there]
    there, rows = np.unique(keys, return_counts=True)
    return there, rows.astype(np.int64)
