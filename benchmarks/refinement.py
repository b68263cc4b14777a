"""Refinement and downcoding: what follows from a known method and from how cells are written, on every part of Adult.

Refinement is measured for every method whose code ensures something of its classes; the others are listed. Downcoding is
measured with tight ranges, with ranges snapped at writing, and with values coarsened before the method sees them. ARX's own
releases are refined where the public tables are at hand.
"""

from __future__ import annotations

import csv
import gzip
import tempfile
from pathlib import Path

import numpy as np

import closeknit as ck
import tables
from closeknit.core.columns import Columns
from closeknit.core.errors import CloseknitError
from closeknit.core.method import Method
from closeknit.core.model import Model
from closeknit.io.files import read
from closeknit.methods import REGISTRY
from sections import Section

ROWS, SOLVES, STEP = 300, 60, 5
HEAD = ["guarantees", "method", "classes tried", "values ruled out", "one value left", "guessed", "by the class"]
ARX = {"adult_k10_t0.2": ck.TCloseness("occupation", 0.2), "adult_k10_beta1.5": ck.BetaLikeness("occupation", 1.5)}
LEVELS = ("sex", "age", "race", "marital-status", "education", "workclass")


def run(section: Section, rows: int | None) -> None:
    """Both attacks on some rows of Adult, and refinement of ARX's releases."""
    with tempfile.TemporaryDirectory() as folder:
        source = tables.adult(Path(folder), rows)
        section.say(source.remark)
        columns = read(source.path)
        some = columns.take(np.linspace(0, columns.rows - 1, min(ROWS, columns.rows)).astype(np.int64))
        section.say(f"Refinement: {some.rows:,} rows, evenly spread; {SOLVES} programs for each line.")
        _refine(section, some, source)
        section.say(f"Downcoding, k = 6, all rows; age in steps of {STEP} where it is snapped or coarsened.")
        _downcode(section, columns, source)
    if (data := tables.data_folder()) is not None and rows is None:
        section.say("Refinement of ARX's local recoding, for an adversary who knows all values outside one class:")
        section.table(["release", *HEAD[2:]], [[name, *_share(_attack_arx(data, name))] for name in ARX])


def _refine(section: Section, some: Columns, source: tables.Source) -> None:
    secret = source.secret
    guarantees: dict[str, list[Model]] = {
        "k = 3, t = 0.3": [ck.KAnonymity(3), ck.TCloseness(secret, 0.3)],
        "k = 3, beta = 2": [ck.KAnonymity(3), ck.BetaLikeness(secret, 2)],
        "k = 3, l = 3": [ck.KAnonymity(3), ck.LDiversity(secret, 3)],
    }
    lines, nothing = [], set()
    for text, models in guarantees.items():
        for name, kind in REGISTRY.items():
            method = ck.Microaggregation(refine=True) if name == "microaggregation" else kind()
            try:
                release = ck.anonymize(some, source.schema, models, method, seed=2**100)
            except CloseknitError:  # it plans for other guarantees
                continue
            found = _attack(release, some, source.schema, method, models)
            if found.number is None and not found.details:
                nothing.add(name)
            else:
                lines.append([text, f"`{name}`", *_share(found)])
    section.table(HEAD, lines)
    section.say(f"No condition is ensured by: {', '.join(f'`{name}`' for name in sorted(nothing))}.")


def _attack(release: ck.Release, table: Columns, schema: ck.Schema, method: Method, models: list[Model]) -> ck.attacks.Finding:
    return ck.attacks.refinement(table, release.partition, schema, method, models, solves=SOLVES)


def _share(found: ck.attacks.Finding) -> list[str]:
    details = found.details
    if found.number is None:
        return ["0", "-", "-", "-", "-"]
    shares = [f"{100 * details[name]:.1f}%" for name in ("guessed_share", "guessed_by_class_share")]
    left = f"{details['one_value_left']} of {details['members']}"
    return [str(details["classes_tried"]), f"{100 * details['excluded_share']:.2f}%", left, *shares]


def _downcode(section: Section, columns: Columns, source: tables.Source) -> None:
    lines = []
    kinds = {"tight": ck.numeric(), "snapped": ck.numeric(step=STEP), "coarsened": ck.numeric(step=STEP, coarsen=True)}
    for method in (ck.Knit(), ck.Mondrian()):
        for name, kind in kinds.items():
            schema = source.schema.model_copy(update={"quasi": {**source.schema.quasi, "age": kind}})
            form = ck.generalized(snap=name == "snapped")
            release = ck.anonymize(columns, schema, [ck.KAnonymity(6)], method, form=form, seed=2**100)
            found = ck.attacks.downcoding(release, columns, schema, release.partition)
            numbers = [f"{found.details[each]:,}" for each in ("generalized_cells", "recovered", "by_marginal", "narrowed")]
            lines.append([f"`{method.name}`", name, f"{release.loss:.3f}", *numbers, f"{found.risk:.3f}"])
    head = ["method", "age", "loss", "generalized cells", "recovered", "right by guessing", "narrowed", "risk"]
    section.table(head, lines)


def _attack_arx(data: Path, name: str) -> ck.attacks.Finding:
    """ARX's rows are in the order of Adult's complete training rows."""
    with gzip.open(data / "arx" / f"{name}.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    with gzip.open(data / "adult" / "adult.csv.gz", "rt") as file:
        people = [row for row in csv.DictReader(file) if "?" not in row.values()][: len(rows)]
    trees = data / "adult" / "hierarchies"
    kinds = {each: ck.Hierarchy.read_csv(trees / f"adult_hierarchy_{each}.csv") for each in (*LEVELS, "occupation")}
    schema = ck.Schema(quasi={each: kinds[each] for each in LEVELS}, sensitive={"occupation": kinds["occupation"]})
    table = Columns.of({each: [row[each] for row in people] for each in kinds})
    written = Columns.of({each: [row[each] for row in rows] for each in LEVELS})
    suppressed = [row["__withheld"] == "1" for row in rows]
    models = [ck.KAnonymity(10), ARX[name]]
    return ck.attacks.local_recoding(table, written, schema, models, suppressed=suppressed, solves=4 * SOLVES)
