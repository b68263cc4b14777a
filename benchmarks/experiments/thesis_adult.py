"""Adult as the thesis's chapter 5 lets it come: tables whose rows arrive, and what leaves CASTLE and its rivals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import polars as pl

import closeknit as ck
import tables
from closeknit.core.columns import Columns
from closeknit.io.files import read
from experiments.arrivals import Outlet
from experiments.figures import Trial
from pictures import Panel

NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
TREES = ("education", "marital-status", "occupation", "native-country")
TEN = (*NUMBERS, *TREES)
SECRET = "salary-class"
K, DELTA, ETA, MU, SEED = 100, 10_000, 50, 100, 2**100 + 3
KS, DELTAS, QUASI = (50, 100, 150, 200), (2_000, 5_000, 10_000, 20_000), (2, 4, 6, 8, 10)
TRAINING_ROWS, SMALL = 30_162, 400
COMPLETE, TRAINING = "Adult 45k", "Adult 30k"
CASTLE, REUSE, KNN = "CASTLE", "CASTLE with reuse", "KNN"
FLATTER = (
    "The trees are the shared ones: with 4, 3, 3 and 3 levels for education, marital-status, occupation and native-country "
    "flatter than those of the source (5, 4, 3, 5), so losses are not those of its figures."
)
WAYS = (
    "CASTLE publishes whole batches and never a row alone; with reuse, as printed, rows may join generalizations that were "
    "published before, alone; KNN gathers the nearest waiting rows at expiry."
)
Lines = dict[str, dict[float, float]]


@dataclass(frozen=True, eq=False)
class Table:
    """A table whose rows arrive in the order of the file, and what all its columns may be."""

    columns: Columns
    kinds: Mapping[str, Any]
    scale: float  # of delta and k where a quick run has fewer rows than the source
    remark: str = ""

    def schema(self, quasi: Sequence[str], secret: str = SECRET, person: str | None = None) -> ck.Schema:
        """Some of the columns as quasi-identifiers."""
        return ck.Schema(quasi={n: self.kinds[n] for n in quasi}, sensitive={secret: self.kinds[secret]}, person=person)

    def rows(self, schema: ck.Schema) -> Columns:
        """Only what a schema names."""
        return Columns({name: self.columns[name] for name in schema.used}, self.columns.rows)

    def size(self, usual: int) -> int:
        """A delay or a k, in a quick run as much smaller as the table is."""
        return max(2, round(usual * self.scale))

    def settings(self, said: str = "") -> str:
        """What holds for every figure on these rows."""
        usual = f"k = {self.size(K):,}, delta = {self.size(DELTA):,}, eta = {ETA}, mu = {MU}"
        return (
            f"{self.remark} Bounds of numbers are those of the table; rows arrive in the order of the file. Unless "
            f"varied: {usual}. Loss A of the published rows; suppressed rows count 1.{' ' + said if said else ''}"
        )


@cache
def adult(trial: Trial) -> dict[str, Table]:
    """Adult 45k and, the complete rows of its training part, Adult 30k."""
    source = tables.adult_all(trial.place, trial.rows(SMALL))
    columns = read(pl.read_csv(source.path), None, [*TEN, SECRET])
    data = None if trial.quick else tables.data_folder()
    kinds: dict[str, Any] = {}
    for name in NUMBERS:
        numbers = columns[name].values.tolist()
        kinds[name] = ck.numeric(min(numbers), max(numbers))
    for name in TREES:
        path = None if data is None else data / "adult" / "hierarchies" / f"adult_hierarchy_{name}.csv"
        kinds[name] = {**source.schema.quasi, **source.schema.sensitive}[name] if path is None else ck.Hierarchy.read_csv(path)
    kinds[SECRET] = ck.flat()
    scale = columns.rows / tables.ADULT_ROWS
    training = columns.take(np.arange(round(TRAINING_ROWS * scale)))
    flatter = "" if data is None else f" {FLATTER}"
    said = f"{source.remark} Of it the first {training.rows:,}: those of the training part."
    return {
        COMPLETE: Table(columns, kinds, scale, source.remark + flatter),
        TRAINING: Table(training, kinds, scale, said + flatter),
    }


def outlet(
    way: str,
    table: Table,
    quasi: Sequence[str],
    secret: str = SECRET,
    person: str | None = None,
    k: int = K,
    delta: int = DELTA,
    **more: Any,
) -> tuple[Outlet, ck.Schema]:
    """What left, row by row."""
    schema = table.schema(quasi, secret, person)
    usual: dict[str, Any] = {"k": table.size(k), "delta": table.size(delta), "seed": SEED}
    usual |= {} if way == KNN else {"eta": ETA, "mu": MU, "reuse": way == REUSE}
    stream = (ck.KnnStream if way == KNN else ck.Castle)(schema, **{**usual, **more})
    return Outlet.of(stream, table.rows(schema)), schema


def loss(way: str, table: Table, quasi: Sequence[str], secret: str = SECRET, person: str | None = None, **more: Any) -> float:
    """What the rows that left have lost."""
    return outlet(way, table, quasi, secret, person, **more)[0].loss


def panel(x: str, lines: Lines, title: str = "", y: str = "loss A") -> Panel:
    """Deltas and the like lie ever farther apart."""
    places = sorted({place for line in lines.values() for place in line})
    return Panel(x, y, lines, title=title, log_x=places[-1] >= 10 * places[0])
