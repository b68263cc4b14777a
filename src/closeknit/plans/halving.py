"""The tree of sizes of SABRE (`dichotomize`) and BUREL (`biSplit`): allotments are halved while both halves are allowed.

Source: the thesis on SABRE and BUREL, sec. 3.4.2 and 4.3.2.

Different from the source:
- a split needs `k` rows in both halves: the source claims k-anonymity but shows no step for it;
- odd counts are rounded up in the one half and down in the other, and `first` says which half comes first (the examples print
  "ceil" for SABRE, "floor" for BUREL; a language's own rounding would mix them);
- `balanced=True`: where that is refused, odd buckets take turns in rounding up, and this split is taken if it is allowed.

At every depth the counts of a bucket differ by one at most and all switch in one order, so there are at most as many different
allotments as buckets, plus one: each is judged once, however many rows there are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from closeknit.core.params import choice
from closeknit.kernels.arrays import Int64


def halve(sizes: Int64, k: int, allows: Callable[[Int64], bool], first: str = "ceil", balanced: bool = False) -> Int64:
    """Allotments, one line per class, in tree order: siblings are side by side. `sizes` itself is taken as allowed.

    >>> halve(np.array([5, 4]), 2, lambda a: True).tolist()
    [[2, 1], [1, 1], [1, 1], [1, 1]]
    """
    choice("first", first, ("ceil", "floor"))
    sizes = np.ascontiguousarray(sizes, dtype=np.int64)
    if sizes.sum() == 0:
        return np.zeros((0, len(sizes)), dtype=np.int64)
    tree = _SizeTree(k, allows, first == "ceil", balanced)
    order = tree.leaves_under(sizes.tobytes())
    leaves = np.frombuffer(b"".join(tree.leaves), dtype=np.int64).reshape(-1, len(sizes))
    return leaves[order]


class _SizeTree:
    """Grows the tree once for each different allotment; its bytes are the key, kept once however often it is met."""

    def __init__(self, k: int, allows: Callable[[Int64], bool], larger_first: bool, balanced: bool) -> None:
        self.k, self.allows, self.larger_first, self.balanced = max(k, 1), allows, larger_first, balanced
        self.leaves: list[bytes] = []
        self.leaves_of: dict[bytes, NDArray[np.int32]] = {}
        self.allowed: dict[bytes, bool] = {}

    def leaves_under(self, a: bytes) -> NDArray[np.int32]:
        """Numbers of the leaves below an allotment, from left to right."""
        if a not in self.leaves_of:
            halves = self._halves(np.frombuffer(a, dtype=np.int64))
            if halves is None:
                self.leaves_of[a] = np.array([len(self.leaves)], dtype=np.int32)
                self.leaves.append(a)
            else:
                self.leaves_of[a] = np.concatenate([self.leaves_under(half) for half in halves])
        return self.leaves_of[a]

    def _halves(self, a: Int64) -> tuple[bytes, bytes] | None:
        if a.sum() < 2 * self.k or (a < 2).all():
            return None
        odd = np.flatnonzero(a & 1)
        for up in [odd, odd[::2]] if self.balanced else [odd]:
            larger = a // 2
            larger[up] += 1
            pair = (larger, a - larger) if self.larger_first else (a - larger, larger)
            if min(half.sum() for half in pair) >= self.k:
                keys = pair[0].tobytes(), pair[1].tobytes()
                if all(self._is_allowed(key) for key in keys):
                    return keys
        return None

    def _is_allowed(self, a: bytes) -> bool:
        if a not in self.allowed:
            self.allowed[a] = self.allows(np.frombuffer(a, dtype=np.int64))
        return self.allowed[a]
