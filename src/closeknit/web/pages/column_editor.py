"""The hierarchy of a column, part of the second step: built with a live preview, edited, imported and exported."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request, UploadFile
from starlette.responses import PlainTextResponse, Response

from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.hierarchy import Hierarchy
from closeknit.core.kind_forms import kind_form
from closeknit.web.case_tasks import draft_of
from closeknit.web.desk.draft import Draft
from closeknit.web.desk.fields import number_of
from closeknit.web.desk.roles import kind_of, missing_of, role_of, with_importance, with_kind, with_unique
from closeknit.web.desk.tree_builders import build_kind, list_builders
from closeknit.web.desk.tree_edits import (
    coarsen_values,
    dissolve_node,
    edit_tree,
    export_csv,
    import_csv,
    merge_nodes,
    move_nodes,
    rename_node,
)
from closeknit.web.desk.trees import as_hierarchy, bind_column, preview, tree_view
from closeknit.web.pages.drafts import change, changes
from closeknit.web.pages.page_common import UNFIT, StartedCase, page, redirect_to
from closeknit.web.pages.roles_step import column_name, columns_of
from closeknit.web.rest import read_small_text
from closeknit.web.routing import AllCases, AllTasks, FormFields, LimitedRoute

router = APIRouter(route_class=LimitedRoute, include_in_schema=False)
Path = list[str]
Short = Annotated[str, Form(max_length=200)]
Ticked = Annotated[list[str] | None, Form()]


class _Visit:
    """A request to the page of a column."""

    def __init__(self, request: Request, case: StartedCase, tasks: AllTasks, number: int) -> None:
        self.request, self.case, self.tasks, self.number = request, case, tasks, number
        table = columns_of(case)
        self.name = column_name(table, number)
        self.column, self.draft = table[self.name], draft_of(case)
        self.missing = missing_of(self.draft)

    def page(self, errors: dict[str, str] | None = None, given: Mapping[str, str] | None = None) -> Response:
        """Show the column; `errors` and `given` are those of a form that was refused."""
        draft, name = self.draft, self.name
        shown: dict[str, Any] = {"name": name, "number": self.number, "role": role_of(draft, name)}
        schema = draft.get("schema") or {}
        shown |= {"changes": changes(self.case), "importance": (schema.get("importance") or {}).get(name, 1)}
        shown["unique"] = name in (schema.get("allow_unique") or [])
        found = errors or {}
        if (form := kind_of(draft, name)) is not None:
            shown |= _describe_kind(self, form, given, found)
        return page(self.request, self.case, self.tasks, "column", UNFIT if errors else 200, errors=found, **shown)

    def save(self, place: str, edit: Callable[[], Draft], given: Mapping[str, str] | None = None) -> Response:
        """Change the draft; what is wrong is shown at the form `place`."""
        try:
            change(self.case, edit())
        except BadInput as bad:
            return self.page({place: str(bad)}, given)
        return redirect_to(self.case, "columns", self.number)


Visit = Annotated[_Visit, Depends()]


@router.get("/tables/{id}/columns/{number}")
def column(visit: Visit) -> Response:
    """Show the tree of a column, its values at each level, and the preview of a builder."""
    return visit.page()


def _describe_kind(visit: _Visit, form: Any, given: Mapping[str, str] | None, errors: dict[str, str]) -> dict[str, Any]:
    """Return tree, levels and builders of a column with a kind; mistakes become sentences in `errors`."""
    column, name, missing, requested = visit.column, visit.name, visit.missing, visit.request.query_params
    builders = list_builders(column, name, missing)
    typed = dict(given or requested)
    builder = typed.get("builder", "")
    shown: dict[str, Any] = {"builders": builders, "builder": builder if builder in builders else "", "typed": typed}
    shown["from_data"] = isinstance(form, dict) and bool(form.get("from_data"))
    try:
        seen = bind_column(column, name, form, missing)
        under, start = path_of(requested.get("under", "[]")), int(requested.get("start", "0") or 0)
        shown |= {"tree": tree_view(seen, under, start=max(start, 0)), "under": under, "start": start, "levels": preview(seen)}
        shown["editable"] = seen.domain.tree is not None
        if isinstance(seen.kind, Hierarchy) and not seen.kind.from_data and seen.kind.edges is None:
            shown["level"] = seen.kind.level
        shown["inner"] = _inner(shown["tree"])
    except (BadInput, ValueError) as bad:
        errors.setdefault("tree", str(bad))
    if shown["builder"]:
        try:
            tried = build_kind(builder, column, name, fields_in(builders[builder], typed), missing)
            shown["tried"] = preview(bind_column(column, name, tried, missing))
        except BadInput as bad:
            errors.setdefault("builder", str(bad))
    return shown


def fields_in(builder: Mapping[str, Any], typed: Mapping[str, str]) -> dict[str, str]:
    """Return the typed fields of a builder; its defaults if nothing is typed yet."""
    names = [field["name"] for field in builder["fields"]]
    if not any(name in typed for name in names):
        defaults = {field["name"]: field["default"] for field in builder["fields"] if field["default"] is not None}
        return {
            name: " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            for name, value in defaults.items()
        }
    return {name: typed[name] for name in names if name in typed}


def path_of(text: str) -> Path:
    """Parse the path of a node, the labels from below the root.

    >>> path_of('["craft", "welder"]')
    ['craft', 'welder']
    """
    try:
        labels = json.loads(text)
    except (ValueError, RecursionError):
        labels = None
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise BadInput("this names no node", right="choose one of those shown")
    return labels


def _inner(node: Any) -> list[Path]:
    """Return the nodes that others can be moved under."""
    found = [] if node.leaf else [list(node.path)]
    return found + [path for child in node.children for path in _inner(child)]


@router.post("/tables/{id}/columns/{number}/kind")
def kind(visit: Visit, typed: FormFields) -> Response:
    """Use the result of a builder."""

    def edit() -> Draft:
        builder, builders = typed.get("builder", ""), list_builders(visit.column, visit.name, visit.missing)
        if builder not in builders:
            raise BadInput(f"there is no builder '{builder}' for this column", right=suggest_name(builder, builders))
        given = fields_in(builders[builder], typed)
        return with_kind(visit.draft, visit.name, build_kind(builder, visit.column, visit.name, given, visit.missing))

    return visit.save("builder", edit, typed)


@router.post("/tables/{id}/columns/{number}/tree")
def tree(
    visit: Visit, do: Short, node: Ticked = None, label: Short = "", under: Annotated[str, Form(max_length=5000)] = "[]"
) -> Response:
    """Rename, move, merge or dissolve the ticked nodes."""

    def edit() -> Draft:
        paths = [path_of(text) for text in node or []]
        if not paths:
            raise BadInput("nothing is ticked", right="tick the nodes to change")
        return edit_tree(visit.draft, visit.column, visit.name, _edit(do, paths, label, under))

    return visit.save("edit", edit)


def _edit(do: str, paths: list[Path], label: str, under: str) -> Callable[[Hierarchy], Hierarchy]:
    if do in ("rename", "dissolve") and len(paths) > 1:
        raise BadInput(f"{len(paths)} nodes are ticked", right=f"tick only one to {do} it")
    edits: dict[str, Callable[[Hierarchy], Hierarchy]] = {
        "rename": lambda tree: rename_node(tree, paths[0], label),
        "move": lambda tree: move_nodes(tree, paths, path_of(under)),
        "merge": lambda tree: merge_nodes(tree, paths, label),
        "dissolve": lambda tree: dissolve_node(tree, paths[0]),
    }
    if do not in edits:
        raise BadInput("there is no such change", right=suggest_name(do, edits))
    return edits[do]


@router.post("/tables/{id}/columns/{number}/level")
def level(visit: Visit, level: Short = "0") -> Response:
    """Replace the values of a column by their nodes at a level of its declared tree."""

    def edit() -> Draft:
        chosen: Any = number_of("level", level.strip() or "0")
        return edit_tree(visit.draft, visit.column, visit.name, lambda tree: coarsen_values(tree, chosen))

    return visit.save("level", edit)


@router.post("/tables/{id}/columns/{number}/import")
def import_hierarchy(visit: Visit, cases: AllCases, hierarchy: UploadFile, from_data: Short = "") -> Response:
    """Import a hierarchy from a file with one value per line."""

    def edit() -> Draft:
        form = kind_form(import_csv(read_small_text(hierarchy, cases.settings, "hierarchy"), from_data=bool(from_data)))
        bind_column(visit.column, visit.name, form, visit.missing)  # refuse one that lacks a value of the column
        return with_kind(visit.draft, visit.name, form)

    return visit.save("import", edit)


@router.get("/tables/{id}/columns/{number}/hierarchy.csv")
def export_hierarchy(visit: Visit) -> Response:
    """Export the hierarchy as such a file."""
    form = kind_of(visit.draft, visit.name) or "flat"
    text = export_csv(as_hierarchy(bind_column(visit.column, visit.name, form, visit.missing)))
    plain = "".join(sign if sign.isascii() and sign.isalnum() else "_" for sign in visit.name)
    return PlainTextResponse(text, headers={"content-disposition": f'attachment; filename="{plain}.csv"'})


@router.post("/tables/{id}/columns/{number}/more")
def more(visit: Visit, importance: Short = "", unique: Short = "") -> Response:
    """Set the importance of a column for the loss, or whether values of a plain one may occur once."""

    def edit() -> Draft:
        if role_of(visit.draft, visit.name) == "plain":
            return with_unique(visit.draft, visit.name, bool(unique))
        if not importance.strip():
            return visit.draft
        weight: Any = number_of("importance", importance.strip())
        if not float(weight if not isinstance(weight, str) else 1) > 0:
            raise BadInput(f"importance={weight} is too small", right="it must be more than 0")
        return with_importance(visit.draft, visit.name, None if weight == 1 else weight)

    return visit.save("more", edit)
