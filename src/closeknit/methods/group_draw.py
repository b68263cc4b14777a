"""What `FcmDraw` and `PcaDraw` share: groups of like sensitive values, and classes that draw from every one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil

import numpy as np
from numpy.typing import NDArray

from closeknit.core.combined_secrets import parts
from closeknit.core.model import Model, least_rows
from closeknit.core.params import whole
from closeknit.core.table import Partition, Table
from closeknit.methods.plan_search import FillingMethod
from closeknit.plans.groups import Cells, adjust_k, plan_draws
from closeknit.search.candidate_search import Candidates

Grouping = Callable[[Cells, int], NDArray[np.int32]]
TIMES = (Fraction(1), Fraction(2), Fraction(4), Fraction(1, 2), Fraction(1, 4))  # k, the source's own first


def choose_secrets(table: Table, models: Sequence[Model]) -> list[str]:
    """Sensitive attributes with a guarantee, in the order of the schema; all of them where none has one."""
    named = {name for model in models for name in parts(model.column)}
    return [name for name in table.schema.sensitive if name in named] or list(table.schema.sensitive)


def numbers_of_groups(n: int, k: int, groups: int | None) -> list[int]:
    """How many groups are tried: as requested, or k' and from a quarter to four times as many, each adjusted to n like k'.

    >>> numbers_of_groups(45_222, 10, None), numbers_of_groups(100, 1, None)
    ([10, 20, 40, 5, 3], [2, 4, 8])
    """
    if groups is not None:
        return [min(groups, n)]
    adjust_k(n, k)  # refuses a table of fewer than k rows
    some = min(max(k, 2), n)  # one group alone would say nothing about sensitive values
    return list(dict.fromkeys(adjust_k(n, min(max(ceil(some * times), 2), n)) for times in TIMES))


class GroupDraw(FillingMethod):
    """A method whose classes draw from every group of like sensitive values."""

    needs_bound = "size"
    groups: int | None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.groups is not None:
            whole("groups", self.groups, least=1)

    def _draw_classes(
        self, candidates: Candidates, cells: Cells, counts: Sequence[int], grouping: Grouping, seed: int
    ) -> Partition:
        """Classes that draw from every group, for each number of groups; the one that has the least loss is kept."""
        k = max(least_rows(candidates.models), 1)
        plans = (plan_draws(grouping(cells, c), cells.of_row, k) for c in counts)
        return self._fill_plans(candidates, np.arange(len(candidates.table)), plans, seed)
