"""Charts as SVG: specifications of Vega-Lite, drawn by vl-convert without scripts and without network requests.

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

from closeknit.core.errors import keep_printable
from closeknit.report.drawing import draw

BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#E69F00", "#009E73", "#CC79A7"
PALETTE = (BLUE, ORANGE, GREEN, PURPLE)
WIDTH = 300  # of the plot: with its labels it fits a phone
LABELS = 150  # pixels of a name before it is cut
LONGEST = 60  # characters of a name
PADDING = 5  # pixels around a chart
TAG = re.compile(r"<[^<>]*>")
NEEDLESS = re.compile(r' (class|role|aria-[a-z]+|pointer-events)="[^"]*"')  # the page does not use them
Rows = Sequence[Mapping[str, Any]]
Spec = dict[str, Any]  # a part of a specification


def bars(rows: Rows, *, value: str, title: str, most: float | None = None, labels: int = LABELS) -> str:
    """Draw horizontal bars: a row has a `name` and a `value`; a name takes at most `labels` pixels.

    >>> bars([{"name": "age", "value": 0.4}], value="loss", title="Loss by column").startswith("<svg")
    True
    """
    scale = {"domain": [0, most], "nice": False} if most else {"domainMin": 0}
    encoding = {
        "x": {**quantity("value", value), "axis": {"tickCount": 5}, "scale": scale},
        "y": {**category("name"), "title": None, "axis": {"labelLimit": labels}},
    }
    return _svg(_values(rows), {"color": BLUE}, encoding, 22 * len(rows), title, _wider(rows, labels))


def vertical_bars(rows: Rows, *, name: str, value: str, title: str) -> str:
    """Draw vertical bars, in the order of the rows.

    >>> vertical_bars([{"name": "5", "value": 3}], name="rows", value="classes", title="Class sizes").startswith("<svg")
    True
    """
    angle = {"labelAngle": -40, "labelAlign": "right"} if len(rows) > 5 else {"labelAngle": 0}
    encoding = {
        "x": {**category("name"), "title": name, "axis": {"labelLimit": LABELS, **angle}},
        "y": {**quantity("value", value), "axis": {"tickCount": 4, "tickMinStep": 1}, "scale": {"domainMin": 0}},
    }
    return _svg(_values(rows), {"color": BLUE}, encoding, 170, title)


def shares(rows: Rows, series: Sequence[str], *, title: str) -> str:
    """Draw grouped horizontal bars: a row has a `name`, and a share for each of the series in `values`.

    >>> shares([{"name": "flu", "values": [0.4, 0.5]}], ["all rows", "class 1"], title="disease").startswith("<svg")
    True
    """
    names = _make_unique(str(row["name"]) for row in rows)
    values = [
        {"name": name, "value": share, "series": one}
        for name, row in zip(names, rows, strict=True)
        for one, share in zip(series, row["values"], strict=True)
    ]
    colours = {"domain": list(series), "range": list(PALETTE[: len(series)])}
    legend = {"title": None, "orient": "top", "direction": "vertical", "labelLimit": WIDTH}
    share_axis = {"axis": {"format": "~%", "tickCount": 5}, "scale": {"domainMin": 0}}
    encoding = {
        "x": {**quantity("value", "share of the rows"), **share_axis},
        "y": {**category("name"), "title": None, "axis": {"labelLimit": LABELS}, "scale": {"paddingInner": 0.25}},
        "yOffset": {**category("series"), "sort": list(series)},
        "color": {"field": "series", "type": "nominal", "scale": colours, "legend": legend},
    }
    return _svg(values, {}, encoding, max(9 * len(values), 60), title)


def quantity(field: str, title: str) -> Spec:
    """Encode a number of each row.

    >>> quantity("loss", "information loss")
    {'field': 'loss', 'type': 'quantitative', 'title': 'information loss'}
    """
    return {"field": field, "type": "quantitative", "title": title}


def category(field: str) -> Spec:
    """Encode a name of each row, in the order of the rows.

    >>> category("method")
    {'field': 'method', 'type': 'nominal', 'sort': None}
    """
    return {"field": field, "type": "nominal", "sort": None}


def _values(rows: Rows) -> list[Spec]:
    names = _make_unique(str(row["name"]) for row in rows)
    return [{"name": name, "value": row["value"]} for name, row in zip(names, rows, strict=True)]


def _make_unique(names: Iterable[str]) -> list[str]:
    """Return printable names; invisible spaces distinguish equal ones, or their bars would be added up."""
    seen: set[str] = set()
    found = []
    for name in names:
        shown = keep_printable(name[:LONGEST], " ") or "\u00a0"
        while shown in seen:
            shown += "\u00a0"
        seen.add(shown)
        found.append(shown)
    return found


def _wider(rows: Rows, labels: int) -> int:
    """Return the pixels by which names may be wider than measured: the reader's fonts differ from this machine's."""
    return max((min(len(str(row["name"])), labels // 6) for row in rows), default=0)


def _svg(values: list[Spec], bar: Spec, encoding: Spec, height: int, title: str, left: int = 0) -> str:
    around = {"left": PADDING + left, "right": PADDING, "top": PADDING, "bottom": PADDING}
    spec = {
        "data": {"values": values},
        "mark": {"type": "bar", **bar},
        "encoding": encoding,
        "width": WIDTH,
        "height": height,
        "padding": around,
        "config": style(),
    }
    return render_svg(json.dumps(spec), title)


def style(**legend: Any) -> Spec:
    """Return the fonts and colours of all charts; `legend` adds options of the legend.

    >>> style(symbolSize=80)["legend"]["symbolSize"]
    80
    """
    text = {"labelFontSize": 12, "labelColor": "#222"}
    return {
        "aria": False,
        "font": "sans-serif",
        "background": "transparent",
        "view": {"stroke": None},
        "axis": {**text, "titleFontSize": 12, "titleFontWeight": "normal", "titleColor": "#222", "gridColor": "#ddd"},
        "legend": {**text, **legend},
    }


@functools.lru_cache(maxsize=64)
def render_svg(spec: str, title: str) -> str:
    """Render a specification as SVG with a text alternative; both reports of a release share the result.

    >>> bare = '{"data": {"values": [{}]}, "mark": "point"}'
    >>> render_svg(bare, "A <point>")[:43]
    '<svg role="img" aria-label="A &lt;point&gt;'
    """
    head, rest = draw(spec).split(">", 1)
    size = re.search(r'width="([\d.]+)" height="([\d.]+)"', head)
    assert size is not None
    label = html.escape(title, quote=True)
    box = f'width="{size[1]}" height="{size[2]}" viewBox="0 0 {size[1]} {size[2]}"'
    bare = TAG.sub(lambda tag: NEEDLESS.sub("", tag[0]), rest)
    return f'<svg role="img" aria-label="{label}" {box}>{bare}'
