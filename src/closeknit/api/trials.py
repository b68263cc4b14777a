"""One coded table on which many settings are tried: what each reaches, loses and costs, or why it makes no release."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from closeknit.api.anonymizing import ReleaseResult, check_guarantees, release_table
from closeknit.api.parameter_sweep import measure_of
from closeknit.core.certificate import Certificate, Guarantee
from closeknit.core.errors import CloseknitError
from closeknit.core.measurement import judge
from closeknit.core.method import Method
from closeknit.core.model import Model, joints
from closeknit.core.schema import Schema
from closeknit.core.table import Form, Table

WARMING_ROWS = 500  # compiled code is loaded on few rows first, or the first setting would pay for all
WARMING_CLASSES = 10


@dataclass(frozen=True)
class Setting:
    """A method and what it must guarantee."""

    method: Method
    models: tuple[Model, ...]


@dataclass(frozen=True)
class TrialResult:
    """What became of a setting: a certificate and all that is guarantees, or a reason."""

    seconds: float
    certificate: Certificate | None = None
    guarantees: tuple[Guarantee | None, ...] = ()  # None where it has no meaning in the form that was written
    reason: str | None = None

    @property
    def loss(self) -> float | None:
        """General Loss Metric A."""
        return self.certificate.loss.a if self.certificate else None

    def level(self, place: int) -> float | None:
        """What one of the measures came to; None where it is attested, or has no bound."""
        guarantee = self.guarantees[place] if self.guarantees else None
        return guarantee.measured if guarantee else None

    def exact(self, place: int) -> Fraction | None:
        """The same as a rational where it is one."""
        guarantee = self.guarantees[place] if self.guarantees else None
        if guarantee is None or guarantee.measured is None:
            return None
        return Fraction(guarantee.exact) if guarantee.exact else Fraction(guarantee.measured)


@dataclass(frozen=True)
class Trials:
    """The table, how it is to be written, and what is guarantees of every release, guaranteed or not."""

    table: Table
    seed: int
    measures: tuple[Model, ...] = ()
    suppress: float = 0.0
    form: Form | None = None
    allow_vacuous: bool = True  # whoever looks along a curve also sees where a limit begins to exclude nothing
    warm: set[str] = field(default_factory=set, repr=False)  # methods whose code is loaded
    known: dict[str, TrialResult] = field(default_factory=dict, repr=False)  # searches for several targets begin alike

    def __call__(self, setting: Setting) -> TrialResult:
        """The same release as `anonymize` would make; none of it is kept but what was guarantees."""
        if repr(setting) not in self.known:
            self.known[repr(setting)] = self._run_setting(setting)
        return self.known[repr(setting)]

    def _run_setting(self, setting: Setting) -> TrialResult:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what there is to say of the table has been said once
            self._warm_up(setting)
            began = time.perf_counter()
            try:
                made = self._release(self.table, setting)
            except CloseknitError as refusal:
                return TrialResult(time.perf_counter() - began, reason=str(refusal))
            seconds = time.perf_counter() - began
            return TrialResult(seconds, made.certificate, self._measure_release(made, setting.models))

    def _warm_up(self, setting: Setting) -> None:
        """Few rows spread over the table: loading compiled code is no part of what a setting costs."""
        if repr(setting.method) in self.warm:
            return
        self.warm.add(repr(setting.method))
        few = few_rows(len(self.table), setting.models)
        if len(few) < len(self.table):
            with contextlib.suppress(CloseknitError):
                self._release(self.table.take(few), setting)

    def _release(self, table: Table, setting: Setting) -> ReleaseResult:
        models = check_guarantees(table.schema, setting.models, setting.method, self.form)
        table = replace(table, allow_vacuous=self.allow_vacuous)
        return release_table(table, models, setting.method, suppress=self.suppress, form=self.form, seed=self.seed)

    def _measure_release(self, made: ReleaseResult, models: Sequence[Model]) -> tuple[Guarantee | None, ...]:
        """Guarantees as they were certified; what was not guaranteed is read off the release as a stranger would."""
        certified = made.certificate.guarantees[: len(models)]  # what a method guarantees besides stands after them
        found = {measure_of(model).name: guarantee for model, guarantee in zip(models, certified, strict=True)}
        (form,) = made.certificate.form
        others = [model for model in self.measures if measure_of(model).name not in found and form in model.forms]
        if others:
            reading = made.form.read(made.columns, Schema.from_forms(made.certificate.columns), None, joints(others))
            found |= {
                measure_of(model).name: guarantee for model, guarantee in zip(others, judge(reading, others), strict=True)
            }
        return tuple(found.get(measure_of(model).name) for model in self.measures)


def few_rows(rows: int, models: Sequence[Model]) -> NDArray[np.int64]:
    """Rows spread over a table, enough for some classes: compiled code is loaded on them, which is no part of what work costs.

    >>> from closeknit.models import KAnonymity
    >>> few_rows(10_000, [KAnonymity(5)]).size, few_rows(100, [KAnonymity(5)]).size
    (500, 100)
    """
    count = max([WARMING_ROWS, *(WARMING_CLASSES * model.least_size for model in models)])
    return np.unique(np.linspace(0, rows - 1, min(count, rows)).astype(np.int64))
