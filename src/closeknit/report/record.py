"""What a report says, as data. `PublicReport` is made from release and certificate alone; `PrivateReport` stays at home.

A page shows a record and nothing else, and the record is saved beside it, so that other tools can draw their own.
"""

from __future__ import annotations

from typing import Any, ClassVar

from closeknit.attacks.finding import Finding
from closeknit.core.certificate import ClassSizes, Count, Document, Guarantee, Joint, LossRecord, Record, ValueEstimates
from closeknit.core.frontier import Frontier
from closeknit.metrics.measures import Measures


class ExplainedGuarantee(Record):
    """A guarantee as the certificate has it, and what it means for the people in the table."""

    guarantee: Guarantee
    means: str


class ShownColumn(Record):
    """A published column and what it is."""

    name: str
    role: str
    kind: str | None = None


class ClassSpread(Record):
    """How often each value occurs in one class, and why the class is shown; counts stand in the order of the values."""

    cells: dict[str, str]
    rows: Count
    why: str
    counts: tuple[Count, ...]

    @property
    def name(self) -> str:
        """The class by its cells."""
        return ", ".join(f"{name} {cell or 'missing'}" for name, cell in self.cells.items())


class SecretSpread(Record):
    """One secret over all published rows and in the classes that tell most about it.

    Many values are gathered: `gathered` says how.
    """

    column: str
    values: tuple[str, ...]
    overall: tuple[Count, ...]
    worst: tuple[ClassSpread, ...]
    gathered: str | None = None


class PublicReport(Document):
    """What may leave with a release: everything here can be computed anew from `out/` alone."""

    what: ClassVar[str] = "the report"
    where: ClassVar[str] = "use a report.json as a release is saved with"

    form: dict[str, dict[str, Any]]
    rows: Count
    suppressed: Count
    columns: tuple[ShownColumn, ...]
    guarantees: tuple[ExplainedGuarantee, ...]
    classes: ClassSizes
    loss: LossRecord
    secrets: tuple[SecretSpread, ...]
    findings: tuple[Finding, ...] = ()
    measures: Measures
    joint: Joint | None = None
    estimates: dict[str, ValueEstimates]
    notes: tuple[str, ...] = ()
    content_sha256: str

    @property
    def ok(self) -> bool:
        """Whether every guarantee holds."""
        return all(told.guarantee.met for told in self.guarantees)

    @property
    def class_word(self) -> str:
        """What rows that belong together are called in this form."""
        return "class" if {"generalized", "perturbed"} & set(self.form) else "bucket"

    @property
    def class_words(self) -> str:
        """Several of these."""
        return {"class": "classes", "bucket": "buckets"}[self.class_word]


class Sample(Record):
    """Some rows of one class as they were and as they are written, not in the same order."""

    raw: tuple[tuple[str, ...], ...]
    raw_columns: tuple[str, ...]
    written: tuple[tuple[str, ...], ...]
    written_columns: tuple[str, ...]
    rows: Count  # of the whole class


class QueryError(Record):
    """How far COUNT queries from the release are off: quartiles and mean of the relative error."""

    column: str  # the secret that is asked for
    lambda_: int
    theta: float
    queries: Count
    skipped: Count
    lower: float | None
    median: float | None
    upper: float | None
    mean: float | None


class AttestedLevel(Record):
    """What was measured for an attested guarantee, which the private report alone states."""

    text: str
    requested: str
    measured: float | None
    rows: Count | None = None  # of the worst class, where the guarantee is about classes
    persons: Count | None = None


class PrivateReport(Document):
    """The public report and what compares with the original, or tells how the release was made: it stays at home."""

    what: ClassVar[str] = "the private report"
    where: ClassVar[str] = "use a report.json of a private folder"

    released: PublicReport
    input_rows: Count | None = None
    duplicates: Count | None = None  # input rows that repeat another one exactly
    levels: tuple[AttestedLevel, ...] = ()
    sample: Sample | None = None
    queries: tuple[QueryError, ...] = ()
    findings: tuple[Finding, ...] = ()
    frontier: Frontier | None = None
    command: str = ""  # makes the same release again
    recipe: dict[str, Any]  # all but the schema, which may be long, and the output
    missing: tuple[str, ...] = ()  # what could not be shown, and why
