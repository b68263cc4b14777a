"""Special uniques (SUDA2): how few columns are enough to single a row out.

A *minimal sample unique* (MSU) of a row is a set S of columns on which the row is unique, and on no proper subset of S. Rows
with many and small MSUs are the risky ones. With M columns a row scores the sum of (M - |S|)! over its MSUs; the share of a
column is the score of the MSUs that contain it, divided by the score.

The score is combined with the data intrusion simulation (Skinner and Elliot): with c_1 uniques, c_2 pairs and the sampling
fraction pi, DIS = pi c_1 / (pi c_1 + 2 c_2 (1 - pi)) is the probability that a unique match is correct. DIS-SUDA distributes it
by score: 1 / (1 + 2 c_2 (1 - pi) / (pi s^Q sum s^-Q)) with Q = 1 + (8 - M) / 20, the formula of sdcMicro; Q is a heuristic.

Column sets are visited in the order of their bit masks, so that all subsets come first. Each set refines the groups of the
set without its last column, and only the rows that are not unique there are looked at again. Cost: at most the number of sets
of up to `most` columns, times the rows that are left. A missing value is never part of an MSU, but it distinguishes rows.

Source: Elliot, Manning, Ford (SUDA); Manning, Haglin, Keane (SUDA2); the search is a plain one, with the same result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import comb, factorial

import numpy as np
from numpy.typing import NDArray

from closeknit.core.errors import BadInput
from closeknit.core.exact import Floats, Ints
from closeknit.core.grids import Summarized, Summary
from closeknit.core.limits import MOST_COLUMN_SETS, check_count
from closeknit.core.params import whole
from closeknit.core.population_uniques import SizeCounts
from closeknit.core.row_sorting import Coded, groups

MOST_COLUMNS = 20
MOST = 6  # columns of an MSU, unless more are requested
Bits = NDArray[np.uint8]


@dataclass(frozen=True, eq=False, repr=False)
class Suda(Summarized):
    """Scores of all rows; private if the table is.

    Args:
        columns: The columns that were combined.
        scores: Score of each row; 0 without an MSU.
        contributions: Score of each row from MSUs that contain a column, [rows, columns].
        uniques: Rows that are unique on all columns, c_1.
        pairs: Pairs of rows that are equal on all columns and to no other, c_2.
        most: Largest number of columns of an MSU that was looked for.
        sampling_fraction: Share of the population that is in the table, where it is known.
        msus: Number of MSUs by their number of columns.
    """

    columns: tuple[str, ...]
    scores: Floats
    contributions: Floats
    uniques: int
    pairs: int
    most: int
    sampling_fraction: Fraction | None = None
    msus: Mapping[int, int] = field(default_factory=dict)

    @property
    def dis(self) -> float | None:
        """Probability that a unique match is correct; None without a sampling fraction."""
        if self.sampling_fraction is None:
            return None
        right = self.sampling_fraction * self.uniques
        wrong = 2 * self.pairs * (1 - self.sampling_fraction)
        return float(right / (right + wrong)) if right else 0.0

    @property
    def dis_suda(self) -> Floats | None:
        """DIS distributed by score, for each row; None without a sampling fraction."""
        if self.sampling_fraction is None:
            return None
        pi, scored = float(self.sampling_fraction), self.scores > 0
        q = 1 + (8 - len(self.columns)) / 20
        found = np.zeros(len(self.scores))
        weights = self.scores[scored] ** q
        found[scored] = 1 / (1 + 2 * self.pairs * (1 - pi) / (pi * weights * (1 / weights).sum()))
        return found

    @property
    def shares(self) -> Floats:
        """Share of each row's score from MSUs that contain a column, [rows, columns]; 0 in rows without a score."""
        return np.divide(
            self.contributions, self.scores[:, None], out=np.zeros_like(self.contributions), where=self.scores[:, None] > 0
        )

    @property
    def column_shares(self) -> dict[str, float]:
        """Share of the whole score from MSUs that contain a column: which columns single rows out."""
        total = float(self.scores.sum())
        sums = self.contributions.sum(axis=0) / total if total else np.zeros(len(self.columns))
        return dict(zip(self.columns, sums.tolist(), strict=True))

    def summary(self) -> Summary:
        """Return the columns, the most revealing first."""
        scored = int((self.scores > 0).sum())
        title = f"SUDA of {len(self.scores):,} rows: {scored:,} have a minimal sample unique of at most {self.most} columns"
        shares = sorted(self.column_shares.items(), key=lambda item: (-item[1], item[0]))
        notes = [] if self.dis is None else [f"a unique match is correct with probability {self.dis:.4g} (DIS)"]
        return Summary(title, [["column", "share of the score"], *([name, f"{share:.3f}"] for name, share in shares)], notes)


def find_special_uniques(cells: Mapping[str, Coded], rows: int, most: int = MOST, fraction: Fraction | None = None) -> Suda:
    """Find the minimal sample uniques of all rows and score them.

    Args:
        cells: Codes of each column, 0 = missing, and how many codes there are.
        rows: Number of rows.
        most: Largest number of columns of an MSU.
        fraction: Share of the population that is in the table.

    >>> cells = {"sex": (np.array([1, 1, 2]), 3), "age": (np.array([1, 2, 2]), 3)}
    >>> found = find_special_uniques(cells, 3, fraction=Fraction(1, 10))
    >>> found.scores.tolist(), found.column_shares, found.dis_suda.tolist()
    ([1.0, 1.0, 1.0], {'sex': 0.666..., 'age': 0.666...}, [1.0, 1.0, 1.0])
    """
    whole("most", most, least=1)
    if len(cells) > MOST_COLUMNS:
        what = f"there are {len(cells)} quasi-identifiers, and SUDA combines at most {MOST_COLUMNS}"
        raise BadInput(what, right="leave columns out of quasi")
    sets = sum(comb(len(cells), size) for size in range(1, min(most, len(cells)) + 1))
    check_count(f"most={most} makes {{}} sets of columns", sets, MOST_COLUMN_SETS)
    names, codes, width = tuple(cells), list(cells.values()), len(cells)
    full, classes = groups(codes, rows)
    sizes = np.bincount(full, minlength=classes)
    unique = np.flatnonzero(sizes[full] == 1)
    known = np.stack([values[unique] > 0 for values, _ in codes]) if codes else np.empty((0, len(unique)), dtype=bool)
    scores, contributions, msus = np.zeros(len(unique)), np.zeros((len(unique), width)), dict[int, int]()
    found: dict[int, Bits] = {}
    for mask, columns, alone in _visit(codes, rows, unique, min(most, width)):
        if not columns:
            continue
        alone &= known[columns].all(axis=0)
        minimal = alone.copy()
        for column in columns if len(columns) > 1 else ():
            minimal &= ~np.unpackbits(found[mask & ~(1 << column)], count=len(unique)).astype(bool)
        if len(columns) < most:
            found[mask] = np.packbits(alone)
        if minimal.any():
            score = float(factorial(width - len(columns)))
            scores[minimal] += score
            for column in columns:
                contributions[minimal, column] += score
            msus[len(columns)] = msus.get(len(columns), 0) + int(minimal.sum())
    all_scores, all_parts = np.zeros(rows), np.zeros((rows, width))
    all_scores[unique], all_parts[unique] = scores, contributions
    counts = SizeCounts.of(sizes)
    return Suda(names, all_scores, all_parts, counts.of_size(1), counts.of_size(2), most, fraction, dict(sorted(msus.items())))


Visited = tuple[int, list[int], NDArray[np.bool_]]


def _visit(codes: Sequence[Coded], rows: int, unique: Ints, most: int) -> Iterator[Visited]:
    """Yield every set of up to `most` columns after all of its subsets: mask, columns, which of the rows are unique on it."""
    place = np.full(rows, -1, dtype=np.int64)
    place[unique] = np.arange(len(unique))

    def extend(chosen: list[int], below: int, left: Ints, group: Ints, alone: NDArray[np.bool_]) -> Iterator[Visited]:
        """`left` are the rows that share their cells of the chosen columns with another, `group` their groups."""
        yield sum(1 << column for column in chosen), chosen, alone.copy()
        for column in range(below if len(chosen) < most else 0):
            values, size = codes[column]
            refined, count = groups([(group, int(group.max(initial=0)) + 1), (values[left], size)], len(left))
            several = np.bincount(refined, minlength=count)[refined] > 1
            freed = place[left[~several]]
            more = alone.copy()
            more[freed[freed >= 0]] = True
            yield from extend([*chosen, column], column, left[several], refined[several].astype(np.int64), more)

    everyone = np.arange(rows) if rows > 1 else np.empty(0, dtype=np.int64)
    yield from extend([], len(codes), everyone, np.zeros(len(everyone), dtype=np.int64), np.full(len(unique), rows == 1))
