"""Several sensitive attributes as one: every combination of values that occurs is a leaf of a flat domain.

Guarantees about each attribute alone allow one to disclose another: if every class has both diseases and both salaries in the
right shares, each disease may still occur with one salary only. A guarantee about the combinations closes this gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from closeknit.core.domain import Domain
from closeknit.core.errors import BadInput
from closeknit.core.row_sorting import groups
from closeknit.kernels.arrays import Int32

Secret = str | tuple[str, ...]  # a sensitive column, or several as one
CodedSecret = tuple[NDArray[np.int32], Domain]


def secret_of(column: object) -> Secret:
    """What a guarantee may be about: the name of a column, or several distinct names (a recipe writes them as a list).

    >>> secret_of("disease"), secret_of(["disease", "salary"])
    ('disease', ('disease', 'salary'))
    """
    if isinstance(column, str):
        return column
    names = tuple(column) if isinstance(column, list | tuple) else ()
    if len(names) < 2 or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        right = "give the name of a sensitive column, or a list of at least two different ones"
        raise BadInput(f"column={column!r} names no sensitive attribute", right=right)
    return names


def parts(secret: Secret | None) -> tuple[str, ...]:
    """The columns behind a key.

    >>> parts("disease"), parts(("disease", "salary")), parts(None)
    (('disease',), ('disease', 'salary'), ())
    """
    if secret is None:
        return ()
    return (secret,) if isinstance(secret, str) else secret


def render_secret(secret: Secret) -> str:
    """One or several sensitive attributes in a sentence.

    >>> render_secret("disease"), render_secret(("disease", "salary", "religion"))
    ('disease', 'disease, salary and religion together')
    """
    *most, last = parts(secret)
    return f"{', '.join(most)} and {last} together" if most else last


def join_secrets(columns: Sequence[CodedSecret]) -> CodedSecret:
    """Codes of the combinations that occur, in the order of their parts' codes; suppressed (-1) where one part is.

    A missing part is a value like any other, so no combination is missing as a whole.

    >>> disease = np.array([0, 0, 1, -1], dtype=np.int32), Domain(("flu", "gout"))
    >>> salary = np.array([1, 0, 2, 0], dtype=np.int32), Domain(("low", "high"))
    >>> codes, domain = join_secrets([disease, salary])
    >>> codes.tolist(), domain.texts
    ([1, 0, 2, -1], ('flu; low', 'flu; high', 'gout; '))
    """
    shown = np.flatnonzero(np.logical_and.reduce([codes >= 0 for codes, _ in columns]))
    group, count = groups([(codes[shown], domain.size + 1) for codes, domain in columns], len(shown))
    example = np.empty(count, dtype=np.int64)
    example[group] = shown
    cells = [np.array([*domain.texts, ""], dtype=object)[codes[example]].tolist() for codes, domain in columns]
    joint: Int32 = np.full(len(columns[0][0]), -1, dtype=np.int32)
    joint[shown] = group
    return joint, Domain(tuple("; ".join(row) for row in zip(*cells, strict=True)), default_distance="equal")


def least_distance(reference: NDArray[np.int64], rows: int) -> Fraction:
    """The smallest total variation from a histogram that this number of its rows can have.

    Few rows cannot have every combination. Each value takes its share rounded down, and the values with the largest remainders
    one row more.

    >>> least_distance(np.array([5, 3, 2]), 2), least_distance(np.array([5, 3, 2]), 10)
    (Fraction(1, 5), Fraction(0, 1))
    """
    n = int(reference.sum())
    if rows == 0 or n == 0:
        return Fraction(0)
    whole, rest = np.divmod(reference * rows, n)
    more = rows - int(whole.sum())
    covered = int(whole.sum()) * n + int(np.sort(rest)[len(rest) - more :].sum())
    return 1 - Fraction(covered, rows * n)
