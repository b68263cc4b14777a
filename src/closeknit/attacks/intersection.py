"""Intersection: several releases, or several rows of one person, together reveal what none reveals alone.

The adversary knows the quasi-identifiers of people, that they are in both releases (or that several rows of a stream belong to
one person), and that their sensitive value did not change. Each release leaves a person the values in rows whose cells cover
the person; the person has one that all releases leave. Classes of a stream, and consecutive releases, meet their guarantees
each alone and not together: {flu, gout} and {gout, ulcer} are both diverse, and leave gout.

The number is the share of people with a single value left, their own where it is known. `risk`: 1 / (values left for the most
exposed person), taken as equally likely.

Source: the thesis on SABRE and BUREL, ch. 5.
Different from the source: it does not treat persons with several rows; here their rows are combined. Where no value is left the
person is not in both releases, or was suppressed; such people are left out and counted.

Cost: covering cells of each person, and their values. More than `most` people are sampled (`seed`), in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from closeknit.attacks.beliefs import NotApplicable
from closeknit.attacks.covering import people_of, schema_of_other
from closeknit.attacks.finding import Finding
from closeknit.attacks.finding_texts import format_count
from closeknit.attacks.possible_values import Values, true_texts, value_sets
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.core.limits import MOST_DRAWS
from closeknit.core.params import whole
from closeknit.core.reading import Reading
from closeknit.core.schema import Schema
from closeknit.forms.release_reading import Published, reading_of
from closeknit.kernels.arrays import Int64

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MOST = 50_000


def intersection(
    one: Published,
    other: Published | None,
    victims: Any,
    schema: Schema | None = None,
    secret: str | None = None,
    most: int = MOST,
    seed: int = 0,
) -> Finding:
    """Measure the values that two releases leave for each person, or that several rows of a person leave in one release.

    Args:
        one: The release under attack.
        other: Another release of the same people; None combines the rows of each person in `one`.
        victims: Rows of people with their quasi-identifiers, as a frame, file or `Columns`. Rows with equal values in the
            schema's person column are combined. If they have the sensitive attribute, a single value that is left counts
            only if it is the true one.
        schema: Schema of the columns of `victims`; None reads it from the certificates as far as possible. The other
            release is read by its own certificate.
        secret: Sensitive attribute under attack; None takes the first that the releases share.
        most: Largest number of people; more are sampled.
        seed: Seed of the sample.

    >>> import closeknit as ck
    >>> schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})
    >>> table = Columns.of({"age": [30, 40, 50, 60], "ill": ["flu", "gout", "ulcer", "flu"]})
    >>> early = ck.anonymize(table.take(np.array([0, 1, 3])), schema, [ck.KAnonymity(2)])
    >>> late = ck.anonymize(table.take(np.array([1, 2])), schema, [ck.KAnonymity(2)])
    >>> found = intersection(early, late, table, schema)
    >>> found.number, found.details["victims"], found.details["alone"]
    (0.5, 2, 0)
    """
    most = whole("most", most, 1, MOST_DRAWS)
    readings = [reading_of(release) for release in (one, other) if release is not None]
    schemas = [schema, *(schema_of_other(reading, schema) for reading in readings[1:])]
    name = _secret(readings, secret)
    people = people_of(victims, readings[0], schema, readings[-1])
    drawn = Victims.of(people, schema, name, len(readings)).draw_sample(most, seed)
    values = Values.of(readings, name)
    sets = [
        value_sets(reading, people.take(drawn.rows), of, name, values) for reading, of in zip(readings, schemas, strict=True)
    ]
    return _build_finding(drawn, sets, values, name)


@dataclass(frozen=True, eq=False)
class Victims:
    """Rows of people, the person to whom each belongs, and the true value of each (None where it is unknown)."""

    rows: Int64
    victim_of: Int64
    truth: list[str] | None  # by row
    population: int

    @classmethod
    def of(cls, people: Columns, schema: Schema | None, secret: str, releases: int) -> Victims:
        """Combine the rows of one person with one value; of a single release only persons with several rows."""
        rows, truth = np.arange(people.rows), None
        victim_of = rows.copy()
        if schema is not None and secret in people:
            truth = true_texts(people, schema, secret)
        if schema is not None and schema.person is not None and schema.person in people:
            person = people[schema.person].codes.astype(np.int64)
            changing = _changing(person, truth)
            victim_of = np.where(np.isin(person, changing) | (person < 0), person.max() + 1 + rows, person)
        _, victim_of = np.unique(victim_of, return_inverse=True)
        if releases == 1:
            several = np.bincount(victim_of)[victim_of] > 1
            rows, victim_of = rows[several], victim_of[several]
            truth = None if truth is None else [truth[row] for row in rows.tolist()]
            if len(rows) == 0:
                right = "give another release, or a schema with a person column"
                raise NotApplicable("no person is known to have several rows with one sensitive value", right=right)
            _, victim_of = np.unique(victim_of, return_inverse=True)
        return cls(rows, victim_of, truth, int(victim_of.max()) + 1)

    def draw_sample(self, most: int, seed: int) -> Victims:
        """Return all of them, or a sample of `most`."""
        if self.population <= most:
            return self
        chosen = np.sort(np.random.default_rng(seed).choice(self.population, most, replace=False))
        kept = np.flatnonzero(np.isin(self.victim_of, chosen))
        truth = None if self.truth is None else [self.truth[i] for i in kept.tolist()]
        return Victims(self.rows[kept], np.searchsorted(chosen, self.victim_of[kept]), truth, self.population)


def _changing(person: Int64, truth: list[str] | None) -> Int64:
    """Return persons whose rows have different values: their rows cannot be combined."""
    if truth is None:
        return np.empty(0, dtype=np.int64)
    pairs = np.unique(np.stack([person, np.unique(truth, return_inverse=True)[1]]), axis=1)
    found, counts = np.unique(pairs[0], return_counts=True)
    return found[counts > 1]


def _secret(readings: list[Reading], secret: str | None) -> str:
    shared = [name for name in readings[0].schema.sensitive if all(name in each.schema.sensitive for each in readings)]
    if not shared or (secret is not None and secret not in shared):
        right = "they share: " + (", ".join(shared) or "none")
        raise BadInput("the releases do not share this sensitive attribute", column=secret, right=right)
    return secret or shared[0]


def intersect_sets(victims: Victims, sets: list[csr_array]) -> csr_array:
    """Return the values in every set of a person: [people, values], 0 or 1."""
    from scipy.sparse import csr_array

    count = int(victims.victim_of.max()) + 1
    rows = len(victims.rows)
    belongs = csr_array((np.ones(rows, dtype=np.int32), (victims.victim_of, np.arange(rows))), shape=(count, rows))
    found = belongs @ sum(sets[1:], start=sets[0])
    needed = len(sets) * np.bincount(victims.victim_of, minlength=count)
    found = csr_array(found)
    found.data = (found.data == np.repeat(needed, np.diff(found.indptr))).astype(np.int32)
    found.eliminate_zeros()
    return found


def _find_disclosed(victims: Victims, left: csr_array, values: Values) -> NDArray[np.bool_]:
    """Return the people with one value left that is not a wrong one."""
    single = np.diff(left.indptr) == 1
    if victims.truth is not None:
        true = np.empty(left.shape[0], dtype=np.int64)
        true[victims.victim_of] = values.codes(victims.truth)
        first = np.append(left.indices, -1)[np.minimum(left.indptr[:-1], len(left.indices))]
        single &= first == true
    return single


def _build_finding(victims: Victims, sets: list[csr_array], values: Values, secret: str) -> Finding:
    left = intersect_sets(victims, sets)
    sizes = np.diff(left.indptr)
    both = sizes > 0
    given = int(_find_disclosed(victims, left, values).sum())
    alone = Victims(victims.rows, np.arange(len(victims.rows)), victims.truth, len(victims.rows))
    single = [victims.victim_of[_find_disclosed(alone, each, values) & both[victims.victim_of]] for each in sets]
    before = max(len(np.unique(people)) for people in single)  # people with a row that discloses alone, each counted once
    count, smallest = int(both.sum()), int(sizes[both].min()) if both.any() else 0
    several = len(sets) > 1
    what = f"{'Both releases' if several else 'The rows of a person'} together leave"
    drawn = "" if victims.population == len(sizes) else f" (drawn from {victims.population:,})"
    return Finding(
        attack="intersection",
        knows="quasi-identifiers of people in both releases" if several else "which rows belong to one person",
        column=secret,
        measure="share of people with one value left",
        number=given / count if count else None,
        risk=1 / smallest if smallest else 0.0,
        sentence=f"{what} a single value of `{secret}` for {given:,} of {format_count(count, 'person', 'people')}{drawn}, and "
        f"at least {smallest:,} for each; {'one release alone does' if several else 'single rows do'} so for {before:,}."
        if count
        else f"{what} no value of `{secret}` for anyone: no one is in {'both' if several else 'all of them'}.",
        details={
            "victims": count,
            "drawn_from": victims.population,
            "given_away": given,
            "alone": before,
            "fewest_values": smallest,
            "mean_values": float(sizes[both].mean()) if count else None,
            "nothing_left": int((~both).sum()),
        },
    )
