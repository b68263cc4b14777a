"""Knit on lines drawn at random, compared with every other method of the package and with the lower bound.

`python benchmarks/run.py knit_drawn` runs every line; `python benchmarks/knit_drawn.py "3 columns"` prints those that begin so.
"""

from __future__ import annotations

import dataclasses
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import closeknit as ck
import tables
from closeknit.api.comparing import list_methods
from closeknit.core.method import Method
from closeknit.core.model import Model
from closeknit.methods import REGISTRY
from knit import Made, Problem, through
from knit_lines import build_models
from sections import Section

ROWS, SEED, BOUND_SECONDS = 3_000, 2_026, 8
COLUMNS = (3, 5, 8, 12)
STEPS = (4, 9, 25, 80)  # values of the numeric columns, in turn
GENERATED = ((3, "k"), (25, "l=4"), (5, "t=0.2"), (10, "beta=1.5"))
KS = (3, 5, 10, 20, 50)
OPTIONS = {"fill": ("hilbert", "knn"), "refine": (True,)}  # of the other methods, tried next to their defaults
# Drawn for each guarantee of Adult and SAL: k, the number of columns, the columns and the sensitive attribute.
GUARANTEES = (
    *("k", "k", "l=4", "frequency l=3", "entropy l=3", "t=0.1", "t=0.2", "t=0.35"),
    *("beta=1", "beta=1.5", "beta=2", "beta=4", "delta=2", "two t=0.3"),
)
NUMBERS = {"age", "hours-per-week", "capital-gain", "capital-loss", "fnlwgt", "education-num"}  # of Adult
SENSITIVE = {
    "Adult": ("occupation", "education", "marital-status", "workclass"),
    "SAL": ("salary-class", "education", "work-class", "marital-status"),
}
ORDERED = {"Adult": ("age", "hours-per-week"), "SAL": ("age",)}  # also drawn for guarantees without caps
HEAD = ["line", "Mondrian", "best other", "which", "Knit", "processor s", "of the best other", "lower bound", "Knit / bound"]


def run(section: Section, rows: int | None) -> None:
    """Every line."""
    report(section, rows, "")


def report(section: Section, rows: int | None, beginning: str) -> None:
    """The lines whose names begin so."""
    n, seconds = rows or ROWS, BOUND_SECONDS if rows is None else 1
    public = tables.data_folder() if rows is None else None
    found = [line for line in list_lines(n, public) if line.name.startswith(beginning)]
    section.say(
        f"{n:,} rows on each line, losses A, no row suppressed. A generated table has 3 to 12 quasi-identifiers, every other "
        "one a column of numbers, and a sensitive attribute of nine values that depends on them. On Adult and SAL the "
        "guarantees are chosen, and k, the number of quasi-identifiers, which ones, the sensitive attribute and the rows are "
        f"drawn at random (seed {SEED}); a line that no release can meet is drawn again. The best other: of every method that "
        "`compare` knows for such guarantees, at its defaults, with either fill, and microaggregation refined too; one that "
        "refuses the request is left out. SoftStop runs on the table itself, once for each line. Processor time of all "
        f"threads, from the frame to the release. The lower bound is what `bound_loss` proves in {seconds} s."
    )
    if public is None:
        section.say("Only generated tables: compare with no other figure.")
    section.table(HEAD, [_line(requested, seconds) for requested in found])
    drawn = [f"- {one.name}: {', '.join(one.schema.quasi)}." for one in found if not one.name[0].isdigit()]
    section.say("\n".join(["Quasi-identifiers that were drawn:", "", *drawn]) if drawn else None)


def list_lines(rows: int, data: Path | None) -> Iterator[Problem]:
    """Generated tables, and the public ones that are at hand."""
    for d in COLUMNS:
        frame, schema = _generate_table(rows, d)
        for k, guarantee in GENERATED:
            models = [ck.KAnonymity(k), *build_models(guarantee, "ill")]
            yield Problem(f"{d} columns, {_describe(k, guarantee)}", frame, schema, models)
    if data is not None:
        for place, (name, (frame, kinds)) in enumerate({"Adult": _read_adult(data), "SAL": _read_sal(data)}.items()):
            rng = np.random.default_rng([SEED, place])
            for guarantee in GUARANTEES:
                yield _draw_line(name, frame, kinds, guarantee, rows, rng)


def _describe(k: int, guarantee: str) -> str:
    return f"k = {k}" if guarantee == "k" else f"k = {k}, {guarantee.replace('=', ' = ')}"


def _generate_table(rows: int, d: int) -> tuple[pl.DataFrame, ck.Schema]:
    """Columns that depend on two hidden numbers, as does the sensitive attribute."""
    rng = np.random.default_rng([SEED, d])
    hidden = rng.random((rows, 2))
    quasi: dict[str, Any] = {}
    cells: dict[str, Any] = {}
    for j in range(d):
        place = np.clip(0.6 * hidden[:, j % 2] + 0.4 * rng.random(rows), 0, 1 - 1e-9)
        if j % 2 == 0:
            size = STEPS[j // 2 % len(STEPS)]
            cells[f"c{j}"], quasi[f"c{j}"] = (place * size).astype(int), ck.numeric(0, size - 1)
        else:
            cells[f"c{j}"] = (place * 12).astype(int).astype(str)
            quasi[f"c{j}"] = ck.Hierarchy.balanced([str(leaf) for leaf in range(12)], 4)
    cells["ill"] = np.minimum((9 * hidden.mean(axis=1) * rng.random(rows) ** 0.5).astype(int), 8).astype(str)
    return pl.DataFrame(cells), ck.Schema(quasi=quasi, sensitive={"ill": ck.flat()})


def _read_adult(data: Path) -> tuple[pl.DataFrame, dict[str, Any]]:
    """All columns of the complete rows: numbers by value, the others by their hierarchies."""
    frame = pl.read_csv(data / "adult" / "adult.csv.gz", infer_schema=False)
    frame = frame.filter(~pl.any_horizontal(pl.all() == "?"))
    paths = {name: data / "adult" / "hierarchies" / f"adult_hierarchy_{name}.csv" for name in frame.columns}
    trees = {name: ck.Hierarchy.read_csv(path) if path.exists() else ck.flat() for name, path in paths.items()}
    return frame, {name: ck.numeric() if name in NUMBERS else kind for name, kind in trees.items()}


def _read_sal(data: Path) -> tuple[pl.DataFrame, dict[str, Any]]:
    schema = tables.sal_schema(data)
    return pl.read_csv(data / "census" / "sal500k.csv.gz", infer_schema=False), {**schema.quasi, **schema.sensitive}


def _draw_line(
    table: str, frame: pl.DataFrame, kinds: dict[str, Any], guarantee: str, rows: int, rng: np.random.Generator
) -> Problem:
    """The first line that a release can meet."""
    count, guarantee = (2, guarantee.removeprefix("two ")) if guarantee.startswith("two ") else (1, guarantee)
    capped = not guarantee.startswith(("k", "l", "t"))
    while True:
        k = int(rng.choice(KS))
        secrets = _pick(rng, (*SENSITIVE[table], *(() if capped else ORDERED[table])), count)
        left = [name for name in kinds if name not in secrets]
        quasi = _pick(rng, left, int(rng.integers(3, min(9, len(left)), endpoint=True)))
        schema = ck.Schema(quasi={name: kinds[name] for name in quasi}, sensitive={name: kinds[name] for name in secrets})
        name = f"{table}, {len(quasi)} columns, {' and '.join(secrets)}, {_describe(k, guarantee)}"
        models: list[Model] = [ck.KAnonymity(k), *(model for secret in secrets for model in build_models(guarantee, secret))]
        part = frame.sample(rows, seed=int(rng.integers(2**31))).select([*quasi, *secrets])
        line = Problem(name, part, schema, models)
        if _measure(ck.Mondrian(), line) is not None:
            return line


def _pick(rng: np.random.Generator, names: Sequence[str], count: int) -> list[str]:
    """Some of the names, in the order in which they are given."""
    return [names[place] for place in sorted(rng.choice(len(names), count, replace=False))]


def _line(requested: Problem, seconds: float) -> list[str]:
    Made.by(through(len(requested.frame), 1), requested)  # loads the compiled loops
    knit = Made.by(ck.Knit(), requested)
    losses = measure_others(requested)
    which = min(losses, key=lambda name: (losses[name], name != ck.Mondrian.name))  # the simpler one where they are equal
    bound = ck.bound_loss(requested.frame, requested.schema, requested.models, seconds=seconds).loss
    return [
        requested.name,
        f"{losses['mondrian']:.4f}",
        f"{losses[which]:.4f}",
        which,
        f"{knit.release.loss:.4f}",
        f"{knit.seconds:.1f}",
        f"{knit.release.loss / losses[which]:.3f}" if losses[which] else "",
        f"{bound:.4f}",
        f"{knit.release.loss / bound:.2f}" if bound else "",
    ]


def measure_others(requested: Problem) -> dict[str, float]:
    """What every other method loses that meets the request."""
    losses = {_name(method): _measure(method, requested) for method in list_others(requested.models)}
    return {name: loss for name, loss in losses.items() if loss is not None}


def list_others(models: Sequence[Model]) -> list[Method]:
    """Every other method for such guarantees at its defaults, and with each of the options that are tried."""
    found = [REGISTRY[name]() for name in list_methods(models) if name != ck.Knit.name]
    tried = [
        dataclasses.replace(method, **{option: value})
        for method in found
        for option, values in OPTIONS.items()
        for value in values
        if hasattr(method, option)
    ]
    return [*found, *(method for method in tried if method not in found)]


def _name(method: Method) -> str:
    """Its name, and the options that differ from the defaults."""
    usual = type(method)()
    differing = {option: getattr(method, option, None) for option in OPTIONS}
    texts = [f"{option} = {value}" for option, value in differing.items() if value != getattr(usual, option, None)]
    return ", ".join([method.name, *texts])


def _measure(method: Method, requested: Problem) -> float | None:
    """The loss, or None if the method refuses the request."""
    try:
        return Made.by(method, requested).release.loss
    except (ck.Unsatisfiable, ck.BadInput):
        return None


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    page = Section("Knit on drawn lines")
    report(page, None, " ".join(sys.argv[1:]))
    print(page.text())
