"""Two secrets of the heart disease table without any t: what dealing reaches for both, among random partitions, over k.

The settings are those of the dissertation on methods to achieve t-closeness, ch. 5, figure 5.1.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import altair as alt
import numpy as np

import closeknit as ck
import partitions
import tables
from closeknit.core.method import Method, silent
from closeknit.core.table import Partition, Table
from closeknit.doors.files import read
from pictures import FOLDER
from sections import Section
from trials import SEED

KS, DRAWS = range(5, 16), 100
A, B = "trestbps", "chol"
BOTH = (A, B)
PICTURE = FOLDER / "heart.png"
GROUPS = {
    "Group 1": partitions.sizes_k,
    "Group 2": partitions.sizes_free,
    "Group 2, number of classes first": partitions.count_first,
}
PRINTED, HALVING = "cells by frequency (as printed)", "halving"
DEALT: dict[str, Method] = {
    PRINTED: ck.StackAndDeal(order="frequency", dealing="literal", column=BOTH),
    "cells by value": ck.StackAndDeal(dealing="literal", column=BOTH),
    f"{A} alone by frequency": ck.StackAndDeal(order="frequency", dealing="literal", column=A),
    f"{B} alone by frequency": ck.StackAndDeal(order="frequency", dealing="literal", column=B),
    f"{A} alone by value": ck.StackAndDeal(dealing="literal", column=A),
    f"{B} alone by value": ck.StackAndDeal(dealing="literal", column=B),
    HALVING: ck.StackAndDeal(dealing="halving", column=BOTH),
}
ASKED: dict[str, Method] = {"Fragmentation": ck.Fragmentation(), "FcmDraw": ck.FcmDraw()}


@dataclass(frozen=True)
class Point:
    """One partition: what it reaches for both secrets."""

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
        classes = table.counted(partition)
        if int(classes.sizes.min()) < k:
            raise AssertionError(f"{who} has a class of fewer than {k} rows")
        a, b = (float(ck.TCloseness(name, 1).levels(classes).max()) for name in BOTH)
        return cls(who, k, a, b, len(table) / partition.count)


def run(section: Section, rows: int | None) -> None:
    """Points of all methods and groups, as tables and as a picture."""
    with tempfile.TemporaryDirectory() as folder:
        table, remark = _table(Path(folder), rows)
        ks, draws = (KS, DRAWS) if rows is None else (range(5, 7), 5)
        section.say(
            f"{remark} Secrets: {A} and {B}, ordered, over every whole number from the least to the largest, as the source has "
            "it (values are equally far apart). Reached t is that of the partition, worst class; a release whose written "
            f"cells agree by chance can only be nearer. Random: {draws} partitions for each k and group. Group 1: sizes k or "
            "k + 1; Group 2: sizes of at least k; both uniform over all such partitions. Number of classes first: also sizes "
            "of at least k, two classes or more, but few large ones are as likely as many small ones. Fragmentation and "
            "FcmDraw need thresholds: they were asked for what the cells by frequency reach."
        )
        dealt = [point for k in ks for point in _dealt(table, k)]
        drawn = [point for k in ks for point in _random(table, k, draws)]
        _report(section, ks, dealt, drawn, draws)
        _picture(dealt, drawn, PICTURE if rows is None else Path(folder, "heart.png"))
    section.say(
        "![Reached t of both secrets, one panel for each k](pictures/heart.png)" if rows is None else "No picture is kept."
    )


def _table(place: Path, rows: int | None) -> tuple[Table, str]:
    data = tables.data_folder()
    if rows is None and data is not None:
        path = data / "heart" / "heart.csv"
        remark = "The table is heart disease, 1,025 rows, of which 302 are different; twelve quasi columns as numbers."
        lows, highs = (94, 126), (200, 564)
    else:
        path, remark = _generated(place / "heart.csv", rows or 1_025)
        lows, highs = (90, 120), (150, 220)
    columns = read(path)
    # One bin a whole number, so that numbers nobody has keep their place in the order.
    kinds = {name: ck.numeric(low, high + 1, bins=high + 1 - low) for name, low, high in zip(BOTH, lows, highs, strict=True)}
    schema = ck.Schema(quasi={name: ck.numeric() for name in columns.columns if name not in BOTH}, sensitive=kinds)
    return schema.encode(columns), remark


def _generated(path: Path, rows: int) -> tuple[Path, str]:
    rng = np.random.default_rng(51)
    lean = rng.normal(size=rows)
    wide = {"age": (29, 49), "thalach": (71, 132), A: (90, 61), B: (120, 101)}
    lines = [",".join(wide)]
    shares = {name: np.clip((0.5 * lean + rng.normal(size=rows)) / 6 + 0.5, 0, 0.999) for name in wide}
    for i in range(rows):
        lines.append(",".join(str(low + int(leaves * shares[name][i])) for name, (low, leaves) in wide.items()))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path, f"The table is generated ({rows:,} rows), not the public one: compare with no other figure."


def _dealt(table: Table, k: int) -> list[Point]:
    points = []
    for who, method in DEALT.items():
        partition = method.run(table, [ck.KAnonymity(k)], SEED, silent).partition
        points.append(Point.of(who, k, table, partition))
    models = [ck.KAnonymity(k), *(ck.TCloseness(name, _rounded_up(t)) for name, t in ((A, points[0].a), (B, points[0].b)))]
    for who, method in ASKED.items():
        points.append(Point.of(who, k, table, method.run(table, models, SEED, silent).partition))
    return points


def _rounded_up(t: float) -> float:
    return min(math.ceil(t * 10_000) / 10_000, 1.0)


def _random(table: Table, k: int, draws: int) -> list[Point]:
    points = []
    for number, (group, draw) in enumerate(GROUPS.items()):
        rng = np.random.default_rng([51, k, number])
        points += [Point.of(group, k, table, Partition.of(draw(len(table), k, rng))) for _ in range(draws)]
    return points


def _report(section: Section, ks: Sequence[int], dealt: list[Point], drawn: list[Point], draws: int) -> None:
    heads = [f"k = {k}" for k in ks]
    by = {(point.who, point.k): point for point in dealt}
    names = list(dict.fromkeys(point.who for point in dealt))
    nearest = {(g, k): min(_of(drawn, g, k), key=lambda p: p.distance) for g in GROUPS for k in ks}
    lines = [[who, *(_pair(by[who, k]) for k in ks)] for who in names]
    lines += [[f"{group}, nearest of {draws}", *(_pair(nearest[group, k]) for k in ks)] for group in GROUPS]
    section.table([f"reached t of {A} and {B}", *heads], lines)
    lines = [[who, *(f"{by[who, k].size:.1f}" for k in ks)] for who in names]
    lines += [[f"{group}, nearest of {draws}", *(f"{nearest[group, k].size:.1f}" for k in ks)] for group in GROUPS]
    lines += [[f"{g}, all", *(f"{np.mean([p.size for p in _of(drawn, g, k)]):.1f}" for k in ks)] for g in GROUPS]
    section.table(["mean class size", *heads], lines)
    for who in (PRINTED, "cells by value", HALVING):
        lines = []
        for group in GROUPS:
            counts = [sum(p.distance < by[who, k].distance for p in _of(drawn, group, k)) for k in ks]
            lines.append([group, *counts])
        section.table([f"of {draws}, nearer than {who}", *heads], lines)
    section.say(_verdict(by, drawn, ks))


def _verdict(by: dict[tuple[str, int], Point], drawn: list[Point], ks: Sequence[int]) -> str:
    """The source's two findings beside ours."""
    best = {k: min((point for (_, at), point in by.items() if at == k), key=lambda p: p.distance).who for k in ks}
    beaten = [k for k in ks if min(p.distance for p in _of(drawn, "Group 1", k)) < by[PRINTED, k].distance]
    second = [k for k in ks if min(p.distance for p in _of(drawn, "Group 2", k)) < by[PRINTED, k].distance]
    few = [k for k in ks if min(p.distance for p in _of(drawn, list(GROUPS)[2], k)) < by[PRINTED, k].distance]
    halving = [k for k in ks if by[HALVING, k].distance < by[PRINTED, k].distance]
    same = [k for k in ks if abs(by[HALVING, k].size / by[PRINTED, k].size - 1) < 0.02]
    one_of = ", ".join(f"{who} at k = {_named([k for k in ks if best[k] == who])}" for who in dict.fromkeys(best.values()))
    return (
        "The source finds that dealing by cells is nearer than every partition of Group 1, and that some of Group 2 are nearer "
        f"still. Here the first fails at k = {_named(beaten)}; a uniformly drawn partition of Group 2 is nearer at k = "
        f"{_named(second)}, one whose number of classes was drawn first at {len(few)} of {len(ks)} k: few large classes are "
        "near, and a uniform draw hardly ever has these. Halving is nearer than the cells by frequency at "
        f"{len(halving)} of {len(ks)} k, but its classes are larger (n over a power of two); they are as large at k = "
        f"{_named(same)}. Nearest of all methods: {one_of}."
    )


def _named(ks: Sequence[int]) -> str:
    return ", ".join(map(str, ks)) or "none of these"


def _of(points: list[Point], who: str, k: int) -> list[Point]:
    return [point for point in points if (point.who, point.k) == (who, k)]


def _pair(point: Point) -> str:
    return f"{point.a:.3f} {point.b:.3f}"


def _picture(dealt: list[Point], drawn: list[Point], path: Path) -> None:
    """One panel for each k: random partitions as small marks, methods as large ones."""
    names = [*GROUPS, *dict.fromkeys(point.who for point in dealt)]
    colours = ["#aaaaaa", "#d2a679", "#8c8cc8", "#d62728", "#ff7f0e", "#2ca02c", "#17becf", "#006400", "#005f73", "#1f3fff",
               "#9467bd", "#e377c2"]  # fmt: skip
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
    path.parent.mkdir(exist_ok=True)
    chart.configure_legend(labelLimit=400, symbolSize=90, labelFontSize=13).configure_header(labelFontSize=14).save(
        str(path), ppi=72
    )


def _shapes(names: Sequence[str]) -> list[str]:
    """Random ones round, by frequency square, by value as diamonds, the others as triangles."""
    by_order = {"frequency": "square", "value": "diamond"}
    shapes = [next((shape for order, shape in by_order.items() if order in name), "triangle-up") for name in names]
    return ["circle" if name in GROUPS else shape for name, shape in zip(names, shapes, strict=True)]
