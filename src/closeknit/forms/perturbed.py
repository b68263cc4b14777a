"""The form `perturbed`: generalized cells, and secrets that are not always true.

Each secret of the named columns is kept with probability `retain`, else replaced by one of all declared values of its column,
each as likely (post-randomization). The law is published, so that anybody can estimate how many rows have each value truly; of
a single row nobody can say whether its secret is true. What that guarantees is `models.posterior_bound`.

Source: the dissertation on methods to achieve t-closeness, ch. 2, as perturbation; the paper on amplification, sec. 3.
Different from the source: all values of the law are declared, the missing one too (`missing=True`), because a value that can
be drawn since somebody has it tells so when it is written. Quasi cells, suppressed rows and the order of rows are those of the
form `generalized`. Cost: that of writing generalized cells twice, and eight bytes of SHAKE-256 a secret.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from closeknit.core.row_sorting import Coded, row_order
from closeknit.core.schema import Schema
from closeknit.core.table import Form, Partition, Table, WrittenTable
from closeknit.forms.generalized import SUPPRESSED, Generalized


@dataclass(frozen=True)
class Perturbed(Form):
    """Writes and reads generalized cells with perturbed secrets."""

    name: ClassVar[str] = "perturbed"
    retain: Number
    columns: tuple[str, ...] | None = None  # none named: every secret
    missing: bool = False  # whether a missing secret is a value of the law
    snap: bool = False
    suppressed: str = SUPPRESSED[0]

    def __post_init__(self) -> None:
        retention(self.retain)
        choice("missing", self.missing, (True, False))
        object.__setattr__(self, "columns", _names(self.columns))
        _ = self._cells

    @property
    def _cells(self) -> Generalized:
        """What writes and reads all but the perturbation."""
        return Generalized(self.snap, suppressed=self.suppressed)

    @property
    def fallbacks(self) -> tuple[Perturbed, ...]:
        """The same form, telling less and less of suppressed rows."""
        return tuple(replace(self, suppressed=less.suppressed) for less in self._cells.fallbacks)

    @property
    def advice(self) -> str | None:
        """Nobody should take a cell for the truth."""
        which = "Secrets" if self.columns is None else f"Secrets ({', '.join(self.columns)})"
        return (
            f"{which} are perturbed: each was kept with probability {self.retain}, or else replaced by one of all values of "
            "its column alike. A cell says nothing certain of its row; certificate.json has estimates of the true counts.\n"
        )

    def laws(self, schema: Schema) -> dict[str, Law]:
        """The law of each column, from what was declared alone."""
        names = tuple(schema.sensitive) if self.columns is None else self.columns
        if not names:
            raise BadInput("there is no sensitive column to perturb", right="name one, or choose the form generalized")
        for name in names:
            if name not in schema.sensitive:
                right = suggest_name(name, schema.sensitive)
                raise BadInput("is to be perturbed and is not sensitive", column=name, right=right)
        retain = retention(self.retain)
        return {name: Law(retain, _count_declared(name, schema.sensitive[name]) + self.missing) for name in names}

    def before(self, table: Table, seed: int) -> Table:
        """The table with perturbed secrets, in the order of its own cells again: whatever is done with it tells no more.

        A method that looks at secrets, or at the order of rows that differ in nothing else, would tell them by its classes.
        """
        table = self._draw_secrets(self._cells.before(table, seed), np.arange(len(table)), seed)
        keys: list[Coded] = [(table.quasi[:, j], domain.size + 1) for j, domain in enumerate(table.quasi_domains)]
        keys += [(table.sensitive[:, j], domain.size + 1) for j, domain in enumerate(table.sensitive_domains)]
        keys += [(column.codes + 1, len(column.values) + 1) for column in table.plain.values()]
        keys += [] if table.persons is None else [(table.persons, int(table.persons.max()) + 1)]
        return table.take(row_order(keys, len(table)))

    def write(self, table: Table, partition: Partition, seed: int = 0) -> WrittenTable:
        """Rows sorted by what is written, as in the form `generalized`; secrets are perturbed now where they are not yet."""
        if not table.perturbed:
            # words go to rows in the order they would be written in unperturbed: raw quasi cells and suppressed rows move none
            table = self._draw_secrets(table, self._cells.write(table, partition).rows, seed)
        return self._cells.write(table, partition)

    def _draw_secrets(self, table: Table, rows: NDArray[np.int64], seed: int) -> Table:
        """Secrets of these rows after the law of their column."""
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
        """As generalized cells, with the law of each secret."""
        laws = self.laws(schema)
        reading = self._cells.read(columns, schema, persons, joints)
        for name in laws:
            histogram = reading.classes.histograms[name]
            self._refuse_missing(name, histogram.values, histogram.domain)
        return replace(reading, retained=laws)

    def notes(self, schema: Schema) -> list[str]:
        """The law of each column, and what is said of ranges."""
        laws = [
            f"column '{name}' is perturbed: each secret was kept with probability {self.retain}, or else replaced by one of "
            f"{law.values:,} values alike, so odds change at most by the factor {float(law.gamma):.6g}"
            for name, law in self.laws(schema).items()
        ]
        return self._cells.notes(schema) + laws

    def disorder(self, columns: Columns, schema: Schema) -> list[str]:
        """All cells of a row belong together."""
        return []

    def list_unsorted(self, columns: Columns, schema: Schema) -> list[str]:
        """The first row that is not where its written cells place it."""
        return self._cells.list_unsorted(columns, schema)

    def parts(self, columns: Columns, schema: Schema) -> dict[str, Columns]:
        """It is one table."""
        return {}

    def _refuse_missing(self, name: str, codes: NDArray[np.int32], domain: Domain) -> None:
        if not self.missing and (codes == domain.size).any():
            right = "say perturbed(missing=True), so that a missing secret is a value that may also be drawn"
            raise BadInput("has missing secrets, which the law has no place for", column=name, right=right)


def perturbed(
    retain: Number,
    columns: Sequence[str] | None = None,
    missing: bool = False,
    snap: bool = False,
    suppressed: str = SUPPRESSED[0],
) -> Perturbed:
    """The form in which secrets of categories are kept with probability `retain`, or else drawn anew.

    >>> perturbed(0.6, ["disease"])
    Perturbed(retain=0.6, columns=('disease',), missing=False, snap=False, suppressed='removed')
    """
    return Perturbed(retain, columns, missing, snap, suppressed)  # type: ignore[arg-type]


def _names(columns: object) -> tuple[str, ...] | None:
    if columns is None:
        return None
    if isinstance(columns, str) or not isinstance(columns, Sequence) or not all(isinstance(name, str) for name in columns):
        raise BadInput(f"columns={columns!r} is no list of columns", right="write a list of names: columns: [disease]")
    if not columns or len(set(columns)) < len(columns):
        raise BadInput(f"columns={list(columns)} names {'one twice' if columns else 'none'}", right="name each column once")
    return tuple(columns)


def _count_declared(name: str, kind: Kind) -> int:
    """How many values a column has by its declaration."""
    if kind.name not in ("tree", "flat"):
        right = "perturb categories; for numbers choose the form permuted, or declare intervals as a hierarchy"
        raise BadInput(f"is sensitive and {kind.name}", column=name, right=right)
    domain, _ = kind.bind(np.array([], dtype=object))
    if not domain.declared:
        what = "is to be perturbed, and its values are read off the data: each that is written would be known to be somebody's"
        raise BadInput(what, column=name, right="declare all of them as a hierarchy: tree: [flu, gout, ...]")
    return domain.size


def _publish_leaves(domain: Domain, shown: NDArray[np.generic]) -> NDArray[np.generic]:
    """Every leaf as it is shown, also those that nobody has: in the type of the column if they all have it, else as text."""
    if shown.dtype.kind == "O":
        return shown
    texts = np.array(domain.texts, dtype=object)
    try:
        typed = texts.astype(shown.dtype)
    except (ValueError, TypeError, OverflowError):
        return texts
    return typed if texts_of(typed) == texts.tolist() else texts
