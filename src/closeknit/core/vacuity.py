"""Whether a guarantee excludes anything on a table: which values may stand alone in an equivalence class.

A value may stand alone if a class that holds no other value meets the limit. A guarantee is vacuous if every value with at
least k rows may: then a release that discloses all of them meets it. A hierarchy whose values meet far below its root makes
every hierarchical distance small, so a limit that looks strict may be vacuous; the refusal names this cause and the remedy.
Every model is judged by its own `holds`, so the rule needs no knowledge of it. Guarantees about sizes or about a whole release
are left out. Rows count, even if k counts persons: the statement can then be recomputed from the release.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes, Histogram
from closeknit.core.errors import Vacuous
from closeknit.core.model import Model, least_rows

LONGEST = 20  # characters of a value in a sentence


@dataclass(frozen=True, eq=False)
class StandAlone:
    """Every value that occurs as a class of its own, and whether that class meets the limit."""

    model: Model
    singles: Histogram  # one class for each value that occurs
    may: NDArray[np.bool_]  # stand alone
    k: int  # rows of the smallest class

    @classmethod
    def of(cls, model: Model, histogram: Histogram, k: int) -> StandAlone:
        """Judge each value of `histogram.reference` by `model`; classes have at least `k` rows.

        >>> from closeknit.core.kinds import flat
        >>> from closeknit.models import TCloseness
        >>> domain, codes = flat().bind(np.array(["flu", "gout"], dtype=object))
        >>> rows = Histogram.of(np.zeros(4, np.int32), 1, codes[[0, 0, 0, 1]], domain)
        >>> found = StandAlone.of(TCloseness("ill", 0.25), rows, k=1)
        >>> found.may.tolist(), found.share, found.vacuous
        ([True, False], 0.75, False)
        """
        values = np.flatnonzero(histogram.reference).astype(np.int32)
        rows = histogram.reference[values].astype(np.int64)
        starts = np.arange(len(values) + 1, dtype=np.int64)
        singles = Histogram(starts, values, rows, histogram.reference, histogram.domain)
        return cls(model, singles, model.holds(_build_classes(model, singles)), k)

    @property
    def frequent(self) -> NDArray[np.bool_]:
        """Values with enough rows for a class."""
        return self.singles.counts >= self.k

    @property
    def share(self) -> float:
        """Share of the rows whose value may stand alone."""
        rows = self.singles.counts
        return float(rows[self.may].sum() / max(int(rows.sum()), 1))

    @property
    def vacuous(self) -> bool:
        """Whether every value with enough rows may stand alone."""
        return bool(self.frequent.any() and self.may[self.frequent].all())

    @property
    def text(self) -> str:
        """The guarantee in words."""
        return self.model.describe(self.singles.domain)

    def refusal(self) -> Vacuous:
        """The error that names the cause and the remedy."""
        cause, remedy = _one_value(self) or _far_below(self) or _loose(self)
        least = f" with at least {self.k:,} rows" if self.k > 1 else ""
        measured = f"every value{least} may stand alone in an equivalence class, because {cause}"
        return Vacuous(self.text, measured, f"{remedy}, or set allow_vacuous to publish with a note that it excludes nothing")


def find_stand_alone(model: Model, classes: Classes, k: int) -> StandAlone | None:
    """Which values may stand alone; None for a guarantee that is not about the values of each class."""
    if model.column is None or "release" in model.needs:
        return None
    return StandAlone.of(model, classes.histograms[model.column], max(k, 1))


def vacuity_notes(models: Sequence[Model], classes_of: Callable[[Model], Classes], allowed: bool) -> list[str]:
    """Notes on guarantees that exclude nothing, or whose limit has no effect.

    `classes_of` gives the classes in which a model sees its column. A vacuous guarantee raises `Vacuous` unless `allowed`.
    """
    notes, k = [], least_rows(models)
    for model in models:
        notes += [f"{model.describe(None)}: {remark}" for remark in model.remarks(models)]
        found = find_stand_alone(model, classes_of(model), k)
        if found is not None and found.vacuous:
            if not allowed:
                raise found.refusal()
            notes.append(vacuous_note(found.text))
        elif found is not None:
            notes += [f"{found.text}: {remark}" for remark in model.idle(found.singles)]
    return notes


def vacuous_note(text: str) -> str:
    """What a certificate notes about a vacuous guarantee.

    >>> vacuous_note("k-anonymity, k = 1")
    'k-anonymity, k = 1 is vacuous: every value with enough rows for a class may stand alone in one, so it excludes nothing'
    """
    return f"{text} is vacuous: every value with enough rows for a class may stand alone in one, so it excludes nothing"


def render_share(share: float | None) -> str:
    """The share of rows whose value may stand alone, as a remark after a measured level; empty if there are none.

    >>> render_share(0.125), render_share(0.0)
    (' (12.5 % of rows have a value that may stand alone)', '')
    """
    return f" ({100 * share:.3g} % of rows have a value that may stand alone)" if share else ""


def _build_classes(model: Model, singles: Histogram) -> Classes:
    assert model.column is not None
    return Classes(singles.counts, singles.counts, {model.column: singles})


def _one_value(found: StandAlone) -> tuple[str, str] | None:
    if len(found.singles.values) > 1:
        return None
    return "the column has one value only", "leave the guarantee out: every release reveals that value"


def _far_below(found: StandAlone) -> tuple[str, str] | None:
    """A tree that is much higher than the node at which the frequent values meet, if that is what makes distances small."""
    singles, domain, tree = found.singles, found.singles.domain, found.singles.domain.tree
    values = singles.values[found.frequent]
    if tree is None:
        return None
    node = int(tree.cover([int(values.min())], [int(values.max())])[0])
    low, high = int(tree.height[node]), int(tree.height[0])
    if not 0 < low < high:
        return None
    lower = tree.height.copy()
    lower[0] = low
    cut = replace(singles, domain=replace(domain, tree=replace(tree, height=lower)))
    if StandAlone.of(found.model, cut, found.k).vacuous:
        return None  # the limit is too loose for any tree
    place = f"meet at '{_short(tree.labels[node])}', of height {low:,} in a hierarchy of height {high:,}"
    if tree.lo[node] <= singles.values.min() and singles.values.max() <= tree.hi[node]:
        remedy = f"remove the levels or characters that all values share, above '{_short(tree.labels[node])}'"
        return f"they {place}", f"{remedy}, or request distance 'equal'"
    longest = _short(tree.labels[int(np.argmax(tree.depth))])
    return f"they {place}, which '{longest}' makes so high", f"correct '{longest}', or request distance 'equal'"


def _loose(found: StandAlone) -> tuple[str, str]:
    """A limit that no class of a single value exceeds."""
    levels = found.model.levels(_build_classes(found.model, found.singles))[found.frequent]
    safer = found.model.higher_is_safer
    worst = float(levels.min() if safer else levels.max())
    cause = f"the limit {found.model.requested} is looser than what such classes reach"
    return cause, f"request less than {worst:.6g}" if not safer else f"request more than {worst:.6g}"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
