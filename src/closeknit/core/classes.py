"""`Classes`: everything a model may see: sizes, histograms of sensitive attributes, persons, reference distributions.

Histograms are sparse (the values that occur in a class, with their counts): an attribute may have as many values as rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.core.combined_secrets import CodedSecret, Secret
from closeknit.core.domain import Domain
from closeknit.kernels.arrays import Int64
from closeknit.kernels.counting.histograms import count_classes, count_codes, join_pairs


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts of one sensitive attribute per class.

    Args:
        starts: class `c` has the entries `starts[c]:starts[c + 1]`.
        values: leaf code of each entry, ascending inside a class.
        counts: rows of each entry.
        reference: rows of every leaf of the domain among all published rows, the missing leaf last.
        domain: the leaves of the attribute.
    """

    starts: Int64
    values: NDArray[np.int32]
    counts: Int64
    reference: Int64
    domain: Domain

    @classmethod
    def of(
        cls,
        class_of: NDArray[np.int32],
        count: int,
        codes: NDArray[np.int32],
        domain: Domain,
        reference: Int64 | None = None,
        weights: Int64 | None = None,
    ) -> Histogram:
        """Count rows; a row without a class (-1) or with a suppressed sensitive value (-1) does not count.

        Args:
            class_of: class of each row.
            count: number of classes.
            codes: leaf code of each row.
            domain: the leaves of the attribute.
            reference: rows of every leaf to compare with; those of the counted rows if left out.
            weights: number of equal rows that each row represents, 1 if left out.
        """
        width = domain.size + 1
        if weights is None and width <= 16 * len(codes):
            if reference is None:
                reference = count_codes(np.where(class_of >= 0, codes, np.int32(-1)), width)
            return cls(*count_classes(class_of, count, np.ascontiguousarray(codes), width), reference, domain)
        seen = (class_of >= 0) & (codes >= 0)
        keys = class_of[seen].astype(np.int64) * width + codes[seen]
        many = np.ones(len(keys), dtype=np.int64) if weights is None else weights[seen]
        cells, where = np.unique(keys, return_inverse=True)
        counts = np.bincount(where, many, minlength=len(cells))
        if reference is None:
            reference = np.bincount(codes[seen], many, minlength=width).astype(np.int64)
        starts = np.searchsorted(cells, np.arange(count + 1, dtype=np.int64) * width)
        return cls(starts.astype(np.int64), (cells % width).astype(np.int32), counts.astype(np.int64), reference, domain)

    def entries(self, index: int) -> slice:
        """The entries of one class."""
        return slice(int(self.starts[index]), int(self.starts[index + 1]))

    @property
    def owner(self) -> Int64:
        """Class of every entry."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    @property
    def totals(self) -> Int64:
        """Rows counted per class."""
        return self.sums(self.counts)

    def sums(self, entries: Int64) -> Int64:
        """Sum of a number per entry, per class; an empty class gives 0."""
        running = np.concatenate([np.zeros(1, dtype=entries.dtype), np.cumsum(entries)])
        sums: Int64 = running[self.starts[1:]] - running[self.starts[:-1]]
        return sums

    def take(self, classes: Int64) -> Histogram:
        """These classes only."""
        many = np.diff(self.starts)[classes]
        starts = np.concatenate([[0], np.cumsum(many)])
        entries = np.arange(starts[-1]) + np.repeat(self.starts[classes] - starts[:-1], many)
        return Histogram(starts, self.values[entries], self.counts[entries], self.reference, self.domain)

    def recount(self, rows: Int64) -> Histogram:
        """The same attribute over other classes: `rows[c, v]` rows of class c have leaf v."""
        owner, values = np.nonzero(rows)
        starts = np.searchsorted(owner, np.arange(len(rows) + 1))
        return Histogram(starts, values.astype(np.int32), rows[owner, values], self.reference, self.domain)

    def merge(self, into: NDArray[np.integer], count: int) -> Histogram:
        """Merge class `c` into class `into[c]`; the reference does not change."""
        width = self.domain.size + 1
        keys = into[self.owner].astype(np.int64) * width + self.values
        return Histogram(*self._merge_entries(keys, count, width), self.reference, self.domain)

    def fold_values(self) -> Histogram | None:
        """Count look-alike values as the first of them that has rows, over the same domain; None if none look alike."""
        leaf_of, width = self.domain.folding(self.reference), self.domain.size + 1
        if leaf_of is None:
            return None
        reference = np.bincount(leaf_of, weights=self.reference, minlength=width).astype(np.int64)
        keys = self.owner * width + leaf_of[self.values]
        return Histogram(*self._merge_entries(keys, len(self.starts) - 1, width), reference, self.domain)

    def drop_missing(self) -> Histogram:
        """Leave out missing values, in the classes and in the reference."""
        kept = self.values < self.domain.size
        if kept.all():
            return self
        starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(kept)])[self.starts]
        reference = np.append(self.reference[:-1], 0)
        return Histogram(starts, self.values[kept], self.counts[kept], reference, self.domain)

    def _merge_entries(self, keys: Int64, count: int, width: int) -> tuple[Int64, NDArray[np.int32], Int64]:
        """Entries with the same key (class * width + leaf) as one, in the order of their keys."""
        if count * width <= 16 * len(keys):
            dense = np.bincount(keys, weights=self.counts, minlength=count * width)
            cells = np.flatnonzero(dense)
            counts = dense[cells]
        else:
            cells, where = np.unique(keys, return_inverse=True)
            counts = np.bincount(where, weights=self.counts, minlength=len(cells))
        starts = np.searchsorted(cells, np.arange(count + 1, dtype=np.int64) * width)
        return starts, (cells % width).astype(np.int32), counts.astype(np.int64)

    def pairs(self, one: Int64, other: Int64) -> Histogram:
        """Class `one[i]` and class `other[i]` together, for every i."""
        return Histogram(*join_pairs(self.starts, self.values, self.counts, one, other), self.reference, self.domain)


def view_of(name: str, folded: bool, known: bool) -> Secret:
    """The key under which persons are counted: look-alike values as one, missing values left out, or the column as written."""
    return ("", f"{'folded' if folded else 'written'}{' known' if known else ''}", name) if folded or known else name


def parse_view(view: Secret) -> str:
    """The sensitive attribute of a view.

    >>> parse_view(view_of("disease", folded=True, known=True)), parse_view("disease")
    ('disease', 'disease')
    """
    return view if isinstance(view, str) else view[-1]


class Spread(NamedTuple):
    """What diversity is judged on, per class."""

    histogram: Histogram
    values: Int64  # distinct values; with persons, as many as can be assigned to distinct persons
    heads: Int64  # persons, or rows


@dataclass(frozen=True, eq=False)
class Classes:
    """Sizes and histograms of all equivalence classes.

    Persons are counted in views (`view_of`): a person with two spellings of a value has one of the folded values. A view that
    is absent equals that of the attribute itself. The key of a histogram is one sensitive attribute, or several
    (`("disease", "salary")`) if a guarantee covers their combinations.

    Args:
        sizes: rows per class.
        persons: persons per class; rows if there is no person column.
        histograms: per sensitive attribute.
        by_person: as `histograms`, each value once per person.
        matched: per view, the number of values that can be assigned to distinct persons.
        heads: per view, persons with a value, if that is not everyone.

    >>> from closeknit.core.kinds import flat
    >>> domain, codes = flat().bind(np.array(["flu", "SARS", "ulcer"], dtype=object))
    >>> classes = Classes.of(np.array([0, 0, 1], dtype=np.int32), 2, {"disease": (codes, domain)})
    >>> classes.sizes.tolist(), classes.histograms["disease"].values.tolist()
    ([2, 1], [0, 1, 2])
    """

    sizes: Int64
    persons: Int64
    histograms: Mapping[Secret, Histogram]
    by_person: Mapping[Secret, Histogram] = field(default_factory=dict)
    matched: Mapping[Secret, Int64] = field(default_factory=dict)
    heads: Mapping[Secret, Int64] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.sizes)

    @classmethod
    def of(
        cls,
        class_of: NDArray[np.int32],
        count: int,
        secrets: Mapping[Secret, CodedSecret],
        persons: NDArray[np.int64] | None = None,
        references: Mapping[Secret, Int64] | None = None,
        weights: Int64 | None = None,
    ) -> Classes:
        """Count rows.

        Args:
            class_of: class of each row, -1 for none.
            count: number of classes.
            secrets: codes and domain of each sensitive attribute.
            persons: person of each row; each row is one person if left out.
            references: per attribute, rows of every leaf to compare with; the counted rows if left out.
            weights: number of equal rows (of one person) that each row represents, 1 if left out.
        """
        classed = class_of >= 0
        sizes = (
            count_codes(class_of, count)
            if weights is None
            else np.bincount(class_of[classed], weights[classed], minlength=count).astype(np.int64)
        )
        given = references or {}
        histograms = {
            name: Histogram.of(class_of, count, codes, domain, given.get(name), weights)
            for name, (codes, domain) in secrets.items()
        }
        if persons is None:
            return cls(sizes, sizes, histograms)
        once = _first_of_each(class_of, persons)
        heads = np.bincount(class_of[once], minlength=count)
        by_person: dict[Secret, Histogram] = {}
        matched: dict[Secret, Int64] = {}
        with_value: dict[Secret, Int64] = {}
        for name in (name for name in secrets if isinstance(name, str)):  # combinations are judged by rows only
            histogram = histograms[name]
            for view, codes, known in _views(name, secrets[name][0], histogram):
                pairs = _first_of_each(class_of, persons, codes)
                by_person[view] = Histogram.of(class_of[pairs], count, codes[pairs], histogram.domain, histogram.reference)
                matched[view] = _matching(class_of[pairs], persons[pairs], codes[pairs], count)
                if known:
                    once = pairs[_first_of_each(class_of[pairs], persons[pairs])]
                    with_value[view] = np.bincount(class_of[once], minlength=count)
        return cls(sizes, heads, histograms, by_person, matched, with_value)

    def diversity(self, column: str) -> Histogram:
        """All values of each class, including the missing one: by persons if there are any, else by rows."""
        return self.by_person.get(column, self.histograms[column])

    def spread(self, column: str, missing: bool) -> Spread:
        """What diversity is judged on; `missing`: whether a missing value counts as a value."""
        if column not in self.by_person:
            histogram = self.histograms[column] if missing else self.histograms[column].drop_missing()
            return Spread(histogram, np.diff(histogram.starts), histogram.totals)
        view = view_of(column, folded=False, known=not missing)
        view = view if view in self.by_person else column
        histogram = self.by_person[view]
        return Spread(histogram, self.matched[view], np.minimum(histogram.totals, self.heads.get(view, self.persons)))

    def fold_values(self, column: str) -> Classes | None:
        """The classes with look-alike values of an attribute counted as one; None if none look alike."""
        histogram = self.histograms[column].fold_values()
        if histogram is None:
            return None
        views = {view_of(column, False, known): view_of(column, True, known) for known in (False, True)}

        def rename_views(counted: Mapping[Secret, Any]) -> dict[Secret, Any]:
            return {**counted, **{written: counted[view] for written, view in views.items() if view in counted}}

        return replace(
            self,
            histograms={**self.histograms, column: histogram},
            by_person=rename_views(self.by_person),
            matched=rename_views(self.matched),
            heads=rename_views(self.heads),
        )

    def views(self, secret: Secret | None) -> list[Classes]:
        """What a guarantee about this attribute is judged on: the values as written and, if some look alike, folded ones."""
        folded = self.fold_values(secret) if isinstance(secret, str) else None
        return [self] if folded is None else [self, folded]

    def pairs(self, one: Int64, other: Int64) -> Classes:
        """The result of merging class `one[i]` with class `other[i]`, for every i (persons as in `merge`)."""
        return Classes(
            self.sizes[one] + self.sizes[other],
            self.persons[one] + self.persons[other],
            {name: h.pairs(one, other) for name, h in self.histograms.items()},
            {name: h.pairs(one, other) for name, h in self.by_person.items()},
            {name: np.maximum(m[one], m[other]) for name, m in self.matched.items()},
            {name: heads[one] + heads[other] for name, heads in self.heads.items()},
        )

    def merge(self, into: NDArray[np.integer]) -> Classes:
        """Merge class `c` into class `into[c]` (persons are added: exact if no person is in two classes)."""
        count, order = int(into.max()) + 1 if len(into) else 0, np.argsort(into, kind="stable")
        starts = np.searchsorted(into[order], np.arange(count))

        def add_up(numbers: Int64) -> Int64:
            return np.bincount(into, weights=numbers, minlength=count).astype(np.int64)

        return Classes(
            add_up(self.sizes),
            add_up(self.persons),
            {name: h.merge(into, count) for name, h in self.histograms.items()},
            {name: h.merge(into, count) for name, h in self.by_person.items()},
            # of two matchings the larger is a lower bound
            {name: np.maximum.reduceat(m[order], starts) for name, m in self.matched.items()},
            {name: add_up(heads) for name, heads in self.heads.items()},
        )


def _views(name: str, codes: NDArray[np.int32], histogram: Histogram) -> Iterator[tuple[Secret, NDArray[np.int32], bool]]:
    """The codes of an attribute as written and folded, with and without missing values, where these differ."""
    folding = histogram.domain.folding(histogram.reference)
    folds = [codes] if folding is None else [codes, np.where(codes < 0, codes, folding[codes])]
    for folded, seen in enumerate(folds):
        yield view_of(name, bool(folded), known=False), seen, False
        if (missing := seen == histogram.domain.size).any():
            yield view_of(name, bool(folded), known=True), np.where(missing, np.int32(-1), seen), True


def _first_of_each(*columns: NDArray[np.integer]) -> Int64:
    """One row per combination that occurs; rows with a code of -1 are left out."""
    kept = np.flatnonzero(np.logical_and.reduce([column >= 0 for column in columns]))
    if len(kept) == 0:
        return kept
    order = np.lexsort([column[kept] for column in columns])
    new = np.zeros(len(kept), dtype=bool)
    new[0] = True
    for column in columns:
        ranked = column[kept][order]
        new[1:] |= ranked[1:] != ranked[:-1]
    return kept[order][new]


def _matching(class_of: NDArray[np.int32], persons: Int64, codes: NDArray[np.int32], count: int) -> Int64:
    """Per class: the most values that can be assigned to distinct persons who have them."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    if len(class_of) == 0:
        return np.zeros(count, dtype=np.int64)
    _, left = np.unique(np.stack([class_of, persons]), axis=1, return_inverse=True)
    right_keys, right = np.unique(np.stack([class_of, codes]), axis=1, return_inverse=True)
    graph = csr_array((np.ones(len(left), dtype=np.int8), (left, right)), shape=(left.max() + 1, right.max() + 1))
    partner = maximum_bipartite_matching(graph, perm_type="row")  # the person of each value, -1 if none is left
    return np.bincount(right_keys[0][partner >= 0], minlength=count)
