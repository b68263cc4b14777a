"""Checks of a method: what every release by it has to be, judged from its cells and by an independent oracle."""

from __future__ import annotations

import copy
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.api import anonymize, audit
from closeknit.api.recipe import build_from_form
from closeknit.checks.failures import require, require_refusal
from closeknit.checks.naive_cells import covers, raw_cells, rows_of
from closeknit.checks.oracle import DEFINITIONS, oracle_vacuous
from closeknit.checks.tables import Case
from closeknit.checks.verdicts import classes_together_meet, judge_class, list_groups, oracle_view, whole_release_meets
from closeknit.checks.views import View, view
from closeknit.core.columns import Column, Columns
from closeknit.core.combined_secrets import parts
from closeknit.core.errors import BadInput, Unsatisfiable
from closeknit.core.method import ignore_progress, list_guarantees
from closeknit.core.model import Model
from closeknit.core.table import Partition
from closeknit.forms import REGISTRY as FORMS
from closeknit.forms.release_reading import reading_of
from closeknit.models import KAnonymity, LDiversity
from closeknit.release import Release

MethodCheck = Callable[[Any, Case], None]
SEED = 2**100 + 7


@lru_cache(maxsize=4)  # the checks of one table follow one another
def run_once(method: Any, case: Case) -> Release:
    """Return the release of a case, computed once."""
    return run_case(method, case)


@lru_cache(maxsize=4)
def run_again(method: Any, case: Case) -> tuple[Release, dict[str, Column]]:
    """Return a second release of a case, and the columns as they were before."""
    before = copy.deepcopy(case.columns.columns)
    return run_case(method, case), dict(before)


def run_case(method: Any, case: Case, columns: Columns | None = None, models: tuple[Model, ...] | None = None) -> Release:
    """Return a release of a case, ignoring its warnings."""
    with warnings.catch_warnings(action="ignore"):
        data, requested = columns or case.columns, list(case.models if models is None else models)
        return anonymize(data, case.schema, requested, method, suppress=case.suppress, seed=SEED, allow_vacuous=True)


def list_models(method: Any, case: Case) -> list[Model]:
    """List the guarantees of a release: those of the case, and those that the method adds."""
    found = list_guarantees(method, case.schema, case.models)
    return [model for model in found if not model.of_method]  # checks give a seed, so such a guarantee is not attested


@lru_cache(maxsize=4)
def view_release(release: Release, case: Case) -> View:
    """Return the release as a recipient sees it."""
    return view(release.columns, case.schema, release.certificate.form)


def guarantee_met(method: Any, case: Case) -> None:
    """Every class that an adversary finds in the cells meets every guarantee; so does the whole release where required."""
    release = run_once(method, case)
    shown, origins = view_release(release, case), _origins(release, case)
    heads = case.columns[case.schema.person].cells() if case.schema.person else None
    for model in list_models(method, case):
        if model.name not in DEFINITIONS:  # of a user: judged by itself, on the classes that are read back
            require(model.holds(reading_of(release).of(model.column).classes).all(), f"a class does not meet {model}")
            continue
        if model.weighs_buckets and heads is None:
            whole_release_meets(model, shown, origins)
            continue
        if model.budget:
            classes_together_meet(model, shown, heads, origins[case.schema.published[0]])
            continue
        name = parts(model.column)[0] if model.column else case.schema.published[0]
        persons = None if heads is None else [heads[row] for row in origins[name]]
        seen = oracle_view(model, release.columns, case)
        for group, rows in list_groups(model, shown, release.columns, list(case.schema.quasi)):
            of_rows = None if persons is None else [persons[row] for row in rows]
            require(judge_class(model, seen, rows, of_rows), f"class {group} does not meet {model}")


def excludes_nothing(model: Model, columns: Columns, method: Any, case: Case) -> bool:
    """Return the oracle's verdict on whether every value with enough rows may stand alone in a class."""
    if model.column is None or "release" in model.needs:
        return False
    values, params = oracle_view(model, columns, case)
    shown = [value for value in values if value != "*"]  # suppressed values do not count
    return oracle_vacuous(model.name, shown, max(requested.least_size for requested in list_models(method, case)), **params)


def every_row_once(method: Any, case: Case) -> None:
    """A row is published once with its own sensitive values, or counted as suppressed."""
    release = run_once(method, case)
    kept = release.partition >= 0
    require(len(release.partition) == case.columns.rows, "the partition has one entry for every input row")
    require(release.certificate.suppressed == int((~kept).sum()), "the certificate counts the suppressed rows")
    require(int((~kept).sum()) <= case.suppress * case.columns.rows, "more rows are suppressed than allowed")
    require(release.columns.rows == int(kept.sum()), "every row that has a class is published once")
    raw = case.columns.take(np.flatnonzero(kept))
    shown = view_release(release, case)
    for group in shown.groups:
        names = [name for name in shown.unchanged if name in group]
        require(
            Counter(rows_of(release.columns, names)) == Counter(rows_of(raw, names, case.schema.missing)),
            "sensitive and plain cells are not published unchanged",
        )


def raw_value_inside(method: Any, case: Case) -> None:
    """Written cells contain the raw values of a row, and only cells that belong together are those of one row.

    Where rows do not line up, the cells of every group are those of the rows of one class, each once, in every bucket.
    """
    release = run_once(method, case)
    shown, origins = view_release(release, case), _origins(release, case)
    for name, kind in case.schema.quasi.items():
        raw = raw_cells(case.columns, name, case.schema.missing)
        for row, (cell,) in zip(origins[name], rows_of(release.columns, [name]), strict=True):
            require(covers(kind, cell, raw[row]), f"column '{name}': {cell!r} does not contain {raw[row]!r}")
    for group in shown.groups:
        kept = [name for name in shown.unchanged if name in group]
        before, after = rows_of(case.columns, kept, case.schema.missing), rows_of(release.columns, kept)
        require(
            len({tuple(origins[name]) for name in group}) == 1, f"{group}: cells of different rows are published as one row"
        )
        require([before[row] for row in origins[group[0]]] == after, "a row has the sensitive values of another one")
    buckets_are_classes(shown, origins, release.partition.tolist())


def buckets_are_classes(shown: View, origins: dict[str, list[int]], class_of: list[int]) -> None:
    """Every bucket has the rows of one class, and every column group has each of them once."""
    for bucket, written in (shown.classes_of(None) if shown.number else {}).items():
        rows = {tuple(sorted(origins[group[0]][i] for i in written)) for group in shown.groups}
        require(len(rows) == 1, f"bucket {bucket}: its column groups have different rows")
        there = set(rows.pop())
        require(len(there) == len(written), f"bucket {bucket}: it has a row twice")
        numbers = {class_of[row] for row in there}
        require(len(numbers) == 1 and class_of.count(numbers.pop()) == len(there), f"bucket {bucket} is not a class")


def missing_is_a_value(method: Any, case: Case) -> None:
    """A class of missing values writes an empty cell, a mixed one `*`; neither is dropped. Exact cells are empty or not."""
    release = run_once(method, case)
    lined_up, origins = view_release(release, case).number is None, _origins(release, case)
    for name in case.schema.quasi:
        raw = raw_cells(case.columns, name, case.schema.missing)
        cells, origin = [cell for (cell,) in rows_of(release.columns, [name])], origins[name]
        if not lined_up:
            for cell, row in zip(cells, origin, strict=True):
                require(cell == "*" or (cell is None) == (raw[row] is None), f"column '{name}': {raw[row]!r} became {cell!r}")
            continue
        whole = set(cells) == {"*"} and len(set(raw)) > 1  # the column discloses nothing
        for number in set(release.partition.tolist()) - {-1}:
            rows = [row for row, start in enumerate(origin) if release.partition[start] == number]
            gaps = {raw[origin[row]] is None for row in rows}
            written = {cells[row] for row in rows}
            require(len(written) == 1, f"column '{name}': one class has the cells {written}")
            if True in gaps and not whole:
                right = {"*"} if False in gaps else {None}
                require(written == right, f"column '{name}': missing values are written as {written}")
            else:
                require(None not in written, f"column '{name}': present values are written as missing")


def impossible_is_refused(method: Any, case: Case) -> None:
    """More than the table allows raises `Unsatisfiable` with what was requested and what is reachable.

    A guarantee that is undefined in the method's form is refused as such.
    """
    persons = rows_of(case.columns, [case.schema.person]) if case.schema.person else range(case.columns.rows)
    more_than_all = KAnonymity(len(set(persons)) + 1)
    if method.usual_form in KAnonymity.forms:
        _check_refusal(method, case, more_than_all)
    else:
        _check_undefined(method, case, KAnonymity(1))
    for name in case.schema.sensitive if case.models else ():  # none where the method's own guarantee excludes others
        values = set(rows_of(case.columns, [name], case.schema.missing))
        _check_refusal(method, case, LDiversity(name, len(values) + 1))


def _check_refusal(method: Any, case: Case, model: Model) -> None:
    run = partial(run_case, method, case, models=(*case.models, model))
    no = require_refusal(Unsatisfiable, run, f"{model} is impossible here and was not refused")
    require(no.requested and no.reachable and no.hint, "the refusal lacks the request, what is reachable, or a hint")


def _check_undefined(method: Any, case: Case, model: Model) -> None:
    run = partial(run_case, method, case, models=(*case.models, model))
    no = require_refusal(BadInput, run, f"{model} is undefined in the form {method.usual_form} and was not refused")
    require(model.name in no.what and no.right, f"the refusal of {model} does not name it: {no}")


def seed_repeats(method: Any, case: Case) -> None:
    """The same seed gives the same release and certificate."""
    one, (other, _) = run_once(method, case), run_again(method, case)
    require(one.certificate == other.certificate, "the same seed gave another certificate")
    require((one.partition == other.partition).all(), "the same seed gave another partition")


def row_order_is_irrelevant(method: Any, case: Case) -> None:
    """Shuffled input, and distinct values listed in another order, give the same release."""
    rng = np.random.default_rng(5)
    shuffled = case.columns.take(rng.permutation(case.columns.rows))
    listed = Columns.of({name: column.cells() for name, column in shuffled.items()})
    one, other = run_once(method, case), run_case(method, case, listed)
    require(one.certificate.content_sha256 == other.certificate.content_sha256, "the order of the input shows in the release")
    require(one.certificate == other.certificate, "the order of the input shows in the certificate")


def order_discloses_nothing(method: Any, case: Case) -> None:
    """The order of the rows follows from their written cells alone."""
    view_release(run_once(method, case), case).check_order()


def input_is_unchanged(method: Any, case: Case) -> None:
    """The input table is not changed."""
    _, before = run_again(method, case)
    for name, column in case.columns.items():
        same = column.values.tolist() == before[name].values.tolist() and (column.codes == before[name].codes).all()
        require(same, f"column '{name}' was changed")


def nothing_leaks(method: Any, case: Case) -> None:
    """Only the columns with a published role are published, without identifiers, persons, row or class numbers."""
    release = run_once(method, case)
    schema, number = case.schema, view_release(release, case).number
    require(
        list(release.columns) == [*([number] if number else []), *schema.published],
        f"the release has the columns {list(release.columns)}",
    )
    hidden = [*schema.identifier, *([schema.person] if schema.person else [])]
    private = {str(cell) for name in hidden for cell in case.columns[name].cells()}
    shown = {str(cell) for column in release.columns.values() for cell in column.values.tolist()}
    require(not private & shown, f"private cells are published: {private & shown}")
    certificate = release.certificate.to_json()
    require(not any(cell in certificate for cell in private), "the certificate discloses a private cell")
    require(str(SEED) not in certificate, "the certificate discloses the seed")
    used = all((column.counts > 0).all() for column in release.columns.values())
    require(used, "a list of distinct values has values that are not written")


def persons_stay_together(method: Any, case: Case) -> None:
    """With `person_rows: together` no person is in two classes."""
    if case.schema.person is None or case.schema.person_rows != "together":
        return
    release = run_once(method, case)
    persons = case.columns[case.schema.person].cells()
    pairs = Counter(person for person, _ in set(zip(persons, release.partition.tolist(), strict=True)))
    require(max(pairs.values()) == 1, f"{pairs.most_common(1)[0][0]} is in several classes")


def audit_agrees(method: Any, case: Case) -> None:
    """An auditor recomputes the certificate; guarantees counted in persons are reported as not checkable."""
    release, models = run_once(method, case), list_models(method, case)
    if not all(model.name in DEFINITIONS for model in models):
        return  # an audit reads registered guarantees only
    found = audit(release.columns, certificate=release.certificate)
    require(not found.findings, f"an audit finds: {found.findings}")
    for guarantee, model in zip(found.guarantees, models, strict=True):
        hidden = case.schema.person is not None and "persons" in model.needs
        if model.weighs_buckets and guarantee.status == "not checkable":
            continue  # it is about the rows of the original table
        vacuous = excludes_nothing(model, release.columns, method, case)
        right = "not checkable" if hidden else "vacuous" if vacuous else "recomputed"
        require(guarantee.status == right, f"an audit reports {guarantee.line()}, not {right}")


def release_is_its_partition_written(method: Any, case: Case) -> None:
    """The private class of every input row reproduces the release."""
    _origins(run_once(method, case), case)


def unmentioned_values_decide_nothing(method: Any, case: Case) -> None:
    """A `blind` method computes the same classes for other values of sensitive attributes that no guarantee mentions."""
    if not method.blind or case.schema.person is not None or not case.schema.sensitive:
        return
    canonical, rng = case.schema.encode(case.columns), np.random.default_rng(case.columns.rows)
    table = canonical.take(canonical.tie_order(SEED))
    other = np.stack([rng.integers(0, domain.size + 1, len(table)) for domain in table.sensitive_domains], axis=1)
    sizes = [model for model in case.models if model.column is None] or [KAnonymity(1)]
    one, another = (
        method.run(rows, sizes, SEED, ignore_progress).partition.class_of.tolist()
        for rows in (table, replace(table, sensitive=other.astype(np.int32)))
    )
    require(len({*one}) == len({*another}) == len({*zip(one, another, strict=True)}), "unmentioned values change the classes")


def links_are_broken(method: Any, case: Case) -> None:
    """Exchanging the cells of one column group among rows of a class does not change the release."""
    release = run_once(method, case)
    shown, names = view_release(release, case), list(release.columns)
    form = build_from_form("form", release.certificate.form, FORMS)
    for group in shown.groups if shown.number else ():
        table = case.schema.encode(exchange_cells(case.columns, group, release.partition))
        written = form.write(table, Partition.of(release.partition[table.rows]), SEED)
        same = rows_of(written.columns, names) == rows_of(release.columns, names)
        require(same, f"{group}: the release shows which row has them")


def exchange_cells(columns: Columns, group: Sequence[str], class_of: NDArray[np.integer]) -> Columns:
    """Permute the cells of these columns inside every class, together."""
    taken, rng = np.arange(columns.rows), np.random.default_rng(columns.rows)
    for number in np.unique(class_of[class_of >= 0]):
        rows = np.flatnonzero(class_of == number)
        taken[rows] = rng.permutation(rows)
    return Columns({name: column.take(taken) if name in group else column for name, column in columns.items()}, columns.rows)


@lru_cache(maxsize=4)
def _origins(release: Release, case: Case) -> dict[str, list[int]]:
    """Return the input row of each cell of each column (private: known only by writing the partition again)."""
    table = case.schema.encode(case.columns)
    form = build_from_form("form", release.certificate.form, FORMS)
    written = form.write(table, Partition.of(release.partition[table.rows]), SEED)
    names = list(release.columns)
    require(rows_of(written.columns, names) == rows_of(release.columns, names), "the partition does not reproduce the release")
    return {name: table.rows[written.rows_of(name)].tolist() for name in case.schema.published}


def bad_parameters_are_named(thing: type[Any], params: dict[str, Any], right: dict[str, Any] | None = None) -> None:
    """A wrong parameter is refused in a sentence that names it; `right` are the required parameters."""
    name = next(iter(params))
    bad = require_refusal(BadInput, lambda: thing(**params, **(right or {})), f"{thing.__name__} accepts {params}")
    require(name in str(bad), f"the refusal of {params} does not name '{name}': {bad}")


CHECKS: tuple[MethodCheck, ...] = (
    guarantee_met,
    every_row_once,
    raw_value_inside,
    missing_is_a_value,
    impossible_is_refused,
    seed_repeats,
    row_order_is_irrelevant,
    order_discloses_nothing,
    input_is_unchanged,
    nothing_leaks,
    persons_stay_together,
    audit_agrees,
    release_is_its_partition_written,
    unmentioned_values_decide_nothing,
    links_are_broken,
)
