"""Charts of measurements: panels of lines that share one legend, written as PNG files next to the page."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import altair as alt
import polars as pl

FOLDER = Path(__file__).with_name("pictures")
WIDTH, HEIGHT, SCALE = 300, 220, 1.5  # pixels of a panel, and of the file for each of them


@dataclass(frozen=True)
class Panel:
    """Lines over one axis: for each name its points, x to y."""

    x: str
    y: str
    lines: Mapping[str, Mapping[float, float]]
    log: bool = False  # the y axis; points at 0 are left out there
    reported: Mapping[str, Mapping[float, float]] = field(default_factory=dict)  # what others print: dashed
    title: str = ""
    log_x: bool = False  # for places that lie ever farther apart, or their labels would hide each other


def draw(path: Path, title: str, panels: Sequence[Panel], columns: int = 2) -> None:
    """One file of panels; a name has the same colour and shape in all of them."""
    names = list(dict.fromkeys(name for panel in panels for name in [*panel.lines, *panel.reported]))
    charts = [_chart(panel, names) for panel in panels]
    whole = alt.concat(*charts, columns=columns, title=alt.TitleParams(title, anchor="start"))
    save(whole.configure_legend(labelLimit=400, symbolStrokeWidth=2), path)


def save(chart: alt.TopLevelMixin, path: Path, scale: float = SCALE) -> None:
    """As a PNG file, packed well: altair's own is four times as large."""
    path.parent.mkdir(parents=True, exist_ok=True)
    chart.save(path, scale_factor=scale)
    path.write_bytes(_packed(path.read_bytes()))


def _packed(png: bytes) -> bytes:
    """The same picture with its data compressed as far as zlib can."""
    parts, data, at = [png[:8]], b"", 8
    while at < len(png):
        end = at + 12 + int.from_bytes(png[at : at + 4], "big")
        kind, body = png[at + 4 : at + 8], png[at + 8 : end - 4]
        if kind == b"IDAT":
            data += body
        elif kind == b"IEND":
            parts.append(_chunk(b"IDAT", zlib.compress(zlib.decompress(data), 9)))
        if kind != b"IDAT":
            parts.append(_chunk(kind, body))
        at = end
    return b"".join(parts)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + kind + body + zlib.crc32(kind + body).to_bytes(4, "big")


def decades(places: Sequence[float]) -> list[float]:
    """The powers of ten around places: ticks at all of them would overlap on a logarithmic axis.

    >>> decades([0.24, 3.7])
    [0.1, 1.0, 10.0]
    """
    if not places:
        return []
    first, last = math.floor(math.log10(min(places))), math.ceil(math.log10(max(places)))
    return [float(f"1e{power}") for power in range(first, last + 1)]


def _chart(panel: Panel, names: list[str]) -> alt.Chart:
    points = [
        {"x": x, "y": y, "name": name, "reported": name in panel.reported}
        for name, line in [*panel.lines.items(), *panel.reported.items()]
        for x, y in sorted(line.items())
        if y > 0 or not panel.log
    ]
    most = max((point["y"] for point in points), default=0.0)
    scale = alt.Scale(type="log") if panel.log else alt.Scale(zero=True) if most > 0 else alt.Scale(domain=[0, 1])
    # thousands and millions as k and M, but no thousandths as m
    labels = alt.Axis(tickCount=6, format="~s") if panel.log and most >= 100_000 else alt.Undefined
    along = alt.Scale(type="log") if panel.log_x else alt.Scale(zero=False, padding=12, nice=False)
    places = sorted({point["x"] for point in points})
    ticks = decades(places) if panel.log_x else places
    return (
        alt.Chart(pl.DataFrame(points, schema={"x": pl.Float64, "y": pl.Float64, "name": pl.String, "reported": pl.Boolean}))
        .mark_line(point=alt.OverlayMarkDef(size=45, filled=True))
        .encode(
            x=alt.X("x:Q", title=panel.x, scale=along, axis=alt.Axis(values=ticks, format=",.6~g")),
            y=alt.Y("y:Q", title=panel.y, scale=scale, axis=labels),
            color=alt.Color("name:N", title=None, sort=names, scale=alt.Scale(domain=names, scheme="category10")),
            shape=alt.Shape("name:N", title=None, sort=names, scale=alt.Scale(domain=names)),
            strokeDash=alt.StrokeDash("reported:N", legend=None, scale=alt.Scale(domain=[False, True], range=[[1, 0], [5, 4]])),
        )
        .properties(width=WIDTH, height=HEIGHT, title=panel.title)
    )
