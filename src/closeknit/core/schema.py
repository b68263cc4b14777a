"""`Schema`: role and kind of each column. Frozen, without data. `encode` turns columns into a `Table`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, StrictBool, ValidationError, ValidationInfo

from closeknit.core.columns import Column, Columns
from closeknit.core.domain import NUMBER_TEXT, Domain
from closeknit.core.errors import BadInput, BadValue, refuse_empty, suggest_name
from closeknit.core.grids import SHOWN_ROWS, Summarized, Summary
from closeknit.core.kind_forms import KINDS, kind_form, kind_from, kind_text
from closeknit.core.kinds import Kind, texts_of
from closeknit.core.limits import MOST_COLUMNS, MOST_ROWS, check_count
from closeknit.core.params import number, refuse_uncalled
from closeknit.core.table import Table
from closeknit.kernels.arrays import Int32


def _kinds(given: object, info: ValidationInfo) -> object:
    """The kind of each column; a list of names is refused, because it has no kinds."""
    if isinstance(given, Mapping):
        return {name: _kind(name, form, None) for name, form in given.items()}
    names = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else None
    if names is None:
        return given
    example = ", ".join(f"'{name}': 'flat'" for name in names[:3] or ["age"]) + (", ..." if len(names) > 3 else "")
    right = f"write {info.field_name}={{{example}}}, each with one of the kinds {', '.join(KINDS)}"
    raise BadInput(f"schema, key '{info.field_name}': it maps the name of each column to its kind", right=right)


def _list_names(given: object) -> tuple[Any, ...]:
    """A list of names; an empty key is an empty list, and a single name a list of one."""
    if given is None or isinstance(given, str):
        return () if given is None else (given,)
    if not isinstance(given, Iterable):
        raise ValueError("it must be a list")
    return tuple(given)


Kinds = Annotated[dict[str, Any], BeforeValidator(_kinds)]
Names = Annotated[tuple[str, ...], BeforeValidator(_list_names)]
Markers = Annotated[tuple[str, ...], BeforeValidator(lambda marks: tuple(str(mark) for mark in _list_names(marks)))]
ROLES = ("identifier", "quasi", "sensitive", "plain", "drop", "person")
KINDED = ("quasi", "sensitive")  # those whose columns have a kind


class Schema(Summarized, BaseModel):
    """Roles and kinds of the columns of a table.

    Args:
        identifier: direct identifiers; not published, must not repeat.
        quasi: quasi-identifiers with their kinds; generalized.
        sensitive: sensitive attributes with their kinds; protected by the guarantees.
        plain: columns that are published unprotected.
        drop: columns that are not published.
        allow_unique: plain columns that may have a distinct value in every row.
        person: the column that identifies persons, if one person may have several rows.
        person_rows: "together" keeps all rows of a person in one class; "count-once" counts each person once per class.
        rows_are_persons: whether rows that share an identifier are different persons.
        missing: missing-value codes.
        importance: weight of quasi-identifiers in the loss, 1 if left out.

    >>> from closeknit.core.kinds import numeric, flat
    >>> schema = Schema(identifier=["name"], quasi={"age": numeric()}, sensitive={"disease": flat()})
    >>> columns = Columns.of({"name": ["Ann", "Bob"], "age": [41, 30], "disease": ["flu", "SARS"]})
    >>> schema.encode(columns).quasi.tolist()
    [[0], [1]]
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    identifier: Names = ()
    quasi: Kinds = {}
    sensitive: Kinds = {}
    plain: Names = ()
    drop: Names = ()
    allow_unique: Names = ()
    person: str | None = None
    person_rows: Literal["together", "count-once"] = "together"
    rows_are_persons: StrictBool = False
    missing: Markers = ()
    importance: dict[str, float] = {}

    def __init__(self, **roles: Any) -> None:
        try:
            super().__init__(**roles)
        except ValidationError as error:
            raise explain_error(error, "schema", type(self).model_fields) from None
        self._check()

    @classmethod
    def from_forms(cls, forms: Mapping[str, Any], base: Path | None = None) -> Schema:
        """From the plain mappings of a recipe or certificate.

        Args:
            forms: the mappings.
            base: the folder of the recipe; paths of hierarchy files are relative to it.
        """
        if not isinstance(forms, Mapping):
            raise BadInput(f"the schema is {forms!r}", right="it must name columns under " + ", ".join(ROLES))
        read: dict[str, Any] = {str(key): value for key, value in forms.items()}
        for role in ("quasi", "sensitive"):
            if isinstance(read.get(role), Mapping):
                read[role] = {str(name): _kind(name, form, base) for name, form in read[role].items()}
        return cls(**read)

    def forms(self) -> dict[str, Any]:
        """The plain mappings that a recipe contains."""
        written: dict[str, Any] = {key: list(value) if isinstance(value, tuple) else value for key, value in self}
        written |= {role: {name: kind_form(kind) for name, kind in written[role].items()} for role in KINDED}
        written |= {"person_rows": self.person and self.person_rows, "importance": dict(self.importance)}
        return {key: value for key, value in written.items() if value}

    def _check(self) -> None:
        roles: dict[str, str] = {}
        for role in ROLES:
            for name in _list_names(getattr(self, role) or None):
                other = roles.setdefault(name, role)
                if other != role and {other, role} != {"quasi", "sensitive"}:  # slicing may serve a column that is both
                    raise BadInput(f"is listed as {other} and as {role}", column=name, right="give it one role")
        for name in self.allow_unique:
            if name not in self.plain:
                right = "list it under plain too" + (f", or {suggest_name(name, self.plain)}" if self.plain else "")
                raise BadInput("is in allow_unique but not plain", column=name, right=right)
        for name, weight in self.importance.items():
            if name not in self.quasi:
                right = suggest_name(name, self.quasi)
                raise BadInput("has an importance but is not a quasi-identifier", column=name, right=right)
            number(f"importance of '{name}'", weight, least=0)
        if self.person is not None and not self.person.strip():
            raise BadInput("the person column has no name", right="name it, or leave the key out")
        if self.person is not None and self.rows_are_persons:
            right = "keep person if one person has several rows, else rows_are_persons"
            raise BadInput("is the person column, and rows_are_persons is declared too", column=self.person, right=right)
        if self.quasi and not 0 < sum(self.weights()) < np.inf:
            what = "every importance is 0" if sum(self.weights()) == 0 else "the importances are too large to be added"
            raise BadInput(what, right="at least one must be positive, and numbers like 1 and 2 are enough")

    def with_kinds(self, change: Callable[[Kind], Kind]) -> Schema:
        """The same schema with every kind changed.

        Args:
            change: returns the new kind for a kind.
        """
        changed = {role: {name: change(kind) for name, kind in getattr(self, role).items()} for role in KINDED}
        return self.model_copy(update=changed)

    def summary(self) -> Summary:
        """Role and kind of each column."""
        columns = [
            (name, role) for role in ("quasi", "sensitive", "plain", "identifier", "drop") for name in getattr(self, role)
        ]
        columns += [(self.person, "person")] if self.person else []
        counts = ", ".join(f"{times:,} {role}" for role, times in Counter(role for _, role in columns).items())
        kinds = {**self.sensitive, **self.quasi}
        rows = [[name, role, kind_text(kinds[name]) if role in KINDED else ""] for name, role in columns[:SHOWN_ROWS]]
        return Summary(f"Schema of {len(columns):,} columns: {counts}", [["column", "role", "kind"], *rows], rows=len(columns))

    def weights(self) -> list[float]:
        """Importance of each quasi-identifier, 1 if none is given."""
        return [float(self.importance.get(name, 1)) for name in self.quasi]

    @property
    def published(self) -> list[str]:
        """Columns of a release, in its order."""
        return list(dict.fromkeys([*self.quasi, *self.sensitive, *self.plain]))

    @property
    def removed(self) -> list[str]:
        """Columns that are not published: identifiers and dropped columns."""
        return [*self.identifier, *self.drop]

    @property
    def used(self) -> list[str]:
        """Columns of a `Table`: all but the removed ones."""
        return self.published + ([self.person] if self.person else [])

    @property
    def unique(self) -> tuple[str, ...]:
        """Identifiers that must not repeat: k would count the rows of one person as several persons.

        >>> Schema(identifier=["name"]).unique, Schema(identifier=["name"], person="id").unique
        (('name',), ())
        """
        return () if self.person is not None or self.rows_are_persons else self.identifier

    def list_needed(self, names: Sequence[str]) -> list[str]:
        """The columns to read; every column of the table must have a role, and every role its column.

        Only a dropped column may be absent, so that one recipe applies to tables with and without it.

        Args:
            names: the columns of the table.
        """
        check_count("the table has {} columns", len(names), MOST_COLUMNS)
        known = [*self.identifier, *self.used]
        for name in known:  # first, because the right spelling of a misspelled name has no role
            if name not in names:
                right = suggest_name(name, [other for other in names if other not in known] or names)
                raise BadInput("is named in the schema but not in the table", column=name, right=right)
        for name in names:
            if name not in known and name not in self.drop:
                raise BadInput("has no role", column=name, right="list it under " + ", ".join(ROLES[:-1]) + " or " + ROLES[-1])
        return self.used

    def without_identifiers(self) -> Schema:
        """The same schema for rows whose identifiers were checked and dropped."""
        return self.model_copy(update={"identifier": ()})

    def encode(self, columns: Columns) -> Table:
        """Leaf codes in canonical row order; direct identifiers are dropped here.

        Args:
            columns: the raw table.
        """
        refuse_empty(columns.rows)
        check_count("the table has {} rows", columns.rows, MOST_ROWS)
        quasi = [self.encode_column(columns[name], name, kind) for name, kind in self.quasi.items()]
        secret = [self.encode_column(columns[name], name, kind) for name, kind in self.sensitive.items()]
        plain = {name: sort_values(columns[name]) for name in self.plain}
        persons = None
        if self.person is not None:
            if (columns[self.person].codes < 0).any():
                raise BadInput("a row has no person", column=self.person, right="give every row a person")
            persons = sort_values(columns[self.person]).codes.astype(np.int64)
        return Table(
            self,
            _stack_codes([codes for codes, _, _ in quasi], columns.rows),
            _stack_codes([codes for codes, _, _ in secret], columns.rows),
            tuple(domain for _, domain, _ in quasi),
            tuple(domain for _, domain, _ in secret),
            tuple(shown for _, _, shown in secret),
            plain,
            persons,
            np.arange(columns.rows),
        ).sort_rows()

    def flag_missing(self, values: NDArray[np.generic]) -> NDArray[np.bool_]:
        """Which distinct values of a column are missing-value codes.

        Args:
            values: the distinct values of the column.
        """
        flags = np.zeros(len(values), dtype=bool)
        if not self.missing:
            return flags
        if values.dtype.kind not in "iuf":
            return np.array([text in self.missing for text in texts_of(values)], dtype=bool)
        numbers = [float(code) for code in self.missing if NUMBER_TEXT.fullmatch(code)]
        likely = np.isin(floats := values.astype(np.float64), numbers) | ~np.isfinite(floats)
        for i in np.flatnonzero(likely).tolist():  # the text decides: 9 is not "9.0"
            flags[i] = texts_of(values[i : i + 1])[0] in self.missing
        return flags

    def encode_column(self, column: Column, name: str, kind: Kind) -> tuple[Int32, Domain, NDArray[np.generic]]:
        """Leaf code of every row (a missing value is the last leaf), the domain, and the published value of each leaf.

        Args:
            column: the raw column.
            name: its name, for messages.
            kind: its kind.
        """
        used = np.flatnonzero((column.counts > 0) & ~self.flag_missing(column.values))
        values = column.values[used]
        try:
            domain, leaves = kind.bind(values)
        except BadValue as bad:
            raise bad.locate(name, column.first_row(int(used[bad.index]))) from None
        if domain.tree is None and (large := _too_large(values)).any():
            i = int(np.argmax(large))
            what, row = f"{values[i]} is too large to be exact as a number", column.first_row(int(used[i]))
            raise BadInput(what, column=name, row=row, right="make the column flat or prefix")
        leaf_of = np.full(len(column.values) + 1, domain.size, dtype=np.int32)  # the last entry is that of code -1
        leaf_of[used] = leaves
        return leaf_of[column.codes], domain, _publish_values(domain, values, leaves)


def _too_large(values: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Whole numbers that a float rounds to another one."""
    large = np.zeros(len(values), dtype=bool)
    if values.dtype.kind in "iu":
        large[np.abs(values.astype(np.float64)) >= 2.0**53] = True
    elif values.dtype.kind == "O":
        large[:] = [len(str(text)) > 15 for text in values.tolist()]
    for i in np.flatnonzero(large):
        digits = str(values[i]).strip().lstrip("+-")
        large[i] = digits.isdigit() and Decimal(float(digits)) != Decimal(digits)
    return large


def _publish_values(domain: Domain, values: NDArray[np.generic], leaves: Int32) -> NDArray[np.generic]:
    """Value of each leaf as a sensitive column publishes it: in the type of the input, numbers in one spelling.

    Numbers that are text in the input have no type yet: they get one when it is known which of them are published.
    """
    texts = texts_of(values)
    whole_values = all(text == domain.texts[leaf] for text, leaf in zip(texts, leaves.tolist(), strict=True))
    if values.dtype.kind != "O" and whole_values:  # else a leaf is coarser (a bin, a month) and published instead
        shown = np.zeros(domain.size, dtype=values.dtype)
        shown[leaves] = values
        return shown
    if domain.numbers is not None and all(NUMBER_TEXT.fullmatch(text) for text in domain.texts):
        return np.array([int(x) if x.is_integer() and abs(x) < 2**53 else x for x in domain.numbers.tolist()], dtype=object)
    return np.array(domain.texts, dtype=object)


def sort_values(column: Column) -> Column:
    """The same column with its distinct values sorted, so that codes do not depend on the order of the input."""
    column = column.drop_unused()
    values = column.values
    order = np.argsort(values.astype(str) if values.dtype.kind == "O" else values, kind="stable")
    return Column(values[order], np.append(np.argsort(order), -1).astype(np.int32)[column.codes])


def _stack_codes(codes: list[Int32], rows: int) -> Int32:
    return np.stack(codes, axis=1) if codes else np.empty((rows, 0), dtype=np.int32)


def _kind(name: object, form: object, base: Path | None) -> Kind:
    try:
        return kind_from(form, base)
    except BadInput as bad:
        if bad.column is not None:
            raise
        raise bad.replace(column=str(name)) from None


def require_schema(given: object) -> Schema:
    """The schema itself; a path, a mapping or a class in its place is refused.

    >>> require_schema("recipe.yaml")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: schema='recipe.yaml' is not a Schema; write Schema(quasi=..., sensitive=...),
    or run a recipe with run('recipe.yaml')
    """
    if isinstance(given, Schema):
        return given
    refuse_uncalled("schema", given)
    right = "write Schema(quasi=..., sensitive=...)"
    if isinstance(given, str | PathLike):
        raise BadInput(f"schema='{given}' is not a Schema", right=f"{right}, or run a recipe with run('{given}')")
    raise BadInput(f"a {type(given).__name__} is not a Schema", right=right)


def refuse_files(forms: object, right: str, file: object = None) -> None:
    """Refuse columns whose hierarchy would be read from a file: the sender of a schema must not choose what is read here.

    >>> refuse_files({"quasi": {"job": {"csv": "job.csv"}}}, "write it out")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: column 'job': its hierarchy is a file of its own; write it out
    """
    for role in KINDED:
        kinds = forms.get(role) if isinstance(forms, Mapping) else None
        for name, form in kinds.items() if isinstance(kinds, Mapping) else ():
            if form == "csv" or (isinstance(form, Mapping) and "csv" in form):
                raise BadInput("its hierarchy is a file of its own", file=file, column=str(name), right=right)
            areas = form.get("prefix") if isinstance(form, Mapping) else None
            if isinstance(areas, Mapping) and isinstance(areas.get("zip3"), str):
                raise BadInput("its ZIP areas are a file of their own", file=file, column=str(name), right=right)


def refuse_populations(forms: object, right: str, file: object = None) -> None:
    """Refuse guarantees that would read a file of people: the sender of a request must not choose what is read here.

    >>> refuse_populations([{"k_map": {"k": 5, "population": "people.csv"}}], "leave it out")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: k_map has a population of its own, 'people.csv'; leave it out
    """
    for form in forms if isinstance(forms, list) else []:
        for name, params in form.items() if isinstance(form, Mapping) else ():
            people = params.get("population") if isinstance(params, Mapping) else None
            if people is not None and (isinstance(people, bool) or not isinstance(people, int)):
                raise BadInput(f"{name} has a population of its own, {people!r}", file=file, right=right)


def explain_error(error: ValidationError, where: str, known: Iterable[str] = ()) -> BadInput:
    """The first error of pydantic as one sentence with its key; `known` are the keys that exist."""
    errors = error.errors(include_url=False)
    first = next((one for one in errors if one["type"] == "extra_forbidden"), errors[0])  # a misspelled key is missing too
    inner = first.get("ctx", {}).get("error")
    if isinstance(inner, BadInput):
        return inner
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return BadInput(f"{where} has the unknown key '{key}'", right=suggest_name(key, known) if known else None)
    if first["type"] == "missing":
        return BadInput(f"{where} has no key '{key}'", right="add it")
    place = f"{where}, key '{key}'" if key else where  # a text that is not JSON has no key
    return BadInput(f"{place}: {first['msg'].lower()}", right=f"got {first['input']!r}")
