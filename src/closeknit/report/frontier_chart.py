"""The chart of privacy against loss: a point for each release, a line for each method, a step line for the frontier.

Every method has a colour of Okabe and Ito and a shape, so that colour is not needed to distinguish it. Points on the frontier
are filled, the others hollow.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from closeknit.core.errors import keep_printable
from closeknit.report.charts import Spec, quantity, render_svg, style

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
WIDTH, HEIGHT = 440, 300
WIDE = 20  # ratio of levels from which the axis is logarithmic
LONGEST = 44  # characters of a name
NOTE = "Filled, on the grey line: no other point is as safe and loses less."
NAMESPACE = 'xmlns="http://www.w3.org/2000/svg"'  # a name only; no request is sent to that host


def frontier_svg(points: Sequence[Mapping[str, Any]], *, level: str, higher_is_safer: bool, title: str) -> str:
    """Draw the chart as SVG for a page: points have `method`, `level`, `loss`, `front` and, on a curve, `requested`;
    `low` and `high` are the ends of an interval of the level, where there is one.

    >>> points = [{"method": "sabre", "level": 0.2, "loss": 0.4, "front": True, "requested": 0.2}]
    >>> frontier_svg(points, level="t", higher_is_safer=False, title="Privacy against loss").startswith("<svg")
    True
    """
    shown = [_clean_point(point) for point in points if point["level"] is not None and point["loss"] is not None]
    safer = f"{'larger' if higher_is_safer else 'smaller'} is safer"
    return render_svg(json.dumps(_chart(shown, f"{level} measured ({safer})")), title)


def standalone(svg: str) -> bytes:
    """Return the SVG of a page as a separate file with a white background.

    >>> standalone('<svg role="img" width="1"></svg>')[:25]
    b'<?xml version="1.0" encod'
    """
    file = svg.replace("<svg ", f'<svg {NAMESPACE} style="background: white" ', 1)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{file}\n'.encode()


def _clean_point(point: Mapping[str, Any]) -> dict[str, Any]:
    name = keep_printable(str(point["method"]), " ")
    name = name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"
    requested = point.get("requested")
    return {
        "method": name,
        "level": point["level"],
        "loss": point["loss"],
        "front": bool(point["front"]),
        "requested": str(requested),
        **{end: point[end] for end in ("low", "high") if end in point},
    }


def _chart(points: list[dict[str, Any]], level: str) -> Spec:
    if not points:
        mark = {"type": "text", "text": "there is no release to show", "font": "sans-serif"}
        return {"data": {"values": [{}]}, "mark": mark, "config": {"view": {"continuousWidth": 300, "continuousHeight": 300}}}
    methods = list(dict.fromkeys(point["method"] for point in points))
    numbered = [{**point, "order": i} for i, point in enumerate(points)]
    edge = sorted((point for point in numbered if point["front"]), key=lambda point: point["loss"])
    loss_axis = {"axis": {"tickCount": 6}, "scale": {"zero": False, "padding": 8}}
    level_axis = {"axis": {"format": "~g", "tickCount": 6}, "scale": _scale(points)}
    front = {
        "x": {**quantity("loss", "loss (General Loss Metric A)"), **loss_axis},
        "y": {**quantity("level", level), **level_axis},
    }
    base = {**front, "color": _encode_methods(COLOURS, methods)}
    lines = {**base, "detail": {"field": "method", "type": "nominal"}, "order": {"field": "order", "type": "quantitative"}}
    marks = {**base, "shape": _encode_methods(SHAPES, methods)}
    step = {"type": "line", "interpolate": "step-after", "color": "#bbb", "strokeWidth": 5, "opacity": 0.6}
    filled = {"type": "point", "filled": True, "size": 85, "opacity": 1}
    hollow = {"type": "point", "fill": "white", "size": 55, "opacity": 1, "strokeWidth": 1.5}
    ends = {**base, "y": {**quantity("low", level), **level_axis}, "y2": {"field": "high"}}
    intervals = [{"mark": {"type": "rule", "strokeWidth": 1}, "encoding": ends}] if "low" in points[0] else []
    layers = [
        *intervals,
        {"data": {"values": edge}, "mark": step, "encoding": front},
        {"mark": {"type": "line", "strokeWidth": 1.5}, "encoding": lines},
        {"transform": [{"filter": "datum.front"}], "mark": filled, "encoding": marks},
        {"transform": [{"filter": "!datum.front"}], "mark": hollow, "encoding": marks},
    ]
    return {
        "data": {"values": numbered},
        "layer": layers,
        "width": WIDTH,
        "height": HEIGHT,
        "title": {
            "text": NOTE,
            "orient": "bottom",
            "anchor": "start",
            "fontSize": 12,
            "fontWeight": "normal",
            "color": "#222",
            "offset": 12,
        },
        "config": style(labelLimit=WIDTH, symbolSize=80),
    }


def _scale(points: Sequence[Mapping[str, Any]]) -> Spec:
    """Return a logarithmic scale if the levels need it, as those of beta and k do."""
    levels = [point["level"] for point in points]
    wide = bool(levels) and min(levels) > 0 and max(levels) / min(levels) > WIDE
    return {"type": "log", "padding": 8} if wide else {"zero": False, "nice": True}


def _encode_methods(signs: Sequence[str], methods: Sequence[str]) -> Spec:
    """Return a colour or a shape for each method, the same in every chart of the same methods."""
    scale = {"domain": list(methods), "range": [signs[i % len(signs)] for i in range(len(methods))]}
    legend = {"title": None, "orient": "top", "columns": 3}
    return {"field": "method", "type": "nominal", "scale": scale, "legend": legend}
