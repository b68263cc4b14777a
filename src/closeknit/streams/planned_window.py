"""What `SabreWindow` and `BurelWindow` share: a window partitioned by a method that plans for the sensitive attribute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from closeknit.core.exact import Number
from closeknit.core.method import Method
from closeknit.core.model import Model
from closeknit.core.schema import Schema
from closeknit.streams.windowed import Windowed


class PlannedWindow(Windowed):
    """A `Windowed` stream whose method is given by its class; each subclass describes the parameters."""

    planner: ClassVar[Callable[..., Method]]

    def __init__(
        self,
        schema: Schema,
        models: Sequence[Model],
        omega: int = 20_000,
        advance: int = 5_000,
        seed: int | None = None,
        k: int | None = None,
        long_run: Number | None = None,
        fill: str = "hilbert",
        polish: bool = False,
        slack: bool = False,
        column: str | None = None,
    ) -> None:
        method = type(self).planner(fill=fill, polish=polish, slack=slack, column=column)
        super().__init__(method, schema, models, omega, advance, seed, k, long_run)
