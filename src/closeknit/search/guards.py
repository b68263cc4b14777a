"""From guarantees to a guard: what a loop over rows can ask in whole numbers, and which guarantees it has to leave to the
models.

Closeness becomes a tree with whole weights, likeness and frequency a cap of every node or value, disclosure a cap and a
floor. What no guard speaks of (a guarantee counted in persons, one of whole releases, one not known here) is `unguarded`: the
models judge it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor, log
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Histogram
from closeknit.core.model import Closeness, Model, least_rows
from closeknit.core.params import number
from closeknit.core.table import Table
from closeknit.kernels.exchange.knit_guard import CAPS, CLOSENESS, ENOUGH, ENTROPY, VALUES, Guard
from closeknit.plans.ground import Branches, Line, flat_tree, ground_of
from closeknit.plans.metric_tree import ground_distance

LONGEST = 512  # nodes of a view; a longer line is seen through runs of values, other secrets of more values by the models
ROUNDED = 1 << 30  # denominator of a cap that is no rational, or too long a one
ROOM = 1 << 62

Int64 = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class View:
    """One guarantee about one secret: a tree, who stands where in it, and its limits."""

    kind: int
    node_of: Int64  # of each leaf code; -1: nobody has it
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
    """A guard, and the guarantees that it does not speak of."""

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
        if several and "persons" in model.needs:
            unguarded.append(model)
        elif model.column is None:
            unguarded += [] if model.family == "size" else [model]
        else:
            view = _view(table, model, whole.histograms[model.column])
            codes = table.secret(model.column)[0]
            if view is None or (codes < 0).any() or (view.node_of[codes] < 0).any():
                unguarded.append(model)
            else:
                views.append(view)
                columns.append(codes)
    return GuardResult(_guard(max(least_rows(models), 1), len(table), views, columns), unguarded)


def _view(table: Table, model: Model, secret: Histogram) -> View | None:
    """A guarantee as a view, where it is one."""
    untyped = cast(Any, model)
    kind = getattr(model, "kind", None)
    if model.family == "closeness":
        return _closeness(table, cast(Closeness, model), secret)
    if model.family == "likeness" and kind in ("basic", "enhanced"):
        return _flat(secret, CAPS, cap=_likeness(number("beta", untyped.beta), kind == "enhanced"))
    if model.family == "disclosure" and hasattr(model, "delta"):
        delta = float(number("delta", untyped.delta))
        return _flat(
            secret, CAPS, cap=lambda p: _safe(np.exp(delta) * float(p), -1), low=lambda p: _safe(np.exp(-delta) * float(p), 1)
        )
    return _diversity(model, kind, secret) if model.family == "diversity" else None


def _diversity(model: Model, kind: str | None, secret: Histogram) -> View | None:
    """Diversity is over known values: where some are missing, shares of them are left to the model."""
    untyped = cast(Any, model)
    gaps = secret.reference[-1] > 0 and not getattr(model, "missing_is_a_value", False)
    if kind == "distinct":
        view = _flat(secret, VALUES, values=int(untyped.l))
        if view is not None and gaps:
            view.leaf[view.node_of[-1]] = 0  # counted among the rows, not among the values
        return view
    if gaps:
        return None
    if kind == "frequency":
        share = 1 / number("l", untyped.l)
        return _flat(secret, CAPS, cap=lambda p: share)
    return _flat(secret, ENTROPY, entropy=log(float(number("l", untyped.l))) + ENOUGH) if kind == "entropy" else None


def _safe(limit: float, side: int) -> Fraction:
    """A limit moved to its safe side by more than a float can be off."""
    return Fraction(limit * (1 + side * 1e-12)) + Fraction(side, ROUNDED)


def _likeness(beta: Fraction, enhanced: bool) -> Any:
    def cap(p: Fraction) -> Fraction:
        most = p * (1 + beta)
        return min(most, _safe(float(p) * (1 - log(p)), -1)) if enhanced and 0 < p < 1 else most

    return cap


def _flat(secret: Histogram, kind: int, cap: Any = None, low: Any = None, values: int = 0, entropy: float = 0.0) -> View | None:
    """Values right under one top, with limits on the share of each."""
    branches = Branches.of(secret.reference, flat_tree(secret.domain.size))
    n = int(branches.rows[0])
    if n == 0 or len(branches.codes) > LONGEST:
        return None
    kept = np.flatnonzero(branches.rows > 0)
    node_of = np.full(len(secret.reference), -1, dtype=np.int64)
    node_of[branches.codes] = np.arange(1, len(kept))
    rows = branches.rows[kept].astype(np.int64)
    shares = [Fraction(int(r), n) for r in rows[1:]]
    nothing = np.zeros(len(kept), dtype=np.int64)
    return View(
        kind,
        node_of,
        nothing,
        (np.arange(len(kept)) > 0).astype(np.int64),
        rows,
        nothing,
        np.zeros(1, np.int64),
        [Fraction(1), *([cap(p) for p in shares] if cap else [Fraction(1)] * len(shares))],
        [Fraction(0), *([low(p) for p in shares] if low else [Fraction(0)] * len(shares))],
        values,
        entropy,
    )


def _closeness(table: Table, model: Closeness, secret: Histogram) -> View | None:
    """The tree of a ground distance; whole weights over `scale`."""
    ground = ground_of(secret.reference, secret.domain, ground_distance(table, model))
    leaves, t = len(secret.reference), number("t", model.t)
    if isinstance(ground, Line):
        parent, weight, rows, node_of, scale, off = _line(ground, leaves)
        t -= Fraction(off, scale)
    else:
        parent, weight, rows, node_of, scale = _branches(ground, leaves)
    if t < 0 or len(parent) == 0 or len(parent) > LONGEST or 2 * int(rows[0]) * len(table) * scale * 4 >= ROOM:
        return None
    factor = t * int(rows[0]) * scale
    if factor.numerator * len(table) < ROOM:
        most = factor.numerator * np.arange(len(table) + 1, dtype=np.int64) // factor.denominator
    else:
        most = np.array([floor(factor * s) for s in range(len(table) + 1)], dtype=np.int64)
    none = [Fraction(0)] * len(parent)
    leaf = np.zeros(len(parent), dtype=np.int64)
    leaf[node_of[node_of >= 0]] = 1
    return View(CLOSENESS, node_of, parent, leaf, rows, weight, most, [Fraction(1)] * len(parent), none)


def _line(line: Line, leaves: int) -> tuple[Int64, Int64, Int64, Int64, int, int]:
    """The largest value at the top, each right under the next larger one: under it stand all up to it.

    A long line is seen through runs of values. Inside a run the rows up to a value differ from those up to its end by at most
    its share in the class or in the reference. All of these together are 2, so the distance is off by at most twice the longest
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
    """A node weighs half the difference of heights, so all are counted twice; nodes that nobody stands under are left out."""
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
    """Numerators and denominators that stay small beside n rows; longer ones are rounded to their safe side."""
    short = [limit if n * max(limit.numerator, limit.denominator) < ROOM else _round_limit(limit, side) for limit in limits]
    return np.array([x.numerator for x in short], dtype=np.int64), np.array([x.denominator for x in short], dtype=np.int64)


def _round_limit(limit: Fraction, side: int) -> Fraction:
    scaled = floor(limit * ROUNDED) if side < 0 else -floor(-limit * ROUNDED)
    return Fraction(scaled, ROUNDED)


def tighten_guard(guard: Guard, share: float) -> Guard:
    """The guard with only this share of the room that its limits leave beside the reference.

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
