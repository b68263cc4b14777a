"""Two sensitive attributes of the heart disease table without any t: closeness of dealing and of random partitions, over k.

The dissertation on methods to achieve t-closeness, ch. 5, figure 5.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import altair as alt
import numpy as np

import closeknit as ck
import partitions
import pictures
from closeknit.core.method import Method, ignore_progress
from closeknit.core.table import Partition, Table
from experiments.dealing import at
from experiments.figures import Claim, Figure, Trial
from experiments.small_tables import A, B, heart
from trials import SEED

KS, DRAWS = range(5, 16), 100
BOTH = (A, B)
FIRST = "Group 2, number of classes first"
GROUPS = {"Group 1": partitions.sizes_k, "Group 2": partitions.sizes_free, FIRST: partitions.count_first}
PRINTED, BY_VALUE, HALVING = "cells by frequency (as printed)", "cells by value", "halving"
DEALT: dict[str, Method] = {
    PRINTED: ck.StackAndDeal(order="frequency", dealing="literal", column=BOTH),
    BY_VALUE: ck.StackAndDeal(dealing="literal", column=BOTH),
    f"{A} alone by frequency": ck.StackAndDeal(order="frequency", dealing="literal", column=A),
    f"{B} alone by frequency": ck.StackAndDeal(order="frequency", dealing="literal", column=B),
    f"{A} alone by value": ck.StackAndDeal(dealing="literal", column=A),
    f"{B} alone by value": ck.StackAndDeal(dealing="literal", column=B),
    HALVING: ck.StackAndDeal(dealing="halving", column=BOTH),
}
REQUESTED: dict[str, Method] = {"Fragmentation": ck.Fragmentation(), "FcmDraw": ck.FcmDraw()}


@dataclass(frozen=True)
class Point:
    """One partition: what it reaches for both sensitive attributes."""

    who: str
    k: int
    a: float
    b: float
    size: float

    @property
    def distance(self) -> float:
        """From the origin, as the source compares pairs."""
        return math.hypot(self.a, self.b)

    @classmethod
    def of(cls, who: str, k: int, table: Table, partition: Partition) -> Point:
        classes = table.count_classes(partition)
        if int(classes.sizes.min()) < k:
            raise AssertionError(f"{who} has a class of fewer than {k} rows")
        a, b = (float(ck.TCloseness(name, 1).levels(classes).max()) for name in BOTH)
        return cls(who, k, a, b, len(table) / partition.count)


def figure_5_1(trial: Trial) -> Figure:
    """Points of all methods and groups: one panel for each k."""
    table, remark, _ = heart(trial)
    ks, draws = trial.some(KS, (5, 9)), 10 if trial.quick else DRAWS
    dealt = [point for k in ks for point in _dealt(table, k)]
    drawn = [point for k in ks for point in _random(table, k, draws)]
    by = {(point.who, point.k): point for point in dealt}
    return Figure(
        "Figure 5.1: two sensitive attributes among random partitions, heart disease",
        f"{remark} Sensitive attributes: {A} and {B}, ordered, over every whole number from the least to the largest. Near "
        "means near to "
        f"the origin (0, 0), as the source compares pairs. {draws} random partitions for each k and group. Group 1: sizes k or "
        "k + 1; Group 2: sizes of at least k; both uniform over all such partitions. Number of classes first: also sizes of at "
        "least k, but few large classes are as likely as many small ones. Fragmentation and FcmDraw need thresholds: they were "
        "requested at the t that dealing of cells by frequency has.",
        _said(by, drawn, ks),
        drawn=lambda path: _picture(dealt, drawn, path),
        tables=[_table(ks, by, drawn, draws)],
        remark=_remark(by, ks),
    )


def _dealt(table: Table, k: int) -> list[Point]:
    points = []
    for who, method in DEALT.items():
        partition = method.run(table, [ck.KAnonymity(k)], SEED, ignore_progress).partition
        points.append(Point.of(who, k, table, partition))
    models = [ck.KAnonymity(k), *(ck.TCloseness(name, _rounded_up(t)) for name, t in ((A, points[0].a), (B, points[0].b)))]
    for who, method in REQUESTED.items():
        points.append(Point.of(who, k, table, method.run(table, models, SEED, ignore_progress).partition))
    return points


def _rounded_up(t: float) -> float:
    return min(math.ceil(t * 10_000) / 10_000, 1.0)


def _random(table: Table, k: int, draws: int) -> list[Point]:
    points = []
    for number, (group, draw) in enumerate(GROUPS.items()):
        rng = np.random.default_rng([51, k, number])
        points += [Point.of(group, k, table, Partition.of(draw(len(table), k, rng))) for _ in range(draws)]
    return points


def _said(by: dict[tuple[str, int], Point], drawn: list[Point], ks: Sequence[int]) -> list[Claim]:
    nearer = {
        (group, k): [p for p in _of(drawn, group, k) if p.distance < by[PRINTED, k].distance] for group in GROUPS for k in ks
    }
    beaten = {group: [k for k in ks if nearer[group, k]] for group in GROUPS}
    free = [k for k in ks if nearer["Group 2", k] or nearer[FIRST, k]]
    sizes = [p.size / k for k in free for group in ("Group 2", FIRST) for p in nearer[group, k]]
    return [
        Claim(
            "where sizes are k or k + 1, dealing by cells (by frequency) is nearest",
            1 - len(beaten["Group 1"]) / len(ks),
            f"a random partition of Group 1 is nearer at {at(beaten['Group 1'])}",
        ),
        Claim(
            "where sizes are free, some random partitions are nearer, and their classes are larger",
            len(free) / len(ks) if sizes and np.median(sizes) > 1.5 else 0,
            f"uniformly drawn ones at {at(beaten['Group 2'])}; with the number of classes drawn first at {len(beaten[FIRST])} "
            f"of {len(ks)} k"
            + (f"; the nearer ones have classes of {np.median(sizes):.1f} times k rows (median)" if sizes else ""),
        ),
    ]


def _remark(by: dict[tuple[str, int], Point], ks: Sequence[int]) -> str:
    value, halving = ([k for k in ks if by[who, k].distance < by[PRINTED, k].distance] for who in (BY_VALUE, HALVING))
    same = [k for k in ks if abs(by[HALVING, k].size / by[PRINTED, k].size - 1) < 0.02]
    return (
        f"Cells in the order of values are nearer than the printed order at {len(value)} of {len(ks)} k. Halving is nearer at "
        f"{len(halving)}, but its classes are larger (n over a power of two); they are as large at {at(same)}."
    )


def _table(
    ks: Sequence[int], by: dict[tuple[str, int], Point], drawn: list[Point], draws: int
) -> tuple[list[str], list[list[str]]]:
    lines = [[who, *(_pair(by[who, k]) for k in ks)] for who in dict.fromkeys(who for who, _ in by)]
    for group in GROUPS:
        nearest = [min(_of(drawn, group, k), key=lambda p: p.distance) for k in ks]
        lines.append([f"{group}, nearest of {draws}", *map(_pair, nearest)])
    return [f"measured t of {A} and {B}", *(f"k = {k}" for k in ks)], lines


def _of(points: list[Point], who: str, k: int) -> list[Point]:
    return [point for point in points if (point.who, point.k) == (who, k)]


def _pair(point: Point) -> str:
    return f"{point.a:.3f} {point.b:.3f}"


def _picture(dealt: list[Point], drawn: list[Point], path: Path) -> None:
    """One panel for each k: random partitions as small marks, methods as large ones."""
    names = [*GROUPS, *dict.fromkeys(point.who for point in dealt)]
    colours = [
        "#aaaaaa",
        "#d2a679",
        "#8c8cc8",
        "#d62728",
        "#ff7f0e",
        "#2ca02c",
        "#17becf",
        "#006400",
        "#005f73",
        "#1f3fff",
        "#9467bd",
        "#e377c2",
    ]
    most = max(max(point.a, point.b) for point in [*dealt, *drawn])
    scale = alt.Scale(domain=[0, math.ceil(most * 20) / 20])
    values = [{"who": p.who, "k": f"k = {p.k}", "a": p.a, "b": p.b} for p in [*drawn, *dealt]]
    is_group = alt.FieldOneOfPredicate(field="who", oneOf=list(GROUPS))
    marks = alt.Chart(alt.Data(values=values)).mark_point(filled=True)
    encoded = marks.encode(
        x=alt.X("a:Q", title=f"t of {A}", scale=scale),
        y=alt.Y("b:Q", title=f"t of {B}", scale=scale),
        color=alt.Color("who:N", title=None, sort=names, scale=alt.Scale(domain=names, range=colours)),
        shape=alt.Shape("who:N", title=None, sort=names, scale=alt.Scale(domain=names, range=_shapes(names))),
        size=alt.condition(is_group, alt.value(12), alt.value(110)),
        opacity=alt.condition(is_group, alt.value(0.7), alt.value(0.95)),
    )
    order = [f"k = {k}" for k in sorted({point.k for point in dealt})]
    chart = encoded.properties(width=250, height=250).facet(alt.Facet("k:N", title=None, sort=order), columns=4)
    chart = chart.configure_legend(labelLimit=400, symbolSize=90, labelFontSize=13).configure_header(labelFontSize=14)
    pictures.save(chart, path, scale=1)


def _shapes(names: Sequence[str]) -> list[str]:
    """Random ones round, by frequency square, by value as diamonds, the others as triangles."""
    by_order = {"frequency": "square", "value": "diamond"}
    shapes = [next((shape for order, shape in by_order.items() if order in name), "triangle-up") for name in names]
    return ["circle" if name in GROUPS else shape for name, shape in zip(names, shapes, strict=True)]
