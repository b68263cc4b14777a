"""`Table`: coded microdata in canonical row order; `Partition`, `Outcome`: its classes; `Form`: how they are written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes, Histogram
from closeknit.core.columns import Column, Columns
from closeknit.core.combined_secrets import CodedSecret, Secret, join_secrets
from closeknit.core.domain import Domain
from closeknit.core.row_sorting import Coded, row_order, tie_order
from closeknit.kernels.arrays import Int32

if TYPE_CHECKING:
    from closeknit.core.model import Model
    from closeknit.core.reading import Persons, Reading
    from closeknit.core.schema import Schema


@dataclass(frozen=True, eq=False)
class Table:
    """Leaf codes of quasi-identifiers and sensitive attributes. Rows have no number: they are sorted by their own cells.

    Args:
        schema: roles and kinds of the columns.
        quasi: codes of the quasi-identifiers, [rows, columns].
        sensitive: codes of the sensitive attributes, [rows, columns].
        quasi_domains: domain of each quasi-identifier.
        sensitive_domains: domain of each sensitive attribute.
        shown: per sensitive attribute, the published value of each leaf, in the type of the input.
        plain: the plain columns.
        persons: person of each row, if there is a person column.
        rows: input position of each row; private.
        joints: combinations of sensitive attributes that a guarantee is about.
        suppressible: number of rows that a method may suppress.
        perturbed: whether a form has replaced sensitive values before the method runs.
        references: per attribute, rows of every leaf to compare classes with, if that is not this table but its whole window.
        weights: number of equal rows that each row represents, if rows are counted.
        allow_vacuous: whether a guarantee that excludes nothing is noted instead of refused.
        identity: digest of the raw cells, where runs on them are counted; private.
    """

    schema: Schema
    quasi: NDArray[np.int32]
    sensitive: NDArray[np.int32]
    quasi_domains: tuple[Domain, ...]
    sensitive_domains: tuple[Domain, ...]
    shown: tuple[NDArray[np.generic], ...]
    plain: Mapping[str, Column]
    persons: NDArray[np.int64] | None
    rows: NDArray[np.int64]
    joints: Mapping[tuple[str, ...], CodedSecret] = field(default_factory=dict)
    suppressible: int = 0
    perturbed: bool = False
    references: Mapping[Secret, NDArray[np.int64]] = field(default_factory=dict)
    weights: NDArray[np.int64] | None = None
    allow_vacuous: bool = False
    identity: bytes = b""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def weight(self) -> int:
        """Number of rows that it represents."""
        return len(self) if self.weights is None else int(self.weights.sum())

    def join_secrets(self, joints: Iterable[tuple[str, ...]]) -> Table:
        """The same table with the combinations of these sensitive attributes, computed once."""
        return replace(self, joints={names: join_secrets([self.secret(name) for name in names]) for names in joints})

    @property
    def splits_persons(self) -> bool:
        """Whether one person may be in several classes: merging two classes may then break a guarantee that both meet."""
        return self.persons is not None and self.schema.person_rows == "count-once"

    def take(self, rows: NDArray[np.integer]) -> Table:
        """These rows only, over the same domains."""
        return replace(
            self,
            quasi=self.quasi.take(rows, axis=0),  # whole rows at once: their cells are adjacent in memory
            sensitive=self.sensitive.take(rows, axis=0),
            plain={name: column.take(rows) for name, column in self.plain.items()},
            persons=None if self.persons is None else self.persons[rows],
            rows=self.rows[rows],
            joints={names: (codes[rows], domain) for names, (codes, domain) in self.joints.items()},
            weights=None if self.weights is None else self.weights[rows],
        )

    def sort_rows(self) -> Table:
        """The same table in canonical order: by all cells of a row."""
        keys: list[Coded] = [(self.quasi[:, j], domain.size + 1) for j, domain in enumerate(self.quasi_domains)]
        keys += [(self.sensitive[:, j], domain.size + 1) for j, domain in enumerate(self.sensitive_domains)]
        keys += [column.coded for column in self.plain.values()]
        keys += [] if self.persons is None else [(self.persons, int(self.persons.max()) + 1)]
        return self.take(row_order(keys, len(self)))

    def tie_order(self, seed: int) -> NDArray[np.int64]:
        """Positions in the order for a method: by quasi-identifiers, ties by the seed.

        In canonical order rows with equal quasi-identifiers are sorted by their sensitive values; a method that takes rows in
        turn would put equal values into one class.
        """
        columns = [(self.quasi[:, j], domain.size + 1) for j, domain in enumerate(self.quasi_domains)]
        return tie_order(columns, len(self), seed)

    def secret(self, name: Secret) -> tuple[Int32, Domain]:
        """Codes and domain of one sensitive attribute, or of a combination of several."""
        if not isinstance(name, str):
            return self.joints[name]
        place = list(self.schema.sensitive).index(name)
        return self.sensitive[:, place], self.sensitive_domains[place]

    def shuffle_secrets(self, seed: int) -> Table:
        """The table with its sensitive rows shuffled over all rows: a function of quasi-identifiers and histograms alone."""
        order = np.random.default_rng([seed % 2**64, seed >> 64]).permutation(len(self))
        return replace(self, sensitive=self.sensitive[order])

    def fold_values(self, name: str) -> Table:
        """The same table with look-alike values of one attribute as one: a class diverse in it is diverse as written."""
        codes, domain = self.secret(name)
        leaf_of = domain.folding(self.reference(name))
        if leaf_of is None:
            return self
        sensitive = self.sensitive.copy()
        sensitive[:, list(self.schema.sensitive).index(name)] = leaf_of[codes]
        return replace(self, sensitive=sensitive)

    def count_values(self, name: Secret) -> Histogram:
        """The histogram of an attribute over all rows, with these rows as the reference: what a plan distributes."""
        return Histogram.of(np.zeros(len(self), dtype=np.int32), 1, *self.secret(name))

    def reference(self, name: Secret) -> NDArray[np.int64]:
        """Rows of every leaf of an attribute that classes are compared with: of the table, or of its whole window."""
        return self.references[name] if name in self.references else self.count_values(name).reference

    def one_class(self) -> Classes:
        """All rows as one class: no partition does better under a monotone guarantee."""
        return self.count_classes(Partition.whole(len(self)))

    def count_classes(self, partition: Partition) -> Classes:
        """The classes of a partition as the models see them, before anything is written."""
        names: tuple[Secret, ...] = (*self.schema.sensitive, *self.joints)
        secrets = {name: self.secret(name) for name in names}
        return Classes.of(partition.class_of, partition.count, secrets, self.persons, self.references, self.weights)


@dataclass(frozen=True, eq=False)
class ClassRows:
    """The rows of each class, one class after the other; suppressed rows are left out.

    >>> Partition.of([7, 7, 3, -1]).list_rows()[1].tolist()
    [0, 1]
    """

    rows: NDArray[np.int64]  # those of a class ascend
    starts: NDArray[np.int64]  # [classes + 1]

    def __getitem__(self, number: int) -> NDArray[np.int64]:
        """The rows of one class."""
        return self.rows[self.starts[number] : self.starts[number + 1]]


@dataclass(frozen=True, eq=False)
class Partition:
    """Equivalence class of every row of a table.

    Args:
        class_of: class of each row, numbered from 0; -1 = suppressed.
        count: number of classes.

    >>> Partition.of([7, 7, 3]).class_of.tolist()
    [1, 1, 0]
    """

    class_of: Int32
    count: int

    @classmethod
    def of(cls, class_of: object) -> Partition:
        """From any class numbers: renumbered without gaps in their order, -1 kept."""
        names, codes = np.unique(np.asarray(class_of), return_inverse=True)
        suppressed = len(names) > 0 and names[0] == -1
        return cls((codes - int(suppressed)).astype(np.int32), len(names) - int(suppressed))

    @classmethod
    def whole(cls, rows: int) -> Partition:
        """All rows in one class."""
        return cls(np.zeros(rows, dtype=np.int32), 1)

    def list_rows(self) -> ClassRows:
        """The rows of each class."""
        kept = np.flatnonzero(self.class_of >= 0)
        sizes = np.bincount(self.class_of[kept], minlength=self.count)
        return ClassRows(kept[np.argsort(self.class_of[kept], kind="stable")], np.append(0, np.cumsum(sizes)))

    def merge_classes(self, into: NDArray[np.integer]) -> Partition:
        """Merge class `c` into class `into[c]`."""
        return Partition.of(np.where(self.class_of >= 0, into[self.class_of], -1))


@dataclass(frozen=True, eq=False)
class WrittenTable:
    """What a form writes.

    Args:
        columns: the written cells.
        rows: the table row of each written row; private.
        behind: the table rows of each column that is sorted separately; private.
        hidden: the same rows with the labels that numbers replace; private.
    """

    columns: Columns
    rows: NDArray[np.int64]
    behind: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    hidden: WrittenTable | None = None

    def rows_of(self, name: str) -> NDArray[np.int64]:
        """The table row of each written cell of a column."""
        return self.behind.get(name, self.rows)

    def align_codes(self, codes: Int32, column_groups: Sequence[tuple[str, ...]]) -> Int32:
        """Codes per written row and column group, reordered so that codes of the same table row are in one row; private."""
        place = np.empty(int(self.rows.max(initial=-1)) + 1, dtype=np.int64)
        place[np.sort(self.rows)] = np.arange(len(self.rows))
        rows: Int32 = np.empty_like(codes)
        for i, group in enumerate(column_groups):
            rows[place[self.rows_of(group[0])], i] = codes[:, i]
        return rows


class Form(ABC):
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
        def merges_classes(self) -> bool:
            """Whether it often writes different classes alike, by its parameters."""

        @property
        def fallbacks(self) -> Sequence[Form]:
            """Forms that show less of suppressed rows, tried in turn where this one does not meet the guarantees."""

        @property
        def attested(self) -> tuple[str, ...]:
            """What a recipient cannot recompute from the cells: "loss", and "classes" with everything about them."""

    else:
        merges_classes = False
        added, advice, suppressed, snap, levels, fallbacks, attested = (), None, "", False, None, (), ()

    def serves(self, model: Model) -> bool:
        """Whether a guarantee means something in this form."""
        return not model.forms.isdisjoint((self.name, self.like))

    def before(self, table: Table, seed: int) -> Table:
        """The table as a method may see it: what a form does to sensitive values it does first."""
        return table

    @abstractmethod
    def write(self, table: Table, partition: Partition, seed: int) -> WrittenTable:
        """The written cells, in an order that these cells alone give; only a form that perturbs uses the seed."""

    @abstractmethod
    def read(
        self, columns: Columns, schema: Schema, persons: Persons | None = None, joints: Sequence[tuple[str, ...]] = ()
    ) -> Reading:
        """The classes that an adversary finds in the written cells; `joints`: attributes to be counted as one, too."""

    def list_columns(self, schema: Schema) -> list[str]:
        """Columns of the release, in their order."""
        return [*self.added, *schema.published]

    def read_labels(self, columns: Columns, schema: Schema) -> Columns:
        """The written cells with one column of labels per quasi-identifier; only forms that write numbers differ."""
        return columns

    def notes(self, schema: Schema) -> list[str]:
        """What a reader of the certificate has to know about such cells, from what a certificate publishes of a schema."""
        return []

    def parts(self, columns: Columns, schema: Schema) -> dict[str, Columns]:
        """Files with the same content as the written table, part by part, by the beginning of their names."""
        return {}

    def disorder(self, columns: Columns, schema: Schema) -> list[str]:
        """Sentences on an order of rows that could reveal what the form separates; such a release does not pass an audit."""
        return []

    def sort_keys(self, columns: Columns, schema: Schema) -> list[str]:
        """The columns that sort rows from a place without an order, such as a table of a database, as the form writes them."""
        return list(columns)

    def list_unsorted(self, columns: Columns, schema: Schema) -> list[str]:
        """Sentences on rows that are not in the order in which the form writes them; an order can carry information."""
        return []


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a method returns.

    Args:
        partition: the equivalence classes.
        form: the form to write them with, if the method decides it.
        notes: private remarks on the run (which variant was used), for the private recipe only.
        settled: whether the guarantee is not one about each class, so that classes must not be merged to repair it.
        repeat: the method that gives the same result again, if the one that ran used a clock.
    """

    partition: Partition
    form: Form | None = None
    notes: tuple[str, ...] = ()
    settled: bool = False
    repeat: Any = None
