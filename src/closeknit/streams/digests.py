"""Sensitive values of a stream, known by their digests: as leaf codes, and with one digest for look-alike values."""

from __future__ import annotations

import numpy as np

from closeknit.core.combined_secrets import CodedSecret
from closeknit.core.domain import Domain
from closeknit.core.folding import first_alike
from closeknit.streams.arrivals import MISSING, Cells, Ints, value_text


def digest_codes(digests: Ints) -> CodedSecret:
    """Leaf codes of sensitive values that are known by their digests only; a missing one is the last leaf.

    >>> codes, domain = digest_codes(np.array([70, MISSING, 70, 12]))
    >>> codes.tolist(), domain.size
    ([1, 2, 1, 0], 2)
    """
    known = digests != MISSING
    values, codes = np.unique(digests[known], return_inverse=True)
    leaves = np.full(len(digests), len(values), dtype=np.int32)
    leaves[known] = codes
    return leaves, Domain(tuple(map(str, range(len(values)))))


def fold_digests(digests: Ints, cells: Cells) -> Ints:
    """The same digest for look-alike values; `cells` are the published ones.

    >>> fold_digests(np.array([70, 12, 70, MISSING]), np.array(["flu", "Flu", "flu", None], dtype=object)).tolist()
    [12, 12, 12, -1]
    """
    found, first, where = np.unique(digests, return_index=True, return_inverse=True)
    known = np.flatnonzero(found != MISSING)
    alike = first_alike([value_text(cell) for cell in cells[first[known]].tolist()])
    if alike is not None:
        found[known] = found[known][alike]
    return found[where]
