"""Every attack that needs more than the release: the original rows, a population, another release, the method. At home only.

What is found compares the release with what it was made of; it must not leave with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.attacks.beliefs import NotApplicable
from closeknit.attacks.candidate_rows import candidate_rows
from closeknit.attacks.covering import people_of
from closeknit.attacks.deals import Deals
from closeknit.attacks.finding import Finding, worst_first
from closeknit.attacks.intersection import intersection
from closeknit.attacks.matching_buckets import matching_buckets
from closeknit.attacks.minimality import Rerun, TriedWays, try_ways
from closeknit.attacks.population import population_linkage
from closeknit.attacks.presence import delta_presence
from closeknit.attacks.range_ends import singling_out
from closeknit.attacks.row_join import row_join
from closeknit.core.limits import MOST_RUNS
from closeknit.core.params import whole
from closeknit.core.reading import Reading
from closeknit.core.schema import Schema
from closeknit.forms.release_reading import Published, reading_of

RUNS = 200  # of a method, for a small table
ROWS_RUN = 500_000  # rows of all runs together, for a large one
LEAST = 20  # runs
ROOM = 1 << 24  # cells that members of a class may be dealt, each counted for each member: memory
CLASSES = 4  # that are tried one by one, at least


def with_original(
    published: Published,
    original: Any,
    schema: Schema,
    *,
    population: Any = None,
    other: Published | None = None,
    rerun: Rerun | None = None,
    class_of: NDArray[np.integer] | None = None,
    runs: int | None = None,
    seed: int = 0,
) -> list[Finding]:
    """What attackers get who have more than the release, worst first; each attack that its arguments allow.

    `rerun` makes the written cells of a release of a table by the same method, and `class_of` is the class of each original
    row (`Release.partition`): both are needed for minimality, with `runs` runs of the method.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(60), ck.datasets.hospital_schema()
    >>> release = ck.anonymize(table, schema, [ck.KAnonymity(5)])
    >>> [found.attack for found in with_original(release, table, schema, population=table)]
    ['singling_out', 'candidate_rows', 'population_linkage', 'delta_presence']
    """
    reading = reading_of(published)
    people = people_of(original, reading, schema)
    if reading.column_groups:
        found = [matching_buckets(published, people, schema, population, seed)]
    else:
        found = [candidate_rows(published, people, schema), *_run_if_applicable(singling_out, published, people, schema)]
    if population is not None:
        found += with_population(published, population, schema)
    told = [name for name in reading.schema.sensitive if name not in reading.retained]
    if other is not None:
        theirs = reading_of(other)
        shared = [name for name in told if name in theirs.schema.sensitive and name not in theirs.retained]
        found += [intersection(published, other, people, schema, name, seed=seed) for name in shared]
        found += with_other(published, other, original, schema)
    if schema.person is not None and schema.person in people:  # else nobody is known to have several rows
        found += [
            each for name in told for each in _run_if_applicable(intersection, published, None, people, schema, name, seed=seed)
        ]
    if rerun is not None and class_of is not None and not reading.retained:
        found += _minimality(reading, rerun, original, class_of, schema, told, runs, seed)
    return worst_first(found)


def with_population(published: Published, population: Any, schema: Schema | None = None) -> list[Finding]:
    """What a list of the population adds; nobody needs the original rows for it.

    >>> import closeknit as ck
    >>> table = ck.datasets.hospital(60)
    >>> release = ck.anonymize(table, ck.datasets.hospital_schema(), [ck.KAnonymity(5)])
    >>> [found.attack for found in with_population(release, table)]
    ['population_linkage', 'delta_presence']
    """
    attacks = [delta_presence] if reading_of(published).column_groups else [delta_presence, population_linkage]
    return worst_first(attack(published, population, schema) for attack in attacks)


def with_other(published: Published, other: Published, people: Any = None, schema: Schema | None = None) -> list[Finding]:
    """What another release of the same people adds to a row; without `people` as far as the releases alone tell.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(60), ck.datasets.hospital_schema()
    >>> release = ck.anonymize(table, schema, [ck.KAnonymity(5)])
    >>> [(found.attack, found.risk <= 1 / 5) for found in with_other(release, release)]
    [('row_join', True)]
    """
    return _run_if_applicable(row_join, published, other, people, schema)


def _run_if_applicable(attack: Callable[..., Finding], *arguments: Any, **named: Any) -> list[Finding]:
    """What an attack finds, or nothing where it has no meaning for this release."""
    try:
        return [attack(*arguments, **named)]
    except NotApplicable:
        return []


def _minimality(
    reading: Reading,
    rerun: Rerun,
    original: Any,
    class_of: NDArray[np.integer],
    schema: Schema,
    secrets: Sequence[str],
    runs: int | None,
    seed: int,
) -> list[Finding]:
    """Of all classes where their ways can be tried, and else class by class, where the attacker knows all other secrets."""
    given = (
        whole("runs", runs, 1, MOST_RUNS) if runs is not None else int(np.clip(ROWS_RUN // max(original.rows, 1), LEAST, RUNS))
    )
    deals = Deals.of(original, class_of, schema)

    def try_classes(only: Sequence[int] | None, most: int, draws: int) -> TriedWays:
        return try_ways(reading.columns, rerun, original, class_of, schema, only=only, most=most, draws=draws, seed=seed)

    if deals.ways <= given:
        found = try_classes(None, given, given)
        return [found.finding(original, secret) for secret in secrets]
    parts: list[TriedWays] = []
    left, each = given, max(given // CLASSES, 1)
    classes = deals.fewest_first(ROOM)
    if not classes:
        return []
    for number, ways in classes:
        if left < min(ways, each):
            break
        most = min(2 * each, left) if parts else left  # all ways, where there are few more than would be drawn
        parts.append(try_classes([number], most, each))
        left -= ways if ways <= most else each
    return [_worst([part.finding(original, secret) for part in parts], len(classes)) for secret in secrets]


def _worst(found: list[Finding], classes: int) -> Finding:
    """The worst of several classes, each with all secrets outside it known."""
    worst = worst_first(found)[0]
    details = {**worst.details, "classes_tried": len(found), "classes": classes}
    return worst.model_copy(update={"details": details, "knows": f"{worst.knows}, and all secrets outside the class"})
