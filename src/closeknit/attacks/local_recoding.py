"""Refinement of releases by iterated full-domain recoding, as ARX's local recoding publishes them.

ARX's algorithm: of the rows that are left, groups with equal cells at one vector of levels are published if they meet every
guarantee; the other rows go on to the next iteration and its vector. So a class that is published at some iteration consists of
rows whose groups at every earlier vector did not meet a guarantee: each of these groups is a veto with one part.

The adversary knows the algorithm, the guarantees, the hierarchies, all quasi-identifiers, the vectors in their order, and all
sensitive values outside the class under attack, those of suppressed rows included. Distributions are compared with the whole
table. The order of the vectors is not published: it is found by running the iterations on the original rows, and a release that
no order reproduces exactly is refused. Then what is assumed about the algorithm is true of this release.

Source: combinatorial refinement of ARX's local recoding (arXiv 2509.03350).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from closeknit.attacks.beliefs import NotApplicable
from closeknit.attacks.finding import Finding
from closeknit.attacks.refinement import SOLVES, encode_classes, refine_classes
from closeknit.core.columns import Columns
from closeknit.core.combined_secrets import Secret
from closeknit.core.errors import BadInput
from closeknit.core.kinds import texts_of
from closeknit.core.levels import level_nodes, tree_of
from closeknit.core.limits import MOST_SOLVES
from closeknit.core.method import Veto, Vetoes
from closeknit.core.model import Model
from closeknit.core.params import whole
from closeknit.core.row_sorting import groups
from closeknit.core.schema import Schema
from closeknit.core.table import Partition, Table
from closeknit.kernels.arrays import Flags, Int64

KNOWS = (
    "iterated local recoding and its vectors of levels, all quasi-identifiers, and all sensitive values outside the class, "
    "those of suppressed rows included"
)


def local_recoding(
    original: Columns,
    written: Columns,
    schema: Schema,
    models: Sequence[Model],
    secret: str | None = None,
    *,
    suppressed: Sequence[bool] | Flags | None = None,
    solves: int = SOLVES,
    seed: int = 0,
) -> Finding:
    """Measure what an adversary derives from a release by iterated recoding, such as ARX's.

    In the example the two rows of zip 470 are left over by the first iteration because both have flu.

    Args:
        original: The original rows.
        written: The published cells, row by row in the order of `original`.
        schema: Schema of the original rows; every quasi-identifier has the hierarchy whose levels were written.
        models: The guarantees.
        secret: Sensitive attribute under attack; None takes the first with a guarantee.
        suppressed: Which rows are not published.
        solves: Largest number of programs that are solved.
        seed: Seed of the order in which classes are tried.

    >>> import closeknit as ck
    >>> schema = ck.Schema(quasi={"zip": ck.prefix()}, sensitive={"ill": ck.flat()})
    >>> table = {"zip": ["470"] * 2 + ["471"] + ["480"] * 2, "ill": ["flu", "flu", "gout", "cold", "ulcer"]}
    >>> written = Columns.of({"zip": ["47*"] * 3 + ["480"] * 2})
    >>> found = local_recoding(Columns.of(table), written, schema, [ck.KAnonymity(2), ck.LDiversity("ill", 2)])
    >>> found.number, found.details["one_value_left"]
    (1.0, 3)
    """
    solves = whole("solves", solves, 1, MOST_SOLVES)
    dropped = np.zeros(original.rows, dtype=bool) if suppressed is None else np.asarray(suppressed, dtype=bool)
    if written.rows != original.rows or len(dropped) != original.rows:
        right = "give one written row for each original row, in the same order"
        raise BadInput(f"{written.rows:,} written rows do not match {original.rows:,} original ones", right=right)
    class_of = np.where(dropped, -1, groups([written[name].coded for name in schema.quasi], original.rows)[0])
    table, partition, judged = encode_classes(original, class_of, schema, models)
    mentioned = [model.column for model in judged if model.column is not None and secret in (None, model.column)]
    if not mentioned:
        raise NotApplicable("no guarantee mentions a sensitive attribute, so nothing follows", column=secret, right="none")
    runs = _Iterations.of(table, written.take(table.rows), dropped[table.rows], judged)
    found = refine_classes(table, partition, judged, runs.vetoes(partition), mentioned[0], solves=solves, seed=seed)
    details = {**found.details, "iterations": len(runs.order)}
    return found.model_copy(update={"attack": "local_recoding", "knows": KNOWS, "details": details})


@dataclass(frozen=True, eq=False)
class _Iterations:
    """The vectors in the order in which rows were published with them."""

    table: Table
    vectors: NDArray[np.int64]  # [vectors, columns] levels
    vector_of: Int64  # of each row; -1: suppressed
    order: tuple[int, ...]

    @classmethod
    def of(cls, table: Table, written: Columns, dropped: Flags, models: Sequence[Model]) -> _Iterations:
        """Find an order that publishes exactly these rows with each vector."""
        levels = np.stack([_read_levels(table, written, j, dropped) for j in range(table.quasi.shape[1])], axis=1)
        vectors, vector_of = np.unique(levels[~dropped], axis=0, return_inverse=True)
        owner = np.full(len(table), -1, dtype=np.int64)
        owner[~dropped] = vector_of.ravel()
        found = cls(table, vectors, owner, ())
        left, order, waiting = np.arange(len(table)), [], list(range(len(vectors)))
        while waiting:
            for vector in waiting:
                if np.array_equal(found._choose_published(left, vector, models), owner[left] == vector):
                    break
            else:
                what = "no order of the vectors of levels gives this release"
                raise NotApplicable(what, right="give the guarantees and hierarchies that it was made with")
            order.append(vector)
            waiting.remove(vector)
            left = left[owner[left] != vector]
        return replace(found, order=tuple(order))

    def _group_rows(self, rows: Int64, vector: int) -> tuple[NDArray[np.int32], int]:
        """Number the groups of these rows at a vector."""
        cells = []
        for j, (domain, level) in enumerate(zip(self.table.quasi_domains, self.vectors[vector].tolist(), strict=True)):
            nodes = level_nodes(tree_of(domain))
            cells.append((nodes[level][self.table.quasi[rows, j]], int(nodes.max()) + 1))
        return groups(cells, len(rows))

    def _choose_published(self, rows: Int64, vector: int, models: Sequence[Model]) -> Flags:
        """Which of these rows are in groups that meet every guarantee, compared with the whole table."""
        group_of, count = self._group_rows(rows, vector)
        own: dict[Secret, Int64] = {name: self.table.reference(name) for name in self.table.schema.sensitive}
        classes = replace(self.table.take(rows), references=own).count_classes(Partition(group_of, count))
        holds = np.ones(count, dtype=bool)
        for model in models:
            holds &= model.holds(classes)
        published: Flags = holds[group_of]
        return published

    def vetoes(self, partition: Partition) -> Vetoes:
        """Each group of an earlier iteration that has members of a class did not meet a guarantee."""
        left, stages = np.arange(len(self.table)), []
        for vector in self.order:
            group_of = np.full(len(self.table), -1, dtype=np.int64)
            group_of[left] = self._group_rows(left, vector)[0]
            stages.append(group_of)
            left = left[self.vector_of[left] != vector]
        place = {vector: i for i, vector in enumerate(self.order)}

        def list_groups(number: int) -> list[Veto]:
            members = np.flatnonzero(partition.class_of == number)
            earlier = stages[: place[int(self.vector_of[members[0]])]]
            found = {tuple(np.flatnonzero(stage == group)) for stage in earlier for group in np.unique(stage[members])}
            return [[np.array(rows, dtype=np.int64)] for rows in sorted(found)]

        return Vetoes(list_groups, others_known=True)


def _read_levels(table: Table, written: Columns, j: int, dropped: Flags) -> Int64:
    """The lowest level at which each row's value is written as it is; 0 for suppressed rows."""
    name, domain = list(table.schema.quasi)[j], table.quasi_domains[j]
    tree = tree_of(domain)
    texts = np.array([*texts_of(written[name].values), ""], dtype=object)[written[name].codes]
    labels = np.array(tree.labels, dtype=object)
    level = np.full(len(table), -1, dtype=np.int64)
    for height, nodes in enumerate(level_nodes(tree)):
        level[(level < 0) & (labels[nodes[table.quasi[:, j]]] == texts)] = height
    level[dropped] = 0
    if (level < 0).any():
        row = int(table.rows[np.argmax(level < 0)])
        what = f"'{texts[np.argmax(level < 0)]}' is no level of the row's value in the hierarchy"
        raise BadInput(what, column=name, row=row, right="give the hierarchy whose levels were written")
    return level
