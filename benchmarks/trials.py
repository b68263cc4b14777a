"""Variants of a method at several thresholds: what each loses, reaches and takes, and how two of them compare."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

import closeknit as ck
import tables
from closeknit.core.geometry import points, scales
from closeknit.core.method import Method
from closeknit.core.model import Model
from closeknit.core.table import Outcome, Partition, Table
from closeknit.fills import fill_named
from closeknit.plans import Plan
from sections import Section

SEED = 2**127 + 5  # long, so that nothing is said about it
DRAWN = 3  # seed of the sample


@dataclass(frozen=True)
class Made:
    """What one run made; `seconds` from the CSV file to the certified release in memory."""

    loss: float
    measured: float
    classes: int
    seconds: float

    @classmethod
    def by(cls, method: Method, source: tables.Source, models: Sequence[Model]) -> Made:
        """Run it."""
        return cls.of(*timed(method, source, models))

    @classmethod
    def of(cls, release: ck.Release, seconds: float) -> Made:
        """`measured` is the level of the last model, measured on the written cells."""
        certificate = release.certificate
        measured = certificate.guarantees[-1].measured
        assert measured is not None, "it is no guarantee about persons"
        return cls(certificate.loss.a, measured, certificate.classes.count, seconds)


@dataclass
class Grid:
    """Variants by the thresholds at which they were run."""

    requested: str
    lines: dict[str, dict[float, Made]] = field(default_factory=dict)

    def add(self, variant: str, threshold: float, made: Made) -> None:
        self.lines.setdefault(variant, {})[threshold] = made

    def report(self, section: Section) -> None:
        """One table for each thing that was measured."""
        thresholds = sorted({threshold for line in self.lines.values() for threshold in line})
        shown = {
            "loss A": lambda made: f"{made.loss:.4f}",
            f"{self.requested} measured": lambda made: f"{made.measured:.4f}",
            "classes": lambda made: f"{made.classes:,}",
            "seconds": lambda made: f"{made.seconds:.2f}",
        }
        for what, cell in shown.items():
            rows = [
                [variant, *(cell(line[x]) if x in line else "" for x in thresholds)] for variant, line in self.lines.items()
            ]
            section.table([what, *(f"{self.requested} = {x:g}" for x in thresholds)], rows)

    def compare(self, section: Section, pairs: Sequence[tuple[str, str]]) -> None:
        """How the loss of one variant compares with that of another, at the thresholds that both have."""
        rows = []
        for one, other in pairs:
            if shares := self.shares(one, other):
                mean, lower = statistics.geometric_mean(shares), sum(share < 1 for share in shares)
                spread = f"{min(shares):.2f}..{max(shares):.2f}"
                rows.append([f"{one} / {other}", f"{mean:.2f}", spread, f"{lower} of {len(shares)}"])
        section.table(["ratio of two losses", "mean", "least..largest", f"{self.requested} where lower"], rows)

    def shares(self, one: str, other: str) -> list[float]:
        """Loss of one variant as a share of that of another, at each threshold that both have."""
        mine, theirs = self.lines.get(one, {}), self.lines.get(other, {})
        return [mine[x].loss / theirs[x].loss for x in mine if x in theirs and theirs[x].loss > 0]

    def used(self, variant: str) -> float:
        """How much of what was requested a variant uses up, on average."""
        return statistics.mean(made.measured / threshold for threshold, made in self.lines[variant].items())


def timed(method: Method, source: tables.Source, models: Sequence[Model]) -> tuple[ck.Release, float]:
    """A release that keeps its guarantees, and its seconds from the CSV file to the certified release in memory."""
    start = time.perf_counter()
    # the sources look at limits that exclude nothing on some of their tables
    release = ck.anonymize(source.path, source.schema, models, method, seed=SEED, allow_vacuous=True)
    took = time.perf_counter() - start
    if not release.certificate.ok:
        raise AssertionError(f"{method} broke a guarantee")
    return release, took


def filled(table: Table, column: str, plan: Plan, fill: str, seed: int) -> Outcome:
    """The rows that a fill picks for a plan, and nothing more: no exchange, no cut."""
    bucket = plan.bucket_of[table.secret(column)[0]]
    class_of = fill_named(fill).fill(table.quasi, scales(table), points(table), bucket, plan.allotments, seed)
    return Outcome(Partition(class_of, len(plan.allotments)))


def part(source: tables.Source, path: Path, rows: int | None = None, quasi: Sequence[str] | None = None) -> tables.Source:
    """Some of the rows, drawn at random, and some of the quasi-identifiers."""
    frame = pl.read_csv(source.path)
    kinds = {name: source.schema.quasi[name] for name in quasi or source.schema.quasi}
    drawn = rows is not None and rows < frame.height
    frame = frame.sample(rows, seed=DRAWN) if drawn else frame
    frame.select([*kinds, source.secret]).write_csv(path)
    schema = ck.Schema(quasi=kinds, sensitive=source.schema.sensitive)
    said = f" Of it {frame.height:,} rows, drawn at random." if drawn else ""
    return tables.Source(path, schema, source.secret, frame.height, source.remark + said)


def warm(methods: Mapping[str, Method], source: tables.Source, models: Sequence[Model], place: Path) -> None:
    """Load every compiled loop, so that no first run pays for it."""
    small = part(source, place / "warm.csv", 2_000)
    for method in methods.values():
        Made.by(method, small, models)
