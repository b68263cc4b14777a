"""Types of arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Reals = NDArray[np.float64]
Flags = NDArray[np.bool_]
