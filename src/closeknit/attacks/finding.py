"""`Finding`: the result of one attack, as a number, its meaning, and a sentence about the people in the table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import Field

from closeknit.core.certificate import Record
from closeknit.core.combined_secrets import Secret, render_secret
from closeknit.core.grids import Summarized, Summary

Detail = float | int | str | None


class Finding(Summarized, Record):
    """The worst case of one attack on a release.

    `risk` orders attacks of all kinds: 0 where the release adds nothing to prior knowledge, 1 where it discloses a person's
    record or value with certainty. It is the probability of being right about the most exposed person where the attack has
    one; otherwise the attack's documentation defines it.

    Args:
        attack: Name of the attack's function.
        knows: What the adversary knows in addition to the release.
        column: Sensitive attribute under attack, or None.
        measure: What `number` is.
        number: The measured number; None where it has no limit or there is nothing to measure.
        risk: Risk between 0 and 1.
        sentence: The finding in one sentence.
        details: Further numbers and texts by name.

    >>> found = Finding(attack="homogeneity", knows="quasi-identifiers of a person in the table", column="disease",
    ...                 measure="largest posterior", number=1, risk=1, sentence="For 3 people the class reveals the disease.")
    >>> print(found)
    1.000  homogeneity of disease: For 3 people the class reveals the disease.
    """

    attack: str
    knows: str
    column: Secret | None = None
    measure: str
    number: float | None
    risk: float = Field(ge=0, le=1)
    sentence: str
    details: dict[str, Detail] = Field(default_factory=dict)

    def summary(self) -> Summary:
        """Return the finding as a table of one row."""
        return findings_summary("Finding", [self])

    def __str__(self) -> str:
        of = f" of {render_secret(self.column)}" if self.column else ""
        return f"{self.risk:.3f}  {self.attack.replace('_', ' ')}{of}: {self.sentence}"


def findings_summary(title: str, findings: Sequence[Finding], notes: Sequence[str] = ()) -> Summary:
    """Return findings as the table that a notebook shows."""
    rows = [
        [f"{each.risk:.3f}", each.attack.replace("_", " "), render_secret(each.column) if each.column else "", each.sentence]
        for each in findings
    ]
    return Summary(title, [["risk", "attack", "column", "what it means"], *rows], notes)


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings by risk, then by name, so that the order of equal ones is fixed.

    Args:
        findings: Findings of any attacks.

    Returns:
        The findings, the largest risk first.
    """
    return sorted(findings, key=lambda found: (-found.risk, found.attack, str(found.column)))
