"""The clickable frontier: privacy against loss as SVG in which every point is a link with a title.

It works with the keyboard and without scripts, because choosing a point is following a link. The report's chart renderer would
prefix such links with a foreign host, so this chart is drawn here, in the same colours and with a shape for each method.
Numbers and names from the data are escaped texts, never parts of the drawing.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from closeknit.core.steps import round_step
from closeknit.report.frontier_chart import COLOURS, NOTE, WIDE
from closeknit.web.desk.choices import ChoicePoint, Choices
from closeknit.web.desk.table_preview import short

WIDTH, HEIGHT = 640, 380
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 36, 52
REACH = 14  # radius of the target around a point, large enough for a finger
LINE = 20  # height of a line of the legend
LONGEST = 40
TICKS = 5
BLACK = "#000000"


def frontier_svg(choices: Choices, link: Callable[[ChoicePoint], str], chosen: int | None = None) -> str:
    """Draw the chart; `link` returns the address of a point, `chosen` is the number of the selected one.

    >>> point = ChoicePoint(0, "sabre", {"sabre": {}}, None, None, True, 0.2, 0.4, ("0.2",), 9, 0, 1.0, True, None)
    >>> choices = Choices(100, 100, ("t",), ("t of wage",), "t of wage", False, (point,), 0)
    >>> svg = frontier_svg(choices, lambda point: f"?point={point.number}")
    >>> '<a href="?point=0" aria-label="sabre: t of wage 0.2, loss 0.4' in svg
    True
    """
    shown = [point for point in choices.points if point.level is not None and point.loss is not None]
    if not shown:
        return _svg(60, choices, [draw_text(20, 35, "there is no release to show")])
    across = AxisScale([point.loss or 0.0 for point in shown], (LEFT, WIDTH - RIGHT), log=False)
    up = AxisScale([point.level or 0.0 for point in shown], (HEIGHT - BOTTOM, TOP), log=_wide(shown))
    methods = list(dict.fromkeys(point.name for point in shown))
    colours = [colour if colour != BLACK else "currentColor" for colour in COLOURS]  # black is invisible on a dark page
    signs = {name: (colours[i % len(colours)], i % len(SIGNS)) for i, name in enumerate(methods)}
    parts = [*_axes(across, up, choices), *_steps(shown, across, up)]
    parts += [_curve([p for p in shown if p.name == name], across, up, signs[name][0]) for name in methods]
    parts += [_point(p, across, up, signs[p.name], link(p), choices.level, p.number == chosen) for p in shown]
    parts += _legend(signs)
    return _svg(HEIGHT + LINE * math.ceil(len(methods) / 3) + 2 * LINE, choices, parts)


@dataclass(frozen=True)
class AxisScale:
    """A scale from values to pixels, with padding at both ends."""

    values: Sequence[float]
    pixels: tuple[float, float]
    log: bool

    def __call__(self, value: float) -> float:
        """Return the pixel of a value."""
        low, high = self._ends
        first, last = self.pixels
        share = 0.5 if high == low else (self._of(value) - low) / (high - low)
        return round(first + (0.05 + 0.9 * share) * (last - first), 1)

    @property
    def _ends(self) -> tuple[float, float]:
        return self._of(min(self.values)), self._of(max(self.values))

    def _of(self, value: float) -> float:
        return math.log10(value) if self.log else value

    def ticks(self) -> list[float]:
        """Return round values between both ends, or the ends if there are none.

        >>> AxisScale([0.11, 0.42], (0, 100), log=False).ticks()
        [0.2, 0.3, 0.4]
        """
        low, high = min(self.values), max(self.values)
        if high == low:
            return [low]
        if self.log:
            decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
            found = [factor * 10.0**power for power in decades for factor in (1, 2, 5)]
        else:
            step = round_step((high - low) / TICKS)
            found = [round(step * i, 12) for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
        return [tick for tick in found if low <= tick <= high] or [low, high]


def _wide(points: Sequence[ChoicePoint]) -> bool:
    """Whether levels need a logarithmic axis, as those of beta and k do."""
    levels = [point.level or 0.0 for point in points]
    return min(levels) > 0 and max(levels) / min(levels) > WIDE


def _axes(across: AxisScale, up: AxisScale, choices: Choices) -> list[str]:
    parts = [f'<g class="grid">{"".join(_grid(across, up))}</g>', '<g class="ticks" font-size="12">']
    parts += [draw_text(across(tick), HEIGHT - BOTTOM + 18, f"{tick:.4g}", "middle") for tick in across.ticks()]
    parts += [draw_text(LEFT - 8, up(tick) + 4, f"{tick:.4g}", "end") for tick in up.ticks()]
    safer = "larger" if choices.higher_is_safer else "smaller"
    parts += [
        "</g>",
        draw_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, "loss (0: unchanged, 1: all information lost)", "middle"),
    ]
    head = f"{short(choices.level, LONGEST)} measured ({safer} is safer)"  # horizontal: a vertical label would be cut
    return [*parts, draw_text(8, 18, head)]


def _grid(across: AxisScale, up: AxisScale) -> list[str]:
    lines = [f'<line x1="{across(t)}" x2="{across(t)}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>' for t in across.ticks()]
    return lines + [f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(t)}" y2="{up(t)}"/>' for t in up.ticks()]


def _steps(points: Sequence[ChoicePoint], across: AxisScale, up: AxisScale) -> list[str]:
    """Draw the grey step line through the points on the frontier."""
    front = sorted((point for point in points if point.front), key=lambda point: point.loss or 0.0)
    if len(front) < 2:
        return []
    path = f"M{across(front[0].loss or 0.0)} {up(front[0].level or 0.0)}"
    path += "".join(f"H{across(point.loss or 0.0)}V{up(point.level or 0.0)}" for point in front[1:])
    return [f'<path class="front" d="{path}" fill="none" stroke-width="5" opacity="0.6"/>']


def _curve(points: Sequence[ChoicePoint], across: AxisScale, up: AxisScale, colour: str) -> str:
    corners = " ".join(f"{across(point.loss or 0.0)},{up(point.level or 0.0)}" for point in points)
    return f'<polyline points="{corners}" fill="none" stroke="{colour}" stroke-width="1.5"/>' if len(points) > 1 else ""


def _point(
    point: ChoicePoint, across: AxisScale, up: AxisScale, sign: tuple[str, int], address: str, level: str, chosen: bool
) -> str:
    requested = f", requested {point.requested}" if point.requested else ""
    failed = "" if point.ok else " (a guarantee is not met)"
    label = html.escape(f"{point.name}: {level} {point.level:.4g}, loss {point.loss:.4g}{requested}{failed}", quote=True)
    current = ' class="point chosen" aria-current="true"' if chosen else ' class="point"'
    ring = f'<circle class="ring" r="{REACH - 3}" fill="none" stroke-width="2"/>' if chosen else ""
    return (
        f'<a href="{html.escape(address, quote=True)}" aria-label="{label}"{current} '
        f'transform="translate({across(point.loss or 0.0)} {up(point.level or 0.0)})"><title>{label}</title>'
        f'<circle r="{REACH}" fill="transparent"/>{ring}{_sign(sign, point.front)}</a>'
    )


SIGNS = (
    "M6 0A6 6 0 1 1 -6 0A6 6 0 1 1 6 0",
    "M-5 -5H5V5H-5Z",
    "M0 -6L6 5H-6Z",
    "M0 -7L6 0L0 7L-6 0Z",
    "M-2 -6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z",
    "M0 6L6 -5H-6Z",
    "M6 0L-5 6V-6Z",
    "M-6 0L5 6V-6Z",
)


def _sign(sign: tuple[str, int], filled: bool) -> str:
    colour, shape = sign
    inside = f'fill="{colour}"' if filled else 'class="hollow"'
    return f'<path d="{SIGNS[shape]}" {inside} stroke="{colour}" stroke-width="1.5"/>'


def _legend(signs: dict[str, tuple[str, int]]) -> list[str]:
    parts = []
    for i, (name, sign) in enumerate(signs.items()):
        x, y = LEFT + (i % 3) * 190, HEIGHT + LINE * (i // 3) + 10
        parts += [
            f'<g transform="translate({x} {y - 4})">{_sign(sign, True)}</g>',
            draw_text(x + 12, y, short(name, LONGEST // 2)),
        ]
    return [*parts, draw_text(LEFT, HEIGHT + LINE * math.ceil(len(signs) / 3) + LINE, NOTE)]


def draw_text(x: float, y: float, text: str, anchor: str = "start") -> str:
    """Draw a line of text."""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{html.escape(text)}</text>'


def _svg(height: float, choices: Choices, parts: Sequence[str]) -> str:
    label = html.escape(f"Privacy against loss: {choices.level} over loss, {len(choices.points)} releases", quote=True)
    head = f'<svg class="frontier" role="group" aria-label="{label}" viewBox="0 0 {WIDTH} {height:g}"'
    return f'{head} font-family="sans-serif" font-size="13">{"".join(parts)}</svg>'
