"""Class members: each class has slots for rows, and slots of one kind may exchange their rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from closeknit.kernels.compiling import kernel
from closeknit.kernels.counting.sorting import ascend
from closeknit.kernels.geometry.boxes import Codes, Ints


class ClassMembers(NamedTuple):
    """Class c has the slots start[c] .. start[c + 1]; only `member` changes, in place."""

    member: Codes  # [slots] the row there; -1: none, in the last slot of a class only
    start: Ints  # [classes + 1]
    kind: Codes  # [slots] ascending within a class
    quasi: Codes  # [rows, columns]
    value: Codes  # [rows] rows of one value and class are interchangeable, and neighbours


def class_of(held: ClassMembers) -> Codes:
    """Class of each row.

    >>> quasi, value = np.zeros((3, 1), np.int32), np.zeros(3, np.int32)
    >>> class_of(ClassMembers(np.array([2, 0, 1, -1], np.int32), np.array([0, 2, 4]), value, quasi, value)).tolist()
    [0, 1, 0]
    """
    classes = np.repeat(np.arange(len(held.start) - 1, dtype=np.int32), np.diff(held.start))
    found = np.empty(len(held.quasi), np.int32)
    found[held.member[held.member >= 0]] = classes[held.member >= 0]
    return found


@kernel
def corners(held: ClassMembers, classes: Ints, which: Ints) -> Codes:
    """Per class and column j its lowest (which[j] = 0), highest (1) or (lower) median code (2); zeros if it has no rows.

    The median locates a class, because one outlier does not move it; the ends locate its outliers.

    >>> quasi, value = np.array([[4, 4], [0, 0], [5, 5]], np.int32), np.zeros(3, np.int32)
    >>> held = ClassMembers(np.arange(3, dtype=np.int32), np.array([0, 3]), value, quasi, value)
    >>> corners(held, np.array([0]), np.array([0, 2])).tolist()
    [[0, 4]]
    """
    d, most = held.quasi.shape[1], 0
    for c in classes:
        most = max(most, held.start[c + 1] - held.start[c])
    corner, codes = np.zeros((len(classes), d), np.int32), np.empty(most, np.int32)
    for i in range(len(classes)):
        rows = held.member[held.start[classes[i]] : held.start[classes[i] + 1]]
        size = len(rows)
        if size > 0 and rows[size - 1] < 0:
            size -= 1
        if size == 0:
            continue
        for j in range(d):
            end = held.quasi[rows[0], j]
            for x in range(size):
                codes[x] = held.quasi[rows[x], j]
                end = min(end, codes[x]) if which[j] == 0 else max(end, codes[x])
            if which[j] == 2:
                ascend(codes[:size])
                end = codes[(size - 1) // 2]
            corner[i, j] = end
    return corner


@kernel
def rotate(held: ClassMembers) -> None:
    """Rotate rows of one value in one class by one slot, so that they meet other rows in the next sweep."""
    member, value = held.member, held.value
    for c in range(len(held.start) - 1):
        a, end = held.start[c], held.start[c + 1]
        while a < end and member[a] >= 0:
            b = a
            while b + 1 < end and member[b + 1] >= 0 and value[member[b + 1]] == value[member[a]]:
                b += 1
            last = member[b]
            for x in range(b, a, -1):
                member[x] = member[x - 1]
            member[a] = last
            a = b + 1
