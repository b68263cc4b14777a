"""`DeclaredGuard`: judges many classes at once against a declared reference, in whole numbers built from the model's `limits`.

Where the guard does not decide (a share within 1e-8 of a limit that is no rational, a class of very many rows, a value that
the reference does not have) the model does. Declared values never look alike, so what holds of the values as written holds of
the folded ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np

from closeknit.core.classes import Classes
from closeknit.core.columns import array_cells
from closeknit.core.model import Model
from closeknit.core.schema import Schema
from closeknit.kernels.exchange.knit_guard import Guard
from closeknit.kernels.streaming.class_verdicts import OPEN, judge_classes
from closeknit.models.declared_reference import compare_declared
from closeknit.search.guards import guard_values
from closeknit.streams.arrivals import Ints
from closeknit.streams.window_tables import secret_codes

LARGEST = 1 << 16  # rows of a class that a guard judges


class DeclaredGuard:
    """The guard of one guarantee with a declared reference.

    Args:
        model: the guarantee.
        schema: roles and kinds of the columns.

    >>> import closeknit as ck
    >>> schema = ck.Schema(sensitive={"ill": ck.flat()})
    >>> guard = DeclaredGuard(ck.TCloseness("ill", 0.2, reference={"flu": 0.6, "gout": 0.4}), schema)
    >>> guard.learn({70: "flu", 12: "gout"})
    >>> guard.judge(np.array([70, 12, 70, 70, 99]), np.array([0, 0, 1, 1, 2]), 3).tolist()
    [1, -1, 0]
    """

    def __init__(self, model: Model, schema: Schema) -> None:
        self.model, self._kind = model, schema.sensitive[str(model.column)]
        self.place = list(schema.sensitive).index(str(model.column))  # of the attribute
        self._code_of: dict[int, int] = {}  # by digest, of declared values only
        self._guards: tuple[Guard, Guard] | None = None
        self._known = self._codes = np.empty(0, np.int64)

    def learn(self, shown: Mapping[int, Any]) -> None:
        """Find the codes of new values as the model does; `shown` are published values by their digests."""
        fresh = [digest for digest in shown if digest not in self._code_of]
        for digest in fresh:
            self._learn_value(digest, shown[digest])
        if fresh:
            self._known = np.array(sorted(self._code_of), dtype=np.int64)
            self._codes = np.array([self._code_of[digest] for digest in self._known.tolist()], dtype=np.int64)

    def _learn_value(self, digest: int, cell: Any) -> None:
        column = str(self.model.column)
        coded = secret_codes(self._kind, np.array([digest]), array_cells([cell]))
        one = Classes.of(np.zeros(1, dtype=np.int32), 1, {column: coded})
        declared, strange = compare_declared(one, column, self.model.reference)
        if not strange[0]:
            self._code_of[digest] = int(declared.values[0])
        if self._guards is None:
            comparing = replace(cast(Any, self.model), reference=None)
            self._guards = guard_values(comparing, declared, LARGEST)

    def judge(self, digests: Ints, class_of: Ints, count: int) -> Ints:
        """For each class ALLOWED, REFUSED or OPEN.

        Args:
            digests: the digest of each row's value.
            class_of: the class of each row.
            count: the number of classes.
        """
        if self._guards is None:
            return np.full(count, OPEN)
        verdicts: Ints = judge_classes(*self._guards, self._known, self._codes, digests, class_of, count)
        return verdicts
