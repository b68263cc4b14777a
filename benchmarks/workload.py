"""Utility of a release of Adult compared with the table: COUNT queries, and a classifier that is trained on it.

Generalized, bucketized and sliced releases guarantee the same: no occupation stands in more than 1/l of a class or bucket.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import closeknit as ck
import tables
from closeknit.core.columns import Columns
from closeknit.core.method import Method
from closeknit.io.files import read
from closeknit.metrics import Learning, Scores, Workload, learning_accuracy, queries, split_train_test, workload_error
from closeknit.release import Release
from sections import Section
from trials import SEED

SECRET = "occupation"
QUASI = ("age", "workclass", "education", "marital-status", "race", "sex")
TARGETS = (SECRET, "education")
LS = (2, 3, 5, 7, 8, 10)
QUERIES, TRIED = 10_000, 100
LAMBDAS, THETAS = (1, 2, 3, 4, 5), (0.05, 0.1, 0.15, 0.2, 0.25)
USUAL_L = 5


class Split(NamedTuple):
    """The rows of which releases are made, and those that test what was learned."""

    train: Columns
    test: Columns
    schema: ck.Schema


def run(section: Section, rows: int | None) -> None:
    """Over l; then over the number of columns asked for and the selectivity."""
    with tempfile.TemporaryDirectory() as folder:
        source = tables.adult_all(Path(folder), rows)
        split = split_of(source, rows)
    count = QUERIES if rows is None else TRIED
    possible = _possible(section, source, split)[: None if rows is None else 2]
    workload = queries(split.train, split.schema, SECRET, count=count)
    lines = [line for l in possible for line in _lines(split, workload, l)]
    section.table(
        ["release", "requested l", "classes", "loss A", *(f"predicted {target}" for target in TARGETS), "query error"], lines
    )
    section.say(
        f"Predicted: share of the {split.test.rows:,} held-out rows whose value a random forest predicts correctly; the "
        "mean over the values of the target stands in brackets. Rows of a release are put together as an analyst would who "
        "knows no more: values drawn evenly from a cell, groups of columns of a bucket joined at random. Query error: median "
        f"of {count:,} COUNT queries over three quasi-identifiers and the sensitive attribute, theta = 0.1, quartiles in "
        f"brackets."
    )
    usual = USUAL_L if USUAL_L in possible else possible[-1]
    _sweep(section, split, made(split, usual), usual, count)


def split_of(source: tables.Source, rows: int | None) -> Split:
    """OCC-7: six quasi-identifiers by their trees, occupation the sensitive attribute; some rows are held back for tests."""
    data = tables.data_folder() if rows is None else None
    kinds = {name: source.schema.quasi.get(name, source.schema.sensitive.get(name)) for name in (*QUASI, SECRET)}
    if data is not None:
        trees = data / "adult" / "hierarchies"
        kinds |= {name: ck.Hierarchy.read_csv(trees / f"adult_hierarchy_{name}.csv") for name in kinds if name != "age"}
    columns = read(source.path, None, list(kinds))
    schema = ck.Schema(quasi={name: kinds[name] for name in QUASI}, sensitive={SECRET: kinds[SECRET]})
    return Split(*split_train_test(columns, schema), schema)


def _possible(section: Section, source: tables.Source, split: Split) -> list[int]:
    most = int(split.train[SECRET].counts.max())
    section.say(
        f"{source.remark} Columns: {', '.join(QUASI)}, and {SECRET} as the sensitive attribute. Releases are made of "
        f"{split.train.rows:,} "
        f"rows drawn from it. The most frequent occupation stands in {most / split.train.rows:.1%} of them, so l can be at "
        f"most {split.train.rows / most:.2f}: of l = {', '.join(map(str, LS))} those above it cannot be kept by any release."
    )
    return [l for l in LS if l * most <= split.train.rows]


def made(split: Split, l: int) -> dict[str, Release]:
    """The same guarantee in every form."""
    diverse = [ck.LDiversity(SECRET, l, "frequency")]

    def release(method: Method, form: str | None = None) -> Release:
        return ck.anonymize(split.train, split.schema, diverse, method, form=form, seed=SEED)

    return {
        "Mondrian, generalized": release(ck.Mondrian()),
        "Mondrian, bucketized": release(ck.Mondrian(), "bucketized"),
        "Anatomy, near rows": release(ck.Anatomy(l=l)),
        "Anatomy, random rows": release(ck.Anatomy(l=l, rows="random")),
        "Slicing": release(ck.Slicing(l=l)),
        "Slicing, near buckets": release(ck.Slicing(l=l, cuts="near")),
        "Slicing, one column with sensitive": release(ck.Slicing(l=l, attached=1)),
        "Mondrian, multiset": release(ck.Mondrian(), "multiset"),
    }


def _lines(split: Split, workload: Workload, l: int) -> list[list[str]]:
    lines: list[list[str]] = []
    for name, release in made(split, l).items():
        learned = [learning_accuracy(release, split.train, split.test, split.schema, target) for target in TARGETS]
        if not lines:
            lines += _unreleased(learned)
        error = workload_error(release, split.train, workload)
        certified = release.certificate
        lines.append(
            [
                name,
                f"{l}",
                f"{certified.classes.count:,}",
                f"{certified.loss.a:.4f}",
                *(_share(found.release) for found in learned),
                f"{error.median:.1%} ({error.lower:.1%}, {error.upper:.1%})",
            ]
        )
    return lines if l == LS[0] else lines[2:]


def _unreleased(learned: list[Learning]) -> list[list[str]]:
    """The table itself, and no table at all."""
    return [
        ["the table", "", "", "", *(_share(found.original) for found in learned), "0.0%"],
        ["the most frequent value", "", "", "", *(_share(found.majority) for found in learned), ""],
    ]


def _share(scores: Scores) -> str:
    return f"{scores.accuracy:.1%} ({scores.balanced:.1%})"


def _sweep(section: Section, split: Split, releases: Mapping[str, Release], l: int, count: int) -> None:
    """Median error over the number of quasi-identifiers and over the selectivity."""
    requested = [(lambda_, 0.1) for lambda_ in LAMBDAS] + [(3, theta) for theta in THETAS]
    workloads = [queries(split.train, split.schema, SECRET, lambda_, theta, count) for lambda_, theta in requested]
    lines = []
    start = time.perf_counter()
    for name, release in releases.items():
        errors = [workload_error(release, split.train, workload) for workload in workloads]
        lines.append([name, *("-" if error.median is None else f"{error.median:.1%}" for error in errors)])
    took = (time.perf_counter() - start) / (len(releases) * len(workloads))
    section.say(
        f"Median query error at l = {l} over lambda, the number of quasi-identifiers (theta = 0.1), and over theta (three "
        f"columns):"
    )
    section.table(["release", *(f"lambda {lambda_}" for lambda_ in LAMBDAS), *(f"theta {theta}" for theta in THETAS)], lines)
    section.say(f"A workload of {count:,} queries takes {took:.1f} s, those to the table included.")
