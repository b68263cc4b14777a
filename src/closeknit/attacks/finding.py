"""`Finding`: what one attack gets out of a release: a number, what it is, and what it means for the people in the table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import Field

from closeknit.core.certificate import Record
from closeknit.core.combined_secrets import Secret, render_secret
from closeknit.core.grids import Summarized, Summary

Detail = float | int | str | None


class Finding(Summarized, Record):
    """What an attacker reaches, at worst.

    `risk` orders attacks of all kinds: 0 where the release adds nothing to what was known before, 1 where it gives somebody
    away for sure. It is the probability to be right about the worst-off person where the attack has one, and else what each
    attack says of it.

    >>> told = Finding(attack="homogeneity", knows="quasi-identifiers of somebody in the table", column="disease",
    ...                measure="largest posterior", number=1, risk=1, sentence="Of 3 people the disease is plain.")
    >>> print(told)
    1.000  homogeneity of disease: Of 3 people the disease is plain.
    """

    attack: str  # the name of its function
    knows: str  # what the attacker knows besides the release
    column: Secret | None = None  # the secret, where it is after one
    measure: str  # what the number is
    number: float | None  # None where it has no limit, or there is nothing to measure
    risk: float = Field(ge=0, le=1)
    sentence: str
    details: dict[str, Detail] = Field(default_factory=dict)

    def summary(self) -> Summary:
        """The finding alone."""
        return findings_summary("Finding", [self])

    def __str__(self) -> str:
        of = f" of {render_secret(self.column)}" if self.column else ""
        return f"{self.risk:.3f}  {self.attack.replace('_', ' ')}{of}: {self.sentence}"


def findings_summary(title: str, findings: Sequence[Finding], notes: Sequence[str] = ()) -> Summary:
    """Findings as a notebook shows them."""
    rows = [
        [f"{each.risk:.3f}", each.attack.replace("_", " "), render_secret(each.column) if each.column else "", each.sentence]
        for each in findings
    ]
    return Summary(title, [["risk", "attack", "column", "what it means"], *rows], notes)


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """By risk, then by name, so that equal ones stand in one order."""
    return sorted(findings, key=lambda found: (-found.risk, found.attack, str(found.column)))
