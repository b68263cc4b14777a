"""Every attack that needs more than the release: the original rows, a population, another release, or the method.

The findings compare the release with its original, so they are private.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.attacks.beliefs import NotApplicable
from closeknit.attacks.candidate_rows import candidate_rows
from closeknit.attacks.covering import people_of
from closeknit.attacks.deals import Deals
from closeknit.attacks.downcoding import downcoding
from closeknit.attacks.exchange import Repeat, exchange
from closeknit.attacks.finding import Finding, worst_first
from closeknit.attacks.intersection import intersection
from closeknit.attacks.matching_buckets import matching_buckets
from closeknit.attacks.minimality import Rerun, TriedWays, try_ways
from closeknit.attacks.population_linkage import population_linkage
from closeknit.attacks.presence import delta_presence
from closeknit.attacks.range_ends import singling_out
from closeknit.attacks.refinement import SOLVES, refinement
from closeknit.attacks.row_join import row_join
from closeknit.core.limits import MOST_RUNS
from closeknit.core.method import Method
from closeknit.core.model import Model
from closeknit.core.params import whole
from closeknit.core.schema import Schema
from closeknit.forms.release_reading import Published, reading_of

RUNS = 200  # of a method, for a small table
ROWS_RUN = 500_000  # rows of all runs together, for a large one
LEAST = 20  # runs
ROOM = 1 << 24  # pairs of a member and a combination of cells in one class: memory
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
    repeat: Repeat | None = None,
    made_by: tuple[Method, Sequence[Model]] | None = None,
    runs: int | None = None,
    solves: int | None = None,
    neighbours: int | None = None,
    seed: int = 0,
) -> list[Finding]:
    """Run every attack that the arguments allow.

    Args:
        published: The release under attack.
        original: The original rows as a frame, file or `Columns`.
        schema: Schema of the original rows.
        population: People with quasi-identifiers, from which the table is drawn.
        other: Another release of the same people.
        rerun: Returns the written cells of a release of a table by the same method; needed for minimality.
        class_of: Class of each original row (`Release.partition`); needed for minimality, refinement and downcoding.
        repeat: Runs the method on a table with the seed of the release or another one; needed for exchange.
        made_by: The method and the requested guarantees; needed for refinement.
        runs: Runs of the method for minimality, and for exchange; None chooses by the size of the table.
        solves: Programs that refinement solves for each sensitive attribute; None: 200.
        neighbours: Rows around a drawn person that stand for the table in exchange; None takes the whole table.
        seed: Seed of the samples that attacks draw.

    Returns:
        The findings, the largest risk first.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(60), ck.datasets.hospital_schema()
    >>> release = ck.anonymize(table, schema, [ck.KAnonymity(5)])
    >>> [found.attack for found in with_original(release, table, schema, population=table)]
    ['singling_out', 'candidate_rows', 'population_linkage', 'delta_presence']
    """
    reading, others = reading_of(published), None if other is None else reading_of(other)
    people = people_of(original, reading, schema, others)
    if reading.column_groups:
        found = [matching_buckets(published, people, schema, population, seed)]
    else:
        found = [candidate_rows(published, people, schema), *_run_if_applicable(singling_out, published, people, schema)]
    if population is not None:
        found += with_population(published, population, schema)
    if class_of is not None:
        found += _run_if_applicable(downcoding, published, people, schema, class_of)
    exact = reading.exact_secrets
    if class_of is not None and made_by is not None and exact and not reading.retained and not reading.column_groups:
        mentioned = [name for name in exact if name in {model.column for model in made_by[1]}]
        budget = SOLVES if solves is None else solves
        found += [
            refinement(people, class_of, schema, *made_by, name, solves=budget, seed=seed) for name in mentioned or exact[:1]
        ]
    if other is not None and others is not None:
        shared = [name for name in exact if name in others.exact_secrets]
        found += [intersection(published, other, people, schema, name, seed=seed) for name in shared]
        found += with_other(published, other, people, schema)
    if schema.person is not None and schema.person in people:  # otherwise no person is known to have several rows
        for name in exact:
            found += _run_if_applicable(intersection, published, None, people, schema, name, seed=seed)
    most = whole("runs", runs, 1, MOST_RUNS) if runs is not None else _choose_runs(original.rows)
    if repeat is not None and exact and not reading.retained:
        found += exchange(original, schema, repeat, runs=most, neighbours=neighbours, seed=seed)
    if rerun is not None and class_of is not None and not reading.retained:
        attempt = partial(try_ways, reading.columns, rerun, seed=seed)
        found += _minimality(attempt, Deals.of(original, class_of, schema), exact, most)
    return worst_first(found)


def with_population(published: Published, population: Any, schema: Schema | None = None) -> list[Finding]:
    """Run the attacks that a list of the population adds; they do not need the original rows.

    Args:
        published: The release under attack.
        population: People with quasi-identifiers as a frame, file or `Columns`.
        schema: Schema of the population's columns; None reads it from the certificate as far as possible.

    >>> import closeknit as ck
    >>> table = ck.datasets.hospital(60)
    >>> release = ck.anonymize(table, ck.datasets.hospital_schema(), [ck.KAnonymity(5)])
    >>> [found.attack for found in with_population(release, table)]
    ['population_linkage', 'delta_presence']
    """
    attacks = [delta_presence] if reading_of(published).column_groups else [delta_presence, population_linkage]
    return worst_first(attack(published, population, schema) for attack in attacks)


def with_other(published: Published, other: Published, people: Any = None, schema: Schema | None = None) -> list[Finding]:
    """Run the attack that another release of the same people adds.

    Args:
        published: The release under attack.
        other: Another release of the same people.
        people: The original rows, or a population; None compares the releases alone.
        schema: Schema of the columns of `people`; None reads it from the certificate as far as possible.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(60), ck.datasets.hospital_schema()
    >>> release = ck.anonymize(table, schema, [ck.KAnonymity(5)])
    >>> [(found.attack, found.risk <= 1 / 5) for found in with_other(release, release)]
    [('row_join', True)]
    """
    return _run_if_applicable(row_join, published, other, people, schema)


def _run_if_applicable(attack: Callable[..., Finding], *arguments: Any, **named: Any) -> list[Finding]:
    """Return the finding of an attack, or none where it does not apply to this release."""
    try:
        return [attack(*arguments, **named)]
    except NotApplicable:
        return []


def _minimality(attempt: Callable[..., TriedWays], deals: Deals, secrets: Sequence[str], runs: int) -> list[Finding]:
    """Attack all classes if their ways can all be tried, else class by class, with all values of the other classes known."""
    if deals.ways <= runs:
        found = attempt(deals, most=runs, draws=runs)
        return [found.finding(secret) for secret in secrets]
    parts: list[TriedWays] = []
    left, each = runs, max(runs // CLASSES, 1)
    classes = deals.fewest_first(ROOM)
    if not classes:
        return []
    for number, ways in classes:
        if left < min(ways, each):
            break
        most = min(2 * each, left) if parts else left  # all ways, where these are few more than would be drawn
        parts.append(attempt(deals.select([number]), most=most, draws=each))
        left -= ways if ways <= most else each
    return [_worst([part.finding(secret) for part in parts], len(classes)) for secret in secrets]


def _choose_runs(rows: int) -> int:
    return int(np.clip(ROWS_RUN // max(rows, 1), LEAST, RUNS))


def _worst(found: list[Finding], classes: int) -> Finding:
    """Return the worst of several classes, each with all sensitive values outside it known."""
    worst = worst_first(found)[0]
    details = {**worst.details, "classes_tried": len(found), "classes": classes}
    return worst.model_copy(update={"details": details, "knows": f"{worst.knows}, and all sensitive values outside the class"})
