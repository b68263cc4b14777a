"""Which sensitive attributes a guarantee protects, and how guarantees follow changes of roles or of the table.

A draft has two keys that a recipe does not have: `set_aside`, guarantees whose column is not sensitive now, and `confirmed`,
sensitive attributes that the user agreed to publish without a guarantee.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from closeknit.api.recipe import models_from
from closeknit.api.request_checks import check_whole
from closeknit.core.columns import Columns
from closeknit.core.combined_secrets import parts
from closeknit.core.errors import BadInput, Unsatisfiable, Vacuous
from closeknit.core.schema import Schema
from closeknit.core.vacuity import vacuity_notes
from closeknit.web.desk.draft import CONFIRMED, SET_ASIDE, Draft, recipe_of
from closeknit.web.desk.roles import attributes_of, kind_of, role_of, sensitive_of, with_role, without_columns

Forms = Mapping[str, Any]


def guarantees_of(draft: Forms, name: str) -> list[str]:
    """Return the guarantees requested for a column, each in one line.

    >>> guarantees_of({"models": [{"t_closeness": {"column": "wage", "t": 0.2}}]}, "wage")
    ['t-closeness of wage, t = 0.2, distance by the kind of the column']
    """
    return [_line(form) for form in draft.get("models") or [] if name in attributes_of(form)]


def list_unprotected(draft: Forms) -> list[str]:
    """Return sensitive attributes for which no guarantee is requested.

    >>> list_unprotected({"schema": {"sensitive": {"wage": "numeric"}}, "models": [{"k_anonymity": {"k": 6}}]})
    ['wage']
    """
    named = {name for form in draft.get("models") or [] for name in attributes_of(form)}
    return [name for name in sensitive_of(draft) if name not in named]


def list_unconfirmed(draft: Forms) -> list[str]:
    """Return those among them that the user has not agreed to publish like that.

    >>> draft = {"schema": {"sensitive": {"wage": "numeric"}}, "models": []}
    >>> list_unconfirmed(draft), list_unconfirmed(with_confirmed(draft))
    (['wage'], [])
    """
    return [name for name in list_unprotected(draft) if name not in (draft.get(CONFIRMED) or [])]


def with_confirmed(draft: Forms) -> Draft:
    """Return the draft in which every attribute without a guarantee is confirmed.

    >>> with_confirmed({"schema": {"sensitive": {"wage": "numeric"}}})["confirmed"]
    ['wage']
    """
    return {**draft, CONFIRMED: list_unprotected(draft)}


def refuse_unconfirmed(draft: Forms) -> None:
    """Refuse a draft in which a sensitive attribute has neither a guarantee nor a confirmation.

    >>> refuse_unconfirmed({"schema": {"sensitive": {"wage": "numeric"}}})
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: no guarantee protects wage; request one in step 3, or confirm there that none is wanted
    """
    if names := list_unconfirmed(draft):
        right = "request one in step 3, or confirm there that none is wanted"
        raise BadInput(f"no guarantee protects {' and '.join(names)}", right=right)


def set_aside(draft: Forms) -> list[tuple[str, str]]:
    """Return guarantees that are set aside because of the role of a column, each in one line with the reason.

    >>> draft = {"schema": {"plain": ["wage"]}, "set_aside": [{"t_closeness": {"column": "wage", "t": 0.2}}]}
    >>> set_aside(draft)[0][1]
    'wage has the role plain'
    """
    found = []
    for form in draft.get(SET_ASIDE) or []:
        names = [name for name in attributes_of(form) if name not in sensitive_of(draft)]
        roles = {name: role_of(draft, name) for name in names}
        why = [f"{name} has the role {role}" if role else f"there is no column {name}" for name, role in roles.items()]
        found.append((_line(form), " and ".join(why)))
    return found


def carry_over(old: Forms, suggested: Forms, names: Sequence[str]) -> Draft:
    """Return the old draft for a table that was read again: new columns get the suggested role, and no guarantee is lost.

    >>> old = {"schema": {"quasi": {"age": "numeric"}, "sensitive": {"wage": "flat"}},
    ...        "models": [{"t_closeness": {"column": "wage", "t": 0.1}}]}
    >>> new = {"data": "b.csv", "schema": {"quasi": {"age": "flat", "sex": "flat"}}, "models": []}
    >>> changed = carry_over(old, new, ["age", "sex"])
    >>> changed["schema"], changed["models"], set_aside(changed)[0][1]
    ({'quasi': {'age': 'numeric', 'sex': 'flat'}}, [], 'there is no column wage')
    """
    draft = without_columns({**old, "data": suggested.get("data")}, names)
    added = [name for name in names if role_of(draft, name) is None]
    for name in added:
        draft = with_role(draft, name, role_of(suggested, name) or "identifier", kind_of(suggested, name) or "flat")
    models = list(draft.get("models") or [])
    models += [form for form in suggested.get("models") or [] if set(attributes_of(form)) & set(added) and form not in models]
    return {**draft, "models": models}


def check_reachable(table: Columns, draft: Forms, form: Forms) -> None:
    """Refuse a guarantee that no release of all rows can meet, or that excludes nothing: judged on the table as one class.

    >>> check_reachable(Columns.of({"age": [30, 31]}), {"schema": {"quasi": {"age": "numeric"}}}, {"k_anonymity": {"k": 3}})
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: k-anonymity, k = 3 cannot be met: the table reaches at most 2; request less
    """
    (model,) = models_from([dict(form)])
    schema = recipe_of({**draft, "models": []}).schema
    few = Schema(
        quasi={} if model.column else dict(list(schema.quasi.items())[:1]),
        sensitive={name: schema.sensitive[name] for name in parts(model.column) if name in schema.sensitive},
        person=schema.person,
        missing=schema.missing,
    )
    for name in parts(model.column):
        if name not in few.sensitive:
            raise BadInput("is not sensitive", column=name, right="give it this role in step 2 first")
    whole = few.encode(table.select(few.used)).one_class()
    try:
        check_whole(whole, few, [model], schema.person_rows == "count-once", bool(draft.get("suppress")))
    except Unsatisfiable as bad:
        measured = f"{model.levels(whole)[0]:.6g}"
        raise BadInput(f"{bad.requested} cannot be met: the table reaches at most {measured}", right="request less") from None
    sizes = [other for other in models_from(draft.get("models") or []) if other.column is None]
    try:
        vacuity_notes([*sizes, model], lambda _: whole, bool(draft.get("allow_vacuous")))
    except Vacuous as bad:
        raise BadInput(f"{bad.requested} is vacuous: {bad.reachable}", right=bad.hint) from None


def _line(form: Forms) -> str:
    (model,) = models_from([dict(form)])
    return model.describe(None)
