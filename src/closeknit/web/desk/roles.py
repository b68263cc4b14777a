"""The role of each column: suggested with a reason, changed by the user, and checked with one sentence per column."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from closeknit.api.request_checks import check_identifier, check_models, check_plain
from closeknit.api.suggestion import Suggestion
from closeknit.api.suggestion.kind_guesses import guess_kind
from closeknit.api.suggestion.profile import profile_of
from closeknit.core.columns import Columns
from closeknit.core.combined_secrets import parts
from closeknit.core.errors import BadInput
from closeknit.core.kind_forms import kind_form, kind_from
from closeknit.core.method import list_guarantees
from closeknit.core.params import build_from_form, choice
from closeknit.core.schema import KINDED, ROLES, Schema, refuse_files
from closeknit.forms import REGISTRY as FORMS
from closeknit.web.desk.draft import IMPORT, SET_ASIDE, Draft, recipe_of

BOTH = "quasi and sensitive"  # only slicing handles such a column
CHOICES = (*ROLES, BOTH)
LISTED = ("identifier", "plain", "drop")  # roles whose columns are a list of names
MEANS = {
    "identifier": "not published: it identifies a person",
    "quasi": "generalized: an adversary may know it from other sources",
    "sensitive": "published as it is; the guarantees protect it",
    "plain": "published as it is, without protection",
    "drop": "not published and not used",
    "person": "not published: rows with the same value belong to one person",
    BOTH: "sensitive, and partly known to others: only slicing handles it",
}
Forms = Mapping[str, Any]


@dataclass(frozen=True)
class ColumnSuggestion:
    """The suggested role of a column, the reason, and its kind in a role that needs one."""

    role: str
    kind: object  # as a recipe writes it
    reason: str
    sure: bool


def list_suggestions(columns: Columns, suggestion: Suggestion) -> dict[str, dict[str, Any]]:
    """Return the suggestion for every column as plain records.

    >>> from closeknit.api.suggestion import suggest
    >>> table = Columns.of({"name": ["Ann", "Bob"], "age": [41, 30]})
    >>> list_suggestions(table, suggest(table))["name"]
    {'role': 'identifier', 'kind': 'flat', 'reason': 'names of people', 'sure': True}
    """
    kinds = {**suggestion.schema.quasi, **suggestion.schema.sensitive}
    found = {}
    for name, guess in suggestion.reasons.items():
        kind = kinds[name] if name in kinds else guess_kind(profile_of(name, columns[name])).kind
        found[name] = asdict(ColumnSuggestion(guess.role, kind_form(kind), guess.reason, guess.sure))
    return found


@dataclass(frozen=True)
class RoleRow:
    """A line of the page: the role of a column in the draft, its suggested role, and what is wrong with it."""

    name: str
    role: str | None
    kind: str | None  # the name of its kind
    form: object  # the whole kind as a recipe writes it
    from_data: bool  # whether its tree was derived from this table
    suggested: str | None
    reason: str
    sure: bool
    fault: str | None


def role_rows(columns: Columns, draft: Forms, guesses: Mapping[str, Mapping[str, Any]]) -> list[RoleRow]:
    """Return a line for every column of the table.

    >>> table = Columns.of({"age": [41, 30], "job": ["cook", "?"]})
    >>> rows = role_rows(table, {"schema": {"quasi": {"age": "numeric"}}}, {})
    >>> rows[0].role, rows[0].kind, rows[1].fault
    ('quasi', 'numeric', "column 'job': has no role; list it under identifier, quasi, sensitive, plain, drop or person")
    """
    faults, rows = column_faults(columns, draft), []
    for name in columns:
        form, guess = kind_of(draft, name), guesses.get(name, {})
        kind = form if isinstance(form, str) or form is None else next(iter(form))
        from_data = isinstance(form, dict) and bool(form.get("from_data"))
        suggested = guess.get("role"), guess.get("reason", ""), bool(guess.get("sure", False))
        rows.append(RoleRow(name, role_of(draft, name), kind, form, from_data, *suggested, faults.get(name)))
    return rows


def role_of(draft: Forms, name: str) -> str | None:
    """Return the role of a column in a draft; None if it has none yet.

    >>> role_of({"schema": {"quasi": {"age": "numeric"}, "person": "pid"}}, "pid")
    'person'
    """
    schema = _schema(draft)
    held = [role for role in ROLES if name in (schema[role] if role != "person" else [schema.get("person")])]
    return BOTH if held == list(KINDED) else held[0] if held else None


def kind_of(draft: Forms, name: str) -> Any:
    """Return the kind of a column as the draft writes it; None if its role needs none."""
    schema = _schema(draft)
    return schema["quasi"].get(name, schema["sensitive"].get(name))


def missing_of(draft: Forms) -> list[str]:
    """Return the missing-value codes of a draft.

    >>> missing_of({"schema": {"missing": "?"}})
    ['?']
    """
    return list(_schema(draft)["missing"])


def with_role(draft: Forms, name: str, role: str, usual: object = "flat") -> Draft:
    """Return the draft with another role for a column; `usual` is its kind if it has none yet.

    Settings that belong to its old role are removed: its importance, its entry in `allow_unique`. Guarantees about a column
    that is no longer sensitive are set aside, and requested again when it is sensitive again.

    >>> draft = {"schema": {"quasi": {"age": "numeric"}, "sensitive": {"wage": "numeric"}},
    ...          "models": [{"k_anonymity": {"k": 6}}, {"t_closeness": {"column": "wage", "t": 0.2}}]}
    >>> with_role(draft, "wage", "identifier")["set_aside"]
    [{'t_closeness': {'column': 'wage', 't': 0.2}}]
    >>> with_role(with_role(draft, "wage", "identifier"), "wage", "sensitive")["models"] == draft["models"]
    True
    """
    choice("role", role, CHOICES)
    schema, kind = _schema(draft), kind_of(draft, name) or usual
    if role == role_of(draft, name):
        return dict(draft)
    for held in (*LISTED, "allow_unique"):
        schema[held] = [other for other in schema[held] if other != name]
    for held in KINDED:
        schema[held] = {other: form for other, form in schema[held].items() if other != name}
    schema["person"] = None if schema.get("person") == name else schema.get("person")
    if role in LISTED:
        schema[role].append(name)
    elif role == "person":
        schema["identifier"] += [schema["person"]] if schema["person"] else []  # at most one person column is allowed
        schema["person"] = name
    for held in KINDED:
        if held in role:
            schema[held][name] = kind
    if name not in schema["quasi"]:
        schema["importance"] = {other: weight for other, weight in schema["importance"].items() if other != name}
    return _with_guarantees(_with_schema(draft, schema))


def without_columns(draft: Forms, names: Collection[str]) -> Draft:
    """Return the draft for a table with these columns only; guarantees about others are set aside.

    >>> without_columns({"schema": {"quasi": {"age": "numeric"}, "plain": ["ward"]}}, ["age"])["schema"]
    {'quasi': {'age': 'numeric'}}
    """
    schema = _schema(draft)
    for role in (*LISTED, "allow_unique"):
        schema[role] = [name for name in schema[role] if name in names]
    for role in (*KINDED, "importance"):
        schema[role] = {name: form for name, form in schema[role].items() if name in names}
    schema["person"] = schema.get("person") if schema.get("person") in names else None
    return _with_guarantees(_with_schema(draft, schema))


def _with_guarantees(draft: Forms) -> Draft:
    """Return the draft that requests every guarantee about sensitive columns and sets the others aside."""
    known = [*(draft.get("models") or []), *(draft.get(SET_ASIDE) or [])]
    sensitive = set(sensitive_of(draft))
    active = [form for i, form in enumerate(known) if sensitive.issuperset(attributes_of(form)) and form not in known[:i]]
    aside = [form for form in known if form not in active]
    changed = {key: part for key, part in draft.items() if key != SET_ASIDE}
    changed |= {"models": active} if active or "models" in draft else {}
    return changed | ({SET_ASIDE: aside} if aside else {})


def with_kind(draft: Forms, name: str, form: object) -> Draft:
    """Return the draft with another kind for a quasi-identifier or sensitive column.

    >>> with_kind({"schema": {"quasi": {"age": "numeric"}}}, "age", {"numeric": {"lo": 0, "hi": 120}})["schema"]
    {'quasi': {'age': {'numeric': {'lo': 0, 'hi': 120}}}}
    """
    schema = _schema(draft)
    held = [role for role in KINDED if name in schema[role]]
    if not held:
        raise BadInput("is neither quasi nor sensitive", column=name, right="give it such a role first: others need no kind")
    refuse_files({role: {name: form} for role in held}, IMPORT)
    kind_from(form)  # refuse a wrong one before it is in the draft
    for role in held:
        schema[role] = {**schema[role], name: form}
    return _with_schema(draft, schema)


def with_missing(draft: Forms, markers: Sequence[str]) -> Draft:
    """Return the draft with these missing-value codes.

    >>> with_missing({"schema": {}}, ["?", "?", ""])["schema"]
    {'missing': ['?']}
    """
    return _with_schema(draft, {**_schema(draft), "missing": [mark for mark in dict.fromkeys(markers) if mark]})


def with_importance(draft: Forms, name: str, weight: float | None) -> Draft:
    """Return the draft with another importance of a quasi-identifier for the loss; None resets it to 1.

    >>> with_importance({"schema": {"quasi": {"age": "numeric"}}}, "age", 2)["schema"]["importance"]
    {'age': 2}
    """
    schema = _schema(draft)
    others = {other: held for other, held in schema["importance"].items() if other != name}
    return _with_schema(draft, {**schema, "importance": others if weight is None else {**others, name: weight}})


def with_unique(draft: Forms, name: str, allowed: bool) -> Draft:
    """Return the draft in which a plain column may (or may not) have values that occur once.

    >>> with_unique({"schema": {"plain": ["ward"]}}, "ward", True)["schema"]["allow_unique"]
    ['ward']
    """
    schema = _schema(draft)
    others = [other for other in schema["allow_unique"] if other != name]
    return _with_schema(draft, {**schema, "allow_unique": [*others, name] if allowed else others})


def with_rows_as_persons(draft: Forms, confirmed: bool) -> Draft:
    """Return the draft in which every row is (or is not) declared to be another person; a person column removes that.

    >>> with_rows_as_persons({"schema": {"quasi": {"age": "numeric"}}}, True)["schema"]
    {'quasi': {'age': 'numeric'}, 'rows_are_persons': True}
    """
    return _with_schema(draft, {**_schema(draft), "rows_are_persons": confirmed})


def column_faults(columns: Columns, draft: Forms) -> dict[str, str]:
    """Return what is wrong with each column, one sentence each; correct columns are left out.

    >>> column_faults(Columns.of({"age": ["41", "old"]}), {"schema": {"quasi": {"age": "numeric"}}})["age"]
    "column 'age', row 2: 'old' is not a number; correct it, list it under missing, or make the column flat"
    """
    schema, found = _schema(draft), {}
    for name in columns:
        try:
            _check(columns, schema, name, role_of(draft, name))
        except BadInput as bad:
            found[name] = str(bad)
    for name in _list_named(schema):
        if name not in columns:
            found[name] = str(BadInput("is in the draft but not in the table", column=name, right="remove it from the draft"))
    return found


def _check(columns: Columns, schema: Forms, name: str, role: str | None) -> None:
    alone = Columns({name: columns[name]}, columns.rows)
    if role is None:
        listed = ", ".join(ROLES[:-1]) + " or " + ROLES[-1]
        raise BadInput("has no role", column=name, right=f"list it under {listed}")
    if role == "plain":
        unique = [name] if name in schema["allow_unique"] else []
        check_plain(Schema(plain=[name], allow_unique=unique).encode(alone))
    elif role == "person":
        Schema(person=name).encode(alone)
    elif role == "identifier" and not schema.get("person") and not schema.get("rows_are_persons"):
        check_identifier(columns[name], name, schema["missing"])
    elif role in (*KINDED, BOTH):
        held = KINDED[0] if name in schema["quasi"] else KINDED[1]
        read = Schema.from_forms({held: {name: schema[held][name]}, "missing": schema["missing"]})
        codes, domain, _ = read.encode_column(columns[name], name, getattr(read, held)[name])
        if name in schema["sensitive"] and not (codes < domain.size).any():
            raise BadInput("is sensitive and has no values", column=name, right="drop it, or correct the missing-value codes")


def draft_faults(draft: Forms) -> list[str]:
    """Return what is wrong with the draft as a whole, as far as that can be checked without the rows.

    >>> draft_faults({"schema": {"quasi": {"age": "numeric"}}, "models": []})
    ['no guarantee is requested; add at least one']
    """
    found = []
    if not _schema(draft)["quasi"]:
        found.append("no column is a quasi-identifier; choose those that could identify a person")
    if not draft.get("models"):
        found.append("no guarantee is requested; add at least one")
    try:
        recipe = recipe_of({"models": [], **draft})
        method = recipe.method
        models = list_guarantees(method, recipe.schema, recipe.models)
        check_models(recipe.schema, models, recipe.form or build_from_form("form", method.usual_form, FORMS))
    except BadInput as bad:
        found.append(str(bad))
    return found


def _schema(draft: Forms) -> dict[str, Any]:
    """Return a copy of the schema's forms with every key present."""
    given = dict(draft.get("schema") or {})
    for role in (*LISTED, "allow_unique", "missing"):
        held = given.get(role) or []
        given[role] = [held] if isinstance(held, str) else [str(name) for name in held]
    for role in (*KINDED, "importance"):
        given[role] = {str(name): form for name, form in (given.get(role) or {}).items()}
    return given


def _with_schema(draft: Forms, schema: Forms) -> Draft:
    order = (*ROLES[:4], "allow_unique", *ROLES[4:], "person_rows", "rows_are_persons", "missing", "importance")
    changed = {key: schema[key] for key in order if schema.get(key)}
    changed.pop("rows_are_persons" if "person" in changed else "person_rows", None)
    return {**draft, "schema": changed}


def _list_named(schema: Forms) -> list[str]:
    return [name for role in ROLES[:-2] for name in schema[role]] + ([schema["person"]] if schema.get("person") else [])


def sensitive_of(draft: Forms) -> list[str]:
    """Return the sensitive columns of a draft.

    >>> sensitive_of({"schema": {"sensitive": {"wage": "numeric"}}})
    ['wage']
    """
    return list(_schema(draft)["sensitive"])


def attributes_of(form: Any) -> tuple[str, ...]:
    """Return the sensitive attributes of a guarantee in a draft.

    >>> attributes_of({"t_closeness": {"column": "wage", "t": 0.2}}), attributes_of({"k_anonymity": {"k": 6}})
    (('wage',), ())
    """
    params = next(iter(form.values()), None) if isinstance(form, Mapping) else None
    column = params.get("column") if isinstance(params, Mapping) else None
    return parts(tuple(column) if isinstance(column, list) else column)
