"""Pictures of what was measured: panels of lines that share one legend, written as PNG files beside the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import altair as alt
import polars as pl

FOLDER = Path(__file__).with_name("pictures")
WIDTH, HEIGHT, SCALE = 300, 220, 2  # pixels of a panel, and of the file for each of them


@dataclass(frozen=True)
class Panel:
    """Lines over one axis: for each name its points, x to y."""

    x: str
    y: str
    lines: Mapping[str, Mapping[float, float]]
    log: bool = False  # the y axis; points at 0 are left out there


def draw(path: Path, title: str, panels: Sequence[Panel], columns: int = 2) -> None:
    """One file of panels; a name has the same colour and shape in all of them."""
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    charts = [_chart(panel, names) for panel in panels]
    path.parent.mkdir(exist_ok=True)
    whole = alt.concat(*charts, columns=columns, title=alt.TitleParams(title, anchor="start"))
    whole.configure_legend(labelLimit=400, symbolStrokeWidth=2).save(path, scale_factor=SCALE)


def _chart(panel: Panel, names: list[str]) -> alt.Chart:
    points = [
        {"x": x, "y": y, "name": name}
        for name, line in panel.lines.items()
        for x, y in sorted(line.items())
        if y > 0 or not panel.log
    ]
    scale = alt.Scale(type="log") if panel.log else alt.Scale(zero=True)
    ticks = sorted({point["x"] for point in points})
    return (
        alt.Chart(pl.DataFrame(points, schema={"x": pl.Float64, "y": pl.Float64, "name": pl.String}))
        .mark_line(point=alt.OverlayMarkDef(size=45, filled=True))
        .encode(
            x=alt.X("x:Q", title=panel.x, scale=alt.Scale(zero=False, padding=12), axis=alt.Axis(values=ticks, format=",.6~g")),
            y=alt.Y("y:Q", title=panel.y, scale=scale),
            color=alt.Color("name:N", title=None, sort=names, scale=alt.Scale(domain=names, scheme="category10")),
            shape=alt.Shape("name:N", title=None, sort=names, scale=alt.Scale(domain=names)),
        )
        .properties(width=WIDTH, height=HEIGHT)
    )
