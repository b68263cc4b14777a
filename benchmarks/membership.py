"""Membership on Adult: how many fakes sliced buckets admit, into how many buckets they fit, and which grouping hides best.

The settings are those of the paper on slicing, sec. 5.1: OCC-7 and OCC-15, random buckets of p rows, c column groups.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

import pictures
import tables
from closeknit.attacks.membership import Membership, membership
from closeknit.fills.spreading import spread_buckets
from closeknit.kernels.fakes import fitting, shelved
from closeknit.kernels.hilbert import hilbert_keys
from pictures import Panel
from sections import Section

Int32 = NDArray[np.int32]
Slice = tuple[tuple[str, ...], ...]
SEED, MANY = 7, 20
SIZES, USUAL = (10, 100, 500, 1000), 100
SECRET = "occupation"
OCC_7 = ("age", "workclass", "education", "marital-status", "race", "sex", SECRET)
FIVE: Slice = (("age", "marital-status", "sex"), ("workclass",), ("education",), ("race",), (SECRET,))
TWO: Slice = (("age", "marital-status", "sex"), ("workclass", "education", "race", SECRET))
BUCKETIZED: Slice = (OCC_7[:-1], (SECRET,))
OCC_15: Slice = (
    ("age", "workclass", "education", "education-num", "capital-gain", "hours-per-week", "salary-class"),
    ("marital-status", SECRET, "relationship", "sex"), ("race", "native-country"), ("fnlwgt",), ("capital-loss",),
)  # fmt: skip
PRINTED = (87_936, 5_325, 31_452)  # fakes, those with more than 20 buckets, original rows with more than 20


@dataclass(frozen=True)
class Sliced:
    """A table as codes per column group, with the secret and without."""

    values: Int32
    known: Int32

    @classmethod
    def of(cls, frame: pl.DataFrame, columns: Slice) -> Sliced:
        known = tuple(tuple(name for name in group if name != SECRET) for group in columns)
        return cls(_coded(frame, columns), _coded(frame, known))

    def attacked(self, bucket_of: Int32) -> Membership:
        return membership(bucket_of, self.values, self.values, self.known, seed=SEED)

    def rows_with_many(self, bucket_of: Int32) -> int:
        """Rows of the table, not different tuples, that fit into more than 20 buckets: what the source counts."""
        shelves = shelved(bucket_of, self.values, self.values.max(axis=0).astype(np.int64) + 1)
        return int((fitting(shelves, self.values) > MANY).sum())


def _coded(frame: pl.DataFrame, columns: Slice) -> Int32:
    dense = [pl.struct(group).rank("dense") - 1 if group else pl.lit(0) for group in columns]
    cells = [frame.select(one.cast(pl.Int32).alias("code")).to_series() for one in dense]
    return np.column_stack([np.broadcast_to(cell.to_numpy(), frame.height) for cell in cells])


# Groupings -----------------------------------------------------------------------------------------------------------------


def chance(values: Int32, size: int) -> Int32:
    """Random buckets, the last one smaller."""
    return _cut(np.random.default_rng(SEED).permutation(len(values)), size)


def dealt(values: Int32, size: int) -> Int32:
    """Rows sorted by their values, the widest column group first, most frequent values first, dealt out in turn."""
    ranked, widths = _ranked(values), [len(np.unique(column)) for column in values.T]
    return _deal(np.lexsort([ranked[:, j] for j in np.argsort(widths, kind="stable")]), size)


def dealt_along_the_curve(values: Int32, size: int) -> Int32:
    """Rows in the order of the Hilbert curve, dealt out in turn."""
    return _deal(_along_the_curve(values), size)


def cut_from_the_curve(values: Int32, size: int) -> Int32:
    """Rows in the order of the Hilbert curve, cut into pieces: like stands with like."""
    return _cut(_along_the_curve(values), size)


def anchored(values: Int32, size: int) -> Int32:
    """All rows of one value of the widest column group in one bucket, the values in random order."""
    rng = np.random.default_rng(SEED)
    widest = values[:, np.argmax([len(np.unique(column)) for column in values.T])]
    return _cut(np.lexsort([rng.permutation(len(values)), rng.permutation(widest.max() + 1)[widest]]), size)


def spread(values: Int32, size: int) -> Int32:
    """Dealt out, then rows exchanged as long as buckets come to hold more different values."""
    return spread_buckets(values, size, SEED)


GROUPINGS: dict[str, Callable[[Int32, int], Int32]] = {
    "random": chance,
    "sorted and dealt": dealt,
    "Hilbert order, dealt": dealt_along_the_curve,
    "spread": spread,
    "anchored": anchored,
    "Hilbert order, cut": cut_from_the_curve,
}
SCATTERED = ("random", "sorted and dealt", "Hilbert order, dealt", "spread")  # they put like rows into different buckets


def _ranked(values: Int32) -> Int32:
    counts = [np.bincount(column) for column in values.T]
    ranks = [np.argsort(np.argsort(-count, kind="stable"), kind="stable") for count in counts]
    return np.column_stack([rank[column] for rank, column in zip(ranks, values.T, strict=True)]).astype(np.int32)


def _along_the_curve(values: Int32) -> NDArray[np.int64]:
    return np.argsort(hilbert_keys(_ranked(values) / (values.max(axis=0) + 1.0)), kind="stable")


def _cut(order: NDArray[np.int64], size: int) -> Int32:
    bucket_of = np.empty(len(order), np.int32)
    bucket_of[order] = np.arange(len(order)) // size
    return bucket_of


def _deal(order: NDArray[np.int64], size: int) -> Int32:
    bucket_of = np.empty(len(order), np.int32)
    bucket_of[order] = np.arange(len(order)) % max(len(order) // size, 1)
    return bucket_of


# What is measured ------------------------------------------------------------------------------------------------------------


def run(section: Section, rows: int | None) -> None:
    """Random buckets as printed, the printed figures, and groupings of our own."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        frame, remark = _table(place, rows)
        section.say(
            f"{remark} OCC-7: {', '.join(OCC_7)}; {SECRET} is the secret. c = 5: {_shown(FIVE)}, as printed. c = 2: "
            f"{_shown(TWO)}, the printed column against the rest. Bucketization: c = 2 with the secret alone. OCC-15 at c = 5: "
            "as printed. Fakes are different tuples that a bucket admits and that are in no row; matching buckets are those "
            "that have every value of a tuple; AUC: the probability that an original tuple has more of them than a fake."
        )
        sizes = SIZES if rows is None else (10, 20)
        _random_buckets(section, frame, sizes)
        _printed_figures(section, frame, rows is None and tables.data_folder() is not None)
        _groupings(section, frame, sizes, pictures.FOLDER if rows is None else place)


def _table(place: Path, rows: int | None) -> tuple[pl.DataFrame, str]:
    source = tables.adult_all(place, rows)
    return pl.read_csv(source.path, infer_schema=False), source.remark


def _shown(columns: Slice) -> str:
    return " | ".join(", ".join(group) for group in columns)


def _random_buckets(section: Section, frame: pl.DataFrame, sizes: Sequence[int]) -> None:
    lines = []
    settings = {"OCC-7, c = 2": TWO, "OCC-7, c = 5": FIVE, "OCC-7, bucketization": BUCKETIZED, "OCC-15, c = 5": OCC_15}
    for (name, columns), size in itertools.product(settings.items(), sizes):
        table = Sliced.of(frame, columns)
        bucket_of = chance(table.values, size)
        found = table.attacked(bucket_of)
        assert found.quasi is not None
        lines.append([
            f"{name}, p = {size:,}", f"{found.originals:,}", _number(found.fakes.count, found.fakes.error),
            _number(found.quasi.count, found.quasi.error), f"{found.bound:.3g}", _number(found.fakes.matches.many),
            f"{found.matches.many:,}", f"{table.rows_with_many(bucket_of):,}", f"{found.fakes.auc:.3f}",
        ])  # fmt: skip
    head = [
        "random buckets", "originals", "fakes", "without the secret", "sum of k^c - k", "fakes, > 20 buckets",
        "originals, > 20", "rows, > 20", "AUC",
    ]  # fmt: skip
    section.table(head, lines)
    section.say(
        "Numbers with ± are estimates with their standard error. Bucketization admits no fake whose quasi-identifiers are not "
        "those of a row. The sum of k^c - k is the bound that the source argues with; it counts equal values "
        "and shared tuples again."
    )


def _number(count: float, error: float | None = None) -> str:
    if isinstance(count, int) or count < 1e9:
        return f"{count:,.0f}" + (f" ± {error:,.0f}" if error else "")
    return f"{count:.4g}" + (f" ± {error:.2g}" if error else "")


def _printed_figures(section: Section, frame: pl.DataFrame, comparable: bool) -> None:
    """Every way to divide the attributes into two column groups, at p = 100, with the secret and without it."""
    lines = [["printed", *(f"{figure:,}" for figure in PRINTED)]] if comparable else []
    within = {}
    for what, names in (("with the secret", OCC_7), ("without the secret", OCC_7[:-1])):
        found = {columns: _figures(frame, columns) for columns in _divisions(names)}
        spans = [f"{min(column):,}..{max(column):,}" for column in zip(*found.values(), strict=True)]
        lines.append([f"{what}, all {len(found)} divisions", *spans])
        if comparable:
            near, columns = min(found, key=lambda columns: _apart(found[columns])), TWO[0]
            for one in dict.fromkeys([near, (columns, tuple(name for name in names if name not in columns))]):
                nearest = ", nearest" if one == near else ""
                lines.append([f"{what}{nearest}: {_shown(one)}", *(f"{figure:,}" for figure in found[one])])
            within[what] = sum(_apart(figures) <= np.log(1.25) for figures in found.values())
    section.table([f"OCC-7, c = 2, p = {USUAL}", "fakes", "fakes, > 20", "original rows, > 20"], lines)
    if comparable:
        section.say(_explained(frame, within))


def _divisions(names: tuple[str, ...]) -> list[Slice]:
    """In two; the first name stands in the first group, so that each division is met once."""
    first, *others = names
    chosen = [group for count in range(len(others)) for group in itertools.combinations(others, count)]
    return [((first, *group), tuple(name for name in others if name not in group)) for group in chosen]


def _figures(frame: pl.DataFrame, columns: Slice) -> tuple[int, int, int]:
    table = Sliced(_coded(frame, columns), np.empty((0, 0), np.int32))
    bucket_of = chance(table.values, USUAL)
    fakes = membership(bucket_of, table.values, table.values, seed=SEED).fakes
    return int(fakes.count), int(fakes.matches.many), table.rows_with_many(bucket_of)


def _apart(figures: tuple[int, ...]) -> float:
    """How far the worst of three figures is from the printed one, as a logarithm."""
    return max(abs(float(np.log(max(figure, 1) / printed))) for figure, printed in zip(figures, PRINTED, strict=True))


def _explained(frame: pl.DataFrame, within: dict[str, int]) -> str:
    quasi, whole = (frame.select(names).unique().height for names in (OCC_7[:-1], OCC_7))
    said = " and ".join(f"{count or 'none'} {what}" for what, count in within.items())
    return (
        "The source names neither its seven attributes nor its two columns, and says that every combination of "
        f"quasi-identifiers occurs once. That is not so here: the six have {quasi:,} combinations in {frame.height:,} rows, "
        f"with the secret {whole:,}. Divisions within a quarter of all three printed figures: {said}. So these are best "
        "understood as counts of tuples of quasi-identifiers, which is also what an attacker knows who asks whether somebody "
        "is in the table. What the source concludes holds with the secret and without: there are more fakes than "
        "originals, more with more columns, and originals fit into more buckets than fakes do."
    )


def _groupings(section: Section, frame: pl.DataFrame, sizes: Sequence[int], kept: Path) -> None:
    panels, most, least = [], 0, 0
    for name, columns in (("c = 2", TWO), ("c = 5", FIVE)):
        table = Sliced.of(frame, columns)
        full = {how: {p: table.attacked(group(table.values, p)) for p in sizes} for how, group in GROUPINGS.items()}
        half = {how: {p: _with_outsiders(table, group, p) for p in sizes} for how, group in GROUPINGS.items()}
        many = {how: {float(p): float(one.fakes.matches.many) for p, one in line.items()} for how, line in full.items()}
        auc = {how: {float(p): one.outsiders.auc for p, one in line.items()} for how, line in half.items()}
        most += sum(many["spread"][p] == max(many[how][p] for how in SCATTERED) for p in many["spread"])
        least += sum(auc["spread"][p] == min(auc[how][p] for how in SCATTERED) for p in auc["spread"])
        head = [f"p = {p:,}" for p in sizes]
        ceiling = _number(_ceiling(table.values))
        section.table([f"OCC-7, {name}: fakes / of them > 20 buckets (at most {ceiling}) / AUC", *head], [
            [how, *(f"{_number(m.fakes.count)} / {_number(m.fakes.matches.many)} / {m.fakes.auc:.3f}" for m in line.values())]
            for how, line in full.items()
        ])  # fmt: skip
        section.table([f"OCC-7, {name}, half the rows: outsiders admitted / AUC against them", *head], [
            [how, *(f"{m.admitted / m.outsiders.count:.1%} / {m.outsiders.auc:.3f}" for m in line.values())]
            for how, line in half.items()
        ])  # fmt: skip
        panels += [
            Panel("rows in a bucket", f"fakes with more than 20 buckets, {name}", many, log=True),
            Panel("rows in a bucket", f"AUC against people outside, {name}", auc),
        ]
    title = "Membership, OCC-7: groupings"
    pictures.draw(kept / "membership.png", title, panels)
    section.say(f"![{title}](pictures/membership.png)" if kept == pictures.FOLDER else "No picture is kept of a trial.")
    section.say(
        "No tuple fits into more buckets than its rarest value has rows: hence the number of fakes that could at most have "
        "more than 20. Half the rows: one half, drawn at random, is published; outsiders are the different tuples of the other "
        "half that no published row has, real people about whom an attacker would ask, admitted or not. Anchored and cut "
        "groupings bring the AUC against fakes towards 1/2, because few tuples fit into more than one bucket; but they admit "
        "fewer outsiders, and in small buckets that tells more than the number of buckets did. Among the groupings that put "
        f"like rows into different buckets ({', '.join(SCATTERED)}), spread has most fakes in more than 20 buckets in {most} "
        f"of {2 * len(sizes)} settings, and the least AUC against outsiders in {least}."
    )


def _with_outsiders(table: Sliced, group: Callable[[Int32, int], Int32], size: int) -> Membership:
    order = np.random.default_rng(SEED).permutation(len(table.values))
    inside, outside = (table.values[np.sort(half)] for half in np.array_split(order, 2))
    return membership(group(inside, size), inside, inside, outsiders=outside, seed=SEED, most=0, draws=2)


def _ceiling(values: Int32) -> int:
    """Tuples that are in no row and of which every value has more than 20 rows."""
    frequent = [np.bincount(column) > MANY for column in values.T]
    originals = np.unique(values, axis=0)
    taken = np.all([often[column] for often, column in zip(frequent, originals.T, strict=True)], axis=0).sum()
    return int(np.prod([int(often.sum()) for often in frequent], dtype=object)) - int(taken)
