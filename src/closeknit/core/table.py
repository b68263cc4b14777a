"""`Table`: coded microdata in canonical row order; `Partition`, `Outcome`: its classes; `Form`: how they are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes, Histogram
from closeknit.core.columns import Column, Columns
from closeknit.core.combined_secrets import CodedSecret, Secret, join_secrets
from closeknit.core.domain import Domain
from closeknit.core.row_sorting import tie_order
from closeknit.core.tree import Int32

if TYPE_CHECKING:
    from closeknit.core.model import Model
    from closeknit.core.reading import Persons, Reading
    from closeknit.core.schema import Schema


@dataclass(frozen=True, eq=False)
class Table:
    """Leaf codes of quasi and sensitive columns. Rows have no number: they stand in the order of their own cells.

    `rows` is the private way back: the input position of each row. `shown` gives the value that a sensitive leaf is published
    as, in the type it came in. `joints`: secrets that are counted as one beside each alone, because a guarantee asks for it.
    `references`: what classes are judged against where that is not the table itself: all rows of a window that it is a part of.
    """

    schema: Schema
    quasi: NDArray[np.int32]  # [n, d]
    sensitive: NDArray[np.int32]  # [n, s]
    quasi_domains: tuple[Domain, ...]
    sensitive_domains: tuple[Domain, ...]
    shown: tuple[NDArray[np.generic], ...]
    plain: Mapping[str, Column]
    persons: NDArray[np.int64] | None
    rows: NDArray[np.int64]
    joints: Mapping[tuple[str, ...], CodedSecret] = field(default_factory=dict)
    suppressible: int = 0  # rows that a method may leave out
    perturbed: bool = False  # whether its form has replaced secrets already, before any method saw them
    references: Mapping[Secret, NDArray[np.int64]] = field(default_factory=dict)  # of a secret, a count for every leaf
    weights: NDArray[np.int64] | None = None  # how many equal rows each one stands for, where rows came counted
    allow_vacuous: bool = False  # whether a guarantee that excludes nothing is noted instead of refused

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def weight(self) -> int:
        """Rows that it stands for."""
        return len(self) if self.weights is None else int(self.weights.sum())

    def join_secrets(self, joints: Iterable[tuple[str, ...]]) -> Table:
        """The same table that also counts these secrets as one; their combinations are found here, once."""
        return replace(self, joints={names: join_secrets([self.secret(name) for name in names]) for names in joints})

    @property
    def splits_persons(self) -> bool:
        """Whether one person may stand in several classes: two that hold may then make one that does not."""
        return self.persons is not None and self.schema.person_rows == "count-once"

    def take(self, rows: NDArray[np.integer]) -> Table:
        """These rows only, over the same domains."""
        return Table(
            self.schema,
            self.quasi[rows],
            self.sensitive[rows],
            self.quasi_domains,
            self.sensitive_domains,
            self.shown,
            {name: column.take(rows) for name, column in self.plain.items()},
            None if self.persons is None else self.persons[rows],
            self.rows[rows],
            {names: (codes[rows], domain) for names, (codes, domain) in self.joints.items()},
            self.suppressible,
            self.perturbed,
            self.references,
            None if self.weights is None else self.weights[rows],
            self.allow_vacuous,
        )

    def tie_order(self, seed: int) -> NDArray[np.int64]:
        """Positions in the order for a method: by quasi-identifiers, rows that are equal there as only the seed decides.

        A table comes in canonical order, where rows with equal quasi-identifiers are sorted by their sensitive values; a method
        that takes rows in turn would put equal values into one class.
        """
        columns = [(self.quasi[:, j], domain.size + 1) for j, domain in enumerate(self.quasi_domains)]
        return tie_order(columns, len(self), seed)

    def secret(self, name: Secret) -> tuple[Int32, Domain]:
        """Codes and domain of one sensitive column, or of several that this table counts as one."""
        if not isinstance(name, str):
            return self.joints[name]
        place = list(self.schema.sensitive).index(name)
        return self.sensitive[:, place], self.sensitive_domains[place]

    def fold_values(self, name: str) -> Table:
        """The same table with look-alike values of one sensitive column as one: what is diverse in it is diverse as written."""
        codes, domain = self.secret(name)
        leaf_of = domain.folding(self.reference(name))
        if leaf_of is None:
            return self
        sensitive = self.sensitive.copy()
        sensitive[:, list(self.schema.sensitive).index(name)] = leaf_of[codes]
        return replace(self, sensitive=sensitive)

    def count_values(self, name: Secret) -> Histogram:
        """A secret over all rows, with themselves as the reference: what a plan deals out, whatever judges the classes."""
        return Histogram.of(np.zeros(len(self), dtype=np.int32), 1, *self.secret(name))

    def reference(self, name: Secret) -> NDArray[np.int64]:
        """Rows of every leaf of a secret in what classes are judged against: the table, or what it is a part of."""
        return self.references[name] if name in self.references else self.count_values(name).reference

    def one_class(self) -> Classes:
        """All rows as one class: what no partition under a monotone guarantee can beat."""
        return self.count_classes(Partition(np.zeros(len(self), dtype=np.int32), 1))

    def count_classes(self, partition: Partition) -> Classes:
        """The classes of a partition as the models see them, before anything is written."""
        names: tuple[Secret, ...] = (*self.schema.sensitive, *self.joints)
        secrets = {name: self.secret(name) for name in names}
        return Classes.of(partition.class_of, partition.count, secrets, self.persons, self.references, self.weights)


@dataclass(frozen=True, eq=False)
class Partition:
    """Class of every row of a table, numbered from 0; -1 = suppressed.

    >>> Partition.of([7, 7, 3]).class_of.tolist()
    [1, 1, 0]
    """

    class_of: Int32
    count: int

    @classmethod
    def of(cls, class_of: object) -> Partition:
        """From any class numbers: renumbered without gaps in their order, -1 kept."""
        numbers = np.asarray(class_of)
        names, codes = np.unique(numbers, return_inverse=True)
        suppressed = len(names) > 0 and names[0] == -1
        return cls((codes - int(suppressed)).astype(np.int32), len(names) - int(suppressed))

    def merge_classes(self, into: NDArray[np.integer]) -> Partition:
        """Class `c` becomes part of class `into[c]`."""
        return Partition.of(np.where(self.class_of >= 0, into[self.class_of], -1))


@dataclass(frozen=True, eq=False)
class WrittenTable:
    """What a form wrote, and (private) the table row behind each written row.

    `behind` has the rows of each column that does not line up with the others.
    """

    columns: Columns
    rows: NDArray[np.int64]
    behind: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)

    def rows_of(self, name: str) -> NDArray[np.int64]:
        """The table row behind each written cell of a column."""
        return self.behind.get(name, self.rows)

    def align_codes(self, codes: Int32, column_groups: Sequence[tuple[str, ...]]) -> Int32:
        """One code of each written row and column group, put back beside those of the same table row; private as that is."""
        place = np.empty(int(self.rows.max(initial=-1)) + 1, dtype=np.int64)
        place[np.sort(self.rows)] = np.arange(len(self.rows))
        rows: Int32 = np.empty_like(codes)
        for i, group in enumerate(column_groups):
            rows[place[self.rows_of(group[0])], i] = codes[:, i]
        return rows


class Form:
    """Base class of all forms: how a partition is written down.

    A subclass is a frozen dataclass with `name`, `write` and `read`, and overrides what differs. The certificate is computed
    from what `read` finds in the written cells.
    """

    name: ClassVar[str]
    like: ClassVar[str] = ""  # a form in which guarantees mean the same: models list the forms that they know
    if TYPE_CHECKING:  # a class attribute, a field or a property, as the form chooses

        @property
        def added(self) -> tuple[str, ...]:
            """Columns that the table does not have: the number of a bucket."""

        @property
        def advice(self) -> str | None:
            """What a reader must know who opens the files without having read anything."""

        @property
        def suppressed(self) -> str:
            """What is written of suppressed rows: "removed", "starred" or "hidden"; empty where the form has no choice."""

        @property
        def snap(self) -> bool:
            """Whether the ends of ranges are moved to the column's step."""

        @property
        def levels(self) -> Mapping[str, int | str] | None:
            """Levels to which columns are written coarser."""

        @property
        def fallbacks(self) -> Sequence[Form]:
            """Forms that show less of suppressed rows, tried in turn where this one does not meet the guarantees."""

    else:
        added, advice, suppressed, snap, levels, fallbacks = (), None, "", False, None, ()

    def serves(self, model: Model) -> bool:
        """Whether a guarantee means something in this form."""
        return not model.forms.isdisjoint((self.name, self.like))

    def before(self, table: Table, seed: int) -> Table:
        """The table as a method may see it: what a form does to sensitive values it does first."""
        return table

    def write(self, table: Table, partition: Partition, seed: int) -> WrittenTable:
        """The written cells, in an order that these cells alone give; only a form that perturbs uses the seed."""
        raise NotImplementedError(f"{type(self).__name__} has no `write`")

    def read(
        self, columns: Columns, schema: Schema, persons: Persons | None = None, joints: Sequence[tuple[str, ...]] = ()
    ) -> Reading:
        """The classes that an adversary finds in the written cells; `joints`: attributes to be counted as one, too."""
        raise NotImplementedError(f"{type(self).__name__} has no `read`")

    def notes(self, schema: Schema) -> list[str]:
        """What a reader of the certificate has to know about such cells, from what a certificate publishes of a schema."""
        return []

    def parts(self, columns: Columns, schema: Schema) -> dict[str, Columns]:
        """Files with the same content as the written table, part by part, by the beginning of their names."""
        return {}

    def disorder(self, columns: Columns, schema: Schema) -> list[str]:
        """Sentences on an order of rows that could reveal what the form separates; such a release does not pass an audit."""
        return []

    def list_unsorted(self, columns: Columns, schema: Schema) -> list[str]:
        """Sentences on rows that are not in the order in which the form writes them; an order can carry information."""
        return []


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a method returns: a partition and, where the method decides it, the form to write it with.

    `notes` are private remarks on how it worked (which variant ran): they go into the recipe at home and nowhere else.
    `settled`: what it guarantees is not one about each class, so classes must not be merged to mend them.
    `repeat`: the method that gives the same again, where the one that ran looked at a clock.
    """

    partition: Partition
    form: Form | None = None
    notes: tuple[str, ...] = ()
    settled: bool = False
    repeat: Any = None
