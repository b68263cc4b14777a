"""Risk measures: how long they take on a million generated rows, and special uniques on Adult."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import closeknit as ck
import tables
from clock import in_turns, spread
from closeknit.core.population_uniques import ESTIMATORS, SizeCounts, estimate_population_uniques
from closeknit.io.files import read
from sections import Section

ROWS, PEOPLE, TRAINING, ENFORCED = 1_000_000, 2, 30_162, 10_000
SAMPLES, SHARES = 20, (0.2, 0.1, 0.05)
NINE = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation", "salary-class"]
LEAVES = {"age": 80, "zip": 900, "job": 60, "sex": 2, "education": 16}


def run(section: Section, rows: int | None) -> None:
    """Every measure of a table in memory, and of a release of it; then SUDA on nine columns."""
    table = _generate(rows or ROWS)
    schema = ck.Schema(quasi={name: ck.numeric() if name == "age" else ck.flat() for name in LEAVES})
    sample, people = read(table), read(pl.concat([table] * PEOPLE))
    release = ck.anonymize(table.drop("weight", "home"), schema, [ck.KAnonymity(5)], ck.Mondrian())
    settings: dict[str, tuple[Any, dict[str, Any]]] = {
        "prosecutor alone": (sample, {}),
        "sampling fraction: all attackers, population uniques": (sample, {"sampling_fraction": 0.1}),
        "weights and households": (sample, {"sampling_fraction": 0.1, "weights": "weight", "household": "home"}),
        f"a population of {people.rows:,}": (sample, {"population": people}),
        "a release with k = 5": (release, {"sampling_fraction": 0.1}),
        f"a release with k = 5, a population of {people.rows:,}": (release, {"population": people}),
    }
    jobs = {name: _job(data, schema, options) for name, (data, options) in settings.items()}
    for job in jobs.values():  # loads what is imported late
        job()
    times, processor = in_turns(jobs), {name: [_processor_time(job) for _ in range(3)] for name, job in jobs.items()}
    classes = len(ck.risk(sample, schema).counts.people)
    section.say(f"A generated table of {sample.rows:,} rows and five quasi-identifiers, in memory: {classes:,} classes.")
    section.table(["measured", "time", "processor"], [[name, spread(times[name]), spread(processor[name])] for name in jobs])
    _population_guarantees(section, rows)
    _special_uniques(section, rows)
    _estimators(section, rows)


def _processor_time(job: Callable[[], object]) -> float:
    """Seconds of processor time: other work on the machine does not count."""
    start = time.process_time()
    job()
    return time.process_time() - start


def _job(data: Any, schema: ck.Schema, options: dict[str, Any]) -> Callable[[], object]:
    return lambda: ck.risk(data, schema, **options).record


def _population_guarantees(section: Section, rows: int | None) -> None:
    """What enforcing average risk and k-map costs, without and with a list of the people."""
    table = _generate(min(rows or ROWS, ENFORCED)).select(list(LEAVES))
    people = pl.concat([table] * PEOPLE)
    schema = ck.Schema(quasi={name: ck.numeric() if name == "age" else ck.flat() for name in LEAVES})
    requested = {
        "k-anonymity, k = 10": ck.KAnonymity(10),
        "average risk 0.1": ck.AverageRisk("0.1"),
        f"average risk 0.1 among {people.height:,} people": ck.AverageRisk("0.1", population=people),
        f"k-map, k = 10 among {people.height:,} people": ck.KMap(10, population=people),
    }
    lines = []
    for name, guarantee in requested.items():
        start = time.process_time()
        release = ck.anonymize(table, schema, [guarantee], ck.Knit())
        lines.append([name, f"{release.loss:.4f}", f"{time.process_time() - start:.2f} s"])
    section.say(f"Guarantees enforced by Knit on {table.height:,} generated rows, once each.")
    section.table(["requested", "loss", "processor"], lines)


def _special_uniques(section: Section, rows: int | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = tables.adult_all(Path(folder), rows)
        table = read(pl.read_csv(source.path, infer_schema=False).head(TRAINING).select(NINE))
    schema = ck.Schema(quasi={name: ck.flat() for name in NINE})
    found = ck.suda(table, schema)
    section.say(f"{source.remark} SUDA on the first {table.rows:,} rows and {len(NINE)} columns, sets of at most six columns.")
    seconds = in_turns({"SUDA": lambda: ck.suda(table, schema)})["SUDA"]
    sets = ", ".join(f"{count:,} of {size}" for size, count in found.msus.items())
    section.table(
        ["rows with a score", "minimal sets by columns", "time"],
        [[f"{int((found.scores > 0).sum()):,}", sets, spread(seconds)]],
    )


def _estimators(section: Section, rows: int | None) -> None:
    """The estimators on samples of a table whose population uniques are known."""
    with tempfile.TemporaryDirectory() as folder:
        source = tables.adult_all(Path(folder), rows)
        people = pl.read_csv(source.path, infer_schema=False).select(NINE)
    unique = int((people.group_by(NINE).len()["len"] == 1).sum()) / people.height
    section.say(f"{SAMPLES} samples of each size; {100 * unique:.1f} % of the people are unique in nine columns.")
    lines = []
    for share in SHARES:
        sizes = [people.sample(fraction=share, seed=seed).group_by(NINE).len()["len"].to_numpy() for seed in range(SAMPLES)]
        found = [estimate_population_uniques(SizeCounts.of(some), people.height).expected for some in sizes]
        lines.append([f"{share:.0%}", *(_range([each[name] for each in found], people.height) for name in ESTIMATORS)])
    section.table(["sample", *(f"{name}, %" for name in ESTIMATORS)], lines)


def _range(numbers: Sequence[float | None], people: int) -> str:
    shares = [100 * number / people for number in numbers if number is not None]
    missing = f" ({len(numbers) - len(shares)} without a fit)" if len(shares) < len(numbers) else ""
    return f"{min(shares):.1f}..{max(shares):.1f}{missing}" if shares else "no fit"


def _generate(rows: int) -> pl.DataFrame:
    """Columns that lean on one hidden number, sample weights and households."""
    rng = np.random.default_rng(23)
    hidden, columns = rng.normal(size=rows), {}
    for name, leaves in LEAVES.items():
        rank = np.argsort(np.argsort(0.6 * hidden + 0.8 * rng.normal(size=rows)))
        columns[name] = (leaves * (rank / rows) ** 1.7).astype(np.int64)
    columns["weight"], columns["home"] = rng.gamma(2, 20, size=rows) + 1, rng.integers(0, max(rows // 3, 1), size=rows)
    return pl.DataFrame(columns)
