"""`frontier`: what a stricter or looser guarantee would cost on a table, for one method or several, point by point.

The table is read and coded once. Points are independent, so for a large table they are computed in several processes; the
results do not depend on their number. With `match` the first method's points set the target, and every other method's
parameter is varied until its release has the same t (or beta, k, loss): then methods are compared at the same level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import Any

from closeknit import __version__
from closeknit.api.comparing import build_methods, check_comparison, deduplicate_warnings, list_methods, save_with_chart
from closeknit.api.level_search import match_level
from closeknit.api.parameter_sweep import ParameterSweep, Vary, amount, choose_sweep, measures
from closeknit.api.recipe import FormSpec as FormSpec
from closeknit.api.recipe import MethodSpec, ModelSpecs, Recipe, form_of, models_from, usual_method
from closeknit.api.request_checks import draw_seed, encode_table, read_table
from closeknit.api.table_release import check_guarantees
from closeknit.api.trials import Setting, TrialResult, Trials
from closeknit.api.worker_pool import WorkerPool, processes
from closeknit.core.certificate import model_form
from closeknit.core.comparison import Measure
from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.exact import Number
from closeknit.core.frontier import Frontier, Point, mark_front
from closeknit.core.method import Method, Progress, ignore_progress
from closeknit.core.model import Model
from closeknit.core.params import number
from closeknit.core.requested_models import list_models
from closeknit.core.schema import Schema, require_schema
from closeknit.core.table import Form, Table
from closeknit.io.csv import CsvFormat
from closeknit.methods import REGISTRY, Mondrian
from closeknit.report.frontier_chart import frontier_svg

LOSS = "loss"
FILES = ("frontier.json", "frontier.csv", "frontier.svg")
# A method, or a method with guarantees of its own.
RivalSpecs = Sequence[MethodSpec | tuple[MethodSpec, ModelSpecs]]


def frontier(
    data: Any,
    schema: Schema,
    models: ModelSpecs,
    methods: RivalSpecs | None = None,
    *,
    vary: Vary = None,
    match: str | None = None,
    suppress: float = 0.0,
    form: FormSpec | None = None,
    seed: int | None = None,
    csv: CsvFormat | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Frontier:
    """Compute privacy against loss over the values of one parameter: a row for each method and value, also for a refusal.

    A row whose guarantees exclude nothing on this table is marked vacuous, and is never on the frontier. `anonymize` with the
    frontier's seed repeats any of the releases.

    Args:
        data: A frame, a mapping of columns, or the path of a file.
        schema: Role, kind and hierarchy of each column.
        models: The guarantees; one of them is varied.
        methods: As in `compare`; `(method, models)` has guarantees of its own. Default: a few usual ones.
        vary: A parameter such as `"t"`, or one with its values, `{"t": [0.1, 0.2]}`; default: that of the strictest guarantee.
        match: `"loss"`, or a measure of the first method's releases (`"t"`) that the other methods must reach too.
        suppress: Largest share of rows that may be suppressed, from 0 to 1.
        form: How the releases are written; default: the usual one of each method.
        seed: Seed of all releases; default: random.
        csv: Format of a CSV file; what it leaves open is detected.
        jobs: Number of processes; default: one per core if the table is large.
        progress: Called with the current step and the share of the work done.
    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(200), ck.datasets.hospital_schema()
    >>> models = [ck.KAnonymity(4), ck.TCloseness("disease", 0.3)]
    >>> curve = ck.frontier(table, schema, models, ["mondrian"], vary={"t": [0.2, 0.3, 0.5]})
    >>> [point.requested for point in curve.points], all(point.level <= point.requested for point in curve.points)
    ([0.2, 0.3, 0.5], True)
    """
    requested, progress = form_of(form), progress or ignore_progress
    number("suppress", suppress, least=0, most=1)
    seed = draw_seed(seed)
    schema, (sweep, values) = require_schema(schema), choose_sweep(models_from(models), vary)
    rivals = _build_rivals(_choose_methods(sweep, requested) if methods is None else methods, sweep)
    for rival in rivals[:1] + [rival for rival in rivals if rival.sweep is not sweep]:  # others report it in their rows
        check_guarantees(schema, rival.sweep.models, rival.method, requested)
    measured = measures([rival.sweep.models for rival in rivals], rivals[0].sweep)
    quantity = None if match is None else _quantity([measure for measure, _ in measured], match)
    progress("reading", 0.0)
    table = encode_table(read_table(data, csv, schema)[0], schema, data)
    with deduplicate_warnings():
        guarantees = check_comparison(table, rivals[0].sweep.models, [rival.method for rival in rivals])
    trials = Trials(table, seed, tuple(model for _, model in measured), suppress, requested)
    with WorkerPool(trials, processes(jobs, len(table))) as workers:
        points = _points(workers, [(rival, _grid(rival, rivals[0], values, table)) for rival in rivals], quantity, progress)
    progress("done", 1.0)
    heads = tuple(measure for measure, _ in measured)
    name = None if quantity is None else LOSS if quantity.place is None else heads[quantity.place].name
    return Frontier(
        closeknit=__version__,
        rows=len(table),
        seed=seed,
        guarantees=guarantees,
        measures=heads,
        matched=name,
        points=mark_front(points, heads[0].higher_is_safer),
    )


def frontier_recipe(recipe: Recipe, methods: RivalSpecs | None = None, **options: Any) -> Frontier:
    """Compute the frontier of the recipe's method and others, on its table; options as those of `frontier`."""
    sweep, _ = choose_sweep(list_models(recipe.models), options.get("vary"))
    others = _choose_methods(sweep, recipe.form) if methods is None else methods
    rivals = [recipe.method, *others]
    return frontier(recipe.source, recipe.schema, recipe.models, rivals, csv=recipe.csv, **recipe.options, **options)


def save_frontier(found: Frontier, folder: str | PathLike[str], force: bool = False) -> None:
    """Write `frontier.json`, `frontier.csv` and `frontier.svg` to a private folder, all or nothing."""
    save_with_chart(FILES, found, found.records(), draw_chart(found), folder, force)


def draw_chart(found: Frontier) -> str:
    """Draw the curves as SVG for a page."""
    head = found.measures[0]
    title = f"{head.name} measured against loss, {len(found.points)} releases"
    return frontier_svg(found.records(), level=head.name, higher_is_safer=head.higher_is_safer, title=title)


@dataclass(frozen=True)
class Rival:
    """A method and its varied parameter."""

    method: Method
    sweep: ParameterSweep


@dataclass(frozen=True)
class Quantity:
    """The matched quantity: the loss, or the measure at a place."""

    place: int | None
    higher_is_safer: bool = False

    def of(self, tried: TrialResult) -> float | None:
        """Return the quantity of a release."""
        return tried.loss if self.place is None else tried.level(self.place)

    @property
    def rises(self) -> bool:
        """Whether it grows as guarantees are loosened: losses and class sizes fall, a measured t grows."""
        return self.place is not None and not self.higher_is_safer


@dataclass(frozen=True)
class Task:
    """A point to compute: at a value, or matched to a target."""

    rival: Rival
    value: Number | None = None
    quantity: Quantity | None = None
    target: float | None = None


def _choose_methods(sweep: ParameterSweep, form: Form | None) -> list[Method]:
    """Return the default method, the one designed for the varied guarantee, and a fast one."""
    name = form.name if form else "generalized"
    served, bound = list_methods(sweep.models, name), sweep.model.bounds
    planning = [name for name in served if sweep.model.column and bound and REGISTRY[name].needs_bound == bound]
    usual = usual_method(form)
    first = [usual] if usual.name in served else []
    return build_methods([*first, *planning[:1], Mondrian()])


def _build_rivals(requested: RivalSpecs, sweep: ParameterSweep) -> list[Rival]:
    """Return each method with its varied parameter: of the common guarantees, or of its own."""
    rivals: list[Rival] = []
    for given in requested if isinstance(requested, list | tuple) else [requested]:
        pair = given if isinstance(given, tuple) else (given, None)
        if len(pair) != 2:
            raise BadInput(f"{given!r} is not a method with its guarantees", right="write (method, [model, ...])")
        (method,) = build_methods([pair[0]])
        own = sweep if pair[1] is None else _choose_own_sweep(models_from(pair[1]), sweep)
        rivals += [Rival(method, own)] if Rival(method, own) not in rivals else []
    if not rivals:
        build_methods([])
    return rivals


def _choose_own_sweep(models: list[Model], sweep: ParameterSweep) -> ParameterSweep:
    """Return the same parameter if a method's own guarantees have it, else their default one."""
    try:
        return choose_sweep(models, sweep.parameter)[0]
    except BadInput:
        return choose_sweep(models, None)[0]


def _quantity(heads: Sequence[Measure], match: str) -> Quantity:
    if match == LOSS:
        return Quantity(None)
    places = [i for i, measure in enumerate(heads) if match in (measure.parameter, measure.name)]
    if len(places) != 1:
        right = suggest_name(match, [LOSS, *(measure.name for measure in heads)])
        raise BadInput(f"match={match!r} is {'measured twice' if places else 'not measured'} here", right=right)
    return Quantity(places[0], heads[places[0]].higher_is_safer)


def _grid(rival: Rival, first: Rival, values: list[Number] | None, table: Table) -> list[Number]:
    """Return the given values if they belong to its parameter; else the usual ones."""
    same = rival.sweep.parameter == first.sweep.parameter
    return values if values is not None and same else rival.sweep.usual_grid(table)


def _points(
    workers: WorkerPool, rivals: Sequence[tuple[Rival, list[Number]]], quantity: Quantity | None, progress: Progress
) -> list[Point]:
    """Compute each method's points in the order of the values; matched ones after the first method's."""
    first = rivals[:1] if quantity else rivals
    share = len(first) / len(rivals)
    tasks = [Task(rival, value) for rival, values in first for value in values]
    points: list[Point] = workers.each(compute_point, tasks, partial(report_points, progress, 0.0, share))
    if quantity is None or len(rivals) == 1:
        return points
    targets = [_read_quantity(point, quantity) for point in points]
    if any(point.ok for point in points) and all(target is None for target in targets):
        what = "the quantity to match has no number in the first method's releases: it is attested, or has no bound"
        raise BadInput(what, right=f"match='{LOSS}', or another measure")
    tasks = [Task(rival, None, quantity, x) for rival, _ in rivals[1:] for x in dict.fromkeys(targets) if x is not None]
    return points + workers.each(compute_point, tasks, partial(report_points, progress, share, 1.0))


def report_points(progress: Progress, start: float, end: float, done: int, count: int) -> None:
    """Report the points done as a part of the whole."""
    progress(f"{done} of {count} points", start + (end - start) * done / max(count, 1))


def _read_quantity(point: Point, quantity: Quantity) -> float | None:
    if quantity.place is None:
        return point.loss.a if point.loss else None
    return point.measured[quantity.place] if point.measured else None


def compute_point(trials: Trials, task: Task) -> Point:
    """Compute one point, in any process."""
    rival, quantity, target = task.rival, task.quantity, task.target
    if task.value is not None or quantity is None or target is None:
        assert task.value is not None
        return _point(rival, amount(task.value), trials(Setting(rival.method, rival.sweep.at(task.value))))
    least, most = rival.sweep.reach(trials.table)
    strict, loose = (most, least) if rival.sweep.model.higher_is_safer else (least, most)
    found = match_level(
        lambda value: trials(Setting(rival.method, rival.sweep.at(value))),
        quantity.of,
        target,
        strict,
        loose,
        side="above" if quantity.higher_is_safer else "below",
        rises=quantity.rises,
        whole_numbers=rival.sweep.whole,
    )
    if found is None:
        reason = f"no setting tried from {strict:.6g} to {loose:.6g} reaches the target {target:.4g}"
        return _point(rival, strict, TrialResult(0.0, reason=reason)).model_copy(update={"target": target, "met": False})
    more = {"target": target, "met": found.met, "runs": found.runs}
    return _point(rival, found.value, found.result).model_copy(update=more)


def _point(rival: Rival, requested: float | str, tried: TrialResult) -> Point:
    base: dict[str, Any] = {
        "method": model_form(rival.method),
        "parameter": rival.sweep.name,
        "requested": requested,
        "seconds": tried.seconds,
    }
    if tried.certificate is None:
        return Point(**base, ok=False, reason=tried.reason)
    measured = tuple(tried.level(i) for i in range(len(tried.guarantees)))
    varied = tried.guarantees[0]
    attested = varied is not None and varied.status == "attested"
    level = Point(**base, ok=True).amount if attested else measured[0]  # only the request is disclosed
    found = tried.certificate
    return Point(
        **base,
        ok=found.ok,
        measured=measured,
        level=level,
        loss=found.loss,
        classes=found.classes,
        suppressed=found.suppressed,
        vacuous=any(guarantee.vacuous for guarantee in found.guarantees),
    )
