"""What more of Knit's budget is worth on Adult: loss against processor time, as a table and as a picture of the docs."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import polars as pl

import closeknit as ck
import pictures
from knit import LONG, Made, Problem, lines, through, within
from sections import Section

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "knit_time.png"
LINES = ("t=0.1", "t=0.2", "t=0.35", "beta=2")
WIDTH, HEIGHT = 520, 300


def run(section: Section, rows: int | None) -> None:
    """Every budget is a run of its own: a larger one goes through the same cycles and then on."""
    known = lines(rows)
    usual = ck.Knit().sweeps(len(known[LINES[0]].frame))
    found = {name: curve(known[name], rows) for name in (LINES if rows is None else LINES[:1])}
    section.say(
        f"Table and guarantees as in the section `knit`, {len(next(iter(known.values())).frame):,} rows. Each cell: loss A "
        "(seconds of processor time of all threads, from the frame to the certified release), after the start and after each "
        f"cycle that fits into {LONG:.0f} s. A budget of so many sweeps is enough for it; the default has {usual}."
    )
    sweeps = sorted({count for points in found.values() for count in points})
    section.table(["sweeps", *found], [[count, *(_cell(points.get(count)) for points in found.values())] for count in sweeps])
    if rows is None:
        draw(found, usual, PICTURE)
        section.say("docs/pictures/knit_time.png shows the same.")


def curve(requested: Problem, rows: int | None) -> dict[int, tuple[float, float]]:
    """Seconds and loss by the sweeps of each budget; 0 is the start alone."""
    n, found = len(requested.frame), {}
    Made.by(
        ck.Knit(proposals=10**6), Problem(requested.name, requested.frame.head(1_000), requested.schema, requested.models)
    )  # warm
    most = within(n, Made.by(ck.Knit(), requested).seconds) if rows is None else 1
    for cycles in range(most + 1):
        method = through(n, cycles)
        made = Made.by(method, requested)
        found[method.sweeps(n)] = (made.seconds, made.release.loss)
    return found


def _cell(point: tuple[float, float] | None) -> str:
    return "" if point is None else f"{point[1]:.4f} ({point[0]:.1f} s)"


def draw(found: dict[str, dict[int, tuple[float, float]]], usual: int, path: Path) -> None:
    """A line for each guarantee; the default budget is marked by a larger point."""
    points = [
        {"requested": name, "seconds": seconds, "loss": loss, "default": sweeps == usual}
        for name, line in found.items()
        for sweeps, (seconds, loss) in line.items()
    ]
    base = alt.Chart(pl.DataFrame(points)).encode(
        x=alt.X("seconds:Q", title="processor time, seconds", scale=alt.Scale(type="log", nice=False, padding=10)),
        y=alt.Y("loss:Q", title="loss A", scale=alt.Scale(zero=True)),
        color=alt.Color("asked:N", title=None, sort=list(found)),
    )
    marks = base.mark_point(filled=True, opacity=1).encode(
        shape=alt.Shape("asked:N", legend=None, sort=list(found)),
        size=alt.Size("default:N", legend=None, scale=alt.Scale(domain=[False, True], range=[35, 150])),
    )
    title = alt.TitleParams("Knit on Adult: loss over time (large: default budget)", anchor="start")
    chart = alt.layer(base.mark_line(), marks).properties(width=WIDTH, height=HEIGHT, title=title)
    pictures.save(chart, path)
