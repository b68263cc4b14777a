"""Incognito: the known best levels of Adult, and SAL with five and seven columns against the floor."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import clock
import closeknit as ck
import tables
from closeknit.core.kinds import Numeric
from closeknit.core.model import Model
from closeknit.core.tree import STAR
from mondrian import known, training
from sal import Request, head
from sections import Section
from speed import compare_with_floor
from trials import part

K, T = 6, 0.2
SAL_TS, COLUMNS = (0.35, 0.2), (5, 7)
HEIGHT = 4
# Loss A of full-domain recoding. Quoted, not measured here: ARX is not in the package registries.
QUOTED = {f"k = {K}": 0.645, f"k = {K}, t = {T}": 0.788}


def run(section: Section, rows: int | None) -> None:
    """Adult, then SAL."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        _adult(section, training(place, rows, age_tree=True), QUOTED if known(rows) else {}, place)
        whole = with_trees(tables.sal(place, rows))
        section.say(
            f"{whole.remark} Age and education by balanced trees of height {HEIGHT}, which no tool ships: by "
            "`Hierarchy.balanced`, age with three children a node, education with two and its highest level taken out, or it "
            f"would be one level higher. k = {K}."
        )
        for count in COLUMNS:
            source = part(whole, place / "part.csv", quasi=list(whole.schema.quasi)[:count])
            section.say(f"With {count} quasi-identifiers: {', '.join(source.schema.quasi)}.")
            releases = compare_with_floor(section, source, _requests(source.secret), place)
            section.table(LATTICE, [[name, *lattice(release)] for name, release in releases.items()])


LATTICE = ["lattice", "vectors", "judged on all columns", "on some", "levels"]


def lattice(release: ck.Release) -> list[str]:
    """Size of the lattice, how much of it was looked at, and the levels that were found."""
    assert release._recipe is not None, "it was made here, not read"
    note = next(note for note in release._recipe["notes"] if note.startswith("levels"))
    counts = re.findall(r"([\d,]+) (?:vectors|judged|on some)", note)
    levels = release.certificate.form["generalized"]["levels"]
    return [*counts, ", ".join(f"{name} {level}" for name, level in levels.items())]


def with_trees(source: tables.Source) -> tables.Source:
    """Balanced trees for the numeric quasi-identifiers, and no other change."""
    quasi = {name: tree_of(kind) if isinstance(kind, Numeric) else kind for name, kind in source.schema.quasi.items()}
    schema = ck.Schema(quasi=quasi, sensitive=source.schema.sensitive)
    return tables.Source(source.path, schema, source.secret, source.rows, source.remark)


def tree_of(kind: Numeric) -> ck.Hierarchy:
    """A balanced tree over all whole numbers of a column: three children a node, or two and the highest levels taken out.

    >>> sorted({int(tree_of(ck.numeric(1, last)).tree.height.max()) for last in (17, 78)})
    [4]
    """
    assert kind.bounds is not None, "its numbers are declared"
    values = range(int(kind.bounds[0]), int(kind.bounds[1]) + 1)
    trees = (ck.Hierarchy.balanced(values, fanout) for fanout in (3, 2))
    nested = next(tree for tree in trees if tree.tree.height.max() >= HEIGHT).nested[STAR]
    while ck.Hierarchy.from_nested({STAR: nested}).tree.height.max() > HEIGHT:
        nested = {label: below for top in nested.values() for label, below in top.items()}
    return ck.Hierarchy.from_nested({STAR: nested})


def _adult(section: Section, source: tables.Source, quoted: dict[str, float], place: Path) -> None:
    """The levels of least loss are known, so they have to be found."""
    guarantees: list[Model] = [ck.KAnonymity(K), ck.TCloseness(source.secret, T)]
    lines = []
    for limit, models in zip(QUOTED, (guarantees[:1], guarantees), strict=True):
        request = Request("", models, ck.Incognito(), "")
        request.release(source, head(source, place / "warm.csv"))  # loads the compiled loops
        release = request.release(source)
        seconds = clock.in_turns({"": lambda r=request: r.release(source)})[""]
        loss = f"{release.loss:.4f}"
        lines.append([limit, f"{quoted[limit]:.3f}" if quoted else "", loss, clock.spread(seconds), *lattice(release)])
        if quoted and release.loss > quoted[limit] + 0.0005:
            raise AssertionError(f"a better vector of levels is known for {limit}")
    section.say(
        f"{source.remark} Age by its tree, sensitive attribute {source.secret} with tree distances, nothing suppressed. "
        f"Quoted: the "
        "full-domain optimum of ARX on the same rows, measured elsewhere, rounded; a greater loss than that ends this run. "
        "Time: from CSV file to certified release in memory."
    )
    section.table(["requested", "loss A, quoted", "loss A", "time", *LATTICE[1:]], lines)


def _requests(secret: str) -> list[Request]:
    k = ck.KAnonymity(K)
    with_t = [Request(f"Incognito, k={K}, t={t}", [k, ck.TCloseness(secret, t)], ck.Incognito(), "") for t in SAL_TS]
    return [Request(f"Incognito, k={K}", [k], ck.Incognito(), ""), *with_t]
