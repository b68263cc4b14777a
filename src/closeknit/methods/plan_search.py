"""What SABRE and BUREL share: plans are tried in turn and filled with rows; the best outcome is polished and cut further."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Histogram
from closeknit.core.combined_secrets import Secret
from closeknit.core.errors import BadInput
from closeknit.core.method import Method, Progress, Vetoes
from closeknit.core.model import Model, least_rows
from closeknit.core.params import choice
from closeknit.core.schema import Schema
from closeknit.core.share_limits import Limits
from closeknit.core.table import Outcome, Partition, Table
from closeknit.fills import REGISTRY as FILLS
from closeknit.fills import fill_named
from closeknit.kernels.geometry.sorted_buckets import curve
from closeknit.models import REGISTRY as MODELS
from closeknit.plans.plan import Plan
from closeknit.plans.ranks import Ranks
from closeknit.search.candidate_search import Candidates
from closeknit.search.polish import Polish
from closeknit.search.vetoed_cuts import find_vetoed_cuts

OTHERS = "mondrian"
GAMMAS = ("1", "0.85", "0.7", "0.55", "0.4", "0.25")  # buckets for gamma * limit leave room for uneven sizes

ENDINGS, MOST_ENDED = 3, 400_000  # plans that run to the end next to the plain one, and rows of all of them together


def largest(plans: Iterable[Plan]) -> Plan:
    """The plan with the most classes; the first of equals."""
    return max(plans, key=lambda plan: len(plan.allotments))


class FillingMethod(Method):
    """A method whose plans are filled, polished and cut further."""

    fill: str
    polish: bool

    def __post_init__(self) -> None:
        choice("fill", self.fill, tuple(FILLS))
        choice("polish", self.polish, (True, False))

    def _fill_plans(
        self, candidates: Candidates, codes: NDArray[np.integer], plans: Iterable[Plan], seed: int, whole: bool = False
    ) -> Partition:
        """Fill every plan; polish those that have the least loss after repair, cut them where guarantees allow, take the best.

        `plans`: the plain one, then those for other nominal thresholds, the loosest first: as a rule it has the least loss.
        `codes`: what of each row a plan is about: the leaf of one sensitive attribute, a cell of several, or the row itself.
        With `whole`, one class of all rows is cut first: the plan for a nominal threshold of 0, which leaves everything to the
        cuts. Plans are then made and filled, the plain one last, as long as they may end below that.
        """
        table, others = candidates.table, _distinct(plans)
        plain = next(others)
        tried = chain(others, [plain]) if whole and candidates.refine_whole() else chain([plain], others)
        filling, keys = fill_named(self.fill), curve(candidates.points)
        filled: list[tuple[NDArray[np.int32], Plan]] = []
        for plan in tried:
            buckets, count = plan.bucket_of[codes], len(plan.allotments)
            class_of = filling.fill(table.quasi, candidates.scales, candidates.points, buckets, plan.allotments, seed, keys)
            if candidates.is_hopeless(class_of, count):
                break
            candidates.add(class_of, count)
            filled.append((class_of, plan))
        endings = int(np.clip(MOST_ENDED // len(table), 1, ENDINGS))
        ranked = sorted(range(len(filled)), key=candidates.losses.__getitem__)
        first = {i for i, (_, plan) in enumerate(filled) if plan is plain}  # always: slack must not hide it

        def polish_classes(class_of: NDArray[np.int32], plan: Plan) -> NDArray[np.int32]:
            if not self.polish:
                return class_of
            return Polish().polish(table.quasi, candidates.scales, plan.bucket_of[codes], class_of, seed)

        ended = sorted(first | {*ranked[:endings]})
        return candidates.choose_best(
            (polish_classes(*filled[i]), len(filled[i][1].allotments)) for i in ended if self.polish or i != ranked[0]
        )


def _distinct(plans: Iterable[Plan]) -> Iterator[Plan]:
    """Each plan once: neighbouring thresholds often give the same."""
    seen = set()
    for plan in plans:
        key = plan.bucket_of.tobytes(), hash(plan.allotments.tobytes())
        if key not in seen:
            seen.add(key)
            yield plan


class PlannedMethod(FillingMethod):
    """What SABRE and BUREL share: a plan for one guarantee, filled, polished and cut further."""

    scale = "plan"
    slack: bool
    column: str | None

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("slack", self.slack, (True, False))

    @abstractmethod
    def plans(self, secret: Histogram, model: Model, k: int) -> Iterator[Plan]:
        """The plan for the limit itself; with `slack` also those for nominal limits, the loosest first.

        Args:
            secret: counts of the sensitive values in the whole table.
            model: the guarantee to plan for.
            k: the fewest rows of a class.
        """

    def run(self, table: Table, models: Sequence[Model], seed: int, progress: Progress) -> Outcome:
        """Plan, fill, judge."""
        model, column = choose_target(self, models, self.column)
        plans = self.plans(table.count_values(column), model, max(least_rows(models), 1))
        codes = table.secret(column)[0]
        return Outcome(self._fill_plans(Candidates(table, models, progress, "filling"), codes, plans, seed, self.slack))

    def find_vetoes(self, table: Table, partition: Partition, models: Sequence[Model]) -> Vetoes:
        """No cut of a class is allowed: what ends best has been cut as far as the guarantees allow."""
        return find_vetoed_cuts(table, partition, models)

    @property
    def by_rank(self) -> bool:
        """Whether a row's class follows from its rank in its bucket."""
        return self.fill == "sweep" and not (self.polish or self.slack)

    def ranks(self, own: Callable[[Secret], Histogram], schema: Schema, models: Sequence[Model]) -> Ranks:
        """The plan as ranks, for rows that no machine sees whole."""
        model, column = choose_target(self, models, self.column)
        return Ranks.of_plan(column, next(self.plans(own(column), model, max(least_rows(models), 1))))


def choose_target(method: Method, models: Sequence[Model], column: str | None) -> tuple[Model, Secret]:
    """The guarantee that the plan is for, and its sensitive attribute; refused where none bounds what the method plans for."""
    for model in models:
        if model.bounds == method.needs_bound and model.column is not None and column in (None, model.column):
            return model, model.column
    requested = ", ".join(model.name for model in models) or "nothing"
    known = " or ".join(name for name, model in MODELS.items() if model.bounds == method.needs_bound)
    of = f" of column '{column}'" if column else ""
    what = f"{method.name} plans for {known or method.needs_bound}{of}, but the request has {requested}"
    raise BadInput(what, right=f"add one, or choose {OTHERS}, which serves any guarantee")


def limits_of(model: Model, reference: Histogram) -> Limits:
    """The limits of a guarantee that a method plans for."""
    limits = model.limits(reference)
    if limits is None:
        raise BadInput(f"{model.name} bounds the {model.bounds} and has no limits", right="return them from its `limits`")
    return limits
