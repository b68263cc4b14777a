"""The chart of a live stream: rows in and rows published per second over the last minutes, as SVG without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from closeknit.web.desk.chart import draw_text
from closeknit.web.live.stream_watch import Sample

WIDTH, HEIGHT = 640, 150
LEFT, RIGHT, TOP, BOTTOM = 60, 10, 14, 26
SHORTEST, LONGEST = 30.0, 180.0  # seconds that are shown


def draw_rates(samples: Sequence[Sample]) -> str:
    """Draw the chart; an empty text if there are too few samples.

    Args:
        samples: the counters at different times, oldest first.

    >>> samples = [Sample(100.0 + i, 50 * i, 40 * i, 0, 10 * i) for i in range(4)]
    >>> svg = draw_rates(samples)
    >>> 'aria-label="Rows per second over the last 30 seconds: 50 in and 40 published at the end"' in svg
    True
    >>> draw_rates(samples[:1])
    ''
    """
    shown = [each for each in samples if each.at >= samples[-1].at - LONGEST] if samples else []
    steps = [(a, b) for a, b in pairwise(shown) if b.at > a.at]
    if not steps:
        return ""
    rates = {name: [(b.at, (getattr(b, name) - getattr(a, name)) / (b.at - a.at)) for a, b in steps] for name in LINES}
    most = max(1.0, *(rate for points in rates.values() for _, rate in points))
    end = shown[-1].at
    span = min(max(end - shown[0].at, SHORTEST), LONGEST)
    parts = [f'<g class="grid"><line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{_y(0, most)}" y2="{_y(0, most)}"/>']
    parts += [f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{_y(most, most)}" y2="{_y(most, most)}"/></g>']
    parts += [draw_text(LEFT - 8, _y(most, most) + 4, f"{most:,.0f}", "end"), draw_text(LEFT - 8, _y(0, most) + 4, "0", "end")]
    parts += [draw_text(LEFT, HEIGHT - 6, f"{span:.0f} seconds ago"), draw_text(WIDTH - RIGHT, HEIGHT - 6, "now", "end")]
    for name, points in rates.items():
        corners = " ".join(f"{_x(end - at, span)},{_y(rate, most)}" for at, rate in points)
        parts.append(f'<polyline class="{LINES[name]}" points="{corners}" fill="none" stroke-width="2"/>')
    last = {name: points[-1][1] for name, points in rates.items()}
    head = (
        f"Rows per second over the last {span:.0f} seconds: "
        f"{last['rows_in']:,.0f} in and {last['rows_out']:,.0f} published at the end"
    )
    opening = f'<svg class="rates" role="img" aria-label="{head}" viewBox="0 0 {WIDTH} {HEIGHT}" font-size="12">'
    return f"{opening}{''.join(parts)}</svg>"


LINES = {"rows_in": "line-in", "rows_out": "line-out"}


def _x(before: float, span: float) -> float:
    return round(LEFT + (1 - before / span) * (WIDTH - LEFT - RIGHT), 1)


def _y(rate: float, most: float) -> float:
    return round(HEIGHT - BOTTOM - rate / most * (HEIGHT - TOP - BOTTOM), 1)
