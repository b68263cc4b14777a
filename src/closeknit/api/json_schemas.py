"""JSON Schemas of the files that closeknit writes: certificate, report, private report and recipe.

`closeknit/schemas/` has them in the package; `make schemas` writes them from the records in the code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from closeknit.api.presets import PRESETS
from closeknit.api.recipe import FORMS, METHODS, MODELS, RecipeKeys
from closeknit.core.certificate import Certificate, Document
from closeknit.core.formats import FORMAT
from closeknit.core.schema import Schema
from closeknit.core.strict_json import json_text
from closeknit.report.report_records import PrivateReport, PublicReport
from closeknit.streams import REGISTRY as STREAMS
from closeknit.streams.stream_request import DEFAULT, OTHER_KEYS, list_params

FOLDER = Path(__file__).parents[1] / "schemas"
PYTHON = re.compile(r"^(?:Args:|>>> )", re.MULTILINE)  # parts of a docstring that are not about the file
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def build_json_schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schema of each kind of file, by its name.

    >>> sorted(build_json_schemas())
    ['certificate', 'private_report', 'recipe', 'report']
    >>> "Args:" in str(build_json_schemas())  # descriptions are about files, not about arguments of Python
    False
    """
    documents: dict[str, type[Document]] = {"certificate": Certificate, "report": PublicReport, "private_report": PrivateReport}
    found = {name: document.model_json_schema() for name, document in documents.items()}
    for schema in found.values():
        schema["properties"]["format"] = {"const": FORMAT}
        schema["required"] = ["format", *schema["required"]]
    found["recipe"] = _build_recipe_schema()
    return {name: {"$schema": DIALECT, **_tidy(schema)} for name, schema in found.items()}


def write_json_schemas() -> None:
    """Write each JSON Schema into a file of its own, in the package."""
    FOLDER.mkdir(exist_ok=True)
    for name, schema in build_json_schemas().items():
        (FOLDER / f"{name}.schema.json").write_text(json_text(schema), encoding="utf-8")


def _build_recipe_schema() -> dict[str, Any]:
    """The keys of a recipe; parameters of guarantees, methods, forms and streams are checked when they are built."""
    schema, nothing = RecipeKeys.model_json_schema(), {"type": "null"}
    keys = schema["properties"]
    keys["schema"] = {"type": "object", "propertyNames": {"enum": [*Schema.model_fields]}}
    keys["models"] |= {"items": _name_one(MODELS)}
    registries: dict[str, Mapping[str, Any]] = {"method": METHODS, "form": FORMS, "stream": STREAMS, "preset": PRESETS}
    for key, known in registries.items():
        keys[key] |= {"anyOf": [{"enum": sorted(known)}, _name_one(known), nothing]}
    named = sorted([*STREAMS, *list_params(DEFAULT), *OTHER_KEYS])
    keys["stream"]["anyOf"][1] = {"type": "object", "propertyNames": {"enum": named}, "minProperties": 1}
    keys["suppress"] |= {"type": "number", "minimum": 0, "maximum": 1}
    return {**schema, "required": ["schema"], "anyOf": [{"required": [key]} for key in ("models", "stream", "preset")]}


def _name_one(known: Mapping[str, Any]) -> dict[str, Any]:
    """One of the registered names with its parameters: `{k_anonymity: {k: 5}}`."""
    return {"type": "object", "propertyNames": {"enum": sorted(known)}, "minProperties": 1, "maxProperties": 1}


def _tidy(schema: Any) -> Any:
    """Drop titles that repeat the names of keys, and what a docstring says of Python; a property may be called `title`."""
    if isinstance(schema, list):
        return [_tidy(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _tidy(value) for key, value in schema.items() if key != "title" or not isinstance(value, str)}
    if isinstance(text := found.get("description"), str):
        found["description"] = PYTHON.split(text, maxsplit=1)[0].rstrip()
    return found


if __name__ == "__main__":
    write_json_schemas()
