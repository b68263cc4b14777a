"""A stream as a recipe requests it: `stream: {castle: {k: 100, delta: 10000}, position: number, rules: {key: record}}`.

Without the name of an algorithm, `stream: {k: 100, delta: 10000}`, it is `knit_stream`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.model import Model
from closeknit.core.schema import Schema
from closeknit.streams import REGISTRY
from closeknit.streams.arrival_order import ArrivalOrder
from closeknit.streams.input_rules import REFUSE, InputRules
from closeknit.streams.stream import Stream

COLUMN_KEYS = ("position", "time")
OTHER_KEYS = (*COLUMN_KEYS, "rules")
DEFAULT = "knit_stream"
OTHER_PARAMS = ("self", "schema", "models", "seed", "clock")  # parameters that a recipe has elsewhere, or not at all


@dataclass(frozen=True)
class StreamRequest:
    """A stream algorithm and its parameters.

    Args:
        name: the algorithm.
        params: its parameters.
        position: the column with a row's position; None if there is none.
        time: the column with a row's time; None if there is none.
        rules: for rows that do not arrive as declared.

    >>> StreamRequest.of({"castle": {"k": 100, "delta": 10000}, "position": "number"})
    StreamRequest(name='castle', params={'k': 100, 'delta': 10000}, position='number', time=None, rules=InputRules(...))
    >>> StreamRequest.of({"k": 100, "delta": 10000})
    StreamRequest(name='knit_stream', params={'k': 100, 'delta': 10000}, position=None, time=None, rules=InputRules(...))
    >>> StreamRequest.of({"castle": {"kay": 100}})
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: stream 'castle' has no parameter 'kay'; choose one of: k, delta, ...
    """

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)
    position: str | None = None
    time: str | None = None
    rules: InputRules = field(default_factory=InputRules)

    @classmethod
    def of(cls, form: Any) -> StreamRequest:
        """From the value of the key `stream`.

        Args:
            form: the name of an algorithm, a mapping with its parameters, or the parameters of the default alone.
        """
        right = f"write {{castle: {{k: 100, delta: 10000}}}}; known are: {', '.join(sorted(REGISTRY))}"
        form = _name_default({form: {}} if isinstance(form, str) else form)
        if not isinstance(form, Mapping) or len(names := [key for key in form if key not in OTHER_KEYS]) != 1:
            raise BadInput(f"stream {form!r} cannot be read", right=right)
        (name,) = names
        if name not in REGISTRY:
            raise BadInput(f"stream '{name}' is unknown", right=suggest_name(name, sorted(REGISTRY)))
        params = form[name] or {}
        if not isinstance(params, Mapping):
            raise BadInput(f"stream '{name}' has {params!r} for its parameters", right="write {parameter: value}")
        for key in COLUMN_KEYS:
            if not isinstance(form.get(key), str | None):
                raise BadInput(f"stream has {key}={form[key]!r}, which is not a column", right="name a column of the rows")
        own, rules = {str(key): value for key, value in params.items()}, InputRules.of(form.get("rules") or {})
        requested = cls(name, own, form.get("position"), form.get("time"), rules)
        requested._check_names()
        return requested

    def build(self, schema: Schema, models: Sequence[Model], seed: int | None) -> Stream:
        """A new stream, whose clock is `tick`.

        Args:
            schema: roles and kinds of the columns.
            models: the guarantees.
            seed: makes all choices reproducible.
        """
        cls = REGISTRY[self.name]
        takes = inspect.signature(cls.__init__).parameters
        if models and "models" not in takes:
            raise BadInput(f"stream '{self.name}' takes no models", right="leave the key models out")
        given = dict(self.params)
        if models or _is_required(takes, "models"):
            given["models"] = list(models)
        if seed is not None:
            given["seed"] = seed
        stream = cls(schema=schema, **given)
        if self.time is not None and not stream.timed:
            raise BadInput("stream has a column for the time, and its delay is counted in rows", right="leave time out")
        if self.time is None and self.rules != replace(self.rules, late=REFUSE, jump=None):
            raise BadInput(
                "rules on late rows and jumps need a column for the time", right="name it under time, or leave them out"
            )
        stream.rules = self.rules
        for name in (self.position, self.time):
            if name is not None and name in schema.plain:
                right = "leave the column without a role: it is read, but must not be published"
                raise BadInput("is the position or time of a row, and is plain", column=name, right=right)
        return stream

    def order(self, schema: Schema) -> ArrivalOrder:
        """The order of the input of a stream."""
        return ArrivalOrder(schema, self.position, self.time)

    def _check_names(self) -> None:
        takes, own = inspect.signature(REGISTRY[self.name].__init__).parameters, list_params(self.name)
        for name in self.params:
            if name not in own:
                raise BadInput(f"stream '{self.name}' has no parameter '{name}'", right=suggest_name(name, own))
        for name in own:
            if name not in self.params and _is_required(takes, name):
                raise BadInput(f"stream '{self.name}' needs the parameter '{name}'")


def list_params(name: str) -> list[str]:
    """The parameters of an algorithm that a recipe may give.

    Args:
        name: the algorithm.

    >>> list_params("knn_stream")
    ['k', 'delta', 'l']
    """
    return [param for param in inspect.signature(REGISTRY[name].__init__).parameters if param not in OTHER_PARAMS]


def _name_default(form: Any) -> Any:
    """Put parameters that have no algorithm under the name of the default."""
    if not isinstance(form, Mapping) or not any(key in list_params(DEFAULT) for key in form):
        return form
    others = {key: form[key] for key in form if key in OTHER_KEYS}
    return {DEFAULT: {key: form[key] for key in form if key not in OTHER_KEYS}, **others}


def _is_required(takes: Mapping[str, inspect.Parameter], name: str) -> bool:
    return name in takes and takes[name].default is inspect.Parameter.empty
