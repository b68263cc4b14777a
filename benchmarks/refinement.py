"""Refinement and downcoding: what follows from a known method and from how cells are written, on parts of Adult and SAL.

Refinement is measured for every method whose code ensures something of its classes, and for Knit given what its search left
over; the others are listed. Downcoding is measured with tight ranges, with ranges snapped at writing, and with values coarsened
before the method sees them. ARX's own releases are refined where the public tables are at hand. A whole run replaces the table
in docs/attacks.md too.
"""

from __future__ import annotations

import csv
import gzip
import tempfile
from pathlib import Path

import numpy as np

import closeknit as ck
import tables
from closeknit.api.request_checks import read_table
from closeknit.core.columns import Columns
from closeknit.core.errors import CloseknitError
from closeknit.core.model import Model
from closeknit.io.files import read
from closeknit.methods import REGISTRY
from known_algorithm import DOCS, replace_in_docs
from sections import Section

ROWS, SOLVES, FEW_SOLVES, ARX_SOLVES, STEP = 300, 400, 30, 60, 5  # programs of Knit are small, of others up to seconds each
HEAD = ["release", "method", "classes tried", "of", "narrowed", "fixed", "excluded", "guessed (class)", "gain"]
ARX = {"adult_k10_t0.2": ck.TCloseness("occupation", 0.2), "adult_k10_beta1.5": ck.BetaLikeness("occupation", 1.5)}
LEVELS = ("sex", "age", "race", "marital-status", "education", "workclass")


def run(section: Section, rows: int | None) -> None:
    """Both attacks on some rows of Adult, refinement of some rows of SAL and of ARX's releases."""
    lines, nothing = [], set[str]()
    with tempfile.TemporaryDirectory() as folder:
        for name, source, t in (("Adult", tables.adult(Path(folder), rows), 0.3), ("SAL", tables.sal(Path(folder), rows), 0.2)):
            section.say(source.remark)
            columns = read_table(source.path, None, source.schema)[0]
            some = columns.take(np.linspace(0, columns.rows - 1, min(ROWS, columns.rows)).astype(np.int64))
            lines += _refine(name, some, source, t, nothing)
        if (data := tables.data_folder()) is not None and rows is None:
            lines += [[f"ARX, {name}", "", *_share(_attack_arx(data, name))] for name in ARX]
        section.say(
            f"Refinement: {ROWS:,} rows, evenly spread, k = 3, at most {SOLVES} programs for Knit and {FEW_SOLVES} for others; "
            f"all 30,162 training rows and {ARX_SOLVES} programs for ARX's local recoding. Classes tried have something to "
            "derive; where fewer than all were looked at, the share of narrowed classes has a 95 % interval. Knit: for an "
            "adversary who is given where its search left no improvement over."
        )
        section.table(HEAD, lines)
        section.say(f"Nothing is ensured by: {', '.join(f'`{name}`' for name in sorted(nothing))}.")
        if rows is None:
            replace_in_docs(DOCS, section.parts, "refinement")
        source = tables.adult(Path(folder), rows)
        section.say(f"Downcoding, k = 6, all rows; age in steps of {STEP} where it is snapped or coarsened.")
        _downcode(section, read(source.path), source)


def _refine(name: str, some: Columns, source: tables.Source, t: float, nothing: set[str]) -> list[list[str]]:
    """One line for each guarantee and method that ensures something; the names of the others are added to `nothing`."""
    secret, lines = source.secret, []
    guarantees: dict[str, Model] = {
        f"t = {t}": ck.TCloseness(secret, t),
        "beta = 2": ck.BetaLikeness(secret, 2),
        "l = 3": ck.LDiversity(secret, 3),
    }
    for text, model in guarantees.items():
        models = [ck.KAnonymity(3), model]
        for kind in REGISTRY.values():
            method = ck.Microaggregation(refine=True) if kind.name == "microaggregation" else kind()
            try:
                release = ck.anonymize(some, source.schema, models, method, seed=2**100)
            except CloseknitError:  # it plans for other guarantees
                continue
            solves = SOLVES if method.name == "knit" else FEW_SOLVES
            found = ck.attacks.refinement(some, release.partition, source.schema, method, models, solves=solves)
            if found.number is None and not found.details:
                nothing.add(method.name)
            else:
                lines.append([f"{name}, {text}", f"`{method.name}`", *_share(found)])
    return lines


def _share(found: ck.attacks.Finding) -> list[str]:
    details = found.details
    looked = f"{details['classes']:,}"
    if details["classes_looked_at"] < details["classes"]:
        low, high = (100 * details[f"classes_narrowed_{end}"] for end in ("low", "high"))
        looked = f"{details['classes_looked_at']} of {looked} ({low:.0f}-{high:.0f}%)"
    if found.number is None:
        return ["0", looked, "-", "-", "-", "-", "-"]
    narrowed, fixed = (f"{details[name]} of {details['members']}" for name in ("narrowed", "one_value_left"))
    right, by_class = details["guessed_share"], details["guessed_by_class_share"]
    guessed = f"{100 * right:.1f}% ({100 * by_class:.1f}%)"
    excluded, gain = f"{100 * details['excluded_share']:.1f}%", f"{100 * (right - by_class):+.1f}"
    return [str(details["classes_tried"]), looked, narrowed, fixed, excluded, guessed, gain]


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
    return ck.attacks.local_recoding(table, written, schema, models, suppressed=suppressed, solves=ARX_SOLVES)
