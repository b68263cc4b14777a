"""Stack & Deal, literal part (first slice)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from closeknit.core.errors import BadInput
from closeknit.core.method import Progress
from closeknit.core.model import Model
from closeknit.core.params import choice
from closeknit.core.table import Outcome, Partition, Table


@dataclass(frozen=True)
class StackAndDeal:
    """Literal for now."""

    name: ClassVar[str] = "stack_and_deal"
    serves_both: ClassVar[bool] = False
    scale: ClassVar[str] = "plan"
    order: str = "value"
    dealing: str = "aware"
    column: str | None = None

    def __post_init__(self) -> None:
        choice("order", self.order, ("value", "frequency"))
        choice("dealing", self.dealing, ("literal", "aware"))

    def run(self, table: Table, models: Sequence[Model], seed: int, progress: Progress) -> Outcome:
        """Deal."""
        k = max((getattr(m, "k", 0) for m in models if m.name == "k_anonymity"), default=0)
        if not k:
            raise BadInput("Stack & Deal needs k", right="add KAnonymity(k) to the models")
        e = max(len(table) // k, 1)
        codes = table.sensitive[:, 0] if table.sensitive.shape[1] else np.zeros(len(table), dtype=np.int32)
        stack = np.argsort(codes, kind="stable")
        class_of = np.empty(len(table), dtype=np.int32)
        class_of[stack] = np.arange(len(table)) % e
        return Outcome(Partition(class_of, e))
