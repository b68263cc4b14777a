"""`Certificate`: what was promised, what was reached, and all that a stranger needs to compute both again from the release.

It is made by `certify` from the classes that were read back from the written cells, never from what a method meant to do. It
carries no seed, no recipe and nothing of the input. What a stranger cannot recompute (a promise counted in persons) is measured
at home and marked `attested`: of it only *asked* and *held* are told.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from closeknit.core.errors import BadInput, Unsatisfiable
from closeknit.core.joint import Secret, least_distance, named, parts
from closeknit.core.loss import Loss, measure
from closeknit.core.model import Model, least_rows
from closeknit.core.params import spec
from closeknit.core.published import Reading
from closeknit.core.schema import explained

FORMAT = 1
Count = Annotated[int, Field(ge=0, lt=2**63)]


class Record(BaseModel):
    """A plain frozen record."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Paper(Record):
    """A record that stands in a file of its own, and says which format it has and which version made it."""

    what: ClassVar[str]
    where: ClassVar[str]  # which file would be right

    format: int = FORMAT
    closeknit: str

    def to_json(self) -> str:
        """As text."""
        return json.dumps(self.model_dump(mode="json"), indent=2, ensure_ascii=False, sort_keys=False) + "\n"

    @classmethod
    def from_json(cls, text: str, file: object = None) -> Self:
        """Read back; a file that is none of these is named."""
        try:
            read = cls.model_validate_json(text)
        except ValidationError as error:
            raise BadInput(explained(error, cls.what).what, file=file, right=cls.where) from None
        if read.format != FORMAT:
            what = f"{cls.what} has format {read.format}, made by closeknit {read.closeknit}"
            raise BadInput(what, file=file, right=f"this version reads format {FORMAT}")
        return read


class WorstClass(Record):
    """The class that comes nearest to breaking a promise, by its written cells."""

    cells: dict[str, str]
    rows: Count


class Promise(Record):
    """One promise: what was asked, what is reached, and by whom it can be checked."""

    model: dict[str, dict[str, Any]]
    text: str
    column: Secret | None
    asked: str
    held: bool
    status: Literal["recomputable", "attested"]
    reached: float | None = None  # None where attested, or where the level is infinite
    exact: str | None = None
    worst: WorstClass | None = None

    def line(self) -> str:
        """One line for people."""
        mark = "kept" if self.held else "BROKEN"
        if self.status == "attested":
            return f"{mark:6}  {self.text}  (attested: counted at home, a stranger cannot recompute it)"
        reached = "without limit" if self.reached is None else f"{self.reached:.6g}"
        return f"{mark:6}  {self.text}: reached {reached}"


class Joint(Record):
    """How far all secrets as one are from their spread in the release, promised or not: total variation, worst class.

    `least`: what so few rows cannot be below, whichever they are; beside it the distance can be read.
    """

    columns: Annotated[tuple[str, ...], Field(min_length=2)]
    reached: float
    exact: str
    least: float
    counted: Count  # rows of the worst class whose secrets are written
    worst: WorstClass

    def line(self) -> str:
        """What is reached, in words."""
        least = f"least for {self.counted:,} rows: {self.least:.6g}"
        return f"{named(self.columns)}: total variation {self.reached:.6g} (worst class; {least})"


class ReleaseFile(Record):
    """A file of the release and what it must look like."""

    name: str
    rows: Count
    sha256: str


class ClassSizes(Record):
    """How large the classes are, and two classical measures of it."""

    count: Count
    smallest: Count
    mean: float
    largest: Count
    discernibility: Count
    average_ratio: float | None = None  # mean size / k, where k was asked


class LossRecord(Record):
    """General Loss Metric of the written cells, variants A and B, in total and per column."""

    a: float
    b: float
    columns: dict[str, tuple[float, float]]


class Certificate(Paper):
    """Everything a stranger needs; `to_json` is what stands in `certificate.json`."""

    what: ClassVar[str] = "the certificate"
    where: ClassVar[str] = "use the certificate.json that stands beside the release"

    form: dict[str, dict[str, Any]]
    columns: dict[str, Any]
    rows: Count
    withheld: Count
    promises: tuple[Promise, ...]
    classes: ClassSizes
    loss: LossRecord
    joint: Joint | None = None  # with fewer than two secrets, and in certificates made before it was measured
    notes: tuple[str, ...] = ()
    content_sha256: str = ""
    files: tuple[ReleaseFile, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every promise that was asked holds."""
        return all(promise.held for promise in self.promises)

    def __str__(self) -> str:
        size = self.classes
        lines = [promise.line() for promise in self.promises]
        lines += [f"joint   {self.joint.line()}"] if self.joint else []
        classes = f"{size.count:,} classes of {size.smallest:,} to {size.largest:,} rows"
        lines.append(f"rows    {self.rows:,} published, {self.withheld:,} withheld, {classes}")
        lines.append(f"loss    {self.loss.a:.4f} (General Loss Metric A; B: {self.loss.b:.4f})")
        return "\n".join([*lines, *(f"note    {note}" for note in self.notes)])


def judge(reading: Reading, models: Sequence[Model], private_persons: bool = False) -> list[Promise]:
    """Every promise measured on the classes read back. With `private_persons` what is counted in persons is attested."""
    promises = []
    for model in models:
        histogram = reading.classes.histograms.get(model.column) if model.column else None
        text = model.describe(histogram.domain if histogram else None)
        held = bool(model.holds(reading.classes).all())
        base: dict[str, Any] = {
            "model": model_form(model),
            "text": text,
            "column": model.column,
            "asked": model.asked,
            "held": held,
        }
        if private_persons and "persons" in model.needs:
            promises.append(Promise(**base, status="attested"))
        else:
            promises.append(Promise(**base, status="recomputable", **_worst(reading, model)))
    return promises


def _worst(reading: Reading, model: Model) -> dict[str, Any]:
    levels = model.levels(reading.classes)
    if len(levels) == 0:
        return {}
    index = int(np.argmin(levels) if model.higher_is_safer else np.argmax(levels))
    exact = model.exact_level(reading.classes, index)
    worst = WorstClass(cells=reading.cells_of(index), rows=int(reading.classes.sizes[index]))
    reached = float(levels[index]) if np.isfinite(levels[index]) else None
    return {"reached": reached, "exact": None if exact is None else str(exact), "worst": worst}


def model_form(model: Model) -> dict[str, dict[str, Any]]:
    """A model as a recipe writes it: `{t_closeness: {column: salary, t: 0.2}}`."""
    return {model.name: {key: _plain(value) for key, value in spec(model).items()}}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return value if isinstance(value, int | float | str | bool | type(None)) else str(value)


def joint_distance(reading: Reading, closeness: Model | None) -> Joint | None:
    """The distance of all secrets as one, by the model that measures it; None where there are no classes or no such model."""
    if closeness is None or len(reading.classes) == 0:
        return None
    histogram = reading.classes.histograms[parts(closeness.column)]
    rows = int(histogram.totals[int(np.argmax(closeness.levels(reading.classes)))])
    least = float(least_distance(histogram.reference, rows))
    return Joint(columns=parts(closeness.column), least=least, counted=rows, **_worst(reading, closeness))


def class_sizes(reading: Reading, k: int = 0) -> ClassSizes:
    """Statistics of class sizes."""
    sizes = reading.classes.sizes
    mean = float(sizes.mean()) if len(sizes) else 0.0
    return ClassSizes(
        count=len(sizes),
        smallest=int(sizes.min()) if len(sizes) else 0,
        mean=mean,
        largest=int(sizes.max(initial=0)),
        discernibility=int((sizes * sizes).sum()),
        average_ratio=mean / k if k else None,
    )


def certify(reading: Reading, models: Sequence[Model], *, version: str, form: Mapping[str, dict[str, Any]], withheld: int,
            private_persons: bool, notes: Sequence[str], joint: Model | None = None) -> Certificate:  # fmt: skip
    """Measure every model on what was read back; raise `Unsatisfiable` if one promise is broken.

    `joint` measures all secrets as one, where there are several.
    """
    promises = judge(reading, models, private_persons)
    for promise in promises:
        if not promise.held:
            level = "no bound" if promise.reached is None else f"{promise.reached:.6g}"
            reached = (
                "persons of a class are too few" if promise.status == "attested" else f"the written release reaches {level}"
            )
            raise Unsatisfiable(promise.text, reached, "ask for less, or choose another method")
    k = least_rows(models)
    return Certificate(
        closeknit=version,
        form=dict(form),
        columns=reading.schema.forms(),
        rows=reading.columns.rows,
        withheld=withheld,
        promises=tuple(promises),
        classes=class_sizes(reading, k),
        loss=loss_record(measure(reading.columns, reading.schema, withheld)),
        joint=joint_distance(reading, joint),
        notes=tuple(notes),
    )


def loss_record(loss: Loss) -> LossRecord:
    """The loss as the certificate carries it."""
    return LossRecord(a=loss.a, b=loss.b, columns=dict(loss.columns))
