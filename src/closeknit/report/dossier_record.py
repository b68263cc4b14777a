"""`Dossier`: what a reviewer of a release reads, as data: the questions of a framework, each with the numbers that answer it.

A page shows the record and nothing else. Every number says where it comes from; a labelled box waits for what a person states.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from closeknit.attacks.finding import Finding
from closeknit.core.certificate import Count, Document, Record

Basis = Literal["recomputable", "attested", "private", "stated"]
BASES: dict[str, str] = {
    "recomputable": "anyone can recompute it from the public files, with the reference population where one is stated",
    "attested": "stated by the data owner in the certificate; a recipient cannot recompute it",
    "private": "computed from the original table; do not share it",
    "stated": "stated by a person",
}


class Answer(Record):
    """A number that answers a question.

    Args:
        label: what it is.
        value: the number, written out.
        basis: where it comes from.
        detail: how to read it.
    """

    label: str
    value: str
    basis: Basis
    detail: str = ""


class Box(Record):
    """What only a person can answer.

    Args:
        key: its name in the file of answers.
        label: what is asked.
        text: the answer; None if there is none yet.
        by: who states it.
        on: when.
    """

    key: str
    label: str
    text: str | None = None
    by: str | None = None
    on: str | None = None


class Question(Record):
    """A question of the framework.

    Args:
        section: where the framework asks it.
        text: the question.
        answers: the numbers.
        boxes: what only a person can answer.
        missing: numbers that this edition does not have, and what they need.
    """

    section: str
    text: str
    answers: tuple[Answer, ...] = ()
    boxes: tuple[Box, ...] = ()
    missing: tuple[str, ...] = ()


class DossierSource(Record):
    """A source of the framework: its title and its address."""

    title: str
    address: str


class Dossier(Document):
    """The dossier of a release for one framework.

    Args:
        framework: its name on the command line.
        title: its full name.
        sources: where it can be read.
        edition: public (without the original) or private (with the original).
        rows: published rows.
        suppressed: suppressed rows.
        content_sha256: the content hash of the release.
        audit: the outcome of the audit.
        signatures: what the audit says about signatures.
        questions: the questions of the framework.
        findings: the attacks that were tried, worst first.
        untried: the attacks that were not tried, with the reason.
        utility: what the release is still good for.
        notes: the notes of the certificate and of the risk measures.
        missing: what this edition cannot show, and why.
    """

    what: ClassVar[str] = "the dossier"
    where: ClassVar[str] = "use a dossier.json that closeknit wrote"

    framework: str
    title: str
    sources: tuple[DossierSource, ...]
    edition: Literal["public", "private"]
    rows: Count
    suppressed: Count
    content_sha256: str
    audit: str
    signatures: tuple[str, ...] = ()
    questions: tuple[Question, ...]
    findings: tuple[Finding, ...] = ()
    untried: tuple[str, ...] = ()
    utility: tuple[Answer, ...] = ()
    notes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def open_boxes(self) -> int:
        """Boxes that are still empty."""
        return sum(box.text is None for question in self.questions for box in question.boxes)

    @property
    def boxes(self) -> int:
        """All boxes."""
        return sum(len(question.boxes) for question in self.questions)
