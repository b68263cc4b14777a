"""Stack & Deal: equal sensitive values are stacked together and dealt, card by card, to the classes.

Guarantees. With `n` rows and `k` asked, `e = floor(n/k)` classes; the row at stack position `z` goes to class `z mod e`. So
class sizes differ by at most one (P1), each value's counts in two classes differ by at most one (P2), and with
`order="value"` no prefix of the value order is off by more than one row, which bounds the ordered earth mover's distance by
`1/k` a priori.

Source: the Stack & Deal paper, sec. 3-4, and the dissertation on methods to achieve t-closeness, ch. 3 and 5; halving is new.

Different from the source:
- `order="value"` is the default; the printed `"frequency"` keeps P1 and P2, but its distance has no bound in `1/k`;
- `e` is rounded down everywhere (rounded up, as printed once, classes fall below k);
- `dealing="aware"` (default) lets each round of `e` rows choose its classes by the quasi-identifiers, under a boundary rule
  that keeps P1, P2 and a prefix bound; `"literal"` deals as printed;
- where the strictest dealing does not meet a guarantee, classes are enlarged (doubling, then bisection) until all hold: the
  printed claim that its classes reach every t that classes of that size can reach is false. One class of everything is
  0-close;
- where a t-closeness is asked, super-rounds of `g * e` rows give each class `g` of them: the larger `g`, the freer the choice.
  What does not meet a guarantee then is repaired by merging. Every candidate is measured; the one that has the least loss is
  taken and cut further where its rows allow it.

Values in a tree are stacked in depth-first order, missing values last. Several sensitive attributes: `column` names the one
that is stacked, or several, whose cells are stacked (ch. 5); the guarantees of the others are measured. P2 then speaks of
cells. The single sensitive attributes have no bound: counts of a cell within one add up. With `order="value"` cells are
sorted as in a dictionary, which keeps the prefix bound for the first sensitive attribute. Left out, the first sensitive
attribute that a guarantee is about is stacked alone; where two ordered ones have a t-closeness, their cells and halving are
tried next to it, and what has the least loss is taken.

`dealing="halving"`: for two ordered attributes. The table is cut in two, the halves again, while both keep k rows, such that
every prefix of both orders is shared within one by each cut: both ordered distances are below `1/s` for classes of s rows
(below `2/s` where sizes differ). Rows equal in both attributes are then exchanged while the loss falls. Freer candidates see
the sensitive attributes through fewer bands.

Cost: one dealing is O(n log n + n * window^2), literal O(n log n), halving O(n log n log(n/k)).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes, Histogram
from closeknit.core.combined_secrets import CodedSecret, Secret, parts
from closeknit.core.errors import BadInput, Unsatisfiable, suggest_name
from closeknit.core.geometry import scales
from closeknit.core.method import Method, Progress, Vetoes
from closeknit.core.model import Model, least_rows
from closeknit.core.params import choice
from closeknit.core.schema import Schema
from closeknit.core.table import Outcome, Partition, Table
from closeknit.kernels.dealing.recursive_halving import halve_groups
from closeknit.kernels.dealing.rounds import literal, rounds, super_rounds
from closeknit.kernels.dealing.sweeps import WIDTH, default_sweeps
from closeknit.kernels.geometry.boxes import partition_loss
from closeknit.kernels.geometry.hilbert_curve import hilbert_keys
from closeknit.kernels.geometry.sorted_buckets import curve
from closeknit.methods.plan_search import ENDINGS, MOST_ENDED
from closeknit.plans.metric_tree import distances_of
from closeknit.plans.ranks import Ranks, deal_classes
from closeknit.plans.stack import Stack, band_codes, build_stack, number_cells, stack_places
from closeknit.search.candidate_search import Candidates
from closeknit.search.polish import Polish
from closeknit.search.vetoed_cuts import find_vetoed_cuts

QUICK = 4  # sweeps of a dealing that is only compared with others
BANDS = (32, 16, 8, 4, 2, 1)  # through which a freer halving sees each sensitive attribute
BY_VALUE = 0  # the dial's strictest place: rounds of e rows under the boundary rule; g >= 1 are super-rounds


@dataclass(frozen=True)
class StackAndDeal(Method):
    """Dealing for k-anonymity and closeness of one sensitive attribute.

    Args:
        order: How values are stacked: by "value" or by "frequency".
        dealing: "aware" of quasi-identifiers, "literal" as in the source, or "halving" for two ordered attributes.
        column: The sensitive attribute to stack, or several; None takes the first with a guarantee.

    >>> import closeknit as ck
    >>> table = ck.datasets.hospital(300)
    >>> release = ck.anonymize(table, ck.datasets.hospital_schema(), [ck.KAnonymity(5)], StackAndDeal())
    >>> release.certificate.classes.smallest
    5
    """

    name = "stack_and_deal"
    needs_bound = "size"
    scale = "plan"

    order: str = "value"
    dealing: str = "aware"
    column: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        choice("order", self.order, ("value", "frequency"))
        choice("dealing", self.dealing, ("aware", "literal", "halving"))
        names = self._list_named()
        texts = all(isinstance(name, str) for name in names) and (names or self.column is None)
        if not texts or len(set(names)) < len(names):
            raise BadInput(
                f"column={self.column!r} cannot be stacked", right="column must be a name, or several different ones"
            )
        if self.dealing == "halving" and len(names) > 2:
            raise BadInput("dealing='halving' follows two orders at most", right=f"name two columns instead of {len(names)}")
        if not isinstance(self.column, str | None):
            object.__setattr__(self, "column", names)  # equal and hashable, also when it came as a list

    def run(self, table: Table, models: Sequence[Model], seed: int, progress: Progress) -> Outcome:
        """Classes of k rows, larger ones where these do not meet a guarantee, and a freer dial where closeness is requested."""
        k = least_rows(models)
        if k == 0:
            raise BadInput("Stack & Deal needs k", right="add KAnonymity(k) to the models")
        if len(table) < k:
            raise Unsatisfiable(f"{k}-anonymity", f"the table has {len(table):,} rows", "no class of it can have k")
        free = any(model.bounds == "distance" for model in models)
        columns, both = self._columns(table.schema, models), self._two_orders(table, models)
        found = {}
        for names in dict.fromkeys([columns, both or columns]) if self.dealing != "halving" else ():
            dealer = _Dealer(
                Candidates(table, models, progress, "dealing"), build_stack(table, names, self.order), self.dealing
            )
            found[f"dealing by {' and '.join(names)}"] = dealer.search(k, free and self.dealing == "aware")
        if self.dealing == "halving" or both:
            halver = _Halver(Candidates(table, models, progress, "halving"), self._orders(table, models), seed)
            found["halving"] = halver.search(k, free)
        best = min(found, key=lambda name: _loss(table, found[name]))
        return Outcome(found[best], notes=(f"{best} lost least",) if len(found) > 1 else ())

    def find_vetoes(self, table: Table, partition: Partition, models: Sequence[Model]) -> Vetoes:
        """No cut of a class is allowed: what ends best has been cut as far as the guarantees allow."""
        return find_vetoed_cuts(table, partition, models)

    @property
    def by_rank(self) -> bool:
        """Whether a row's class follows from its rank in the stack."""
        return self.dealing == "literal" and len(self._list_named()) < 2

    def ranks(self, own: Callable[[Secret], Histogram], schema: Schema, models: Sequence[Model]) -> Ranks:
        """The literal dealing as ranks, for rows that no machine sees whole; of the smallest classes that hold.

        Only guarantees about the stacked sensitive attribute and about sizes are looked at: the others are repaired by merging.
        """
        columns = self._columns(schema, models)
        k = least_rows(models)
        if k == 0:
            raise BadInput("Stack & Deal needs k", right="add KAnonymity(k) to the models")
        if not columns:
            raise BadInput("Stack & Deal has nothing to stack", right="name a sensitive column")
        whole = own(columns[0])
        place = stack_places(whole.counts, False, self.order)
        bucket_of, sizes = np.full(len(whole.reference), -1, dtype=np.int32), np.empty_like(whole.counts)
        bucket_of[whole.values], sizes[place] = place, whole.counts
        requested = [model for model in models if model.column in (None, columns[0])]
        n, leaves = int(whole.counts.sum()), np.argsort(np.where(bucket_of < 0, len(bucket_of), bucket_of))

        def holds(size: int) -> bool:
            e = max(n // size, 1)
            class_of, buckets = deal_classes(sizes, e)
            secret: dict[Secret, CodedSecret] = {columns[0]: (leaves[buckets].astype(np.int32), whole.domain)}
            classes = Classes.of(class_of, int(class_of.max()) + 1, secret, None, {columns[0]: whole.reference})
            return all(model.holds(classes).all() for model in requested)

        return Ranks.of_deal(columns[0], bucket_of, sizes, max(n // smallest_size(k, n, holds), 1))

    def _list_named(self) -> tuple[str, ...]:
        if self.column is None or isinstance(self.column, str):
            return () if self.column is None else (self.column,)
        return tuple(self.column) if isinstance(self.column, Sequence) else (self.column,)

    def _columns(self, schema: Schema, models: Sequence[Model]) -> tuple[str, ...]:
        """The sensitive attributes that are stacked: those that were named, else the first guaranteed."""
        for name in self._list_named():
            if name not in schema.sensitive:
                right = suggest_name(name, schema.sensitive)
                raise BadInput("cannot be stacked, it is not sensitive", column=name, right=right)
        guaranteed = [name for model in models for name in parts(model.column)]
        return self._list_named() or (*guaranteed, *schema.sensitive)[:1]

    def _orders(self, table: Table, models: Sequence[Model]) -> tuple[str, ...]:
        """The sensitive attributes that are halved by: those that were named, else the first two, guarantees of ordered
        closeness first.
        """
        guaranteed = [name for model in models for name in parts(model.column)]
        known = dict.fromkeys([*_list_ordered(table, models), *guaranteed, *table.schema.sensitive])
        return self._columns(table.schema, models) if self._list_named() else tuple(known)[:2]

    def _two_orders(self, table: Table, models: Sequence[Model]) -> tuple[str, ...]:
        """Two ordered attributes that are guaranteed to be close, where it was left to us what to look at; else none."""
        ordered = tuple(_list_ordered(table, models))
        return ordered if self.column is None and self.dealing == "aware" and len(ordered) == 2 else ()


def _loss(table: Table, partition: Partition) -> float:
    return float(partition_loss(scales(table), table.quasi, partition.class_of, partition.count))


def _list_ordered(table: Table, models: Sequence[Model]) -> list[str]:
    """The attributes with a limit on their ordered distance."""
    return list(dict.fromkeys(str(column) for column, limit in distances_of(table, models) if limit.ground == "ordered"))


def smallest_size(k: int, n: int, holds: Callable[[int], bool]) -> int:
    """Doubled from k on until it holds, then bisection to a size that holds, at most an eighth above one that does not.

    >>> smallest_size(4, 1000, lambda size: size >= 23)
    24
    """
    size, fails = k, 0
    while not holds(size) and size < n:  # one class of everything: what it breaks was refused before
        size, fails = min(2 * size, n), size
    while fails and size - fails > max(1, size // 8):  # within an eighth: each trial is a whole dealing
        middle = (size + fails) // 2
        size, fails = (middle, fails) if holds(middle) else (size, middle)
    return size


class _Dealer:
    """Deals again and again, until class size and dial are found: quickly while it searches, with care in the end."""

    def __init__(self, candidates: Candidates, stack: Stack, dealing: str) -> None:
        self.candidates, self.stack, self.literal = candidates, stack, dealing == "literal"
        self.n = len(stack.rows)
        self.keys = None if self.literal else hilbert_keys(candidates.points)
        self.best = (0, BY_VALUE)  # class size and dial of what had the least loss so far

    def search(self, k: int, free: bool) -> Partition:
        """What has the least loss; `free`: also with a freer dial."""
        self.enlarge(k)
        if free:
            self.free(k)
        self.finish()
        return self.candidates.refine_best()

    def deal(self, size: int, g: int, sweeps: int = QUICK) -> bool:
        """Classes of at least `size` rows with the dial at `g`; whether every guarantee held without repair."""
        e = max(self.n // size, 1)
        rows, values = self.stack.rows, self.stack.values
        quasi, geometry = self.candidates.table.quasi, self.candidates.scales
        if self.literal:
            class_of = np.empty(self.n, dtype=np.int32)
            class_of[rows] = literal(self.n, e)
        elif g == BY_VALUE:
            class_of = rounds(rows, values, e, quasi, geometry, self.keys, sweeps)
        else:
            class_of = super_rounds(rows, e, g, quasi, geometry, self.keys, sweeps)
        before = self.candidates.loss
        holds = self.candidates.add(class_of, e)
        self.best = (size, g) if self.candidates.loss < before else self.best
        return holds

    def enlarge(self, k: int) -> None:
        """Strictest dealings from size k on."""
        smallest_size(k, self.n, lambda size: self.deal(size, BY_VALUE))

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


class _Halver:
    """Halves again and again, like a dealer: the dial is the number of bands through which it sees the sensitive attributes."""

    def __init__(self, candidates: Candidates, columns: Sequence[str], seed: int) -> None:
        self.candidates, self.seed = candidates, seed
        table = candidates.table
        self.n = len(table)
        self.codes = [number_cells(table, [name]) for name in columns] + [number_cells(table, [])] * (2 - len(columns))
        keys = curve(candidates.points)
        self.place = np.empty(self.n, dtype=np.int64)
        self.place[np.lexsort(keys.T[::-1])] = np.arange(self.n)
        self.tried: list[tuple[int, int]] = []  # class size and bands

    def search(self, k: int, free: bool) -> Partition:
        """What has the least loss; `free`: also with fewer bands."""
        self.enlarge(k)
        for bands in BANDS if free else ():
            self.halve(k, bands)
        return self.finish()

    def halve(self, size: int, bands: int) -> bool:
        """Classes of at least `size` rows; whether every guarantee held without repair."""
        self.tried.append((size, bands))
        return self.candidates.add(*self.classes(size, bands, QUICK))

    def classes(self, size: int, bands: int, sweeps: int) -> tuple[NDArray[np.int32], int]:
        """Class of each row, and how many there are; rows of one cell are exchanged in so many sweeps."""
        one, other = (band_codes(codes, bands) if bands < self.n else codes for codes in self.codes)
        class_of = halve_groups(one, other, self.place, size)
        cell = np.unique(one * (other.max() + 1) + other, return_inverse=True)[1].astype(np.int32)
        polish = Polish(proposals=sweeps * self.n * WIDTH)
        class_of = polish.polish(self.candidates.table.quasi, self.candidates.scales, cell, class_of, self.seed)
        return class_of, int(class_of.max()) + 1

    def enlarge(self, k: int) -> None:
        """Doubled until one holds: between two powers of two there is no other size."""
        size = k
        while not self.halve(size, self.n) and size < self.n:
            size = min(2 * size, self.n)

    def finish(self) -> Partition:
        """The best halvings once more, with as many sweeps as the table's size allows, and of these what ends best."""
        endings = int(np.clip(MOST_ENDED // self.n, 1, ENDINGS))
        ranked = sorted(range(len(self.tried)), key=self.candidates.losses.__getitem__)
        return self.candidates.choose_best(self.classes(*self.tried[i], default_sweeps(self.n)) for i in ranked[:endings])
