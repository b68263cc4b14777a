"""A small release as each format of certificate, report and recipe has it, in `golden/format_*`.

`python tests/format_goldens.py` writes that of the current format again: before the first release of a version whose format is
new, and never after it. Golden files of earlier formats were written by the versions that had them.
"""

from __future__ import annotations

import shutil
import tempfile
import warnings
from pathlib import Path

import closeknit as ck
from closeknit.core.columns import Columns
from closeknit.core.formats import FORMAT

GOLDEN = Path(__file__).parent / "golden"
AGES = [34, 22, 27, 43, 52, 47, 30, 36, 32, 29, 48, 55, 61, 24, 39, 44]
ZIPS = [
    "47677",
    "47602",
    "47678",
    "47905",
    "47909",
    "47906",
    "47605",
    "47673",
    "47607",
    "47605",
    "47901",
    "47904",
    "47903",
    "47601",
    "47672",
    "47907",
]
ILLS = [
    "flu",
    "gout",
    "flu",
    "ulcer",
    "flu",
    "gout",
    "ulcer",
    "flu",
    "gout",
    "ulcer",
    "flu",
    "gout",
    "ulcer",
    "flu",
    "gout",
    "ulcer",
]
PAYS = [30, 42, 51, 60, 30, 75, 42, 60, 51, 30, 42, 51, 75, 42, 60, 30]


def anonymize() -> ck.Release:
    """The release that the golden files have; its seed is known, so it is no example to follow."""
    table = Columns.of({"name": [f"P{i}" for i in range(16)], "age": AGES, "zip": ZIPS, "disease": ILLS, "pay": PAYS})
    quasi = {"age": ck.numeric(0, 100), "zip": ck.prefix()}
    schema = ck.Schema(identifier=["name"], quasi=quasi, sensitive={"disease": ck.flat(), "pay": ck.numeric(0, 100)})
    models = [ck.KAnonymity(4), ck.TCloseness("disease", 0.4), ck.LDiversity("pay", 3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ck.anonymize(table, schema, models, ck.Mondrian(), seed=7)


def write() -> None:
    """The golden files of the current format."""
    place = GOLDEN / f"format_{FORMAT}"
    with tempfile.TemporaryDirectory() as folder:
        anonymize().save(Path(folder, "out"))
        shutil.rmtree(place, ignore_errors=True)
        (place / "out").mkdir(parents=True)
        for name in ("release.csv", "certificate.json", "report.json"):
            shutil.copyfile(Path(folder, "out", name), place / "out" / name)
        shutil.copyfile(Path(folder, "out.private", "recipe.yaml"), place / "recipe.yaml")


if __name__ == "__main__":
    write()
