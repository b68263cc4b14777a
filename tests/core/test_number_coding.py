"""Top and bottom codes, cells of a grid, cut dates and kept prefixes: applied before a method sees the column."""

from __future__ import annotations

import io
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import closeknit as ck
from closeknit.core.domain import read_ranges
from closeknit.core.kind_forms import kind_form, kind_from

SEED = 7**40


def publish(kind, cells, models=(), role="quasi", **options):
    secret = [f"v{i % 3}" for i in range(len(cells))]
    table = {"x": cells, "ill": secret}
    roles = {"quasi": {"x": kind}, "sensitive": {"ill": ck.flat()}}
    if role == "sensitive":
        table["age"] = list(range(len(cells)))
        roles = {"quasi": {"age": ck.numeric()}, "sensitive": {"x": kind}, "drop": ["ill"]}
    return ck.anonymize(pa.table(table), ck.Schema(**roles), [ck.KAnonymity(1), *models], seed=SEED, **options)


def cells_of(release, name="x"):
    return release.frame[name].to_pylist()


def texts(kind, values):
    domain, codes = kind.bind(np.array(values, dtype=object))
    return [domain.texts[code] for code in codes.tolist()]


def test_golden_codes():
    assert texts(ck.numeric(top=90), ["89", "90", "91"]) == ["89", "90+", "90+"]
    assert texts(ck.numeric(bottom=18), ["3", "18", "19"]) == ["<=18", "<=18", "19"]
    assert texts(ck.date(level="year"), ["2024-03-17"]) == ["2024"]
    assert texts(ck.date(level="month", format="%d.%m.%Y"), ["17.03.2024"]) == ["2024-03"]
    assert texts(ck.prefix(keep=3), ["02139", "02142"]) == ["021**", "021**"]
    assert texts(ck.numeric(step=5, coarsen=True), ["21", "25"]) == ["[20, 25]", "[25, 30]"]


def test_coded_cells_are_published_and_recomputed():
    release = publish(ck.numeric(top=90), [89, 90, 91, 97])
    assert cells_of(release) == ["89", "90+", "90+", "90+"]
    assert "column 'x': numbers of 90 or more are one value" in release.certificate.notes
    audit = ck.audit(release.frame, certificate=release.certificate)
    assert audit.ok, audit
    for kind in (ck.numeric(0, 120, top=90, bottom=18), ck.numeric(step=7, coarsen=True, top=60, bottom=10), ck.prefix(keep=2)):
        values = [3, 18, 19, 40, 41, 88, 90, 117] if kind.name == "numeric" else ["0213", "0214", "9941", "9932"] * 2
        coded = publish(kind, values, [ck.KAnonymity(2)])
        assert ck.audit(coded.frame, certificate=coded.certificate).ok
        assert kind_from(kind_form(kind)) == kind


def test_ranges_that_include_a_code_are_open():
    domain, _ = ck.numeric(0, 120, top=90, bottom=18).bind(np.array([5, 30, 60, 95]))
    lo, hi = (np.array(ends, dtype=np.int32) for ends in ([0, 0, 1, 3, 0], [0, 1, 3, 3, 3]))
    labels = domain.labels(lo, hi)
    assert labels == ["<=18", "<=30", "30+", "90+", "*"]
    assert [ends.tolist() for ends in read_ranges(labels[:4])] == [[-np.inf, -np.inf, 30, 90], [18, 30, np.inf, np.inf]]
    kind = ck.numeric(0, 120, top=90, bottom=18)
    assert kind.losses(labels)[:, 0].tolist() == [18 / 120, 30 / 120, 90 / 120, 30 / 120, 1.0]
    assert ck.numeric(top=90).losses(["80+", "90+", "[70, 80]"])[:, 0].tolist() == [0.5, 0.0, 0.5]  # the hull ends at 90


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (ck.numeric(step=5, coarsen=True), list(range(40))),
        (ck.numeric(0, 40, step=7, coarsen=True, top=33, bottom=4), list(range(41))),
        (ck.numeric(step=0.1, coarsen=True), [round(0.01 * i, 2) for i in range(60)]),
        (ck.numeric(-3, 3, step=0.7, coarsen=True), [round(0.1 * i - 3, 1) for i in range(61)]),
    ],
)
def test_a_grid_is_one_map(kind, values):
    """The cell holds its values, codes are stable, and the written cell is read back to the same leaf."""
    domain, codes = kind.bind(np.array(values))
    for value, code in zip(values, codes.tolist(), strict=True):
        (low,), (high,) = read_ranges([domain.texts[code]])
        assert low <= value <= high and low < high
        if np.isfinite([low, high]).all():
            assert Fraction(str(high)) - Fraction(str(low)) <= Fraction(str(kind.step))
    again, same = kind.bind(np.array([domain.texts[code] for code in codes.tolist()], dtype=object))
    assert again.texts == domain.texts and same.tolist() == codes.tolist()


def test_nothing_inside_a_cell_reaches_the_release():
    """Changing values inside their cell, code, year or kept prefix changes neither classes nor files."""
    rng = np.random.default_rng(5)
    ages = rng.integers(0, 110, 60)
    near = np.where(ages >= 90, rng.integers(90, 110, 60), ages // 5 * 5 + rng.integers(0, 5, 60))
    days = [f"{1990 + i % 7}-{1 + i % 12:02}-17" for i in range(60)]
    moved = [f"{day[:4]}-11-0{1 + i % 9}" for i, day in enumerate(days)]
    zips = [f"{100 + i % 5}{i % 90 + 10}" for i in range(60)]
    others = [text[:3] + f"{(i * 7) % 90 + 10}" for i, text in enumerate(zips)]
    schema = ck.Schema(
        quasi={"age": ck.numeric(step=5, coarsen=True, top=90), "day": ck.date(level="year"), "zip": ck.prefix(keep=3)},
        sensitive={"ill": ck.flat()},
    )
    ill = [f"v{i}" for i in rng.integers(0, 4, 60).tolist()]
    one, two = (
        ck.anonymize(pa.table({"age": a, "day": d, "zip": z, "ill": ill}), schema, [ck.KAnonymity(4)], seed=SEED)
        for a, d, z in ((ages, days, zips), (near, moved, others))
    )
    assert one.certificate.to_json() == two.certificate.to_json() and one.frame.equals(two.frame)
    assert one.partition.tolist() == two.partition.tolist()


def test_coded_sensitive_attributes_are_compared_after_coding():
    release = publish(ck.numeric(top=90), [89, 90, 91, 97, 89, 90], [ck.TCloseness("x", 0.3)], role="sensitive")
    assert sorted(cells_of(release)) == ["89", "89", "90+", "90+", "90+", "90+"]
    assert ck.audit(release.frame, certificate=release.certificate).ok
    coarse = publish(ck.numeric(step=10, coarsen=True), [3, 7, 12, 14, 25, 29], [ck.TCloseness("x", 0.4)], role="sensitive")
    assert sorted(set(cells_of(coarse))) == ["[0, 10]", "[10, 20]", "[20, 30]"]
    assert ck.audit(coarse.frame, certificate=coarse.certificate).ok


def test_an_audit_finds_values_finer_than_their_code():
    release = publish(ck.numeric(top=90), [89, 90, 91, 97, 89, 90], [ck.TCloseness("x", 0.3)], role="sensitive")
    cells = release.frame.to_pydict()
    cells["x"][cells["x"].index("90+")] = "93"
    audit = ck.audit(pa.table(cells), certificate=release.certificate)
    assert any("'93' is more precise than '90+'" in finding for finding in audit.findings)


def test_suppressed_codes_leave_no_trace():
    """A suppressed code that is longer than all others does not lengthen the masks of the others."""
    zips = ["02139", "02142", "02199", "021991234567"]
    table = pa.table({"zip": zips, "ill": ["a", "b", "a", "b"]})
    schema = ck.Schema(quasi={"zip": ck.prefix(keep=3)}, sensitive={"ill": ck.flat()})
    release = ck.anonymize(table, schema, [ck.KAnonymity(3)], ck.Incognito(), suppress=0.3, seed=SEED)
    assert release.certificate.suppressed == 1 and cells_of(release, "zip") == ["021**"] * 3


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: ck.numeric(coarsen=True), "needs its step"),
        (lambda: ck.numeric(top=5, bottom=5), "bottom below top"),
        (lambda: ck.numeric(0, 10, top=12), "must ascend"),
        (lambda: ck.numeric(0, 10, bins=5, top=8), "bins and codes"),
        (lambda: ck.numeric(top="high"), "number"),
        (lambda: ck.prefix(5, keep=6), "too large"),
        (lambda: ck.prefix(keep=0), "too small"),
        (lambda: ck.date(["month"], level="year"), "give one of them"),
        (lambda: ck.date(level="week"), "unknown"),
        (lambda: publish(ck.prefix(keep=3), ["02*39"]), "masked"),
    ],
)
def test_mistakes(build, words):
    with pytest.raises(ck.BadInput, match=words):
        build()


def test_streams_code_numbers():
    schema = ck.Schema(quasi={"age": ck.numeric(0, 120, top=90, step=10, coarsen=True)}, sensitive={"ill": ck.flat()})
    stream = ck.Castle(schema, k=2, delta=2, seed=SEED)
    rows = [{"age": age, "ill": ill} for age, ill in [(93, "a"), (99.0, "b"), (31, "a"), ("38", "c")]]
    out = [row for given in rows for row in stream.push(given)] + stream.flush()
    assert sorted(row["age"] for row in out) == ["90+", "90+", "[30, 40]", "[30, 40]"]
    assert stream.certificate.loss.a == pytest.approx((2 * 30 / 120 + 2 * 10 / 120) / 4)
    assert "column 'age': numbers of 90 or more are one value" in stream.certificate.notes


def test_levels_of_coded_columns():
    table = pa.table({"age": [21, 23, 37, 91, 99, 38], "ill": ["a", "b", "a", "b", "a", "c"]})
    schema = ck.Schema(quasi={"age": ck.numeric(step=10, coarsen=True, top=90)}, sensitive={"ill": ck.flat()})
    release = ck.anonymize(table, schema, [ck.KAnonymity(2)], ck.Incognito(), seed=SEED)
    assert sorted(set(cells_of(release, "age"))) == ["90+", "[20, 30]", "[30, 40]"]


def test_recipes_have_the_options(tmp_path):
    (tmp_path / "t.csv").write_text("age,born,zip,ill\n91,2024-03-17,02139,a\n95,2024-05-01,02142,b\n", encoding="utf-8")
    (tmp_path / "r.yaml").write_text(
        "data: t.csv\nschema:\n  quasi:\n    age: {numeric: {top: 90}}\n    born: {date: {level: year}}\n"
        "    zip: {prefix: {keep: 3}}\n  sensitive: {ill: flat}\nmodels:\n  - k_anonymity: {k: 2}\n",
        encoding="utf-8",
    )
    release = ck.run(tmp_path / "r.yaml")
    assert [release.frame[name].to_pylist()[0] for name in ("age", "born", "zip")] == ["90+", "2024", "021**"]
    assert io.StringIO(release.certificate.to_json()).read().count('"top": 90') == 1
