"""`Recipe`: one private YAML file with everything needed to repeat a release."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError

from closeknit.api.presets import Preset, expand_preset
from closeknit.core.certificate import model_form
from closeknit.core.certifying import check_columns
from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.method import Method
from closeknit.core.model import Model
from closeknit.core.params import build, build_from_form, number, take
from closeknit.core.requested_models import list_models
from closeknit.core.schema import Schema, explain_error
from closeknit.core.strict_json import read_text
from closeknit.core.table import Form
from closeknit.forms import REGISTRY as FORMS
from closeknit.io.csv import CsvFormat
from closeknit.io.database import Database
from closeknit.io.source import Source
from closeknit.io.sources import source_class
from closeknit.methods import REGISTRY as METHODS
from closeknit.methods import Knit, Mondrian
from closeknit.models import REGISTRY as MODELS
from closeknit.release import FORMATS
from closeknit.streams.stream import Stream
from closeknit.streams.stream_request import StreamRequest

FormSpec = Form | str | Mapping[str, Any]  # a form, its name, or as a recipe writes it
MethodSpec = Method | str | Mapping[str, Any]
ModelSpecs = Sequence[Model | Mapping[str, Any]]


class RecipeKeys(BaseModel):
    """The keys of a recipe and the types of their values."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    preset: Any = None  # expanded before the other keys are read
    data: str | dict[str, Any] | None = None
    columns: dict[str, Any] = Field(alias="schema")
    models: list[Any]
    method: Any = None  # default: the usual one of the form
    stream: Any = None  # instead of a method
    form: Any = None  # default: the usual one of the method
    suppress: Any = 0.0
    escape_formulas: StrictBool = False
    allow_vacuous: StrictBool = False
    seed: int | None = None
    notes: list[Any] = []  # written with a release to describe how the method worked; not read
    output: dict[str, Any] = {}


class Recipe:
    """A parsed recipe with its schema, models, method and form.

    Read one with `Recipe.read(path)` or `Recipe.of(mapping)`.

    Args:
        keys: The checked keys of the recipe.
        base: The folder that paths in the recipe are relative to.
        file: The name of the recipe in messages.
        preset: What the recipe follows; its keys are expanded already.
    >>> recipe = Recipe.of({"data": "a.csv", "schema": {"quasi": {"age": "numeric"}}, "models": [{"k_anonymity": {"k": 5}}]})
    >>> recipe.models, recipe.method
    ([KAnonymity(k=5, over=None)], Knit(proposals=None, seconds=None))
    """

    def __init__(self, keys: RecipeKeys, base: Path | None, file: object, preset: Preset | None = None) -> None:
        self.preset, self.file = preset, file
        place = {"path": keys.data} if isinstance(keys.data, str) else dict(keys.data or {})
        self.data = _find_source(place, base)
        if self.data is None:
            self.data = _data_path(place.pop("path", None), place.pop("table", None), base, file)
            self.csv = build("data", CsvFormat, place) if place else None
        else:
            self.csv = None
        self.schema = Schema.from_forms(keys.columns, base)
        self.models = [model.relative_to(base or Path()) for model in models_from(keys.models)]
        self.stream = None if keys.stream is None else StreamRequest.of(keys.stream)
        self._method = usual_method(form_of(keys.form)) if keys.method is None else method_of(keys.method)
        if self.stream is not None and "method" in keys.model_fields_set:
            raise BadInput("the recipe has a method and a stream", file=file, right="keep one of them")
        self.form = form_of(keys.form)
        self.suppress, self.seed = float(number("suppress", keys.suppress, least=0, most=1)), keys.seed
        self.escape_formulas, self.allow_vacuous = keys.escape_formulas, keys.allow_vacuous
        self.format = keys.output.get("format")
        place = {key: value for key, value in keys.output.items() if key != "format"}
        self.target = _find_source(place, base) if place.keys() & {"url", "url_file"} else None
        if self.target is not None and self.stream is None:
            raise BadInput("the recipe names a database for its output", file=file, right="name it with --to instead")
        for key in place:
            if self.target is None:
                what = f"recipe, key 'output' has the unknown key '{key}'"
                raise BadInput(what, file=file, right=suggest_name(key, ["format", "url", "url_file"]))
        if self.format not in (None, *FORMATS):
            raise BadInput(f"output format {self.format!r} is unknown", file=file, right=suggest_name(self.format, FORMATS))

    @property
    def method(self) -> Any:
        """The method, which assigns rows to equivalence classes."""
        if self.stream is not None:
            what = f"the recipe describes the stream '{self.stream.name}', not a table"
            raise BadInput(what, right="run it with 'closeknit stream', or name a method instead of the stream")
        return self._method

    def build_stream(self) -> Stream:
        """A new stream; the recipe must describe one."""
        assert self.stream is not None
        return self.stream.build(self.schema, self.models, self.seed)

    @property
    def source(self) -> Source | Path | str:
        """The table as `anonymize` takes it; a recipe without one is refused."""
        if self.data is None:
            raise BadInput("the recipe names no data", file=self.file, right="add the key data with the path of the table")
        return self.data

    @property
    def options(self) -> dict[str, Any]:
        """The options of `anonymize`, `compare` and `frontier`."""
        return {"suppress": self.suppress, "form": self.form, "seed": self.seed}

    @classmethod
    def of(cls, forms: Any, base: Path | None = None, file: object = None) -> Recipe:
        """Build a recipe from plain mappings."""
        if not isinstance(forms, Mapping):
            right = "it must have the keys data, schema and models; 'closeknit inspect' writes one for a table"
            raise BadInput("this is not a recipe", file=file, right=right)
        forms, preset = expand_preset(forms)
        try:
            keys = RecipeKeys.model_validate({"models": [], **forms} if "stream" in forms else dict(forms))
        except ValidationError as error:
            names = [field.alias or name for name, field in RecipeKeys.model_fields.items()]
            raise explain_error(error, "recipe", names).replace(file=file) from None
        return cls(keys, base, file, preset)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Recipe:
        """Read a recipe from a YAML file; paths in it are relative to the file."""
        file = Path(path)
        forms = parse_forms(read_text(file, "name a recipe file"), file)
        try:
            recipe = cls.of(forms, file.parent, file)
            check_columns(recipe.schema, recipe.models)
            return recipe
        except BadInput as bad:
            if bad.file is not None:
                raise
            raise bad.replace(file=file) from None


def _find_source(place: Mapping[str, Any], base: Path | None) -> Source | Path | str | None:
    """Return the registered source of the data, a file relative to the recipe; None for a plain file."""
    file = place.get("url_file")
    named = str(place.get("url", place.get("path", ""))) if file is None else f"@{file}"
    found = source_class(named)
    if found is None:
        return None
    given = {key: value for key, value in place.items() if key not in ("url", "path", "url_file")}
    given |= {key: str((base or Path()) / str(given[key])) for key in found.files if given.get(key) is not None}
    source = build("data", found, {found.where(): found.locate(named, base), **given})
    if isinstance(source, Database) and source.holds_password:
        right = "write ${VARIABLE} in its place, or use url_file or keyring://service/user"
        warnings.warn(f"the recipe contains a password of {source.place}; {right}", stacklevel=2)
    return source


def _data_path(path: object, table: object, base: Path | None, file: object) -> Path | str | None:
    """Return a file relative to the recipe; an address (`hdfs://...`) or the name of a Spark table stays as it is."""
    if path is not None and table is not None:
        raise BadInput("recipe, key 'data' has both path and table", file=file, right="keep one of them")
    named = path if table is None else table
    if named is not None and not str(named).isprintable():
        raise BadInput(f"the path of the data is {named!r}", file=file, right="name a file")
    if path is None or "://" in str(path):
        return None if named is None else str(named)
    return (base or Path()) / str(path)


class UniqueKeyLoader(yaml.SafeLoader):
    """Refuses a duplicate key: the second would silently replace the first, and a guarantee would be lost."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if isinstance(key, yaml.ScalarNode) and (key.tag, key.value) in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key '{key.value}' occurs twice", key.start_mark)
            seen.add((key.tag, key.value))
        return super().construct_mapping(node, deep)


def parse_forms(text: str, file: object, loader: type[yaml.SafeLoader] = UniqueKeyLoader) -> Any:
    """Parse the text of a recipe; `file` is its name in messages.

    >>> parse_forms("k: 6\\nk: 7", "the recipe")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: the recipe: is not valid YAML at line 2: the key 'k' occurs twice; correct it, ...
    """
    try:
        return yaml.load(text, loader)  # a safe one
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, RecursionError) as error:  # also 2024-13-45 and !!int x
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        why = f": {problem}" if (problem := getattr(error, "problem", None)) else ""
        right = "correct it, or create one with 'closeknit inspect'"
        raise BadInput(f"is not valid YAML{where}{why}", file=file, right=right) from None


def models_from(requested: object) -> list[Model]:
    """Return models from instances, or from the forms of a recipe: `[{k_anonymity: {k: 6}}, ...]`.

    >>> models_from([{"t_closeness": {"column": "salary", "t": 0.2}}])
    [TCloseness(column='salary', t=0.2, distance=None, over=None)]
    """
    if not isinstance(requested, list | tuple):
        return list_models(requested)
    return list_models(
        [build_from_form("model", form, MODELS) if isinstance(form, str | Mapping) else form for form in requested]
    )


def method_of(requested: MethodSpec) -> Method:
    """Return a method from an instance, its name, or its form in a recipe.

    >>> method_of({"sabre": {"fill": "knn"}}).fill
    'knn'
    """
    method: Method = take("method", requested, METHODS, Method)
    return method


def form_of(requested: FormSpec | None) -> Form | None:
    """Return a form from an instance, its name, or its form in a recipe.

    >>> form_of("bucketized")
    Bucketized(number='bucket')
    """
    return None if requested is None else take("form", requested, FORMS, Form)


def usual_method(form: Form | None) -> Method:
    """Return the default method: Knit for generalized cells, Mondrian for buckets with exact cells.

    >>> usual_method(None).name, usual_method(form_of("bucketized")).name
    ('knit', 'mondrian')
    """
    return Mondrian() if form is not None and form.added else Knit()


@dataclass(frozen=True)
class Request:
    """What `anonymize` is asked for, checked and with its seed.

    Args:
        schema: role, kind and hierarchy of each column.
        models: all guarantees, with those of the method.
        method: the algorithm.
        form: how the release is written; None: as the method usually does.
        suppress: largest share of suppressed rows.
        seed: the seed.
        escape_formulas: whether text that a spreadsheet would execute is escaped.
        allow_vacuous: whether a guarantee that excludes nothing is noted, not refused.
    """

    schema: Schema
    models: Sequence[Model]
    method: Method
    form: Form | None
    suppress: float
    seed: int
    escape_formulas: bool
    allow_vacuous: bool

    def recipe(self, data: dict[str, Any] | None, notes: Sequence[str] = ()) -> dict[str, Any]:
        """Return mappings that `Recipe.of` reads; `notes` describe how the method worked."""
        assert self.form is not None, "a release has a form"
        flags = {"escape_formulas": self.escape_formulas, "allow_vacuous": self.allow_vacuous}
        return {
            "data": data,
            "schema": self.schema.forms(),
            "models": [model_form(model.relative_to(Path())) for model in self.models],
            "method": model_form(self.method),
            "form": model_form(self.form),
            "suppress": self.suppress,
            **{name: True for name, on in flags.items() if on},
            "seed": self.seed,
            **({"notes": list(notes)} if notes else {}),
        }
