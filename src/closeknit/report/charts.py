"""Charts as SVG, drawn by altair and vl-convert without scripts and without network requests.

Numbers and names from the data are values of a chart, never parts of its specification, so no cell can change the drawing.
The colours of Okabe and Ito are distinguishable with any kind of colour vision; a table has the same numbers.
"""

from __future__ import annotations

import functools
import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#E69F00", "#009E73", "#CC79A7"
PALETTE = (BLUE, ORANGE, GREEN, PURPLE)
WIDTH = 300  # of the plot: with its labels it fits a phone
LABELS = 150  # pixels of a name before it is cut
LONGEST = 60  # characters of a name
PADDING = 5  # pixels around a chart
TAG = re.compile(r"<[^<>]*>")
NEEDLESS = re.compile(r' (class|role|aria-[a-z]+|pointer-events)="[^"]*"')  # the page does not use them
Rows = Sequence[Mapping[str, Any]]


def bars(rows: Rows, *, value: str, title: str, most: float | None = None, labels: int = LABELS) -> str:
    """Draw horizontal bars: a row has a `name` and a `value`; a name takes at most `labels` pixels.

    >>> bars([{"name": "age", "value": 0.4}], value="loss", title="Loss by column").startswith("<svg")
    True
    """
    import altair as alt

    scale = alt.Scale(domain=[0, most], nice=False) if most else alt.Scale(domainMin=0)
    shape = (
        alt.Chart(_data(rows))
        .mark_bar(color=BLUE)
        .encode(
            x=alt.X("value:Q", title=value, axis=alt.Axis(tickCount=5), scale=scale),
            y=alt.Y("name:N", sort=None, title=None, axis=alt.Axis(labelLimit=labels)),
        )
    )
    return _svg(shape, 22 * len(rows), title, _wider(rows, labels))


def vertical_bars(rows: Rows, *, name: str, value: str, title: str) -> str:
    """Draw vertical bars, in the order of the rows.

    >>> vertical_bars([{"name": "5", "value": 3}], name="rows", value="classes", title="Class sizes").startswith("<svg")
    True
    """
    import altair as alt

    angle = {"labelAngle": -40, "labelAlign": "right"} if len(rows) > 5 else {"labelAngle": 0}
    shape = (
        alt.Chart(_data(rows))
        .mark_bar(color=BLUE)
        .encode(
            x=alt.X("name:N", sort=None, title=name, axis=alt.Axis(labelLimit=LABELS, **angle)),
            y=alt.Y("value:Q", title=value, axis=alt.Axis(tickCount=4, tickMinStep=1), scale=alt.Scale(domainMin=0)),
        )
    )
    return _svg(shape, 170, title)


def shares(rows: Rows, series: Sequence[str], *, title: str) -> str:
    """Draw grouped horizontal bars: a row has a `name`, and a share for each of the series in `values`.

    >>> shares([{"name": "flu", "values": [0.4, 0.5]}], ["all rows", "class 1"], title="disease").startswith("<svg")
    True
    """
    import altair as alt

    names = _make_unique(str(row["name"]) for row in rows)
    values = [
        {"name": name, "value": share, "series": one}
        for name, row in zip(names, rows, strict=True)
        for one, share in zip(series, row["values"], strict=True)
    ]
    colours = alt.Scale(domain=list(series), range=list(PALETTE[: len(series)]))
    legend = alt.Legend(title=None, orient="top", direction="vertical", labelLimit=WIDTH)
    shape = (
        alt.Chart(alt.InlineData(values=values))
        .mark_bar()
        .encode(
            x=alt.X(
                "value:Q", title="share of the rows", axis=alt.Axis(format="~%", tickCount=5), scale=alt.Scale(domainMin=0)
            ),
            y=alt.Y("name:N", sort=None, title=None, axis=alt.Axis(labelLimit=LABELS), scale=alt.Scale(paddingInner=0.25)),
            yOffset=alt.YOffset("series:N", sort=list(series)),
            color=alt.Color("series:N", scale=colours, legend=legend),
        )
    )
    return _svg(shape, max(9 * len(values), 60), title)


def _data(rows: Rows) -> Any:
    import altair as alt

    names = _make_unique(str(row["name"]) for row in rows)
    return alt.InlineData(values=[{"name": name, "value": row["value"]} for name, row in zip(names, rows, strict=True)])


def _make_unique(names: Iterable[str]) -> list[str]:
    """Return printable names; invisible spaces distinguish equal ones, or their bars would be added up."""
    seen: set[str] = set()
    found = []
    for name in names:
        shown = "".join(sign if sign.isprintable() else " " for sign in name[:LONGEST]) or "\u00a0"
        while shown in seen:
            shown += "\u00a0"
        seen.add(shown)
        found.append(shown)
    return found


def _wider(rows: Rows, labels: int) -> int:
    """Return the pixels by which names may be wider than measured: the reader's fonts differ from this machine's."""
    return max((min(len(str(row["name"])), labels // 6) for row in rows), default=0)


def _svg(chart: Any, height: int, title: str, left: int = 0) -> str:
    around = {"left": PADDING + left, "right": PADDING, "top": PADDING, "bottom": PADDING}
    return render_svg(
        json.dumps(style(chart.properties(width=WIDTH, height=height, padding=around)).to_dict(validate=False)), title
    )


def style(chart: Any, **legend: Any) -> Any:
    """Apply the fonts and colours of all charts; `legend` adds options of the legend."""
    chart = chart.configure(aria=False, font="sans-serif", background="transparent").configure_view(stroke=None)
    return chart.configure_axis(
        labelFontSize=12, titleFontSize=12, titleFontWeight="normal", labelColor="#222", titleColor="#222", gridColor="#ddd"
    ).configure_legend(labelFontSize=12, labelColor="#222", **legend)


@functools.lru_cache(maxsize=64)
def render_svg(spec: str, title: str) -> str:
    """Render a specification as SVG with a text alternative; both reports of a release share the result.

    >>> bare = '{"data": {"values": [{}]}, "mark": "point"}'
    >>> render_svg(bare, "A <point>")[:43]
    '<svg role="img" aria-label="A &lt;point&gt;'
    """
    import vl_convert

    drawn = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[], show_warnings=False)
    head, rest = drawn.split(">", 1)
    size = re.search(r'width="([\d.]+)" height="([\d.]+)"', head)
    assert size is not None
    label = html.escape(title, quote=True)
    box = f'width="{size[1]}" height="{size[2]}" viewBox="0 0 {size[1]} {size[2]}"'
    bare = TAG.sub(lambda tag: NEEDLESS.sub("", tag[0]), rest)
    return f'<svg role="img" aria-label="{label}" {box}>{bare}'
