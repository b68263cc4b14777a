"""`compare` methods: measured level, loss and cost of each on the same table, with the same guarantees and seed."""

from __future__ import annotations

import contextlib
import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from closeknit import __version__
from closeknit.api.anonymizing import anonymize
from closeknit.api.parameter_sweep import measure_of, strictness
from closeknit.api.recipe import FormSpec as FormSpec
from closeknit.api.recipe import MethodSpec, ModelSpecs, Recipe, build_from_form, form_of, method_of, models_from
from closeknit.api.repeating import build_repeat
from closeknit.api.request_checks import check_models, check_request, draw_seed, encode_table, read_table
from closeknit.api.resource_meter import Meter
from closeknit.api.trials import few_rows
from closeknit.attacks.exchange import measure_gain
from closeknit.core.certificate import Certificate, Document
from closeknit.core.columns import Columns
from closeknit.core.comparison import AlgorithmGain, Comparison, Measure, MethodResult
from closeknit.core.errors import BadInput, CloseknitError, Unsatisfiable
from closeknit.core.frontier import front_of
from closeknit.core.limits import MOST_RUNS
from closeknit.core.method import Method, Progress, can_plan, ignore_progress
from closeknit.core.model import Model, joints
from closeknit.core.params import choice, number, spec, whole
from closeknit.core.requested_models import list_models
from closeknit.core.schema import Schema, require_schema
from closeknit.core.table import Table
from closeknit.forms import REGISTRY as FORMS
from closeknit.io.canonical import canonical_blocks
from closeknit.io.csv import CsvFormat
from closeknit.io.folders import save_private, write_inside
from closeknit.methods import REGISTRY
from closeknit.models.transparency import Transparency
from closeknit.report.frontier_chart import frontier_svg, standalone

FILES = ("comparison.json", "comparison.csv", "comparison.svg")
GAIN_FILE = "known_algorithm.svg"
KNOWN_ALGORITHM = "known-algorithm"
RUNS = 300  # of each method, against an adversary who knows it
WHOLE, NEIGHBOURS = 400, 200  # a larger table is represented by the nearest rows of drawn persons
GENERALIZED = "generalized"
MethodSpecs = Sequence[MethodSpec]


def compare(
    data: Any,
    schema: Schema,
    models: ModelSpecs,
    methods: MethodSpecs | None = None,
    *,
    suppress: float = 0.0,
    form: FormSpec | None = None,
    seed: int | None = None,
    csv: CsvFormat | None = None,
    allow_vacuous: bool = False,
    against: str | None = None,
    runs: int = RUNS,
    neighbours: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare methods on a table: one row each, by loss; a method that refuses gets a row with its reason.

    `anonymize` with the comparison's seed repeats any of the releases.

    Args:
        data: A frame, a mapping of columns, or the path of a file.
        schema: Role, kind and hierarchy of each column.
        models: The guarantees to meet.
        methods: Instances, names, or as in a recipe; default: every method that can meet such guarantees.
        suppress: Largest share of rows that may be suppressed, from 0 to 1.
        form: How the releases are written; default: the usual one of each method.
        seed: Seed of all methods; default: random.
        csv: Format of a CSV file; what it leaves open is detected.
        allow_vacuous: Note a guarantee that excludes nothing instead of refusing it.
        against: "known-algorithm" also measures what an adversary who knows the method learns (`attacks.exchange`).
        runs: How often each method runs for that.
        neighbours: Rows around a drawn person on which it runs; default: all of a small table, 200 of a larger one.
        progress: Called with the current step and the share of the work done.
    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(200), ck.datasets.hospital_schema()
    >>> models = [ck.KAnonymity(4), ck.TCloseness("disease", 0.3)]
    >>> comparison = ck.compare(table, schema, models, ["stack_and_deal", ck.Sabre(fill="knn"), "burel"])
    >>> [row.ok for row in comparison.methods], comparison.methods[-1].name
    ([True, True, False], 'burel')
    """
    requested, progress, models = form_of(form), progress or ignore_progress, models_from(models)
    name = requested.name if requested else GENERALIZED
    rivals = build_methods(list_methods(models, name) if methods is None else methods)
    number("suppress", suppress, least=0, most=1)
    seed = draw_seed(seed)
    if against is not None:
        choice("against", against, (KNOWN_ALGORITHM,))
        whole("runs", runs, 2, MOST_RUNS)
    check_models(require_schema(schema), models, requested or build_from_form("form", rivals[0].usual_form, FORMS))
    progress("reading", 0.0)
    columns, _ = read_table(data, csv, schema)
    schema = schema.without_identifiers()  # they are checked and dropped
    with deduplicate_warnings():
        guarantees = check_comparison(encode_table(columns, schema, data), models, rivals)
        run = _Run(
            columns, schema, models, {"suppress": suppress, "form": requested, "seed": seed, "allow_vacuous": allow_vacuous}
        )
        rows = [run.row(method, _scale_progress(progress, method, i, len(rivals))) for i, method in enumerate(rivals)]
        if against is not None:
            neighbours = neighbours or (NEIGHBOURS if columns.rows > WHOLE else None)
            rows = run.add_gains(rows, rivals, runs, neighbours, progress)
    progress("done", 1.0)
    rows.sort(key=lambda row: math.inf if row.loss is None else row.loss.a)
    return Comparison(
        closeknit=__version__,
        rows=columns.rows,
        guarantees=guarantees,
        measures=tuple(map(measure_of, models)),
        seed=seed,
        methods=tuple(rows),
        against=against,
    )


def compare_recipe(
    recipe: Recipe, methods: MethodSpecs | None = None, progress: Progress | None = None, **gain: Any
) -> Comparison:
    """Compare the recipe's method with others, on its table and under its guarantees.

    Args:
        recipe: The table, its schema, the guarantees and a method.
        methods: Other methods; default: every method that can meet such guarantees.
        progress: Called with the current step and the share of the work done.
        gain: `against`, `runs` and `neighbours` of `compare`.
    """
    name = recipe.form.name if recipe.form else recipe.method.usual_form
    others = list_methods(recipe.models, name) if methods is None else methods
    return compare(
        recipe.source,
        recipe.schema,
        recipe.models,
        [recipe.method, *others],
        **recipe.options,
        csv=recipe.csv,
        allow_vacuous=recipe.allow_vacuous,
        progress=progress,
        **gain,
    )


def list_methods(models: Sequence[Model], form: str = GENERALIZED) -> list[str]:
    """Return the names of the methods that can meet such guarantees and publish in such a form.

    >>> from closeknit.models import BetaLikeness
    >>> "burel" in list_methods([BetaLikeness("disease", 2)]), "sabre" in list_methods([BetaLikeness("disease", 2)])
    (True, False)
    """
    requested = list_models(models)
    forms = {form, GENERALIZED}  # classes made for ranges can be written in any form
    return [
        name
        for name, method in REGISTRY.items()
        if method.competes and can_plan(method, requested) and method.usual_form in forms
    ]


def save_comparison(comparison: Comparison, folder: str | PathLike[str], force: bool = False) -> None:
    """Write `comparison.json`, `comparison.csv` and the charts to a private folder, all or nothing."""
    more = {GAIN_FILE: draw_gain_chart(comparison)} if comparison.against else {}
    save_with_chart(FILES, comparison, comparison.records(), draw_chart(comparison), folder, force, more)


def draw_gain_chart(comparison: Comparison) -> str:
    """Draw each method's loss against the gain of an adversary who knows it, with its interval, as SVG for a page."""
    points = [
        {
            "method": row.name,
            "level": found.level,
            "low": min(found.low, found.level),
            "high": found.level,
            "loss": row.loss.a,
            "front": row.front,
        }
        for row in comparison.methods
        if row.loss and (found := row.known_algorithm) is not None
    ]
    title = f"gain of an adversary who knows the algorithm against loss, {len(points)} methods"
    return frontier_svg(points, level="upper end of the gain", higher_is_safer=False, title=title)


def draw_chart(comparison: Comparison) -> str:
    """Draw each method's loss against the level of the strictest guarantee that has one, as SVG for a page."""
    head, levels, front = choose_axis(comparison)
    points = [
        {"method": row.name, "level": level, "loss": row.loss.a, "front": on}
        for row, level, on in zip(comparison.methods, levels, front, strict=True)
        if row.loss
    ]
    title = f"{head.name} measured against loss, {len(points)} methods"
    return frontier_svg(points, level=head.name, higher_is_safer=head.higher_is_safer, title=title)


def choose_axis(found: Comparison) -> tuple[Measure, list[float | None], list[bool]]:
    """Return the strictest guarantee that has a level, the level of each method, and which methods no other beats."""
    measured = [[level.level for level in row.measured] or [None] * len(found.measures) for row in found.methods]
    known = [i for i, _ in enumerate(found.measures) if any(levels[i] is not None for levels in measured)]
    place = min(known, key=lambda i: strictness(found.measures[i].parameter), default=None)
    head = Measure(name="level", parameter="", text="", higher_is_safer=False) if place is None else found.measures[place]
    levels = [None if place is None else each[place] for each in measured]
    return head, levels, front_of(levels, [row.loss.a if row.loss else None for row in found.methods], head.higher_is_safer)


def save_with_chart(
    names: tuple[str, str, str],
    document: Document,
    records: list[dict[str, Any]],
    chart: str,
    folder: str | PathLike[str],
    force: bool,
    more: Mapping[str, str] | None = None,
) -> None:
    """Write a record as JSON, as flat CSV and as charts (`more` by file name) to a private folder, all or nothing."""
    cells = Columns.of({name: [record[name] for record in records] for name in records[0]})

    def write(new: Path) -> None:
        write_inside(new / names[0], document.to_json().encode())
        write_inside(new / names[1], canonical_blocks(cells))
        for name, drawn in {names[2]: chart, **(more or {})}.items():
            write_inside(new / name, standalone(drawn))

    save_private(Path(folder), write, force, {*names, GAIN_FILE}.__contains__)


def build_methods(requested: MethodSpecs) -> list[Method]:
    """Return each method once, in the given order, built from instances, names or forms of a recipe.

    >>> [method.name for method in build_methods(["sabre", "mondrian", "sabre"])]
    ['sabre', 'mondrian']
    """
    rivals: list[Method] = []
    listed_or_one: Any = requested if isinstance(requested, list | tuple) else [requested]
    for given in listed_or_one:
        method = method_of(given)
        rivals += [method] if method not in rivals else []
    if not rivals:
        raise BadInput("there is no method to compare", right="known are: " + ", ".join(sorted(REGISTRY)))
    return rivals


def check_comparison(table: Table, models: Sequence[Model], rivals: Sequence[Method]) -> tuple[str, ...]:
    """Return the guarantees in words; a request that no method could serve is refused before any of them runs."""
    table = table.join_secrets(joints(models))
    with contextlib.suppress(Unsatisfiable):  # each method reports it in its row
        check_request(table, models, next((method for method in rivals if method.serves_both), rivals[0]))
    histograms = table.one_class().histograms
    return tuple(model.describe(histograms[model.column].domain if model.column else None) for model in models)


@dataclass(frozen=True)
class _Run:
    """One table and the request, passed to each method in turn."""

    columns: Columns
    schema: Schema
    models: Sequence[Model]
    options: dict[str, Any]
    secret: int = field(default_factory=draw_seed)  # shuffles the copy for a method that runs once

    def row(self, method: Method, progress: Progress) -> MethodResult:
        form = {method.name: json.loads(json.dumps(spec(method), default=str))}
        progress("loading", 0.0)
        self._warm_up(method)
        with Meter() as meter:
            try:
                found: Certificate | CloseknitError = self._certificate(self.columns, method, progress)
            except CloseknitError as refusal:
                found = refusal
        if isinstance(found, CloseknitError):
            return MethodResult(method=form, ok=False, seconds=meter.seconds, megabytes=meter.megabytes, reason=str(found))
        requested = found.guarantees[: len(self.models)]  # the method's own guarantees follow them
        return MethodResult.of(form, found.model_copy(update={"guarantees": requested}), meter.seconds, meter.megabytes)

    def add_gains(
        self, rows: list[MethodResult], rivals: Sequence[Method], runs: int, neighbours: int | None, progress: Progress
    ) -> list[MethodResult]:
        """Measure what an adversary who knows each method learns, and which methods no other beats in loss and gain."""
        found: list[AlgorithmGain | None] = []
        for place, (row, method) in enumerate(zip(rows, rivals, strict=True)):
            _scale_progress(progress, method, place, len(rivals))("attacking", 0.0)
            found.append(self._measure_gain(method, runs, neighbours) if row.ok else None)
        losses = [row.loss.a if row.loss and gain else None for row, gain in zip(rows, found, strict=True)]
        front = front_of([gain.level if gain else None for gain in found], losses, higher_is_safer=False)
        return [
            row.model_copy(update={"known_algorithm": gain, "front": on if gain else None})
            for row, gain, on in zip(rows, found, front, strict=True)
        ]

    def _measure_gain(self, method: Method, runs: int, neighbours: int | None) -> AlgorithmGain | None:
        repeat = build_repeat(self.schema, self.models, method, **self.options)
        columns = self._shuffle_secrets(self.columns) if method.runs_once else self.columns
        found = measure_gain(columns, self.schema, repeat, runs=runs, neighbours=neighbours, seed=self.options["seed"])
        own = [model.largest_gain for model in method.guarantees(self.schema) if isinstance(model, Transparency)]
        return found.model_copy(update={"proved": min(own)}) if found is not None and own else found

    def _warm_up(self, method: Method) -> None:
        """Run on a few rows first: loading compiled code is not part of a method's cost."""
        few = few_rows(self.columns.rows, self.models)
        # a few rows may have only one sensitive value
        with warnings.catch_warnings(action="ignore"), contextlib.suppress(CloseknitError):
            self._certificate(self.columns.take(few), method, ignore_progress)

    def _certificate(self, columns: Columns, method: Method, progress: Progress) -> Certificate:
        if method.runs_once:  # the best of several runs would not be what its guarantee is about
            columns = self._shuffle_secrets(columns)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".* is not attested: ")  # a comparison publishes nothing
            return anonymize(columns, self.schema, self.models, method, progress=progress, **self.options).certificate

    def _shuffle_secrets(self, columns: Columns) -> Columns:
        order = np.random.default_rng(self.secret).permutation(columns.rows)
        shuffled = {name: columns[name].take(order) for name in self.schema.sensitive if name in columns}
        return Columns({**columns.columns, **shuffled}, columns.rows)


def _scale_progress(progress: Progress, method: Method, place: int, count: int) -> Progress:
    """Return the progress of one method as a part of the whole."""
    return lambda what, share: progress(f"{method.name}: {what}", (place + share) / count)


@contextlib.contextmanager
def deduplicate_warnings() -> Iterator[None]:
    """Issue each warning once, although every method would issue it for the same table."""
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        yield
    for category, text in dict.fromkeys((warning.category, str(warning.message)) for warning in issued):
        warnings.warn(text, category, stacklevel=4)
