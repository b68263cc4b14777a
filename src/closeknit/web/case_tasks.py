"""The tasks of a worker: one function per kind of task, each returning a record that JSON can store."""

from __future__ import annotations

import functools
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from closeknit.api import attack, audit, compare_recipe, run, save_comparison
from closeknit.api.recipe import Recipe
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.core.method import Progress
from closeknit.io.csv import PLAIN, CsvFormat
from closeknit.io.folders import write_whole
from closeknit.io.source import Source
from closeknit.release.release_paths import CERTIFICATE, RECIPE
from closeknit.web.cases import Case
from closeknit.web.desk.draft import (
    PEOPLE,
    Draft,
    confine_paths,
    draft_text,
    population_of,
    read_draft,
    recipe_of,
    with_population,
)
from closeknit.web.desk.result import pictures
from closeknit.web.desk.table_preview import Limits, read_table

DARK = (  # a chart follows the colours of the page that shows it
    "<style>@media (prefers-color-scheme: dark) { text { fill: #e8e6e3 } line, path[stroke] { stroke: #5a6064 } "
    'svg > rect, path[fill="white"] { fill: none } }</style>'
)
TaskOptions = Mapping[str, Any]
Kind = Callable[[Case, TaskOptions, Limits, Progress], Any]


@functools.lru_cache(maxsize=1)
def table_at(path: Path | Source, name: str, limits: Limits, csv: CsvFormat | None) -> Columns:
    """Return the table of the case, read once per process; one that is too large is refused."""
    return read_table(path, name, limits, csv)


def draft_of(case: Case) -> Draft:
    """Return the draft recipe; it may refer to its own table and to no other file."""
    try:
        text = case.draft.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise BadInput("the recipe is not UTF-8 text", right="save it as UTF-8") from None
    return confine_paths(read_draft(text), case.table.name, case.people)


def save_draft(case: Case, draft: Mapping[str, Any]) -> None:
    """Save the draft recipe."""
    write_whole(case.draft, draft_text(with_population(draft, PEOPLE)).encode(), 0o600)


def load_recipe(case: Case, requested: TaskOptions, limits: Limits) -> tuple[Recipe, Columns]:
    """Return the recipe of a case and its table; keys that the task requests override those of the draft."""
    forms = {**draft_of(case), **requested.get("recipe", {})}
    recipe = recipe_of(confine_paths(forms, case.table.name, case.people), case.folder)
    data = recipe.data if isinstance(recipe.data, Source) else case.table
    return recipe, table_at(data, case.name, limits, recipe.csv)


def anonymize(case: Case, requested: TaskOptions, limits: Limits, progress: Progress) -> Any:
    """Write the release to `out` and `out.private`, and both as archives."""
    progress("reading", 0.0)
    recipe, _ = load_recipe(case, requested, limits)
    release = run(recipe, progress=progress)
    people = _rename_files(release, case.name)
    progress("reporting", 0.85)
    release.save(case.out, format=recipe.format, force=True, report=requested.get("report", True))
    pack_folder(case.out, case.folder / "release.zip")
    pack_folder(case.private, case.folder / "private.zip", people)
    if requested.get("pictures"):
        draw_charts(case)
    return {"ok": release.certificate.ok, "loss": release.loss, "rows": release.certificate.rows}


def draw_charts(case: Case) -> None:
    """Draw the charts of the report for the page of the release."""
    folder = case.folder / "pictures"
    folder.mkdir(mode=0o700, exist_ok=True)
    for name, picture in pictures(case.out).items():
        file = picture.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)  # needed outside of a page
        at = file.index(">") + 1
        write_whole(folder / f"{name}.svg", (file[:at] + DARK + file[at:]).encode(), 0o600)


def _rename_files(release: Any, name: str) -> dict[str, Path]:
    """Let the private recipe name the table as its owner does: a folder of this server means nothing to its owner.

    Returns the file of people, if a guarantee counts them, by the name that the recipe now has for it.
    """
    people = population_of(release._recipe)
    release._recipe["data"] = {**release._recipe["data"], "path": name}
    release._recipe["models"] = with_population(release._recipe, PEOPLE)["models"]
    return {} if people is None else {PEOPLE: Path(people)}


def compare(case: Case, requested: TaskOptions, limits: Limits, progress: Progress) -> Any:
    """Compare the methods under the recipe, and save the result in `compare.private`."""
    recipe, _ = load_recipe(case, requested, limits)
    found = compare_recipe(recipe, requested.get("methods"), progress=progress, against=requested.get("against"))
    save_comparison(found, case.folder / "compare.private", force=True)
    return json.loads(found.to_json())


def attack_release(case: Case, requested: TaskOptions, limits: Limits, progress: Progress) -> Any:
    """Attack the release as a recipient could, and as someone with the original table could."""
    if not case.finished:
        raise BadInput("there is no release to attack yet", right="anonymize the table first")
    progress("attacking", 0.1)
    recipe, file, certificate = find_release(case)
    return json.loads(attack(file, recipe=recipe, certificate=certificate, runs=requested.get("runs")).to_json())


def find_release(case: Case) -> tuple[Recipe, Path, Path]:
    """Return the recipe of the release with its seed, the file of the release and its certificate."""
    saved = read_draft((case.private / RECIPE).read_text(encoding="utf-8"))
    certificate = case.out / CERTIFICATE
    file = case.out / Path(json.loads(certificate.read_text(encoding="utf-8"))["files"][0]["name"]).name
    return recipe_of(confine_paths(saved, case.table.name, case.people), case.folder), file, certificate


def audit_release(case: Case, requested: TaskOptions, limits: Limits, progress: Progress) -> Any:
    """Recompute every guarantee of an uploaded release: the table of such a case is the release."""
    progress("auditing", 0.1)
    certificate = case.folder / CERTIFICATE
    table_at(case.table, case.name, limits, PLAIN)
    return json.loads(audit(case.table, certificate=certificate).to_json())


def pack_folder(folder: Path, archive: Path, more: Mapping[str, Path] = MappingProxyType({})) -> None:
    """Pack a folder, and `more` files by name, as one file for download; the archive has no timestamps."""
    new, files = archive.with_suffix(".new"), {file.name: file for file in folder.iterdir()} | dict(more)
    with zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as pack:
        for name, file in sorted(files.items()):
            inside = zipfile.ZipInfo(name)
            inside.compress_type, inside.external_attr = zipfile.ZIP_DEFLATED, 0o600 << 16
            with file.open("rb") as source, pack.open(inside, "w", force_zip64=True) as place:
                while block := source.read(1 << 20):
                    place.write(block)
    new.replace(archive)


KINDS: dict[str, Kind] = {"anonymize": anonymize, "compare": compare, "attack": attack_release, "audit": audit_release}
