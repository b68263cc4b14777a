"""`Certificate`: what was promised, what was reached, and all that a stranger needs to compute both again from the release.

It is made by `certify` from the classes that were read back from the written cells, never from what a method meant to do. It
carries no seed, no recipe and nothing of the input. What a stranger cannot recompute (a promise counted in persons) is measured
at home and marked `attested`: of it only *asked* and *held* are told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from closeknit.core.errors import BadInput, Unsatisfiable
from closeknit.core.formulas import ESCAPED, RISK, formula_notes
from closeknit.core.grids import Summarized, Summary
from closeknit.core.joint import Secret, least_distance, named, parts
from closeknit.core.limits import MOST_GUARANTEES, MOST_NOTES
from closeknit.core.loss import Loss, measure
from closeknit.core.model import Model, ReleaseModel, least_rows
from closeknit.core.params import spec
from closeknit.core.perturbation import estimated_counts
from closeknit.core.published import Reading
from closeknit.core.schema import Schema, explained, refuse_files
from closeknit.core.strict_json import check_json, json_text

if TYPE_CHECKING:
    from closeknit.core.method import Method
    from closeknit.core.table import Form

FORMAT = 1
Count = Annotated[int, Field(ge=0, lt=2**63)]


class Record(BaseModel):
    """A plain frozen record."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Paper(Summarized, Record):
    """A record that stands in a file of its own, and says which format it has and which version made it."""

    what: ClassVar[str]
    where: ClassVar[str]  # which file would be right

    format: int = FORMAT
    closeknit: str

    def to_json(self) -> str:
        """As text."""
        return json_text(self.model_dump(mode="json"))

    @classmethod
    def from_json(cls, text: str, file: object = None) -> Self:
        """Read back; a file that is none of these is named, as is JSON that can be read in two ways."""
        check_json(text, file or cls.what)
        try:
            read = cls.model_validate_json(text)
        except ValidationError as error:
            raise BadInput(explained(error, cls.what).what, file=file, right=cls.where) from None
        if read.format != FORMAT:
            what = f"{cls.what} has format {read.format}, made by closeknit {read.closeknit}"
            raise BadInput(what, file=file, right=f"this version reads format {FORMAT}")
        refuse_files(getattr(read, "columns", None), "a certificate has its hierarchies written out", file)
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
    status: Literal["recomputable", "attested", "not checkable"]  # the last by strangers only
    reached: float | None = None  # None where attested, or where the level is infinite
    exact: str | None = None
    worst: WorstClass | None = None
    why: str | None = None  # why nobody else can tell

    def line(self) -> str:
        """One line for people."""
        mark = "kept" if self.held else "BROKEN"
        if self.status == "attested":
            why = f": {self.why}" if self.why else ": counted at home, a stranger cannot recompute it"
            return f"{mark:6}  {self.text}  (attested{why})"
        return f"{mark:6}  {self.text}: reached {shown_level(self.reached)}"

    def cells(self) -> list[str]:
        """One row of a summary."""
        measured = "attested" if self.status == "attested" else shown_level(self.reached)
        return [self.text, self.asked, measured, "met" if self.held else "not met"]


def shown_level(level: float | None) -> str:
    """A level for people.

    >>> shown_level(0.2), shown_level(None)
    ('0.2', 'without limit')
    """
    return "without limit" if level is None else f"{level:.6g}"


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


# Of each value (the missing one is ""): the true count, its standard error, and the nearest count that is possible.
Estimated = dict[str, tuple[float, float, float]]


class Certificate(Paper):
    """Everything a stranger needs; `to_json` is what stands in `certificate.json`."""

    what: ClassVar[str] = "the certificate"
    where: ClassVar[str] = "use the certificate.json that stands beside the release"

    form: dict[str, dict[str, Any]]
    columns: dict[str, Any]
    rows: Count
    withheld: Count
    promises: Annotated[tuple[Promise, ...], Field(max_length=MOST_GUARANTEES)]
    classes: ClassSizes
    loss: LossRecord
    joint: Joint | None = None  # with fewer than two secrets, and in certificates made before it was measured
    estimates: dict[str, Estimated] = {}  # of perturbed secrets
    notes: Annotated[tuple[str, ...], Field(max_length=MOST_NOTES)] = ()
    escape_formulas: bool = False  # names and cells have an apostrophe in front where a spreadsheet would run them
    content_sha256: str = ""
    files: Annotated[tuple[ReleaseFile, ...], Field(max_length=MOST_NOTES)] = ()

    def with_escapes(self) -> Certificate:
        """The certificate of the same cells, written with formulas escaped."""
        notes = (*(note for note in self.notes if note != RISK), ESCAPED)
        return self.model_copy(update={"escape_formulas": True, "notes": notes})

    @property
    def ok(self) -> bool:
        """Whether every promise that was asked holds."""
        return all(promise.held for promise in self.promises)

    def summary(self) -> Summary:
        """Each guarantee, what was requested and what was measured."""
        met = sum(promise.held for promise in self.promises)
        guarantees = f"{met} of {len(self.promises)} guarantees met"
        title = f"Certificate: {guarantees}, {self.rows:,} rows published, {self.withheld:,} suppressed, loss {self.loss.a:.4f}"
        return Summary(title, [["guarantee", "requested", "measured", ""], *map(Promise.cells, self.promises)], self.notes)

    def __str__(self) -> str:
        size = self.classes
        lines = [promise.line() for promise in self.promises]
        lines += [f"joint   {self.joint.line()}"] if self.joint else []
        lines += [f"truly   {estimated_line(name, values)}" for name, values in self.estimates.items()]
        what = "classes" if {"generalized", "perturbed"} & set(self.form) else "buckets"
        classes = f"{size.count:,} {what} of {size.smallest:,} to {size.largest:,} rows"
        lines.append(f"rows    {self.rows:,} published, {self.withheld:,} withheld, {classes}")
        lines.append(f"loss    {self.loss.a:.4f} (General Loss Metric A; B: {self.loss.b:.4f})")
        return "\n".join([*lines, *(f"note    {note}" for note in self.notes)])


@dataclass(frozen=True)
class Home:
    """What only those know who made a release."""

    counts_persons: bool  # k and diversity were counted in persons
    originals: Callable[[str], NDArray[np.int32]] | None = None  # of a secret: as `ReleaseModel.judged` takes them


def judge(reading: Reading, models: Sequence[Model], home: Home | None = None) -> list[Promise]:
    """Every promise measured on the classes read back; at home also what a stranger cannot tell, which is then attested."""
    return [_judged(reading.of(model.column), reading, model, home) for model in models]


def _judged(seen: Reading, reading: Reading, model: Model, home: Home | None) -> Promise:
    histogram = seen.classes.histograms.get(model.column) if model.column else None
    text = model.describe(histogram.domain if histogram else None)
    base: dict[str, Any] = {"model": model_form(model), "text": text, "column": model.column, "asked": model.asked}
    in_persons = home is not None and home.counts_persons and "persons" in model.needs
    if "release" in model.needs:
        originals = home.originals(str(model.column)) if home and home.originals else None
        found = cast(ReleaseModel, model).judged(reading, originals)
        if found.status != "recomputable" or in_persons:
            status = "attested" if found.status == "recomputable" else found.status
            status = "not checkable" if home is None else status  # to a stranger nobody has attested anything
            return Promise(**base, held=found.held, status=status, why=found.why)
        exact = None if found.exact is None else str(found.exact)
        worst = _worst(seen, model).get("worst")
        why = None if found.held else found.why
        return Promise(**base, held=found.held, status="recomputable", reached=found.level, exact=exact, worst=worst, why=why)
    held = bool(model.holds(seen.classes).all())
    if in_persons:
        return Promise(**base, held=held, status="attested")
    return Promise(**base, held=held, status="recomputable", **_worst(seen, model))


def _worst(reading: Reading, model: Model) -> dict[str, Any]:
    levels = model.levels(reading.classes)
    if len(levels) == 0:
        return {}
    return _told(reading, model, levels, int(np.argmin(levels) if model.higher_is_safer else np.argmax(levels)))


def _told(reading: Reading, model: Model, levels: NDArray[np.float64], index: int) -> dict[str, Any]:
    exact = model.exact_level(reading.classes, index)
    worst = WorstClass(cells=reading.cells_of(index), rows=int(reading.classes.sizes[index]))
    reached = float(levels[index]) if np.isfinite(levels[index]) else None
    return {"reached": reached, "exact": None if exact is None else str(exact), "worst": worst}


def model_form(thing: Model | Method | Form) -> dict[str, dict[str, Any]]:
    """A model, method or form as a recipe writes it: `{t_closeness: {column: salary, t: 0.2}}`."""
    return {thing.name: {key: _plain(value) for key, value in spec(thing).items()}}


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    return value if isinstance(value, int | float | str | bool | type(None)) else str(value)


def joint_distance(reading: Reading, closeness: Model | None) -> Joint | None:
    """The distance of all secrets as one, by the model that measures it; None where there are no classes or no such model."""
    if closeness is None or len(reading.classes) == 0:
        return None
    seen = reading.of(closeness.column)
    histogram = seen.classes.histograms[parts(closeness.column)]
    levels = closeness.levels(seen.classes)
    worst = np.flatnonzero(levels == levels.max())
    index = int(worst[np.argmax(histogram.totals[worst])])  # of equals the largest: in which order they stand tells nothing
    rows = int(histogram.totals[index])
    least = float(least_distance(histogram.reference, rows))
    return Joint(columns=parts(closeness.column), least=least, counted=rows, **_told(seen, closeness, levels, index))


def estimates(reading: Reading) -> dict[str, Estimated]:
    """How many rows have each value of a perturbed secret truly, as far as written cells and law tell."""
    found = {}
    for name, law in reading.retained.items():
        histogram = reading.classes.histograms[name]
        if law.retain == 0 or not histogram.reference.any():
            continue
        numbers = estimated_counts(histogram.reference[: law.values], law.retain)
        texts = [*histogram.domain.texts, ""][: law.values]
        found[name] = dict(zip(texts, zip(*(part.tolist() for part in numbers), strict=True), strict=True))
    return found


def estimated_line(name: str, values: Estimated, most: int = 3) -> str:
    """The values that most rows have."""
    first = sorted(values, key=lambda value: -values[value][0])[:most]
    told = ", ".join(f"{value or 'missing'} {values[value][0]:,.0f} ± {values[value][1]:,.0f}" for value in first)
    more = f", and {len(values) - most:,} more" if len(values) > most else ""
    return f"{name}: {told}{more} (rows, estimated, with standard errors)"


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
            home: Home | None, notes: Sequence[str], joint: Model | None = None) -> Certificate:  # fmt: skip
    """Measure every model on what was read back; raise `Unsatisfiable` if one promise is broken.

    `joint` measures all secrets as one, where there are several.
    """
    promises = judge(reading, models, home)
    refuse_broken(promises)
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
        estimates=estimates(reading),
        notes=(*notes, *noted_formulas(formula_notes(reading.columns))),
    )


def noted_formulas(found: Sequence[str]) -> tuple[str, ...]:
    """What a certificate says of cells that a spreadsheet may run, if there are any."""
    return (*found, RISK) if found else ()


def refuse_broken(promises: Sequence[Promise]) -> None:
    """What is not kept is not certified."""
    for promise in promises:
        if not promise.held:
            level = "no bound" if promise.reached is None else f"{promise.reached:.6g}"
            reached = (
                "counted at home, it is not kept" if promise.status == "attested" else f"the written release reaches {level}"
            )
            raise Unsatisfiable(promise.text, reached, promise.why or "ask for less, or choose another method")


def loss_record(loss: Loss) -> LossRecord:
    """The loss as the certificate carries it."""
    return LossRecord(a=loss.a, b=loss.b, columns=dict(loss.columns))


def persons_note(schema: Schema, checked: bool = True) -> str:
    """What k counts, in a sentence. `checked`: whether rows that share an identifier were refused.

    >>> persons_note(Schema(identifier=["name"], rows_are_persons=True))
    'every row was counted as a person of its own, as the data owner declares (rows_are_persons)'
    """
    if schema.person is not None:
        return "k and diversity count persons; who they are is not published"
    declared = ", as the data owner declares (rows_are_persons)" if schema.rows_are_persons else ""
    unchecked = "; whether an identifier repeats was not checked" if schema.unique and not checked else ""
    return f"every row was counted as a person of its own{declared}{unchecked}"


def unprotected(schema: Schema, models: Sequence[Model]) -> list[str]:
    """Columns that are published and that no promise covers, alone or together."""
    promised = {name for model in models for name in parts(model.column)}
    notes, secrets = [], tuple(schema.sensitive)
    if len(secrets) > 1 and not any({*parts(model.column)} == {*secrets} for model in models):
        notes.append(f"knowing one secret may tell another: no promise speaks of {named(secrets)}")
    notes += [f"column '{name}' is sensitive, but no promise speaks of it" for name in schema.sensitive if name not in promised]
    return notes + [f"column '{name}' is published as it is, without any protection" for name in schema.plain]
