"""`Recoding`: the labels that a release gave to its rows, to write later rows alike. It is private.

It holds the schema of the raw table and, for each published class, the label of every quasi-identifier. A full-domain recoding
(`Incognito`) also has the label of every single value of a column: a lookup table for other programs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from closeknit.core.certificate import Certificate
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.core.kinds import Numeric, texts_of
from closeknit.core.levels import at_level, top_level
from closeknit.core.params import build_from_form
from closeknit.core.row_sorting import groups, row_of_each
from closeknit.core.schema import Schema
from closeknit.core.strict_json import parse_json, read_text
from closeknit.core.table import Form
from closeknit.forms import REGISTRY as FORMS
from closeknit.io.canonical import canonical_blocks
from closeknit.io.folders import write_whole
from closeknit.release.origin import Origin

FORMAT = 1
PRIVATE = 0o600
KEYS = {"recoding", "schema", "models", "form", "classes", "lookup"}


@dataclass(frozen=True)
class Recoding:
    """Labels of an earlier release.

    Args:
        schema: the columns of the raw table.
        models: the guarantees, as a recipe writes them.
        form: the form of the release, as a recipe writes it.
        classes: for each class the label of every quasi-identifier; an empty text is a missing cell.
        lookup: per column the label of every value, if the recoding is full-domain.
    """

    schema: Schema
    models: tuple[Mapping[str, Any], ...]
    form: Mapping[str, Any]
    classes: tuple[tuple[str, ...], ...] = field(repr=False)
    lookup: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, columns: Columns, certificate: Certificate, origin: Origin) -> Recoding:
        """The recoding of a release.

        Args:
            columns: the written cells.
            certificate: of the release.
            origin: the table behind it.
        """
        form: Form = build_from_form("form", certificate.form, FORMS)
        published = Schema.from_forms(certificate.columns)
        if form.name != "generalized" or form.attested or form.suppressed != "removed":
            right = "write ranges: form generalized, with cells 'ranges', 'stars', 'bounds' or 'sample'"
            raise BadInput("later rows cannot be written like this release: its cells are not labels of classes", right=right)
        labels = form.read_labels(columns, published)
        cells = [[*texts_of(labels[name].values), ""] for name in published.quasi]
        member = row_of_each(*groups([labels[name].coded for name in published.quasi], columns.rows))
        written = (
            [texts[code] for code in labels[name].codes[member]] for name, texts in zip(published.quasi, cells, strict=True)
        )
        classes = tuple(zip(*written, strict=True))
        with_steps = {
            name: kind for name, kind in published.quasi.items() if isinstance(kind, Numeric)
        }  # as they were proposed
        schema = origin.schema.model_copy(update={"quasi": {**origin.schema.quasi, **with_steps}})
        models = tuple(guarantee.model for guarantee in certificate.guarantees)
        return cls(schema, models, certificate.form, classes, _look_up(origin, schema, form))

    def to_json(self) -> str:
        """The recoding as text, on one line: the standard library indents many classes slowly."""
        record = {"recoding": FORMAT, "schema": self.schema.forms(), "models": list(self.models), "form": dict(self.form)}
        return json.dumps({**record, "classes": self.classes, "lookup": dict(self.lookup)}, ensure_ascii=False) + "\n"

    def save(self, path: str | PathLike[str]) -> None:
        """Write the recoding to a file that only its owner can read.

        Args:
            path: the file.
        """
        write_whole(path, self.to_json().encode(), PRIVATE)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Recoding:
        """Read a saved recoding.

        Args:
            path: the file.
        """
        right = "name the recoding.json of a private folder"
        record = parse_json(read_text(path, right), path, right)
        if not isinstance(record, dict) or set(record) != KEYS or record["recoding"] != FORMAT:
            raise BadInput("is not a recoding of this version", file=path, right=right)
        classes = tuple(tuple(map(str, row)) for row in record["classes"])
        schema = Schema.from_forms(record["schema"])
        if any(len(row) != len(schema.quasi) for row in classes):
            raise BadInput("has classes that do not fit its columns", file=path, right=right)
        return cls(schema, tuple(record["models"]), record["form"], classes, record["lookup"])

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write the lookup table of a full-domain recoding: column, value, label. It lists values of the table: private.

        Args:
            path: the file.
        """
        rows = [(name, value, label) for name, labels in self._require_lookup().items() for value, label in labels.items()]
        cells: dict[str, list[object]] = {
            key: [row[i] or None for row in rows] for i, key in enumerate(("column", "value", "label"))
        }
        write_whole(path, canonical_blocks(Columns.of(cells)), PRIVATE)

    def to_sql(self) -> str:
        """The lookup table as SQL: one CASE expression per column, for a SELECT. It lists values of the table: private."""
        return ",\n".join(_case(name, labels) for name, labels in self._require_lookup().items())

    def _require_lookup(self) -> Mapping[str, Mapping[str, str]]:
        if not self.lookup:
            right = "use a full-domain method, such as incognito, or apply the recoding with closeknit"
            raise BadInput("a value has different labels in different classes, so there is no lookup table", right=right)
        return self.lookup


def _look_up(origin: Origin, schema: Schema, form: Form) -> dict[str, dict[str, str]]:
    """The label of every value of each column, if all columns are written at one level."""
    levels = form.levels or {}
    if set(levels) != set(schema.quasi):
        return {}
    found = {}
    for name, kind in schema.quasi.items():
        _, domain, _ = schema.encode_column(origin.columns[name], name, kind)
        level = levels[name]
        leaves = np.arange(domain.size, dtype=np.int32)
        cells = at_level(domain, top_level(domain) if isinstance(level, str) else level)
        found[name] = dict(zip(domain.texts, cells.labels(leaves, leaves), strict=True))
    return found


def _case(name: str, labels: Mapping[str, str]) -> str:
    column = '"' + name.replace('"', '""') + '"'
    quoted = [(value.replace("'", "''"), label.replace("'", "''")) for value, label in labels.items()]
    lines = [f"  WHEN '{value}' THEN '{label}'" for value, label in quoted]
    return "\n".join([f"CASE CAST({column} AS VARCHAR)", *lines, "  ELSE '*'", f"END AS {column}"])
