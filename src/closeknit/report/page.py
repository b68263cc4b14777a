"""A record as one self-contained HTML page, which works offline, prints well and sends no requests.

The templates escape every text of the record; only charts, which are drawn here, are inserted as they are.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import yaml

from closeknit.core.combined_secrets import render_secret
from closeknit.report import charts
from closeknit.report.frontier_chart import frontier_svg
from closeknit.report.measure_lines import list_measures
from closeknit.report.report_records import PrivateReport, PublicReport, SecretSpread
from closeknit.report.utility_charts import distribution_svg, explain_loss, matrix_svg

if TYPE_CHECKING:
    from jinja2 import Environment

MOST_CHARTS = 3  # of sensitive attributes; the others are shown as tables
MOST_BARS = 12  # of attacks; the table has all
LONGEST = 120  # characters of a cell
BACKTICKS = re.compile(r"`([^`]+)`")
SEE_TABLE = "The table next to it has the numbers."


def public_page(record: PublicReport) -> str:
    """Render the public report.

    >>> import closeknit as ck
    >>> release = ck.anonymize(ck.datasets.hospital(60), ck.datasets.hospital_schema(), [ck.KAnonymity(5)])
    >>> "k-anonymity, k = 5" in release.report()
    True
    """
    return templates().get_template("public.html").render(report=record, charts=_charts(record))


def private_page(record: PrivateReport) -> str:
    """Render the private report.

    >>> import closeknit as ck
    >>> release = ck.anonymize(ck.datasets.hospital(60), ck.datasets.hospital_schema(), [ck.KAnonymity(5)])
    >>> "private: do not share" in release.report(private=True)
    True
    """
    drawn = {**_charts(record.released), "private_findings": findings_chart(record), "frontier": _frontier_chart(record)}
    drawn |= _utility_charts(record)
    recipe = yaml.safe_dump(record.recipe, sort_keys=False, allow_unicode=True)
    template = templates().get_template("private.html")
    return template.render(report=record.released, private=record, charts=drawn, recipe=recipe)


def _charts(record: PublicReport) -> dict[str, Any]:
    from markupsafe import Markup

    word, words = record.class_word, record.class_words
    sizes = [{"name": _span(bar.first, bar.last), "value": bar.classes} for bar in record.measures.sizes.bars]
    loss = [{"name": name, "value": a} for name, (a, _) in record.loss.columns.items()]
    drawn: dict[str, Any] = {"findings": findings_chart(record), "sizes": None, "loss": None}
    if sizes:
        title = f"Bar chart: how many {words} there are of each size. {SEE_TABLE}"
        drawn["sizes"] = Markup(charts.vertical_bars(sizes, name=f"rows of a {word}", value=words, title=title))
    if loss:
        title = f"Bar chart: loss by column, from 0 to 1. {SEE_TABLE}"
        drawn["loss"] = Markup(charts.bars(loss, value="loss", title=title, most=1))
    drawn["secrets"] = [
        Markup(_spread_chart(spread, word)) if any(spread.overall) else None for spread in record.secrets[:MOST_CHARTS]
    ]
    return drawn


def findings_chart(record: PublicReport | PrivateReport) -> Any:
    """Draw the risk of each attack; None if there is nothing to compare."""
    from markupsafe import Markup

    secrets = {found.column for found in record.findings if found.column}
    rows = [
        {"name": _attack(found.attack, found.column if len(secrets) > 1 else None), "value": found.risk}
        for found in record.findings[:MOST_BARS]
    ]
    title = f"Bar chart: risk of each attack, from 0 (nothing learned) to 1 (fully disclosed). {SEE_TABLE}"
    return Markup(charts.bars(rows, value="risk", title=title, most=1)) if len(rows) > 1 else None


def _frontier_chart(record: PrivateReport) -> Any:
    from markupsafe import Markup

    found = record.frontier
    if found is None or not found.ok:
        return None
    head = found.measures[0]
    title = f"Privacy against loss: {head.name} over loss, a line for each method. The table below has the numbers."
    return Markup(frontier_svg(found.records(), level=head.name, higher_is_safer=head.higher_is_safer, title=title))


def _utility_charts(record: PrivateReport) -> dict[str, Any]:
    from markupsafe import Markup

    found = record.usefulness
    if found is None:
        return {"distributions": [], "associations": []}
    matrices = [("original", found.original), ("release", found.published)] if len(found.columns) > 1 else []
    return {
        "distributions": [Markup(distribution_svg(one)) for one in found.distributions],
        "associations": [Markup(matrix_svg(found.columns, matrix, what)) for what, matrix in matrices],
    }


def _spread_chart(spread: SecretSpread, word: str) -> str:
    parts = [spread.overall, *(shown.counts for shown in spread.worst)]
    totals = [max(sum(part), 1) for part in parts]
    rows = [
        {"name": value, "values": [part[i] / total for part, total in zip(parts, totals, strict=True)]}
        for i, value in enumerate(spread.values)
    ]
    series = ["all published rows", *(f"{word} {letter}" for letter in "ABC"[: len(spread.worst)])]
    title = f"Bar chart: share of each value of {short(spread.column)} in {', '.join(series)}. {SEE_TABLE}"
    return charts.shares(rows, series, title=title)


@functools.cache
def templates() -> Environment:
    """Return the templates of all pages, with their filters."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("closeknit.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": number,
        "count": lambda value: f"{value:,}",
        "share": share,
        "short": short,
        "code": mark_code,
        "span": _span,
    }
    environment.globals |= {"attack": _attack, "list_measures": list_measures, "explain_loss": explain_loss}
    return environment


def number(value: float | None) -> str:
    """Format a number.

    >>> number(0.123456), number(None), number(6.0)
    ('0.1235', 'no limit', '6')
    """
    return "no limit" if value is None or math.isinf(value) else f"{value:.4g}"


def share(part: int, whole: int) -> str:
    """Format a share in percent.

    >>> share(1, 3)
    '33.3 %'
    """
    return f"{100 * part / whole:.1f} %" if whole else "–"


def short(text: str) -> str:
    """Shorten a cell for a page.

    >>> short("a" * 200)[-3:]
    'aa…'
    """
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def mark_code(sentence: str) -> Any:
    """Return a sentence as HTML: what stands between backticks, such as the name of a column, as code.

    >>> str(mark_code("learns `stay` of <b>"))
    'learns <code>stay</code> of &lt;b&gt;'
    """
    from markupsafe import Markup, escape

    return Markup(BACKTICKS.sub(r"<code>\1</code>", str(escape(sentence))))


def _span(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _attack(name: str, column: str | Sequence[str] | None) -> str:
    words = name.replace("_", " ")
    return f"{words} of {render_secret(column if isinstance(column, str) else tuple(column))}" if column else words
