"""A table replayed as a stream is a release like any other; and the rolling certificate next to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import closeknit as ck
from closeknit.api.recipe import Recipe
from closeknit.core.columns import Columns
from closeknit.core.method import Method
from closeknit.core.table import Outcome, Partition
from closeknit.metrics import queries, workload_error
from conftest import examples

JOBS = {"office": ["clerk", "lawyer"], "field": ["farmer", "herder", "sailor"]}


def schema(**roles: Any) -> ck.Schema:
    quasi = {"age": ck.numeric(0, 100), "job": ck.Hierarchy.from_nested(JOBS), "sex": ck.flat()}
    return ck.Schema(quasi=quasi, sensitive={"ill": ck.flat(), "wage": ck.numeric()}, importance={"age": 2}, **roles)


def people(rows: int = 400, seed: int = 1) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    return {
        "age": rng.integers(18, 90, rows).tolist(),
        "job": rng.choice(["clerk", "lawyer", "farmer", "herder", "sailor"], rows).tolist(),
        "sex": rng.choice(["f", "m"], rows).tolist(),
        "ill": rng.choice(["flu", "gout", "SARS", "ulcer"], rows, p=[0.4, 0.3, 0.2, 0.1]).tolist(),
        "wage": rng.integers(0, 10, rows).tolist(),
    }


def windows(**more: Any) -> ck.SabreWindow:
    return ck.SabreWindow(schema(), [ck.TCloseness("wage", 0.3)], omega=100, advance=25, k=3, seed=5, **more)


def test_frame_in_frame_out_and_partition_by_input_row() -> None:
    frame = pl.DataFrame(people())
    release = ck.replay(ck.Castle(schema(), k=5, delta=50, eta=10, seed=5), frame)
    assert isinstance(release.frame, pl.DataFrame) and release.frame.columns == [*frame.columns[:3], "ill", "wage"]
    for number in range(release.certificate.classes.count):
        rows = np.flatnonzero(release.partition == number)
        ages = frame["age"].gather(rows)
        label = f"[{ages.min()}, {ages.max()}]" if ages.n_unique() > 1 else str(ages[0])
        mine = release.frame.filter(pl.col("age") == label)
        assert sorted(frame["wage"].gather(rows).to_list()) <= sorted(mine["wage"].to_list())
        assert len(rows) >= 5


def test_rows_stand_as_those_of_a_static_release() -> None:
    table = Columns.of(people())
    release = ck.replay(ck.KnnStream(schema(), k=4, delta=60, seed=5), table)
    coded = schema().encode(table)
    written = ck.generalized().write(coded, Partition.of(release.partition[coded.rows]))
    assert [column.cells() for column in written.columns.values()] == [column.cells() for column in release.columns.values()]


def test_saved_folder_is_audited(tmp_path: Path) -> None:
    pl.DataFrame(people()).write_csv(tmp_path / "in.csv")
    stream = ck.Castle(schema(), k=5, delta=50, models=[ck.LDiversity("ill", 2)], seed=5)
    release = ck.replay(stream, tmp_path / "in.csv")
    release.save(tmp_path / "out")
    found = ck.audit(tmp_path / "out" / "release.csv", certificate=tmp_path / "out" / "certificate.json")
    assert found.ok, str(found)
    recipe = (tmp_path / "out.private" / "recipe.yaml").read_text(encoding="utf-8")
    again = Recipe.of(yaml.safe_load(recipe))
    assert again.stream is not None and again.seed == 5 and again.schema == schema()
    assert (again.stream.name, again.stream.params) == ("castle", {"k": 5, "delta": 50})
    assert [model.name for model in again.models] == ["l_diversity"]


def test_windows_are_attested_and_not_checkable() -> None:
    stream = windows(long_run=0.5)
    release = ck.replay(stream, Columns.of(people()))
    assert [guarantee.status for guarantee in release.certificate.guarantees] == ["attested", "recomputable", "attested"]
    assert release.certificate.ok and release.columns["window"].values.tolist() == [str(i) for i in range(13)]
    found = ck.audit(release.columns, certificate=release.certificate)
    assert not found.ok and not found.findings
    assert [guarantee.status for guarantee in found.guarantees] == ["not checkable", "recomputed", "not checkable"]
    assert "window" in str(found.guarantees[0].why) and "long run" in str(found.guarantees[2].why)


def test_a_class_that_is_far_from_its_window_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream's own judging is switched off: what is measured again after it has ended must notice."""
    monkeypatch.setattr(
        "closeknit.streams.windowed.find_broken_classes", lambda table, partition, models: np.zeros(partition.count, bool)
    )
    by_wage = {**people(), "age": (np.array(people()["wage"]) * 10).tolist()}
    monkeypatch.setattr("closeknit.streams.windowed.repair_partition", lambda table, partition, models: partition)
    stream = ck.Windowed(_ByAge(), schema(), [ck.TCloseness("wage", 0.1)], omega=100, advance=25, seed=5)
    with pytest.raises(ck.Unsatisfiable, match="window"):
        ck.replay(stream, Columns.of(by_wage))


class _ByAge(Method):
    """One class for each age, whatever is asked."""

    name, scale = "mondrian", "plan"

    def run(self, table, models, seed, progress):  # type: ignore[no-untyped-def]
        return Outcome(Partition.of(table.quasi[:, 0]))


def test_suppressed_rows_are_minus_one() -> None:
    cells = people(60)
    cells["name"] = [f"P{i % 3}" for i in range(50)] + [f"Q{i}" for i in range(10)]
    stream = ck.Castle(schema(person="name"), k=4, delta=10, seed=5)
    release = ck.replay(stream, Columns.of(cells))
    suppressed = int((release.partition < 0).sum())
    assert 0 < suppressed == release.certificate.suppressed == stream.counters.suppressed
    assert release.columns.rows == 60 - suppressed
    (k,) = release.certificate.guarantees
    assert k.status == "attested" and k.measured is None and k.met


def test_nothing_at_all_is_unsatisfiable() -> None:
    with pytest.raises(ck.Unsatisfiable, match="suppressed"):
        ck.replay(ck.KnnStream(schema(), k=50, delta=60), Columns.of(people(20)))


def test_shuffled_rows_give_another_release_and_the_partition_of_the_input() -> None:
    table = Columns.of({**people(), "age": sorted(people()["age"])})

    def release(order: str) -> ck.Release:
        return ck.replay(ck.Castle(schema(), k=5, delta=50, eta=10, seed=5), table, order)

    shuffled = release("shuffled")
    assert shuffled.certificate.content_sha256 != release("as it stands").certificate.content_sha256
    ages = np.array(table["age"].cells())
    for number in range(3):
        mine = ages[shuffled.partition == number]
        assert f"[{mine.min()}, {mine.max()}]" in shuffled.columns["age"].values.tolist() or mine.min() == mine.max()
    with pytest.raises(ck.BadInput, match="order"):
        release("backwards")


def test_what_is_no_fresh_stream_is_refused() -> None:
    stream = ck.Castle(schema(), k=2, delta=5)
    stream.push({name: cells[0] for name, cells in people(1).items()})
    for wrong in (stream, ck.Castle, "castle"):
        with pytest.raises(ck.BadInput, match="stream"):
            ck.replay(wrong, Columns.of(people(20)))  # type: ignore[arg-type]


def test_metrics_work_on_a_replayed_release() -> None:
    table = Columns.of(people())
    workload = queries(table, schema(), "wage", count=100)
    errors = [
        workload_error(ck.replay(stream, table), table, workload).median
        for stream in (ck.KnnStream(schema(), k=1, delta=60), ck.KnnStream(schema(), k=20, delta=60), windows())
    ]
    assert errors[0] == 0 < errors[1] and errors[2] is not None


# The rolling certificate ----------------------------------------------------------------------------------------------


def rolling_equals_release(stream: Any, table: Columns) -> None:
    release = ck.replay(stream, table)
    rolling = stream.certificate
    assert (rolling.rows, rolling.suppressed) == (release.certificate.rows, release.certificate.suppressed)
    assert rolling.loss.a == pytest.approx(release.certificate.loss.a) and rolling.loss.b == pytest.approx(
        release.certificate.loss.b
    )
    for name, pair in release.certificate.loss.columns.items():
        assert rolling.loss.columns[name] == pytest.approx(pair), name
    for now, then in zip(rolling.guarantees, release.certificate.guarantees, strict=True):
        assert (now.text, now.met, now.status, now.why) == (then.text, then.met, then.status, then.why)
        assert now.measured is None or (then.measured is not None and now.measured <= then.measured)
    assert ck.Certificate.from_json(rolling.to_json()) == rolling


@given(st.integers(0, 2**32), st.integers(2, 6), st.sampled_from(["castle", "knn", "windows"]))
@settings(max_examples=examples(12))
def test_counters_agree_with_the_written_cells(seed: int, k: int, which: str) -> None:
    cells = people(150, seed)
    cells["job"] = [job if i % 17 else "astronaut" for i, job in enumerate(cells["job"])]
    cells["age"] = [age if i % 13 else None for i, age in enumerate(cells["age"])]
    made = {
        "castle": lambda: ck.Castle(schema(), k=k, delta=40, eta=6, models=[ck.LDiversity("ill", 2)], seed=seed),
        "knn": lambda: ck.KnnStream(schema(), k=k, delta=40, seed=seed),
        "windows": lambda: ck.SabreWindow(schema(), [ck.TCloseness("wage", 0.4)], omega=40, advance=10, k=k, seed=seed),
    }
    rolling_equals_release(made[which](), Columns.of(cells))


def test_it_speaks_of_rows_that_left_alone() -> None:
    stream = ck.Castle(schema(), k=2, delta=10, seed=5)
    before = stream.certificate
    assert before.ok and before.rows == 0 and all(guarantee.measured is None for guarantee in before.guarantees)
    rows = people(9)
    rows["age"] = [999] * 9  # waits, and is not reported
    stream.push_many(pl.DataFrame(rows))
    assert stream.counters.unknown == 9 and stream.certificate == before
    stream.flush()
    assert any("9 cells were outside" in note for note in stream.certificate.notes)


def test_reuse_and_order_are_marked() -> None:
    table = Columns.of(people(300))
    for params, word in (({"reuse": True}, "published alone"), ({"order": "input"}, "oldest row")):
        stream = ck.Castle(schema(), k=3, delta=20, eta=5, seed=5, **params)
        stream.push_many(table)
        assert any(word in note for note in stream.certificate.notes)
        assert stream.certificate.ok
    plain = ck.Castle(schema(), k=3, delta=20, eta=5, seed=5)
    plain.push_many(table)
    assert not any("alone" in note or "oldest" in note for note in plain.certificate.notes)


def test_reuse_publishes_rows_alone_and_says_how_many() -> None:
    stream = ck.Castle(schema(), k=10, delta=100, eta=30, reuse=True, seed=5)
    stream.push_many(Columns.of(people(3000)))
    assert stream.counters.reused > 0 and stream.certificate.classes.smallest == 1
    assert any(f"reuse=True: {stream.counters.reused:,} rows" in note for note in stream.certificate.notes)
    assert stream.certificate.guarantees[0].measured >= 10, "a generalization has k persons before a row joins it"  # type: ignore[operator]


def test_nothing_private_is_disclosed() -> None:
    cells = people(100)
    cells["name"] = [f"Person-{i % 40}" for i in range(100)]
    stream = ck.Castle(schema(person="name"), k=3, delta=20, seed=918273645)
    stream.push_many(Columns.of(cells))
    reported = stream.certificate.to_json()
    assert "Person-" not in reported and "918273645" not in reported and stream.secret.hex() not in reported
    assert json.loads(reported)["guarantees"][0]["measured"] is None
    assert "name" not in json.loads(reported)["columns"].get("person", "")


def test_a_class_that_breaks_a_guarantee_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("closeknit.streams.delayed_stream.Judge.__call__", lambda self, persons, secrets: True)
    stream = ck.KnnStream(schema(), k=2, delta=20, models=[ck.LDiversity("ill", 2)], seed=5)
    stream.push_many(Columns.of({**people(100), "ill": ["flu"] * 100}))
    k, diverse = stream.certificate.guarantees
    assert k.met and not diverse.met and not stream.certificate.ok and diverse.measured == 1
