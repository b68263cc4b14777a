"""How the smallest steps of hot loops are compiled: without counting who uses an array.

Numba counts references to each array of a tuple whenever a function takes it, with atomic instructions; where a step takes 20
nanoseconds that is most of its time, and threads that share arrays wait for one another. A bare function may read and write
arrays and call other bare ones; it must not make, keep or return any.

Whole numbers are handed to one as `np.int64`: numba compiles it anew for every literal, such as 0 or -1, and for every width.
"""

from __future__ import annotations

from typing import Any

from numba import njit

UNCOUNTED: Any = {"_nrt": False}  # an option of numba that its types do not tell of

bare: Any = njit(cache=True, nogil=True, **UNCOUNTED)
