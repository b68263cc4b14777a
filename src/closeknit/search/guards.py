"""From guarantees to a guard: what a loop over rows can ask in whole numbers, built from the models' `limits` alone.

A limit on a distance becomes a tree with whole weights; caps, floors and growth become limits of every value. A guarantee
without limits, or one that counts persons with several rows, is `unguarded`: its model judges it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor, log

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes, Histogram
from closeknit.core.model import Model, least_rows
from closeknit.core.share_limits import ROUNDED, Distance, Limits
from closeknit.core.table import Table
from closeknit.kernels.exchange.knit_guard import CAPS, CLOSENESS, ENOUGH, ENTROPY, VALUES, Guard
from closeknit.plans.ground import Branches, Line, ground_of

LONGEST = 512  # nodes of a view; a longer line is cut into runs of values, other attributes with more values are unguarded
ROOM = 1 << 62
LOOSE = 1e-8  # more than limits are rounded by

Int64 = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class View:
    """One limit on one sensitive attribute: a tree, the node of each value, and the limits of the nodes."""

    kind: int
    node_of: Int64  # of each leaf code; -1: no row has it
    parent: Int64
    leaf: Int64
    rows: Int64
    weight: Int64
    most: Int64  # [n + 1]
    cap: list[Fraction]
    low: list[Fraction]
    values: int = 0
    entropy: float = 0.0


@dataclass(frozen=True, eq=False)
class GuardResult:
    """A guard, and the guarantees that it does not cover."""

    guard: Guard
    unguarded: list[Model]


def guard_of(table: Table, models: Sequence[Model]) -> GuardResult:
    """The guard of a table under these guarantees.

    >>> import closeknit as ck
    >>> table = ck.datasets.hospital_schema().encode(ck.datasets.hospital(20))
    >>> made = guard_of(table, [ck.KAnonymity(4), ck.TCloseness("disease", 0.2), ck.LDiversity("disease", 2)])
    >>> made.guard.k, made.guard.kind.tolist(), made.unguarded
    (4, [0, 2], [])
    """
    views, columns, unguarded = [], [], []
    several = table.persons is not None and len(np.unique(table.persons)) < len(table)
    whole = table.one_class()
    for model in models:
        found = None
        if not (several and "persons" in model.needs):
            found = [] if model.bounds == "size" else _views(model, whole, len(table))
        codes = table.secret(model.column)[0] if found and model.column is not None else np.empty(0, np.int32)
        if found is None or any((codes < 0).any() or (view.node_of[codes] < 0).any() for view in found):
            unguarded.append(model)
        else:
            views += found
            columns += [codes] * len(found)
    return GuardResult(_guard(max(least_rows(models), 1), len(table), views, columns), unguarded)


def guard_values(model: Model, reference: Histogram, rows: int) -> tuple[Guard, Guard] | None:
    """Two guards of one guarantee about classes of at most so many rows; their rows are the codes of the values.

    The model allows what the first one allows, and refuses what the second one refuses. None where limits do not say all of it.

    Args:
        model: the guarantee.
        reference: the distribution to compare with; a code without rows in it must not be asked about.
        rows: the most rows of a class.

    >>> import closeknit as ck
    >>> table = ck.datasets.hospital_schema().encode(ck.datasets.hospital(20))
    >>> strict, loose = guard_values(ck.DeltaDisclosure("disease", 2), table.one_class().histograms["disease"], 100)
    >>> bool((strict.cap_num / strict.cap_den < loose.cap_num / loose.cap_den).any())
    True
    """
    one = np.ones(1, dtype=np.int64)
    views = _views(model, Classes(one, one, {model.column: reference}), rows) if model.column is not None else None
    if views is None or len(reference.reference) > LONGEST:  # a line that is cut into runs would refuse too much
        return None
    strict = _guard(1, rows, views, [np.arange(len(reference.reference), dtype=np.int32)] * len(views))
    cap, low = strict.cap_num / strict.cap_den, strict.low_num / strict.low_den
    return strict, strict._replace(
        cap_num=np.ceil((np.minimum(cap, 2.0) + LOOSE) * ROUNDED).astype(np.int64),
        cap_den=np.full(len(cap), ROUNDED),
        low_num=np.floor((low - LOOSE) * ROUNDED).astype(np.int64),
        low_den=np.full(len(low), ROUNDED),
        entropy=strict.entropy - LOOSE,
    )


def _views(model: Model, whole: Classes, n: int) -> list[View] | None:
    """A view for each part of a guarantee's limits; None where they do not say all of it, or a part is too long."""
    if model.column is None:
        return None
    secret = whole.histograms[model.column]
    limits = model.limits(secret)
    if limits is None or not limits.sufficient:
        return None
    views = [] if limits.distance is None else [_closeness(limits.distance, secret, n)]
    if limits.caps or limits.floors or limits.growth:
        views.append(_flat(secret, CAPS, limits))
    if limits.values:
        views.append(_flat(secret, VALUES, limits, values=limits.values))
    if limits.entropy is not None:
        views.append(_flat(secret, ENTROPY, limits, entropy=log(float(limits.entropy)) + ENOUGH))
    return [view for view in views if view is not None] if None not in views else None


def _flat(secret: Histogram, kind: int, limits: Limits, values: int = 0, entropy: float = 0.0) -> View | None:
    """Values right under one top, with limits on the share of each."""
    codes = np.flatnonzero(secret.reference)
    rows = secret.reference[codes].astype(np.int64)
    n = int(rows.sum())
    if n == 0 or len(codes) > LONGEST:
        return None
    node_of = np.full(len(secret.reference), -1, dtype=np.int64)
    node_of[codes] = np.arange(1, len(codes) + 1)
    nothing = np.zeros(len(codes) + 1, dtype=np.int64)
    leaf = np.append(0, np.ones(len(codes), dtype=np.int64))
    if not limits.missing_counts and node_of[-1] >= 0:
        leaf[node_of[-1]] = 0  # counted among the rows, not among the values
    caps = [limits.caps.get(code, Fraction(1)) for code in codes.tolist()]
    if limits.growth is not None:
        caps = [min(cap, limits.growth.cap(Fraction(int(r), n))) for cap, r in zip(caps, rows, strict=True)]
    floors = [limits.floors.get(code, Fraction(0)) for code in codes.tolist()]
    return View(
        kind,
        node_of,
        nothing,
        leaf,
        np.append(n, rows),
        nothing,
        np.zeros(1, np.int64),
        [Fraction(1), *caps],
        [Fraction(0), *floors],
        values,
        entropy,
    )


def _closeness(limit: Distance, secret: Histogram, n: int) -> View | None:
    """The tree of a ground distance; whole weights over `scale`."""
    ground = ground_of(secret.reference, secret.domain, limit.ground)
    leaves, t = len(secret.reference), limit.most
    if isinstance(ground, Line):
        parent, weight, rows, node_of, scale, off = _line(ground, leaves)
        t -= Fraction(off, scale)
    else:
        parent, weight, rows, node_of, scale = _branches(ground, leaves)
    if t < 0 or len(parent) == 0 or len(parent) > LONGEST or 2 * int(rows[0]) * n * scale * 4 >= ROOM:
        return None
    factor = t * int(rows[0]) * scale
    if factor.numerator * n < ROOM:
        most = factor.numerator * np.arange(n + 1, dtype=np.int64) // factor.denominator
    else:
        most = np.array([floor(factor * s) for s in range(n + 1)], dtype=np.int64)
    none = [Fraction(0)] * len(parent)
    leaf = np.zeros(len(parent), dtype=np.int64)
    leaf[node_of[node_of >= 0]] = 1
    return View(CLOSENESS, node_of, parent, leaf, rows, weight, most, [Fraction(1)] * len(parent), none)


def _line(line: Line, leaves: int) -> tuple[Int64, Int64, Int64, Int64, int, int]:
    """The largest value at the top, each right under the next larger one, so under a value are all up to it.

    A long line is cut into runs of values. Inside a run the rows up to a value differ from those up to its end by at most its
    share in the class or in the reference. All of these together are 2, so the distance is off by at most twice the longest
    run, its end not counted: the last number.
    """
    m = len(line.codes)
    runs = min(m, LONGEST)
    run = np.arange(m) * runs // max(m, 1)
    last = np.append(np.flatnonzero(np.diff(run)), m - 1)
    node_of = np.full(leaves, -1, dtype=np.int64)
    node_of[line.codes] = runs - 1 - run
    steps = np.diff(line.ranks, append=line.ranks[-1:]).astype(np.int64)
    weight = np.bincount(run, weights=steps, minlength=runs).astype(np.int64)
    off = 2 * int((weight - steps[last]).max(initial=0))
    rows = np.cumsum(line.counts)[last].astype(np.int64)
    return np.maximum(np.arange(runs) - 1, 0), weight[::-1].copy(), rows[::-1].copy(), node_of, line.scale, off


def _branches(branches: Branches, leaves: int) -> tuple[Int64, Int64, Int64, Int64, int]:
    """A node weighs half the difference of heights, so all are counted twice; nodes without rows are left out."""
    tree, kept = branches.tree, np.flatnonzero(branches.rows > 0)
    number_of = np.cumsum(branches.rows > 0) - 1
    height = tree.height.astype(np.int64)
    node_of = np.full(leaves, -1, dtype=np.int64)
    node_of[branches.codes] = number_of[tree.leaf_node[branches.codes]]
    weight = (height[tree.parent] - height)[kept]
    return (
        number_of[tree.parent[kept]].astype(np.int64),
        weight,
        branches.rows[kept].astype(np.int64),
        node_of,
        2 * max(int(height[0]), 1),
    )


def _guard(k: int, n: int, views: list[View], columns: list[NDArray[np.int32]]) -> Guard:
    """The views side by side."""
    start = np.concatenate([[0], np.cumsum([len(view.parent) for view in views])]).astype(np.int64)
    most = np.zeros((len(views), n + 1), dtype=np.int64)
    for v, view in enumerate(views):
        most[v] = view.most

    def flat(arrays: Sequence[Int64], begins: Sequence[int] | None = None) -> Int64:
        moved = [array + begin for array, begin in zip(arrays, begins or [0] * len(arrays), strict=True)]
        return np.concatenate([np.empty(0, np.int64), *moved]).astype(np.int64)

    begins = start[:-1].tolist()
    places = [view.node_of[codes] + begin for view, codes, begin in zip(views, columns, begins, strict=True)]
    return Guard(
        k,
        (np.stack(places, axis=1) if places else np.empty((n, 0))).astype(np.int32),
        start,
        np.array([view.kind for view in views], dtype=np.int64),
        flat([view.parent for view in views], begins),
        flat([view.leaf for view in views]),
        flat([view.weight for view in views]),
        flat([view.rows for view in views]),
        most,
        *_rational([cap for view in views for cap in view.cap], n, -1),
        *_rational([low for view in views for low in view.low], n, 1),
        np.array([view.values for view in views], dtype=np.int64),
        np.array([view.entropy for view in views], dtype=np.float64),
    )


def _rational(limits: list[Fraction], n: int, side: int) -> tuple[Int64, Int64]:
    """Numerators and denominators whose products with n rows fit 64 bits; longer ones are rounded to their safe side.

    A cap that is still too long is far above 1. It cannot bind, so it is no cap.
    """
    short = [limit if _fits(limit, n) else _round_limit(limit, side) for limit in limits]
    short = [limit if limit <= 1 or _fits(limit, n) else Fraction(1) for limit in short]
    return np.array([x.numerator for x in short], dtype=np.int64), np.array([x.denominator for x in short], dtype=np.int64)


def _fits(limit: Fraction, n: int) -> bool:
    return n * max(limit.numerator, limit.denominator) < ROOM


def _round_limit(limit: Fraction, side: int) -> Fraction:
    scaled = floor(limit * ROUNDED) if side < 0 else -floor(-limit * ROUNDED)
    return Fraction(scaled, ROUNDED)


def tighten_guard(guard: Guard, share: float) -> Guard:
    """The guard with only this share of the room that its limits leave around the reference.

    >>> import closeknit as ck
    >>> table = ck.datasets.hospital_schema().encode(ck.datasets.hospital(20))
    >>> guard = guard_of(table, [ck.TCloseness("disease", 0.2)]).guard
    >>> bool(tighten_guard(guard, 0.5).most[0, 20] <= guard.most[0, 20] // 2)
    True
    """
    top = np.repeat(guard.start[:-1], np.diff(guard.start))
    fair = guard.rows / np.maximum(guard.rows[top], 1)
    cap, low = guard.cap_num / guard.cap_den, guard.low_num / guard.low_den
    caps = np.where(cap > fair, np.floor((fair + share * (cap - fair)) * ROUNDED), guard.cap_num).astype(np.int64)
    lows = np.where(low > 0, np.ceil((fair + share * (low - fair)) * ROUNDED), guard.low_num).astype(np.int64)
    return guard._replace(
        most=np.floor(guard.most * share).astype(np.int64),
        cap_num=caps,
        cap_den=np.where(cap > fair, ROUNDED, guard.cap_den),
        low_num=lows,
        low_den=np.where(low > 0, ROUNDED, guard.low_den),
    )
