"""Which parameter of which guarantee varies, how far, and what its guarantee is called in a table.

Every model declares its parameter: name, usual values and range. Where nothing is named, the guarantee with the lowest rank
varies (closeness, else likeness, else disclosure, else diversity, else k), over its usual values and the requested one.
Otherwise `vary` is a name (`"t"`, or `"t_closeness.t"` or `"disease.t"` where several guarantees have one) or a name with its
values, `{"t": [0.1, 0.2]}`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from closeknit.core.combined_secrets import render_secret
from closeknit.core.comparison import Measure
from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.exact import Number, fraction
from closeknit.core.frontier import Amount
from closeknit.core.model import Model, Parameter
from closeknit.core.params import spec
from closeknit.core.table import Table
from closeknit.models import REGISTRY

Vary = str | Mapping[str, Iterable[Number]] | None


@dataclass(frozen=True)
class ParameterSweep:
    """A parameter of one of several guarantees."""

    models: tuple[Model, ...]
    place: int
    parameter: str

    @property
    def model(self) -> Model:
        """The varied guarantee."""
        return self.models[self.place]

    def at(self, value: Number) -> tuple[Model, ...]:
        """Return all guarantees, the varied one with another value."""
        varied = replace(cast(Any, self.model), **{self.parameter: value})
        return (*self.models[: self.place], varied, *self.models[self.place + 1 :])

    @property
    def name(self) -> str:
        """The head of its column: `t of disease`."""
        return measure_of(self.model, self.parameter).name

    @property
    def whole(self) -> bool:
        """Whether it is a whole number."""
        return self.model.parameter.whole

    def reach(self, table: Table) -> tuple[float, float]:
        """Return the smallest and the largest value with a meaning for this table."""
        usual = self.model.parameter
        return usual.least, usual.most if usual.most is not None else max(_as_one_class(self.model, table), usual.least)

    def usual_grid(self, table: Table) -> list[Number]:
        """Return the usual values and the requested one, without those that the table as one class does not reach."""
        requested: Number = getattr(self.model, self.parameter)
        most = _as_one_class(self.model, table) if self.model.higher_is_safer else float("inf")
        values = [
            value for value in self.model.parameter.grid if value <= most and fraction("it", value) != fraction("it", requested)
        ]
        return sorted([requested, *(int(value) if self.whole else value for value in values)], key=lambda v: fraction("it", v))


def choose_sweep(models: Sequence[Model], vary: Vary) -> tuple[ParameterSweep, list[Number] | None]:
    """Return the parameter to vary, and its values if they are given.

    >>> from closeknit.models import KAnonymity, TCloseness
    >>> models = [KAnonymity(4), TCloseness("disease", 0.3)]
    >>> choose_sweep(models, None)[0].name, choose_sweep(models, "k")[0].name, choose_sweep(models, {"t_closeness.t": [0.1]})[1]
    ('t of disease', 'k', [0.1])
    """
    if not models:
        raise BadInput("no guarantee is requested", right="give at least one model, such as KAnonymity(6)")
    if vary is None:
        return _strictest(models), None
    if isinstance(vary, str):
        return _find_parameter(models, vary, False), None
    if not isinstance(vary, Mapping) or len(vary) != 1:
        raise BadInput(
            f"vary={vary!r} cannot be read", right="write a name such as 't', or one name with its values: {'t': [0.1, 0.2]}"
        )
    ((key, given),) = vary.items()
    sweep, values = (
        _find_parameter(models, key, True),
        list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [],
    )
    if not values:
        raise BadInput(f"vary={vary!r} has no values", right=f"write a list: {{'{key}': [0.1, 0.2]}}")
    for value in values:
        sweep.at(value)  # refuse a wrong value before the work starts
    return sweep, list(dict.fromkeys(values))


def measures(groups: Iterable[Sequence[Model]], first: ParameterSweep) -> list[tuple[Measure, Model]]:
    """Return everything that these guarantees measure, each once, the varied one first."""
    models = [first.model, *(model for models in groups for model in models)]
    found = {(measure := measure_of(model)).name: (measure, model) for model in reversed(models)}
    return [found.pop(measure_of(first.model).name), *reversed(found.values())]


def measure_of(model: Model, parameter: str | None = None) -> Measure:
    """Return the measure of a guarantee with its name.

    >>> from closeknit.models import LDiversity
    >>> measure_of(LDiversity("disease", 3, kind="entropy")).name
    'l of disease (kind=entropy)'
    """
    parameter = parameter or model.parameter.name
    more = {key: value for key, value in spec(model).items() if key not in ("column", parameter)}
    options = f" ({', '.join(f'{key}={value}' for key, value in more.items())})" if more else ""
    of = f" of {render_secret(model.column)}" if model.column else ""
    text = model.describe(None)
    return Measure(name=f"{parameter}{of}{options}", parameter=parameter, text=text, higher_is_safer=model.higher_is_safer)


def strictness(parameter: str) -> int:
    """The rank of a parameter: the lowest is the one that varies and that a chart shows.

    >>> strictness("t") < strictness("beta") < strictness("k")
    True
    """
    ranks = [model.parameter.rank for model in REGISTRY.values() if model.parameter.name == parameter]
    return min(ranks, default=Parameter.rank)


def amount(value: Number) -> Amount:
    """Return a value for a record."""
    return value if isinstance(value, int | float | str) else str(value)


def _strictest(models: Sequence[Model]) -> ParameterSweep:
    place = min(range(len(models)), key=lambda i: models[i].parameter.rank)
    return ParameterSweep(tuple(models), place, models[place].parameter.name)


def _find_parameter(models: Sequence[Model], key: str, with_values: bool) -> ParameterSweep:
    whose, _, parameter = str(key).rpartition(".")
    known = [ParameterSweep(tuple(models), place, field) for place, model in enumerate(models) for field in _numbers(model)]
    meant = [
        sweep for sweep in known if sweep.parameter == parameter and whose in ("", sweep.model.name, _name_scope(sweep.model))
    ]
    if len(meant) == 1 and not with_values and meant[0].model.parameter.name != parameter:
        raise BadInput(f"there is no usual grid for '{key}'", right=f"give its values: vary={{'{key}': [...]}}")
    if len(meant) == 1:
        return meant[0]
    if meant:
        names = ", ".join(f"'{_name_scope(sweep.model)}.{sweep.parameter}'" for sweep in meant)
        raise BadInput(f"'{key}' is a parameter of several guarantees", right=f"choose one of {names}")
    scoped = dict.fromkeys(f"{_name_scope(sweep.model)}.{sweep.parameter}" for sweep in known)
    raise BadInput(f"'{key}' is a parameter of no guarantee", right=suggest_name(key, scoped))


def _name_scope(model: Model) -> str:
    return render_secret(model.column) if model.column else model.name


def _numbers(model: Model) -> list[str]:
    """Return the parameters that can be varied."""
    return [
        field.name
        for field in dataclasses.fields(cast(Any, model))
        if field.init and field.name not in ("column", "kind", "distance", "over", "population", "reference")
    ]


def _as_one_class(model: Model, table: Table) -> float:
    return float(model.levels(table.one_class())[0])
