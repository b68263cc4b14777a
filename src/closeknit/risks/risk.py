"""`Risk`: every risk measure of one table or release."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from closeknit.core.certificate import Certificate
from closeknit.core.columns import Column
from closeknit.core.exact import Floats, Ints
from closeknit.core.grids import Summarized, Summary
from closeknit.core.population_uniques import ESTIMATORS, PopulationUniques, estimate_population_uniques
from closeknit.core.reading import Reading
from closeknit.risks.attackers import AttackerRisk, Attackers, MarketerRisk, measure_attackers
from closeknit.risks.class_counts import ClassCounts
from closeknit.risks.risk_record import THRESHOLDS, AttackerRecord, RiskChange, RiskRecord, UniquesRecord, render_people
from closeknit.risks.sample_weights import RecordRisk, measure_records

NO_POPULATION = "the size of the population is unknown: give the population or the sampling fraction"
WILDCARD = "missing cells match every other cell: for comparison with other tools only"
NO_CLASSES = "rows whose missing cells match every other cell form no classes"
BUCKETS = (
    "quasi-identifiers are published exactly: a class is a bucket, and the risk is that of finding a person's sensitive values"
)
ROWS_OF_PERSONS = "a person may have several rows, and persons are not published: counted in rows, the risk is a lower bound"
ATTESTED = "counted in persons, who are not published: a recipient cannot recompute these numbers"
TOO_SMALL = "the estimated population is smaller than the class itself in {} classes: their risk is 1 / (people of the class)"


@dataclass(frozen=True, eq=False, repr=False)
class Risk(Summarized):
    """The re-identification risk of a table or release; private where the table is.

    Args:
        counts: The classes.
        attackers: Risk from the three attackers.
        uniques: Estimated population uniques, where the size of the population is known.
        records: Risk of single records.
        basis: What the risk of single records is computed from.
        notes: What a reader has to know.
    """

    counts: ClassCounts
    attackers: Attackers
    uniques: PopulationUniques | None
    records: RecordRisk
    basis: str
    notes: tuple[str, ...] = ()

    @property
    def prosecutor(self) -> AttackerRisk:
        """Risk from an attacker who knows that the person is in the table."""
        return self.attackers.prosecutor

    @property
    def journalist(self) -> AttackerRisk:
        """Risk from an attacker who does not know who is in the table."""
        return self.attackers.journalist

    @property
    def marketer(self) -> MarketerRisk:
        """Risk from an attacker who wants to find many people."""
        return self.attackers.marketer

    @property
    def sample_uniques(self) -> int:
        """Classes of one person."""
        return int((self.counts.among == 1).sum())

    @property
    def population_uniques(self) -> dict[str, float | None]:
        """Expected number of population uniques by estimator: zayatz, pitman, snb; None with a reason in `reasons`."""
        return dict.fromkeys(ESTIMATORS) if self.uniques is None else self.uniques.expected

    @property
    def reasons(self) -> dict[str, str]:
        """Why an estimator has no value."""
        return dict.fromkeys(ESTIMATORS, self._unestimated) if self.uniques is None else self.uniques.reasons

    @property
    def population_uniques_rule(self) -> str | None:
        """The estimator that Dankar's rule chooses; None if there is none."""
        return None if self.uniques is None else self.uniques.rule

    @property
    def _unestimated(self) -> str:
        return NO_POPULATION if self.counts.among is self.counts.people else NO_CLASSES

    @property
    def individual(self) -> Floats:
        """Risk of each row, in the order of the table."""
        return self.records.of_row

    @property
    def expected_reidentifications(self) -> float:
        """Expected number of re-identified people."""
        return self.records.expected

    @property
    def global_risk(self) -> float:
        """Expected share of re-identified people."""
        return self.records.expected / self.counts.total if self.counts.total else 0.0

    @property
    def household(self) -> Floats | None:
        """Risk of each row's household; None if households are unknown."""
        return self.records.households

    @property
    def household_expected_reidentifications(self) -> float | None:
        """Expected number of people whose household is re-identified; None if households are unknown."""
        return self.records.expected_in_households

    @cached_property
    def record(self) -> RiskRecord:
        """The same numbers as data, without a row of the table."""
        shown = [
            AttackerRecord(
                name=each.name,
                status=each.status,
                highest=each.highest,
                average=each.average,
                shares={t: each.share_above(t) for t in THRESHOLDS},
            )
            for each in (self.prosecutor, self.journalist)
        ]
        shown.append(AttackerRecord(name="marketer", status=self.marketer.status, highest=None, average=self.marketer.average))
        return RiskRecord(
            counted=self.counts.counted,
            people=self.counts.total,
            suppressed=self.counts.suppressed,
            classes=len(self.counts.people),
            uniques=self.sample_uniques,
            attackers=tuple(shown),
            population_uniques=_record_uniques(self.uniques),
            basis=self.basis,
            expected_reidentifications=self.expected_reidentifications,
            global_risk=self.global_risk,
            household_expected_reidentifications=self.household_expected_reidentifications,
            notes=self.notes,
        )

    def compare_with(self, after: Risk) -> RiskChange:
        """This risk next to that of a release of the same table.

        Args:
            after: The risk of the release.
        """
        return RiskChange(before=self.record, after=after.record)

    def summary(self) -> Summary:
        """Return the attackers as a table, and the other measures as notes."""
        record = self.record
        title = f"Risk of {record.people:,} {record.counted} in {record.classes:,} classes, {record.uniques:,} of them unique"
        more = [f"expected re-identifications: {render_people(record.expected_reidentifications)} ({record.basis})"]
        if record.population_uniques is not None:
            chosen = record.population_uniques
            number = render_people(chosen.expected[chosen.rule])
            more.append(f"population uniques: {number} expected ({chosen.rule}); the estimators differ, compare them")
        return Summary(title, record.grid(), [*more, *record.notes])


def _record_uniques(found: PopulationUniques | None) -> UniquesRecord | None:
    if found is None:
        return None
    return UniquesRecord(population=float(found.population), expected=found.expected, reasons=found.reasons, rule=found.rule)


def count_release(reading: Reading, certificate: Certificate) -> tuple[ClassCounts, tuple[str, ...]]:
    """Count the classes of written cells, and what a reader of their risk has to know.

    Args:
        reading: The written cells.
        certificate: The certificate of the release.
    """
    notes: tuple[str, ...] = (BUCKETS,) if reading.column_groups else ()
    if any(guarantee.status == "attested" and not guarantee.why for guarantee in certificate.guarantees):
        notes += (ROWS_OF_PERSONS,)
    return ClassCounts.of_reading(reading, certificate.suppressed), notes


def measure_risk(
    counts: ClassCounts,
    *,
    covered: Ints | None = None,
    population: Fraction | None = None,
    fraction: Fraction | None = None,
    weights: Floats | None = None,
    household: Column | None = None,
    notes: tuple[str, ...] = (),
) -> Risk:
    """Measure every risk of classes.

    Args:
        counts: The classes.
        covered: People of the population whom each class covers, where a list of the population is given.
        population: Size of the population.
        fraction: Share of the population that is in the table, where there is no list.
        weights: Sample weight of each row.
        household: Household of each row.
        notes: What a reader has to know.

    >>> import numpy as np
    >>> from closeknit.core.columns import Columns
    >>> from closeknit.core.kinds import flat
    >>> from closeknit.core.schema import Schema
    >>> table = Columns.of({"sex": ["f", "f", "m"]})
    >>> found = measure_risk(ClassCounts.of_table(table, Schema(quasi={"sex": flat()})), fraction=Fraction(1, 2))
    >>> found.prosecutor.highest, round(found.journalist.highest, 6), found.marketer.status
    (1.0, 0.693147, 'estimate')
    """
    wildcard = counts.among is not counts.people
    notes = (*notes, *((WILDCARD,) if wildcard else ()), *((ATTESTED,) if counts.counted == "persons" else ()))
    records = measure_records(counts, covered, weights, None if fraction is None else float(fraction), household)
    notes += (TOO_SMALL.format(f"{records.above_sample:,}"),) if records.above_sample else ()
    uniques = None
    if population is not None and not wildcard:
        uniques = estimate_population_uniques(counts.sizes, population)
    basis = "choosing at random in the class"
    if weights is not None:
        basis = "from sample weights"
    elif covered is not None:
        basis = "choosing at random among matching people of the population"
    elif fraction is not None:
        basis = "from the sampling fraction"
    return Risk(counts, measure_attackers(counts, covered, fraction), uniques, records, basis, notes)
