"""The tables that are measured: public ones where they are at hand, else generated ones of the same size and columns."""

from __future__ import annotations

import csv
import gzip
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

import closeknit as ck

ADULT_QUASI = ("age", "workclass", "marital-status", "race", "sex", "native-country", "salary-class")
ADULT_ROWS, SAL_ROWS = 45_222, 500_000
# Leaves of each column, for a stand-in of the same shape; age and education of SAL, age of Adult are numbers.
ADULT_SHAPE = {
    "age": 74,
    "workclass": 8,
    "marital-status": 7,
    "race": 5,
    "sex": 2,
    "native-country": 41,
    "salary-class": 2,
    "occupation": 14,
}
SAL_SHAPE = {
    "age": 78,
    "sex": 2,
    "education": 17,
    "marital-status": 6,
    "race": 9,
    "work-class": 10,
    "country": 83,
    "salary-class": 50,
}
ADULT_NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
ADULT_ALL_SHAPE = {
    "age": 74,
    "workclass": 7,
    "fnlwgt": 26_741,
    "education": 16,
    "education-num": 16,
    "marital-status": 7,
    "occupation": 14,
    "relationship": 6,
    "race": 5,
    "sex": 2,
    "capital-gain": 121,
    "capital-loss": 97,
    "hours-per-week": 96,
    "native-country": 41,
    "salary-class": 2,
}


@dataclass(frozen=True)
class Source:
    """A table in a CSV file, what its columns are, and what a reader has to know about it."""

    path: Path
    schema: ck.Schema
    secret: str
    rows: int
    remark: str


def data_folder() -> Path | None:
    """Return the folder of public tables if it exists: $CLOSEKNIT_DATA, or `shared/data` next to the project."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("CLOSEKNIT_DATA", default))
    return folder if folder.is_dir() else None


def sal(place: Path, rows: int | None = None) -> Source:
    """SAL as a plain CSV file in `place`; with `rows`, a generated table of that many."""
    data = data_folder()
    if rows is not None or data is None:
        return _generated(place / "sal.csv", SAL_SHAPE, ("age", "education", "salary-class"), "salary-class", rows or SAL_ROWS)
    path = place / "sal.csv"
    with gzip.open(data / "census" / "sal500k.csv.gz") as packed, open(path, "wb") as plain:
        shutil.copyfileobj(packed, plain)
    return Source(path, sal_schema(data), "salary-class", SAL_ROWS, "The table is SAL of CENSUS, 500,000 rows, 8 columns.")


def sal_schema(data: Path) -> ck.Schema:
    """Age and education as numbers over their declared domains, the other quasi-identifiers by their hierarchies."""
    with open(data / "census" / "domains.csv", encoding="utf-8") as file:
        bounds = {line["attribute"]: (int(line["first_code"]), int(line["last_code"])) for line in csv.DictReader(file)}
    trees = data / "census" / "hierarchies"
    numeric = ("age", "education")
    quasi = {
        name: ck.numeric(*bounds[name]) if name in numeric else ck.Hierarchy.read_csv(trees / f"census_hierarchy_{name}.csv")
        for name in SAL_SHAPE
        if name != "salary-class"
    }
    return ck.Schema(quasi=quasi, sensitive={"salary-class": ck.numeric(*bounds["salary-class"])})


def adult(place: Path, rows: int | None = None, age_tree: bool = False) -> Source:
    """The complete rows of Adult as a CSV file in `place`; with `rows`, a generated table of that many."""
    data = data_folder()
    if rows is not None or data is None:
        numbers = () if age_tree else ("age",)
        return _generated(place / "adult.csv", ADULT_SHAPE, numbers, "occupation", rows or ADULT_ROWS)
    frame = adult_frame(data)
    path = place / "adult.csv"
    frame.write_csv(path)
    remark = f"The table is Adult, the {frame.height:,} complete rows."
    return Source(path, adult_schema(data, age_tree), "occupation", frame.height, remark)


def adult_frame(data: Path) -> pl.DataFrame:
    """Quasi-identifiers and occupation of the rows without any missing value."""
    frame = pl.read_csv(data / "adult" / "adult.csv.gz", infer_schema=False)
    complete = frame.filter(~pl.any_horizontal(pl.all() == "?"))
    return complete.select([*ADULT_QUASI, "occupation"])


def adult_all(place: Path, rows: int | None = None) -> Source:
    """All fifteen columns of the complete rows of Adult, numbers by value, all else flat; with `rows`, a generated table."""
    data = data_folder()
    if rows is not None or data is None:
        return _generated(place / "adult_all.csv", ADULT_ALL_SHAPE, ADULT_NUMBERS, "occupation", rows or ADULT_ROWS)
    frame = pl.read_csv(data / "adult" / "adult.csv.gz", infer_schema=False)
    frame = frame.filter(~pl.any_horizontal(pl.all() == "?"))
    path = place / "adult_all.csv"
    frame.write_csv(path)
    kinds = {name: ck.numeric() if name in ADULT_NUMBERS else ck.flat() for name in frame.columns}
    secret = {"occupation": kinds.pop("occupation")}
    remark = f"The table is Adult, the {frame.height:,} complete rows."
    return Source(path, ck.Schema(quasi=kinds, sensitive=secret), "occupation", frame.height, remark)


def adult_schema(data: Path, age_tree: bool = False) -> ck.Schema:
    """Age as a number (or by its tree, for tools that know no numbers), all else by the shared hierarchies."""

    def tree(name: str) -> ck.Hierarchy:
        return ck.Hierarchy.read_csv(data / "adult" / "hierarchies" / f"adult_hierarchy_{name}.csv")

    quasi = {name: ck.numeric() if name == "age" and not age_tree else tree(name) for name in ADULT_QUASI}
    return ck.Schema(quasi=quasi, sensitive={"occupation": tree("occupation")})


def _generated(path: Path, shape: dict[str, int], numbers: tuple[str, ...], secret: str, rows: int) -> Source:
    """Skewed columns that all lean on one hidden number, so that rows have near and far neighbours as real ones do."""
    rng = np.random.default_rng(20_07)
    hidden = rng.normal(size=rows)
    columns, kinds = {}, {}
    for name, leaves in shape.items():
        rank = np.argsort(np.argsort(0.6 * hidden + 0.8 * rng.normal(size=rows)))
        codes = np.minimum((leaves * (rank / rows) ** 1.7).astype(np.int64), leaves - 1)
        if name in numbers:
            columns[name], kinds[name] = codes + 16, ck.numeric(16, 15 + leaves)
        else:
            labels = np.array([f"{name} {leaf:02}" for leaf in range(leaves)])
            columns[name], kinds[name] = labels[codes], ck.Hierarchy.balanced(labels.tolist(), 5)
    pl.DataFrame(columns).write_csv(path)
    schema = ck.Schema(quasi={n: k for n, k in kinds.items() if n != secret}, sensitive={secret: kinds[secret]})
    remark = f"The table is generated ({rows:,} rows with the same columns), not the public one: compare with no other figure."
    return Source(path, schema, secret, rows, remark)
