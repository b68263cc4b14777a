"""What the oracle says about written rows: classes, groups over chosen columns, budgets and whole releases."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

from closeknit.checks.failures import require
from closeknit.checks.naive_cells import ground, rows_of, tree
from closeknit.checks.oracle import oracle_holds, oracle_keeps
from closeknit.checks.risk_oracle import oracle_release
from closeknit.checks.tables import Case
from closeknit.checks.views import View
from closeknit.core.columns import Columns
from closeknit.core.model import Model
from closeknit.core.params import spec

OracleView = tuple[list[Any], dict[str, Any]]


def classes_together_meet(model: Any, shown: View, heads: list[Any] | None, origin: list[int]) -> None:
    """The sizes of all classes together stay within the budget."""
    classes = shown.classes_of(None).values()
    sizes = [len(rows) if heads is None else len({heads[origin[row]] for row in rows}) for rows in classes]
    level, met = oracle_release(model.name, sizes, **spec(model))
    require(met, f"{model} is not met: classes of {sorted(sizes)} rows reach {level}")


def list_groups(model: Any, shown: View, columns: Columns, quasi: list[str]) -> list[tuple[Any, list[int]]]:
    """List the classes of a release; for a guarantee over some columns, rows with equal written cells in each set of them."""
    if model.over is None:
        return list(shown.classes_of(model.column).items())
    wanted = model.over if isinstance(model.over, tuple) else None
    sizes = {"pairs": 2, "triples": 3}
    found: dict[Any, list[int]] = {}
    for names in [wanted] if wanted else combinations(quasi, sizes[model.over]):
        for row, cells in enumerate(rows_of(columns, list(names))):
            found.setdefault((names, cells), []).append(row)
    return list(found.items())


def whole_release_meets(model: Any, shown: View, origins: dict[str, list[int]]) -> None:
    """No row of the original table has a value with a share above 1/l."""
    known = [shown.list_known(group, model.column) for group in shown.groups]
    places = [{row: i for i, row in enumerate(origins[group[0]])} for group in shown.groups]
    cells = [rows_of(shown.columns, names) for names in known]
    profiles = {tuple(of[at[row]] for of, at in zip(cells, places, strict=True)) for row in places[0]}
    for profile in profiles:
        share = shown.measure_disclosure(model.column, profile, model.weight)
        require(share * Fraction(str(model.l)) <= 1, f"{profile}: a value has the share {share}, so {model} is not met")


def judge_class(model: Model, seen: OracleView, rows: list[int], persons: list[Any] | None = None) -> bool:
    """Return the oracle's verdict on one class of written rows, with what `oracle_view` gives for the model."""
    values, params = seen
    if persons is not None:
        params = {**params, "persons": persons}
    keeps = oracle_keeps if isinstance(model.column, str) else oracle_holds  # only names can look alike
    return keeps(model.name, [values[row] for row in rows], values, **params)


def oracle_view(model: Model, columns: Columns, case: Case) -> OracleView:
    """Return the oracle's input: the written value of every row, and the model's parameters with its ground distance."""
    params: dict[str, Any] = dict(spec(model))
    params.pop("over", None)
    name = params.pop("column", None)
    if name is None:
        return [None] * columns.rows, params
    if isinstance(name, tuple):
        return list(rows_of(columns, name)), params
    kind, values = case.schema.sensitive[name], [cells[0] for cells in rows_of(columns, [name])]
    if model.name == "t_closeness":
        params["ground"] = ground(kind, params.pop("distance", None), values)
    elif params.get("kind") == "semantic":
        params["ground"] = tree(kind, {value for value in values if value is not None})
    return values, params
