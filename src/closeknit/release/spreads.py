"""The distribution of sensitive values over all rows and in the worst classes, binned for a page."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from closeknit.core.certificate import Certificate
from closeknit.core.classes import Histogram
from closeknit.core.combined_secrets import parts
from closeknit.core.domain import Domain
from closeknit.core.reading import Reading
from closeknit.kernels.arrays import Int64
from closeknit.report.report_records import ClassSpread, SecretSpread

MOST_VALUES = 15
RANGES = 10
MOST_CLASSES = 3


def secret_spreads(reading: Reading, certificate: Certificate, word: str) -> tuple[SecretSpread, ...]:
    """Each sensitive attribute over all rows, in the worst classes of its guarantees and in those that differ most.

    Args:
        reading: the written cells and their classes.
        certificate: which names the worst classes.
        word: "class" or "bucket".
    """
    return tuple(_spread(reading.of(name), name, certificate, word) for name in reading.schema.sensitive)


def _spread(seen: Reading, name: str, certificate: Certificate, word: str) -> SecretSpread:
    histogram = seen.classes.histograms[name]
    group_of, values, gathered = _group_values(histogram)
    overall = _counts(group_of, np.arange(len(histogram.reference)), histogram.reference, len(values))
    worst = []
    for index, why in _worst(seen, name, histogram, certificate, word):
        part = histogram.entries(index)
        counts = _counts(group_of, histogram.values[part], histogram.counts[part], len(values))
        rows = int(seen.classes.sizes[index])
        worst.append(ClassSpread(cells=seen.cells_of(index), rows=rows, why=why, counts=counts))
    return SecretSpread(column=name, values=values, overall=overall, worst=tuple(worst), gathered=gathered)


def _counts(group_of: Int64, values: NDArray[np.integer], counts: Int64, width: int) -> tuple[int, ...]:
    return tuple(np.bincount(group_of[values], weights=counts, minlength=width).astype(int).tolist())


def _group_values(histogram: Histogram) -> tuple[Int64, tuple[str, ...], str | None]:
    """The bar of each leaf, the names of the bars, and how values were binned."""
    domain, reference = histogram.domain, histogram.reference
    used = np.flatnonzero(reference > 0)
    texts = [*domain.texts, "missing"]
    if domain.ordered and np.count_nonzero(used < domain.size) > MOST_VALUES:
        return _ranges(domain, used)
    if len(used) <= MOST_VALUES:
        chosen = used if domain.ordered else used[np.argsort(-reference[used], kind="stable")]
        group_of = np.zeros(len(reference), dtype=np.int64)
        group_of[chosen] = np.arange(len(chosen))
        return group_of, tuple(texts[leaf] for leaf in chosen.tolist()), None
    chosen = used[np.argsort(-reference[used], kind="stable")][: MOST_VALUES - 1]
    group_of = np.full(len(reference), len(chosen), dtype=np.int64)
    group_of[chosen] = np.arange(len(chosen))
    others = f"{len(used) - len(chosen):,} other values"
    binned = f"The {len(chosen)} most frequent values are shown by themselves, all others as one."
    return group_of, (*(texts[leaf] for leaf in chosen.tolist()), others), binned


def _ranges(domain: Domain, used: Int64) -> tuple[Int64, tuple[str, ...], str]:
    """Numbers in ranges of equal width; missing ones apart."""
    assert domain.numbers is not None
    present = used[used < domain.size]
    low, high = float(domain.numbers[present[0]]), float(domain.numbers[present[-1]])
    width = (high - low) / RANGES
    place = np.clip(np.floor((domain.numbers - low) / width), 0, RANGES - 1).astype(np.int64)
    kept = np.unique(place[present])
    group_of = np.append(np.clip(np.searchsorted(kept, place), 0, len(kept) - 1), len(kept))
    names = []
    for bar in kept.tolist():
        inside = present[place[present] == bar]
        first, last = domain.texts[inside[0]], domain.texts[inside[-1]]
        names.append(first if first == last else f"{first} to {last}")
    missing = ("missing",) if len(used) > len(present) else ()
    return group_of, (*names, *missing), "Numbers are binned into ranges of equal width, named by the values that occur."


def _worst(seen: Reading, name: str, histogram: Histogram, certificate: Certificate, word: str) -> list[tuple[int, str]]:
    """Classes to show, and why: those that the certificate names, then those that differ most from all rows."""
    found: dict[int, list[str]] = {}
    for guarantee in certificate.guarantees:
        if guarantee.worst is not None and name in parts(guarantee.column):
            rows = seen.find_rows(guarantee.worst.cells)
            if rows.any():
                found.setdefault(int(seen.class_of[np.argmax(rows)]), []).append(f"worst class of {guarantee.text}")
    distances = _total_variation(histogram)
    for index in np.argsort(-distances, kind="stable")[:MOST_CLASSES].tolist():
        if len(found) < MOST_CLASSES or index in found:
            found.setdefault(index, []).append(f"total variation {distances[index]:.3f} from all rows")
    return [(index, "; ".join(why)) for index, why in list(found.items())[:MOST_CLASSES]]


def _total_variation(histogram: Histogram) -> NDArray[np.float64]:
    """Half the sum of |q - p| in each class: what is above its share, as only values of the class can be."""
    totals = np.maximum(histogram.totals, 1)
    share = histogram.reference / max(int(histogram.reference.sum()), 1)
    above = np.maximum(histogram.counts / totals[histogram.owner] - share[histogram.values], 0.0)
    return np.bincount(histogram.owner, weights=above, minlength=len(totals)).astype(np.float64)
