"""Generalized cells as numbers: what is written, what can be read back, and what must not be revealed."""

from __future__ import annotations

import json

import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest

import closeknit as ck
from closeknit.core.audit import MET, PARTLY
from closeknit.core.table import Partition
from closeknit.forms.drawn_values import draw_words
from closeknit.forms.generalized import CELLS, Generalized

SEED = 5**50
AGES = [21, 24, 29, 30, 33, 38, 61, 62, 70]
CLASSES = [0, 0, 0, 1, 1, 1, 2, 2, 2]
JOBS = ck.Hierarchy({"office": ["clerk", "lawyer"], "craft": ["welder", "mason"]})


def people(rows=60):
    rng = np.random.default_rng(4)
    return pa.table(
        {
            "age": pa.array([None if i == 3 else int(age) for i, age in enumerate(rng.integers(18, 95, rows))]),
            "height": rng.integers(1500, 2000, rows) / 1000,
            "job": rng.choice(["clerk", "lawyer", "welder", "mason"], rows).tolist(),
            "day": [f"2024-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(rows)],
            "ill": rng.choice(["flu", "gout", "acne"], rows).tolist(),
        }
    )


SCHEMA = ck.Schema(
    quasi={"age": ck.numeric(top=90), "height": ck.numeric(step=0.05), "job": JOBS, "day": ck.date()},
    sensitive={"ill": ck.flat()},
)


def release_of(cells, table=None, schema=SCHEMA, **params):
    form = ck.generalized(cells=cells, **params)
    return ck.anonymize(people() if table is None else table, schema, [ck.KAnonymity(4)], ck.Mondrian(), form=form, seed=SEED)


def write(cells, ages=AGES, kind=None, seed=0, **params):
    schema = ck.Schema(quasi={"age": kind or ck.numeric()}, sensitive={"ill": ck.flat()})
    table = schema.encode(ck.core.columns.Columns.of({"age": list(ages), "ill": ["x"] * len(ages)}))
    return Generalized(cells=cells, **params).write(table, Partition.of(np.array(CLASSES)[table.rows]), seed).columns


def test_what_is_written_of_three_classes():
    assert write("bounds")["age_lo"].cells() == [21] * 3 + [30] * 3 + [61] * 3
    assert write("bounds")["age_hi"].cells() == [29] * 3 + [38] * 3 + [70] * 3
    assert write("midpoint")["age"].cells() == [25.0] * 3 + [34.0] * 3 + [65.5] * 3
    assert write("mean")["age"].cells() == [25] * 3 + [34] * 3 + [64] * 3  # 74/3, 101/3, 193/3
    assert write("median")["age"].cells() == [24] * 3 + [33] * 3 + [62] * 3
    assert write("mean", kind=ck.numeric(step=5))["age"].cells() == [25] * 3 + [35] * 3 + [65] * 3
    assert write("midpoint", kind=ck.numeric(0, 100, top=60))["age"].cells()[-1] == 80.0  # 60 to 100
    assert write("midpoint", kind=ck.numeric(top=60))["age"].cells()[-1] == 60.0
    drawn = write("sample", kind=ck.numeric(step=5, snap=True))
    assert all(
        lo <= age <= hi and age % 5 == 0 for age, lo, hi in zip(*(drawn[n].cells() for n in drawn if n != "ill"), strict=True)
    )


def test_classes_with_one_centroid_read_as_one():
    ages = [20, 30, 40, 25, 30, 35, 61, 62, 70]
    columns = write("mean", ages)
    assert columns["age"].cells() == [30] * 6 + [64] * 3
    reading = Generalized(cells="mean").read(columns, ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()}))
    assert sorted(reading.classes.sizes.tolist()) == [3, 6]


@pytest.mark.parametrize("cells", CELLS)
def test_every_way_is_certified_and_audited(tmp_path, cells):
    release = release_of(cells)
    assert release.certificate.ok
    assert ck.audit(release.frame, certificate=release.certificate).status == MET
    for format in ("csv", "parquet"):
        folder = tmp_path / format
        release.save(folder, format=format, report=(cells, format) in (("bounds", "csv"), ("mean", "csv")))
        audit = ck.audit(folder)
        assert audit.status == MET, audit
        assert audit.loss.a == pytest.approx(release.loss)
        recipe = (tmp_path / f"{format}.private" / "recipe.yaml").read_text(encoding="utf-8")
        assert cells == CELLS[0] or f"cells: {cells}" in recipe
    if cells not in ("stars", CELLS[0]):
        assert any(
            "'age'" in note and "true values" not in note and "or more" not in note for note in release.certificate.notes
        )
        assert release.loss == pytest.approx(release_of(CELLS[0]).loss, abs=0.02)  # a missing number reads as `*` from bounds


def test_drawn_values_without_labels_are_attested(tmp_path):
    release = release_of("sample", bounds=False)
    assert release.certificate.ok and {one.status for one in release.certificate.guarantees} == {"attested"}
    assert list(release.frame.column_names) == SCHEMA.published
    release.save(tmp_path / "out", report=False)
    audit = ck.audit(tmp_path / "out")
    assert audit.status == PARTLY and not audit.ok
    assert "the values were drawn" in str(audit)


def test_draws_do_not_depend_on_raw_values():
    """With the same classes, labels and seed, every other raw value inside the labels gives the same bytes."""
    rng, first = np.random.default_rng(8), write("sample", seed=SEED)
    for _ in range(20):
        ages = [21, int(rng.integers(21, 30)), 29, 30, int(rng.integers(30, 39)), 38, 61, int(rng.integers(61, 71)), 70]
        again = write("sample", ages, seed=SEED)
        assert all(again[name].cells() == first[name].cells() for name in first)
    assert write("sample", seed=SEED + 1)["age"].cells() != first["age"].cells()


def test_draws_are_uniform_below_the_label():
    words = draw_words("age", SEED, 20_000)
    counts = np.bincount((words % np.uint64(10)).astype(int), minlength=10)
    assert abs(counts - 2000).max() < 250  # six standard deviations
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})
    ages = [20, *[25] * 998, 39]
    table = schema.encode(ck.core.columns.Columns.of({"age": ages, "ill": ["x"] * 1000}))
    drawn = Generalized(cells="sample").write(table, Partition.of(np.zeros(1000)), SEED).columns["age"].cells()
    own = np.bincount(drawn, minlength=40)[20:]
    assert len(own) == 20 and own.min() > 10 and own[5] < 110  # the raw value of nearly all rows is drawn no more often


def test_midpoint_is_a_function_of_the_range():
    ranges, middles = write(CELLS[0]), write("midpoint")
    for label, middle in zip(ranges["age"].cells(), middles["age"].cells(), strict=True):
        low, high = json.loads(label)
        assert middle == (low + high) / 2


def test_clashing_names_are_refused():
    table = pa.table({"age": [1, 2], "age_lo": ["a", "a"], "job_label": ["a", "a"], "job": ["clerk", "mason"]})
    schema = ck.Schema(quasi={"age": ck.numeric(), "job": JOBS}, plain=["age_lo"], drop=["job_label"])
    for cells, name in (("bounds", "age_lo"), ("sample", "age_lo")):
        with pytest.raises(ck.BadInput, match=f"'{name}'.*is a column of the table"):
            ck.anonymize(table, schema, [ck.KAnonymity(2)], form=ck.generalized(cells=cells))
    assert ck.anonymize(table, schema, [ck.KAnonymity(2)], form=ck.generalized(cells="mean")).certificate.ok


def test_other_mistakes():
    with pytest.raises(ck.BadInput, match="finer than levels"):
        ck.generalized(cells="mean", levels={"age": 1})
    with pytest.raises(ck.BadInput, match="means nothing"):
        ck.generalized(bounds=False)
    with pytest.raises(ck.BadInput, match="Spark yet"):
        from closeknit.spark.pipeline import refuse_unscaled

        refuse_unscaled(ck.Mondrian(), SCHEMA, ck.generalized(cells="bounds"), False)
    changed = release_of("bounds")
    bad = changed.frame.rename_columns([name.replace("age_lo", "age") for name in changed.frame.column_names])
    with pytest.raises(ck.BadInput, match="age_lo"):
        ck.audit(bad, certificate=changed.certificate)


def test_tampered_numbers_are_found():
    release = release_of("sample")
    frame = release.frame.to_pandas()
    frame.loc[0, "age"] = 17
    audit = ck.audit(frame, certificate=release.certificate)
    assert not audit.ok and any("is not below its label" in finding for finding in audit.findings)


def test_full_domain_recodings_write_numbers_too():
    schema = ck.Schema(quasi={"age": ck.Hierarchy.intervals(lo=0, hi=100, width=10), "size": ck.numeric(step=5)})
    table = pa.table({"age": [1, 2, 31, 32], "size": [1, 2, 11, 12]})
    release = ck.anonymize(table, schema, [ck.KAnonymity(2)], ck.Incognito(), form=ck.generalized(cells="bounds"), seed=SEED)
    assert release.frame.column_names == ["age", "size_lo", "size_hi"]
    assert ck.audit(release.frame, certificate=release.certificate).ok


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_have_numbers(library):
    table = people().drop_columns(["day"])
    frame = table.to_pandas() if library == "pandas" else polars.from_arrow(table)
    schema = SCHEMA.model_copy(update={"quasi": {name: kind for name, kind in SCHEMA.quasi.items() if name != "day"}})
    out = release_of("bounds", frame, schema).frame
    assert "int" in str(out["age_lo"].dtype).lower() and "float" in str(out["height_hi"].dtype).lower()
    if library == "pandas":
        spans = pandas.arrays.IntervalArray.from_arrays(out["height_lo"], out["height_hi"], closed="both")
        assert (spans.right > spans.left).all()
