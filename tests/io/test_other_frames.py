"""Frames of other libraries: read through narwhals, returned in their library, refused if they are distributed."""

from __future__ import annotations

import sys
from typing import Any

import duckdb
import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import closeknit as ck
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.io.frames import from_frame, to_frame
from closeknit.io.other_frames import wrap

PEOPLE: dict[str, list[Any]] = {"age": [30, 31, 40, None], "ill": ["flu", "gout", None, "gout"]}
SCHEMA = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})


def relation() -> Any:
    return duckdb.connect().sql("SELECT * FROM (VALUES (30, 'flu'), (31, 'gout'), (40, NULL), (NULL, 'gout')) t(age, ill)")


def test_a_duckdb_relation_comes_back_as_one() -> None:
    people = relation()
    assert {name: from_frame(people)[name].cells() for name in PEOPLE} == PEOPLE
    release = ck.anonymize(people, SCHEMA, [ck.KAnonymity(2)], seed=2**80)
    assert isinstance(release.frame, duckdb.DuckDBPyRelation)
    arrow = ck.anonymize(pa.table(PEOPLE), SCHEMA, [ck.KAnonymity(2)], seed=2**80)
    assert release.frame.to_arrow_table().to_pydict() == arrow.frame.to_pydict()
    assert ck.audit(release.frame, certificate=release.certificate).ok
    kept = to_frame(Columns.of({"age": [30, 31], "ill": ["flu", "gout"]}), people)
    assert kept.types == people.types  # untouched columns keep their types


@pytest.mark.parametrize("native", [pd.DataFrame(PEOPLE), pl.DataFrame(PEOPLE), pl.LazyFrame(PEOPLE), pa.table(PEOPLE)])
def test_a_wrapped_frame_comes_back_wrapped(native: Any) -> None:
    assert from_frame(nw.from_native(native))["ill"].cells() == PEOPLE["ill"]
    release = ck.anonymize(nw.from_native(native), SCHEMA, [ck.KAnonymity(2)], seed=2**80)
    same = ck.anonymize(native, SCHEMA, [ck.KAnonymity(2)], seed=2**80)
    assert isinstance(release.frame, nw.DataFrame) and type(release.frame.to_native()) is type(same.frame)
    assert release.certificate == same.certificate


def test_columns_are_chosen_and_checked() -> None:
    assert list(from_frame(relation(), ["ill"])) == ["ill"]
    with pytest.raises(BadInput, match="column 'illness'"):
        from_frame(relation(), ["illness"])
    with pytest.raises(BadInput, match=r"cells of type .*list"):
        from_frame(duckdb.sql("SELECT [1, 2] AS codes"))


def test_a_relation_that_fails_is_bad_input() -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        from_frame(duckdb.sql("SELECT error('no such row') AS age"))


@pytest.mark.parametrize(
    ("module", "name"),
    [("dask.dataframe.dask_expr._collection", "Dask"), ("dask_expr._collection", "Dask"), ("modin.pandas", "Modin")],
)
def test_distributed_frames_are_refused_with_spark(module: str, name: str) -> None:
    frame = type("DataFrame", (), {"__module__": module})()
    with pytest.raises(BadInput, match=rf"a {name} frame is spread .* on Spark only; .*engine='spark'"):
        ck.anonymize(frame, SCHEMA, [ck.KAnonymity(2)])


def test_without_narwhals_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(BadInput, match=r"closeknit\[frames\]"):
        wrap(relation())
