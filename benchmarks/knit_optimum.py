"""How far Knit is from the best that any release could lose: all partitions of tiny tables, a lower bound for larger ones.

`python benchmarks/run.py knit_optimum` runs all; `python benchmarks/knit_optimum.py tiny boxes` prints single parts.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import polars as pl

import closeknit as ck
from closeknit.core.columns import Columns
from closeknit.core.errors import CloseknitError
from closeknit.core.method import Method, ignore_progress
from closeknit.core.model import Model
from closeknit.core.table import Table
from closeknit.metrics.loss_bound import bound_table
from closeknit.search.box_program import solve_boxes
from closeknit.search.repair import repair_partition
from knit import Problem, lines
from knit_best import guarded, loss_of, optimum
from sections import Section

SEED, DRAWN = 7, 1
TINY_ROWS, TINY_SEEDS, TINY_REQUESTED = 13, 6, ((2, "0.3"), (2, "0.5"), (3, "0.4"), (3, "0.6"))
THREE, FIVE = ("sex", "marital-status", "education"), ("sex", "age", "marital-status", "education", "workclass")
TWO = ("sex", "education")
SAMPLES = ((200, THREE), (200, FIVE), (1_000, THREE))
SAMPLE_LINES = ("t=0.2", "t=0.35", "beta=2", "k alone")
LESS = (Fraction(49, 50), Fraction(19, 20), Fraction(9, 10))  # of t, so that rounding to whole rows breaks little
DECADE = 10  # years: ages of samples are rounded down to it, or there would be too many boxes
METHODS: dict[str, Method] = {"Mondrian": ck.Mondrian(), "Stack & Deal": ck.StackAndDeal(), "SABRE": ck.Sabre()}


def run(section: Section, rows: int | None) -> None:
    """Every part."""
    for part in PARTS_OF_IT.values() if rows is None else [tiny]:
        part(section, rows)


def lost(method: Method, table: Table, models: Sequence[Model]) -> float | None:
    """What a method loses, where it plans for such guarantees."""
    try:
        return loss_of(table, repair_partition(table, method.run(table, models, SEED, ignore_progress).partition, models))
    except CloseknitError:
        return None


def tiny(section: Section, rows: int | None) -> None:
    """Generated patients, few enough for all partitions."""
    schema = ck.datasets.hospital_schema()
    over: dict[str, list[float]] = {name: [] for name in ("Knit", *METHODS)}
    below = []
    for seed in range(TINY_SEEDS if rows is None else 1):
        for k, t in TINY_REQUESTED:
            table = schema.encode(ck.datasets.hospital(TINY_ROWS, seed=seed))
            models: list[Model] = [ck.KAnonymity(k), ck.TCloseness("disease", t)]
            best = loss_of(table, optimum(table, models))
            below.append(solve_boxes(table, guarded(table, models)).loss / best)
            for name, method in {"Knit": ck.Knit(), **METHODS}.items():
                over[name].append((lost(method, table, models) or 1.0) / best - 1)
    section.say(
        f"{len(below)} tables of {TINY_ROWS} patients (5 quasi-identifiers; k of 2 or 3, t from 0.3 to 0.6): the best "
        f"of all partitions is known. The lower bound is {np.mean(below):.1%} of it on average ({min(below):.1%} at the least)."
    )
    found = [
        [name, f"{sum(x < 1e-9 for x in each)} of {len(each)}", f"{np.mean(each):.2%}", f"{max(each):.1%}"]
        for name, each in over.items()
    ]
    section.table(["method", "finds the best", "above it on average", "at worst"], found)


def samples(section: Section, rows: int | None) -> None:
    """Rows and columns of Adult, few enough for all boxes."""
    found = []
    for count, quasi in SAMPLES:
        for name in SAMPLE_LINES:
            requested = lines()[name]
            found.append(
                _compare(f"{count:,} rows, {len(quasi)} columns, {name}", encoded(requested, quasi, count), requested.models)
            )
    section.say(
        f"Rows of Adult, drawn at random; {len(THREE)} columns: {', '.join(THREE)}; {len(FIVE)}: {', '.join(FIVE)} (age in "
        "decades); k = 6. No release loses less than the bound; the best possible is somewhere between it and the least figure."
    )
    section.table(["table", "boxes", "bound", "Knit", "× bound", *METHODS, "seconds of the bound"], found)


def columns(section: Section, rows: int | None) -> None:
    """All rows of Adult with few columns: a box holds thousands, so shares of rows are nearly whole rows."""
    found = []
    for quasi, name in ((TWO, "t=0.1"), (THREE, "t=0.1"), (THREE, "t=0.2")):
        requested = lines()[name]
        table = encoded(requested, quasi)
        line = _compare(f"{', '.join(quasi)}, {name}", table, requested.models)
        found.append([*line[:5], f"{rounded(table, requested.models, Fraction(name.removeprefix('t='))):.4f}", *line[5:]])
    section.say(
        "All rows of Adult with two or three columns. Rounded: the shares of the linear program for a slightly smaller t (the "
        "best of three), with whole rows in their place and merged where a guarantee was not met. Knit does not use it."
    )
    section.table(["table", "boxes", "bound", "Knit", "× bound", "rounded", *METHODS, "seconds of the bound"], found)


def rounded(table: Table, models: Sequence[Model], t: Fraction) -> float:
    """What a release loses that is made of the program's shares: an upper bound of the best possible."""
    found = []
    for share in LESS:
        tight: list[Model] = [ck.KAnonymity(6), ck.TCloseness("occupation", share * t)]
        found.append(loss_of(table, repair_partition(table, solve_boxes(table, guarded(table, tight)).round_shares(), models)))
    return min(found)


def fixed_boxes(section: Section, rows: int | None) -> None:
    """Many columns: how much could be gained if Knit's boxes stayed as they are and rows were dealt to them at best."""
    found = []
    for count, name in ((1_000, "t=0.2"), (1_000, "t=0.35"), (1_000, "beta=2"), (3_000, "t=0.2")):
        requested = lines()[name]
        table = encoded(requested, list(requested.schema.quasi), count)
        made = ck.Knit().run(table, requested.models, SEED, ignore_progress).partition
        bound = solve_boxes(table, guarded(table, requested.models), made)
        loss = loss_of(table, made)
        found.append([f"{count:,} rows, {name}", bound.boxes, f"{bound.loss:.4f}", f"{loss:.4f}", f"{loss / bound.loss:.3f}"])
    section.say(
        "All seven columns of Adult, age by value, have too many boxes. A lower bound over the boxes of Knit's own classes "
        "bounds how much another assignment of the rows could gain."
    )
    section.table(["table", "boxes", "bound for these boxes", "Knit", "× bound"], found)


def whole(section: Section, rows: int | None) -> None:
    """Adult as it is."""
    found = []
    for name, requested in lines().items():
        table = encoded(requested, list(requested.schema.quasi))
        start = time.process_time()
        bound = bound_table(table, requested.models)
        took, knit = time.process_time() - start, lost(ck.Knit(), table, requested.models)
        assert knit is not None
        found.append([name, f"{bound.loss:.4f}", bound.by, f"{knit:.4f}", f"{knit / bound.loss:.2f}", f"{took:.1f}"])
    section.say("All seven columns and all rows: the lower bound that `ck.bound_loss` computes in a minute at most.")
    section.table(["requested", "no release loses less than", "by", "Knit", "× bound", "seconds of the bound"], found)


def _compare(name: str, table: Table, models: Sequence[Model]) -> list[str]:
    start = time.process_time()
    bound = solve_boxes(table, guarded(table, models))
    took = time.process_time() - start
    knit, others = lost(ck.Knit(), table, models), [lost(method, table, models) for method in METHODS.values()]
    assert knit is not None
    shown = ["" if other is None else f"{other:.4f}" for other in others]
    return [name, f"{bound.boxes:,}", f"{bound.loss:.4f}", f"{knit:.4f}", f"{knit / bound.loss:.3f}", *shown, f"{took:.1f}"]


def encoded(requested: Problem, quasi: Sequence[str], count: int | None = None) -> Table:
    """Some columns and rows of a line's table; ages in decades where boxes of all columns are wanted."""
    frame = requested.frame if count is None else requested.frame.sample(count, seed=DRAWN)
    if tuple(quasi) == FIVE:
        frame = frame.with_columns((pl.col("age").cast(pl.Int64) // DECADE * DECADE).cast(pl.String))
    schema = ck.Schema(quasi={name: requested.schema.quasi[name] for name in quasi}, sensitive=requested.schema.sensitive)
    return schema.encode(Columns.of({name: frame[name].to_list() for name in (*quasi, *schema.sensitive)}))


PARTS_OF_IT: dict[str, Callable[[Section, int | None], None]] = {
    "tiny": tiny,
    "samples": samples,
    "columns": columns,
    "boxes": fixed_boxes,
    "all": whole,
}


def main(names: Sequence[str]) -> None:
    """Print single parts, without writing them anywhere."""
    section = Section("Knit compared with the optimum")
    for name in names or PARTS_OF_IT:
        PARTS_OF_IT[name](section, None)
    print(section.text())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1:])
