"""Charts of utility: distributions before and after, and associations of columns side by side.

They are few rectangles each, and every saved release has one for each column, so they are written as SVG here: a chart of
`charts` takes a hundred times as long. Texts of the data are escaped, and cut to what fits.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

from closeknit.core.errors import keep_printable
from closeknit.core.loss import LossRecord
from closeknit.metrics.usefulness import Distribution, Matrix, Usefulness
from closeknit.report.charts import BLUE, ORANGE

SERIES = {"original": BLUE, "release": ORANGE}
LABELS, WIDTH = 185, 225  # pixels of names and of bars
BAR, GAP, LINE = 8, 5, 18  # pixels of a bar, between bins, and of a line of text
CELL = 26  # pixels of a cell of a matrix
SIGNS = 24  # characters of a name that fit
Drawing = tuple[list[str], int, int]  # elements, width and height


def explain_loss(loss: LossRecord) -> str:
    """The meaning of the loss in one sentence for laymen.

    Args:
        loss: of a release.

    >>> print(explain_loss(LossRecord(a=0.25, b=0.2, columns={"age": (0.4, 0.4), "sex": (0.1, 0.1)})))
    On average, a quasi-identifier of a row leaves open 25 % of what its column can be: most in age (40 %), least in sex (10 %).
    """
    sentence = f"On average, a quasi-identifier of a row leaves open {100 * loss.a:.0f} % of what its column can be"
    if len(loss.columns) < 2:
        return f"{sentence}."
    ordered = sorted(loss.columns.items(), key=lambda column: -column[1][0])
    most, least = (f"{name} ({100 * a:.0f} %)" for name, (a, _) in (ordered[0], ordered[-1]))
    return f"{sentence}: most in {most}, least in {least}."


def distribution_svg(found: Distribution) -> str:
    """Draw the shares of a column's bins, before and after.

    Args:
        found: the distribution.

    >>> one = Distribution(column="age", bins=("0 to 50", "50 to 100"), original=(0.4, 0.6), published=(0.5, 0.5), distance=0.1)
    >>> distribution_svg(one).count("<rect")
    6
    """
    title = f"Bar chart: shares of {found.column} in the original and in the release. The table next to it has the numbers."
    return _svg(*_draw_distribution(found), title)


def _draw_distribution(found: Distribution) -> Drawing:
    scale = WIDTH / max(*found.original, *found.published, 1e-9)
    parts, at = [], LABELS
    for name, colour in SERIES.items():
        parts += [_rect(at, 4, 10, 10, colour), _text(at + 15, 13, name)]
        at += 90
    for i, name in enumerate(found.bins):
        top = LINE + i * (2 * BAR + GAP)
        parts.append(_text(LABELS - 6, top + BAR + 4, name, "end"))
        for j, (share, colour) in enumerate(zip((found.original[i], found.published[i]), SERIES.values(), strict=True)):
            parts.append(_rect(LABELS, top + j * BAR, round(share * scale, 1), BAR - 1, colour))
    return parts, LABELS + WIDTH + 5, LINE + len(found.bins) * (2 * BAR + GAP)


def matrix_svg(names: Sequence[str], matrix: Matrix, what: str) -> str:
    """Draw the associations of each pair of columns; the darker, the closer.

    Args:
        names: of the columns.
        matrix: associations from 0 to 1.
        what: the table that has them.

    >>> matrix_svg(["age", "sex"], ((1.0, 0.3), (0.3, 1.0)), "original").count("<rect")
    4
    """
    title = f"Matrix: association of each pair of columns in the {what}. The table has the numbers."
    return _svg(*_draw_matrix(names, matrix, what), title)


def _draw_matrix(names: Sequence[str], matrix: Matrix, what: str) -> Drawing:
    parts, side = [], CELL * len(names)
    for i, name in enumerate(names):
        parts.append(_text(LABELS - 6, LINE + i * CELL + 17, name, "end"))
        foot = LABELS + i * CELL + 17, LINE + side + 12
        parts.append(_text(*foot, name, "end", f' transform="rotate(-40 {foot[0]} {foot[1]})"'))
        for j, value in enumerate(matrix[i]):
            box = _rect(LABELS + j * CELL, LINE + i * CELL, CELL - 1, CELL - 1, BLUE)
            parts.append(box.replace("/>", f' fill-opacity="{0.04 + 0.96 * value:.2f}"/>'))
    parts.append(_text(LABELS, 13, what))
    return parts, LABELS + side + 5, LINE + side + 105


def utility_pictures(found: Usefulness) -> dict[str, str]:
    """All distributions in one picture, and both matrices in another, for the page of a release.

    Args:
        found: what to draw.

    >>> sorted(utility_pictures(Usefulness(distributions=(), columns=(), original=(), published=())))
    []
    """
    pictures = {}
    if found.distributions:
        parts, top, widest = [], 0, 0
        for one in found.distributions:
            drawn, width, height = _draw_distribution(one)
            parts += [f'<g transform="translate(0 {top})">', _text(0, 13, one.column), *drawn, "</g>"]
            top, widest = top + height + LINE, max(widest, width)
        pictures["distributions"] = _svg(parts, widest, top, "Bar charts: each column in the original and in the release.")
    if len(found.columns) > 1:
        first, width, height = _draw_matrix(found.columns, found.original, "original")
        second = _draw_matrix(found.columns, found.published, "release")[0]
        parts = [*first, f'<g transform="translate({width} 0)">', *second, "</g>"]
        title = "Two matrices: association of each pair of columns in the original and in the release."
        pictures["associations"] = _svg(parts, 2 * width, height, title)
    return pictures


def _rect(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{colour}"/>'


def _text(x: float, y: float, text: str, anchor: str = "start", more: str = "") -> str:
    cut = _escape(text if len(text) <= SIGNS else text[: SIGNS - 1] + "…")
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{more}>{cut}</text>'


def _escape(text: str) -> str:
    return html.escape(keep_printable(text, " "))


def _svg(parts: Sequence[str], width: float, height: float, title: str) -> str:
    head = f'<svg role="img" aria-label="{_escape(title)}"'
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return f'{head} {size} font-family="sans-serif" font-size="12" fill="#222"><g>{"".join(parts)}</g></svg>'
