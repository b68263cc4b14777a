"""The third step: what is guaranteed, said in plain words, with what the raw table reaches today."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from closeknit.core.certificate import model_form
from closeknit.core.errors import BadInput
from closeknit.core.params import choice, number
from closeknit.web.case_tasks import draft_of
from closeknit.web.cases import Case
from closeknit.web.desk.draft import recipe_of
from closeknit.web.desk.fields import number_of
from closeknit.web.desk.guarantees import (
    build_default,
    explain_guarantee,
    fields_of,
    guarantee_form,
    with_guarantee,
    without_guarantee,
)
from closeknit.web.desk.protection import check_reachable, list_unconfirmed, list_unprotected, set_aside, with_confirmed
from closeknit.web.desk.roles import draft_faults
from closeknit.web.pages.drafts import change, mark
from closeknit.web.pages.page_common import UNFIT, check_started, page, redirect_to, work_of
from closeknit.web.pages.roles_step import columns_of
from closeknit.web.routing import AllTasks, FormFields, LimitedRoute, OwnCase
from closeknit.web.tasks import Tasks

router = APIRouter(route_class=LimitedRoute, include_in_schema=False)
PROPOSED = "t_closeness"  # for a sensitive attribute without a guarantee
FORMS = {  # how a release can be written
    "generalized": "quasi cells made coarser, each secret beside them",
    "bucketized": "two tables: exact quasi cells, and the secrets of each bucket of rows",
    "sliced": "columns in groups, whose links are broken inside each bucket of rows",
    "multiset": "every column alone, all links broken inside each bucket of rows",
    "permuted": "one table, numeric secrets change places inside each bucket of rows",
    "perturbed": "as generalized, with secrets that are replaced by chance",
}
SNAPPED = ("generalized", "perturbed")  # forms whose ranges may end at steps


@dataclass(frozen=True)
class Card:
    """A guarantee on the page: one that is asked for (with its place in the draft), or one that could be."""

    key: str  # names it on the page
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
    forms: Sequence[str] = ()  # in which it has a meaning, where the one that is chosen is not among them


@router.get("/tables/{id}/guarantees")
def guarantees(request: Request, case: OwnCase, tasks: AllTasks) -> Response:
    """Those that are asked for, and those that could be."""
    check_started(case)
    return _page(request, case, tasks)


def _page(
    request: Request, case: Case, tasks: Tasks, errors: Mapping[str, str] | None = None, typed: Mapping[str, Any] | None = None
) -> Response:
    draft = draft_of(case)
    work = work_of(tasks, case, "reach", mark(draft, "data", "schema"))
    reach = work.found if work.fresh else None
    offers = reach["offered"] if reach else []
    requested = [_build_card(place, form, offers) for place, form in enumerate(draft.get("models") or [])]
    taken = {(card.model, card.column) for card in requested}
    others = [_build_offer_card(offer, form_name(draft)) for offer in offers if (offer["model"], offer["column"]) not in taken]
    told: dict[str, Any] = {
        "work": work,
        "reach": reach,
        "requested": requested,
        "others": {column: [card for card in others if card.column == column] for column in _in_order(others)},
        "faults": draft_faults(draft),
        "unprotected": list_unprotected(draft),
        "unconfirmed": list_unconfirmed(draft),
        "aside": set_aside(draft),
        "suppress": float(number("suppress", draft.get("suppress") or 0)),  # a recipe may say 1/3
        "forms": FORMS,
        "form": form_name(draft),
        "retain": parameter(draft, "retain"),
        "snap": parameter(draft, "snap"),
        "snapped": " ".join(SNAPPED),
        "typed": typed or {},
        "errors": errors or {},
    }
    return page(request, case, tasks, "guarantees", UNFIT if errors else 200, **told)


def _in_order(cards: Sequence[Card]) -> list[str | None]:
    return list(dict.fromkeys(card.column for card in cards))


def _build_card(place: int, form: Mapping[str, Any], offers: Sequence[Mapping[str, Any]]) -> Card:
    """A guarantee of the draft, with what the look at the raw table says of its like."""
    ((model, params),) = form.items()
    column = params.get("column")
    offer = next((offer for offer in offers if offer["model"] == model and offer["column"] == column), None)
    told = explain_guarantee(form)
    fields = [each.record() for each in fields_of(model)]
    example, today = (offer["example"], offer["today"]["text"]) if offer else ("", "")
    refused = offer["refused"] if offer else {}
    shown = ", ".join(column) if isinstance(column, list) else column
    return Card(f"asked-{place}", model, told["text"], shown, told["means"], example, today, fields, params, refused, place)


def _build_offer_card(offer: Mapping[str, Any], form: str) -> Card:
    begin = {each["name"]: each["default"] for each in offer["fields"] if each["default"] is not None}
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
        {**begin, "column": offer["column"]},
        offer["refused"],
        forms=() if form in offer["forms"] else offer["forms"],
    )


@router.post("/tables/{id}/guarantees")
def add_guarantee(request: Request, case: OwnCase, tasks: AllTasks, typed: FormFields) -> Response:
    """Ask for a guarantee, or for another limit of one that is asked for."""
    check_started(case)
    form = dict(typed)
    if name := form.get("propose"):  # the usual guarantee of an attribute that has none
        form = {"key": "confirm", "model": PROPOSED, **model_form(build_default(PROPOSED, name))[PROPOSED]}
    key, model, place = form.pop("key", ""), form.pop("model", ""), form.pop("place", "")
    try:
        known = {each.name for each in fields_of(model)}
        params = guarantee_form(model, {name: text for name, text in form.items() if name in known})
        draft = draft_of(case)
        check_reachable(columns_of(case), draft, params)
        change(case, with_guarantee(draft, params, int(place) if place.isdigit() else None))
    except BadInput as bad:
        return _page(request, case, tasks, {key: str(bad)}, form)
    return redirect_to(case, "guarantees")


@router.post("/tables/{id}/guarantees/confirm")
def confirm(request: Request, case: OwnCase, tasks: AllTasks, sure: Annotated[str, Form(max_length=10)] = "") -> Response:
    """Agree that the sensitive attributes without a guarantee are published as they are."""
    check_started(case)
    if not sure:
        return _page(request, case, tasks, {"confirm": "tick the box if you want this, or request a guarantee"})
    change(case, with_confirmed(draft_of(case)))
    return redirect_to(case, "methods")


@router.post("/tables/{id}/guarantees/{place}/remove")
def remove(case: OwnCase, place: int) -> Response:
    """Ask for it no longer."""
    check_started(case)
    change(case, without_guarantee(draft_of(case), place))
    return redirect_to(case, "guarantees")


@router.post("/tables/{id}/suppress")
def suppress(request: Request, case: OwnCase, tasks: AllTasks, share: Annotated[str, Form(max_length=20)] = "") -> Response:
    """The largest share of rows that may be suppressed, in percent."""
    check_started(case)
    try:
        percent: Any = number_of("share", share.strip() or "0")
        if isinstance(percent, str) or not 0 <= percent < 100:
            raise BadInput(f"share={share} is not a share of the rows", right="it must be from 0 to less than 100 percent")
    except BadInput as bad:
        return _page(request, case, tasks, {"suppress": str(bad)})
    kept = {key: value for key, value in draft_of(case).items() if key != "suppress"}
    change(case, {**kept, "suppress": percent / 100} if percent else kept)
    return redirect_to(case, "guarantees")


@router.post("/tables/{id}/form")
def set_form(
    request: Request,
    case: OwnCase,
    tasks: AllTasks,
    form: Annotated[str, Form(max_length=40)] = "generalized",
    retain: Annotated[str, Form(max_length=20)] = "",
    snap: Annotated[str, Form(max_length=10)] = "",
) -> Response:
    """How the release is written; the method begins anew, because not every one can write everything."""
    check_started(case)
    draft = {key: value for key, value in draft_of(case).items() if key not in ("form", "method")}
    try:
        choice("form", form, tuple(FORMS))
        params: dict[str, Any] = {"snap": True} if snap and form in SNAPPED else {}
        params |= {"retain": number_of("retain", retain.strip() or "0")} if form == "perturbed" else {}
        changed = {**draft, "form": {form: params} if params else form}
        changed = draft if changed["form"] == "generalized" else changed
        recipe_of({"models": [], **changed})
    except BadInput as bad:
        return _page(request, case, tasks, {"form": str(bad)})
    change(case, changed)
    return redirect_to(case, "guarantees")


def form_name(draft: Mapping[str, Any]) -> str:
    """How a draft is written: as it says, or as its method usually does.

    >>> form_name({"form": {"perturbed": {"retain": 0.5}}}), form_name({"schema": {}})
    ('perturbed', 'generalized')
    """
    form = draft.get("form") or recipe_of({"models": [], **draft}).method.usual_form
    return form if isinstance(form, str) else str(next(iter(form)))


def parameter(draft: Mapping[str, Any], name: str) -> Any:
    """A parameter of the form of a draft; empty where it says none.

    >>> parameter({"form": {"perturbed": {"retain": 0.5}}}, "retain"), parameter({"form": "sliced"}, "snap")
    (0.5, '')
    """
    form = draft.get("form")
    return (next(iter(form.values())) or {}).get(name, "") if isinstance(form, Mapping) and form else ""
