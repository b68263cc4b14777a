"""From a number per histogram entry to one per class, where a class may have no entry at all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Histogram


def largest(histogram: Histogram, entries: NDArray[np.float64], empty: float) -> NDArray[np.float64]:
    """The largest number of each class; `empty` for a class without entries.

    >>> from closeknit.core.kinds import flat
    >>> domain, codes = flat().bind(np.array(["flu", "SARS"], dtype=object))
    >>> two = Histogram.of(np.array([0, 0], dtype=np.int32), 2, codes, domain)
    >>> largest(two, np.array([3.0, 5.0]), empty=0.0).tolist()
    [5.0, 0.0]
    """
    result = np.full(len(histogram.starts) - 1, empty)
    filled = np.diff(histogram.starts) > 0
    if filled.any():
        result[filled] = np.maximum.reduceat(entries, histogram.starts[:-1][filled])
    return result


def every(histogram: Histogram, entries: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether all entries of a class are true; a class without entries is.

    >>> from closeknit.core.kinds import flat
    >>> domain, codes = flat().bind(np.array(["flu", "SARS"], dtype=object))
    >>> two = Histogram.of(np.array([0, 0], dtype=np.int32), 2, codes, domain)
    >>> every(two, np.array([True, False])).tolist()
    [False, True]
    """
    result = np.ones(len(histogram.starts) - 1, dtype=bool)
    result[histogram.owner[~entries]] = False
    return result
