"""Mondrian: what its options are worth on Adult, its speed on SAL against the floor, and ten million generated rows.

Run as a script it is the process of its own that makes one release of generated rows: it reads a question from standard input
and prints the answer, both as JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import clock
import closeknit as ck
import growth
import speed
import tables
from alone import peak
from arx import QUASI, training_part
from closeknit.core.errors import Unsatisfiable
from closeknit.core.method import Method
from closeknit.core.model import Model
from sal import Request
from sections import Section

K, T = 6, 0.2
TS = (0.15, 0.2, 0.25, 0.35, 0.5)
ALONE = "k alone"
# What a plain Mondrian reaches that tries every attribute in order of width, and both sides of ties.
AIMS = {"t = 0.15": 0.64, "t = 0.2": 0.55, "t = 0.25": 0.38, "t = 0.35": 0.15, "t = 0.5": 0.07, ALONE: 0.052}
BOOK = ck.Mondrian(split="relaxed", cut="median", dims="widest")
SIZES = (1_000_000, 10_000_000)
WARM_ROWS = 20_000


def options(method: ck.Mondrian) -> str:
    """The three options of a Mondrian, in short."""
    return f"{method.split}, {method.cut}, {method.dims}"


DEFAULT, TEXTBOOK = f"Mondrian {options(ck.Mondrian())}", f"Mondrian {options(BOOK)}"


def variants() -> dict[str, Method]:
    """Measure every set of options, and the methods compared with Mondrian."""
    every = [ck.Mondrian(*chosen) for chosen in product(("relaxed", "strict"), ("median", "best"), ("widest", "try-all"))]
    made: dict[str, Method] = {f"Mondrian {options(method)}": method for method in every}
    return made | {"SABRE": ck.Sabre(), "SABRE, knn": ck.Sabre(fill="knn"), "Stack & Deal": ck.StackAndDeal()}


def run(section: Section, rows: int | None) -> None:
    """Adult, SAL, generated rows."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        _adult_table(section, training(place, rows), AIMS if known(rows) else {})
        source = tables.sal(place, rows)
        section.say(f"{source.remark} All seven quasi-identifiers, k = {K}.")
        speed.compare_with_floor(section, source, requests(source.secret), place)
    _growth(section, (rows,) if rows else SIZES)


def known(rows: int | None) -> bool:
    """Whether the public tables are measured, of which figures are known, and no stand-ins."""
    return rows is None and tables.data_folder() is not None


def training(place: Path, rows: int | None, age_tree: bool = False) -> tables.Source:
    """Adult's complete training rows with the seven quasi-identifiers of the quoted figures; with `rows`, a generated table."""
    data = tables.data_folder()
    if data is None or not known(rows):
        return tables.adult(place, rows, age_tree)
    frame, schema = training_part(data)
    if age_tree:
        age = ck.Hierarchy.read_csv(data / "adult" / "hierarchies" / "adult_hierarchy_age.csv")
        schema = ck.Schema(quasi={**schema.quasi, "age": age}, sensitive=schema.sensitive)
    frame.write_csv(place / "training.csv")
    remark = (
        f"The table is Adult, the {frame.height:,} complete rows of its training part; quasi-identifiers {', '.join(QUASI)}."
    )
    return tables.Source(place / "training.csv", schema, "occupation", frame.height, remark)


def _adult_table(section: Section, source: tables.Source, aims: dict[str, float]) -> None:
    section.say(
        f"{source.remark} Age by value, sensitive attribute {source.secret} with tree distances, k = {K} on every line, "
        f"nothing suppressed. "
        "Loss A of the written cells and seconds from CSV file to certified release in memory; every guarantee is met. "
        f"Mondrian by split, cut, dims; `{options(BOOK)}` is the textbook's, `{options(ck.Mondrian())}` the default."
    )
    lines = [["aim", *(f"{aim:.3f}" for aim in aims.values())]] if aims else []
    requested: dict[str, list[Model]] = {f"t = {t:g}": [ck.KAnonymity(K), ck.TCloseness(source.secret, t)] for t in TS}
    requested[ALONE] = [ck.KAnonymity(K)]
    losses: dict[str, dict[str, float]] = {}
    for name, method in variants().items():
        serving = {limit: models for limit, models in requested.items() if limit != ALONE or not isinstance(method, ck.Sabre)}
        _loss(source, method, [ck.KAnonymity(K), ck.TCloseness(source.secret, TS[-1])])  # loads the compiled loops
        made = {limit: _loss(source, method, models) for limit, models in serving.items()}
        lines.append([name, *(made[limit][1] if limit in made else "" for limit in requested)])
        losses[name] = {limit: loss for limit, (loss, _) in made.items()}
    section.table(["loss A / time", *requested], lines)
    section.say(_found(losses, aims))


def _loss(source: tables.Source, method: Method, models: list[Model]) -> tuple[float, str]:
    start = time.perf_counter()
    try:
        made = ck.anonymize(source.path, source.schema, models, method, seed=growth.SEED).certificate
    except Unsatisfiable:
        return 1.0, "refused"
    assert made.ok, f"{method} broke a guarantee"
    return made.loss.a, f"{made.loss.a:.3f} / {time.perf_counter() - start:.1f} s"


def _found(losses: dict[str, dict[str, float]], aims: dict[str, float]) -> str:
    default, book = losses[DEFAULT], losses[TEXTBOOK]
    shares = [default[limit] / book[limit] for limit in book]
    said = f"Mondrian's default loses {min(shares):.2f} to {max(shares):.2f} times what the textbook's options lose."
    if aims:
        met = {name: [limit for limit in line if line[limit] <= aims[limit]] for name, line in losses.items()}
        said += (
            " Aim: what a plain Mondrian reaches that tries every attribute in order of width, and both sides of ties. The "
            f"default meets {len(met[DEFAULT])} of {len(aims)}, the textbook's options {len(met[TEXTBOOK])}."
        )
    least = {limit: min(losses, key=lambda name: losses[name].get(limit, 2.0)) for limit in default}
    return f"{said} Least loss: {'; '.join(f'{limit} {name}' for limit, name in least.items())}."


def requests(secret: str) -> list[Request]:
    """k alone and with t, textbook and default."""
    k, t = ck.KAnonymity(K), ck.TCloseness(secret, T)
    return [
        Request(f"Mondrian, {said}, {requested}", models, method, "")
        for requested, models in ((f"k={K}", [k]), (f"k={K}, t={T}", [k, t]))
        for said, method in (("textbook", BOOK), ("default", ck.Mondrian()))
    ]


def _growth(section: Section, sizes: tuple[int, ...]) -> None:
    section.say(
        f"Generated rows as in the section on growth: five numeric quasi-identifiers, a numeric sensitive attribute; k = "
        f"{K}, and t = {T} where "
        "it says so. Time: `anonymize` from columns in memory to the certified release; memory: the peak of the process, "
        "generated columns and release included. Growth: time against that of the tenth of the rows; n log n would be the "
        "figure in brackets."
    )
    lines, seconds = [], {}
    for requested, method, size in product(("k", "t"), ("textbook", "default"), sizes):
        answer = clock.child(sys.executable, "mondrian.py", {"requested": requested, "method": method, "rows": size})
        seconds[requested, method, size] = answer["seconds"]
        said = f"{method}, k={K}" + (f", t={T}" if requested == "t" else "")
        lines.append(
            [
                said,
                f"{size:,}",
                f"{answer['seconds']:.2f} s",
                growth.grown(seconds, requested, method, size),
                f"{answer['peak']:,.0f} MB",
                f"{answer['start']:,.0f} MB",
                f"{answer['loss']:.4f}",
                f"{answer['classes']:,}",
            ]
        )
    section.table(["Mondrian", "rows", "time", "growth", "peak memory", "of it before", "loss A", "classes"], lines)


def _answer(question: dict[str, Any]) -> dict[str, float]:
    """One release, timed after a small one has loaded the compiled loops."""
    method = BOOK if question["method"] == "textbook" else ck.Mondrian()
    models: list[Model] = [ck.KAnonymity(K)]
    if question["requested"] == "t":
        models.append(ck.TCloseness(growth.SECRET, T))
    ck.anonymize(*growth.table(min(WARM_ROWS, question["rows"])), models, method, seed=growth.SEED)
    columns, schema = growth.table(question["rows"])
    held, start = peak(), time.perf_counter()
    made = ck.anonymize(columns, schema, models, method, seed=growth.SEED).certificate
    took = time.perf_counter() - start
    return {"seconds": took, "start": held, "peak": peak(), "loss": made.loss.a, "classes": made.classes.count}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(_answer(json.load(sys.stdin))))
