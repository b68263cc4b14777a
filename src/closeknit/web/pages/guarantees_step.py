"""The third step: the guarantees in plain words, with the level of the raw table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from closeknit.core.certificate import model_form
from closeknit.core.errors import BadInput
from closeknit.core.params import choice, number
from closeknit.forms.generalized import CELLS
from closeknit.web.case_tasks import draft_of
from closeknit.web.cases import Case
from closeknit.web.desk.draft import confine_paths, recipe_of, with_keys
from closeknit.web.desk.fields import number_of
from closeknit.web.desk.guarantees import (
    ESTIMATED,
    build_default,
    explain_guarantee,
    fields_of,
    guarantee_form,
    with_guarantee,
    without_guarantee,
)
from closeknit.web.desk.preset_texts import list_presets
from closeknit.web.desk.protection import check_reachable, list_unconfirmed, list_unprotected, set_aside, with_confirmed
from closeknit.web.desk.roles import draft_faults
from closeknit.web.pages.drafts import change, mark_table
from closeknit.web.pages.page_common import UNFIT, StartedCase, page, redirect_to, work_of
from closeknit.web.pages.roles_step import columns_of
from closeknit.web.routing import AllTasks, FormFields, LimitedRoute
from closeknit.web.tasks import Tasks

router = APIRouter(route_class=LimitedRoute, include_in_schema=False)
PROPOSED = "t_closeness"  # for a sensitive attribute without a guarantee
FORMS = {  # forms of a release
    "generalized": "coarser quasi-identifiers, exact sensitive values",
    "bucketized": "two tables: exact quasi-identifiers, and the sensitive values of each bucket of rows",
    "sliced": "groups of columns, shuffled independently within each bucket of rows",
    "multiset": "every column shuffled on its own within each bucket of rows",
    "permuted": "one table, numeric sensitive values shuffled within each bucket of rows",
    "perturbed": "as generalized, with randomly replaced sensitive values",
}
CELL_TEXTS = {  # of the form generalized
    "ranges": "ranges, such as [20, 35]",
    "stars": "the value that all rows of a class share, or *",
    "bounds": "two columns of numbers, age_lo and age_hi",
    "midpoint": "the middle of the range",
    "mean": "the mean of the class",
    "median": "the median of the class",
    "sample": "a value drawn below the label, and the label next to it",
}
SNAPPED = ("generalized", "perturbed")  # forms whose ranges may end at steps
FLAGS = ("escape_formulas", "allow_vacuous")  # keys of a recipe that a tick sets


@dataclass(frozen=True)
class Card:
    """A guarantee on the page: a requested one (with its place in the draft), or one that could be requested."""

    key: str  # its id on the page
    model: str
    title: str
    column: str | None
    means: str
    example: str
    today: str
    fields: Sequence[Mapping[str, Any]]
    values: Mapping[str, Any]
    refused: Mapping[str, str] = field(default_factory=dict)
    place: int | None = None
    forms: Sequence[str] = ()  # forms it applies to, if the chosen one is not among them


@router.get("/tables/{id}/guarantees")
def guarantees(request: Request, case: StartedCase, tasks: AllTasks) -> Response:
    """Show the requested guarantees, and those that could be requested."""
    return show_page(request, case, tasks)


def show_page(
    request: Request, case: Case, tasks: Tasks, errors: Mapping[str, str] | None = None, typed: Mapping[str, Any] | None = None
) -> Response:
    """Render the page; `errors` and `typed` are those of a form that was refused."""
    draft = draft_of(case)
    work, people = work_of(tasks, case, "reach", mark_table(case, draft)), work_of(tasks, case, "population")
    work = people if people.running else work
    reach = work.found if work.fresh and not work.running else None
    offers = reach["offered"] if reach else []
    requested = [_build_card(place, form, offers) for place, form in enumerate(draft.get("models") or [])]
    taken = {(card.model, card.column) for card in requested}
    others = [_build_offer_card(offer, form_name(draft)) for offer in offers if (offer["model"], offer["column"]) not in taken]
    columns = [card.column for card in others]
    shown: dict[str, Any] = {
        "work": work,
        "reach": reach,
        "requested": requested,
        "others": {column: [card for card in others if card.column == column] for column in dict.fromkeys(columns)},
        "faults": draft_faults(draft),
        "population": people,
        "presets": list_presets(),
        "unprotected": list_unprotected(draft),
        "unconfirmed": list_unconfirmed(draft),
        "aside": set_aside(draft),
        "suppress": float(number("suppress", draft.get("suppress") or 0)),  # a recipe may contain 1/3
        "forms": FORMS,
        "form": form_name(draft),
        "retain": parameter(draft, "retain"),
        "snap": parameter(draft, "snap"),
        "snapped": " ".join(SNAPPED),
        "cells": parameter(draft, "cells") or CELLS[0],
        "all_cells": CELL_TEXTS,
        **{name: bool(draft.get(name)) for name in FLAGS},
        "typed": typed or {},
        "errors": errors or {},
    }
    return page(request, case, tasks, "guarantees", UNFIT if errors else 200, **shown)


def _build_card(place: int, form: Mapping[str, Any], offers: Sequence[Mapping[str, Any]]) -> Card:
    """Return the card of a guarantee of the draft, with the level of the raw table."""
    ((model, params),) = form.items()
    column = params.get("column")
    offer = next((offer for offer in offers if offer["model"] == model and offer["column"] == column), None)
    words = explain_guarantee(form)
    counted = isinstance(params.get("population"), str)
    fields = [asdict(each) for each in fields_of(model) if not (counted and each.name in ESTIMATED)]
    example, today = (offer["example"], offer["today"]["text"]) if offer and not counted else ("", "")
    refused = offer["refused"] if offer else {}
    shown = ", ".join(column) if isinstance(column, list) else column
    key = f"requested-{place}"
    return Card(key, model, words["text"], shown, words["means"], example, today, fields, params, refused, place)


def _build_offer_card(offer: Mapping[str, Any], form: str) -> Card:
    defaults = {each["name"]: each["default"] for each in offer["fields"] if each["default"] is not None}
    key = "-".join(filter(None, ("offer", offer["model"], offer["column"])))
    return Card(
        key,
        offer["model"],
        offer["title"],
        offer["column"],
        offer["sentence"],
        offer["example"],
        offer["today"]["text"],
        offer["fields"],
        {**defaults, "column": offer["column"]},
        offer["refused"],
        forms=() if form in offer["forms"] else offer["forms"],
    )


@router.post("/tables/{id}/guarantees")
def add_guarantee(request: Request, case: StartedCase, tasks: AllTasks, typed: FormFields) -> Response:
    """Request a guarantee, or change the parameters of a requested one."""
    form = dict(typed)
    if name := form.get("propose"):  # the default guarantee for an attribute without one
        form = {"key": "confirm", "model": PROPOSED, **model_form(build_default(PROPOSED, name))[PROPOSED]}
    key, model, place = form.pop("key", ""), form.pop("model", ""), form.pop("place", "")
    try:
        known = {each.name for each in fields_of(model)}
        params = guarantee_form(model, {name: text for name, text in form.items() if name in known})
        draft = draft_of(case)
        (params,) = confine_paths({"models": [params]}, case.table.name, case.people)["models"]
        check_reachable(columns_of(case), draft, params)
        change(case, with_guarantee(draft, params, int(place) if place.isdigit() else None))
    except BadInput as bad:
        return show_page(request, case, tasks, {key: str(bad)}, form)
    return redirect_to(case, "guarantees")


@router.post("/tables/{id}/guarantees/confirm")
def confirm(request: Request, case: StartedCase, tasks: AllTasks, sure: Annotated[str, Form(max_length=10)] = "") -> Response:
    """Confirm that sensitive attributes without a guarantee are published as they are."""
    if not sure:
        return show_page(request, case, tasks, {"confirm": "tick the box to confirm, or request a guarantee"})
    change(case, with_confirmed(draft_of(case)))
    return redirect_to(case, "methods")


@router.post("/tables/{id}/guarantees/{place}/remove")
def remove(case: StartedCase, place: int) -> Response:
    """Remove a requested guarantee."""
    change(case, without_guarantee(draft_of(case), place))
    return redirect_to(case, "guarantees")


@router.post("/tables/{id}/suppress")
def suppress(request: Request, case: StartedCase, tasks: AllTasks, share: Annotated[str, Form(max_length=20)] = "") -> Response:
    """Set the largest share of rows that may be suppressed, in percent."""
    try:
        percent: Any = number_of("share", share.strip() or "0")
        if isinstance(percent, str) or not 0 <= percent < 100:
            raise BadInput(f"share={share} is not a share of the rows", right="it must be from 0 to less than 100 percent")
    except BadInput as bad:
        return show_page(request, case, tasks, {"suppress": str(bad)})
    change(case, with_keys(draft_of(case), suppress=percent / 100))
    return redirect_to(case, "guarantees")


@router.post("/tables/{id}/options")
def set_options(case: StartedCase, typed: FormFields) -> Response:
    """Set or clear the flags of the recipe."""
    change(case, with_keys(draft_of(case), **{name: name in typed for name in FLAGS}))
    return redirect_to(case, "guarantees")


@router.post("/tables/{id}/form")
def set_form(
    request: Request,
    case: StartedCase,
    tasks: AllTasks,
    form: Annotated[str, Form(max_length=40)] = "generalized",
    retain: Annotated[str, Form(max_length=20)] = "",
    snap: Annotated[str, Form(max_length=10)] = "",
    cells: Annotated[str, Form(max_length=20)] = CELLS[0],
) -> Response:
    """Set the form of the release; the method is reset, because not every method supports every form."""
    draft = {key: value for key, value in draft_of(case).items() if key not in ("form", "method")}
    try:
        choice("form", form, tuple(FORMS))
        params: dict[str, Any] = {"snap": True} if snap and form in SNAPPED else {}
        params |= {"cells": cells} if form == "generalized" and cells != CELLS[0] else {}
        params |= {"retain": number_of("retain", retain.strip() or "0")} if form == "perturbed" else {}
        changed = {**draft, "form": {form: params} if params else form}
        changed = draft if changed["form"] == "generalized" else changed
        recipe_of({"models": [], **changed})
    except BadInput as bad:
        return show_page(request, case, tasks, {"form": str(bad)})
    change(case, changed)
    return redirect_to(case, "guarantees")


def form_name(draft: Mapping[str, Any]) -> str:
    """Return the form of a draft, or the default form of its method.

    >>> form_name({"form": {"perturbed": {"retain": 0.5}}}), form_name({"schema": {}})
    ('perturbed', 'generalized')
    """
    form = draft.get("form") or recipe_of({"models": [], **draft}).method.usual_form
    return form if isinstance(form, str) else str(next(iter(form)))


def parameter(draft: Mapping[str, Any], name: str) -> Any:
    """Return a parameter of the form of a draft; empty if it is not set.

    >>> parameter({"form": {"perturbed": {"retain": 0.5}}}, "retain"), parameter({"form": "sliced"}, "snap")
    (0.5, '')
    """
    form = draft.get("form")
    return (next(iter(form.values())) or {}).get(name, "") if isinstance(form, Mapping) and form else ""
