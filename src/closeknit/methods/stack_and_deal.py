"""Stack & Deal: equal secrets are stacked together and dealt, card by card, to the classes.

Promises. With `n` rows and `k` asked, `e = floor(n/k)` classes; the row at stack position `z` goes to class `z mod e`. So class
sizes differ by at most one (P1), each value's counts in two classes differ by at most one (P2), and with `order="value"` no
prefix of the value order is off by more than one row, which bounds the ordered earth mover's distance by `1/k` a priori.

Source: the Stack & Deal paper, sec. 3-4, and the dissertation on methods to achieve t-closeness, ch. 3.

Different from the source:
- `order="value"` is the default; the printed `"frequency"` keeps P1 and P2, but its distance has no bound in `1/k`;
- `e` is rounded down everywhere (rounded up, as printed once, classes fall below k);
- `dealing="aware"` (default) lets each round of `e` rows choose its classes by the quasi-identifiers, under a boundary rule
  that keeps P1, P2 and a prefix bound; `"literal"` deals as printed;
- where the strictest dealing breaks a promise, classes are enlarged (doubling, then bisection) until all hold: the printed
  claim that its classes reach every t that classes of that size can reach is false. One class of everything is 0-close;
- where a t-closeness is asked, super-rounds of `g * e` rows give each class `g` of them: the larger `g`, the freer the choice.
  What breaks a promise then is repaired by merging. Every candidate is measured; the one that loses least is taken and cut
  further where its rows allow it.

Secrets in a tree are stacked in depth-first order, missing values last. Several secrets: one is stacked (`column`, or else
the first that a promise speaks of), the promises of the others are measured. Cost: one dealing is O(n log n + n * window^2),
literal O(n log n).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from closeknit.core.errors import BadInput, Unsatisfiable
from closeknit.core.method import Progress
from closeknit.core.model import Model
from closeknit.core.params import choice
from closeknit.core.table import Outcome, Table
from closeknit.fills.candidates import Candidates
from closeknit.kernels.dealing import literal, rounds, super_rounds
from closeknit.kernels.hilbert import hilbert_keys
from closeknit.kernels.sweeps import default_sweeps

QUICK = 4  # sweeps of a dealing that is only compared with others
BY_VALUE = 0  # the dial's strictest place: rounds of e rows under the boundary rule; g >= 1 are super-rounds


@dataclass(frozen=True)
class StackAndDeal:
    """Dealing for k-anonymity and closeness of one secret.

    >>> import closeknit as ck
    >>> table = ck.datasets.hospital(300)
    >>> release = ck.anonymize(table, ck.datasets.hospital_schema(), [ck.KAnonymity(5)], StackAndDeal())
    >>> release.certificate.classes.smallest
    5
    """

    name: ClassVar[str] = "stack_and_deal"
    serves_both: ClassVar[bool] = False
    plans_for: ClassVar[str] = "size"
    scale: ClassVar[str] = "plan"

    order: str = "value"
    dealing: str = "aware"
    column: str | None = None

    def __post_init__(self) -> None:
        choice("order", self.order, ("value", "frequency"))
        choice("dealing", self.dealing, ("aware", "literal"))

    def run(self, table: Table, models: Sequence[Model], seed: int, progress: Progress) -> Outcome:
        """Classes of k rows, larger ones where these break a promise, and a freer dial where closeness is asked."""
        k = max((model.least_size for model in models), default=0)
        if k == 0:
            raise BadInput("Stack & Deal needs k", right="add KAnonymity(k) to the models")
        if len(table) < k:
            raise Unsatisfiable(f"{k}-anonymity", f"the table has {len(table):,} rows", "no class of it can have k")
        candidates = Candidates(table, models, progress, "dealing")
        dealer = _Dealer(candidates, _stack(table, self._column(table, models), self.order), self.dealing)
        dealer.enlarge(k)
        if self.dealing == "aware" and any(model.family == "closeness" for model in models):
            dealer.free(k)
        dealer.finish()
        return Outcome(candidates.finished())

    def _column(self, table: Table, models: Sequence[Model]) -> str | None:
        """The secret that is stacked."""
        if self.column is not None and self.column not in table.schema.sensitive:
            right = "sensitive columns are: " + (", ".join(table.schema.sensitive) or "none")
            raise BadInput("cannot be stacked, it is not sensitive", column=self.column, right=right)
        promised = [model.column for model in models if model.column]
        return self.column or next(iter([*promised, *table.schema.sensitive]), None)


@dataclass(frozen=True, eq=False)
class _Stack:
    rows: NDArray[np.int64]  # in stack order
    values: NDArray[np.int64]  # of these rows


def _stack(table: Table, column: str | None, order: str) -> _Stack:
    """Rows so that equal secrets stand together: by value, or by falling frequency (ties: higher code first)."""
    codes = np.zeros(len(table), dtype=np.int64) if column is None else table.secret(column)[0].astype(np.int64)
    if order == "frequency":
        counts = np.bincount(codes)
        rank = np.empty(len(counts), dtype=np.int64)
        rank[np.lexsort((-np.arange(len(counts)), -counts))] = np.arange(len(counts))
        codes = rank[codes]
    rows = np.argsort(codes, kind="stable")
    return _Stack(rows, codes[rows])


class _Dealer:
    """Deals again and again, until class size and dial are found: quickly while it searches, with care in the end."""

    def __init__(self, candidates: Candidates, stack: _Stack, dealing: str) -> None:
        self.candidates, self.stack, self.literal = candidates, stack, dealing == "literal"
        self.n = len(stack.rows)
        self.keys = None if self.literal else hilbert_keys(candidates.points)
        self.best = (0, BY_VALUE)  # class size and dial of what lost least so far

    def deal(self, size: int, g: int, sweeps: int = QUICK) -> bool:
        """Classes of at least `size` rows with the dial at `g`; whether every promise held without repair."""
        e = max(self.n // size, 1)
        rows, values = self.stack.rows, self.stack.values
        quasi, scales = self.candidates.table.quasi, self.candidates.scales
        if self.literal:
            class_of = np.empty(self.n, dtype=np.int32)
            class_of[rows] = literal(self.n, e)
        elif g == BY_VALUE:
            class_of = rounds(rows, values, e, quasi, scales, self.keys, sweeps)
        else:
            class_of = super_rounds(rows, e, g, quasi, scales, self.keys, sweeps)
        before = self.candidates.loss
        holds = self.candidates.add(class_of, e)
        self.best = (size, g) if self.candidates.loss < before else self.best
        return holds

    def enlarge(self, k: int) -> None:
        """Strictest dealings from size k on, doubling until one holds, then bisection to the smallest size that does."""
        size, fails = k, 0
        while not self.deal(size, BY_VALUE) and size < self.n:  # one class of everything: what it breaks was refused before
            size, fails = min(2 * size, self.n), size
        while fails and size - fails > max(1, size // 8):  # within an eighth: each trial is a whole dealing
            middle = (size + fails) // 2
            size, fails = (middle, fails) if self.deal(middle, BY_VALUE) else (size, middle)

    def free(self, k: int) -> None:
        """Super-rounds of k rows a class: the whole class from one of them, half of it, a quarter, ..., two rows."""
        g = k
        while g > 1:
            self.deal(k, g)
            g //= 2

    def finish(self) -> None:
        """The best dealing once more, with as many sweeps as the table's size allows."""
        if not self.literal and default_sweeps(self.n) > QUICK:
            self.deal(*self.best, sweeps=default_sweeps(self.n))
