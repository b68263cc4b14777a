"""`Measurement`: everything a certificate states about written rows, as a value that can be added.

A table on one machine is one part. Spark measures partitions and adds them. A stream adds what it publishes over time. Parts
are measured against the same reference distributions, and every equivalence class is in one part; then the measurement of the
whole is the sum of its parts. `certify` is the only place that builds a `Certificate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import starmap
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field

from closeknit import __version__
from closeknit.core.certificate import Certificate, ClassSizes, Count, Guarantee, Joint, ValueEstimates, WorstClass, model_form
from closeknit.core.combined_secrets import least_distance, parts
from closeknit.core.loss import LossSums, sum_losses, weigh_losses
from closeknit.core.model import Model, Verdict, least_rows
from closeknit.core.reading import Reading
from closeknit.core.record import Record
from closeknit.core.schema import Schema
from closeknit.core.subsets import list_subsets
from closeknit.core.vacuity import find_stand_alone


@dataclass(frozen=True)
class PrivateContext:
    """What only the data owner knows about a release."""

    counts_persons: bool  # k and diversity were counted in persons
    # of a sensitive attribute, as `ReleaseModel.judge_release` takes
    originals: Callable[[str], NDArray[np.int32]] | None = None


class Judged(Record):
    """One guarantee with its worst class, and what decides which of two classes is worse."""

    model_config = ConfigDict(ser_json_inf_nan="constants")

    guarantee: Guarantee
    higher_is_safer: bool
    level: float | None = None  # private where the guarantee is attested
    view: int = 0  # 0 as written, 1 with look-alike values as one
    place: tuple[int, ...] = ()  # codes of the class's cells: of equal classes the first counts
    parts: tuple[int, int] | None = None  # numerator and denominator of a level that adds up
    limit: str = ""  # of such a level
    own: float = 0.0  # level of the worst class by itself, next to a level that adds up

    @property
    def rank(self) -> tuple[bool, float, int, tuple[int, ...]]:
        """The lowest is the worst; without a limit is the best of sizes and the worst of gains."""
        level = np.inf if self.level is None else self.level
        return self.guarantee.met, (level if self.higher_is_safer else -level), self.view, self.place


class JudgedJoint(Record):
    """The joint distance with its worst class."""

    joint: Joint
    place: tuple[int, ...]

    @property
    def rank(self) -> tuple[float, int, tuple[int, ...]]:
        """The lowest is the worst: of equal distances the largest class, then the first."""
        return -self.joint.measured, -self.joint.counted, self.place


class Measurement(Record):
    """Rows, class sizes, loss sums, the worst class of each guarantee and the joint distance; `+` adds two parts.

    >>> two, three = (Measurement(rows=n, count=1, smallest=n, largest=n, squares=n * n, k=2) for n in (2, 3))
    >>> (two + three).classes
    ClassSizes(count=2, smallest=2, mean=2.5, largest=3, discernibility=13, average_ratio=1.25)
    """

    rows: Count = 0
    suppressed: Count = 0
    count: Count = 0  # equivalence classes
    smallest: Count = 0
    largest: Count = 0
    squares: Count = 0  # sum of the squared class sizes
    k: Count = 0  # rows that the guarantees require of a class
    losses: LossSums = Field(default_factory=dict)
    judged: tuple[Judged, ...] = ()
    worst_joint: JudgedJoint | None = None
    estimates: dict[str, ValueEstimates] = Field(default_factory=dict)  # from reference distributions, which all parts share

    @classmethod
    def of(
        cls,
        reading: Reading,
        models: Sequence[Model],
        *,
        suppressed: int = 0,
        private: PrivateContext | None = None,
        joint: Model | None = None,
        losses: LossSums | None = None,
    ) -> Measurement:
        """Measure every guarantee on what was read back from written cells.

        Args:
            reading: the written cells and their classes.
            models: the guarantees.
            suppressed: rows that were not published.
            private: what only the data owner knows; a guarantee that needs it is attested.
            joint: the model that measures all sensitive attributes as one, where there are several.
            losses: loss sums, where the cells were counted elsewhere.
        """
        sizes = reading.classes.sizes
        return cls(
            rows=int(sizes.sum()),
            suppressed=suppressed,
            **_measure_sizes(sizes),
            k=least_rows(models),
            losses=sum_losses(reading.columns, reading.schema) if losses is None else losses,
            judged=tuple(_judge_views(reading, model, private, least_rows(models)) for model in models),
            worst_joint=_measure_joint(reading, joint),
            estimates=estimate_values(reading),
        )

    def __add__(self, other: Measurement) -> Measurement:
        both, zero = (self, other), (0.0, 0.0)
        names = {**self.losses, **other.losses}
        pairs = zip(self.judged, other.judged, strict=True) if self.judged and other.judged else None
        joints = [part.worst_joint for part in both if part.worst_joint]
        return Measurement(
            rows=self.rows + other.rows,
            suppressed=self.suppressed + other.suppressed,
            count=self.count + other.count,
            smallest=min((part.smallest for part in both if part.count), default=0),
            largest=max(self.largest, other.largest),
            squares=self.squares + other.squares,
            k=max(self.k, other.k),
            losses={name: _add_pairs(self.losses.get(name, zero), other.losses.get(name, zero)) for name in names},
            judged=tuple(starmap(worse_of, pairs)) if pairs else self.judged or other.judged,
            worst_joint=min(joints, key=lambda found: found.rank, default=None),
            estimates={**self.estimates, **other.estimates},
        )

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """Each guarantee as a certificate states it."""
        return tuple(judged.guarantee for judged in self.judged)

    @property
    def classes(self) -> ClassSizes:
        """Statistics of class sizes."""
        mean = self.rows / self.count if self.count else 0.0
        return ClassSizes(
            count=self.count,
            smallest=self.smallest,
            mean=mean,
            largest=self.largest,
            discernibility=self.squares,
            average_ratio=mean / self.k if self.k else None,
        )

    def certify(
        self, schema: Schema, form: Mapping[str, dict[str, Any]], notes: Sequence[str] = (), content_sha256: str = ""
    ) -> Certificate:
        """The certificate that states this measurement.

        Args:
            schema: the published columns.
            form: the form of the release, as a recipe writes it.
            notes: what a reader has to know in addition to the numbers; repeated notes are dropped.
            content_sha256: the content hash, where it is known.
        """
        return Certificate(
            closeknit=__version__,
            form=dict(form),
            columns=schema.forms(),
            rows=self.rows,
            suppressed=self.suppressed,
            guarantees=self.guarantees,
            classes=self.classes,
            loss=weigh_losses(self.losses, schema, self.rows, self.suppressed),
            joint=self.worst_joint.joint if self.worst_joint else None,
            estimates=self.estimates,
            notes=tuple(dict.fromkeys(notes)),
            content_sha256=content_sha256,
        )


def worse_of(one: Judged, other: Judged) -> Judged:
    """One guarantee measured on two parts: it is met if both meet it, and its level is the worse one; a level that adds up is
    that of both together.
    """
    worse = min(one, other, key=lambda judged: judged.rank)
    return _add_levels(one, other, worse) if one.parts and other.parts else worse


def _add_levels(one: Judged, other: Judged, worse: Judged) -> Judged:
    assert one.parts and other.parts
    parts = one.parts[0] + other.parts[0], one.parts[1] + other.parts[1]
    exact = Fraction(parts[0], max(parts[1], 1))
    stated: dict[str, Any] = {"met": exact <= Fraction(one.limit)}
    if worse.guarantee.status == "recomputable":
        # the class that is worst is worst in its part, whichever part is nearer to the limit
        place = max(one, other, key=lambda judged: (judged.own, [-code for code in judged.place]))
        stated |= {"measured": float(exact), "exact": str(exact), "worst": place.guarantee.worst}
        worse = place
    guarantee = worse.guarantee.model_copy(update=stated)
    return worse.model_copy(update={"guarantee": guarantee, "level": float(exact), "parts": parts})


def _add_pairs(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return one[0] + other[0], one[1] + other[1]


def _measure_sizes(sizes: NDArray[np.int64]) -> dict[str, Any]:
    smallest, largest = (int(sizes.min()), int(sizes.max())) if len(sizes) else (0, 0)
    return {"count": len(sizes), "smallest": smallest, "largest": largest, "squares": int((sizes * sizes).sum())}


def class_sizes(reading: Reading) -> ClassSizes:
    """Statistics of the class sizes of a release.

    Args:
        reading: the written cells and their classes.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> table = Columns.of({"age": ["[20, 29]", "[20, 29]", "30"]})
    >>> class_sizes(ck.generalized().read(table, ck.Schema(quasi={"age": ck.numeric()}))).discernibility
    5
    """
    sizes = reading.classes.sizes
    return Measurement(rows=int(sizes.sum()), **_measure_sizes(sizes)).classes


def judge(reading: Reading, models: Sequence[Model]) -> list[Guarantee]:
    """Every guarantee as a recipient can measure it on the written cells."""
    return [_judge_views(reading, model, None, least_rows(models)).guarantee for model in models]


def _judge_views(reading: Reading, model: Model, private: PrivateContext | None, k: int) -> Judged:
    """Judged on the classes, or on the groups over each set of columns: the worst of them counts."""
    if model.over is None:
        return _judge_spellings(reading, model, private, k)
    subsets = list_subsets(model.over, list(reading.schema.quasi))
    return min((_judge_spellings(reading.over(names), model, private, k) for names in subsets), key=lambda judged: judged.rank)


def _judge_spellings(reading: Reading, model: Model, private: PrivateContext | None, k: int) -> Judged:
    """Judged on the values as written and, where some look alike, on the folded ones: the worse of the two counts."""
    written, folded = _judge_model(reading, model, private, k), reading.fold_values(model.column)
    if folded is None:
        return written
    worse = worse_of(written, _judge_model(folded, model, private, k, view=1))
    stated = {"alone": written.guarantee.alone, "vacuous": written.guarantee.vacuous}
    return worse.model_copy(update={"guarantee": worse.guarantee.model_copy(update=stated)})


def _judge_model(reading: Reading, model: Model, private: PrivateContext | None, k: int, view: int = 0) -> Judged:
    seen = reading.of(model.column)
    histogram = seen.classes.histograms.get(model.column) if model.column else None
    stated = state_request(model, model.describe(histogram.domain if histogram else None))
    if (found_alone := find_stand_alone(model, seen.classes, k)) is not None:
        stated |= {"alone": found_alone.share, "vacuous": found_alone.vacuous}
    place: tuple[int, ...] = ()
    worst: dict[str, Any] = {}
    own = 0.0
    if "release" in model.needs:
        originals = private.originals(str(model.column)) if private and private.originals else None
        verdict = model.judge_release(reading, originals)
        level = verdict.level
        if private is None and verdict.status == "attested" and "population" in model.needs:  # the auditor has the people
            verdict = replace(verdict, status="recomputable")
            worst = {"measured": level, "exact": None if verdict.exact is None else str(verdict.exact)}
        elif verdict.parts or verdict.status == "recomputable":
            found, at, worst = _find_worst(seen, model)
            own, place = found or 0.0, at if verdict.parts else ()
            worst |= {"measured": level, "exact": None if verdict.exact is None else str(verdict.exact)}
    else:
        verdict = Verdict(bool(model.holds(seen.classes).all()), None, "recomputable")
        level, place, worst = _find_worst(seen, model)
    if verdict.status != "recomputable" or (private and private.counts_persons and "persons" in model.needs):
        status = "not checkable" if private is None else "attested" if verdict.status == "recomputable" else verdict.status
        guarantee = Guarantee(**stated, met=verdict.held, status=status, why=verdict.why)
    else:
        why = None if verdict.held else verdict.why
        guarantee = Guarantee(**stated, met=verdict.held, status="recomputable", why=why, **worst)
    adds: dict[str, Any] = (
        {"parts": verdict.parts, "limit": str(getattr(model, model.limit_field)), "own": own} if verdict.parts else {}
    )
    return Judged(guarantee=guarantee, higher_is_safer=model.higher_is_safer, level=level, view=view, place=place, **adds)


def state_request(model: Model, text: str) -> dict[str, Any]:
    """What a certificate states about a request.

    Args:
        model: the guarantee as requested.
        text: the guarantee in words.
    """
    return {"model": model_form(model.published), "text": text, "column": model.column, "requested": model.requested}


def _find_worst(reading: Reading, model: Model) -> tuple[float | None, tuple[int, ...], dict[str, Any]]:
    """The worst class: its level, its place, and what a certificate states about it."""
    levels = model.levels(reading.classes)
    if len(levels) == 0:
        return None, (), {}
    return _describe_class(reading, model, levels, model.find_worst(levels))


def _describe_class(
    reading: Reading, model: Model, levels: NDArray[np.float64], index: int
) -> tuple[float, tuple[int, ...], dict[str, Any]]:
    level, exact, row = float(levels[index]), model.exact_level(reading.classes, index), reading.first_row(index)
    place = tuple(int(reading.columns[name].codes[row]) for name in reading.named_by)
    worst = WorstClass(cells=reading.cells_of(index), rows=int(reading.classes.sizes[index]))
    measured = level if np.isfinite(level) else None
    return level, place, {"measured": measured, "exact": None if exact is None else str(exact), "worst": worst}


def _measure_joint(reading: Reading, closeness: Model | None) -> JudgedJoint | None:
    """The distance of all sensitive attributes as one; None where there are no classes or no model that measures it."""
    if closeness is None or len(reading.classes) == 0:
        return None
    seen, columns = reading.of(closeness.column), parts(closeness.column)
    histogram, levels = seen.classes.histograms[columns], closeness.levels(seen.classes)
    worst = np.flatnonzero(levels == levels.max())
    index = int(worst[np.argmax(histogram.totals[worst])])  # of equals the largest: the order of classes decides nothing
    rows = int(histogram.totals[index])
    _, place, stated = _describe_class(seen, closeness, levels, index)
    least = float(least_distance(histogram.reference, rows))
    return JudgedJoint(joint=Joint(columns=columns, least=least, counted=rows, **stated), place=place)


def estimate_values(reading: Reading) -> dict[str, ValueEstimates]:
    """Estimated true counts of each value of a perturbed attribute, from the written cells and the perturbation law.

    Args:
        reading: the written cells and their classes.
    """
    found = {}
    for name, law in reading.retained.items():
        histogram = reading.classes.histograms[name]
        numbers = law.estimate(histogram.reference[: law.values]) if histogram.reference.any() else None
        if numbers is None:
            continue
        texts = [*histogram.domain.texts, ""][: law.values]
        found[name] = dict(zip(texts, zip(*(part.tolist() for part in numbers), strict=True), strict=True))
    return found
