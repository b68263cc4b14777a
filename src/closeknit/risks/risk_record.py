"""`RiskRecord`: the risk of a table as data, for JSON, reports and pages."""

from __future__ import annotations

from pydantic import Field

from closeknit.core.certificate import Count
from closeknit.core.grids import Summarized, Summary, render_number
from closeknit.core.population_uniques import SPREAD
from closeknit.core.record import Record
from closeknit.risks.attackers import GOALS, least_class_size

THRESHOLDS = ("0.05", "0.09", "0.2")  # as regulators write them
ROUNDED = "Policies round: 1/11 = 0.0909 is above 0.09, so a threshold of 0.09 needs classes of 12, not of 11."
ESTIMATOR_NAMES = {"zayatz": "Zayatz", "pitman": "Pitman", "snb": "slide negative binomial"}
MEANINGS = {
    "exact": "counted, not estimated",
    "estimate": "estimated from the sampling fraction",
    "upper bound": "an upper bound: no population and no sampling fraction is known",
}


def render_people(number: float | None) -> str:
    """An expected number of people.

    >>> render_people(19502.3), render_people(0.0109), render_people(None)
    ('19,502', '0.0109', '-')
    """
    return f"{number:,.0f}" if number is not None and number >= 1000 else render_number(number)


class AttackerRecord(Record):
    """The risk from one attacker.

    Args:
        name: prosecutor, journalist or marketer.
        status: exact, estimate or upper bound.
        highest: the largest risk; None for the marketer.
        average: the mean risk.
        shares: share of people whose risk is above each threshold; empty for the marketer.
    """

    name: str
    status: str
    highest: float | None
    average: float
    shares: dict[str, float] = Field(default_factory=dict)

    @property
    def goal(self) -> str:
        """What the attacker wants."""
        return GOALS[self.name]

    def cells(self) -> list[str]:
        """The line of a table: name, highest, average, shares.

        >>> AttackerRecord(name="marketer", status="exact", highest=None, average=0.25).cells()
        ['marketer', '-', '0.25', '-', '-', '-']
        """
        shares = [f"{100 * self.shares[t]:.1f} %" if t in self.shares else "-" for t in THRESHOLDS]
        return [self.name, render_number(self.highest), render_number(self.average), *shares]


class UniquesRecord(Record):
    """Expected people who are unique in the population.

    Args:
        population: Size of the population.
        expected: Expected number by estimator; None where it has no fit.
        reasons: Why an estimator has no fit.
        rule: The estimator that the decision rule chooses.
        spread: How far the estimators differ.
    """

    population: float
    expected: dict[str, float | None]
    reasons: dict[str, str] = Field(default_factory=dict)
    rule: str

    spread: str = SPREAD  # to be printed next to the numbers

    @property
    def share(self) -> float:
        """The chosen number as a share of the population."""
        chosen = self.expected[self.rule]
        return (chosen or 0.0) / self.population if self.population else 0.0


class RiskRecord(Record):
    """The risk of a table or release.

    Args:
        counted: Whether rows or persons were counted.
        people: Rows or persons that are published.
        suppressed: Rows that are not published, and are in no number here.
        classes: Number of classes.
        uniques: Classes of one person.
        attackers: Prosecutor, journalist and marketer.
        population_uniques: Expected population uniques, where the size of the population is known.
        basis: What the risk of single records is computed from.
        expected_reidentifications: Expected number of re-identified people.
        global_risk: The same as a share.
        household_expected_reidentifications: Expected number of people whose household is re-identified.
        notes: What a reader has to know.
    """

    counted: str
    people: Count
    suppressed: Count = 0
    classes: Count
    uniques: Count
    attackers: tuple[AttackerRecord, ...]
    population_uniques: UniquesRecord | None = None
    basis: str
    expected_reidentifications: float
    global_risk: float
    household_expected_reidentifications: float | None = None
    notes: tuple[str, ...] = ()

    def attacker(self, name: str) -> AttackerRecord:
        """The risk from one attacker, by name."""
        return next(attacker for attacker in self.attackers if attacker.name == name)

    @property
    def pitfall(self) -> str:
        """Why a threshold needs larger classes than its rounded value suggests."""
        return ROUNDED

    def grid(self) -> list[list[str]]:
        """Attackers as a table whose first row is its heading."""
        return [["attacker", "highest", "average", *(f"above {t}" for t in THRESHOLDS)], *(a.cells() for a in self.attackers)]

    def legend(self) -> list[str]:
        """What the table shows, in sentences."""
        sizes = ", ".join(f"classes of {least_class_size(t)} meet {t}" for t in THRESHOLDS)
        counted = [f"The {attacker.name} {attacker.goal} ({MEANINGS[attacker.status]})." for attacker in self.attackers]
        lines = [*counted, f"'above': share of {self.counted} whose risk is above the threshold; {sizes}.", ROUNDED]
        everyone = self.people + self.suppressed
        if self.suppressed:
            published = f"the {self.people:,} that are published; as shares of all {everyone:,} multiply by"
            lines.append(
                f"{self.suppressed:,} suppressed rows are not counted: shares are of {published} {self.people / everyone:.4f}."
            )
        return lines


class RiskChange(Summarized, Record):
    """The risk of a table and of its release.

    Args:
        before: Risk of the original table.
        after: Risk of the release.
    """

    before: RiskRecord
    after: RiskRecord

    def lines(self) -> list[list[str]]:
        """The comparison as a table whose first row is its heading."""
        return compare_risks(self.before, self.after)

    def summary(self) -> Summary:
        """Return the comparison as a table."""
        return Summary("Risk before and after", self.lines())


def compare_risks(before: RiskRecord, after: RiskRecord) -> list[list[str]]:
    """Risk before and after anonymization, as a table whose first row is its heading.

    Args:
        before: Risk of the original table.
        after: Risk of the release.
    """
    lines = [["attacker", "measure", "before", "after"]]
    for old in before.attackers:
        new = after.attacker(old.name)
        if old.highest is not None:
            lines.append([old.name, "highest", render_number(old.highest), render_number(new.highest)])
        lines.append([old.name, "average", render_number(old.average), render_number(new.average)])
        for t in old.shares:
            cells = (f"{100 * one.shares[t]:.1f} %" for one in (old, new))
            lines.append([old.name, f"share above {t}", *cells])
    lines.append(["all", f"unique {before.counted}", f"{before.uniques:,}", f"{after.uniques:,}"])
    return lines
