"""An independent view of a release as a recipient: by its cells and the form in its certificate, nothing else.

In some forms all cells of a row belong together, and rows with equal quasi cells are one class. In the others rows do not line
up: a column holds the bucket, and only the cells of one column group belong together. Forms are known here by their name and
parameters alone; no code of `core` or `forms` but `Columns` is used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import prod
from typing import Any

from closeknit.checks.failures import require
from closeknit.checks.naive_cells import Row, ends, group_rows, rows_of
from closeknit.checks.oracle import oracle_folds
from closeknit.core.columns import Columns
from closeknit.core.schema import Schema

GROUPED = ("bucketized", "sliced", "multiset", "permuted")  # forms in which rows do not line up
ONE = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
NUMBER = re.compile(rf"{ONE}|\[{ONE}, {ONE}[\])]")
Secret = str | tuple[str, ...] | None


@dataclass(frozen=True, eq=False)
class View:
    """Written cells, the bucket column (None where rows line up), and which columns belong together."""

    columns: Columns
    schema: Schema
    number: str | None
    groups: tuple[tuple[str, ...], ...]
    drawn: tuple[str, ...] = ()  # perturbed attributes: a cell is not always true
    written: Columns | None = None  # the cells of the file, where `columns` has the labels that they give

    @property
    def unchanged(self) -> list[str]:
        """Columns whose cells are neither generalized nor perturbed."""
        names = dict.fromkeys([*self.schema.sensitive, *self.schema.plain])
        return [name for name in names if name not in self.drawn]

    def group_of(self, secret: Secret) -> tuple[str, ...] | None:
        """Return the column group of an attribute; None where combined attributes are in different groups."""
        names = [secret] if isinstance(secret, str) else list(secret or ())
        return next((group for group in self.groups if set(names) <= set(group)), None)

    def classes_of(self, secret: Secret) -> dict[Row, list[int]]:
        """Return the rows among which an adversary with all other knowledge of a person has to look for this attribute.

        Without an attribute: those among which the person's row is.
        """
        if self.number is None:
            return group_rows(self.columns, list(self.schema.quasi))
        group = self.group_of(secret) if secret is not None else ()
        require(group is not None, f"{secret}: no column group contains them all")
        return group_rows(self.columns, [self.number, *self.list_known(group or (), secret)])

    def list_known(self, group: tuple[str, ...], secret: Secret) -> list[str]:
        """Return the columns of a group that may be known: plain ones, and quasi-identifiers except the attribute itself."""
        wanted = {secret} if isinstance(secret, str) else set(secret or ())
        return [name for name in group if name in self.schema.plain or (name in self.schema.quasi and name not in wanted)]

    def measure_disclosure(self, secret: str, profile: tuple[Row, ...], weight: str) -> Fraction:
        """Return the largest share of a value of the attribute for a person with this profile, group by group.

        Every bucket contributes the matching rows ("size": their number; "paper": as a share of its rows), and the values next
        to the known cells of the attribute's own group.
        """
        place_of = self.groups.index(self.group_of(secret) or ())
        known, position = [self.list_known(group, secret) for group in self.groups], self.groups[place_of].index(secret)
        weights: dict[Any, Fraction] = {}
        folds = oracle_folds([cells[0] for cells in rows_of(self.columns, [secret])])
        for bucket in self.buckets():
            size, fitting = len(bucket[0]), []
            for names, group, rows, cells in zip(known, self.groups, bucket, profile, strict=True):
                fitting.append([row for row in rows if tuple(row[group.index(name)] for name in names) == cells])
            fitting[place_of] = [row for row in fitting[place_of] if row[position] is not None]  # missing discloses none
            chance = prod((Fraction(len(rows), size) for rows in fitting), start=Fraction(size if weight == "size" else 1))
            for row in fitting[place_of] if chance else ():
                value = folds[row[position]]
                weights[value] = weights.get(value, Fraction(0)) + chance / len(fitting[place_of])
        return max(weights.values()) / sum(weights.values()) if weights else Fraction(0)

    def buckets(self) -> list[list[list[Row]]]:
        """Return bucket by bucket, and in each group by group, the cells that belong together."""
        if self.number is None:
            return []
        rows = [rows_of(self.columns, group) for group in self.groups]
        return [[[group[i] for i in there] for group in rows] for there in group_rows(self.columns, [self.number]).values()]

    def check_order(self) -> None:
        """Require an order that the written cells alone determine.

        Rows that line up are sorted by quasi cells, sensitive values and plain cells. Otherwise buckets are numbered from 1 and
        sorted by their content, and the cells of each group are sorted inside each bucket.
        """
        if self.number is None:
            names = (*self.schema.quasi, *self.schema.sensitive, *self.schema.plain)
            file = View(self.written, self.schema, None, ()) if self.written is not None else self
            self._check_sorted(file._cells(names if self.written is None else tuple(self.written)), "rows")
            return
        there = group_rows(self.columns, [self.number])
        require([*there] == [(str(i),) for i in range(1, len(there) + 1)], f"buckets are numbered {[*there]}")
        require([i for rows in there.values() for i in rows] == list(range(self.columns.rows)), "buckets are split")
        places = [self._cells(group) for group in self.groups]
        contents = [[[of_group[i] for i in rows] for of_group in places] for rows in there.values()]
        for content in contents:
            for of_group in content:
                self._check_sorted(of_group, "cells of a group")
        self._check_sorted(contents, "buckets")

    def _cells(self, names: tuple[str, ...]) -> list[Any]:
        """Return a sort key of each row by these cells: numbers and ranges by value, then other texts, missing cells last."""
        return [tuple(map(_key, row)) for row in rows_of(self.columns, list(dict.fromkeys(names)))]

    @staticmethod
    def _check_sorted(keys: list[Any], what: str) -> None:
        for before, after in pairwise(keys):
            require(before <= after, f"{what} are not in the order of the written cells: {after} comes after {before}")


def view(columns: Columns, schema: Schema, form: Mapping[str, Mapping[str, Any]]) -> View:
    """Return a release as a recipient sees it; `form` is written as in certificates.

    >>> from closeknit.core.kinds import flat
    >>> columns = Columns.of({"bucket": [1, 1], "sex": ["f", "m"], "disease": ["flu", "gout"]})
    >>> seen = view(columns, Schema(quasi={"sex": flat()}, sensitive={"disease": flat()}), {"bucketized": {}})
    >>> seen.groups, seen.classes_of("disease")
    ((('sex',), ('disease',)), {('1',): [0, 1]})
    """
    ((name, params),) = form.items()
    if name not in GROUPED and params.get("number", "bucket") not in columns:  # also a form of a user
        drawn = (params.get("columns") or tuple(schema.sensitive)) if name == "perturbed" else ()
        labels = naive_labels(columns, schema)
        return View(labels, schema, None, (tuple(schema.published),), tuple(drawn), None if labels is columns else columns)
    return View(columns, schema, params.get("number", "bucket"), groups_of(name, params, schema))


def naive_labels(columns: Columns, schema: Schema) -> Columns:
    """Return the labels that numbers in two columns, or a column of labels next to drawn values, give.

    >>> from closeknit.core.kinds import numeric
    >>> naive_labels(Columns.of({"age_lo": [20, 7], "age_hi": [30, 7]}), Schema(quasi={"age": numeric()}))["age"].cells()
    ['[20, 30]', '7']
    """
    cells: dict[str, list[Any]] = {}
    for name in schema.quasi:
        if {f"{name}_lo", f"{name}_hi"} <= set(columns):
            cells[name] = [_join(*row) for row in rows_of(columns, [f"{name}_lo", f"{name}_hi"])]
        elif f"{name}_label" in columns:
            cells[name] = [cell for (cell,) in rows_of(columns, [f"{name}_label"])]
    if not cells:
        return columns
    rest = {name: columns[name] for name in schema.published if name not in cells}
    return Columns({**Columns.of(cells).columns, **rest}, columns.rows)


def _join(low: str | None, high: str | None) -> str:
    if low is None or high is None:
        return "*" if low == high else f"<={high}" if low is None else f"{low}+"
    return low if low == high else f"[{low}, {high}]"


def groups_of(name: str, params: Mapping[str, Any], schema: Schema) -> tuple[tuple[str, ...], ...]:
    """Return the columns that belong together in a form in which rows do not line up."""
    if name == "multiset":
        return tuple((column,) for column in dict.fromkeys([*schema.quasi, *schema.sensitive, *schema.plain]))
    if params.get("columns"):
        return tuple(tuple(group) for group in params["columns"])
    plain = schema.plain if name == "permuted" else ()
    return (*schema.quasi, *plain), tuple(schema.sensitive)


def _key(cell: str | None) -> tuple[Any, ...]:
    if cell is None:
        return (2,)
    return (0, *ends(cell), cell) if NUMBER.fullmatch(cell) else (1, cell)
