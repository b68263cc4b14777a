"""`Reading`: the written cells as an adversary sees them, grouped into equivalence classes; every form reads back to one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes
from closeknit.core.columns import Column, Columns
from closeknit.core.combined_secrets import Secret, parts, render_secret
from closeknit.core.domain import Domain
from closeknit.core.errors import BadInput
from closeknit.core.kinds import texts_of
from closeknit.core.row_sorting import groups
from closeknit.core.schema import Schema
from closeknit.core.slices import Slices
from closeknit.core.subsets import Over, list_subsets
from closeknit.core.transition import AnyLaw
from closeknit.core.tree import STAR
from closeknit.kernels.arrays import Int32

Persons = Mapping[str, NDArray[np.int64]]  # per column, the person of each written cell: private


def find_stars(column: Column) -> NDArray[np.bool_]:
    """The rows whose written cell is `*`.

    >>> find_stars(Columns.of({"wage": [3, "*", None]})["wage"]).tolist()
    [False, True, False]
    """
    star = np.array([*(str(value) == STAR for value in column.values.tolist()), False])  # the last entry serves code -1
    rows: NDArray[np.bool_] = star[column.codes]
    return rows


def without_markers(column: Column, markers: tuple[str, ...]) -> Column:
    """Replace missing-value codes by empty cells, so that both belong to one class."""
    if not markers:
        return column
    marked = np.array([*(text in markers for text in texts_of(column.values)), True])
    return Column(column.values, np.where(marked[column.codes], -1, column.codes).astype(np.int32))


def secret_codes(column: Column, name: str, schema: Schema) -> tuple[Int32, Domain]:
    """Leaf codes of a written sensitive column; a suppressed value (`*`) is -1 and does not count."""
    stars = find_stars(column)
    shown = Column(column.values, np.where(stars, -1, column.codes).astype(np.int32))
    codes, domain, _ = schema.encode_column(shown, name, schema.sensitive[name])
    return np.where(stars, -1, codes).astype(np.int32), domain


@dataclass(frozen=True, eq=False)
class Reading:
    """Written cells and the equivalence classes that they form.

    Args:
        columns: the written cells.
        schema: the published schema.
        class_of: class of each row.
        classes: sizes and histograms of the classes.
        named_by: the columns whose cells identify the class of a row.
        column_groups: columns whose cells belong together inside a class; empty if all cells of a row do.
        seen: per sensitive attribute, the classes in which an adversary sees it, if there are column groups.
        retained: the law of each perturbed attribute.
        tight: columns whose ranges end at true values of rows in the class.
        folding: per folded attribute, the leaf as which each leaf counts.
        raw: the schema of the original columns; private.
        count: counts rows by other groups, given the group of each row and the number of groups.
    """

    columns: Columns
    schema: Schema
    class_of: NDArray[np.int32]
    classes: Classes
    named_by: tuple[str, ...]
    column_groups: tuple[tuple[str, ...], ...] = ()
    seen: Mapping[Secret, Reading] = field(default_factory=dict)
    retained: Mapping[str, AnyLaw] = field(default_factory=dict)
    tight: tuple[str, ...] = ()
    folding: Mapping[str, Int32] = field(default_factory=dict)
    raw: Schema | None = None
    count: Callable[[Int32, int], Classes] | None = None

    @property
    def exact_secrets(self) -> list[str]:
        """The sensitive attributes whose written values are true: those that are not perturbed."""
        return [name for name in self.schema.sensitive if name not in self.retained]

    def of(self, secret: Secret | None) -> Reading:
        """The classes in which an adversary sees this attribute."""
        if secret is None or not self.column_groups:
            return self
        if secret not in self.seen:
            what = f"{render_secret(secret)}: they are in different groups of columns, so nothing joins them"
            raise BadInput(what, right="put them into one group, or request a guarantee for each of them")
        return self.seen[secret]

    def fold_values(self, secret: Secret | None) -> Reading | None:
        """The reading with look-alike values of one attribute counted as one; None if none look alike."""
        if not isinstance(secret, str):
            return None  # merging values only lowers the total variation of combinations
        seen = self.of(secret)
        written, classes = seen.classes.histograms[secret], seen.classes.fold_values(secret)
        leaf_of = written.domain.folding(written.reference)
        if classes is None or leaf_of is None:
            return None
        folding = {**self.folding, secret: leaf_of}
        if seen is self:
            return replace(self, classes=classes, folding=folding)
        return replace(self, seen={**self.seen, secret: replace(seen, classes=classes)}, folding=folding)

    def cells(self, name: str) -> Column:
        """The written cells of a column; missing-value codes are missing cells.

        Args:
            name: the column.
        """
        return without_markers(self.columns[name], self.schema.missing)

    def group_rows(self, names: Sequence[str]) -> tuple[Int32, int]:
        """Equal numbers for rows with equal cells in some columns, and how many numbers there are.

        Args:
            names: the columns.
        """
        return groups([self.cells(name).coded for name in names], self.columns.rows)

    def over(self, names: Sequence[str]) -> Reading:
        """The same rows in groups with equal written cells in some of the quasi-identifiers."""
        assert self.count is not None
        group_of, count = self.group_rows(names)
        return replace(self, class_of=group_of, classes=self.count(group_of, count), named_by=tuple(names))

    def list_views(self, over: Over, secret: Secret | None) -> list[Reading]:
        """What a guarantee is judged on: the classes, or the groups over each set of columns; each as written and, where
        values of the attribute look alike, folded.
        """
        written = [self] if over is None else [self.over(names) for names in list_subsets(over, list(self.schema.quasi))]
        return [view for seen in written for view in (seen.of(secret), seen.fold_values(secret)) if view is not None]

    def joins(self, secret: Secret | None) -> bool:
        """Whether the release shows which values of several columns belong together."""
        return not self.column_groups or secret in self.seen

    def slices(self, secret: str) -> Slices:
        """The release for an adversary who knows all quasi-identifiers and plain cells, but not this attribute."""
        known = [self.group_rows(list_known_columns(group, secret, self.schema))[0] for group in self.column_groups]
        place = next(i for i, group in enumerate(self.column_groups) if secret in group)
        codes, _ = secret_codes(self.columns[secret], secret, self.schema)
        if secret in self.folding:
            codes = np.where(codes < 0, codes, self.folding[secret][codes])
        return Slices(self.class_of, np.stack(known, axis=1), place, codes)

    def first_row(self, index: int) -> int:
        """The first row of a class."""
        return int(np.argmax(self.class_of == index))

    def find_rows(self, cells: Mapping[str, str], over: Over = None) -> NDArray[np.bool_]:
        """The rows of the class, or of the group over some columns, that these cells identify; none where they are of other
        columns.
        """
        named = [self.named_by] if over is None else list_subsets(over, list(self.schema.quasi))
        rows = np.full(self.columns.rows, any(set(cells) == set(names) for names in named))
        for name, cell in cells.items() if rows.any() else ():
            column = self.columns[name]
            rows &= np.array([*(text == cell for text in texts_of(column.values)), cell == ""])[column.codes]
        return rows

    def cells_of(self, index: int) -> dict[str, str]:
        """The written cells that identify one class, as a certificate names it."""
        row = self.first_row(index)
        cells = {name: self.columns[name].take(np.array([row])) for name in self.named_by}
        return {name: "".join(texts_of(cell.values[cell.codes[cell.codes >= 0]])) for name, cell in cells.items()}


def list_known_columns(group: tuple[str, ...], secret: Secret, schema: Schema) -> list[str]:
    """The columns of a group that an adversary may know: all but the wanted attribute and other sensitive ones."""
    wanted = parts(secret)
    return [name for name in group if name not in schema.sensitive or (name in schema.quasi and name not in wanted)]
