"""`Certificate`: what was guaranteed, what was measured, and all that a recipient needs to recompute both from the release.

`Measurement.certify` builds it from the classes that were read back from the written cells, never from what a method intended.
It contains no seed, no recipe and nothing of the input. What a recipient cannot recompute (a guarantee counted in persons) is
measured privately and marked `attested`: the certificate states only the request and whether it is met.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, SupportsIndex

from pydantic import Field, ValidationError

from closeknit.core.combined_secrets import Secret, render_secret
from closeknit.core.errors import BadInput
from closeknit.core.formats import FORMAT, upgrade_format
from closeknit.core.formulas import ESCAPED, RISK
from closeknit.core.grids import Summarized, Summary
from closeknit.core.limits import MOST_GUARANTEES, MOST_NOTES
from closeknit.core.loss import LossRecord as LossRecord
from closeknit.core.model import Model
from closeknit.core.params import spec
from closeknit.core.record import Record as Record
from closeknit.core.schema import explain_error, refuse_files, refuse_populations
from closeknit.core.strict_json import json_text, parse_json
from closeknit.core.vacuity import render_share

if TYPE_CHECKING:
    from closeknit.core.method import Method
    from closeknit.core.table import Form

ROLLING = "so far: it covers the rows that have been published; levels and sizes are those of batches"  # of a stream
SHOWN = 3  # estimated values in one line
PEOPLE = "a certificate states the number of people of a population, not where they are"
Count = Annotated[int, Field(ge=0, lt=2**63)]


class Document(Summarized, Record):
    """A record with a file of its own, which states its format and the version that wrote it."""

    what: ClassVar[str]
    where: ClassVar[str]  # which file to use instead

    format: int = FORMAT
    closeknit: str

    def to_json(self) -> str:
        """The text of its file, always in the current format."""
        return json_text({**self.model_dump(mode="json"), "format": FORMAT})

    @classmethod
    def from_json(cls, text: str, file: object = None) -> Self:
        """Read a document of the current or an earlier format.

        Args:
            text: the JSON text.
            file: its name in messages.

        Raises:
            BadInput: the format is newer, a key is unknown or missing, or the JSON can be read in two ways.
        """
        content = parse_json(text, file or cls.what)
        version = content.get("format") if isinstance(content, dict) else None
        if isinstance(version, int) and not 1 <= version <= FORMAT:
            what = f"{cls.what} has format {version}, written by closeknit {content.get('closeknit')}"
            right = f"this version reads formats 1 to {FORMAT}" + ("; install a newer one" if version > FORMAT else "")
            raise BadInput(what, file=file, right=right)
        try:
            read = cls.model_validate(upgrade_format(content))
        except ValidationError as error:
            raise BadInput(explain_error(error, cls.what).what, file=file, right=cls.where) from None
        read.refuse_references(file)
        return read

    def refuse_references(self, file: object) -> None:
        """Refuse a document that names other files, which its sender would choose.

        Args:
            file: its name in messages.
        """


class WorstClass(Record):
    """The worst class of a guarantee, by its written cells.

    Args:
        cells: the written cells that identify it, by column.
        rows: the number of its rows.
    """

    cells: dict[str, str]
    rows: Count


class Guarantee(Record):
    """One guarantee: what was requested, what was measured, and who can check it.

    Args:
        model: its name and parameters, as in a recipe.
        text: the guarantee in one line.
        column: the sensitive attribute, or several as one; None where it is about the rows alone.
        requested: the limit.
        met: whether every class meets it.
        status: who can check it; "not checkable" occurs in an audit only.
        measured: the level of the worst class; None where it is attested or infinite.
        exact: the same level as a fraction, where it is one.
        worst: the worst class.
        why: why a recipient cannot recompute it.
        alone: share of rows whose value may stand alone in a class; None where it was not stated.
        vacuous: whether every value with enough rows for a class may stand alone.
    """

    model: dict[str, dict[str, Any]]
    text: str
    column: Secret | None
    requested: str
    met: bool
    status: Literal["recomputable", "attested", "not checkable"]
    measured: float | None = None
    exact: str | None = None
    worst: WorstClass | None = None
    why: str | None = None
    alone: float | None = None
    vacuous: bool = False

    def line(self) -> str:
        """One line for people."""
        mark = "met" if self.met else "NOT MET"
        if self.status == "attested":
            why = f": {self.why}" if self.why else ": measured privately, a recipient cannot recompute it"
            return f"{mark:7} {self.text}  (attested{why})"
        return f"{mark:7} {self.text}: measured {render_level(self.measured)}{render_share(self.alone)}"

    def cells(self) -> list[str]:
        """One row of a summary."""
        measured = "attested" if self.status == "attested" else render_level(self.measured)
        return [self.text, self.requested, measured, "met" if self.met else "not met"]


def render_level(level: float | None) -> str:
    """A level for people.

    >>> render_level(0.2), render_level(None)
    ('0.2', 'without limit')
    """
    return "without limit" if level is None else f"{level:.6g}"


class Joint(Record):
    """Distance of all sensitive attributes as one from their distribution in the release: total variation, worst class.

    It is measured whether it is guaranteed or not.

    Args:
        columns: the sensitive attributes.
        measured: the distance of the worst class.
        exact: the same distance as a fraction.
        least: the lowest distance that so few rows can have, to compare with.
        counted: rows of the worst class whose sensitive values are written.
        worst: the worst class.
    """

    columns: Annotated[tuple[str, ...], Field(min_length=2)]
    measured: float
    exact: str
    least: float
    counted: Count
    worst: WorstClass

    def line(self) -> str:
        """One line for people."""
        least = f"least for {self.counted:,} rows: {self.least:.6g}"
        return f"{render_secret(self.columns)}: total variation {self.measured:.6g} (worst class; {least})"


class ReleaseFile(Record):
    """A file of the release.

    Args:
        name: its name in the folder of the release.
        rows: the number of its rows.
        sha256: the hash of its bytes; empty for a folder that Spark wrote.
    """

    name: str
    rows: Count
    sha256: str


class ClassSizes(Record):
    """How large the classes are, and two classical measures of it.

    Args:
        count: the number of classes.
        smallest: rows of the smallest class.
        mean: rows of a class on average.
        largest: rows of the largest class.
        discernibility: sum of the squared sizes.
        average_ratio: mean size / k, where k was requested.
    """

    count: Count
    smallest: Count
    mean: float
    largest: Count
    discernibility: Count
    average_ratio: float | None = None


# Of each value (the missing one is ""): the true count, its standard error, and the nearest count that is possible.
ValueEstimates = dict[str, tuple[float, float, float]]


class Certificate(Document):
    """Everything a recipient needs to recompute the guarantees; `to_json` is the text of `certificate.json`.

    Args:
        format: the version of the file format.
        closeknit: the version of closeknit that wrote it.
        form: the name of the form of the release and its parameters.
        columns: the published schema: role and kind of each column.
        rows: the number of published rows.
        suppressed: the number of suppressed rows.
        guarantees: each guarantee, with what was requested and measured.
        classes: the sizes of the classes or buckets.
        loss: the information loss.
        joint: the distance of all sensitive attributes as one; None with fewer than two, and in early certificates.
        estimates: estimated counts of the values of each perturbed attribute.
        notes: remarks for the recipient.
        escape_formulas: whether an apostrophe precedes names and cells that a spreadsheet would run.
        content_sha256: the hash of the published cells, the same for every file format.
        files: the files of the release.
    """

    what: ClassVar[str] = "the certificate"
    where: ClassVar[str] = "use the certificate.json next to the release"

    form: dict[str, dict[str, Any]]
    columns: dict[str, Any]
    rows: Count
    suppressed: Count
    guarantees: Annotated[tuple[Guarantee, ...], Field(max_length=MOST_GUARANTEES)]
    classes: ClassSizes
    loss: LossRecord
    joint: Joint | None = None
    estimates: dict[str, ValueEstimates] = Field(default_factory=dict)
    notes: Annotated[tuple[str, ...], Field(max_length=MOST_NOTES)] = ()
    escape_formulas: bool = False
    content_sha256: str = ""
    files: Annotated[tuple[ReleaseFile, ...], Field(max_length=MOST_NOTES)] = ()

    def refuse_references(self, file: object) -> None:
        """Refuse hierarchies and populations that are files.

        Args:
            file: its name in messages.
        """
        refuse_files(self.columns, "a certificate has its hierarchies written out", file)
        refuse_populations([found.model for found in self.guarantees], PEOPLE, file)

    def with_escapes(self) -> Certificate:
        """The certificate of the same cells, written with formulas escaped."""
        notes = (*(note for note in self.notes if note != RISK), ESCAPED)
        return self.model_copy(update={"escape_formulas": True, "notes": notes})

    def attest_all(self, why: str) -> Certificate:
        """The certificate with every guarantee attested: a recipient can recompute none.

        Args:
            why: why not.
        """
        hidden = {"status": "attested", "measured": None, "exact": None, "worst": None, "alone": None, "why": why}
        return self.model_copy(update={"guarantees": tuple(one.model_copy(update=hidden) for one in self.guarantees)})

    @property
    def rolling(self) -> bool:
        """Whether it is that of a stream so far, which knows its batches, and neither its classes nor its content."""
        return ROLLING in self.notes and not self.content_sha256

    @property
    def ok(self) -> bool:
        """Whether every guarantee is met."""
        return all(guarantee.met for guarantee in self.guarantees)

    def summary(self) -> Summary:
        """Each guarantee, what was requested and what was measured."""
        met = sum(guarantee.met for guarantee in self.guarantees)
        guarantees = f"{met} of {len(self.guarantees)} guarantees met"
        title = (
            f"Certificate: {guarantees}, {self.rows:,} rows published, {self.suppressed:,} suppressed, loss {self.loss.a:.4f}"
        )
        return Summary(title, [["guarantee", "requested", "measured", ""], *map(Guarantee.cells, self.guarantees)], self.notes)

    def __str__(self) -> str:
        size = self.classes
        lines = [guarantee.line() for guarantee in self.guarantees]
        lines += [f"joint   {self.joint.line()}"] if self.joint else []
        lines += [f"truly   {render_estimates(name, values)}" for name, values in self.estimates.items()]
        what = "classes" if {"generalized", "perturbed"} & set(self.form) else "buckets"
        classes = f"{size.count:,} {what} of {size.smallest:,} to {size.largest:,} rows"
        lines.append(f"rows    {self.rows:,} published, {self.suppressed:,} suppressed, {classes}")
        lines.append(f"loss    {self.loss.a:.4f} (General Loss Metric A; B: {self.loss.b:.4f})")
        return "\n".join([*lines, *(f"note    {note}" for note in self.notes)])


def model_form(thing: Model | Method | Form) -> dict[str, dict[str, Any]]:
    """A model, method or form as a recipe writes it: `{t_closeness: {column: salary, t: 0.2}}`.

    Args:
        thing: the model, method or form.
    """
    return {thing.name: {key: _plain(value) for key, value in spec(thing).items()}}


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, int | float | str | bool | type(None)):
        return value
    return value.__index__() if isinstance(value, SupportsIndex) else str(value)


def render_estimates(name: str, values: ValueEstimates) -> str:
    """The most frequent values, in one line.

    Args:
        name: the attribute.
        values: the estimates.
    """
    first = sorted(values, key=lambda value: -values[value][0])[:SHOWN]
    shown = ", ".join(f"{value or 'missing'} {values[value][0]:,.0f} ± {values[value][1]:,.0f}" for value in first)
    more = f", and {len(values) - SHOWN:,} more" if len(values) > SHOWN else ""
    return f"{name}: {shown}{more} (rows, estimated, with standard errors)"
