"""A release as a stranger sees it, once more: by its cells and by what its certificate says of the form, nothing else.

In some forms all cells of a row belong together, and rows with equal quasi cells are one class. In the others rows do not line
up: a column tells the bucket, and only the cells of one group of columns belong together. Forms are known here by their name
and parameters alone; no code of `core` or `forms` but `Columns` is used.
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

LINED_UP = ("generalized", "perturbed")  # forms in which all cells of a row belong together
ONE = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
NUMBER = re.compile(rf"{ONE}|\[{ONE}, {ONE}[\])]")
Secret = str | tuple[str, ...] | None


@dataclass(frozen=True, eq=False)
class View:
    """Written cells, the column that tells the bucket (None where rows line up), and which columns belong together."""

    columns: Columns
    schema: Schema
    number: str | None
    groups: tuple[tuple[str, ...], ...]
    drawn: tuple[str, ...] = ()  # secrets that are perturbed: a cell is not always true

    @property
    def unchanged(self) -> list[str]:
        """Columns whose cells are neither generalized nor perturbed."""
        names = dict.fromkeys([*self.schema.sensitive, *self.schema.plain])
        return [name for name in names if name not in self.drawn]

    def group_of(self, secret: Secret) -> tuple[str, ...] | None:
        """The group that holds a secret; None where several that are asked for as one stand apart."""
        names = [secret] if isinstance(secret, str) else list(secret or ())
        return next((group for group in self.groups if set(names) <= set(group)), None)

    def classes_of(self, secret: Secret) -> dict[Row, list[int]]:
        """The rows among which somebody has to look for this secret who knows everything else that can be known of a person.

        Without a secret: those among which a person is.
        """
        if self.number is None:
            return group_rows(self.columns, list(self.schema.quasi))
        group = self.group_of(secret) if secret is not None else ()
        require(group is not None, f"{secret}: no group of columns holds them all")
        return group_rows(self.columns, [self.number, *self.list_known(group or (), secret)])

    def list_known(self, group: tuple[str, ...], secret: Secret) -> list[str]:
        """Columns of a group that may be known of a person: plain ones, and quasi-identifiers but the secret itself."""
        wanted = {secret} if isinstance(secret, str) else set(secret or ())
        return [name for name in group if name in self.schema.plain or (name in self.schema.quasi and name not in wanted)]

    def measure_disclosure(self, secret: str, profile: tuple[Row, ...], weight: str) -> Fraction:
        """The largest share of a value of the secret for somebody of whom this is known, group by group.

        Every bucket tells how many rows may look like that ("size": this many; "paper": as a share of its rows), and which
        secrets stand beside the known cells of the secret's own group.
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
        """Bucket by bucket, and in each group by group, the cells that belong together."""
        if self.number is None:
            return []
        rows = [rows_of(self.columns, group) for group in self.groups]
        return [[[group[i] for i in there] for group in rows] for there in group_rows(self.columns, [self.number]).values()]

    def check_order(self) -> None:
        """Everything stands in an order that the written cells alone give.

        Rows that line up stand by quasi cells, secrets and plain cells. Else buckets are numbered from 1 and stand in the
        order of their content, and the cells of a group by themselves inside each.
        """
        if self.number is None:
            self._check_sorted(self._cells((*self.schema.quasi, *self.schema.sensitive, *self.schema.plain)), "rows")
            return
        there = group_rows(self.columns, [self.number])
        require([*there] == [(str(i),) for i in range(1, len(there) + 1)], f"buckets are numbered {[*there]}")
        require([i for rows in there.values() for i in rows] == list(range(self.columns.rows)), "buckets are torn")
        places = [self._cells(group) for group in self.groups]
        contents = [[[of_group[i] for i in rows] for of_group in places] for rows in there.values()]
        for content in contents:
            for of_group in content:
                self._check_sorted(of_group, "cells of a group")
        self._check_sorted(contents, "buckets")

    def _cells(self, names: tuple[str, ...]) -> list[Any]:
        """Where each row comes by these cells: numbers and ranges by value, then all other texts, missing cells last."""
        return [tuple(map(_key, row)) for row in rows_of(self.columns, list(dict.fromkeys(names)))]

    @staticmethod
    def _check_sorted(keys: list[Any], what: str) -> None:
        for before, after in pairwise(keys):
            require(before <= after, f"{what} are not in the order of what is written: {after} stands after {before}")


def view(columns: Columns, schema: Schema, form: Mapping[str, Mapping[str, Any]]) -> View:
    """A release as a stranger sees it; `form` as certificates write it.

    >>> from closeknit.core.kinds import flat
    >>> columns = Columns.of({"bucket": [1, 1], "sex": ["f", "m"], "disease": ["flu", "gout"]})
    >>> seen = view(columns, Schema(quasi={"sex": flat()}, sensitive={"disease": flat()}), {"bucketized": {}})
    >>> seen.groups, seen.classes_of("disease")
    ((('sex',), ('disease',)), {('1',): [0, 1]})
    """
    ((name, params),) = form.items()
    if name in LINED_UP:
        drawn = (params.get("columns") or tuple(schema.sensitive)) if name == "perturbed" else ()
        return View(columns, schema, None, (tuple(schema.published),), tuple(drawn))
    return View(columns, schema, params.get("number", "bucket"), groups_of(name, params, schema))


def groups_of(name: str, params: Mapping[str, Any], schema: Schema) -> tuple[tuple[str, ...], ...]:
    """The columns that belong together in a form in which rows do not line up."""
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
