"""Buckets that are diverse together: the table is cut in two, and each side again, as long as the whole release stays diverse.

Guarantees. `DiverseSlicing` with the weight "size" or "paper": for every row t of the table and every value s of the
sensitive attribute, p(t,s) <= 1/l over all buckets that t fits into (`core.disclosure`); and every bucket has `least` rows.

Source: the paper on slicing, sec. 4.3, algorithms 1.3 and 1.4.

Different from the source:
- the table as one bucket is tested first: the paper would publish four rows of one disease as one "2-diverse" bucket;
- all columns are tried, the widest first, before a bucket is closed; the cuts are those of Mondrian (`kernels.cuts.offers`);
- a share of exactly 1/l is allowed, and decided in rationals where a float is near;
- p(t,s) is kept per distinct profile, and a cut changes the profiles that fit into the bucket; the paper's check goes through
  all tuples and buckets for each cut;
- every bucket has at least `least` rows: with the printed weights the paper's own cuts end in buckets of one row.

With strict cuts and groups of columns that are written as they are, every row fits into its own bucket alone, and this is the
test of each bucket by itself. Cost then: O(n log n) times the number of columns. Divided ties let profiles fit into several
buckets; a cut costs the profiles that fit, each times the values of the sensitive attribute in the bucket.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.core.disclosure import exact_disclosure, most_alike
from closeknit.core.errors import BadInput, Unsatisfiable
from closeknit.core.geometry import scales
from closeknit.core.method import Progress, ignore_progress
from closeknit.core.row_sorting import groups
from closeknit.core.slices import Slices
from closeknit.core.table import Partition, Table
from closeknit.core.tree import Int32
from closeknit.kernels.geometry.boxes import Scales
from closeknit.kernels.slicing.diverse_cuts import (
    CROWDED,
    DONE,
    PAUSED,
    UNDECIDED,
    CutState,
    Place,
    Rows,
    Rule,
    Scratch,
    begin,
    holders,
    search,
)

MOST_MASSES = 1 << 26  # half a gigabyte of them
PAUSE = 1024  # buckets between two words of progress


class Requested(NamedTuple):
    """What every bucket and the whole release shall meet."""

    l: Fraction
    weight: str  # "size" or "paper"
    relaxed: bool  # whether ties may be divided
    least: int  # rows of a bucket


def diverse_partition(
    table: Table, whole: Slices, requested: Requested, progress: Progress = ignore_progress, pause: int = PAUSE
) -> Partition:
    """Buckets of a table whose release stays diverse; `whole` is the table as one bucket.

    >>> from closeknit.core.columns import Columns
    >>> from closeknit.core.kinds import flat, numeric
    >>> from closeknit.core.schema import Schema
    >>> schema = Schema(quasi={"age": numeric()}, sensitive={"disease": flat()})
    >>> table = schema.encode(Columns.of({"age": [30, 31, 50, 51], "disease": ["flu", "gout", "flu", "gout"]}))
    >>> secret, _ = table.secret("disease")
    >>> known = np.stack([table.quasi[:, 0], np.zeros(4, np.int32)], axis=1)  # {age}, {disease}
    >>> whole = Slices(np.zeros(4, np.int32), known, 1, secret)
    >>> diverse_partition(table, whole, Requested(Fraction(2), "size", False, 2)).class_of.tolist()
    [0, 0, 1, 1]
    """
    rows = _rows(table.quasi, whole)
    l, weight, relaxed, least = requested
    rule = Rule(float(1 / l), most_alike(len(table), l), weight == "size", max(least, 1), relaxed)
    for standing, tried in _cut_buckets(rows, rule, scales(table), whole.secret, requested, pause):
        progress("cutting", 0.2 + 0.6 * float(tried) / standing.used[0])
    return _partition(standing)


def _cut_buckets(
    rows: Rows, rule: Rule, geometry: Scales, secret: Int32, requested: Requested, pause: int
) -> Iterator[tuple[CutState, int]]:
    """The buckets after every `pause` of them that were tried, and how many were; in the end all."""
    standing, scratch = _one_bucket(rows), _scratch(rows)
    begin(rows, rule, standing, scratch)
    if standing.failing.any():
        _refuse(rows, standing, requested.l)
    status, at = PAUSED, Place(0, 0, 0)
    until = pause
    while status != DONE:
        status, at = search(geometry, rows, rule, standing, scratch, at, until)
        if status == CROWDED:
            standing = standing._replace(fits=np.concatenate([standing.fits, np.empty_like(standing.fits)]))
        elif status == UNDECIDED:
            q = int(standing.fits[standing.fit_first[at.bucket] + at.judged])
            kept = _allows_cut(rows, standing, scratch.left, secret, at.bucket, q, requested)
            at = Place(at.bucket, at.turn, at.judged + 1) if kept else Place(at.bucket, at.turn + 1, 0)
        else:
            until = at.bucket + pause
            yield standing, at.bucket


def _allows_cut(rows: Rows, standing: CutState, left: Int32, secret: Int32, bucket: int, q: int, requested: Requested) -> bool:
    """Whether a profile may know what it would after the cut of a bucket, in rationals: its own buckets as a release."""
    members = [standing.order[standing.first[b] : standing.last[b]] for b in holders(standing, q) if b != bucket]
    halves = standing.order[standing.first[bucket] : standing.last[bucket]]
    members += [halves[left[halves] == side] for side in (0, 1)]
    bucket_of = np.repeat(np.arange(len(members), dtype=np.int32), [len(part) for part in members])
    here = np.concatenate(members)
    slices = Slices(bucket_of, rows.known[here], rows.place, secret[here])
    return max(exact_disclosure(slices, rows.profiles[q], requested.weight).values()) <= 1 / requested.l


def _rows(quasi: Int32, whole: Slices, most: int = MOST_MASSES) -> Rows:
    """Codes without gaps, distinct profiles, and where the masses of each profile are."""
    known, place = whole.known, whole.place
    coded, base = np.empty_like(known, order="C"), 0
    for i, column in enumerate(known.T):
        names, codes = np.unique(column, return_inverse=True)
        coded[:, i] = base + codes
        base += len(names)
    profile, _ = groups([(column, base) for column in coded.T], len(coded))
    profiles = coded[np.unique(profile, return_index=True)[1]]
    pair, count = groups([(coded[:, place], base), (whole.secret, int(whole.secret.max()) + 1)], len(coded))
    part = coded[np.unique(pair, return_index=True)[1], place]
    mine = profiles[:, place]
    first, last = np.searchsorted(part, mine), np.searchsorted(part, mine, side="right")
    starts = np.concatenate([[0], np.cumsum(last - first)])
    if starts[-1] > most:
        what = f"{len(profiles):,} different rows and {count:,} values of the sensitive attribute are too many to weigh buckets"
        raise BadInput(what, right="request the test of each bucket by itself (local), or group the values of the attribute")
    return Rows(np.ascontiguousarray(quasi), coded, pair, part, profiles, starts[:-1] - first, starts, place)


def _one_bucket(rows: Rows) -> CutState:
    """Room for all buckets to come, and the table as the first of them."""
    n, m = len(rows.known), len(rows.profiles)

    def room() -> NDArray[np.int64]:
        return np.zeros(2 * n, dtype=np.int64)

    standing = CutState(
        np.arange(n, dtype=np.int32),
        np.argsort(rows.pair, kind="stable").astype(np.int32),
        room(),
        room(),
        np.zeros(2 * n, dtype=np.int32),
        room(),
        room(),
        np.resize(np.arange(m, dtype=np.int32), 4 * m + 64),
        np.array([1, m]),
        np.zeros(rows.starts[-1]),
        np.zeros(m),
        np.zeros(m),
        np.zeros(m),
        np.zeros(m, np.int64),
        np.zeros(m, np.int64),
    )
    standing.last[0], standing.fit_last[0], standing.alive[0] = n, m, 1
    return standing


def _scratch(rows: Rows) -> Scratch:
    n, codes, pairs = len(rows.known), int(rows.known.max()) + 1, len(rows.part)
    return Scratch(
        np.zeros((2, codes), np.int64),
        np.zeros((2, pairs), np.int64),
        np.zeros((3, codes), np.int64),
        np.zeros(n, np.int32),
        np.zeros(codes, np.int64),
        np.zeros(codes, np.int64),
        np.zeros(n, np.int32),
        np.zeros(len(rows.profiles), np.int32),
    )


def _refuse(rows: Rows, standing: CutState, l: Fraction) -> None:
    """The table as one bucket fails: every profile fits into it, and the one that knows most is named by its level."""
    peaks = np.maximum.reduceat(standing.mass, rows.starts[:-1])
    measured = 1 / float((peaks / standing.total).max())
    hint = "request less, or generalize the columns next to the sensitive attribute"
    raise Unsatisfiable(f"{l}-diverse slicing", f"the whole table as one bucket reaches {measured:.6g}", hint)


def _partition(standing: CutState) -> Partition:
    """Buckets numbered as they are, from the first row on."""
    alive = np.flatnonzero(standing.alive)
    alive = alive[np.argsort(standing.first[alive])]
    class_of = np.empty(len(standing.order), dtype=np.int32)
    sizes = standing.last[alive] - standing.first[alive]
    class_of[standing.order] = np.repeat(np.arange(len(alive), dtype=np.int32), sizes)
    return Partition(class_of, len(alive))
