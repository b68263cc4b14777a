"""Which sensitive values a release leaves possible for a person with known quasi-identifiers.

All values in rows whose cells cover the person; where only groups of columns belong together, the values of buckets in which
every group has cells that cover the person, next to such cells of the attribute's own group. A suppressed value (`*`) may be
any value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from closeknit.attacks.beliefs import NotApplicable, refuse_unknown
from closeknit.core.columns import Columns
from closeknit.core.covering import Covering, list_known_quasi, raw_schema
from closeknit.core.reading import Reading, secret_codes, without_markers
from closeknit.core.row_sorting import groups, row_of_each
from closeknit.core.schema import Schema
from closeknit.io.canonical import cell_texts
from closeknit.kernels.arrays import Int32, Int64

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BLOCK = 4096  # people whose candidates are listed at a time
MISSING = ""


@dataclass(frozen=True, eq=False)
class Values:
    """The values of a sensitive attribute, by their texts, in all releases that are compared.

    >>> values = Values(("flu", "gout"))
    >>> values.codes(["gout", "SARS", "flu"]).tolist()
    [1, -1, 0]
    """

    texts: tuple[str, ...]

    @classmethod
    def of(cls, readings: Sequence[Reading], secret: str) -> Values:
        """Collect all values that the releases write."""
        found = set[str]()
        for reading in readings:
            codes, texts = read_secret(reading, secret)
            found |= {texts[code] for code in np.unique(codes[codes >= 0]).tolist()}
        return cls(tuple(sorted(found)))

    def codes(self, texts: Sequence[str]) -> Int64:
        """Return the place of each text; -1 where it is not written."""
        place = {text: i for i, text in enumerate(self.texts)}
        return np.array([place.get(text, -1) for text in texts], dtype=np.int64)


def read_secret(reading: Reading, secret: str) -> tuple[Int32, list[str]]:
    """Return the leaf codes of a written attribute (-1: suppressed), and the text of each leaf, the missing one last."""
    refuse_unknown(reading, secret)
    if secret in reading.retained:
        raise NotApplicable("is perturbed: every person may have every value", column=secret, right="attack another column")
    codes, domain = secret_codes(reading.columns[secret], secret, reading.schema)
    return codes, [*domain.texts, MISSING]


def true_texts(people: Columns, schema: Schema | None, name: str) -> list[str]:
    """Return what a release would write for each person in a sensitive or plain column.

    >>> import closeknit as ck
    >>> schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"pay": ck.numeric()}, missing=("?",))
    >>> true_texts(Columns.of({"pay": ["3.0", "?"]}), schema, "pay")
    ['3', '']
    """
    column = people[name]
    if schema is not None and name in schema.sensitive:
        codes, domain, _ = schema.encode_column(column, name, schema.sensitive[name])
        texts = [*domain.texts, MISSING]
    else:
        column = without_markers(column, () if schema is None else schema.missing)
        codes, texts = column.codes, [*cell_texts(column), MISSING]
    return [texts[code] for code in codes.tolist()]


def value_sets(reading: Reading, people: Columns, schema: Schema | None, secret: str, values: Values) -> csr_array:
    """Return the values that are possible for each person as a 0/1 matrix, [people, values]; all 0 where no row matches.

    >>> import closeknit as ck
    >>> from closeknit.forms.release_reading import reading_of
    >>> schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})
    >>> table = Columns.of({"age": [30, 40, 50, 60], "ill": ["flu", "gout", "flu", "flu"]})
    >>> reading = reading_of(ck.anonymize(table, schema, [ck.KAnonymity(2)], ck.Mondrian()))
    >>> value_sets(reading, table, schema, "ill", Values.of([reading], "ill")).toarray().tolist()
    [[1, 1], [1, 1], [1, 0], [1, 0]]
    """
    from scipy.sparse import vstack

    raw = raw_schema(reading, schema)
    known = list_known_quasi(raw, reading.columns, people, attacked=secret)
    together = reading.column_groups or (tuple(dict.fromkeys([*known, secret])),)
    bucket_of = reading.class_of if reading.column_groups else np.zeros(reading.columns.rows, dtype=np.int32)
    view = _View(reading, secret, bucket_of, values)
    coverings = [
        (secret in group, Covering.of(reading.columns, people, raw, names))
        for group in together
        if (names := [name for name in group if name in known])
    ]
    blocks = [np.arange(first, min(first + BLOCK, people.rows)) for first in range(0, people.rows, BLOCK)]
    return vstack([view.possible(coverings, block) for block in blocks], format="csr")


class _View:
    """A release as an adversary reads it who attacks one attribute."""

    def __init__(self, reading: Reading, secret: str, bucket_of: Int32, values: Values) -> None:
        codes, texts = read_secret(reading, secret)
        self.bucket_of, self.buckets = bucket_of, int(bucket_of.max(initial=-1)) + 1
        self.value = np.append(values.codes(texts), -1)[codes]  # the last entry serves a suppressed value
        self.hidden = codes < 0
        self.width = len(values.texts)

    def possible(self, coverings: list[tuple[bool, Covering]], block: Int64) -> csr_array:
        from scipy.sparse import csr_array

        fits = [(holds, covering, covering.boxes_over(covering.point_of[block])) for holds, covering in coverings]
        candidates = None  # buckets, where there are several
        if self.buckets > 1:
            for _, covering, over in fits:
                inside = _ones(over @ _incidence(covering.box_of, self.bucket_of, (len(covering.lo), self.buckets)))
                candidates = inside if candidates is None else candidates.multiply(inside).tocsr()
        own = next(((covering, over) for holds, covering, over in fits if holds), None)
        if own is None:  # the attribute is alone in its group
            places = np.zeros(len(self.bucket_of), dtype=np.int32)
            over = csr_array(np.ones((len(block), 1), dtype=np.int32))
        else:
            places, over = own[0].box_of, own[1]
        return self._find_values(places, over, candidates)

    def _find_values(self, places: Int32, over: csr_array, candidates: csr_array | None) -> csr_array:
        """Return the values of rows in covering places and candidate buckets."""
        from scipy.sparse import csr_array

        unit_of, units = groups([(places, over.shape[1]), (self.bucket_of, self.buckets)], len(places))
        row = row_of_each(unit_of, units)
        here = over[:, places[row]]
        if candidates is not None:
            here = here.multiply(candidates[:, self.bucket_of[row]])
        shown = self.value >= 0
        values = _incidence(unit_of[shown], self.value[shown], (units, self.width))
        if self.hidden.any():
            any_value = np.zeros((units, 1), dtype=np.int32)
            any_value[unit_of[self.hidden]] = 1
            values = _ones(values + csr_array(any_value) @ csr_array(np.ones((1, self.width), dtype=np.int32)))
        return _ones(here.tocsr() @ values)


def _incidence(rows: NDArray[np.integer], columns: NDArray[np.integer], shape: tuple[int, int]) -> csr_array:
    """Return a matrix with 1 where a pair occurs."""
    from scipy.sparse import csr_array

    return _ones(csr_array((np.ones(len(rows), dtype=np.int32), (rows, columns)), shape=shape))


def _ones(matrix: csr_array) -> csr_array:
    """Return counts as 0 or 1."""
    from scipy.sparse import csr_array

    matrix = csr_array(matrix)
    matrix.sum_duplicates()
    matrix.data = (matrix.data > 0).astype(np.int32)
    matrix.eliminate_zeros()
    return matrix
