"""Small tables for the checks: edge cases and generated tables of fictitious people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from closeknit.core.columns import Columns
from closeknit.core.date_times import datetime
from closeknit.core.dates import date
from closeknit.core.durations import duration
from closeknit.core.errors import BadInput
from closeknit.core.hierarchy import Hierarchy
from closeknit.core.itemsets import itemset
from closeknit.core.kinds import flat, numeric, prefix
from closeknit.core.method import can_plan, list_guarantees
from closeknit.core.model import Model
from closeknit.core.points import point
from closeknit.core.schema import Schema
from closeknit.models import BetaLikeness, DeltaDisclosure, KAnonymity, LDiversity, TCloseness

JOB = {"office": {"clerk": None, "lawyer": None}, "field": {"land": {"farmer": None, "herder": None}, "sailor": None}}
DISEASE = {"respiratory": {"flu": None, "asthma": None}, "digestive": {"ulcer": None, "colic": None}, "gout": None}
ODD = {"all": {"1": {"1": None}, "deep": {"deeper": {"deepest": {"x": None}}}, "y": None, "[z": {"v; *": None, "w": None}}}
TOWN = {"北": {"大阪": None, "京都": None}, "μ–σ": {"Ærø": None, "Łódź 🏙": None, 'a "b", c': None}}


MANY_COLUMNS = 8


@dataclass(frozen=True, eq=False)
class Case:
    """A table, its schema, and guarantees that can be met on it (one class of all rows meets them).

    Args:
        name: a name for messages.
        columns: the table.
        schema: roles and kinds of its columns.
        models: the guarantees.
        suppress: the largest share of rows that may be suppressed.
    """

    name: str
    columns: Columns
    schema: Schema
    models: tuple[Model, ...]
    suppress: float = 0.0


def fit_to_method(method: Any, case: Case) -> Case | None:
    """The case as this method can take it: guarantees that it plans for, and what its form can write.

    None where the table has no sensitive attribute for it, where a column has both roles and the method does not serve that,
    where the whole table as one class does not meet its own guarantee, where no column can share a group with a sensitive
    attribute, where the table is too small for a bucket, and where it has too many combinations of levels to search.
    """
    try:
        method.refuse(case.schema, case.models, case.suppress)
    except BadInput:
        return None
    if method.scale == "count" and len(case.schema.quasi) > MANY_COLUMNS:
        return None
    if set(case.schema.quasi) & set(case.schema.sensitive) and not method.serves_both:
        return None
    if case.columns.rows < method.least_rows or method.attached > len(_list_linkable(case)):
        return None
    fit = fit_to_form(method.usual_form, case, own_groups=True)
    if fit is None:
        return None
    whole = fit.schema.encode(fit.columns).one_class()
    brought = list_guarantees(method, fit.schema, ())
    if not all(model.holds(whole).all() for model in brought):
        return None
    if any(
        model.weighs_buckets for model in brought
    ):  # such a guarantee excludes others, and persons are judged in each bucket alone
        return replace(fit, models=()) if len(brought) == 1 and fit.schema.person is None else None
    if can_plan(method, list_guarantees(method, fit.schema, fit.models)):
        return fit
    for name in fit.schema.sensitive:
        extra: tuple[Model, ...] = (TCloseness(name, 0.4, "equal"), BetaLikeness(name, 1.5))
        fitting = [model for model in extra if can_plan(method, [model]) and model.holds(whole).all()]
        return replace(fit, models=(*fit.models, *fitting)) if fitting else None
    return None


def _list_linkable(case: Case) -> list[str]:
    """Return quasi-identifiers that may share a group with a purely sensitive attribute: of few values, and not the only one.

    None where there are persons: a method sees one row of each, and the cells of the others may disclose more.
    """
    if set(case.schema.sensitive) <= set(case.schema.quasi) or case.schema.person:
        return []
    names = [name for name in case.schema.quasi if name not in case.schema.sensitive]
    few = [name for name in names if 10 * len(set(case.columns[name].cells())) <= case.columns.rows]
    return few[: len(names) - 1]


def fit_to_form(form: str, case: Case, own_groups: bool = False) -> Case | None:
    """Return the case as a form can write it, with guarantees that are defined there; None where it cannot.

    Two tables cannot hold plain columns, permuted attributes are numbers, perturbed ones declared categories, and only column
    groups that the user or the method chooses (`own_groups`) can serve a column that is quasi and sensitive.
    """
    schema, both = case.schema, set(case.schema.quasi) & set(case.schema.sensitive)
    if form == "perturbed" and not all(kind.name == "tree" and not kind.from_data for kind in schema.sensitive.values()):
        return None
    if form in ("generalized", "perturbed"):
        return None if both or (form == "perturbed" and not schema.sensitive) else case
    if not schema.sensitive or len(schema.published) < 2 or (both and not (form == "multiset" or own_groups)):
        return None
    if form == "permuted" and any(kind.name != "numeric" for kind in schema.sensitive.values()):
        return None
    if form in ("bucketized", "sliced") and schema.plain:
        kept = {name: column for name, column in case.columns.items() if name not in schema.plain}
        schema = schema.model_copy(update={"plain": (), "allow_unique": ()})
        case = replace(case, columns=Columns(kept, case.columns.rows), schema=schema)
    models = tuple(model for model in case.models if form in model.forms)
    if form == "multiset":  # nothing joins sensitive attributes there
        models = tuple(model for model in models if not isinstance(model.column, tuple))
    return replace(case, models=models or tuple(TCloseness(name, 0.5, "equal") for name in schema.sensitive))


def quasi_kinds() -> dict[str, Any]:
    """Return the kinds of the generated quasi-identifiers."""
    return {
        "age": numeric(),
        "weight": numeric(0, 250, step=10),
        "zip": prefix(5),
        "sex": flat(),
        "job": Hierarchy.from_nested(JOB),
        "born": date(lo="1950-01-01", hi="2009-12-31"),
        "town": Hierarchy.from_nested(TOWN, from_data=True),
        "visits": Hierarchy.intervals(lo=0, hi=40, width=5),
        "code": prefix(),
        "odd": Hierarchy.from_nested(ODD),
        "dose": numeric(0, 60, bins=4),
    }


def time_and_place_kinds() -> dict[str, Any]:
    """Return the kinds of the columns with times and places, which only one table has."""
    return {
        "seen": datetime(lo="2024-03-01", hi="2024-04-30"),
        "waited": duration("minute"),
        "home": point(5),
        "codes": itemset(prefix(3)),
    }


def secret_kinds() -> dict[str, Any]:
    """Return the kinds of the generated sensitive attributes."""
    return {"disease": Hierarchy.from_nested(DISEASE), "charge": numeric(), "blood": flat(), "since": date(["month", "year"])}


def people(rng: np.random.Generator, rows: int, missing: float = 0.0) -> dict[str, list[Any]]:
    """Generate cells of every column; a share `missing` of them is empty or marked with `?`."""
    age = rng.integers(18, 60, rows)
    cells: dict[str, list[Any]] = {
        "age": age.tolist(),
        "weight": (rng.integers(400, 1200, rows) / 10).tolist(),
        "zip": [f"{code:05}" for code in rng.choice([1205, 1206, 1290, 47602, 47605, 47999], rows)],
        "sex": rng.choice(["f", "m", "x"], rows).tolist(),
        "job": rng.choice(["clerk", "lawyer", "farmer", "herder", "sailor"], rows).tolist(),
        "born": [str(np.datetime64("1960-01-01") + int(day)) for day in rng.integers(0, 15_000, rows)],
        "town": rng.choice(["大阪", "京都", "Ærø", "Łódź 🏙", 'a "b", c'], rows).tolist(),
        "visits": rng.integers(0, 41, rows).tolist(),
        "code": rng.choice(["1", "12", "123", "12-", "2", "23", "äß"], rows).tolist(),
        "odd": rng.choice(["1", "x", "y", "w", "v; *"], rows).tolist(),
        "dose": rng.integers(0, 61, rows).tolist(),
        "disease": rng.choice(["flu", "asthma", "ulcer", "colic", "gout"], rows, p=[0.4, 0.2, 0.2, 0.1, 0.1]).tolist(),
        "charge": (10 * (age // 8) + rng.integers(0, 4, rows)).tolist(),
        "blood": rng.choice(["A", "B", "0"], rows).tolist(),
        "since": [
            f"20{year}-0{month}" for year, month in zip(rng.integers(18, 22, rows), rng.integers(1, 4, rows), strict=True)
        ],
    }
    cells |= _measure(np.random.default_rng([rows, 1]), rows)
    for name in ("age", "zip", "job", "born", "disease", "blood"):
        gaps = rng.random(rows) < missing
        marker = None if name == "age" else "?"
        cells[name] = [marker if gap else cell for gap, cell in zip(gaps, cells[name], strict=True)]
    return cells


def _measure(rng: np.random.Generator, rows: int) -> dict[str, list[Any]]:
    """Generate date-times, durations and places around three towns."""
    seen = np.datetime64("2024-03-16T06:00:00") + rng.integers(0, 4 * 86_400, rows)
    towns = np.array([(48.137, 11.575), (52.52, 13.405), (50.94, 6.96)])[rng.integers(0, 3, rows)]
    places = np.round(towns + rng.normal(0, 0.05, (rows, 2)), 4)
    return {
        "seen": [str(moment) for moment in seen],
        "waited": [f"PT{minutes}M" for minutes in rng.integers(0, 240, rows)],
        "home": [f"{latitude},{longitude}" for latitude, longitude in places.tolist()],
        "codes": [",".join(rng.choice(["E10", "E11", "I10", "J45"], size)) for size in rng.integers(1, 4, rows)],
    }


def case(
    name: str, cells: Mapping[str, list[Any]], quasi: list[str], secret: list[str], models: list[Model], **roles: Any
) -> Case:
    """Build a case from some columns of generated cells, with an identifier and a plain column of wards."""
    rows = len(next(iter(cells.values())))
    rng = np.random.default_rng(rows)
    shown: dict[str, list[Any]] = {"name": [f"Person-{number:06}" for number in rng.choice(900_000, rows, replace=False)]}
    shown |= {column: cells[column] for column in [*quasi, *secret]}
    shown |= {column: list(cells[column]) for column in ("patient",) if roles.get("person") == column}
    if rows >= 8:
        shown["ward"] = [("north", "south", "west")[i % 3] for i in range(rows)]
        roles["plain"] = ["ward"]
    kinds = {**quasi_kinds(), **time_and_place_kinds(), **secret_kinds()} | {
        column: numeric() for column in quasi if column.startswith("q")
    }
    schema = Schema(
        identifier=["name"],
        quasi={column: kinds[column] for column in quasi},
        sensitive={column: kinds[column] for column in secret},
        missing=["?"],
        **roles,
    )
    return Case(name, Columns.of(shown), schema, tuple(models))


def edge_tables() -> list[Case]:
    """Return one table for each edge case."""
    rng = np.random.default_rng(20)
    few, usual = people(rng, 24), people(rng, 40)
    gaps = people(rng, 40, missing=0.3)
    nothing = {**usual, "job": ["?"] * 40, "age": [None] * 40}
    far = {**usual, "weight": [249.5, 0.5, 248.0, *usual["weight"][3:]], "age": [20, 200, 40, *usual["age"][3:]]}
    wide = {**usual, **{f"q{i:02}": rng.integers(0, 9, 40).tolist() for i in range(64)}}
    k = KAnonymity(4)
    return [
        case("every kind", usual, list(quasi_kinds()), ["disease"], [k, TCloseness("disease", 0.4)], importance={"age": 3}),
        case("missing cells", gaps, ["age", "zip", "job", "born"], ["disease"], [k, LDiversity("disease", 2)]),
        case("only missing cells", nothing, ["age", "job", "sex"], ["disease"], [k]),
        case("unicode", usual, ["town", "sex"], ["blood"], [k, BetaLikeness("blood", 2)]),
        case(
            "look-alike values",
            _vary_spelling(usual),
            ["age", "sex"],
            ["blood"],
            [k, LDiversity("blood", 2), BetaLikeness("blood", 2)],
        ),
        case("constant column", {**usual, "sex": ["f"] * 40}, ["sex", "age"], ["charge"], [k, TCloseness("charge", 0.3)]),
        case("one secret value", {**usual, "blood": ["A"] * 40}, ["age", "sex"], ["blood"], [k]),
        case("one column", usual, ["weight"], ["charge"], [k]),
        case("64 columns", wide, [f"q{i:02}" for i in range(64)], ["disease"], [k]),
        case("equal rows", {name: cells[:1] * 12 for name, cells in usual.items()}, ["age", "zip"], ["disease"], [k]),
        case("one row", {name: cells[:1] for name, cells in usual.items()}, ["age", "zip"], ["disease"], [KAnonymity(1)]),
        case("k rows", {name: cells[:5] for name, cells in usual.items()}, ["age", "job"], ["disease"], [KAnonymity(5)]),
        case("no secret", few, ["age", "born"], [], [k]),
        *_several_secrets(usual),
        case("dates as secret", few, ["born", "zip"], ["since"], [KAnonymity(3), TCloseness("since", 0.4)]),
        case("missing secrets", gaps, ["age", "sex"], ["blood"], [k, TCloseness("blood", 0.5), DeltaDisclosure("blood", 1.5)]),
        case(
            "odd codes and trees", usual, ["code", "odd", "dose", "since"], ["disease"], [k], importance={"code": 0, "odd": 0.5}
        ),
        case("times and places", few, list(time_and_place_kinds()), ["disease"], [k]),
        case("steps", usual, ["weight", "job"], ["disease"], [k]),
        _with_persons("persons", usual, rng, [KAnonymity(3), LDiversity("disease", 2)]),
        _with_persons("persons counted once", usual, rng, [KAnonymity(3)], person_rows="count-once"),
        replace(case("rows far off", far, ["weight", "age"], ["charge"], [k, TCloseness("charge", 0.3)]), suppress=0.1),
        replace(_with_persons("persons far off", far, rng, [KAnonymity(3)]), suppress=0.2),
    ]


def _vary_spelling(cells: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Write blood groups in three spellings."""
    spellings = (str, str.lower, "\u200b{} ".format)
    return {**cells, "blood": [spellings[i % 3](value) for i, value in enumerate(cells["blood"])]}


def _several_secrets(usual: dict[str, list[Any]]) -> list[Case]:
    k = KAnonymity(4)
    return [
        case(
            "two secrets",
            usual,
            ["age", "visits"],
            ["disease", "charge"],
            [k, TCloseness("charge", 0.3), TCloseness("disease", 0.5)],
        ),
        case(
            "three secrets, mixed guarantees",
            usual,
            ["age", "job"],
            ["disease", "charge", "blood"],
            [k, TCloseness("charge", 0.3), BetaLikeness("disease", 2), LDiversity("blood", 3)],
        ),
        case(
            "secrets as one",
            usual,
            ["age", "visits"],
            ["disease", "blood"],
            [k, TCloseness(("blood", "disease"), 0.5), TCloseness("disease", 0.4)],
        ),
    ]


def tables_of_both_roles() -> list[Case]:
    """Return tables with columns that are both quasi and sensitive."""
    cells = people(np.random.default_rng(21), 40, missing=0.1)
    blood, disease = LDiversity("blood", 2), LDiversity("disease", 2)
    return [
        case("both roles", cells, ["age", "job", "blood"], ["disease", "blood"], [blood, disease]),
        case("both roles and nothing else", cells, ["sex", "blood"], ["blood"], [TCloseness("blood", 0.6, "equal")]),
    ]


def _with_persons(name: str, cells: dict[str, list[Any]], rng: np.random.Generator, models: list[Model], **roles: Any) -> Case:
    rows = len(cells["age"])
    persons = [f"Patient-{number}" for number in rng.integers(100, 100 + rows // 2, rows)]
    return case(name, {**cells, "patient": persons}, ["age", "zip", "sex"], ["disease"], models, person="patient", **roles)


def random_tables(count: int, seed: int = 0) -> list[Case]:
    """Generate tables: any quasi-identifiers, any sensitive attribute, with or without gaps and persons."""
    return [_random_table(f"random {i}", np.random.default_rng([seed, i])) for i in range(count)]


def _random_table(name: str, rng: np.random.Generator) -> Case:
    rows = int(rng.integers(12, 80))
    missing = float(rng.choice([0.0, 0.0, 0.1, 0.5]))
    cells = people(rng, rows, missing)
    quasi = rng.choice(list(quasi_kinds()), int(rng.integers(1, 5)), replace=False).tolist()
    secret = str(rng.choice(list(secret_kinds())))
    k = KAnonymity(int(rng.integers(2, 6)))
    closer: list[Model] = [
        TCloseness(secret, round(float(rng.uniform(0.05, 0.6)), 2), None if missing == 0 else "equal"),
        BetaLikeness(secret, round(float(rng.uniform(0.5, 4)), 2)),
        LDiversity(secret, 2),
        LDiversity(secret, 1.5, "entropy"),
    ]
    models = [k, *(closer[i] for i in rng.choice(4, int(rng.integers(0, 3)), replace=False))]
    if rng.random() < 0.25:
        cells["patient"] = [f"Patient-{number}" for number in rng.integers(100, 100 + rows, rows)]
        return case(name, cells, quasi, [secret], models, person="patient")
    return case(name, cells, quasi, [secret], models)
