"""Checks of a method: what any release made with it has to be, judged from its cells and by an independent oracle."""

from __future__ import annotations

import copy
import warnings
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from closeknit.api import anonymize, audit
from closeknit.checks.broken import need
from closeknit.checks.cells import covers, ground, grouped, place, raw_text, rows_of, secrets_of, tree
from closeknit.checks.oracle import oracle_holds
from closeknit.checks.tables import Case
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput, Unsatisfiable
from closeknit.core.model import Model
from closeknit.core.params import spec
from closeknit.core.table import Partition
from closeknit.forms import REGISTRY as FORMS
from closeknit.models import KAnonymity, LDiversity
from closeknit.recipe import made
from closeknit.release import Release

MethodCheck = Callable[[Any, Case], None]
SEED = 2**100 + 7


@lru_cache(maxsize=4)  # the checks of one table follow one another
def released(method: Any, case: Case) -> Release:
    """The release of a case, made once."""
    return anew(method, case)


def anew(method: Any, case: Case, columns: Columns | None = None, models: tuple[Model, ...] | None = None) -> Release:
    """A release of a case; what it warns of is not in question here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data, asked = columns or case.columns, list(models or case.models)
        return anonymize(data, case.schema, asked, method, suppress=case.suppress, seed=SEED)


def promise_kept(method: Any, case: Case) -> None:
    """Every class that an adversary finds in the cells keeps every promise."""
    release = released(method, case)
    persons = _persons_of_written_rows(release, case)
    for group, rows in grouped(release.columns, list(case.schema.quasi)).items():
        heads = None if persons is None else [persons[row] for row in rows]
        for model in case.models:
            need(judged(model, release.columns, rows, heads, case), f"class {group} breaks {model}")


def judged(model: Model, columns: Columns, rows: list[int], persons: list[Any] | None, case: Case) -> bool:
    """The oracle's word on one class of written rows."""
    params: dict[str, Any] = dict(spec(model))
    name = params.pop("column", None)
    if persons is not None:
        params["persons"] = persons
    if name is None:
        return oracle_holds(model.name, [None] * len(rows), [], **params)
    if isinstance(name, tuple):
        combinations = rows_of(columns, name)
        return oracle_holds(model.name, [combinations[row] for row in rows], combinations, **params)
    kind = case.schema.sensitive[name]
    values = [cells[0] for cells in rows_of(columns, [name])]
    if model.name == "t_closeness":
        params["ground"] = ground(kind, params.pop("distance", None), values)
    elif params.get("kind") == "semantic":
        params["ground"] = tree(kind, {value for value in values if value is not None})
    return oracle_holds(model.name, [values[row] for row in rows], values, **params)


def every_row_once(method: Any, case: Case) -> None:
    """A row is published once or counted as withheld, with its own secrets."""
    release = released(method, case)
    kept = release.partition >= 0
    need(len(release.partition) == case.columns.rows, "the partition has one entry for every input row")
    need(release.certificate.withheld == int((~kept).sum()), "the certificate counts the withheld rows")
    need(int((~kept).sum()) <= case.suppress * case.columns.rows, "more rows are withheld than allowed")
    need(release.columns.rows == int(kept.sum()), "every row that has a class is published once")
    raw = secrets_of(case.columns.take(np.flatnonzero(kept)), case.schema, case.schema.missing)
    need(
        secrets_of(release.columns, case.schema) == raw,
        "secrets and plain cells are published as they came in, each as often",
    )


def raw_value_inside(method: Any, case: Case) -> None:
    """The written cells of a row hold its raw values, and stand beside its own secrets."""
    release = released(method, case)
    origin = _input_rows(release, case)
    for name, kind in case.schema.quasi.items():
        raw = [raw_text(cell, case.schema.missing) for cell in case.columns[name].cells()]
        for row, (cell,) in enumerate(rows_of(release.columns, [name])):
            need(covers(kind, cell, raw[origin[row]]), f"column '{name}': {cell!r} does not hold {raw[origin[row]]!r}")
    kept = [*case.schema.sensitive, *case.schema.plain]
    before, after = rows_of(case.columns, kept, case.schema.missing), rows_of(release.columns, kept)
    need([before[row] for row in origin] == after, "a row stands beside the secrets of another one")


def missing_is_a_value(method: Any, case: Case) -> None:
    """A class of missing values writes an empty cell, a mixed one `*`; neither vanishes."""
    release = released(method, case)
    origin = _input_rows(release, case)
    for name in case.schema.quasi:
        raw = [raw_text(cell, case.schema.missing) for cell in case.columns[name].cells()]
        cells = [cell for (cell,) in rows_of(release.columns, [name])]
        whole = set(cells) == {"*"} and len(set(raw)) > 1  # the column tells nothing at all
        for number in set(release.partition.tolist()) - {-1}:
            rows = [row for row, start in enumerate(origin) if release.partition[start] == number]
            gaps = {raw[origin[row]] is None for row in rows}
            written = {cells[row] for row in rows}
            need(len(written) == 1, f"column '{name}': one class has the cells {written}")
            if True in gaps and not whole:
                need(
                    written == ({"*"} if False in gaps else {None}),
                    f"column '{name}': missing values are written as {written}",
                )
            else:
                need(None not in written, f"column '{name}': values that are there are written as missing")


def impossible_is_refused(method: Any, case: Case) -> None:
    """More than the table can give raises `Unsatisfiable` with what was asked and what is reachable."""
    persons = rows_of(case.columns, [case.schema.person]) if case.schema.person else range(case.columns.rows)
    _refused(method, case, KAnonymity(len(set(persons)) + 1))
    for name in case.schema.sensitive:
        values = set(rows_of(case.columns, [name], case.schema.missing))
        _refused(method, case, LDiversity(name, len(values) + 1))


def _refused(method: Any, case: Case, model: Model) -> None:
    try:
        anew(method, case, models=(*case.models, model))
    except Unsatisfiable as no:
        need(no.asked and no.reached and no.hint, "it is said what was asked, what is reachable, and what would help")
        return
    need(False, f"{model} is impossible here and was not refused")


def seed_repeats(method: Any, case: Case) -> None:
    """The same seed gives the same release and certificate."""
    one, other = released(method, case), anew(method, case)
    need(one.certificate == other.certificate, "the same seed gave another certificate")
    need((one.partition == other.partition).all(), "the same seed gave another partition")


def row_order_is_irrelevant(method: Any, case: Case) -> None:
    """Shuffled input, and distinct values listed in another order, give the same release."""
    rng = np.random.default_rng(5)
    shuffled = case.columns.take(rng.permutation(case.columns.rows))
    listed = Columns.of({name: column.cells() for name, column in shuffled.items()})
    one, other = released(method, case), anew(method, case, listed)
    need(
        one.certificate.content_sha256 == other.certificate.content_sha256,
        "the order of the input shows in the release",
    )
    need(one.certificate == other.certificate, "the order of the input shows in the certificate")


def order_tells_nothing(method: Any, case: Case) -> None:
    """Rows stand in an order that can be told from their written cells alone."""
    rows_in_order(released(method, case).columns, case)


def rows_in_order(columns: Columns, case: Case) -> None:
    """Sorted by quasi cells, then secrets, then plain cells."""
    kinds = {**case.schema.quasi, **case.schema.sensitive}
    keys = [[place(kind, cell) for (cell,) in rows_of(columns, [name])] for name, kind in kinds.items()]
    keys += [[("" if cell is None else cell,) for (cell,) in rows_of(columns, [name])] for name in case.schema.plain]
    rows = list(zip(*keys, strict=True))
    for before, after in pairwise(rows):
        need(before <= after, f"rows are not in the order of their cells: {after} stands after {before}")


def input_is_unchanged(method: Any, case: Case) -> None:
    """The table that was given is the same afterwards."""
    before = copy.deepcopy(case.columns.columns)
    anew(method, case)
    for name, column in case.columns.items():
        same = column.values.tolist() == before[name].values.tolist() and (column.codes == before[name].codes).all()
        need(same, f"column '{name}' was changed")


def nothing_leaks(method: Any, case: Case) -> None:
    """Published are the columns with a published role, without identifiers, persons, row or class numbers."""
    release = released(method, case)
    schema = case.schema
    need(
        list(release.columns) == [*schema.quasi, *schema.sensitive, *schema.plain],
        f"the release has the columns {list(release.columns)}",
    )
    hidden = [*schema.identifier, *([schema.person] if schema.person else [])]
    private = {str(cell) for name in hidden for cell in case.columns[name].cells()}
    shown = {str(cell) for column in release.columns.values() for cell in column.values.tolist()}
    need(not private & shown, f"private cells are published: {private & shown}")
    told = release.certificate.to_json()
    need(not any(cell in told for cell in private), "the certificate tells a private cell")
    need(str(SEED) not in told, "the certificate tells the seed")
    used = all((column.counts > 0).all() for column in release.columns.values())
    need(used, "a list of distinct values tells of cells that are not written")


def persons_stay_together(method: Any, case: Case) -> None:
    """With `person_rows: together` no person stands in two classes."""
    if case.schema.person is None or case.schema.person_rows != "together":
        return
    release = released(method, case)
    persons = case.columns[case.schema.person].cells()
    pairs = Counter(person for person, _ in set(zip(persons, release.partition.tolist(), strict=True)))
    need(max(pairs.values()) == 1, f"{pairs.most_common(1)[0][0]} stands in several classes")


def audit_agrees(method: Any, case: Case) -> None:
    """A stranger recomputes the certificate; what is counted in persons he cannot, and says so."""
    release = released(method, case)
    found = audit(release.columns, certificate=release.certificate)
    need(not found.findings, f"an audit finds: {found.findings}")
    for promise, model in zip(found.promises, case.models, strict=True):
        hidden = case.schema.person is not None and "persons" in model.needs
        need(promise.status == ("not checkable" if hidden else "recomputed"), f"an audit says: {promise.line()}")


def release_is_its_partition_written(method: Any, case: Case) -> None:
    """The class of every input row is told at home: writing it again gives the release."""
    release = released(method, case)
    _input_rows(release, case)


def _input_rows(release: Release, case: Case) -> list[int]:
    """The input row behind each written row (private: known only by writing the partition again)."""
    table = case.schema.encode(case.columns)
    form = made("form", release.certificate.form, FORMS)
    written = form.write(table, Partition.of(release.partition[table.rows]))
    names = case.schema.published
    need(
        rows_of(written.columns, names) == rows_of(release.columns, names),
        "the release is not its partition written down",
    )
    origin: list[int] = table.rows[written.rows].tolist()
    return origin


def _persons_of_written_rows(release: Release, case: Case) -> list[Any] | None:
    if case.schema.person is None:
        return None
    persons = case.columns[case.schema.person].cells()
    return [persons[row] for row in _input_rows(release, case)]


def bad_parameters_are_named(thing: type[Any], params: dict[str, Any]) -> None:
    """A wrong parameter is refused in a sentence that names it."""
    name = next(iter(params))
    try:
        thing(**params)
    except BadInput as bad:
        need(name in str(bad), f"the refusal of {params} does not name '{name}': {bad}")
        return
    need(False, f"{thing.__name__} takes {params}")


CHECKS: tuple[MethodCheck, ...] = (
    promise_kept,
    every_row_once,
    raw_value_inside,
    missing_is_a_value,
    impossible_is_refused,
    seed_repeats,
    row_order_is_irrelevant,
    order_tells_nothing,
    input_is_unchanged,
    nothing_leaks,
    persons_stay_together,
    audit_agrees,
    release_is_its_partition_written,
)
