"""Streams: loss of every algorithm over the mean and the largest delay of a row, as tables and as a picture of the docs."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import polars as pl

import closeknit as ck
import pictures
import tables
from closeknit.core.columns import Columns
from closeknit.io.files import read
from closeknit.streams.stream import Stream
from sections import Section
from stream_speed import people

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "stream_delay.png"
GENERATED, LONG, SAL = 50_000, 250_000, 50_000  # rows
DELAYS, KS = (1_000, 3_000, 10_000), (100, 10)
TRIES = 11  # all cuts of ten columns
KNIT, PATIENT, CASTLE, KNN, WINDOWS, IDEAL = (
    "KnitStream",
    f"KnitStream, tries = {TRIES}",
    "Castle",
    "KnnStream",
    "Mondrian in windows",
    "Mondrian in windows, if published at once",
)
WIDTH, HEIGHT = 330, 220


def run(section: Section, rows: int | None) -> None:
    """Every algorithm on every table, for each k and delay."""
    section.say(
        "Only k is guaranteed. `Castle`: eta = 50, mu = 100. Windows: `Windowed(Mondrian())`, omega = advance = delta, which "
        "publishes a window when the next one is complete, so that a row waits for up to twice delta; *if published at once*: "
        "the same classes as if they were published with the last row of their window. Delays in rows; loss A of the published "
        "rows, of which there are as many as rows arrived, less those still waiting; time: processor seconds."
    )
    found: list[dict[str, Any]] = []
    for name, columns, schema, delays in list_tables(rows):
        for k in KS:
            some = [run_streams(name, columns, schema, k, delta) for delta in delays]
            found += [point for points in some for point in points]
            section.say(f"**{name}**, {columns.rows:,} rows, k = {k}:")
            section.table(
                ["delta", "stream", "loss", "of Castle's", "mean delay", "largest delay", "suppressed", "seconds"],
                [render_line(point, points) for points in some for point in points],
            )
    section.say(compare_means(found))
    if rows is None:
        draw([point for point in found if point["k"] == KS[0] and point["stream"] != PATIENT], PICTURE)
        section.say("docs/pictures/stream_delay.png shows the figures for k = 100.")


def list_tables(rows: int | None) -> list[tuple[str, Columns, ck.Schema, tuple[int, ...]]]:
    """Generated rows, Adult and SAL; in a trial, generated ones alone."""
    columns, schema = people(rows or GENERATED, 1)
    if rows is not None:
        return [("Generated", columns, schema, (rows // 3,))]
    long, _ = people(LONG, 1)
    found = [("Generated", columns, schema, DELAYS), ("Generated, long", long, schema, (100_000,))]
    with tempfile.TemporaryDirectory() as folder:
        for name, source in (("Adult", tables.adult(Path(folder))), ("SAL", tables.sal(Path(folder)))):
            kinds = dict(source.schema.quasi)
            if name == "Adult":
                kinds["age"] = ck.numeric(17, 90)
            declared = ck.Schema(quasi=kinds, sensitive=source.schema.sensitive)
            table = read(pl.read_csv(source.path), None, list(declared.used))
            some = np.random.default_rng(1).permutation(table.rows)[:SAL]  # SAL is sorted in parts; a stream is not
            found.append((name, table.take(some), declared, DELAYS))
    return found


def run_streams(name: str, columns: Columns, schema: ck.Schema, k: int, delta: int) -> list[dict[str, Any]]:
    """The figures of all algorithms at one delay; gathering neighbours from very many rows is left out."""
    makes: dict[str, Any] = {
        KNIT: lambda: ck.KnitStream(schema, k=k, delta=delta, seed=1),
        PATIENT: lambda: ck.KnitStream(schema, k=k, delta=delta, tries=TRIES, seed=1),
        CASTLE: lambda: ck.Castle(schema, k=k, delta=delta, seed=1),
        KNN: lambda: ck.KnnStream(schema, k=k, delta=delta, seed=1),
        WINDOWS: lambda: ck.Windowed(ck.Mondrian(), schema, [ck.KAnonymity(k)], omega=delta, advance=delta, seed=1),
    }
    if delta * (columns.rows // k) > 1e8:
        del makes[KNN]
    found = [{"table": name, "k": k, "delta": delta, "stream": way, **measure(make(), columns)} for way, make in makes.items()]
    at_once = {**found[-1], "stream": IDEAL, "mean": found[-1]["mean"] - delta, "largest": found[-1]["largest"] - delta}
    return [*found, at_once]


def measure(stream: Stream, columns: Columns) -> dict[str, float]:
    """Loss and delays of the rows that a stream publishes before it ends."""
    start = time.process_time()
    stream.push_many(columns)
    seconds, counters = time.process_time() - start, stream.counters
    mean = counters.delay_sum / max(counters.rows_out, 1)
    said = {"loss": counters.loss, "mean": mean, "largest": counters.delay_most}
    return {**said, "suppressed": counters.suppressed, "seconds": seconds}


def render_line(point: dict[str, Any], points: list[dict[str, Any]]) -> list[str]:
    """A line of the table."""
    castle = next(other["loss"] for other in points if other["stream"] == CASTLE)
    ratio = f"{point['loss'] / castle:.3f}" if castle else ""
    delays = [f"{point['mean']:,.0f}", f"{point['largest']:,}", f"{point['suppressed']:,}"]
    return [f"{point['delta']:,}", point["stream"], f"{point['loss']:.4f}", ratio, *delays, f"{point['seconds']:.2f}"]


def compare_means(found: list[dict[str, Any]]) -> str:
    """KnitStream's loss compared with that of Mondrian in windows at the same mean delay, read off between two windows."""
    said = []
    for table, k in dict.fromkeys((point["table"], point["k"]) for point in found):
        mine = [point for point in found if (point["table"], point["k"]) == (table, k)]
        for knit, way in ((KNIT, WINDOWS), (KNIT, IDEAL), (PATIENT, IDEAL)):
            line = sorted((point["mean"], point["loss"]) for point in mine if point["stream"] == way)
            inside = [p for p in mine if p["stream"] == knit and line[0][0] <= p["mean"] * 1.01 and p["mean"] <= line[-1][0]]
            at = [np.interp(np.log(p["mean"]), *zip(*((np.log(x), y) for x, y in line), strict=True)) for p in inside]
            shares = [p["loss"] / other for p, other in zip(inside, at, strict=True)]
            if shares:
                said.append(f"{table}, k = {k}, {knit} of {way}: {min(shares):.3f} to {max(shares):.3f}")
    return "Loss of KnitStream as a share of that of windows at the same mean delay: " + "; ".join(said) + "."


def draw(found: list[dict[str, Any]], path: Path) -> None:
    """For each table, loss over the mean and over the largest delay."""
    names, charts = [KNIT, CASTLE, KNN, WINDOWS, IDEAL], []
    for table in ("Generated", "Adult", "SAL"):
        points = [{**point, "mean": float(point["mean"])} for point in found if point["table"] == table]
        for field, title in (("mean", "mean delay, rows"), ("largest", "largest delay, rows")):
            axis = alt.X(
                f"{field}:Q", title=title, scale=alt.Scale(type="log", nice=False, padding=8), axis=alt.Axis(format="~s")
            )
            charts.append(
                alt.Chart(pl.DataFrame(points))
                .mark_line(point=alt.OverlayMarkDef(size=40, filled=True))
                .encode(
                    x=axis,
                    y=alt.Y("loss:Q", title="loss A", scale=alt.Scale(zero=True)),
                    color=alt.Color("stream:N", title=None, sort=names, scale=alt.Scale(domain=names, scheme="category10")),
                    shape=alt.Shape("stream:N", title=None, sort=names, scale=alt.Scale(domain=names)),
                )
                .properties(width=WIDTH, height=HEIGHT, title=f"{table}, k = {KS[0]}")
            )
    title = alt.TitleParams("Loss of streams over the delay of their rows", anchor="start")
    pictures.save(alt.concat(*charts, columns=2, title=title).configure_legend(labelLimit=400, orient="bottom"), path)
