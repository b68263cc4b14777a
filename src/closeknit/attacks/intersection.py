"""Intersection: what several releases, or several rows of one person, tell together that none tells alone.

The attacker knows the quasi-identifiers of its victims, that they are in both releases (or that several rows of a stream are
one person's), and that their secret did not change. Each release leaves the victim the values that stand beside cells which
cover it; the victim has one that all of them leave. Classes of a stream, and releases made one after the other, keep their
guarantees each by itself and not together: {flu, gout} and {gout, ulcer} are both diverse, and leave gout.

The number is the share of victims with a single value left, their own where it is known. `risk`: 1 / (values left to the
worst-off victim), taken as equally likely.

Source: the thesis on SABRE and BUREL, ch. 5.
Different from the source: it is silent on persons who come more than once; here their rows are put together. Where no value is
left the victim was not in both, or was suppressed; such victims are left out and counted.

Cost: covering cells of each victim, and the values beside them. More than `most` victims are drawn from (`seed`), in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from closeknit.attacks.beliefs import NotApplicable
from closeknit.attacks.covering import people_of
from closeknit.attacks.finding import Finding
from closeknit.attacks.finding_texts import format_count
from closeknit.attacks.possible_values import Values, true_texts, value_sets
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.core.params import whole
from closeknit.core.reading import Reading
from closeknit.core.schema import Schema
from closeknit.forms.release_reading import Published, reading_of

MOST = 50_000
Int64 = NDArray[np.int64]


def intersection(
    one: Published,
    other: Published | None,
    victims: Any,
    schema: Schema | None = None,
    secret: str | None = None,
    most: int = MOST,
    seed: int = 0,
) -> Finding:
    """Values that two releases leave to each victim; without another release, those that several rows of a person leave.

    `victims` are rows of people with their quasi-identifiers; with the person column of the schema, rows of one person are put
    together. Where they have the secret too, a single value that is left counts only if it is the true one.

    >>> import closeknit as ck
    >>> schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})
    >>> table = Columns.of({"age": [30, 40, 50, 60], "ill": ["flu", "gout", "ulcer", "flu"]})
    >>> early = ck.anonymize(table.take(np.array([0, 1, 3])), schema, [ck.KAnonymity(2)])
    >>> late = ck.anonymize(table.take(np.array([1, 2])), schema, [ck.KAnonymity(2)])
    >>> found = intersection(early, late, table, schema)
    >>> found.number, found.details["victims"], found.details["alone"]
    (0.5, 2, 0)
    """
    readings = [reading_of(release) for release in (one, other) if release is not None]
    name = _secret(readings, secret)
    people = people_of(victims, readings[0], schema)
    who = Victims.of(people, schema, name, len(readings))
    rows = who.draw_sample(whole("most", most, 1), seed)
    values = Values.of(readings, name)
    sets = [value_sets(reading, people.take(rows.rows), schema, name, values) for reading in readings]
    return _build_finding(rows, sets, values, name)


@dataclass(frozen=True, eq=False)
class Victims:
    """Rows of people, the victim that each belongs to, and what is true of it (None where that is not known)."""

    rows: Int64
    victim_of: Int64
    truth: list[str] | None  # by row
    everybody: int

    @classmethod
    def of(cls, people: Columns, schema: Schema | None, secret: str, releases: int) -> Victims:
        """Rows of one person with one secret are one victim; of a single release only those with several rows."""
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
                raise NotApplicable("nobody is known to have several rows with one secret", right=right)
            _, victim_of = np.unique(victim_of, return_inverse=True)
        return cls(rows, victim_of, truth, int(victim_of.max()) + 1)

    def draw_sample(self, most: int, seed: int) -> Victims:
        """All of them, or as many as `most`."""
        if self.everybody <= most:
            return self
        chosen = np.sort(np.random.default_rng(seed).choice(self.everybody, most, replace=False))
        kept = np.flatnonzero(np.isin(self.victim_of, chosen))
        truth = None if self.truth is None else [self.truth[i] for i in kept.tolist()]
        return Victims(self.rows[kept], np.searchsorted(chosen, self.victim_of[kept]), truth, self.everybody)


def _changing(person: Int64, truth: list[str] | None) -> Int64:
    """Persons whose rows have different secrets: nothing can be put together of these."""
    if truth is None:
        return np.empty(0, dtype=np.int64)
    pairs = np.unique(np.stack([person, np.unique(truth, return_inverse=True)[1]]), axis=1)
    found, counts = np.unique(pairs[0], return_counts=True)
    return found[counts > 1]


def _secret(readings: list[Reading], secret: str | None) -> str:
    shared = [name for name in readings[0].schema.sensitive if all(name in each.schema.sensitive for each in readings)]
    if not shared or (secret is not None and secret not in shared):
        right = "secrets of all of them are: " + (", ".join(shared) or "none")
        raise BadInput("the releases do not share such a secret", column=secret, right=right)
    return secret or shared[0]


def intersect_sets(victims: Victims, sets: list[csr_array]) -> csr_array:
    """Values in every set of a victim: [victims, values], 0 or 1."""
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
    """Victims with one value left, which is not a wrong one."""
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
    told = [victims.victim_of[_find_disclosed(alone, each, values) & both[victims.victim_of]] for each in sets]
    before = max(len(np.unique(people)) for people in told)  # whoever has a row that tells it by itself, counted once
    count, smallest = int(both.sum()), int(sizes[both].min()) if both.any() else 0
    what = "both releases" if len(sets) > 1 else "the rows of a person"
    drawn = "" if victims.everybody == len(sizes) else f" (drawn from {victims.everybody:,})"
    return Finding(
        attack="intersection",
        knows="quasi-identifiers of people in both releases" if len(sets) > 1 else "which rows are those of one person",
        column=secret,
        measure="share of victims with one value left",
        number=given / count if count else None,
        risk=1 / smallest if smallest else 0.0,
        sentence=f"{what[0].upper()}{what[1:]} together leave a single value to {given:,} of "
        f"{format_count(count, 'person', 'people')}{drawn}, and at least {smallest:,} to each; "
        f"{'one alone does' if len(sets) > 1 else 'single rows do'} to {before:,}."
        if count
        else f"{what[0].upper()}{what[1:]} together leave no value to anybody: nobody is in all of them.",
        details={
            "victims": count,
            "drawn_from": victims.everybody,
            "given_away": given,
            "alone": before,
            "fewest_values": smallest,
            "mean_values": float(sizes[both].mean()) if count else None,
            "nothing_left": int((~both).sum()),
        },
    )
