"""What regulators ask for, where it belongs: a population and presets at the guarantees, a dossier at the release."""

from __future__ import annotations

import secrets
from typing import Annotated

from fastapi import APIRouter, Form, Request, UploadFile
from starlette.responses import Response

from closeknit.api.dossiers import FRAMEWORKS
from closeknit.api.presets import preset
from closeknit.core.errors import BadInput
from closeknit.core.params import choice
from closeknit.web.case_tasks import draft_of
from closeknit.web.cases import clean_name, suffix_of, write_upload
from closeknit.web.desk.draft import Draft, recipe_of
from closeknit.web.page_tasks import DOSSIER
from closeknit.web.pages import guarantees_step
from closeknit.web.pages.drafts import change
from closeknit.web.pages.page_common import StartedCase, redirect_to
from closeknit.web.rest import show_document
from closeknit.web.routing import AllTasks, FormFields, LimitedRoute, OwnCase

router = APIRouter(route_class=LimitedRoute, include_in_schema=False)
Short = Annotated[str, Form(max_length=40)]
EDITIONS = ("public", "private")


@router.post("/tables/{id}/population")
def upload_population(request: Request, case: StartedCase, tasks: AllTasks, people: UploadFile) -> Response:
    """Take the list of all people from whom the table is drawn, and start reading it."""
    name = clean_name(people.filename or "")
    try:
        if not people.filename:
            raise BadInput("no file was chosen", right="choose the list of people first")
        file = f"upload-{secrets.token_hex(8)}{suffix_of(name)}"
    except BadInput as bad:
        return guarantees_step.show_page(request, case, tasks, {"population": str(bad)})
    write_upload(people.file, case.folder / file)
    tasks.start(case, "population", file=file, name=name)
    return redirect_to(case, "guarantees")


@router.post("/tables/{id}/preset")
def apply_preset(request: Request, case: StartedCase, tasks: AllTasks, typed: FormFields) -> Response:
    """Add what a preset asks for to the draft."""
    try:
        change(case, expand_draft(draft_of(case), typed))
    except BadInput as bad:
        return guarantees_step.show_page(request, case, tasks, {"preset": str(bad)})
    return redirect_to(case, "guarantees")


def expand_draft(draft: Draft, typed: dict[str, str]) -> Draft:
    """Return the draft with what the preset of a form adds: its guarantees, its method, and levels of columns.

    >>> draft = {"schema": {"quasi": {"age": "numeric"}}, "models": [{"k_anonymity": {"k": 6}}], "method": "knit"}
    >>> expand_draft(draft, {"preset": "ema_0070"})["models"]
    [{'k_anonymity': {'k': 11}}, {'k_anonymity': {'k': 6}}]
    >>> expand_draft(draft, {"preset": "hipaa_safe_harbor"})["method"]
    'fixed_levels'
    """
    found = preset(typed.get("preset", ""))
    options = {key: typed[key].strip() for key in found.options if typed.get(key, "").strip()}
    if options.get("zip3", "census2000") != "census2000":
        raise BadInput("zip3 is a file, and the page reads none", right="write census2000, or leave it empty")
    own = {key: value for key, value in found.recipe.items() if key != "models"}
    expanded = {**found.expand(draft, options), **own}
    recipe_of(expanded)
    return expanded


@router.post("/tables/{id}/dossier")
def start_dossier(case: OwnCase, tasks: AllTasks, framework: Short = "", edition: Short = "public") -> Response:
    """Start writing the dossier for a framework."""
    choice("framework", framework, tuple(FRAMEWORKS))
    choice("edition", edition, EDITIONS)
    tasks.start(case, "dossier", framework=framework, edition=edition)
    return redirect_to(case, "release")


@router.get("/tables/{id}/dossier")
def dossier(case: OwnCase) -> Response:
    """Return the newest dossier."""
    return show_document(case, case.folder / DOSSIER / "dossier.html")
