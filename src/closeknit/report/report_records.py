"""The contents of a report as data: `PublicReport` uses release and certificate alone, `PrivateReport` the original too.

A page shows a record and nothing else, and the record is saved next to it, so that other tools can render their own.
"""

from __future__ import annotations

from typing import Any, ClassVar

from closeknit.attacks.finding import Finding
from closeknit.core.certificate import ClassSizes, Count, Document, Guarantee, Joint, LossRecord, Record, ValueEstimates
from closeknit.core.frontier import Frontier
from closeknit.core.loss import LossBound
from closeknit.metrics.learning import Retraining
from closeknit.metrics.measures import Measures
from closeknit.metrics.usefulness import Usefulness
from closeknit.risks.risk_record import RiskChange, RiskRecord


class ExplainedGuarantee(Record):
    """A guarantee of the certificate, and its meaning for the people in the table."""

    guarantee: Guarantee
    means: str


class ShownColumn(Record):
    """A published column with its role and kind."""

    name: str
    role: str
    kind: str | None = None


class ClassSpread(Record):
    """The distribution of a sensitive attribute in one class, and why it is shown; `counts` are in the order of the values."""

    cells: dict[str, str]
    rows: Count
    why: str
    counts: tuple[Count, ...]

    @property
    def name(self) -> str:
        """The cells of the class in words."""
        return ", ".join(f"{name} {cell or 'missing'}" for name, cell in self.cells.items())


class SecretSpread(Record):
    """The distribution of one sensitive attribute over all published rows and in the classes that disclose most about it.

    Many values are grouped: `gathered` says how.
    """

    column: str
    values: tuple[str, ...]
    overall: tuple[Count, ...]
    worst: tuple[ClassSpread, ...]
    gathered: str | None = None


class PublicReport(Document):
    """The public report: everything here can be recomputed from the public files."""

    what: ClassVar[str] = "the report"
    where: ClassVar[str] = "use the report.json of a release"

    form: dict[str, dict[str, Any]]
    rows: Count
    suppressed: Count
    columns: tuple[ShownColumn, ...]
    guarantees: tuple[ExplainedGuarantee, ...]
    classes: ClassSizes
    loss: LossRecord
    secrets: tuple[SecretSpread, ...]
    findings: tuple[Finding, ...] = ()
    untried: tuple[str, ...] = ()  # attacks that do not apply, or need more than the public files, with the reason
    measures: Measures
    joint: Joint | None = None
    estimates: dict[str, ValueEstimates]
    risk: RiskRecord | None = None
    notes: tuple[str, ...] = ()
    content_sha256: str

    @property
    def ok(self) -> bool:
        """Whether every guarantee is met."""
        return all(explained.guarantee.met for explained in self.guarantees)

    @property
    def class_word(self) -> str:
        """The name of a group of rows in this form: class or bucket."""
        return "class" if {"generalized", "perturbed"} & set(self.form) else "bucket"

    @property
    def class_words(self) -> str:
        """Its plural."""
        return {"class": "classes", "bucket": "buckets"}[self.class_word]


class Sample(Record):
    """Some rows of one class before and after, not in the same order."""

    raw: tuple[tuple[str, ...], ...]
    raw_columns: tuple[str, ...]
    written: tuple[tuple[str, ...], ...]
    written_columns: tuple[str, ...]
    rows: Count  # of the whole class


class QueryError(Record):
    """The relative error of COUNT queries on the release: quartiles and mean."""

    column: str  # the sensitive attribute of the queries
    lambda_: int
    theta: float
    queries: Count
    skipped: Count
    lower: float | None
    median: float | None
    upper: float | None
    mean: float | None


class AttestedLevel(Record):
    """The measured level of an attested guarantee, which only the private report states."""

    text: str
    requested: str
    measured: float | None
    rows: Count | None = None  # of the worst class, if the guarantee is about classes
    persons: Count | None = None


class PrivateReport(Document):
    """The public report, comparisons with the original, and how to repeat the release. Do not share it."""

    what: ClassVar[str] = "the private report"
    where: ClassVar[str] = "use a report.json of a private folder"

    released: PublicReport
    input_rows: Count | None = None
    duplicates: Count | None = None  # input rows that repeat another one exactly
    levels: tuple[AttestedLevel, ...] = ()
    sample: Sample | None = None
    queries: tuple[QueryError, ...] = ()
    usefulness: Usefulness | None = None
    learning: Retraining | None = None  # for the target that was chosen
    findings: tuple[Finding, ...] = ()
    risk: RiskChange | None = None
    frontier: Frontier | None = None
    bound: LossBound | None = None  # of the loss of every release under the same guarantees
    command: str = ""  # repeats the release
    recipe: dict[str, Any]  # all but the schema, which may be long, and the output
    missing: tuple[str, ...] = ()  # what could not be shown, and why
