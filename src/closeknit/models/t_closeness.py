"""t-closeness: every class is distributed nearly like the whole release: earth mover's distance at most `t`.

Sources: the thesis on SABRE and BUREL, sec. 3.2; the dissertation on methods to achieve t-closeness, sec. 2.6.4.
With p the reference and q the class, over leaves in value order:
- ordered: `1/(m-1) * sum_{i<m} |sum_{j<=i} (p_j - q_j)|`;
- hierarchical: ground distance height(lowest common ancestor) / height(root), for any tree;
- equal: `1/2 * sum |p_i - q_i|`.

Several sensitive attributes as one (`TCloseness(("disease", "salary"), t)`): the equal distance between their combinations. It
bounds what one of them discloses about the others, and each by itself in its own equal distance.

Different from the source: the ordered formula printed in the dissertation has the absolute value inside the inner sum,
which gives 0.25 for its own example of 0.05. All three are convex in q, so merging classes never hurts. Numerators are
whole numbers over one denominator per class, so `t` is met or missed exactly. Cost: O(r log m) for a class with r of m
values; with a tree r paths to the root.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes, Histogram
from closeknit.core.combined_secrets import Secret, render_secret, secret_of
from closeknit.core.domain import Domain
from closeknit.core.errors import BadInput
from closeknit.core.exact import Number, at_most, fraction
from closeknit.core.model import Model, Parameter
from closeknit.core.params import choice, number
from closeknit.core.share_limits import Distance, Limits
from closeknit.core.subsets import Over, check_over
from closeknit.core.tree import Tree
from closeknit.kernels.arrays import Int64
from closeknit.kernels.counting.emd import hierarchical_numerators, ordinal_numerators
from closeknit.models.declared_reference import check_reference, compare_declared, describe_reference

DISTANCES = ("ordered", "hierarchical", "equal")
ROOM = 1 << 62


@dataclass(frozen=True)
class TCloseness(Model):
    """Earth mover's distance of every class to the release at most `t`.

    Args:
        column: The sensitive attribute, or several that count as one.
        t: The limit, between 0 and 1.
        distance: The ground distance: "ordered", "hierarchical" or "equal"; None follows the kind of the column.
        over: Quasi-identifiers in which rows with equal written cells count as one group: names, "pairs" or "triples"; default:
            all of them.
        reference: The published distribution to compare with, {value: share}; default: that of all rows.

    >>> from closeknit.core.kinds import numeric
    >>> domain, codes = numeric().bind(np.array([30, 40, 50, 60]))
    >>> classes = Classes.of(np.array([0, 1, 1, 0], dtype=np.int32), 2, {"salary": (codes, domain)})
    >>> model = TCloseness("salary", "1/6")
    >>> model.levels(classes).round(3).tolist(), model.holds(classes).tolist()
    ([0.167, 0.167], [True, True])
    >>> model.describe(domain)
    't-closeness of salary, t = 1/6, ordered distance'
    >>> TCloseness(("disease", "salary"), 0.3).describe(None)
    't-closeness of disease and salary together, t = 0.3, equal distance'
    """

    name = "t_closeness"
    parameter = Parameter("t", (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5), least=0.001, most=1, rank=10)
    compares = True
    monotone = True
    bounds = "distance"
    joins = True

    column: Secret
    t: Number
    distance: str | None = None
    over: Over = None
    reference: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "over", check_over(self.over))
        object.__setattr__(self, "column", secret_of(self.column))  # a recipe has a list where a tuple is meant
        check_reference(self)
        number("t", self.t, least=0, most=1)
        if self.distance is not None:
            choice("distance", self.distance, DISTANCES)
        if isinstance(self.column, tuple) and self.distance not in (None, "equal"):
            what = f"distance={self.distance!r} has no meaning for {render_secret(self.column)}"
            raise BadInput(what, right="leave it out: combinations are equal or not; or request each column alone")

    @property
    def ground(self) -> str | None:
        """The distance that it names."""
        return self.distance

    def describe(self, domain: Domain | None) -> str:
        """The guarantee in one line, the ground distance always named."""
        if isinstance(self.column, tuple):
            ground = "equal distance"
        elif domain is None:
            ground = f"{self.distance} distance" if self.distance else "distance by the kind of the column"
        else:
            ground = f"{self.distance or default_distance(domain)} distance"
        also = self.over_text + describe_reference(self.reference)
        return f"t-closeness of {render_secret(self.column)}, t = {self.t}, {ground}{also}"

    def explain(self, class_word: str, persons: bool) -> str:
        """A sentence for laymen."""
        also = " One of these attributes does not disclose the others." if isinstance(self.column, tuple) else ""
        like = "all published rows" if self.reference is None else "the declared distribution"
        return (
            f"In every {class_word} ‘{render_secret(self.column)}’ is distributed nearly as in {like}: at most "
            f"{self.t} away, where 0 is the same and 1 as far as can be. Finding a person's {class_word} reveals little "
            f"beyond what the table reveals about everyone.{also}"
        )

    def limits(self, reference: Histogram) -> Limits | None:
        """A bound on the distance."""
        if self.reference is not None:
            return None
        ground = self.distance or default_distance(reference.domain)
        return Limits(distance=Distance(ground, fraction("t", self.t)))

    def refuse(self, classes: Classes) -> None:
        """An ordered distance needs an order and a place for every value; a hierarchical one needs a tree."""
        self._ground(compare_declared(classes, self.column, self.reference)[0])

    def levels(self, classes: Classes) -> NDArray[np.float64]:
        """Earth mover's distance of each class to the reference; 0 for a class that shows no value."""
        numerators, denominators, large = self.ratios(classes)
        levels: NDArray[np.float64] = numerators / denominators
        for i in large:
            levels[i] = float(self.exact_level(classes, int(i)))
        return np.where(compare_declared(classes, self.column, self.reference)[1], 1.0, levels)

    def holds(self, classes: Classes) -> NDArray[np.bool_]:
        """Whether each distance is at most `t`, in whole numbers where a float is near."""
        numerators, denominators, large = self.ratios(classes)
        limit = fraction("t", self.t)
        holds = at_most(numerators, denominators, limit)
        for i in large:
            holds[i] = self.exact_level(classes, int(i)) <= limit
        return holds & (~compare_declared(classes, self.column, self.reference)[1] | (limit >= 1))

    def exact_level(self, classes: Classes, index: int) -> Fraction:
        """The distance of one class as a rational."""
        histogram, strange = compare_declared(classes, self.column, self.reference)
        if strange[index]:
            return Fraction(1)
        ground = self._ground(histogram)
        entries = histogram.entries(index)
        class_counts = np.zeros(len(histogram.reference), dtype=object)
        class_counts[histogram.values[entries]] = histogram.counts[entries].astype(object)
        reference = histogram.reference.astype(object)
        n, s = int(reference.sum()), int(class_counts.sum())
        if s == 0 or n == 0:
            return Fraction(0)
        surplus = n * class_counts - s * reference
        if ground == "ordered":
            counted = choose_leaves(histogram)
            moved = sum(abs(step) for step in np.cumsum(surplus[counted])[:-1].tolist())
            return Fraction(moved, n * s * max(int(counted.sum()) - 1, 1))
        if ground == "equal":
            return Fraction(sum(abs(x) for x in surplus.tolist()), 2 * n * s)
        assert histogram.domain.tree is not None
        return _tree_distance(histogram.domain.tree, surplus, n * s)

    def ratios(self, classes: Classes) -> tuple[Int64, Int64, NDArray[np.intp]]:
        """Numerator and denominator of each distance, and the classes too large for 64 bits (given here as 0/1).

        Args:
            classes: the classes to measure.
        """
        histogram, _ = compare_declared(classes, self.column, self.reference)
        ground = self._ground(histogram)
        n, totals = int(histogram.reference.sum()), histogram.totals
        if ground == "ordered":
            numerators, scale = _ordinal(histogram)
        elif ground == "hierarchical":
            numerators, scale = _hierarchical(histogram)
        else:
            numerators, scale = _equal(histogram)
        is_large = totals > ROOM // max(2 * n * scale, 1)
        blank = is_large | (totals == 0)
        denominators = np.where(blank, 1, n * totals * scale)
        return np.where(blank, 0, numerators), denominators, np.flatnonzero(is_large)

    def _ground(self, histogram: Histogram) -> str:
        domain = histogram.domain
        ground = self.distance or default_distance(domain)
        if ground == "ordered" and not domain.ordered:
            what = "an ordered distance is requested for a column without an order"
            right = "request distance 'hierarchical' or 'equal', or declare the column as numeric()"
            raise BadInput(what, column=render_secret(self.column), right=right)
        if ground == "ordered" and histogram.reference[-1] > 0:
            what = "an ordered distance has no place for missing values"
            right = "request distance 'equal', or for 'hierarchical' with a hierarchy, or leave these rows out"
            raise BadInput(what, column=render_secret(self.column), right=right)
        if ground == "hierarchical" and domain.tree is None:
            what = "a hierarchical distance is requested for a column without a hierarchy"
            right = "request distance 'ordered' or 'equal', or give it a Hierarchy"
            raise BadInput(what, column=render_secret(self.column), right=right)
        return ground


def default_distance(domain: Domain) -> str:
    """The ground distance of a bound column when none is named: what its kind says, else what its leaves carry.

    >>> from closeknit.core.kinds import flat, numeric, prefix
    >>> codes = np.array(["47605", "47602"], dtype=object)
    >>> [default_distance(kind.bind(codes)[0]) for kind in (numeric(), prefix(), flat())]
    ['ordered', 'hierarchical', 'equal']
    """
    if domain.default_distance is not None:
        return domain.default_distance
    if domain.tree is None:
        return "ordered"
    return "hierarchical" if domain.tree.height[0] > 1 else "equal"


def choose_leaves(histogram: Histogram) -> NDArray[np.bool_]:
    """The leaves of an ordered domain: all where they are declared, else those that occur in published rows."""
    if histogram.domain.declared:
        counted = np.ones(len(histogram.reference), dtype=bool)
        counted[-1] = False
        return counted
    counted = histogram.reference > 0
    counted[histogram.values] = True
    return counted


def _ordinal(histogram: Histogram) -> tuple[Int64, int]:
    counted = choose_leaves(histogram)
    if not counted.any():
        return np.zeros(len(histogram.starts) - 1, dtype=np.int64), 1
    rank = np.cumsum(counted) - 1
    reference = histogram.reference[counted].astype(np.int64)
    numerators: Int64 = ordinal_numerators(histogram.starts, rank[histogram.values], histogram.counts, reference)
    return numerators, max(len(reference) - 1, 1)


def _equal(histogram: Histogram) -> tuple[Int64, int]:
    n, totals = int(histogram.reference.sum()), histogram.totals
    expected = totals[histogram.owner] * histogram.reference[histogram.values]
    # a value that the class lacks adds its expected count: all of them are n * s, then corrected where the class has it
    return n * totals + histogram.sums(np.abs(n * histogram.counts - expected) - expected), 2


def _hierarchical(histogram: Histogram) -> tuple[Int64, int]:
    tree = histogram.domain.tree
    assert tree is not None
    below = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(histogram.reference)])
    node_reference = below[tree.hi + 1] - below[tree.lo]
    values, leaf_node, parent, height = (
        array.astype(np.int64) for array in (histogram.values, tree.leaf_node, tree.parent, tree.height)
    )
    numerators: Int64 = hierarchical_numerators(
        histogram.starts, values, histogram.counts, leaf_node, parent, height, node_reference
    )
    return numerators, 2 * int(tree.height[0])


def _tree_distance(tree: Tree, surplus: NDArray[np.object_], whole: int) -> Fraction:
    """Bottom-up as the source says it: at each node the smaller of surplus and lack is moved between its children."""
    extra = [0] * len(tree.parent)
    plus, minus = extra.copy(), extra.copy()
    for leaf, node in enumerate(tree.leaf_node.tolist()):
        extra[node] = surplus[leaf]
    moved = 0
    for node in range(len(extra) - 1, 0, -1):  # children come after their parent
        if tree.height[node] > 0:
            extra[node] = plus[node] - minus[node]
            moved += int(tree.height[node]) * min(plus[node], minus[node])
        above = int(tree.parent[node])
        plus[above] += max(extra[node], 0)
        minus[above] += max(-extra[node], 0)
    moved += int(tree.height[0]) * min(plus[0], minus[0])
    return Fraction(moved, whole * int(tree.height[0]))
