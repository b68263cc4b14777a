"""Advice: where sensitive values are likely, from noisy counts of single quasi-identifiers with them.

Every count of (value of a quasi-identifier, sensitive value), zeros included, gets two-sided geometric noise. An exchange of
two persons changes each table by at most four times the rows of a person, so all tables together change the probability of what
is seen by at most e^eps. From the tables a naive Bayes estimate gives each row a distribution of the sensitive value. A cut is
hopeless if a side is estimated to be farther from the reference than allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes, Histogram
from closeknit.core.coins import Coins
from closeknit.core.errors import BadInput
from closeknit.core.model import Model
from closeknit.core.table import Table

Reals = NDArray[np.float64]
MOST_CELLS = 200_000  # of all tables: each draws exact noise
WEIGHT = 0.5  # of a column's evidence: columns depend on each other, and naive Bayes would count it twice
SCALE = 1000  # estimated counts are judged as whole numbers of so many parts


@dataclass(frozen=True, eq=False)
class Advice:
    """Estimated distributions of the sensitive attributes that a distance is limited for.

    Args:
        shares: per guarantee, the estimated share of every leaf for each row.
        models: the guarantees.
        histograms: of the whole table, for the references.
    """

    shares: Sequence[Reals]
    models: Sequence[Model]
    histograms: Sequence[Histogram]

    @classmethod
    def of(
        cls, table: Table, models: Sequence[Model], columns: Sequence[str], eps: Fraction, rows: int, coins: Coins
    ) -> Advice:
        """Draw noisy tables and estimate.

        Args:
            table: the rows.
            models: the guarantees with a limit on a distance.
            columns: the quasi-identifiers that advise.
            eps: what all tables together may reveal.
            rows: the most rows of a person.
            coins: draw the noise.
        """
        places = [list(table.schema.quasi).index(name) for name in columns]
        wholes = [table.count_values(model.column) for model in models if model.column is not None]
        published = [np.flatnonzero(whole.reference) for whole in wholes]
        cells = sum((table.quasi_domains[j].size + 1) * len(values) for j in places for values in published)
        if cells > MOST_CELLS:
            what = f"advice would count {cells:,} combinations, and at most {MOST_CELLS:,} are"
            raise BadInput(what, right="name columns with fewer values")
        x = eps / (4 * rows * len(places) * len(wholes))
        shares = []
        for model, whole, values in zip(models, wholes, published, strict=True):
            assert model.column is not None
            logs = np.zeros((len(table), len(values)))
            prior = whole.reference[values] / whole.reference.sum()
            codes = np.searchsorted(values, table.secret(model.column)[0])
            for j in places:
                size = table.quasi_domains[j].size + 1
                counts = np.zeros((size, len(values)), dtype=np.int64)
                np.add.at(counts, (table.quasi[:, j], codes), 1)
                label = f"advice {model.column} {j}"
                noise = [coins.geometric(x, f"{label} {place}") for place in range(counts.size)]
                noisy = np.maximum(counts + np.array(noise).reshape(counts.shape), 0)
                spread = float(1 / x)  # as many rows as the noise, spread like the reference
                chance = (noisy + spread * prior) / (noisy.sum(axis=1, keepdims=True) + spread)
                logs += WEIGHT * np.log(chance / prior)[table.quasi[:, j]]
            odds = prior * np.exp(logs - logs.max(axis=1, keepdims=True))
            found = np.zeros((len(table), len(whole.reference)))
            found[:, values] = odds / odds.sum(axis=1, keepdims=True)
            shares.append(found)
        return cls(shares, models, wholes)

    def find_hopeless(self, rows: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each group of rows is estimated to be farther from the reference than a guarantee allows.

        Args:
            rows: rows of the table, group by group.
            starts: where each group starts, and the end.
        """
        found = np.zeros(len(starts) - 1, dtype=bool)
        for shares, model, whole in zip(self.shares, self.models, self.histograms, strict=True):
            parts = np.rint(np.add.reduceat(shares[rows], starts[:-1], axis=0) * SCALE).astype(np.int64)
            sizes = np.diff(starts)
            assert model.column is not None
            found |= ~model.holds(Classes(sizes, sizes, {model.column: whole.recount(parts)}))
        return found
