"""The choice of a method: which methods apply, their results on a sample or on all rows, and the draft with the chosen one.

A point is one possible release: a method, sometimes with another parameter of a guarantee, its measured level and its loss.
Levels on a sample differ from those of the whole table (fewer rows match the distribution less), so the page names its source.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from closeknit.api import compare, frontier
from closeknit.api.comparing import choose_axis, list_methods
from closeknit.api.parameter_sweep import choose_sweep
from closeknit.api.recipe import Recipe
from closeknit.core.certificate import model_form
from closeknit.core.columns import Columns
from closeknit.core.comparison import Comparison, Measure, MethodResult
from closeknit.core.errors import BadInput
from closeknit.core.frontier import Frontier, Point
from closeknit.core.method import Progress, can_plan
from closeknit.core.params import whole
from closeknit.core.schema import Schema
from closeknit.forms.generalized import Generalized
from closeknit.io.files import read
from closeknit.methods import REGISTRY
from closeknit.web.desk.draft import Draft, recipe_of

SAMPLE = 2000  # rows
SEED = 1  # of the sample: the same rows for every method and every visit


@dataclass(frozen=True)
class MethodOffer:
    """A method: what it does, and why it does not apply, if so."""

    name: str
    about: str
    form: str  # how it writes the table
    refused: str | None = None


def methods(draft: Mapping[str, Any]) -> list[MethodOffer]:
    """Return every registered method, those that apply first.

    >>> draft = {"schema": {"quasi": {"age": "numeric"}, "sensitive": {"wage": "numeric"}},
    ...          "models": [{"k_anonymity": {"k": 6}}]}
    >>> {offer.name: offer.refused for offer in methods(draft)}["sabre"]
    'it needs a guarantee that bounds the distance'
    """
    recipe = recipe_of({"models": [], **draft})
    name = recipe.form.name if recipe.form else recipe.method.usual_form
    served = list_methods(recipe.models, name)
    found = []
    for method, made in REGISTRY.items():
        about = (inspect.getdoc(inspect.getmodule(made)) or "").split("\n\n")[0].partition(": ")[2].replace("\n", " ")
        fits = can_plan(made, recipe.models)
        why = f"it is not written as {name}" if fits else f"it needs a guarantee that bounds the {made.needs_bound}"
        why = why if made.competes else "it writes every column at its declared level, and searches nothing"
        found.append(MethodOffer(method, about, made.usual_form, None if method in served else why))
    return sorted(found, key=lambda offer: offer.refused is not None)


def sample(columns: Columns, schema: Schema, rows: int = SAMPLE, seed: int = SEED) -> Columns:
    """Draw a sample of rows, in their order; with a person column, whole persons until there are enough rows.

    >>> import closeknit as ck
    >>> table = ck.datasets.hospital(100)
    >>> few = sample(table, ck.datasets.hospital_schema(), rows=10)
    >>> few.rows, few["age"].cells() == sample(table, ck.datasets.hospital_schema(), rows=10)["age"].cells()
    (10, True)
    """
    whole("rows", rows, least=1)
    if columns.rows <= rows:
        return columns
    rng = np.random.default_rng(seed)
    if schema.person is None:
        return columns.take(np.sort(rng.choice(columns.rows, rows, replace=False)))
    persons = columns[schema.person]
    order = rng.permutation(len(persons.values))
    enough = int(np.searchsorted(np.cumsum(persons.counts[order]), rows)) + 1
    drawn = np.zeros(len(persons.values) + 1, dtype=bool)  # the last entry serves rows without a person
    drawn[order[:enough]] = True
    return columns.take(np.flatnonzero(drawn[persons.codes]))


@dataclass(frozen=True)
class ChoicePoint:
    """A possible release; without `loss` it is impossible, and `reason` says why."""

    number: int  # its place in the list, which a link refers to
    name: str
    method: dict[str, Any]  # as the draft writes it
    models: list[dict[str, Any]] | None  # its guarantees, if they differ from the draft's
    requested: str | None  # the varied parameter
    ok: bool
    level: float | None
    loss: float | None
    measured: tuple[str, ...]
    classes: int | None
    suppressed: int | None
    seconds: float
    front: bool
    reason: str | None


@dataclass(frozen=True)
class Choices:
    """Points to choose from, computed from `rows` of `of` rows."""

    rows: int
    of: int
    guarantees: tuple[str, ...]
    measures: tuple[str, ...]  # heads of the columns of `measured`
    level: str  # label of the axis: "t of disease"
    higher_is_safer: bool
    points: tuple[ChoicePoint, ...]
    best: int | None  # the number of the point with the least loss
    snapping: tuple[float, float] | None = None  # its loss if ranges of whole numbers end at true values, and at steps

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Choices:
        """Read such a record.

        >>> Choices.read(asdict(Choices(9, 9, (), (), "k", True, (), None))).level
        'k'
        """
        points = tuple(ChoicePoint(**{**point, "measured": tuple(point["measured"])}) for point in record["points"])
        listed = {key: tuple(record[key]) for key in ("guarantees", "measures")}
        snapping = tuple(record["snapping"]) if record.get("snapping") else None
        return cls(**{**record, **listed, "points": points, "snapping": snapping})


def compare_methods(
    draft: Mapping[str, Any],
    folder: Path | None = None,
    *,
    columns: Columns | None = None,
    rows: int | None = SAMPLE,
    names: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Choices:
    """Compare methods on the draft's table, or on a sample of it (`rows`; None: all rows).

    >>> import closeknit as ck
    >>> draft = {**ck.datasets.hospital_recipe("table.csv"), "models": [{"k_anonymity": {"k": 4}}]}
    >>> found = compare_methods(draft, columns=ck.datasets.hospital(300), rows=100, names=["mondrian", "burel"])
    >>> found.rows, found.of, [(point.name, point.ok) for point in found.points]
    (100, 300, [('mondrian', True), ('burel', False)])
    """
    recipe = recipe_of(draft, folder)
    table, few = _read_sample(recipe, columns, rows)
    name = recipe.form.name if recipe.form else recipe.method.usual_form
    requested = list_methods(recipe.models, name) if names is None else list(names)
    found = compare(
        few, recipe.schema, recipe.models, requested, **recipe.options, allow_vacuous=recipe.allow_vacuous, progress=progress
    )
    choices = from_comparison(found, table.rows)
    return replace(choices, snapping=_snapping(few, recipe, choices, found.seed))


def _snapping(columns: Columns, recipe: Recipe, choices: Choices, seed: int) -> tuple[float, float] | None:
    """Return the loss of the best point if ranges of whole numbers end at true values, and at steps; None without ranges."""
    form = recipe.form or Generalized()
    if choices.best is None or not isinstance(form, Generalized) or form.cells == "stars":
        return None
    if not replace(form, snap=False).tight(form.before(recipe.schema.encode(columns), seed).schema):
        return None
    best, other = choices.points[choices.best], replace(form, snap=not form.snap)
    (row,) = compare(
        columns, recipe.schema, recipe.models, [best.method], suppress=recipe.suppress, form=other, seed=seed
    ).methods
    if row.loss is None or best.loss is None:
        return None
    return (row.loss.a, best.loss) if form.snap else (best.loss, row.loss.a)


def from_comparison(found: Comparison, of: int) -> Choices:
    """Convert a comparison to points; the axis is the strictest guarantee that has a level."""
    head, levels, front = choose_axis(found)
    points = tuple(
        _build_point(i, row, level=levels[i], measured=tuple(measured.text for measured in row.measured), front=front[i])
        for i, row in enumerate(found.methods)
    )
    return _build_choices(found, of, head, points)


def vary_guarantee(
    draft: Mapping[str, Any],
    folder: Path | None = None,
    *,
    columns: Columns | None = None,
    rows: int | None = SAMPLE,
    names: Sequence[str] | None = None,
    vary: Any = None,
    progress: Progress | None = None,
) -> Choices:
    """Measure what a stricter or looser guarantee would cost: `vary` as in `frontier`, such as "t" or {"t": [0.1, 0.2]}.

    >>> import closeknit as ck
    >>> draft = {**ck.datasets.hospital_recipe("table.csv"), "models": [{"k_anonymity": {"k": 4}}]}
    >>> found = vary_guarantee(draft, columns=ck.datasets.hospital(100), names=["mondrian"], vary={"k": [2, 5]})
    >>> [point.models for point in found.points]
    [[{'k_anonymity': {'k': 2}}], [{'k_anonymity': {'k': 5}}]]
    """
    recipe = recipe_of(draft, folder)
    table, few = _read_sample(recipe, columns, rows)
    found = frontier(
        few,
        recipe.schema,
        recipe.models,
        None if names is None else list(names),
        vary=vary,
        **recipe.options,
        jobs=1,
        progress=progress,
    )
    return from_frontier(found, recipe, vary, table.rows)


def from_frontier(found: Frontier, recipe: Recipe, vary: Any, of: int) -> Choices:
    """Convert a frontier to points, each with its guarantees."""
    sweep, _ = choose_sweep(recipe.models, vary)
    head = found.measures[0]
    points = tuple(
        _build_point(
            i,
            point,
            models=[model_form(model) for model in sweep.at(point.requested)],
            requested=f"{point.parameter} = {point.requested}",
            level=point.level,
            measured=tuple("–" if level is None else f"{level:.4g}" for level in point.measured),
            front=point.front,
        )
        for i, point in enumerate(found.points)
    )
    return _build_choices(found, of, head, points)


def _build_point(number: int, row: MethodResult | Point, **own: Any) -> ChoicePoint:
    return ChoicePoint(
        number=number,
        name=row.name,
        method=row.method,
        ok=row.ok,
        loss=row.loss.a if row.loss else None,
        classes=row.classes.count if row.classes else None,
        suppressed=row.suppressed,
        seconds=row.seconds,
        reason=row.reason,
        **{"models": None, "requested": None, **own},
    )


def choose_point(draft: Mapping[str, Any], point: ChoicePoint | Mapping[str, Any]) -> Draft:
    """Return the draft with the method of a point, and with its guarantees if these were varied.

    >>> choose_point({"models": [{"k_anonymity": {"k": 4}}]}, {"method": {"sabre": {"fill": "knn"}}, "models": None})["method"]
    {'sabre': {'fill': 'knn'}}
    """
    record = asdict(point) if isinstance(point, ChoicePoint) else dict(point)
    if not isinstance(record.get("method"), Mapping):
        raise BadInput("this point names no method", right="choose one of the points shown")
    changed = {**draft, "method": dict(record["method"])}
    return {**changed, "models": list(record["models"])} if record.get("models") else changed


def _best(points: Sequence[ChoicePoint]) -> int | None:
    done = [(point.loss, point.number) for point in points if point.ok and point.loss is not None]
    return min(done)[1] if done else None


def _build_choices(found: Comparison | Frontier, of: int, head: Measure, points: tuple[ChoicePoint, ...]) -> Choices:
    names = tuple(measure.name for measure in found.measures)
    return Choices(found.rows, of, found.guarantees, names, head.name, head.higher_is_safer, points, _best(points))


def _read_sample(recipe: Recipe, columns: Columns | None, rows: int | None) -> tuple[Columns, Columns]:
    """Return the table, and the rows that are tried."""
    table = read(recipe.source, recipe.csv) if columns is None else columns
    return table, table if rows is None else sample(table, recipe.schema, rows)
