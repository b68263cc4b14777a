"""Guarantees on a page: what each one means in a plain sentence, its fields, and its level in the raw table.

The level of the raw table treats rows with equal quasi-identifiers as a class. It shows how far the table is from a guarantee
before any generalization. The guarantee itself decides whether it has a meaning for a column.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any

from closeknit.api.recipe import models_from
from closeknit.core.certificate import Guarantee, model_form
from closeknit.core.classes import Classes
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.core.model import Model
from closeknit.core.params import choice
from closeknit.core.row_sorting import groups
from closeknit.core.schema import Schema
from closeknit.core.subsets import SIZES
from closeknit.core.table import Partition
from closeknit.models import REGISTRY
from closeknit.models.beta_likeness import KINDS as LIKENESS
from closeknit.models.diverse_slicing import WORDS as WEIGHTS
from closeknit.models.k_map import KINDS as MAPS
from closeknit.models.l_diversity import KINDS as DIVERSITY
from closeknit.models.t_closeness import DISTANCES
from closeknit.release.guarantee_meanings import meaning
from closeknit.web.desk.draft import CONFIRMED, PEOPLE, Draft
from closeknit.web.desk.fields import Field, number_of, parse_fields
from closeknit.web.desk.raw_examples import CurrentLevel, Example, unique_persons
from closeknit.web.desk.roles import attributes_of

SECRET = Field("column", "choice", "the sensitive attribute", needed=True)
OVER = Field("over", "text", "columns an adversary knows, such as age, sex; or pairs, triples; empty: all quasi-identifiers")
REFERENCE = Field("reference", "text", "the distribution to compare with, such as flu: 0.6, gout: 0.4; empty: that of all rows")
SIZE = Field("N", "whole", "people in the population", needed=True, default=1_000_000, least=1)
COUNTED = Field("population", "yes", "count the people of the uploaded population")
ESTIMATED = ("fraction", "alpha", "kind")  # parameters of k_map without a population
FIELDS: dict[str, tuple[Field, ...]] = {
    "k_anonymity": (Field("k", "whole", "rows that look the same", needed=True, default=6, least=1), OVER),
    "l_diversity": (
        SECRET,
        Field("l", "number", "different sensitive values in each class", needed=True, default=3, least=1),
        Field("kind", "choice", "what counts as a value", default="distinct", choices=DIVERSITY),
        Field("c", "number", "largest weight of the most frequent value", above=0, only=("kind", ("recursive",))),
        Field("missing_is_a_value", "yes", "a missing value counts as one of the values"),
        OVER,
    ),
    "t_closeness": (
        SECRET,
        Field("t", "number", "largest distance of a class from the whole table", needed=True, default=0.2, least=0, most=1),
        Field("distance", "choice", "which values are near; default: by the kind of the column", choices=DISTANCES),
        OVER,
        REFERENCE,
    ),
    "beta_likeness": (
        SECRET,
        Field("beta", "number", "largest relative gain in the probability of a value", needed=True, default=2, above=0),
        Field("kind", "choice", "which values it covers", default="enhanced", choices=LIKENESS),
        Field("below", "whole", "the depth under which nodes are judged", least=0, only=("kind", ("semantic",))),
        Field("eps", "number", "the widest range that is judged", least=0, only=("kind", ("range",))),
        Field("relative", "yes", "the range as a share of its least value", only=("kind", ("range",))),
        OVER,
        REFERENCE,
    ),
    "delta_disclosure": (
        SECRET,
        Field("delta", "number", "largest logarithm of the ratio of probabilities", needed=True, default=1.5, above=0),
        OVER,
        REFERENCE,
    ),
    "diverse_slicing": (
        SECRET,
        Field("l", "number", "no value has a probability above 1/l", needed=True, default=3, least=1),
        Field("weight", "choice", "how buckets are weighted", default="local", choices=tuple(WEIGHTS)),
    ),
    "posterior_bound": (
        SECRET,
        Field("gamma", "number", "largest factor by which odds may change", needed=True, default=7, least=1),
    ),
    "transparency": (
        Field("eps", "number", "largest change of the log-odds of a release", needed=True, default=1, least=0.01, most=10),
    ),
    "k_map": (
        Field("k", "whole", "people of the population who look the same", needed=True, default=5, least=2),
        Field(
            "fraction", "number", "share of the population that is in the table", needed=True, default=0.1, least=0.001, most=1
        ),
        COUNTED,
        Field("alpha", "number", "largest probability that the estimate is wrong", default=0.05, least=0.001, most=0.5),
        Field("kind", "choice", "how people are estimated from rows", default="truncated", choices=MAPS),
    ),
    "average_risk": (
        Field("r", "number", "largest share of right matches, on average", needed=True, default=0.1, least=0.001, most=0.99),
        COUNTED,
    ),
    "delta_presence": (
        Field("lo", "number", "least chance that a person is in the table", needed=True, default=0, least=0),
        Field("hi", "number", "largest chance that a person is in the table", needed=True, default=0.5, least=0.001),
    ),
    "population_uniqueness": (
        Field("r", "number", "largest share of unique people", needed=True, default=0.01, least=0, most=0.99),
        SIZE,
    ),
    "records_at_risk": (
        Field("t", "number", "risk above which a row is at risk", needed=True, default=0.2, least=0.001, most=0.99),
        Field("share", "number", "largest share of rows at risk", needed=True, default=0.05, least=0, most=0.99),
    ),
}


@dataclass(frozen=True)
class GuaranteeOffer:
    """One guarantee about one column (or about the rows): its meaning, its fields, and the level of the raw table."""

    model: str  # its name in a recipe
    title: str
    column: str | None
    sentence: str  # its meaning, with the default parameters
    example: str  # from this table
    today: CurrentLevel
    fields: tuple[Field, ...]
    refused: Mapping[str, str]  # choices of a field without a meaning here, with the reason; "" is the guarantee itself
    forms: tuple[str, ...]  # forms of a release that it applies to


@dataclass(frozen=True)
class Assessment:
    """The level of the raw table for every guarantee that could be requested."""

    rows: int
    quasi: tuple[str, ...]
    combinations: int  # of quasi cells
    smallest: int  # rows of the rarest one
    alone: int  # rows (or persons) with a unique combination
    persons: bool  # whether persons are counted
    offered: tuple[GuaranteeOffer, ...]


def assess_table(columns: Columns, schema: Schema, people: int | None = None) -> Assessment:
    """Measure the raw table for every registered guarantee; `people` is the number of people of the population.

    >>> import closeknit as ck
    >>> found = assess_table(ck.datasets.hospital(200), ck.datasets.hospital_schema())
    >>> found.smallest, found.offered[0].example
    (1, 'Today the rarest combination of age, sex, zip, job and admission is shared by 1 row; 200 of 200 rows are unique.')
    """
    if not schema.quasi:
        raise BadInput("no column is a quasi-identifier", right="choose those that could identify a person")
    schema = schema.without_identifiers()
    table = schema.encode(columns)
    sizes = [domain.size + 1 for domain in table.quasi_domains]
    class_of, count = groups([(table.quasi[:, j], size) for j, size in enumerate(sizes)], len(table))
    classes = table.count_classes(Partition(class_of, count))
    example = Example(table, class_of, classes)
    whole = table.one_class()
    offered = [
        _build_offer(name, column, example, whole, people) for name in list_offered(people) for column in _columns(name, schema)
    ]
    alone = unique_persons(table, class_of, classes)
    return Assessment(
        len(table), tuple(schema.quasi), count, int(classes.persons.min()), alone, table.persons is not None, tuple(offered)
    )


def list_offered(people: int | None = None) -> list[str]:
    """Return the guarantees that a page offers: those that need a population only where one was uploaded.

    >>> "delta_presence" in list_offered(), "delta_presence" in list_offered(90), "k_map" in list_offered()
    (False, True, True)
    """
    return [name for name, model in REGISTRY.items() if people is not None or not model.needs_file]


def _columns(name: str, schema: Schema) -> Sequence[str | None]:
    return list(schema.sensitive) if any(field.name == "column" for field in fields_of(name)) else [None]


def fields_of(name: str) -> tuple[Field, ...]:
    """Return the fields of a guarantee; those of a user's own model are derived from its parameters.

    >>> [field.name for field in fields_of("t_closeness")]
    ['column', 't', 'distance', 'over', 'reference']
    """
    choice("guarantee", name, tuple(REGISTRY))
    if name in FIELDS:
        return FIELDS[name]
    found: list[Field] = []
    for field in fields(REGISTRY[name]):  # type: ignore[arg-type]
        needed = field.default is MISSING
        kind = "whole" if field.type in (int, "int") else "text" if field.type in (str, "str") else "number"
        usual = None if needed else field.default
        found.append(SECRET if field.name == "column" else Field(field.name, kind, field.name, needed, usual))
    return tuple(found)


def guarantee_form(name: str, given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Parse a guarantee from a form; a wrong value is refused with a sentence.

    >>> guarantee_form("t_closeness", {"column": "disease", "t": "0.2", "distance": ""})
    {'t_closeness': {'column': 'disease', 't': 0.2}}
    >>> guarantee_form("k_anonymity", {"k": "0"})
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: model 'k_anonymity': k=0 is too small; k must be a whole number of at least 1
    """
    listed = fields_of(name)
    params = parse_fields(listed, given)
    for field in listed:  # a field that belongs to another choice may still contain text
        whose, values = field.only or ("", ())
        usual = next((other.default for other in listed if other.name == whose), None)
        if field.only and params.get(whose, usual) not in values:
            params.pop(field.name, None)
    if params.get("relative") is False:
        del params["relative"]
    if (over := params.get("over")) and over not in SIZES:
        params["over"] = [name.strip() for name in str(over).split(",")]
    if isinstance(reference := params.get("reference"), str):
        params["reference"] = _parse_shares(reference)
    if REGISTRY[name].needs_file or params.pop("population", False):
        params = {key: value for key, value in params.items() if key not in ESTIMATED} | {"population": PEOPLE}
    form = {name: params}
    models_from([form])
    return form


def _parse_shares(text: str) -> dict[str, Any]:
    """Parse a distribution, the share of each value.

    >>> _parse_shares("flu: 0.6, gout: 2/5")
    {'flu': 0.6, 'gout': '2/5'}
    """
    parts = [part.rpartition(":") for part in text.split(",")]
    if not all(value.strip() for value, _, _ in parts):
        raise BadInput(f"'{text}' is no distribution", right="enter values and shares, such as flu: 0.6, gout: 0.4")
    return {value.strip(): number_of(f"the share of {value.strip()}", share.strip()) for value, _, share in parts}


def with_guarantee(draft: Mapping[str, Any], form: Mapping[str, Any], place: int | None = None) -> Draft:
    """Return the draft with one more guarantee, or with another one at a place.

    >>> with_guarantee({"models": [{"k_anonymity": {"k": 6}}]}, {"k_anonymity": {"k": 4}}, 0)["models"]
    [{'k_anonymity': {'k': 4}}]
    """
    models = list(draft.get("models") or [])
    if place is None:
        models += [dict(form)] if dict(form) not in models else []
    else:
        models[_place(models, place)] = dict(form)
    confirmed = [name for name in draft.get(CONFIRMED) or [] if name not in attributes_of(form)]
    return {**draft, "models": models, **({CONFIRMED: confirmed} if CONFIRMED in draft else {})}


def without_guarantee(draft: Mapping[str, Any], place: int) -> Draft:
    """Return the draft without the guarantee at a place.

    >>> without_guarantee({"models": [{"k_anonymity": {"k": 6}}]}, 0)["models"]
    []
    """
    models = list(draft.get("models") or [])
    del models[_place(models, place)]
    return {**draft, "models": models}


def _place(models: Sequence[Any], place: int) -> int:
    if not 0 <= place < len(models):
        raise BadInput(f"there is no guarantee number {place + 1}", right=f"there are {len(models)}")
    return place


def explain_guarantee(form: Mapping[str, Any]) -> dict[str, str]:
    """Return a guarantee of the draft in one line and in plain words.

    >>> explain_guarantee({"k_anonymity": {"k": 6}})["text"]
    'k-anonymity, k = 6'
    """
    (model,) = models_from([dict(form)])
    return {"text": model.describe(None), "means": _meaning(model, persons=False)}


def _meaning(model: Model, persons: bool) -> str:
    status: Any = "attested" if persons and "persons" in model.needs else "recomputable"
    text, form = model.describe(None), model_form(model)
    return meaning(Guarantee(model=form, text=text, column=model.column, requested=model.requested, met=True, status=status))


def build_default(name: str, column: str | None, people: int | None = None) -> Model:
    """Return a guarantee with the default parameters of the page.

    >>> build_default("t_closeness", "disease")
    TCloseness(column='disease', t=0.2, distance=None, over=None)
    """
    usual = REGISTRY[name].parameter
    given = {field.name: field.default for field in _fields_with(name, people) if field.needed and field.default is not None}
    if column is not None:
        given["column"] = column
    if REGISTRY[name].needs_file:
        given["population"] = people
    for field in fields_of(name):
        if field.needed and field.name not in given:  # of a user's own guarantee
            given[field.name] = next(iter(usual.grid), 1) if field.name == usual.name else "" if field.type == "text" else 1
    return models_from([{name: given}])[0]


def _build_offer(name: str, column: str | None, example: Example, whole: Classes, people: int | None) -> GuaranteeOffer:
    model = build_default(name, column, people)
    refused = _refusals(name, column, whole, people)
    today = CurrentLevel(None, "it has no meaning for this column") if "" in refused else example.today(model)
    shown = refused[""] if "" in refused else example.sentence(model, today)
    sentence = _meaning(model, example.table.persons is not None)
    return GuaranteeOffer(
        name, _title(model), column, sentence, shown, today, _fields_with(name, people), refused, tuple(sorted(model.forms))
    )


def _fields_with(name: str, people: int | None) -> tuple[Field, ...]:
    """Return the fields of a guarantee; without a population none of them counts its people, with one its size is known."""
    if people is None:
        return tuple(field for field in fields_of(name) if field is not COUNTED)
    return tuple(replace(field, default=people) if field is SIZE else field for field in fields_of(name))


def _refusals(name: str, column: str | None, whole: Classes, people: int | None) -> dict[str, str]:
    """Return why the guarantee, or a choice of one of its fields, has no meaning for the column."""
    found = {}
    given: dict[str, Any] = model_form(build_default(name, column, people))[name]
    for key, params in {"": given, **_variants(name, given)}.items():
        try:
            models_from([{name: params}])[0].refuse(whole)
        except BadInput as bad:
            found[key] = str(bad)
    return found


def _variants(name: str, given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the guarantee with each choice of its fields, and with the parameters that this choice needs."""
    listed = [field for field in fields_of(name) if field.name != "column"]
    found = {}
    for field in listed:
        for chosen in field.choices:
            needed = {
                other.name: int(other.least or 1)
                for other in listed
                if other.only and other.only[0] == field.name and chosen in other.only[1] and other.type != "yes"
            }
            found[f"{field.name}={chosen}"] = {**given, field.name: chosen, **needed}
    return found


def _title(model: Model) -> str:
    """Return the name of a guarantee: the first words of its module's docstring."""
    return (inspect.getdoc(inspect.getmodule(type(model))) or model.name).split(":")[0].strip()
