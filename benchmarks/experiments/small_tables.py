"""The small tables of the experiments with dealing: public ones, or generated ones of like columns in a quick run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import closeknit as ck
import tables
from closeknit.core.columns import Columns
from closeknit.core.kinds import Kind
from closeknit.core.table import Table
from closeknit.io.files import read
from experiments.figures import Trial

FREQUENCIES = (167, 153, 127, 103, 91, 89)
SALARIES = {50: 24, 55: 31, 60: 16, 65: 20, 70: 42, 75: 39, 80: 17, 85: 37, 90: 15, 95: 9}  # in thousands of USD
A, B = "trestbps", "chol"
TRANSFUSION = {
    "recency": "Recency (months)",
    "frequency": "Frequency (times)",
    "time": "Time (months)",
    "donated": "whether he/she donated blood in March 2007",
}
HABERMAN = {"age": "age", "year": "year_of_operation", "nodes": "positive_axillary_nodes", "survival": "survival_status"}
# Columns of stand-ins: the least value and how many there are.
SHAPES = {
    "heart": {"age": (29, 49), "thalach": (71, 132), A: (90, 61), B: (120, 101)},
    "transfusion": {
        "Recency (months)": (0, 31),
        "Frequency (times)": (1, 33),
        "Time (months)": (2, 78),
        "whether he/she donated blood in March 2007": (0, 2),
    },
    "haberman": {"age": (30, 49), "year_of_operation": (58, 12), "positive_axillary_nodes": (0, 31), "survival_status": (1, 2)},
}


@dataclass(frozen=True)
class Secret:
    """A table of which one sensitive attribute is looked at, and what a reader has to know of it."""

    table: Table
    name: str
    remark: str
    path: Path | None = None  # where it was read from


def of_counts(counts: Mapping[int, int], remark: str) -> Secret:
    """Nothing but a secret with so many rows of each value.

    >>> len(of_counts({1: 2, 2: 3}, "").table)
    5
    """
    cells: list[object] = [str(value) for value, count in counts.items() for _ in range(count)]
    columns = Columns.of({"all": ["alike"] * len(cells), "secret": cells})
    schema = ck.Schema(quasi={"all": ck.flat()}, sensitive={"secret": ck.numeric()})
    return Secret(schema.encode(columns), "secret", remark)


def frequencies() -> Secret:
    """The 730 rows that both sources on dealing made up."""
    rows = f"{sum(FREQUENCIES)} rows with six values of frequencies {', '.join(map(str, FREQUENCIES))}, in this order."
    return of_counts(dict(enumerate(FREQUENCIES, 1)), rows)


def heart(trial: Trial, kinds: Mapping[str, Kind] | None = None) -> tuple[Table, str, Path]:
    """Return both sensitive attributes over every whole number, so that absent numbers keep their place; or as in `kinds`."""
    path, remark = _path("heart", trial, 300)
    (low_a, high_a), (low_b, high_b) = ((90, 150), (120, 220)) if trial.quick else ((94, 200), (126, 564))
    whole: dict[str, Kind] = {
        A: ck.numeric(low_a, high_a + 1, bins=high_a + 1 - low_a),
        B: ck.numeric(low_b, high_b + 1, bins=high_b + 1 - low_b),
    }
    return _encoded(path, dict(kinds or whole)), remark, path


def cholesterol(trial: Trial, bins: int = 10) -> Secret:
    """Return one attribute of heart disease in bins of equal width, empty ones kept."""
    low, high = (120, 221) if trial.quick else (126, 564)
    table, remark, path = heart(trial, {B: ck.numeric(low, high, bins=bins)})
    return Secret(table, B, f"{remark} Sensitive attribute: {B} in {bins} bins of {low}..{high}.", path)


def small(name: str, column: str, trial: Trial) -> Secret:
    """Blood transfusion or Haberman's survival with one of its columns as the sensitive attribute."""
    path, remark = _path(name, trial, 120)
    return Secret(_encoded(path, {column: ck.numeric()}), column, remark, path)


def _encoded(path: Path, secrets: dict[str, Kind]) -> Table:
    columns = read(path)
    quasi: dict[str, Kind] = {name: ck.numeric() for name in columns.columns if name not in secrets}
    return ck.Schema(quasi=quasi, sensitive=secrets).encode(columns)


def _path(name: str, trial: Trial, rows: int) -> tuple[Path, str]:
    data = tables.data_folder()
    if not trial.quick and data is not None:
        path = data / name / f"{name}.csv"
        return path, f"The table is {name}, {sum(1 for _ in open(path, encoding='utf-8')) - 1:,} rows."
    path = trial.place / f"{name}.csv"
    rng = np.random.default_rng(51)
    lean = rng.normal(size=rows)
    cells = {
        column: low + (leaves * np.clip((0.5 * lean + rng.normal(size=rows)) / 6 + 0.5, 0, 0.999)).astype(np.int64)
        for column, (low, leaves) in SHAPES[name].items()
    }
    lines = [",".join(cells), *(",".join(map(str, row)) for row in zip(*cells.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path, f"The table is generated ({rows:,} rows like {name}), not the public one: compare with no other figure."
