"""The last rows of a stream, if they do not meet the guarantees together: rows are dropped until the remaining ones do.

Each step drops the row whose removal brings the others nearest to the guarantees; among rows with the same sensitive values,
the oldest. If there are many sensitive values only those with the largest surplus are tried, and of many rows several are
dropped at once: up to `TRIED` values and `STEPS` rows this is the plain greedy choice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes, Histogram
from closeknit.core.combined_secrets import Secret
from closeknit.core.model import Model
from closeknit.core.table import Table

TRIED, STEPS = 256, 512

Ints = NDArray[np.int64]


def thin_rows(table: Table, models: Sequence[Model]) -> Ints:
    """The rows of a table that remain when they meet the guarantees as one class; none if they never do.

    Args:
        table: the rows; their numbers are positions in the stream.
        models: the guarantees.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> table = ck.Schema(sensitive={"ill": ck.flat()}).encode(Columns.of({"ill": ["flu", "flu", "flu", "gout"]}))
    >>> thin_rows(table, [ck.LDiversity("ill", 2, kind="frequency")]).tolist()
    [2, 3]
    """
    about = [model for model in models if model.column is not None]
    names = list(dict.fromkeys(model.column for model in about if model.column is not None))
    rows = np.argsort(table.rows, kind="stable")
    codes = np.stack([table.secret(name)[0] for name in names], axis=1) if names else np.zeros((len(table), 0), np.int32)
    while len(rows) and not _holds(table.take(rows), models):
        step = -(-len(rows) // STEPS)
        kinds, kind_of = np.unique(codes[rows], axis=0, return_inverse=True)
        if len(names) == 0:
            return rows[:0]  # fewer rows never help a guarantee without a sensitive attribute
        worst = _choose_removal(table, names, about, kinds, kind_of.ravel())
        rows = np.delete(rows, np.flatnonzero(kind_of.ravel() == worst)[:step])
    return np.sort(rows)


def _holds(table: Table, models: Sequence[Model]) -> bool:
    whole = table.one_class()
    return all(bool(model.holds(whole).all()) for model in models)


def _choose_removal(table: Table, names: list[Secret], models: Sequence[Model], kinds: NDArray[np.int32], kind_of: Ints) -> int:
    """The combination of sensitive values that loses a row."""
    counts = np.bincount(kind_of, minlength=len(kinds))
    surplus = np.zeros(len(kinds))
    for place, name in enumerate(names):
        domain = table.secret(name)[1]
        reference = table.references.get(name, table.count_values(name).reference)
        present = np.bincount(kinds[:, place], weights=counts, minlength=domain.size + 1)
        surplus += (present / counts.sum() - reference / max(reference.sum(), 1))[kinds[:, place]]
    tried = np.sort(np.argsort(-surplus, kind="stable")[:TRIED])
    after = counts - (np.arange(len(kinds)) == tried[:, None])  # [tried, kinds]
    sizes = after.sum(axis=1)
    classes = Classes(sizes, sizes, {name: _histogram(table, name, kinds[:, i], after) for i, name in enumerate(names)})
    broken, far = np.zeros(len(tried)), np.zeros(len(tried))
    for model in models:
        fails = ~model.holds(classes)
        broken += fails
        levels = np.nan_to_num(model.levels(classes), posinf=1e300)
        far += np.where(fails, -levels if model.higher_is_safer else levels, 0.0)
    return int(tried[np.lexsort((far, broken))[0]])


def _histogram(table: Table, name: Secret, values: NDArray[np.int32], after: Ints) -> Histogram:
    """One sensitive attribute in every class that is tried."""
    domain = table.secret(name)[1]
    codes, place = np.unique(values, return_inverse=True)
    dense = np.zeros((len(after), len(codes)), dtype=np.int64)
    for i, at in enumerate(place.ravel().tolist()):
        dense[:, at] += after[:, i]
    owner, found = np.nonzero(dense)
    starts = np.searchsorted(owner, np.arange(len(after) + 1))
    reference = table.references.get(name, table.count_values(name).reference)
    return Histogram(starts, codes[found].astype(np.int32), dense[owner, found], reference, domain)
