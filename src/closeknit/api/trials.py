"""Trials of many settings on one coded table: level, loss and time of each, or why it gives no release."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from closeknit.api.parameter_sweep import measure_of
from closeknit.api.request_checks import draw_seed
from closeknit.api.table_release import ReleaseResult, check_guarantees, release_table
from closeknit.core.certificate import Certificate, Guarantee
from closeknit.core.errors import CloseknitError
from closeknit.core.measurement import judge
from closeknit.core.method import Method
from closeknit.core.model import Model, joints
from closeknit.core.schema import Schema
from closeknit.core.table import Form, Table

WARMING_ROWS = 500  # a run on a few rows loads compiled code, whose time would otherwise count for the first setting
WARMING_CLASSES = 10


@dataclass(frozen=True)
class Setting:
    """A method and its guarantees."""

    method: Method
    models: tuple[Model, ...]


@dataclass(frozen=True)
class TrialResult:
    """The result of a setting: a certificate and everything measured, or the reason of a refusal."""

    seconds: float
    certificate: Certificate | None = None
    guarantees: tuple[Guarantee | None, ...] = ()  # None if it has no meaning in this form
    reason: str | None = None

    @property
    def loss(self) -> float | None:
        """General Loss Metric A."""
        return self.certificate.loss.a if self.certificate else None

    def level(self, place: int) -> float | None:
        """Return the level of a measure; None if it is attested or has no bound."""
        guarantee = self.guarantees[place] if self.guarantees else None
        return guarantee.measured if guarantee else None

    def exact(self, place: int) -> Fraction | None:
        """Return the level as a rational number if it is one."""
        guarantee = self.guarantees[place] if self.guarantees else None
        if guarantee is None or guarantee.measured is None:
            return None
        return Fraction(guarantee.exact) if guarantee.exact else Fraction(guarantee.measured)


@dataclass(frozen=True)
class Trials:
    """The table, the form of its releases, and the measures of every release, requested or not."""

    table: Table
    seed: int
    measures: tuple[Model, ...] = ()
    suppress: float = 0.0
    form: Form | None = None
    allow_vacuous: bool = True  # a curve also shows where a guarantee starts to exclude nothing
    secret: int = field(default_factory=draw_seed, repr=False)  # shuffles a copy for some methods
    warm: set[str] = field(default_factory=set, repr=False)  # methods whose code is loaded
    known: dict[str, TrialResult] = field(default_factory=dict, repr=False)  # searches for several targets share settings

    def __call__(self, setting: Setting) -> TrialResult:
        """Compute the same release as `anonymize`, and keep only its measures."""
        if repr(setting) not in self.known:
            self.known[repr(setting)] = self._run_setting(setting)
        return self.known[repr(setting)]

    def _run_setting(self, setting: Setting) -> TrialResult:
        with warnings.catch_warnings(action="ignore"):  # warnings about the table were issued once already
            self._warm_up(setting)
            began = time.perf_counter()
            try:
                released = self._release(self.table, setting)
            except CloseknitError as refusal:
                return TrialResult(time.perf_counter() - began, reason=str(refusal))
            seconds = time.perf_counter() - began
            return TrialResult(seconds, released.certificate, self._measure_release(released, setting.models))

    def _warm_up(self, setting: Setting) -> None:
        """Run on a few rows first: loading compiled code is not part of a setting's cost."""
        if repr(setting.method) in self.warm:
            return
        self.warm.add(repr(setting.method))
        few = few_rows(len(self.table), setting.models)
        if len(few) < len(self.table):
            with contextlib.suppress(CloseknitError):
                self._release(self.table.take(few), setting)

    def _release(self, table: Table, setting: Setting) -> ReleaseResult:
        models = check_guarantees(table.schema, setting.models, setting.method, self.form)
        table = table.shuffle_secrets(self.secret) if setting.method.runs_once else table
        table = replace(table, allow_vacuous=self.allow_vacuous)
        return release_table(table, models, setting.method, suppress=self.suppress, form=self.form, seed=self.seed)

    def _measure_release(self, released: ReleaseResult, models: Sequence[Model]) -> tuple[Guarantee | None, ...]:
        """Return the certified guarantees; other measures are computed from the written cells, as in an audit."""
        certified = released.certificate.guarantees[: len(models)]  # the method's own guarantees follow them
        found = {measure_of(model).name: guarantee for model, guarantee in zip(models, certified, strict=True)}
        (form,) = released.certificate.form
        others = [model for model in self.measures if measure_of(model).name not in found and form in model.forms]
        if others:
            schema = Schema.from_forms(released.certificate.columns)
            reading = released.form.read(released.columns, schema, None, joints(others))
            found |= {
                measure_of(model).name: guarantee for model, guarantee in zip(others, judge(reading, others), strict=True)
            }
        return tuple(found.get(measure_of(model).name) for model in self.measures)


def few_rows(rows: int, models: Sequence[Model]) -> NDArray[np.int64]:
    """Return rows spread over a table, enough for some classes, on which compiled code is loaded.

    >>> from closeknit.models import KAnonymity
    >>> few_rows(10_000, [KAnonymity(5)]).size, few_rows(100, [KAnonymity(5)]).size
    (500, 100)
    """
    count = max([WARMING_ROWS, *(WARMING_CLASSES * model.least_size for model in models)])
    return np.unique(np.linspace(0, rows - 1, min(count, rows)).astype(np.int64))
