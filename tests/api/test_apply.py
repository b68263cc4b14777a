"""Later rows with the labels of an earlier release: a release of its own, which joins nothing that was published before."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import closeknit as ck
from closeknit.cli.commands import app
from closeknit.release.recoding import Recoding

SEED = 13**40
SCHEMA = ck.Schema(
    identifier=["name"],
    quasi={
        "age": ck.numeric(0, 100),
        "zip": ck.prefix(5),
        "sex": ck.flat(),
        "day": ck.date(),
        "job": ck.Hierarchy({"office": ["clerk", "lawyer"], "craft": ["mason", "welder"]}),
    },
    sensitive={"ill": ck.flat()},
)


def people(rows, seed):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "name": [f"p{seed}-{i}" for i in range(rows)],
            "age": rng.integers(20, 60, rows),
            "zip": [f"47{code}" for code in rng.integers(600, 620, rows)],
            "sex": rng.choice(["f", "m"], rows).tolist(),
            "day": [f"2024-{month:02}-11" for month in rng.integers(1, 13, rows).tolist()],
            "job": rng.choice(["clerk", "lawyer", "mason", "welder"], rows).tolist(),
            "ill": rng.choice(["flu", "gout", "acne"], rows).tolist(),
        }
    )


def labels_of(frame):
    return set(zip(*(frame[name].to_pylist() for name in SCHEMA.quasi), strict=True))


@pytest.fixture(scope="module")
def first():
    return ck.anonymize(people(200, 1), SCHEMA, [ck.KAnonymity(20)], ck.Mondrian(), seed=SEED)


def test_later_rows_get_the_same_labels_and_meet_every_guarantee_alone(first):
    later = people(900, 2)
    release = ck.apply(first.recoding, later, suppress=0.7, seed=SEED)
    assert labels_of(release.frame) <= labels_of(first.frame)
    assert release.certificate.classes.smallest >= 20 and release.certificate.ok
    assert ck.audit(release.frame, certificate=release.certificate).ok
    assert (release.partition < 0).sum() == release.certificate.suppressed
    assert any("people who are in no earlier release" in note for note in release.certificate.notes)


def test_labels_cover_their_rows(first):
    """Brute force: the raw cells of every published row lie in its labels."""
    later = people(900, 2)
    release = ck.apply(first.recoding, later, suppress=0.7, seed=SEED)
    from closeknit.checks.naive_cells import covers

    shown = release.columns
    published = [tuple(shown[name].cells()[i] for name in SCHEMA.quasi) for i in range(shown.rows)]
    raw = [tuple(str(later[name][i].as_py()) for name in SCHEMA.quasi) for i in np.flatnonzero(release.partition >= 0).tolist()]
    kinds = list(SCHEMA.quasi.values())
    open_rows = list(raw)
    for labels in set(published):
        fit = [row for row in open_rows if all(covers(k, c, v) for k, c, v in zip(kinds, labels, row, strict=True))]
        assert len(fit) >= published.count(labels)


def test_too_few_later_rows_do_not_join_published_classes(first):
    with pytest.raises(ck.Unsatisfiable, match="two releases could be subtracted"):
        ck.apply(first.recoding, people(30, 3))
    with pytest.raises(ck.Unsatisfiable, match="series of releases are not supported yet"):
        ck.apply(first.recoding, people(900, 2), suppress=0.01)
    with pytest.raises(ck.Unsatisfiable, match="30 of 30 rows"):
        ck.apply(first.recoding, people(30, 3), suppress=1)


def test_the_guarantees_are_judged_on_the_later_rows():
    """A class that is diverse in the first release and not in the later rows is not published."""
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})
    old = pa.table({"age": [20, 21, 40, 41], "ill": ["a", "b", "a", "b"]})
    first = ck.anonymize(old, schema, [ck.KAnonymity(2), ck.LDiversity("ill", 2)], ck.Mondrian(), seed=SEED)
    new = pa.table({"age": [20, 21, 40, 41], "ill": ["a", "b", "b", "b"]})
    with pytest.raises(ck.Unsatisfiable, match="2 of 4 rows"):
        ck.apply(first.recoding, new)
    kept = ck.apply(first.recoding, new, suppress=0.5)
    assert kept.frame["age"].to_pylist() == ["[20, 21]"] * 2


def test_unique_plain_values_and_separated_persons_are_refused():
    roles = {"quasi": {"age": ck.numeric()}, "sensitive": {"ill": ck.flat()}}
    old = {"age": [20, 21, 40, 41], "ill": ["a", "b", "a", "b"], "ward": ["x", "x", "x", "x"], "pid": [1, 2, 3, 4]}
    table = pa.table(old)
    plain = ck.anonymize(table, ck.Schema(**roles, plain=["ward"], drop=["pid"]), [ck.KAnonymity(2)], ck.Mondrian(), seed=SEED)
    with pytest.raises(ck.BadInput, match="ward"):
        ck.apply(plain.recoding, pa.table({**old, "ward": ["x", "x", "y", "z"]}))
    for rows in ("together", "count-once"):
        schema = ck.Schema(**roles, person="pid", person_rows=rows, drop=["ward"])
        first = ck.anonymize(table, schema, [ck.KAnonymity(2)], ck.Mondrian(), seed=SEED)
        if rows == "together":
            with pytest.raises(ck.BadInput, match="one class"):
                ck.apply(first.recoding, table)
        else:
            assert ck.apply(first.recoding, table).certificate.classes.count == 2
            with pytest.raises(ck.Unsatisfiable):  # two rows of one person are not two persons
                ck.apply(first.recoding, pa.table({**old, "pid": [1, 1, 3, 4]}))


def test_recodings_are_saved_and_read_back(first, tmp_path):
    first.save(tmp_path / "out", report=False)
    file = tmp_path / "out.private" / "recoding.json"
    assert Recoding.read(file) == first.recoding
    first.recoding.save(tmp_path / "own.json")
    assert stat.S_IMODE((tmp_path / "own.json").stat().st_mode) == 0o600
    assert "recoding" not in "".join(path.name for path in (tmp_path / "out").iterdir())
    (tmp_path / "bad.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ck.BadInput, match="not a recoding"):
        ck.apply(tmp_path / "bad.json", people(30, 3))
    with pytest.raises(ck.BadInput, match="cannot be read"):
        ck.apply(tmp_path / "none.json", people(30, 3))


def test_full_domain_recodings_are_lookup_tables(tmp_path):
    schema = ck.Schema(quasi={"age": ck.numeric(step=10), "sex": ck.flat()}, sensitive={"ill": ck.flat()})
    table = pa.table({"age": [21, 25, 34, 38], "sex": ["f", "f", "m", "it's"], "ill": ["a", "b", "a", "b"]})
    release = ck.anonymize(table, schema, [ck.KAnonymity(2)], ck.Incognito(), seed=SEED)
    recoding = release.recoding
    recoding.to_csv(tmp_path / "lookup.csv")
    lines = (tmp_path / "lookup.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "column,value,label" and 'age,21,"[20, 30]"' in lines
    raw = sqlite3.connect(":memory:")
    raw.execute("CREATE TABLE t (age INTEGER, sex TEXT)")
    raw.executemany("INSERT INTO t VALUES (?, ?)", zip(table["age"].to_pylist(), table["sex"].to_pylist(), strict=True))
    found = sorted(raw.execute(f"SELECT {recoding.to_sql()} FROM t").fetchall())
    raw.close()
    assert found == sorted(zip(release.frame["age"].to_pylist(), release.frame["sex"].to_pylist(), strict=True))
    later = ck.apply(recoding, pa.table({"age": [52, 53], "sex": ["f", "f"], "ill": ["a", "b"]}))
    assert later.frame["age"].to_pylist() == ["[50, 60]"] * 2  # unseen values have a level, too


def test_what_has_no_labels_has_no_recoding(first):
    with pytest.raises(ck.BadInput, match="no lookup table"):
        first.recoding.to_sql()
    for form in (ck.generalized(cells="mean"), "bucketized"):
        schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})
        table = pa.table({"age": [20, 21, 40, 41], "ill": ["a", "b", "a", "b"]})
        release = ck.anonymize(table, schema, [ck.LDiversity("ill", 2, "frequency")], ck.Mondrian(), form=form, seed=SEED)
        with pytest.raises(ck.BadInput, match="not labels of classes"):
            _ = release.recoding
    drawn = ck.anonymize(
        people(200, 1), SCHEMA, [ck.KAnonymity(20)], ck.Mondrian(), form=ck.generalized(cells="bounds"), seed=SEED
    )
    assert set(drawn.recoding.classes) == set(first.recoding.classes)
    assert ck.apply(drawn.recoding, people(900, 2), suppress=0.7).frame.column_names[:2] == ["age_lo", "age_hi"]


def test_the_command(first, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first.save("out", report=False)
    from pyarrow import csv

    csv.write_csv(people(900, 2), "later.csv")
    csv.write_csv(people(20, 3), "few.csv")
    done = CliRunner().invoke(app, ["apply", "out.private/recoding.json", "later.csv", "-o", "later", "--suppress", "0.7"])
    assert done.exit_code == 0, done.output
    assert ck.audit("later").ok
    refused = CliRunner().invoke(app, ["apply", "out.private/recoding.json", "few.csv", "-o", "few"])
    assert refused.exit_code == 1 and not (tmp_path / "few").exists()


def test_a_file_that_is_no_recoding_is_named(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("age\n30\n", encoding="utf-8")
    with pytest.raises(ck.BadInput, match=r"is not valid JSON.*name the recoding\.json of a private folder") as caught:
        Recoding.read(file)
    assert caught.value.file == file
