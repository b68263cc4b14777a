"""`Frontier`: the cost of more or less privacy on one table: one point per method and per value of one parameter.

Private: it is measured on the original table and contains the seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, ClassVar

from closeknit.core.certificate import Count, Document
from closeknit.core.comparison import Measure, ReleaseNumbers, method_text
from closeknit.core.grids import Summary, print_grid, render_number

Amount = int | float | str  # a number, or a fraction as it was written


class Point(ReleaseNumbers):
    """One method at one value: the measured levels and their cost, or the reason why there is no release."""

    method: dict[str, dict[str, Any]]  # as a recipe writes it
    parameter: str  # what is varied: "t of disease"
    requested: Amount
    ok: bool
    measured: tuple[float | None, ...] = ()  # per measure; None where it is attested, or has no bound
    level: float | None = None  # of the first measure; if it is attested, the requested level, which is met
    seconds: float
    front: bool = False  # no other point is at least as safe and loses less, or safer and loses no more
    target: float | None = None  # of a matched point: the level of the first method
    met: bool | None = None  # whether the target is met within the tolerance
    runs: Count = 1  # settings tried to find this one
    vacuous: bool = False  # a guarantee excludes nothing here; `anonymize` refuses it unless allow_vacuous is set
    reason: str | None = None

    @property
    def name(self) -> str:
        """The method with the parameters that are not its defaults."""
        return method_text(self.method)

    @property
    def amount(self) -> float:
        """The requested value as a number."""
        return float(Fraction(str(self.requested)))


class Frontier(Document):
    """One row per method and value; `*` marks those that no other row beats.

    Args:
        rows: rows of the table.
        seed: seed of the runs.
        guarantees: the requested guarantees in words.
        measures: what is measured, the varied guarantee first.
        matched: "loss" or the name of a measure if methods are matched, else None.
        points: the results.

    >>> point = Point(method={"sabre": {}}, parameter="t of wage", requested=0.1, ok=False, seconds=0.25, reason="too strict")
    >>> t = Measure(name="t of wage", parameter="t", text="t-closeness of wage, ordered distance", higher_is_safer=False)
    >>> print(Frontier(closeknit="0.1.0", rows=9, seed=7, guarantees=("t-closeness of wage",), measures=(t,), points=(point,)))
    varied: t of wage; * marks what no other row beats
    <BLANKLINE>
    method  t of wage  measured  loss  classes  seconds
    sabre   0.1        -         -     -        0.25
    <BLANKLINE>
    sabre at 0.1 has no release: too strict
    """

    what: ClassVar[str] = "the frontier"
    where: ClassVar[str] = "use a frontier.json as 'closeknit frontier' writes it"

    rows: Count
    seed: int
    guarantees: tuple[str, ...]
    measures: tuple[Measure, ...]
    matched: str | None = None
    points: tuple[Point, ...]

    @property
    def ok(self) -> bool:
        """Whether at least one point has a release."""
        return any(point.ok for point in self.points)

    @property
    def front(self) -> list[Point]:
        """The points that no other beats, the safest first."""
        sign = -1 if self.measures[0].higher_is_safer else 1
        return sorted((point for point in self.points if point.front), key=lambda point: sign * (point.level or 0.0))

    def records(self) -> list[dict[str, Any]]:
        """One flat record per point, with the same names in each: the lines of a CSV file."""
        return [self._flat(point) for point in self.points]

    def _flat(self, point: Point) -> dict[str, Any]:
        levels = point.measured or (None,) * len(self.measures)
        return {
            "method": point.name,
            "varied": point.parameter,
            "requested": point.amount,
            "ok": point.ok,
            **point.losses(),
            **{f"measured: {measure.name}": level for measure, level in zip(self.measures, levels, strict=True)},
            "level": point.level,
            "front": point.front,
            **point.sizes(),
            "target": point.target,
            "met": point.met,
            "runs": point.runs,
            "seconds": point.seconds,
            "vacuous": point.vacuous,
            "reason": point.reason,
        }

    def grid(self) -> list[list[str]]:
        """The printed table, shorter than `records`: a heading and one row per point."""
        varied, *others = self.measures
        one = {point.parameter for point in self.points} == {varied.name}
        target = ["target"] if self.matched else []
        heading = ["method", varied.name if one else "requested", *(["measured"] if one else [varied.name])]
        heading += [*(measure.name for measure in others), "loss", "classes", *target, "seconds"]
        return [heading, *(self._cells(point, one) for point in self.points)]

    def _cells(self, point: Point, one: bool) -> list[str]:
        size, loss, mark = point.classes, point.loss, " *" if point.front else ""
        return [
            point.name,
            _number(point.requested) if one else f"{point.parameter} = {_number(point.requested)}",
            *map(render_number, point.measured or (None,) * len(self.measures)),
            render_number(loss.a if loss else None, ".4f") + mark,
            render_number(size.count if size else None, ","),
            *([render_number(point.target)] if self.matched else []),
            f"{point.seconds:,.2f}",
        ]

    def legend(self) -> list[str]:
        """What is varied, and what is matched."""
        lines = [f"varied: {self.points[0].parameter}; * marks what no other row beats"]
        if self.matched:
            lines.append(
                f"matched: each method after the first is set so that its {self.matched} is the first one's, or better"
            )
        return lines

    def remarks(self) -> list[str]:
        """Why a point has no release or misses its target, one sentence each."""
        remarks = []
        for point in self.points:
            at = f"{point.name} at {_number(point.requested)}"
            if point.reason is not None:
                remarks.append(f"{at} has no release: {point.reason}")
            elif point.vacuous:
                remarks.append(f"{at} is vacuous: every value with enough rows for a class may stand alone in one")
            elif point.met is False:
                target = render_number(point.target)
                remarks.append(f"{at} is the nearest to the target {target} that {point.runs} settings found")
        return remarks

    def summary(self) -> Summary:
        """One row per method and value."""
        title = f"Frontier of {len(self.points)} releases of {self.rows:,} rows"
        return Summary(title, self.grid(), [*self.legend(), *self.remarks()])

    def __str__(self) -> str:
        return print_grid(self.legend(), self.grid(), self.remarks())


def front_of(levels: Sequence[float | None], losses: Sequence[float | None], higher_is_safer: bool) -> list[bool]:
    """Which points no other beats: none is at least as safe and loses at most as much, and better in one of the two.

    >>> front_of([0.1, 0.2, 0.2, 0.3, None], [0.5, 0.4, 0.45, 0.4, 0.1], higher_is_safer=False)
    [True, True, False, False, False]
    """
    sign = -1.0 if higher_is_safer else 1.0
    known = [i for i, (level, loss) in enumerate(zip(levels, losses, strict=True)) if level is not None and loss is not None]
    keys = {i: (sign * (levels[i] or 0.0), losses[i] or 0.0) for i in known}
    front, least, best = [False] * len(levels), float("inf"), (0.0, 0.0)
    for i in sorted(known, key=keys.__getitem__):  # the safest first, of equally safe ones the least loss
        if keys[i][1] < least or keys[i] == best:
            front[i], least, best = True, keys[i][1], keys[i]
    return front


def mark_front(points: Iterable[Point], higher_is_safer: bool) -> tuple[Point, ...]:
    """The points with their marks."""
    listed = list(points)
    levels = [None if point.vacuous else point.level for point in listed]
    front = front_of(levels, [point.loss.a if point.loss else None for point in listed], higher_is_safer)
    return tuple(point.model_copy(update={"front": on}) for point, on in zip(listed, front, strict=True))


def _number(requested: Amount) -> str:
    return requested if isinstance(requested, str) else f"{requested:.6g}"
