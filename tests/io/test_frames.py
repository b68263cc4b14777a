"""Frames and Parquet: typed input, the same types in the output, new frames without removed values."""

from __future__ import annotations

import datetime
import decimal
import io
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadInput
from closeknit.io.files import read, write_parquet
from closeknit.io.frames import from_frame, to_frame
from closeknit.io.parquet import parquet_types, read_parquet

DAY = datetime.date(2020, 2, 29)


def arrow_table() -> pa.Table:
    return pa.table(
        {
            "i8": pa.array([1, None, 3], pa.int8()),
            "i64": pa.array([1, 2, 2**60], pa.int64()),
            "u64": pa.array([1, 2, 2**64 - 1], pa.uint64()),
            "f32": pa.array([0.1, None, 2.0], pa.float32()),
            "f64": pa.array([0.1, float("nan"), 2.0], pa.float64()),
            "dec": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("2.25")], pa.decimal128(6, 2)),
            "bool": pa.array([True, None, False]),
            "text": pa.array(["a", None, ""], pa.string()),
            "large": pa.array(["a", None, "ü"], pa.large_string()),
            "dict": pa.array(["b", None, "a"]).dictionary_encode(),
            "date": pa.array([DAY, None, DAY], pa.date32()),
            "time": pa.array([DAY, None, DAY], pa.date32()).cast(pa.timestamp("us")),
        }
    )


CELLS = {
    "i8": [1, None, 3],
    "i64": [1, 2, 2**60],
    "u64": [1, 2, 2**64 - 1],
    "f32": [0.1, None, 2.0],
    "f64": [0.1, None, 2.0],
    "dec": [1.5, None, 2.25],
    "bool": [True, None, False],
    "text": ["a", None, None],
    "large": ["a", None, "ü"],
    "dict": ["b", None, "a"],
    "date": [DAY, None, DAY],
    "time": [DAY, None, DAY],
}


def cells(columns: Columns) -> dict[str, list[object]]:
    return {name: column.cells() for name, column in columns.items()}


def test_arrow_and_back() -> None:
    table = arrow_table()
    columns = from_frame(table)
    assert cells(columns) == CELLS
    assert columns["date"].values.dtype == np.dtype("datetime64[D]")
    back = to_frame(columns, table.replace_schema_metadata({"source": "ward 7"}))
    assert back.schema.types == table.schema.types
    assert back.schema.metadata is None
    assert cells(from_frame(back)) == CELLS


def test_parquet_and_back(tmp_path: Path) -> None:
    pq.write_table(arrow_table(), tmp_path / "in.parquet")
    columns = read_parquet(tmp_path / "in.parquet")
    assert cells(columns) == CELLS
    write_parquet(columns, tmp_path / "out.parquet", parquet_types(tmp_path / "in.parquet"))
    assert parquet_types(tmp_path / "out.parquet") == parquet_types(tmp_path / "in.parquet")
    assert cells(read(tmp_path / "out.parquet")) == CELLS
    assert list(read_parquet(tmp_path / "in.parquet", columns=["text", "i8"])) == ["text", "i8"]


def test_lists_and_back() -> None:
    lists = {"age": [30, 41, None], "sex": ["f", None, "m"]}
    found = from_frame(lists, ["sex", "age"])
    assert {name: column.cells() for name, column in found.items()} == {"sex": ["f", None, "m"], "age": [30, 41, None]}
    assert to_frame(found, lists).to_pydict() == {name: lists[name] for name in ("sex", "age")}


def test_polars_and_back() -> None:
    frame = pl.DataFrame(arrow_table()).with_columns(
        dict=pl.col("dict").cast(pl.String).cast(pl.Categorical), large=pl.col("large").cast(pl.Enum(["z", "ü", "a"]))
    )
    columns = from_frame(frame)
    assert cells(columns) == CELLS
    back = to_frame(columns, frame)
    assert isinstance(back, pl.DataFrame)
    assert {n: k for n, k in back.schema.items() if n != "large"} == {n: k for n, k in frame.schema.items() if n != "large"}
    assert back.schema["large"] == pl.Enum(["a", "ü"]), "the order of the input is not kept"
    assert cells(from_frame(back)) == CELLS


def pandas_frame() -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            "i32": np.array([1, 2, 3], np.int32),
            "Int64": pd.array([1, None, 2**60], "Int64"),
            "f32": np.array([0.1, np.nan, 2.0], np.float32),
            "f64": [0.1, np.nan, 2.0],
            "bool": [True, False, True],
            "boolean": pd.array([True, None, False], "boolean"),
            "object": np.array(["a", None, "b"], dtype=object),
            "string": pd.array(["a", None, "b"], "string"),
            "category": pd.Categorical(["b", None, "a"], categories=["z", "b", "a"], ordered=True),
            "numbers": pd.Categorical([3, 1, 3], categories=[1, 2, 3]),
            "day": pd.to_datetime(["2020-02-29", None, "1969-01-01"]).astype("datetime64[ns]"),
        },
        index=[9, 4, 7],
    )
    frame.attrs["source"] = "ward 7"
    return frame


def test_pandas_and_back() -> None:
    frame = pandas_frame()
    columns = from_frame(frame)
    assert columns["Int64"].cells() == [1, None, 2**60]
    assert columns["f32"].cells() == [0.1, None, 2.0]
    assert columns["category"].cells() == ["b", None, "a"]
    assert columns["day"].cells() == [DAY, None, datetime.date(1969, 1, 1)]
    back = to_frame(columns, frame)
    assert back.attrs == {}
    assert list(back.index) == [0, 1, 2]
    same = [name for name in frame if name not in ("category", "numbers")]
    pd.testing.assert_frame_equal(back[same], frame[same].reset_index(drop=True), check_index_type=False)
    assert list(back["category"].cat.categories) == ["a", "b"], "the order of the input is not kept"
    assert not back["category"].cat.ordered
    assert list(back["numbers"].cat.categories) == [1, 3]
    assert cells(from_frame(back)) == cells(columns)


def test_the_index_plays_no_part() -> None:
    frame = pandas_frame()
    assert cells(from_frame(frame)) == cells(from_frame(frame.reset_index(drop=True)))
    shuffled = frame.sort_index()
    assert from_frame(shuffled)["i32"].cells() == [2, 3, 1]
    assert from_frame(frame.set_index(pd.Index([0, 0, 0])))["i32"].cells() == [1, 2, 3]


LIKE = {"age": [30, 41], "job": ["nurse", "cook"]}


@pytest.mark.parametrize("like", [pd.DataFrame(LIKE), pl.DataFrame(LIKE), pa.table(LIKE)], ids=["pandas", "polars", "arrow"])
def test_generalized_cells_are_plain_strings(like: Any) -> None:
    written = Columns.of({"age": ["[30, 41]", None, "*"], "job": ["nurse", None, "any"]})
    back = to_frame(written, like)
    assert type(back) is type(like)
    assert cells(from_frame(back)) == cells(written)
    if isinstance(back, pl.DataFrame):
        assert back.dtypes == [pl.String, pl.String]
        assert back["age"].null_count() == 1
    elif isinstance(back, pa.Table):
        assert back.schema.types == [pa.string(), pa.string()]
        assert back["age"].null_count == 1
    else:
        assert back["age"].dtype == pd.Series(["a"]).dtype
        assert back["age"].isna().tolist() == [False, True, False]


def test_values_outside_a_type_or_named_as_text_leave_it() -> None:
    like = pl.DataFrame({"n": pl.Series([1], dtype=pl.Int8), "e": pl.Series(["a"], dtype=pl.Enum(["a"])), "c": ["x"]})
    like = like.with_columns(pl.col("c").cast(pl.Categorical))
    back = to_frame(Columns.of({"n": [1, 300], "e": ["a", "node"], "c": ["x", "x"]}), like, text=["c"])
    assert back.dtypes == [pl.Int64, pl.String, pl.String]
    old = pd.DataFrame({"n": np.array([1], np.int8), "c": pd.Categorical(["a"])})
    new = to_frame(Columns.of({"n": [1.5, None], "c": ["a", "node"]}), old)
    assert new["n"].dtype == np.float64
    assert new["c"].tolist() == ["a", "node"]
    assert not isinstance(new["c"].dtype, pd.CategoricalDtype)
    gaps = to_frame(Columns.of({"n": [1, None]}), old)
    assert gaps["n"].isna().tolist() == [False, True]
    assert gaps["n"][0] == 1


def test_columns_without_any_value() -> None:
    frame = pandas_frame().iloc[[1]]
    emptied = Columns({n: Column(c.values, np.array([-1], np.int32)) for n, c in from_frame(frame).items()}, 1)
    for like in (frame, pl.DataFrame(arrow_table()), arrow_table()):
        back = to_frame(emptied, like)
        assert cells(from_frame(back)) == {name: [None] for name in emptied}


REFUSED: dict[str, tuple[Any, str]] = {
    "list": (pa.table({"x": [[1], [2]]}), "column 'x': cells of type list"),
    "struct": (pl.DataFrame({"x": [{"a": 1}]}), "column 'x': cells of type struct"),
    "mixed": (pd.DataFrame({"x": pd.Series([None, 1, "a"], dtype=object)}), "column 'x', row 3: the cells mix"),
    "mixed list": ({"x": [None, 1, "a"]}, "column 'x', row 3: the cells mix"),
    "unequal lists": ({"a": [1, 2], "x": [1]}, "column 'x': has 1 cells, but 'a' has 2"),
    "no list": ({"x": "abc"}, "column 'x': a str is not a list of cells"),
    "object": (pl.DataFrame({"x": pl.Series([object()], dtype=pl.Object)}), "column 'x': cells of type Object"),
    "NUL": (pd.DataFrame({"x": ["a", None, "b\0c"]}), "column 'x', row 3: a cell holds a NUL character"),
    "NUL in Arrow": (pa.table({"x": pa.array(["a", "b\0c"]).dictionary_encode()}), "column 'x', row 2: a cell holds a NUL"),
    "NUL in a name": (pl.DataFrame({"x": [1], "y\0": [2]}), "the name of column 2 holds a NUL character"),
    "twice": (pd.DataFrame([[1, 2]], columns=["x", "x"]), "column 'x': columns 1 and 2 have this name"),
    "unnamed": (pd.DataFrame([[1, 2]]), "column 1 is named 0, which is not text"),
    "no columns": (pd.DataFrame(), "the table has no columns"),
    "a list": ([1, 2], "a list is not a table"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_frames(name: str) -> None:
    frame, sentence = REFUSED[name]
    with pytest.raises(BadInput) as caught:
        read(frame)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("of", [pd.DataFrame, pl.DataFrame, lambda cells: pa.table(pd.DataFrame(cells))])
def test_times_of_day_become_iso_text_in_the_time_of_their_zone(of: Any) -> None:
    when = [datetime.datetime(2020, 1, 1), datetime.datetime(2020, 7, 2, 10, 30, 15, 500_000), None]
    assert read(of({"x": when}))["x"].cells() == ["2020-01-01T00:00:00", "2020-07-02T10:30:15.5", None]
    zoned = pd.DataFrame({"x": pd.to_datetime(["2020-07-01 23:30"]).tz_localize("UTC").tz_convert("Europe/Oslo")})
    assert read(zoned)["x"].cells() == ["2020-07-02T01:30:00"]


def test_refused_parquet(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(BadInput, match="not a complete Parquet file"):
        read(tmp_path / "x.parquet")
    with pytest.raises(BadInput, match="no such file"):
        read(tmp_path / "y.parquet")


def test_files_and_arrow_tables_load_no_other_library(tmp_path: Path) -> None:
    code = f"""
import os, sys
import pyarrow.parquet as pq
from closeknit.io.canonical import content_hash
from closeknit.io.files import read, write_csv, write_parquet
from closeknit.io.frames import from_frame, to_frame
os.chdir({str(tmp_path)!r})
open("a.csv", "w").write("n,t\\n1,x\\n,y\\n")
table = read("a.csv")
write_csv(table, "b.csv"), write_parquet(table, "b.parquet")
arrow = pq.ParquetFile("b.parquet").read()
print(content_hash(from_frame(to_frame(read("b.parquet"), arrow))) == content_hash(table))
print([name for name in ("pandas", "polars", "narwhals") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["True", "[]"]


SECRET = "Zaphod-Quirrelworth"


def secret_table() -> dict[str, Any]:
    names = ["Ada", SECRET, "Bo", "Ada"]
    plain = pd.DataFrame({"text": names, "cat": pd.Categorical(names), "obj": pd.Series(names, dtype=object)})
    plain.attrs["who"] = SECRET
    polars = pl.DataFrame({"text": names, "cat": pl.Series(names, dtype=pl.Categorical)})
    polars = polars.with_columns(enum=pl.col("text").cast(pl.Enum(["Ada", SECRET, "Bo"])))
    arrow = pa.table({"text": names, "cat": pa.array(names).dictionary_encode()}).replace_schema_metadata({"who": SECRET})
    return {"pandas": plain, "polars": polars, "arrow": arrow}


def raw_bytes(frame: Any, folder: Path) -> dict[str, bytes]:
    if isinstance(frame, pd.DataFrame):
        frame.to_parquet(folder / "x.parquet")
        return {"pickle": pickle.dumps(frame), "parquet": (folder / "x.parquet").read_bytes()}
    if isinstance(frame, pl.DataFrame):
        ipc, parquet = io.BytesIO(), io.BytesIO()
        frame.write_ipc(ipc)
        frame.write_parquet(parquet)
        return {"pickle": pickle.dumps(frame), "ipc": ipc.getvalue(), "parquet": parquet.getvalue()}
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, frame.schema) as writer:
        writer.write_table(frame)
    return {"pickle": pickle.dumps(frame), "ipc": sink.getvalue()}


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_what_was_removed_travels_nowhere(library: str, tmp_path: Path) -> None:
    frame = secret_table()[library]
    assert any(SECRET.encode() in raw for raw in raw_bytes(frame, tmp_path).values())
    columns = from_frame(frame)
    kept = columns.take(np.array([0, 2, 3]))
    back = to_frame(kept, frame)
    assert cells(from_frame(back)) == {name: ["Ada", "Bo", "Ada"] for name in columns}
    for way, raw in raw_bytes(back, tmp_path).items():
        assert SECRET.encode() not in raw, way
    write_parquet(kept, tmp_path / "out.parquet")
    if library == "arrow":
        write_parquet(kept, tmp_path / "out.parquet", {field.name: field.type for field in frame.schema})
    written = (tmp_path / "out.parquet").read_bytes()
    assert b"Ada" in written
    assert SECRET.encode() not in written


def test_numbers_of_removed_rows_do_not_show_in_statistics(tmp_path: Path) -> None:
    columns = Columns.of({"n": [1, 987_654_321_987, 2]}).take(np.array([0, 2]))
    write_parquet(columns, tmp_path / "n.parquet")
    raw = (tmp_path / "n.parquet").read_bytes()
    assert (987_654_321_987).to_bytes(8, "little") not in raw
    assert (2).to_bytes(8, "little") in raw
