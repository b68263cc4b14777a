"""How long it takes to measure releases of SAL: divergence over the lattice, measured levels, distances, COUNT queries."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import closeknit as ck
import tables
from closeknit.core.columns import Columns
from closeknit.forms.release_reading import reading_of
from closeknit.io.files import read
from closeknit.metrics import class_distances, kl_divergence, measure_levels, measures, queries, workload_error
from closeknit.release import Release
from sections import Section
from trials import SEED, part

K, L, QUERIES, TRIED = 6, 5, 10_000, 50
SIZES = (100_000, 250_000, 500_000)
WARM_ROWS = 200


def run(section: Section, rows: int | None) -> None:
    """Over rows, every form; then the divergence over the level."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        source = tables.sal(place, rows)
        section.say(source.remark)
        _timed(_releases(*_read(part(source, place / "warm.csv", WARM_ROWS))), source, TRIED)  # loads every compiled loop
        lines = []
        for size in SIZES if rows is None else (rows,):
            smaller = part(source, place / "part.csv", size)
            lines += _timed(_releases(*_read(smaller)), smaller, QUERIES if rows is None else TRIED)
        section.table(
            [
                "release",
                "rows",
                "classes",
                "KL, level 2",
                "s",
                "levels, s",
                "distances, s",
                "all of the release, s",
                "queries, s",
            ],
            lines,
        )
        section.say(
            f"k = {K}, or no salary in more than 1/{L} of a bucket. KL: divergence over all group-bys of two "
            f"quasi-identifiers of "
            "seven and the salary. Reached: k, t by every distance, beta, delta and l. All of the release: `measures`, which "
            f"has both and more. Queries: {QUERIES if rows is None else TRIED:,} COUNT queries, those to the table included."
        )
        _levels(section, *_read(source))


Made = tuple[Columns, ck.Schema, dict[str, Release]]


def _read(source: tables.Source) -> tuple[Columns, ck.Schema]:
    return read(source.path), source.schema


def _releases(columns: Columns, schema: ck.Schema) -> Made:
    secret = next(iter(schema.sensitive))
    alike, diverse = [ck.KAnonymity(K)], [ck.LDiversity(secret, L, "frequency")]
    made = {
        "Stack & Deal, literal": ck.anonymize(columns, schema, alike, ck.StackAndDeal(dealing="literal"), seed=SEED),
        "Mondrian, generalized": ck.anonymize(columns, schema, alike, ck.Mondrian(), seed=SEED),
        "Anatomy, bucketized": ck.anonymize(columns, schema, diverse, ck.Anatomy(l=L), seed=SEED),
        "Mondrian, multiset": ck.anonymize(columns, schema, diverse, ck.Mondrian(), form="multiset", seed=SEED),
        "Slicing": ck.anonymize(columns, schema, diverse, ck.Slicing(l=L), seed=SEED),
    }
    return columns, schema, made


def _timed(made: Made, source: tables.Source, count: int) -> list[list[str]]:
    columns, schema, releases = made
    workload = queries(columns, schema, count=count)
    lines = []
    for name, release in releases.items():
        reading = reading_of(release)
        divergence, took = _took(lambda r=reading: kl_divergence(r, columns, schema))
        seconds = [took]
        seconds.append(_took(lambda r=reading: measure_levels(r))[1])
        seconds.append(_took(lambda r=reading: class_distances(r, source.secret))[1])
        seconds.append(_took(lambda r=release: measures(r))[1])
        seconds.append(_took(lambda r=reading: workload_error(r, columns, workload))[1])
        classes = release.certificate.classes.count
        lines.append([name, f"{columns.rows:,}", f"{classes:,}", f"{divergence.kl:.4f}", *(f"{s:.2f}" for s in seconds)])
    return lines


def _levels(section: Section, columns: Columns, schema: ck.Schema) -> None:
    release = reading_of(ck.anonymize(columns, schema, [ck.KAnonymity(K)], ck.Mondrian(), seed=SEED))
    lines = []
    for level in (1, 2, 3):
        found, took = _took(lambda at=level: kl_divergence(release, columns, schema, level=at))
        cells = sum(one.cells for one in found.group_bys)
        lines.append([f"{level}", f"{len(found.group_bys)}", f"{cells:,}", f"{found.kl:.4f}", f"{took:.2f}"])
    section.say("Divergence of Mondrian's release over the level of the lattice; cells are those that hold rows.")
    section.table(["level", "group-bys", "cells", "KL", "s"], lines)


def _took(measured: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    found = measured()
    return found, time.perf_counter() - start
