"""Kinds of column: edges of bins, prefixes, dates and the calendar's loss, and their written forms."""

from __future__ import annotations

import json
from datetime import date as day
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from test_trees import nested_trees

import closeknit as ck
from closeknit.core.dates import DAY_LEVELS, LEVELS, Date, date
from closeknit.core.errors import BadInput
from closeknit.core.hierarchy import Hierarchy
from closeknit.core.kind_forms import KINDS, kind_form, kind_from
from closeknit.core.kinds import BadValue, Flat, Kind, Numeric, Prefix, flat, numeric, prefix
from closeknit.core.tree import STAR
from closeknit.core.written_kinds import Nodes, WrittenNodes


def texts(*values: str) -> np.ndarray:
    return np.array(values, dtype=object)


# --- numbers


def test_a_value_on_an_edge_belongs_to_the_upper_bin_and_the_last_bin_is_closed() -> None:
    domain, codes = numeric(0, 100, bins=4).bind(np.array([0, 24.999, 25, 50, 75, 100]))
    assert codes.tolist() == [0, 0, 1, 2, 3, 3]
    assert domain.texts == ("[0, 25]", "[25, 50]", "[50, 75]", "[75, 100]")
    written, again = numeric(0, 100, bins=4).bind(texts("[75, 100]", "[0, 25]"))
    assert again.tolist() == [3, 0] and written.texts == domain.texts


@given(st.integers(-30, 30), st.integers(1, 30), st.integers(1, 12), st.integers(1, 3))
def test_edges_of_decimal_bins_are_exact(low: int, steps: int, bins: int, places: int) -> None:
    scale = 10**places
    lo, hi = low / scale, (low + steps * bins) / scale
    edges = np.array([(low + steps * i) / scale for i in range(bins + 1)])
    assert numeric(lo, hi, bins=bins).bind(edges)[1].tolist() == [*range(bins), bins - 1]


@given(st.lists(st.integers(-1000, 1000) | st.floats(-1e6, 1e6), min_size=1, unique=True))
def test_numbers_keep_their_order_and_read_back(values: list[float]) -> None:
    domain, codes = numeric().bind(np.array(values, dtype=np.float64))
    assert [float(domain.texts[code]) for code in codes] == values
    assert domain.numbers is not None and domain.numbers.tolist() == sorted(values)


def test_written_numbers_that_cannot_be_are_named() -> None:
    for kind, cell in ((numeric(), "[30, 20]"), (numeric(0, 100), "[90, 101]"), (numeric(0, 100), "-1")):
        with pytest.raises(BadValue) as refused:
            kind.losses(["5", cell])
        assert refused.value.index == 1 and f"'{cell}'" in refused.value.what
    assert numeric(0, 100).losses(["[0, 100]", "[0, 50]", "7", "", STAR])[:, 0].tolist() == [1, 0.5, 0, 0, 1]


# --- dates


EVERY_DAY = [str(day(2010, 1, 1) + timedelta(days=i)) for i in range(10_957)]  # 2010 to 2039


def days_of(cell: str) -> set[str]:
    """Days that a written cell covers, by comparing texts."""
    if "Q" in cell:
        year, quarter = cell.split("-Q")
        return {text for text in EVERY_DAY if text[:4] == year and (int(text[5:7]) + 2) // 3 == int(quarter)}
    start = cell[:3] if cell.endswith("s") else cell
    return {text for text in EVERY_DAY if text.startswith(start)}


some_days = st.lists(st.dates(day(2019, 1, 1), day(2031, 12, 31)), min_size=1, max_size=8, unique=True)
some_levels = st.lists(st.sampled_from(DAY_LEVELS), min_size=1, unique=True).map(lambda v: tuple(sorted(v, key=LEVELS.index)))


@given(some_days, some_levels)
def test_dates_are_cut_to_the_finest_level_and_every_cell_holds_its_days(days: list[day], levels: tuple[str, ...]) -> None:
    kind = Date(levels)
    domain, codes = kind.bind(np.array(days, dtype="datetime64[D]"))
    assert domain.tree is not None and domain.numbers is not None
    assert domain.tree.height[0] == len(levels)
    assert (np.diff(domain.numbers) > 0).all()
    for date_, code in zip(days, codes.tolist(), strict=True):
        assert date_.isoformat() in days_of(domain.texts[code])
    lo, hi = int(codes.min()), int(codes.max())
    (cell,) = domain.labels(np.array([lo]), np.array([hi]))
    assert cell == STAR or {d.isoformat() for d in days} <= days_of(cell)
    assert kind.bind(texts(*domain.texts))[1].tolist() == list(range(domain.size))


@given(some_days)
def test_nodes_of_days_cost_their_share_of_the_calendar(days: list[day]) -> None:
    lo, hi = "2018-03-10", "2032-04-01"
    total = (day.fromisoformat(hi) - day.fromisoformat(lo)).days + 1
    kind = Date(lo=lo, hi=hi)
    domain, _ = kind.bind(np.array(days, dtype="datetime64[D]"))
    assert domain.tree is not None and domain.node_loss is not None
    cells = domain.tree.labels
    losses = kind.losses(cells)
    assert domain.node_loss.tolist() == losses[:, 0].tolist()
    for cell, (a, b) in zip(cells, losses.tolist(), strict=True):
        if cell in (STAR, ""):
            assert a == b == float(cell == STAR)
            continue
        under = len([text for text in days_of(cell) if lo <= text <= hi])
        assert a == pytest.approx(0 if under == 1 else under / total)
        assert b == pytest.approx((under - 1) / (total - 1))


def test_undeclared_bounds_of_dates_are_those_of_the_written_cells() -> None:
    losses = date().losses(["2024-02", "2024-03-01", "2023-12", "", STAR])
    assert losses[:, 0].tolist() == [29 / 92, 0, 31 / 92, 0, 1]
    assert losses[:, 1].tolist() == [28 / 91, 0, 30 / 91, 0, 1]
    assert date(["month", "year"]).losses(["2024", "2025-01"])[:, 0].tolist() == [12 / 13, 0]
    assert date().losses([STAR, ""])[:, 0].tolist() == [1, 0]


def test_methods_weigh_undeclared_dates_by_the_calendar_not_by_the_dates_that_occur() -> None:
    few, many = (["2023-01-01", "2024-03-01", *more, "2024-12-31"] for more in ([], ["2024-03-02", "2024-03-03"]))
    for days in (few, many):
        domain, _ = date().bind(texts(*days))
        assert domain.tree is not None
        losses = dict(zip(domain.tree.labels, domain.node_losses.tolist(), strict=True))
        assert losses["2024"] == 366 / 731 and losses["2024-Q1"] == 91 / 731 and losses["2023-01-01"] == 0


def test_numbers_of_years_are_the_years() -> None:
    domain, codes = date(["year", "decade"]).bind(np.array([2024, 1999]))
    assert codes.tolist() == [1, 0] and domain.numbers is not None
    assert domain.numbers.tolist() == [1999, 2024] and domain.texts == ("1999", "2024")


@pytest.mark.parametrize(
    ("levels", "value"),
    [
        (None, "2024-02-30"),
        (None, "2023-02-29"),
        (None, "2024-3-1"),
        (None, "2024-03"),
        (None, "2024"),
        (None, "17.03.2024"),
        (None, "2024-03-17T25:00:00"),
        (None, "0000-01-01"),
        (None, "٢٠٢٤-٠١-٠١"),
        (["month"], "2024-13"),
        (["quarter"], "2024-Q5"),
        (["decade"], "2024s"),
    ],
)
def test_what_is_no_date_is_named(levels: list[str] | None, value: str) -> None:
    with pytest.raises(BadValue) as refused:
        date(levels).bind(texts("2024-03-17", value))
    assert refused.value.index == 1 and f"'{value}'" in refused.value.what and "2024-03-17" in refused.value.right


def test_what_is_no_time_is_no_date() -> None:
    with pytest.raises(BadValue):
        date().bind(np.array(["NaT"], dtype="datetime64[D]"))


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"levels": ["week"]}, "no level 'week'"),
        ({"levels": []}, "fine to coarse"),
        ({"levels": ["year", "month"]}, "fine to coarse"),
        ({"levels": ["day", "day"]}, "fine to coarse"),
        ({"lo": "2024-01-01"}, "both bounds"),
        ({"lo": "2024-01-01", "hi": "2023-01-01"}, "after"),
        ({"lo": "2024-01-32", "hi": "2025-01-01"}, "lo=2024-01-32"),
    ],
)
def test_wrong_date_columns_are_refused(params: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        date(**params)


def test_dates_outside_their_bounds_are_named() -> None:
    kind = Date(lo="2024-01-01", hi="2024-12-31")
    assert kind.bind(texts("2024-01-01", "2024-12-31"))[1].tolist() == [0, 1]
    for outside in ("2023-12-31", "2025-01-01"):
        with pytest.raises(BadValue, match=outside):
            kind.bind(texts(outside))
        with pytest.raises(BadValue, match=outside):
            kind.losses([outside])
    with pytest.raises(BadValue, match="later"):
        kind.losses(["2024", "later"])


def test_the_calendar_has_ends() -> None:
    for text, decade in (("0001-01-01", "0000s"), ("9999-12-31", "9990s")):
        other = (day.fromisoformat(text) + timedelta(days=400 if decade == "0000s" else -400)).isoformat()
        domain, _ = date().bind(texts(text, other))
        assert domain.labels(np.array([0]), np.array([1])) == [decade]
        assert date().losses([decade])[:, 0].tolist() == [1.0]


# --- kinds whose domain is read off the data


@pytest.mark.parametrize("kind", [prefix(), prefix(5)])
def test_a_mask_loses_its_masked_characters_however_many_codes_are_below_it(kind: Kind) -> None:
    cells = ["4760*", "47***", "13053", STAR, ""]
    assert kind.losses(cells).tolist() == [[0.2, 0.2], [0.6, 0.6], [0, 0], [1, 1], [0, 0]]
    for codes in (["47605", "47602", "47906"], ["47605", "47602", "47601", "47906", "13053"]):
        domain, _ = kind.bind(texts(*codes))
        assert domain.tree is not None
        assert domain.node_losses.tolist() == kind.losses(domain.tree.labels)[:, 0].tolist()


def test_the_width_of_a_mask_is_the_declared_length_or_the_longest_written_cell() -> None:
    assert prefix().losses(["1**", "12", ""])[:, 0].tolist() == [2 / 3, 0, 0]
    assert prefix(4).losses(["1**", "12", "****", "******"])[:, 0].tolist() == [0.5, 0, 1, 1]


@pytest.mark.parametrize("kind", [flat(), prefix(), date(), numeric(), numeric(step=5)])
def test_a_certificate_shows_of_an_undeclared_domain_only_its_kind(kind: Kind) -> None:
    assert kind.publish_kind(["4760*", "47605"]) == kind == kind.publish_kind(["47605"], sensitive=True)


def test_leaf_counts_of_earlier_certificates_are_still_read() -> None:
    shown = Nodes({"13053": 1, "4760*": 2, "47***": 3}, 4)
    assert shown.losses(["4760*", "47***", "13053", STAR, ""])[:, 0].tolist() == [0.5, 0.75, 0, 1, 0]
    with pytest.raises(BadValue, match=r"'4\*\*\*\*'"):
        shown.losses(["4****"])


@pytest.mark.parametrize("kind", [flat(), prefix()])
def test_a_raw_value_that_looks_written_is_refused(kind: Kind) -> None:
    for value in (STAR, "[1, 2]", "(3; 4]"):
        with pytest.raises(BadValue) as refused:
            kind.bind(texts("a", value))
        assert refused.value.index == 1


# --- written forms

bounds = st.tuples(st.integers(-100, 0), st.integers(1, 100))
numerics = st.builds(
    lambda ends, step, bins: Numeric(*(ends or (None, None)), step, bins if ends else None),
    st.none() | bounds,
    st.none() | st.sampled_from([1, 0.5]),
    st.none() | st.integers(1, 9),
)
dates = st.builds(
    lambda levels, ends: Date(levels, *(ends or (None, None))),
    some_levels,
    st.none() | st.tuples(st.just("2020-01-01"), st.dates(day(2020, 1, 1)).map(str)),
)
odd_labels = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1, max_size=5) | st.sampled_from(
    ["yes", "null", "1", "1.0", "2024-01-01", "~", "- a", "a: b", "#"]
)
flat_trees = st.lists(odd_labels.filter(lambda x: x != STAR), min_size=1, max_size=6, unique=True)
trees = st.builds(Hierarchy, nested_trees() | flat_trees, st.booleans())
interval_trees = st.builds(
    lambda edges: Hierarchy.intervals(sorted(edges)), st.lists(st.integers(), min_size=2, max_size=9, unique=True)
)
pruned = st.just(Hierarchy.quantiles(range(50), 10).prune(["[4, 9)", "[44, 49]"]))
nodes = st.builds(lambda counts: Nodes(counts, sum(counts.values())), st.dictionaries(odd_labels, st.integers(1, 9)))
nodes |= st.builds(WrittenNodes, st.dictionaries(odd_labels, st.sampled_from(["value", "group", "all"])))
kinds = st.one_of(
    numerics, dates, trees, interval_trees, pruned, nodes, st.just(flat()), st.builds(Prefix, st.none() | st.integers(1, 9))
)


@given(kinds)
def test_every_form_reads_back(kind: Any) -> None:
    form = kind_form(kind)
    for again in (kind_from(form), kind_from(json.loads(json.dumps(form))), kind_from(yaml.safe_load(yaml.safe_dump(form, sort_keys=False)))):  # fmt: skip # noqa: E501
        assert again == kind and type(again) is type(kind)
        if isinstance(kind, Hierarchy):
            assert isinstance(again, Hierarchy) and again.tree.labels == kind.tree.labels
            assert again.tree.height.tolist() == kind.tree.height.tolist()


def test_names_mappings_and_kinds_are_understood(tmp_path: Path) -> None:
    for name in ("numeric", "duration", "flat", "date", "datetime", "prefix", "point", "itemset"):
        assert kind_from(name) == kind_from({name: None}) == kind_from({name: {}}) == KINDS[name]()
    kept = numeric(0, 9)
    assert kind_from(kept) is kept
    assert kind_from({"date": {"levels": ["day", "year"], "lo": day(2024, 1, 1), "hi": day(2024, 2, 1)}}) == Date(
        ("day", "year"), "2024-01-01", "2024-02-01"
    )
    (tmp_path / "job.csv").write_text("nurse|care|*\ndoctor|care|*\n")
    job = kind_from({"csv": "job.csv", "delimiter": "|"}, tmp_path)
    assert job == Hierarchy({STAR: {"care": ["nurse", "doctor"]}})
    assert kind_from({"csv": str(tmp_path / "job.csv"), "delimiter": "|"}, tmp_path / "elsewhere") == job
    assert kind_from({"tree": {"A": ["x"]}, "from_data": True}) == Hierarchy({"A": ["x"]}, True)
    assert kind_from({"intervals": {"lo": 0, "hi": 4, "width": 1}}) == Hierarchy.intervals([0, 1, 2, 3, 4])
    assert kind_from({"balanced": {"values": ["a", "b", "c"], "fanout": 2}}) == Hierarchy.balanced("abc", 2)
    assert kind_from({"nodes": {"nodes": {"A": 2}, "leaves": 3}}) == Nodes({"A": 2}, 3)


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("numric", ["'numric'", "did you mean 'numeric'"]),
        ("colour", ["'colour'", "numeric, duration, date, datetime, prefix, point, flat, itemset, tree"]),
        ({"numerc": {}}, ["'numerc'", "'numeric'"]),
        ({"numeric": {"low": 0}}, ["numeric", "'low'", "did you mean 'lo'"]),
        ({"numeric": 5}, ["numeric", "5"]),
        ({"numeric": {}, "flat": {}}, ["one name", "numeric, flat"]),
        ({}, ["one name"]),
        (7, ["7", "kind of column"]),
        (None, ["None", "kind of column"]),
        (Flat, ["kind of column"]),
        ("tree", ["tree needs its values"]),
        ("csv", ["csv", "hierarchy file"]),
        ("nodes", ["'nodes'"]),
        ({"tree": {"A": ["x"]}, "from_dat": True}, ["'from_dat'", "did you mean 'from_data'"]),
        ({"numeric": {}, "from_data": True}, ["'from_data'", "numeric"]),
        ({"tree": {"A": ["x"]}, "from_data": "no"}, ["from_data"]),
        ({"intervals": {"width": 5, "low": 0}}, ["intervals", "'low'"]),
        ({"balanced": {"values": ["a"]}}, ["balanced", "'fanout'"]),
        ({"balanced": {"values": 5, "fanout": 2}}, ["balanced", "values"]),
        ({"intervals": {"edges": 5}}, ["intervals", "edges"]),
        ({"date": {"levels": 5}}, ["levels"]),
        ({"nodes": {"nodes": ["A"], "leaves": 3}}, ["nodes"]),
        ({"written": {"nodes": ["A"]}}, ["written", "nodes"]),
        ({"written": {"nodes": {"A": "grup"}}}, ["'A'", "group"]),
        ({"tree": {"A": ["x", "y"]}, "edges": 7}, ["edges"]),
        ({"prefix": {"length": "five"}}, ["length='five'"]),
    ],
)
def test_wrong_forms_are_named_with_what_exists(form: object, words: list[str]) -> None:
    with pytest.raises(BadInput) as refused:
        kind_from(form)
    assert all(word in str(refused.value) for word in words), str(refused.value)


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"numeric": {"lo": 0, "hi": 1, "bins": 10**9}}, "bins=1000000000 is too large; bins must be .* at most 10,000"),
        ({"numeric": {"lo": 0, "hi": 1, "step": 1e-12}}, "step=1e-12 makes 1,000,000,000,000 steps; choose at most"),
        ({"intervals": {"lo": 0, "hi": 10**9, "width": 1}}, "width=1 makes 1,000,000,000 intervals; choose at most 10,000"),
        ({"intervals": {"edges": list(range(20_000))}}, "the edges make 19,999 intervals"),
        ({"intervals": {"edges": [0, 1, 2], "levels": [2] * 1000}}, "the intervals have 1,000 levels"),
        ({"prefix": {"length": 10**9}}, "length=1000000000 is too large"),
    ],
    ids=lambda each: str(next(iter(each.values())))[:20] if isinstance(each, dict) else "",
)
def test_sizes_are_limited_before_anything_is_built(form: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        kind_from(form)


def test_quantiles_and_steps_of_the_data_are_limited() -> None:
    with pytest.raises(BadInput, match="bins=1000000000 is too large"):
        Hierarchy.quantiles([1, 2], 10**9)
    with pytest.raises(BadInput, match="step=1e-12 makes"):
        numeric(step=1e-12).bind(np.array([0, 1]))


def release_of(values: list[object], kind: Kind) -> ck.Release:
    table = pa.table({"x": values, "s": [*"abcabc"]})
    schema = ck.Schema(quasi={"x": kind}, sensitive={"s": ck.flat()})
    return ck.anonymize(table, schema, [ck.KAnonymity(2)], seed=2**80)


def test_numbers_whose_distance_is_no_number_are_refused() -> None:
    with pytest.raises(ck.BadInput, match="must lie between"):
        release_of([-1.7e308, 1.7e308, 1.0, 2.0, 3.0, 4.0], ck.numeric())


def test_a_number_with_thousands_of_leading_zeros_is_read() -> None:
    assert release_of(["0" * 5000 + "1", "2", "3", "4", "5", "6"], ck.numeric()).certificate.ok


def test_a_code_too_long_to_be_masked_is_refused() -> None:
    with pytest.raises(ck.BadInput, match="5,000 characters"):
        release_of(["1" * 5000, "2", "3", "4", "5", "6"], ck.prefix())
