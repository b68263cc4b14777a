"""Similarity: the sensitive values of a class differ but are close, so the class reveals roughly where a value lies.

The adversary knows the quasi-identifiers of a person in the table, and which values are similar. With a hierarchy: the largest
share of a class under one branch, and the share of rows whose whole class lies under one. Branches are the children of the
lowest node over all published values (a root above it reveals nothing). With an order: the width of a class compared with that
of the column, the share of rows whose class is at most `eps` wide, and the largest share of a class in a window of width `eps`.
A missing value is a branch or a window of its own. Values without a tree or an order are covered by `homogeneity`.

Source: the dissertation on methods to achieve t-closeness, ch. 2 (similarity attack on l-diversity). `risk` is the largest
reduction in uncertainty about a branch or window, (q - p) / (1 - p) with its share p in the whole release: 1 where a class
lies in one and the release does not, 0 where all classes are like the release.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from closeknit.attacks.beliefs import Beliefs, NotApplicable, measure_gain
from closeknit.attacks.finding import Finding
from closeknit.attacks.finding_texts import IN_TABLE, certainty, format_count, not_shown, percent, place
from closeknit.core.domain import Domain
from closeknit.core.exact import Number, plain_number, sum_products
from closeknit.core.params import number
from closeknit.core.reading import Reading
from closeknit.core.tree import Tree
from closeknit.kernels.arrays import Int64
from closeknit.models.t_closeness import default_distance
from closeknit.models.value_sets import reach_of

KNOWS = f"{IN_TABLE}, and which values are similar"


def similarity(reading: Reading, column: str, eps: Number = 0.1) -> Finding:
    """Measure how close the sensitive values of a class are: under one branch of a hierarchy, or in a window of an order.

    Args:
        reading: The release as its form reads it (`reading_of`).
        column: Sensitive attribute under attack; it needs an order or a hierarchy of more than one level.
        eps: Width of a window, as a share of the column's range.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> schema = ck.Schema(quasi={"sex": ck.flat()}, sensitive={"wage": ck.numeric(0, 100)})
    >>> cells = Columns.of({"sex": ["f", "f", "m", "m"], "wage": [30, 35, 20, 90]})
    >>> similarity(ck.generalized().read(cells, schema), "wage").sentence
    'For 2 rows (50 %) the class reveals `wage` to within 10 % of its range; the narrowest class spans 5 %.'
    """
    share = number("eps", eps, least=0, most=1)
    beliefs = Beliefs.of(reading, column, people=False)
    ground = default_distance(beliefs.domain)
    if ground == "equal" or (ground == "ordered" and beliefs.law is not None):
        what = "its values have neither an order nor a hierarchy of more than one level, so none are similar"
        raise NotApplicable(what, column=column, right="see homogeneity, or declare a hierarchy")
    finding = partial(Finding, attack="similarity", knows=KNOWS, column=column)
    if beliefs.totals.sum() == 0:
        return finding(measure="largest share of similar values", number=None, risk=0, sentence=not_shown(column))
    if ground == "ordered":
        return _by_order(beliefs, reading.of(column), column, share, finding)
    return _by_tree(beliefs, reading.of(column), column, finding)


def _by_tree(beliefs: Beliefs, seen: Reading, column: str, finding: Callable[..., Finding]) -> Finding:
    tree = beliefs.domain.tree
    assert tree is not None
    root = _root(tree, beliefs.prior > 0)
    branch_of, labels = _branches(tree, root)
    sets = beliefs.under(branch_of, len(labels)).add_unseen(1)
    peaks, _ = sets.peaks()
    worst = int(np.argmax(sets.chances))
    share, branch = float(sets.chances[worst]), labels[int(sets.values[worst])]
    rows, within = int(beliefs.totals.sum()), int(beliefs.totals[peaks == 1].sum())
    lowest, deep = _lowest(beliefs, tree, root)
    sentence = f"{_reveals(within, rows)} the branch of `{column}`; in the worst case it is '{branch}' {certainty(share)}."
    if root in tree.leaf_node:
        sentence = f"The whole release has one value of `{column}`, so no class reveals more."
    return finding(
        measure="largest share of a class under one branch",
        number=share,
        risk=float(measure_gain(sets.chances, sets.prior[sets.values]).max()),
        sentence=sentence,
        details={
            "within": within,
            "within_share": within / rows,
            "branch": branch,
            "class": place(seen, int(sets.owner[worst])),
            "lowest_node": None if lowest is None else (tree.labels[lowest] or "missing"),
            "deeper_share": deep,
        },
    )


def _reveals(within: int, rows: int) -> str:
    if within == 0:
        return "No class reveals"
    return f"For {format_count(within, 'row')} ({percent(within / rows)}) the class reveals"


def _root(tree: Tree, occurs: NDArray[np.bool_]) -> int:
    """Return the lowest node over all published values."""
    leaves = np.flatnonzero(occurs)
    return int(tree.cover([int(leaves[0])], [int(leaves[-1])])[0])


def _branches(tree: Tree, root: int) -> tuple[Int64, list[str]]:
    """Return for each leaf the child of the root above it, and the names of these; leaves elsewhere are under `*`."""
    node = tree.leaf_node.astype(np.int64)
    for _ in range(int(tree.height[0]) + 1):
        above = tree.parent[node]
        inside = (node != root) & (above != root) & (node != 0) & (above != node)
        node = np.where(inside, above, node)
    nodes, branch_of = np.unique(node, return_inverse=True)
    return branch_of.astype(np.int64), [tree.labels[i] or "missing" for i in nodes.tolist()]


def _lowest(beliefs: Beliefs, tree: Tree, root: int) -> tuple[int | None, float | None]:
    """Return the lowest node over a class of several values, and the share of rows whose class has one below the branches."""
    if beliefs.law is not None:
        return None, None
    several = np.flatnonzero(np.diff(beliefs.starts) > 1)
    if len(several) == 0:
        return None, 0.0
    ends = beliefs.values[beliefs.starts[several]], beliefs.values[beliefs.starts[several + 1] - 1]
    nodes = tree.cover(ends[0].astype(np.int32), ends[1].astype(np.int32))
    below = (nodes != root) & (tree.parent[nodes] != root) & (nodes != 0)
    lowest = int(nodes[np.lexsort((nodes, tree.leaves[nodes]))[0]])
    return lowest, float(beliefs.totals[several][below].sum() / beliefs.totals.sum())


def _by_order(beliefs: Beliefs, seen: Reading, column: str, eps: Fraction, finding: Callable[..., Finding]) -> Finding:
    low, high = _ends(beliefs.domain)
    widths = _widths(beliefs, float(high - low))
    counts, prior = _windows(beliefs, eps * (high - low))
    shares = counts / beliefs.totals[beliefs.owner]
    worst, rows = int(np.argmax(shares)), int(beliefs.totals.sum())
    # a class is within eps if some window holds all of it: decided in whole numbers and rationals, like the windows
    within = int(beliefs.totals[np.unique(beliefs.owner[counts == beliefs.totals[beliefs.owner]])].sum())
    narrow = int(np.nanargmin(np.where(beliefs.totals > 0, widths, np.nan)))
    return finding(
        measure="largest share of a class within eps",
        number=float(shares[worst]),
        risk=float(measure_gain(shares, prior).max()),
        sentence=f"{_reveals(within, rows)} `{column}` to within {percent(float(eps))} of its range; the narrowest class spans "
        f"{percent(float(widths[narrow]))}.",
        details={
            "eps": float(eps),
            "within": within,
            "within_share": within / rows,
            "class": place(seen, int(beliefs.owner[worst])),
            "least_width": float(widths[narrow]),
            "least_width_class": place(seen, narrow),
            "mean_width": sum_products(np.where(beliefs.totals > 0, widths, 0), beliefs.totals) / rows,
        },
    )


def _ends(domain: Domain) -> tuple[Fraction, Fraction]:
    """Return the ends of the whole column: declared bounds, else the outermost published values."""
    assert domain.numbers is not None
    outer = domain.bounds or ((domain.numbers[0], domain.numbers[-1]) if domain.size else (0.0, 0.0))
    return Fraction(plain_number(outer[0])), Fraction(plain_number(outer[1]))


def _widths(beliefs: Beliefs, whole: float) -> NDArray[np.float64]:
    """Return the width of each class relative to the column; 1 where it has missing and other values, 0 without any value."""
    assert beliefs.domain.numbers is not None
    shown = np.flatnonzero(beliefs.totals > 0)
    first, last = beliefs.values[beliefs.starts[shown]], beliefs.values[beliefs.starts[shown + 1] - 1]
    places = np.append(beliefs.domain.numbers, np.inf)
    widths = np.zeros(len(beliefs.totals))
    with np.errstate(invalid="ignore"):
        apart = np.minimum((places[last] - places[first]) / whole if whole > 0 else np.inf, 1.0)
    widths[shown] = np.where(first == last, 0.0, apart)
    return widths


def _windows(beliefs: Beliefs, width: Fraction) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the rows of the class in the window that begins at each entry, and the share of the whole release in it."""
    assert beliefs.domain.numbers is not None
    reach = reach_of(beliefs.domain.numbers, width, relative=False)[beliefs.values]
    size, owner = len(beliefs.prior), beliefs.owner
    last = np.searchsorted(owner * size + beliefs.values, owner * size + reach, side="right")
    running = np.concatenate([np.zeros(1), np.cumsum(beliefs.weights)])
    below = np.concatenate([np.zeros(1), np.cumsum(beliefs.prior)])
    return running[last] - running[:-1], np.minimum(below[reach + 1] - below[beliefs.values], 1.0)
