"""SoftStop: cuts whose tests are random, so that a release reveals little to an adversary who knows the algorithm.

Guarantees. Every class meets every requested guarantee, as with Mondrian. In addition the method is eps-transparent
(`models.transparency`): exchanging the sensitive values of two persons of one class changes the probability of the release by
at most the factor e^eps. A method that cuts whenever it may is open to such an adversary: from a cut that was not made one
reads off which assignments of values would have allowed it.

Steps:
1. Rows are ordered by quasi-identifiers alone, ties by the secret seed (`Table.tie_order`).
2. The whole table is the first class; if it does not meet a guarantee the request is refused.
3. A class with budget b left tests its cuts in an order that depends on quasi-identifiers, the histogram of the class and
   parameters alone. A test costs e. Its margin m (`search.margins`) is the number of exchanges by which the nearer side misses
   not meeting a guarantee, 0 if it does not meet one. The class is cut with probability 1 - e^(-e m). Both sides inherit b;
   a test that fails costs e of it. No test costs more than is left.
4. A class without a test left is published.

Proof. Take the outcomes of all tests; they determine the classes R. Let i and j be persons of a class C of R. Classes that were
tested are unions of classes of R, so an exchange inside C leaves their histograms, hence their lists of cuts and costs, as they
are. Sides of a cut that was made are such unions too: its probability does not change. A test that failed has probability
e^(-e m), also for m = 0; only those of C and of the classes that contain it change, each by at most e^e, and what they cost
adds up to at most eps. Sum over all outcomes that give R.

Source: ours. The attacks that it answers: minimality (Wong et al. 2007), transparent adversaries (Xiao et al. 2010),
refinement (arXiv 2509.03350). Costs: under a limit t on the distance e = c / (t s) for a class of s rows, so failures of large
classes are nearly free; under other limits 1 over the margin that a cut would have if it divided the histogram evenly, at most
eps / 8. Where that exceeds the `share` of the budget one last test uses all that is left. Cost: as Mondrian.

Not covered, and therefore refused: suppressed rows, plain columns, persons whose rows may be separated, guarantees that merging
can break or that are about the whole release, windows, Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes
from closeknit.core.coins import Coins
from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.exact import Number, fraction
from closeknit.core.geometry import scales
from closeknit.core.method import Method, Progress
from closeknit.core.model import Model, least_rows
from closeknit.core.params import choice, number
from closeknit.core.schema import Schema
from closeknit.core.table import Outcome, Partition, Table
from closeknit.core.table_digest import digest_table
from closeknit.kernels.arrays import Int32, Int64
from closeknit.kernels.geometry.boxes import Scales
from closeknit.models.transparency import Transparency
from closeknit.search.advice import Advice
from closeknit.search.margins import NO_LIMIT, expect_margins, measure_margins, tightest_distance
from closeknit.search.refine import Cuts, OpenClasses, offer_cuts, root_holds

WHOLE = 1 << 32  # the budget in whole units, so that what is spent adds up exactly
ADVISED = Fraction(1, 5)  # the part of eps that advice uses
MOST_PER_TEST = 8  # a test under limits other than a distance costs at most this part of the budget


@dataclass(frozen=True)
class SoftStop(Method):
    """Random cuts for any guarantees about classes, safe against adversaries who know the algorithm.

    Args:
        eps: How much an adversary may learn from the algorithm: odds change at most e^eps-fold.
        c: What a test costs: c / (t s) for a class of s rows under t-closeness.
        advice: Quasi-identifiers whose noisy counts with the sensitive values advise which cuts are hopeless; they use a
            fifth of eps. Choose them without a look at the table.
        share: The share of the budget that such tests may use before the last one.
        split: "relaxed" may divide rows of equal value, "strict" does not.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(300), ck.datasets.hospital_schema()
    >>> schema = schema.model_copy(update={"plain": ()})
    >>> release = ck.anonymize(table, schema, [ck.KAnonymity(4), ck.TCloseness("disease", 0.4)], SoftStop())
    >>> [guarantee.status for guarantee in release.certificate.guarantees]
    ['recomputable', 'recomputable', 'attested']
    """

    name = "soft_stop"
    keeps_persons = True
    scale = "local"
    runs_once = True

    eps: Number = 1
    c: Number = 20
    share: Number = "3/4"
    advice: tuple[str, ...] = ()
    split: str = "relaxed"

    def __post_init__(self) -> None:
        number("eps", self.eps, least=0.01, most=10)
        number("c", self.c, least=0.001, most=1_000_000)
        number("share", self.share, least=0, most=1)
        choice("split", self.split, ("relaxed", "strict"))
        if isinstance(self.advice, str) or not all(isinstance(name, str) for name in self.advice):
            raise BadInput(f"advice={self.advice!r} is no list of columns", right="write advice=['age', 'sex']")
        object.__setattr__(self, "advice", tuple(self.advice))  # a recipe has a list

    def guarantees(self, schema: Schema) -> Sequence[Model]:
        """That it is eps-transparent."""
        return (Transparency(self.eps),)

    def refuse(self, schema: Schema, models: Sequence[Model], suppress: float) -> None:
        """Refuse what the proof does not cover."""
        for name in self.advice:
            if name not in schema.quasi:
                raise BadInput(
                    "advises soft_stop and is no quasi-identifier", column=name, right=suggest_name(name, schema.quasi)
                )
        if self.advice and schema.person is not None:
            raise BadInput("advice counts rows, and persons have several", column=schema.person, right="leave advice out")
        if suppress > 0:
            raise BadInput("soft_stop cannot suppress rows: which ones would depend on the tests", right="leave suppress out")
        if schema.plain:
            what = "is plain, and plain cells accompany the sensitive values that soft_stop protects"
            raise BadInput(what, column=schema.plain[0], right="make it sensitive, or leave it out")
        if schema.person is not None and schema.person_rows != "together":
            what = "rows of one person may be in several classes, which soft_stop does not cover"
            raise BadInput(what, column=schema.person, right="leave person_rows out")
        for model in models:
            if not model.by_class or model.budget or ("release" in model.needs and not model.of_method):
                what = f"soft_stop cannot meet {model.name}, which is about more than single classes"
                raise BadInput(what, right="choose another method, such as knit")
            if not model.monotone:
                what = f"soft_stop cannot meet {model.name}: merging classes that are written alike could break it"
                raise BadInput(what, right="choose another method, such as knit")

    def run(self, table: Table, models: Sequence[Model], seed: int, progress: Progress) -> Outcome:
        """Cut level by level; every open class has one test per round."""
        self.refuse(table.schema, models, table.suppressible)
        if table.references:
            raise BadInput("soft_stop needs the whole table: a window is one of several releases", right="choose knit")
        root_holds(table, models)
        request = repr((self, [model.origin for model in models if not model.of_method]))  # attested or not, the same coins
        coins = Coins(sha256(f"{seed} {request} ".encode() + digest_table(table)).digest())
        return Outcome(self.cut_table(table, models, coins, progress), settled=True)

    def cut_table(self, table: Table, models: Sequence[Model], coins: Coins, progress: Progress) -> Partition:
        """The partition that these coins give.

        Args:
            table: the rows, ordered by quasi-identifiers.
            models: the guarantees.
            coins: decide the tests.
            progress: is called with the share of the rows in published classes.
        """
        nodes = _Nodes.of(table, models)
        nodes = replace(nodes, advice=self._advise(nodes, table, models, coins))
        cuts = Cuts(relaxed=self.split == "relaxed")
        class_of, count, k = np.full(len(nodes.open.rows), -1, dtype=np.int32), 0, max(least_rows(models), 1)
        while len(nodes.paths):
            progress("cutting", 0.8 - 0.6 * len(nodes.open.rows) / len(class_of))
            at, offered = offer_cuts(nodes.open, nodes.geometry, k, cuts)
            offered, costs = self._order_cuts(nodes, at, offered, models)
            chosen = self._test_cuts(nodes, at, offered, costs, models, coins)
            done, cut = np.flatnonzero(chosen < 0), np.flatnonzero(chosen >= 0)
            sizes = nodes.open.sizes[done]
            class_of[nodes.open.rows_of(done)] = count + np.repeat(np.arange(len(done)), sizes)
            count += len(done)
            nodes = nodes.cut(cut, offered[chosen[cut]])
        return Partition.of(class_of[nodes.unit_of])

    def _advise(self, nodes: _Nodes, table: Table, models: Sequence[Model], coins: Coins) -> Advice | None:
        judged = [model for model in models if tightest_distance([model], nodes.counted) is not None]
        if not self.advice or not judged:
            return None
        eps = fraction("eps", self.eps) * ADVISED
        return Advice.of(table, judged, self.advice, eps, nodes.largest, coins)

    def _order_cuts(self, nodes: _Nodes, at: Int64, offered: Int32, models: Sequence[Model]) -> tuple[Int32, Int64]:
        """The cuts in the order of their tests and what each test costs: blind to who has which sensitive value."""
        sizes, owner = nodes.open.sizes, np.repeat(np.arange(len(at) - 1), np.diff(at))
        eps, t = float(fraction("eps", self.eps)), tightest_distance(models, nodes.counted)
        expected = expect_margins(models, nodes.counted, owner, nodes.smaller_sides(owner, offered))
        if expected is None and t is None:  # no guarantee is about sensitive values: every test passes
            return offered, np.ones(len(owner), dtype=np.int64)
        costs = np.full(len(owner), 1.0)
        if t is not None:
            costs = np.maximum(costs, float(fraction("c", self.c)) / (max(t, 1e-9) * sizes[owner] * eps) * WHOLE)
        if expected is not None:
            order = np.lexsort([np.arange(len(owner)), expected < 1, owner])  # hopeless ones last
            offered, costs, expected = offered[order], costs[order], expected[order]
            costs = np.maximum(costs, np.minimum(WHOLE / np.maximum(expected, 0.5) / eps, WHOLE / MOST_PER_TEST))
        return offered, np.minimum(costs, 2.0 * WHOLE).astype(np.int64)

    def _test_cuts(
        self, nodes: _Nodes, at: Int64, offered: Int32, costs: Int64, models: Sequence[Model], coins: Coins
    ) -> Int64:
        """Which cut each class takes, -1 for none; budgets are reduced by what failed."""
        chosen, turn = np.full(len(at) - 1, -1), np.zeros(len(at) - 1, dtype=np.int64)
        eps = fraction("eps", self.eps) * (1 - ADVISED if nodes.advice else 1)
        usual = int(fraction("share", self.share) * WHOLE)
        waiting = np.flatnonzero(np.diff(at))
        while len(waiting):
            lines = at[waiting] + turn[waiting]
            hopeless = nodes.find_hopeless(waiting, offered[lines])
            turn[waiting[hopeless]] += 1
            tested, lines = waiting[~hopeless], lines[~hopeless]
            spent = nodes.spent[tested]
            cost = np.where(spent + costs[lines] <= usual, costs[lines], WHOLE - spent)  # the last test uses all that is left
            sides = nodes.sides(tested, offered[lines])
            margins = nodes.per_person(measure_margins(models, sides, nodes.counted, np.repeat(tested, 2)))
            margins = np.minimum(margins[0::2], margins[1::2])
            for i, node in enumerate(tested.tolist()):
                x = Fraction(int(cost[i]) * int(margins[i]), WHOLE) * eps
                if margins[i] < NO_LIMIT and coins.stops(x, f"{nodes.paths[node]} {turn[node]}"):
                    nodes.spent[node] += cost[i]
                    turn[node] += 1
                else:
                    chosen[node] = lines[i]
            going_on = (chosen[waiting] < 0) & (turn[waiting] < np.diff(at)[waiting]) & (nodes.spent[waiting] < WHOLE)
            waiting = waiting[going_on]
        return chosen


@dataclass(frozen=True, eq=False)
class _Nodes:
    """Classes that may still be cut: of rows, or of persons by their first rows, whose other rows follow."""

    table: Table
    unit_of: Int64  # the row of `open` that each row of the table follows
    largest: int  # rows of a person
    geometry: Scales
    open: OpenClasses
    counted: Classes
    paths: tuple[str, ...]
    spent: Int64
    advice: Advice | None = None

    @classmethod
    def of(cls, table: Table, models: Sequence[Model]) -> _Nodes:
        unit_of, units, largest = np.arange(len(table)), table, 1
        if table.persons is not None:
            _, first, person_of = np.unique(table.persons, return_index=True, return_inverse=True)
            heads = np.sort(first)
            unit_of = np.searchsorted(heads, first[person_of])
            units, largest = replace(table.take(heads), persons=None), int(np.bincount(person_of).max(initial=1))
        whole = Partition.whole(len(units))
        open_ = OpenClasses.of(units, whole, models if table.persons is None else ())
        counted = table.one_class() if table.persons is not None else open_.counted
        return cls(table, unit_of, largest, scales(units), open_, counted, ("",), np.zeros(1, dtype=np.int64))

    def sides(self, classes: Int64, cuts: Int32) -> Classes:
        """Both sides of these classes as the models see them, in turns."""
        if self.table.persons is None:
            return self.open.sides(classes, cuts)
        places, starts = self.open.split_rows(classes, cuts)
        side_of = np.full(int(self.unit_of.max()) + 1, -1, np.int32)
        side_of[self.open.rows[places]] = np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))
        return self.table.count_classes(Partition(side_of[self.unit_of], len(starts) - 1))

    def find_hopeless(self, classes: Int64, cuts: Int32) -> NDArray[np.bool_]:
        """Whether each cut has a side that advice says is too far from the reference."""
        if self.advice is None:
            return np.zeros(len(classes), dtype=bool)
        places, starts = self.open.split_rows(classes, cuts)
        found = self.advice.find_hopeless(self.open.rows[places], starts)
        return found[0::2] | found[1::2]

    def smaller_sides(self, owner: Int64, cuts: Int32) -> Int64:
        """Rows of the smaller side of each cut; with persons, about as many."""
        left, sizes = self.open.count_left(owner, cuts), self.open.sizes[owner]
        small = np.minimum(left, sizes - left)
        return small if self.largest == 1 else small * self.counted.sizes[owner] // sizes

    def per_person(self, margins: Int64) -> Int64:
        """Exchanges of persons: each moves at most `largest` rows."""
        return np.where(margins < NO_LIMIT, -(-margins // self.largest), NO_LIMIT)

    def cut(self, classes: Int64, cuts: Int32) -> _Nodes:
        """Both sides of these classes; each inherits what its class has spent."""
        sides = self.sides(classes, cuts)
        paths = tuple(f"{self.paths[node]}{side}" for node in classes.tolist() for side in "lr")
        return replace(self, open=self.open.cut(classes, cuts), counted=sides, paths=paths, spent=inherit(self.spent[classes]))


def inherit(spent: Int64) -> Int64:
    """What both sides of each class have spent."""
    return np.repeat(spent, 2)
