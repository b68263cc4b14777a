"""The form `perturbed`: generalized cells, and sensitive values that are not always true.

Each value of the named columns is retained with probability `retain`, else replaced by one of all declared values of its
column, each equally likely (post-randomization). `matrix` declares a law of its own for a column: for each true value the
chance of every written one (`core.transition`). The law is published, so that a recipient can estimate the true counts;
whether the value of a single row is true cannot be determined. `models.posterior_bound` is the guarantee.

Source: the dissertation on methods to achieve t-closeness, ch. 2, as perturbation; the paper on amplification, sec. 3.
Different from the source: all values of the law are declared, including the missing one (`missing=True`), because a value that
can be drawn only if a row has it would disclose that row. Quasi-identifiers, suppressed rows and the order of rows are those of
the form `generalized`. Cost: writing generalized cells twice, and eight bytes of SHAKE-256 per value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Columns
from closeknit.core.domain import Domain
from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.exact import Number
from closeknit.core.kinds import Kind, texts_of
from closeknit.core.params import choice
from closeknit.core.perturbation import Law, retention, words_of
from closeknit.core.reading import Persons, Reading
from closeknit.core.schema import Schema
from closeknit.core.table import Form, Partition, Table, WrittenTable
from closeknit.core.transition import AnyLaw, Transition
from closeknit.forms.generalized import SUPPRESSED, Generalized


@dataclass(frozen=True)
class Perturbed(Form):
    """Writes and reads generalized cells with perturbed sensitive values.

    Args:
        retain: probability that a value is retained, for columns without a matrix.
        columns: the sensitive attributes to perturb; if None those of `matrix` without `retain`, else all.
        missing: whether a missing value is a value of the law.
        snap: whether ranges of whole numbers end at multiples of the column's step.
        suppressed: how suppressed rows are written, as in `generalized`.
        matrix: per column, for each true value the chance of every written value; "" is the missing one.
    """

    name: ClassVar[str] = "perturbed"
    retain: Number | None = None
    columns: tuple[str, ...] | None = None
    missing: bool = False
    snap: bool = False
    suppressed: str = SUPPRESSED[0]
    matrix: Mapping[str, Mapping[str, Mapping[str, Number]]] | None = None

    def __post_init__(self) -> None:
        if self.retain is not None:
            retention(self.retain)
        elif not self.matrix:
            raise BadInput("perturbed has no law", right="give retain, or a matrix")
        if self.matrix is not None and not isinstance(self.matrix, Mapping):
            right = "write it per column: matrix: {disease: {flu: {flu: 0.8, gout: 0.2}, ...}}"
            raise BadInput(f"matrix={self.matrix!r} is not a mapping", right=right)
        choice("missing", self.missing, (True, False))
        object.__setattr__(self, "columns", _names(self.columns))
        _ = self._cells

    @property
    def _cells(self) -> Generalized:
        """The form that writes and reads everything but the perturbation."""
        return Generalized(self.snap, suppressed=self.suppressed)

    @property
    def fallbacks(self) -> tuple[Perturbed, ...]:
        """The same form, with less and less disclosure of suppressed rows."""
        return tuple(replace(self, suppressed=less.suppressed) for less in self._cells.fallbacks)

    @property
    def advice(self) -> str | None:
        """A cell may be false."""
        which = "Sensitive values" + ("" if self.columns is None else f" ({', '.join(self.columns)})")
        if self.matrix:
            return (
                f"{which} are perturbed by the law that certificate.json states. A single cell proves nothing; "
                "certificate.json has estimates of the true counts.\n"
            )
        return (
            f"{which} are perturbed: each is retained with probability {self.retain}, or else replaced by any value of its "
            "column, all equally likely. A single cell proves nothing; certificate.json has estimates of the true counts.\n"
        )

    def laws(self, schema: Schema) -> dict[str, AnyLaw]:
        """The law of each column, from the declared schema alone."""
        matrix = self.matrix or {}
        names = self.columns or (tuple(matrix) if self.retain is None else tuple(schema.sensitive))
        for name in matrix:
            if name not in names:
                raise BadInput("has a matrix but is not perturbed", column=name, right="name it under columns, too")
        if not names:
            raise BadInput("there is no sensitive column to perturb", right="name one, or choose the form generalized")
        for name in names:
            if name not in schema.sensitive:
                right = suggest_name(name, schema.sensitive)
                raise BadInput("is to be perturbed but is not sensitive", column=name, right=right)
        return {name: self._law(name, schema.sensitive[name]) for name in names}

    def _law(self, name: str, kind: Kind) -> AnyLaw:
        values = [*_list_declared(name, kind), *([""] if self.missing else [])]
        if self.matrix and name in self.matrix:
            return Transition.of(self.matrix[name], values, name)
        if self.retain is None:
            raise BadInput("has no law", column=name, right="give retain, or a matrix of the column")
        return Law(retention(self.retain), len(values))

    def before(self, table: Table, seed: int) -> Table:
        """The table with perturbed sensitive values, sorted by its own cells again.

        A method that uses true values, or the order of rows that differ in nothing else, would disclose them by its classes.
        """
        return self._draw_secrets(self._cells.before(table, seed), np.arange(len(table)), seed).sort_rows()

    def write(self, table: Table, partition: Partition, seed: int = 0) -> WrittenTable:
        """Rows sorted by their written cells, as in the form `generalized`; values are perturbed now if they are not yet."""
        if not table.perturbed:
            # rows get words in their written order before perturbation: raw cells and suppressed rows do not influence them
            table = self._draw_secrets(table, self._cells.write(table, partition).rows, seed)
        return self._cells.write(table, partition)

    def _draw_secrets(self, table: Table, rows: NDArray[np.int64], seed: int) -> Table:
        """Draw the sensitive values of these rows by the law of their column."""
        sensitive, shown = table.sensitive.copy(), list(table.shown)
        for name, law in self.laws(table.schema).items():
            place = list(table.schema.sensitive).index(name)
            true = table.sensitive[rows, place]
            self._refuse_missing(name, true, table.sensitive_domains[place])
            sensitive[rows, place] = law.draw_codes(true, words_of(name, law, seed, true))
            shown[place] = _publish_leaves(table.sensitive_domains[place], table.shown[place])
        return replace(table, sensitive=sensitive, shown=tuple(shown), joints={}, perturbed=True)

    def read(
        self, columns: Columns, schema: Schema, persons: Persons | None = None, joints: Sequence[tuple[str, ...]] = ()
    ) -> Reading:
        """As generalized cells, with the law of each column."""
        laws = self.laws(schema)
        reading = self._cells.read(columns, schema, persons, joints)
        for name in laws:
            histogram = reading.classes.histograms[name]
            self._refuse_missing(name, histogram.values, histogram.domain)
        return replace(reading, retained=laws)

    def notes(self, schema: Schema) -> list[str]:
        """The law of each column, and notes on ranges."""
        laws = [
            f"column '{name}' is perturbed: {self._describe(law)}, so odds change at most by the factor {float(law.gamma):.6g}"
            for name, law in self.laws(schema).items()
        ]
        return self._cells.notes(schema) + laws

    def _describe(self, law: AnyLaw) -> str:
        if isinstance(law, Transition):
            return f"each value is replaced by one of {law.values:,} values, by the chances of the stated matrix"
        return (
            f"each value is retained with probability {self.retain}, or else replaced by one of {law.values:,} equally likely "
            "values"
        )

    def list_unsorted(self, columns: Columns, schema: Schema) -> list[str]:
        """The first row that is not where its written cells place it."""
        return self._cells.list_unsorted(columns, schema)

    def _refuse_missing(self, name: str, codes: NDArray[np.int32], domain: Domain) -> None:
        if not self.missing and (codes == domain.size).any():
            right = "use perturbed(missing=True), so that a missing value may also be drawn"
            raise BadInput("has missing values, which the law does not contain", column=name, right=right)


def perturbed(
    retain: Number | None = None,
    columns: Sequence[str] | None = None,
    missing: bool = False,
    snap: bool = False,
    suppressed: str = SUPPRESSED[0],
    matrix: Mapping[str, Mapping[str, Mapping[str, Number]]] | None = None,
) -> Perturbed:
    """The form in which categorical sensitive values are retained with probability `retain`, or else drawn at random.

    Args:
        retain: probability that a value is retained.
        columns: the sensitive attributes to perturb; all if left out.
        missing: whether a missing value is a value of the law.
        snap: whether ranges of whole numbers end at multiples of the column's step.
        suppressed: how suppressed rows are written, as in `generalized`.
        matrix: per column, for each true value the chance of every written value (PRAM); all chances are positive.

    >>> perturbed(0.6, ["disease"])
    Perturbed(retain=0.6, columns=('disease',), missing=False, snap=False, suppressed='removed', matrix=None)
    """
    return Perturbed(retain, columns, missing, snap, suppressed, matrix)  # type: ignore[arg-type]


def _names(columns: object) -> tuple[str, ...] | None:
    if columns is None:
        return None
    if isinstance(columns, str) or not isinstance(columns, Sequence) or not all(isinstance(name, str) for name in columns):
        raise BadInput(f"columns={columns!r} is not a list of columns", right="write a list of names: columns: [disease]")
    if not columns or len(set(columns)) < len(columns):
        raise BadInput(f"columns={list(columns)} names {'one twice' if columns else 'none'}", right="name each column once")
    return tuple(columns)


def _list_declared(name: str, kind: Kind) -> tuple[str, ...]:
    """The declared values of a column."""
    if kind.name not in ("tree", "flat"):
        right = "perturb categories; for numbers choose the form permuted, or declare intervals as a hierarchy"
        raise BadInput(f"is sensitive and {kind.name}", column=name, right=right)
    domain, _ = kind.bind(np.array([], dtype=object))
    if not domain.declared:
        what = "is to be perturbed, but its values are not declared: each written value would be the value of some row"
        raise BadInput(what, column=name, right="declare all of them as a hierarchy: tree: [flu, gout, ...]")
    return domain.texts


def _publish_leaves(domain: Domain, shown: NDArray[np.generic]) -> NDArray[np.generic]:
    """The published value of every leaf, including unused ones: in the type of the column if all fit it, else as text."""
    if shown.dtype.kind == "O":
        return shown
    texts = np.array(domain.texts, dtype=object)
    try:
        typed = texts.astype(shown.dtype)
    except (ValueError, TypeError, OverflowError):
        return texts
    return typed if texts_of(typed) == texts.tolist() else texts
