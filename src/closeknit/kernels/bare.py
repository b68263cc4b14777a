"""How the smallest steps of hot loops are compiled: without counting who uses an array.

Numba counts references to each array of a tuple whenever a function takes it, with atomic instructions; where a step takes 20
nanoseconds that is most of its time, and threads that share arrays wait for one another. A bare function may read and write
arrays and call other bare ones; it must not make, keep or return any.

Numbers are handed to one as `whole`, truths as `truth`: numba compiles a function anew for every literal, such as 0 or False,
and for every width of a number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import njit

UNCOUNTED: Any = {"_nrt": False}  # an option of numba that its types do not tell of

whole: Callable[[int], int] = cast(Any, np.int64)
truth: Callable[[bool], bool] = cast(Any, np.bool_)

bare: Any = njit(cache=True, nogil=True, **UNCOUNTED)
