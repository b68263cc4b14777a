"""Tables 6 to 8 of the paper on multiple sensitive attributes, as printed, and what arithmetic says of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.core.table import Table
from sections import Section

ROWS = 45_222
KS, TS = (2, 5, 10, 15, 20), (0.1, 0.2, 0.3, 0.4, 0.5)
TABLES = {
    "6 (algorithm 1)": """
        8/14/12  8/10/9   8/10/9   6/10/8   6/8/7
        10/25/18 10/20/16 10/20/13 5/15/10  5/15/8
        10/30/25 10/20/18 10/20/14 10/20/12 10/20/12
        15/15/15 15/15/15 15/15/15 15/15/15 15/15/15
        20/20/20 20/20/20 20/20/20 20/20/20 20/20/20""",
    "7 (algorithm 2)": """
        8/12/10  8/10/9   6/8/7    6/8/7    6/8/6
        10/20/15 10/16/14 5/10/8   5/11/6   5/10/6
        10/30/28 10/30/20 10/20/16 10/20/12 10/20/12
        15/30/18 15/30/18 15/15/15 15/15/15 15/15/15
        20/40/22 20/40/22 20/20/20 20/20/20 20/20/20""",
    "8 (contrast)": """
        8/10/9   8/10/9   6/10/8   6/8/7    6/8/7
        10/20/14 10/20/12 5/10/8   5/10/8   5/10/6
        10/30/25 10/20/15 10/20/14 10/20/12 10/10/10
        15/30/23 15/30/21 15/15/15 15/15/15 15/15/15
        20/40/27 20/40/24 20/20/20 20/20/20 20/20/20""",
}

Reals = NDArray[np.float64]


class Cell(NamedTuple):
    """One printed cell."""

    table: str
    k: int
    t: float
    least: int
    largest: int
    mean: int


def cells() -> Iterator[Cell]:
    """All 75.

    >>> next(cells())
    Cell(table='6 (algorithm 1)', k=2, t=0.1, least=8, largest=14, mean=12)
    """
    for name, text in TABLES.items():
        for k, line in zip(KS, text.split("\n")[1:], strict=True):
            for t, entry in zip(TS, line.split(), strict=True):
                yield Cell(name, k, t, *map(int, entry.split("/")))


def least_ordered(shares: Reals, size: int) -> float:
    """The least ordered distance that any class of so many rows can have: the nearest whole count at every prefix.

    >>> least_ordered(np.array([0.5, 0.5]), 2), least_ordered(np.array([0.5, 0.5]), 3).__round__(4)
    (0.0, 0.1667)
    """
    below = np.cumsum(shares)
    return float(np.abs(np.round(size * below) / size - below).sum() / max(len(shares) - 1, 1))


def least_in_tree(groups: list[Reals], size: int, inner: float = 0.5) -> float:
    """The least distance in a tree of groups of leaves; a move inside a group costs `inner`, between groups 1.

    Rows are first shared out among groups, in every way; inside one the counts nearest to the shares are found greedily,
    which is exact as each leaf's deviation is convex in its count. `inner=1`: the equal distance.

    >>> least_in_tree([np.array([0.25, 0.25]), np.array([0.5])], 2)
    0.125
    """
    inside = [_nearest(shares, size) for shares in groups]
    totals = [float(shares.sum()) for shares in groups]

    def cost(rows: tuple[int, ...]) -> float:
        between = sum(abs(r / size - total) for r, total in zip(rows, totals, strict=True)) / 2
        return between + inner * sum(costs[r] for r, costs in zip(rows, inside, strict=True))

    return min(map(cost, _shared_out(size, len(groups))))


def _shared_out(rows: int, groups: int) -> Iterator[tuple[int, ...]]:
    """Every way to give rows to groups."""
    if groups == 1:
        yield (rows,)
        return
    for first in range(rows + 1):
        for rest in _shared_out(rows - first, groups - 1):
            yield first, *rest


def _nearest(shares: Reals, size: int) -> list[float]:
    """For every number of rows in a group: what has to move inside it at least."""
    counts, costs = np.zeros(len(shares)), []
    for _ in range(size + 1):
        excess = counts / size - shares
        costs.append(float(np.abs(excess).sum() - abs(excess.sum())) / 2)
        step = np.abs((counts + 1) / size - shares) - np.abs(excess)
        counts[int(np.argmin(step))] += 1
    return costs


def left_over() -> list[Cell]:
    """Cells whose classes are all of one size that does not divide the rows.

    >>> len(left_over())
    23
    """
    return [cell for cell in cells() if cell.least == cell.largest and ROWS % cell.least]


def least_distances(table: Table) -> dict[int, tuple[float, float, float]]:
    """For classes of 2 to 40 rows: of occupation by its tree and by equal distances, of the second sensitive attribute "
    "in its order."""
    occupation, groups = _groups(table)
    levels = _shares(table, 1)
    return {s: (least_in_tree(groups, s), least_in_tree([occupation], s, 1.0), least_ordered(levels, s)) for s in range(2, 41)}


def too_few(found: dict[int, tuple[float, float, float]], place: int) -> list[Cell]:
    """Cells in which no class of the least size meets t: occupation by its tree (0) or by equal distances (1)."""
    return [cell for cell in cells() if max(found[cell.least][place], found[cell.least][2]) > cell.t]


def report(section: Section, table: Table, adult: bool) -> None:
    """What cannot be right, cell by cell."""
    section.say(
        f"Tables 6 to 8 as printed have 75 cells least/largest/mean. (a) Classes of one size: {ROWS:,} = 15 · 3,014 + 12 = "
        "20 · 2,261 + 2 = 10 · 4,522 + 2, so no partition of these rows has only classes of 15, of 20 or of 10: either "
        "rows are missing from the release (12, 2 and 2 of them at least) or the largest size is not what is printed."
    )
    equal = left_over()
    section.say(f"That concerns {len(equal)} cells: {_listed(equal)}.")
    sizes = sorted({cell.least for cell in cells()} | {2, 4, 12, 14})
    found = least_distances(table)
    section.say(
        "(b) Too few rows for t. The least distance that any class of so many rows can have, whichever rows it takes"
        + ("" if adult else " (of the generated table, so only an exercise)")
        + ": a class of 8 is made of eighths, and occupations have other shares."
    )
    lines = [[f"{s} rows", *(f"{x:.4f}" for x in found[s])] for s in sizes]
    section.table(["least distance", "occupation, tree", "occupation, equal", "education-num, ordered"], lines)
    for place, said in enumerate(("the tree used here", "equal distances")):
        short = too_few(found, place)
        never = [c for c in short if min(max(found[s][place], found[s][2]) for s in range(c.least, c.largest + 1)) > c.t]
        section.say(
            f"With {said}, no class of the printed least size meets t in {len(short)} cells: {_listed(short)}. "
            f"In {len(never)} of them no class of any size up to the printed largest one does: {_listed(never)}."
        )
    section.say(
        "The paper does not print its tree of occupations; its formula of the cost of a node, read as printed (all leaves "
        "below a node), only gives larger distances. A tree with more levels could give smaller ones."
    )
    _claims(section)


def _claims(section: Section) -> None:
    """Compare the paper's sentences with its tables."""
    by = {(cell.table, cell.k, cell.t): cell for cell in cells()}
    one, two, contrast = TABLES
    small = [(k, t) for k in (2, 5, 10) for t in TS]
    not_larger = {
        name: [f"({k}, {t})" for k, t in small if by[name, k, t].mean <= by[contrast, k, t].mean] for name in (one, two)
    }
    section.say(
        "(c) The text says that for k = 2, 5, 10 classes of algorithms 1 and 2 are larger than those of the contrast "
        f"algorithm. By the printed means this fails at {len(not_larger[one])} of 15 (k, t) for algorithm 1 "
        f"({', '.join(not_larger[one])}) and at {len(not_larger[two])} for algorithm 2 ({', '.join(not_larger[two])})."
    )
    apart = [cell for cell in cells() if cell.table != contrast and cell.k >= 15 and cell.largest > cell.k]
    section.say(f"It says that for k = 15 and 20 their sizes are equal to k; {len(apart)} cells differ: {_listed(apart)}.")
    section.say(
        "The printed means lie between least and largest everywhere, and the odd sizes 16 and 11 at k = 5 fit the two rows "
        "that 5 leaves over: these are plausible."
    )


def _listed(found: list[Cell]) -> str:
    """Cells by table: k at which t."""
    parts = []
    for name in TABLES:
        ks = {k: [f"{c.t:g}" for c in found if c.table == name and c.k == k] for k in KS}
        said = "; ".join(f"k = {k} at t = {', '.join(ts)}" for k, ts in ks.items() if ts)
        if said:
            parts.append(f"table {name.split()[0]}: {said}")
    return ". ".join(parts) or "none"


def _shares(table: Table, place: int) -> Reals:
    domain = table.sensitive_domains[place]
    counts = np.bincount(table.sensitive[:, place], minlength=domain.size)[: domain.size]
    return counts / counts.sum()


def _groups(table: Table) -> tuple[Reals, list[Reals]]:
    """Shares of occupations, in all and by the groups under the root."""
    shares, tree = _shares(table, 0), table.sensitive_domains[0].tree
    assert tree is not None
    top = np.flatnonzero(tree.parent == 0)[1:-1]  # without the root itself and the missing leaf
    return shares, [shares[tree.lo[node] : tree.hi[node] + 1] for node in top]
