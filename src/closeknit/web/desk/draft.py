"""A draft: an unfinished recipe, in the plain forms of a recipe file. Every change returns a new draft.

An uploaded draft may name files: those of hierarchies (`csv: FILE`) and the table itself. On a server that would give users
access to any file, so `confine_paths` restricts a draft to the one table it belongs to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from closeknit.api.recipe import Recipe, UniqueKeyLoader, parse_forms
from closeknit.api.suggestion import Suggestion
from closeknit.core.errors import BadInput
from closeknit.core.schema import refuse_files, refuse_populations
from closeknit.io.csv import CsvFormat

Draft = dict[str, Any]
IMPORT = "import it into the recipe"
NO_PEOPLE = "upload the population at the guarantees first, or request k_map with fraction"
PEOPLE = "people.parquet"  # the population, as recipes of the page name it
FORMAT_KEYS = tuple(field.name for field in fields(CsvFormat))
SHEET_KEYS = ("sheet", "header", "labels")  # of a workbook or a statistical file; no path of another file
DIGITS, SIXTIES = 600, 60  # characters of a number, and of one with colons in it
SET_ASIDE, CONFIRMED = PAGE_KEYS = ("set_aside", "confirmed")  # keys of the page only, not of a recipe
LONGEST_TEXT = 8 << 20  # characters of a recipe: a tree with a hundred thousand leaves is shorter


def start_draft(suggestion: Suggestion, path: str, csv: Mapping[str, Any] | None = None) -> Draft:
    """Return the first draft: the output of `closeknit inspect` as forms.

    >>> from closeknit.core.columns import Columns
    >>> from closeknit.api.suggestion import suggest
    >>> table = Columns.of({"name": ["Ann", "Bob"], "age": [41, 30], "disease": ["flu", "gout"]})
    >>> draft = start_draft(suggest(table), "table.csv")
    >>> draft["schema"]["quasi"], draft["models"][1]
    ({'age': 'numeric'}, {'t_closeness': {'column': 'disease', 't': 0.2}})
    """
    return read_draft(suggestion.to_recipe(path, csv))


def draft_text(draft: Mapping[str, Any]) -> str:
    """Return the draft as the text of a recipe file.

    >>> draft_text({"data": "a.csv", "schema": {"quasi": {"age": "numeric"}}})
    'data: a.csv\\nschema:\\n  quasi:\\n    age: numeric\\n'
    """
    return str(yaml.dump(dict(draft), Dumper=_NoAliases, sort_keys=False, allow_unicode=True))


def read_draft(text: str) -> Draft:
    """Parse the text of a recipe; anything else, and references that would expand, are refused.

    >>> read_draft("models: [{k_anonymity: {k: 6}}]")
    {'models': [{'k_anonymity': {'k': 6}}]}
    >>> read_draft("a: &x [1]\\nb: *x")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: the recipe refers to itself with '*x'; write the part out
    """
    if len(text) > LONGEST_TEXT:
        raise BadInput(f"the recipe has {len(text):,} characters", right=f"at most {LONGEST_TEXT:,} are allowed")
    forms = parse_forms(text, "the recipe", _NoReferences)
    if not isinstance(forms, Mapping):
        raise BadInput("this is not a recipe", right="it must have the keys data, schema and models")
    return {str(key): _plain(part) for key, part in forms.items()}


def _plain(form: Any) -> Any:
    """Return the form with keys and texts that JSON can write; YAML has others too.

    >>> _plain({date(2024, 1, 31): [1]})
    {'2024-01-31': [1]}
    """
    if isinstance(form, Mapping):
        return {str(key) if isinstance(key, date) else _plain(key): _plain(part) for key, part in form.items()}
    if isinstance(form, list):
        return [_plain(part) for part in form]
    if isinstance(form, str) and any("\ud800" <= sign <= "\udfff" for sign in form):
        raise BadInput("the recipe contains a lone surrogate", right="write it as UTF-8, without \\ud800 to \\udfff")
    return form


def confine_paths(forms: Mapping[str, Any], path: str, people: Path | None = None) -> Draft:
    """Return the forms with the table at `path` and the population at `people`; forms that would read any other file are
    refused.

    >>> confine_paths({"data": {"path": "../secret", "delimiter": ";"}, "schema": {}}, "table.csv")["data"]
    {'path': 'table.csv', 'delimiter': ';'}
    >>> confine_paths({"schema": {"quasi": {"job": {"csv": "job.csv"}}}}, "table.csv")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: column 'job': its hierarchy is a file of its own; import it into the recipe
    """
    draft = dict(forms)
    data = draft.get("data")
    csv = {key: data[key] for key in (*FORMAT_KEYS, *SHEET_KEYS) if key in data} if isinstance(data, Mapping) else {}
    draft["data"] = {"path": path, **csv} if csv else path
    refuse_files(draft.get("schema"), IMPORT)
    if people is None:
        refuse_populations(draft.get("models"), NO_PEOPLE)
        return draft
    return with_population(draft, str(people))


def with_population(draft: Mapping[str, Any], people: str) -> Draft:
    """Return the draft with another file of people in the guarantees that name one.

    >>> with_population({"models": [{"k_map": {"k": 3, "population": "a.csv"}}]}, "b.csv")["models"]
    [{'k_map': {'k': 3, 'population': 'b.csv'}}]
    """
    models = draft.get("models")
    changed = [_replace_population(form, people) for form in models] if isinstance(models, list) else models
    return {**draft, "models": changed} if "models" in draft else dict(draft)


def population_of(draft: Mapping[str, Any]) -> str | None:
    """Return the file of people that a guarantee of the draft names; None if none does.

    >>> population_of({"models": [{"k_anonymity": {"k": 3}}, {"k_map": {"k": 3, "population": "a.csv"}}]})
    'a.csv'
    """
    forms = [form for form in draft.get("models") or [] if isinstance(form, Mapping)]
    return next((form[name]["population"] for form in forms for name in _names_people(form)), None)


def _replace_population(form: Any, people: str) -> Any:
    if not isinstance(form, Mapping):
        return form
    named = _names_people(form)
    return {name: {**given, "population": people} if name in named else given for name, given in form.items()}


def _names_people(form: Mapping[str, Any]) -> list[str]:
    """Guarantees in this form whose population is a file."""
    given = {name: params for name, params in form.items() if isinstance(params, Mapping)}
    return [name for name, params in given.items() if isinstance(params.get("population"), str)]


def with_keys(draft: Mapping[str, Any], **keys: Any) -> Draft:
    """Return the draft with these keys; a key whose value is false or 0 is removed.

    >>> with_keys({"models": [], "suppress": 0.1}, suppress=0, allow_vacuous=True)
    {'models': [], 'allow_vacuous': True}
    """
    return {key: value for key, value in {**draft, **keys}.items() if key not in keys or value}


def recipe_of(draft: Mapping[str, Any], folder: Path | None = None) -> Recipe:
    """Return the draft as a recipe; `folder` contains its table.

    >>> recipe_of({"schema": {"quasi": {"age": "numeric"}}, "models": [{"k_anonymity": {"k": 5}}]}).models
    [KAnonymity(k=5, over=None)]
    """
    return Recipe.of(without_page_keys(draft), folder)


def without_page_keys(draft: Mapping[str, Any]) -> Draft:
    """Return the draft without the keys that only the page uses.

    >>> without_page_keys({"models": [], "set_aside": []})
    {'models': []}
    """
    return {key: part for key, part in draft.items() if key not in PAGE_KEYS}


class _NoReferences(UniqueKeyLoader):
    """Refuses references: a few lines of them can expand to more than any memory holds."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            anchor = self.peek_event().anchor
            raise BadInput(f"the recipe refers to itself with '*{anchor}'", right="write the part out")
        return super().compose_node(parent, index)


def _number(loader: Any, node: Any) -> Any:
    """Limit the length of a number: parsing YAML's sexagesimal numbers costs the square of it."""
    if len(node.value) > (SIXTIES if ":" in node.value else DIGITS):
        raise BadInput(f"the recipe has a number of {len(node.value):,} characters", right="write a shorter one")
    return yaml.SafeLoader.yaml_constructors[node.tag](loader, node)


for _tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float"):
    _NoReferences.add_constructor(_tag, _number)


class _NoAliases(yaml.SafeDumper):
    """Writes shared parts twice instead of as references."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
