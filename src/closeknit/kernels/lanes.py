"""Boxes of many columns at once: eight codes are compared in one instruction, which a compiled loop over them does not find.

Rows and boxes stand in lanes: as many columns as there are, filled up to a multiple of eight. A box is a line of lows, then of
highs.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from closeknit.kernels.bare import bare
from closeknit.kernels.boxes import Codes

LANES = 8


def _eight(typing: Any, boxes: Any, at: Any, over: Any, rows: Any, x: Any) -> Any:
    """Eight lows at place `at` of the flat boxes, and eight highs `over` places behind, with the eight codes at place `x`."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        eight = ir.VectorType(ir.IntType(32), LANES)

        def at_place(array: int, place: Any) -> Any:
            data = context.make_array(signature.args[array])(context, builder, args[array]).data
            return builder.bitcast(builder.gep(data, [place]), eight.as_pointer())

        codes = builder.load(at_place(3, args[4]), align=4)
        for place, sign in ((args[1], "<"), (builder.add(args[1], args[2]), ">")):
            there = at_place(0, place)
            old = builder.load(there, align=4)
            builder.store(builder.select(builder.icmp_signed(sign, codes, old), codes, old), there, align=4)
        return context.get_dummy_value()

    return types.void(boxes, types.int64, types.int64, rows, types.int64), build


_widen_eight: Any = intrinsic(_eight)


@bare
def width_of(columns: int) -> int:
    """Lanes for as many columns.

    >>> width_of(3), width_of(9)
    (8, 16)
    """
    return -(-columns // LANES) * LANES


@bare
def widen(boxes: Codes, box: int, rows: Codes, x: int, width: int) -> None:
    """Box `box` covers row x, too; both arrays are flat.

    >>> import numpy as np
    >>> boxes = np.array([5] * 8 + [6] * 8, np.int32)
    >>> widen(boxes, 0, np.arange(8, dtype=np.int32), 0, 8)
    >>> boxes.tolist()
    [0, 1, 2, 3, 4, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7]
    """
    for lane in range(0, width, LANES):
        _widen_eight(boxes, 2 * box * width + lane, width, rows, x * width + lane)
