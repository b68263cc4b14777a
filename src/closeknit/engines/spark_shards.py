"""Methods that scale by shards: the space of codes is cut until a shard fits an executor; then the same code as on one machine.

A level of the tree of cuts takes two passes over the rows. The first counts, of every shard that is too large, the rows of each
column's codes; the middle of each column is a cut to be tried. The second counts the secrets left of these cuts. A cut is taken
if both sides keep every promise as one class each, judged against the spread of the secrets over *all* rows; columns are tried
in the order of how wide they are. A shard does not withhold rows, and its seed is its own.

A method that plans makes its plan for the secrets of the shard; its classes are judged against all rows, and merged where they
break a promise. A shard as one class keeps all of them, so that ends.

What comes to the driver: histograms of codes (at most `STEPS` entries a column and shard) and of secrets. A shard that no cut
may part stays one, and is refused above `LARGEST` rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes, Histogram
from closeknit.core.errors import BadInput
from closeknit.core.joint import Secret
from closeknit.core.method import Method, silent
from closeknit.core.model import Model
from closeknit.core.table import Form
from closeknit.doors.batches import Block, block_from, codes_in, numbers_in
from closeknit.engines.spark_coding import Coding
from closeknit.engines.spark_maps import Work, each_batch, each_group
from closeknit.engines.spark_writing import written_block, written_types
from closeknit.fills.repair import repaired

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SHARD = 1_000_000  # rows of a shard that is not cut further
LARGEST = 20_000_000  # rows of a shard that an executor can be asked to hold
STEPS = 4_096  # runs of codes of a column that are counted for a cut

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
        node, rows = np.zeros(len(quasi), dtype=np.int32), np.arange(len(quasi))
        while len(rows := rows[self.column[node[rows]] >= 0]):
            at = node[rows]
            node[rows] = self.left[at] + (quasi[rows, self.column[at]] > self.cut[at])
        return node


def sharded(coding: Coding, coded: DataFrame, method: Method, models: Sequence[Model], form: Form,
            seed: int) -> tuple[DataFrame, int]:  # fmt: skip
    """The written rows of every shard, and how many shards there are."""
    tree = cut_tree(coding, coded, models)
    shared = coded.sparkSession.sparkContext.broadcast((coding, tree))
    shards = int((tree.column < 0).sum())

    def numbered(block: Block) -> Block:
        coding, tree = shared.value
        numbers = tree.shard_of(codes_in(block, coding.quasi_names))
        return block_from({"shard": numbers, **{name: block.column(name) for name in coding.types}})

    def written(block: Block) -> Block:
        coding, _ = shared.value
        table, order = coding.table(block)
        own = seed if shards == 1 else _seed_of(seed, int(numbers_in(block, "shard")[0]))
        outcome = method.run(table, models, own, silent)
        partition = repaired(table, outcome.partition, models)  # judged here, whatever a method says of its own plan
        return written_block(coding, outcome.form or form, block, order, table, partition, own)

    rows = each_batch(coded, numbered, {"shard": "int", **coding.types})
    return each_group(rows, "shard", coding.rows, written, written_types(coding)), shards


def _seed_of(seed: int, shard: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed} {shard}".encode()).digest()[:16], "big")


# The tree of cuts ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Open:
    """A shard that may still be cut: its rows, and of each promised secret the rows of every leaf."""

    rows: int
    secrets: dict[Secret, Counts]


def cut_tree(coding: Coding, coded: DataFrame, models: Sequence[Model]) -> CutTree:
    """Cuts until every shard is small enough, or no cut keeps the promises."""
    tree = CutTree.whole()
    names: dict[Secret, Counts] = {
        model.column: coding.head.references[model.column] for model in models if model.column is not None
    }
    open_ = {0: _Open(coding.rows, names)} if coding.rows > SHARD else {}
    while open_:
        offered = _middles(coding, coded, tree, open_)
        lefts = _left_sides(coding, coded, tree, open_, offered)
        cuts: dict[int, tuple[int, int]] = {}
        sides: dict[int, tuple[_Open, _Open]] = {}
        for node in open_:
            taken_cut = _first_allowed(coding, open_[node], offered[node], lefts[node], models)
            if taken_cut is None:
                _refuse_large(open_[node].rows)
                continue
            sides[len(tree) + 2 * len(cuts)] = taken_cut[1]  # where `parted` will put them
            cuts[node] = taken_cut[0]
        tree = tree.parted(cuts)
        both = {node + i: side for node, pair in sides.items() for i, side in enumerate(pair)}
        open_ = {node: side for node, side in both.items() if side.rows > SHARD}
    return tree


def _refuse_large(rows: int) -> None:
    if rows > LARGEST:
        what = f"{rows:,} rows stand together in one shard, and no cut of them keeps every promise"
        right = f"an executor holds at most {LARGEST:,}: ask for less, or choose sabre or burel with fill='sweep', or incognito"
        raise BadInput(what, right=right)


def _middles(coding: Coding, coded: DataFrame, tree: CutTree, open_: dict[int, _Open]) -> dict[int, list[tuple[int, int]]]:
    """Of each open shard the middle of every column as (column, code), the widest column first."""
    sizes = np.array([domain.size + 1 for domain in coding.head.quasi_domains], dtype=np.int64)
    wanted, names = np.array(sorted(open_), dtype=np.int32), coding.quasi_names

    def counted(block: Block) -> Block:
        quasi = codes_in(block, names)
        node = tree.shard_of(quasi)
        mine = np.isin(node, wanted)
        parts = []
        for j, size in enumerate(sizes.tolist()):
            step = quasi[mine, j].astype(np.int64) * min(STEPS, size) // size
            parts.append(np.stack([node[mine], np.full(len(step), j), step]))
        return _summed(np.concatenate(parts, axis=1), ("node", "place", "code"))

    found = _collected(coded, counted, ("node", "place", "code"))
    offered: dict[int, list[tuple[int, int]]] = {}
    weights = coding.head.schema.weights()
    for node in open_:
        wide = []
        for j, domain in enumerate(coding.head.quasi_domains):
            mine = (found["node"] == node) & (found["place"] == j)
            order = np.argsort(found["code"][mine])
            steps, rows = found["code"][mine][order], np.cumsum(found["rows"][mine][order])
            if len(steps) < 2:
                continue
            middle = int(np.argmin(np.abs(2 * rows[:-1] - rows[-1])))
            at = np.append(domain.positions(), 1.0)
            size, count = int(sizes[j]), min(STEPS, int(sizes[j]))
            first, last = -(-int(steps[0]) * size // count), -(-(int(steps[-1]) + 1) * size // count) - 1
            code = -(-(int(steps[middle]) + 1) * size // count) - 1  # the last code of that step
            wide.append((-weights[j] * float(at[last] - at[first]), j, code))
        offered[node] = [(j, code) for _, j, code in sorted(wide)]
    return offered


def _left_sides(coding: Coding, coded: DataFrame, tree: CutTree, open_: dict[int, _Open],
                offered: dict[int, list[tuple[int, int]]]) -> dict[int, dict[int, _Open]]:  # fmt: skip
    """Of each open shard and column what stands left of its middle."""
    names = list(next(iter(open_.values())).secrets)
    secrets = list(coding.head.schema.sensitive)
    shared = coded.sparkSession.sparkContext.broadcast(coding)
    cut_at = np.full((len(tree), len(coding.head.quasi_domains)), -1, dtype=np.int64)
    for node, cuts in offered.items():
        for j, code in cuts:
            cut_at[node, j] = code

    def leaves(block: Block) -> list[NDArray[np.int32]]:
        codes = codes_in(block, shared.value.secret_names)
        at = [codes[:, [secrets.index(part) for part in ((n,) if isinstance(n, str) else n)]] for n in names]
        return [c[:, 0] if isinstance(n, str) else shared.value.joints[n].place(c) for n, c in zip(names, at, strict=True)]

    def counted(block: Block) -> Block:
        quasi, secret = codes_in(block, shared.value.quasi_names), leaves(block)
        node = tree.shard_of(quasi)
        parts = []
        for j in range(quasi.shape[1]):
            left = quasi[:, j] <= cut_at[node, j]
            here, place = node[left], np.full(int(left.sum()), j)
            parts.append(np.stack([here, place, np.full(len(here), -1), np.zeros(len(here), np.int64)]))
            parts += [np.stack([here, place, np.full(len(here), i), codes[left]]) for i, codes in enumerate(secret)]
        return _summed(np.concatenate(parts, axis=1), ("node", "place", "secret", "code"))

    found = _collected(coded, counted, ("node", "place", "secret", "code"))
    sides: dict[int, dict[int, _Open]] = {node: {} for node in open_}
    for node, cuts in offered.items():
        for j, _ in cuts:
            mine = (found["node"] == node) & (found["place"] == j)
            secret_rows = {}
            for i, name in enumerate(names):
                of_name = mine & (found["secret"] == i)
                width = len(open_[node].secrets[name])
                dense = np.bincount(found["code"][of_name], found["rows"][of_name], minlength=width)
                secret_rows[name] = dense.astype(np.int64)
            sides[node][j] = _Open(int(found["rows"][mine & (found["secret"] == -1)].sum()), secret_rows)
    return sides


def _first_allowed(coding: Coding, whole: _Open, offered: Sequence[tuple[int, int]], lefts: dict[int, _Open],
                   models: Sequence[Model]) -> tuple[tuple[int, int], tuple[_Open, _Open]] | None:  # fmt: skip
    """The first cut that no model vetoes, and both its sides."""
    for j, code in offered:
        left = lefts[j]
        rest = _Open(whole.rows - left.rows, {name: whole.secrets[name] - rows for name, rows in left.secrets.items()})
        sides = _classes(coding, (left, rest))
        if all(model.holds(sides).all() for model in models):
            return (j, code), (left, rest)
    return None


def _classes(coding: Coding, sides: Sequence[_Open]) -> Classes:
    sizes = np.array([side.rows for side in sides])
    histograms: dict[Secret, Histogram] = {}
    for name in sides[0].secrets:
        rows = np.stack([side.secrets[name] for side in sides])
        owner, values = np.nonzero(rows)
        starts = np.searchsorted(owner, np.arange(len(sides) + 1))
        own = coding.own(name)
        histograms[name] = Histogram(starts, values.astype(np.int32), rows[owner, values], own.reference, own.domain)
    return Classes(sizes, sizes, histograms)


def _summed(cells: NDArray[np.integer], names: Sequence[str]) -> Block:
    """Equal columns of numbers counted."""
    order = np.lexsort(cells[::-1])
    ranked = cells[:, order].astype(np.int64)
    fresh = np.ones(ranked.shape[1], dtype=bool)
    fresh[1:] = (ranked[:, 1:] != ranked[:, :-1]).any(axis=0)
    rows = np.diff(np.append(np.flatnonzero(fresh), len(fresh)))
    return block_from({**dict(zip(names, np.ascontiguousarray(ranked[:, fresh]), strict=True)), "rows": rows.astype(np.int64)})


def _collected(coded: DataFrame, counted: Work, names: Sequence[str]) -> dict[str, Counts]:
    from pyspark.sql import functions as F

    types = {**dict.fromkeys(names, "bigint"), "rows": "bigint"}
    found = each_batch(coded, counted, types).groupBy(*names).agg(F.sum("rows").alias("rows")).toArrow()
    return {name: numbers_in(found, name).astype(np.int64) for name in types}
