"""What a worker can do to a case: one function a kind of task, each giving a record that JSON takes."""

from __future__ import annotations

import functools
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from closeknit.api import attack, audit, compare_recipe, run, save_comparison
from closeknit.api.recipe import Recipe
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.core.method import Progress
from closeknit.io.csv import PLAIN, CsvFormat
from closeknit.io.folders import write_whole
from closeknit.web.cases import Case
from closeknit.web.desk.draft import Draft, confine_paths, draft_text, read_draft, recipe_of
from closeknit.web.desk.result import pictures
from closeknit.web.desk.table_preview import Limits, read_table

DARK = (  # a picture follows the colours of the page that shows it
    "<style>@media (prefers-color-scheme: dark) { text { fill: #e8e6e3 } line, path[stroke] { stroke: #5a6064 } "
    'svg > rect, path[fill="white"] { fill: none } }</style>'
)
TaskOptions = Mapping[str, Any]
Kind = Callable[[Case, TaskOptions, Limits, Progress], Any]


@functools.lru_cache(maxsize=1)
def table_at(path: Path, name: str, limits: Limits, csv: CsvFormat | None) -> Columns:
    """The table of the case, read once in a process; refused where it is too large."""
    return read_table(path, name, limits, csv)


def draft_of(case: Case) -> Draft:
    """The recipe under way, which speaks of its table and of no other file."""
    try:
        text = case.draft.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise BadInput("the recipe is not UTF-8 text", right="save it as UTF-8") from None
    return confine_paths(read_draft(text), case.table.name)


def save_draft(case: Case, draft: Mapping[str, Any]) -> None:
    """Save the recipe under way."""
    write_whole(case.draft, draft_text(draft).encode(), 0o600)


def load_recipe(case: Case, requested: TaskOptions, limits: Limits) -> tuple[Recipe, Columns]:
    """The recipe of a case and its table; keys that the task asks for go before those of the draft."""
    recipe = recipe_of(confine_paths({**draft_of(case), **requested.get("recipe", {})}, case.table.name), case.folder)
    return recipe, table_at(case.table, case.name, limits, recipe.csv)


def anonymize(case: Case, requested: TaskOptions, limits: Limits, tell: Progress) -> Any:
    """A release, in `out` and `out.private`, and both as archives."""
    tell("reading", 0.0)
    recipe, _ = load_recipe(case, requested, limits)
    release = run(recipe, progress=tell)
    _rename_table(release, case.name)
    tell("reporting", 0.85)
    release.save(case.out, format=recipe.format, force=True, report=requested.get("report", True))
    pack_folder(case.out, case.folder / "release.zip")
    pack_folder(case.private, case.folder / "private.zip")
    if requested.get("pictures"):
        draw_charts(case)
    return {"ok": release.certificate.ok, "loss": release.loss, "rows": release.certificate.rows}


def draw_charts(case: Case) -> None:
    """The charts of the report, for the page of the release."""
    folder = case.folder / "pictures"
    folder.mkdir(mode=0o700, exist_ok=True)
    for name, picture in pictures(case.out).items():
        alone = picture.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)  # as a file of its own
        at = alone.index(">") + 1
        write_whole(folder / f"{name}.svg", (alone[:at] + DARK + alone[at:]).encode(), 0o600)


def _rename_table(release: Any, name: str) -> None:
    """The private recipe names the table as its owner does: a folder of this server means nothing to anybody."""
    release._recipe["data"] = {**release._recipe["data"], "path": name}


def compare(case: Case, requested: TaskOptions, limits: Limits, tell: Progress) -> Any:
    """What each method makes of the recipe, in `compare.private`."""
    recipe, _ = load_recipe(case, requested, limits)
    found = compare_recipe(recipe, requested.get("methods"), progress=tell)
    save_comparison(found, case.folder / "compare.private", force=True)
    return json.loads(found.to_json())


def attack_release(case: Case, requested: TaskOptions, limits: Limits, tell: Progress) -> Any:
    """What the release still gives away, to a stranger and to those who have the original."""
    if not case.finished:
        raise BadInput("there is no release to attack yet", right="make one first")
    tell("attacking", 0.1)
    kept = read_draft((case.private / "recipe.yaml").read_text(encoding="utf-8"))  # with the seed of the release
    recipe = recipe_of(confine_paths(kept, case.table.name), case.folder)
    certificate = case.out / "certificate.json"
    file = case.out / Path(json.loads(certificate.read_text(encoding="utf-8"))["files"][0]["name"]).name
    return json.loads(attack(file, recipe=recipe, certificate=certificate, runs=requested.get("runs")).to_json())


def audit_release(case: Case, requested: TaskOptions, limits: Limits, tell: Progress) -> Any:
    """Every guarantee of an uploaded release recomputed: the table of such a case is the release."""
    tell("auditing", 0.1)
    certificate = case.folder / "certificate.json"
    table_at(case.table, case.name, limits, PLAIN)
    return json.loads(audit(case.table, certificate=certificate).to_json())


def pack_folder(folder: Path, archive: Path) -> None:
    """A folder as one file to be downloaded; its dates say nothing."""
    beside = archive.with_suffix(".new")
    with zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED) as pack:
        for file in sorted(folder.iterdir()):
            inside = zipfile.ZipInfo(file.name)
            inside.compress_type, inside.external_attr = zipfile.ZIP_DEFLATED, 0o600 << 16
            with file.open("rb") as source, pack.open(inside, "w", force_zip64=True) as place:
                while block := source.read(1 << 20):
                    place.write(block)
    beside.replace(archive)


KINDS: dict[str, Kind] = {"anonymize": anonymize, "compare": compare, "attack": attack_release, "audit": audit_release}
