"""`anonymize` from the outside: requests that are refused, frames of three libraries, what a release says of itself."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import closeknit as ck
from closeknit.checks.naive_cells import rows_of
from closeknit.checks.tables import Case, edge_tables, fit_to_method
from closeknit.core.columns import Columns
from closeknit.methods import REGISTRY as METHODS

SEED = 2**101
TABLES = {table.name: table for table in edge_tables()}


def frame_of(table: Case) -> pd.DataFrame:
    return pd.DataFrame(
        {name: pd.Series(column.cells(), dtype=object) for name, column in table.columns.items()}
    ).convert_dtypes()


def released(table: Case, data: Any = None, **more: Any) -> ck.Release:
    return ck.anonymize(table.columns if data is None else data, table.schema, list(table.models), seed=SEED, **more)


SMALL = Columns.of({"age": [20, 21, 35, 36, 50, 51], "disease": ["flu", "gout", "flu", "gout", "flu", "acne"]})
PLAIN = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"disease": ck.flat()})


# Where the table comes from ---------------------------------------------------------------------------------------------


ROWS_OF = ("every kind", "missing cells", "persons")


FRAMES = [*(("mondrian", of) for of in ROWS_OF), *((name, ROWS_OF[i % 3]) for i, name in enumerate(METHODS))]


@pytest.mark.parametrize(("name", "of"), [(name, of) for name, of in FRAMES if fit_to_method(METHODS[name](), TABLES[of])])
def test_frame_index_is_irrelevant(name: str, of: str) -> None:
    """A shuffled or duplicated index is no position, and no position is reported."""
    method = METHODS[name]
    table = fit_to_method(method(), TABLES[of])
    assert table is not None
    frame = frame_of(table)
    usual = released(table, frame, method=method())
    shuffled = frame.sample(frac=1, random_state=3)
    for index in (shuffled.index, pd.Index(list("ab" * (len(frame) // 2)))):
        other = released(table, shuffled.set_axis(index, axis=0), method=method())
        assert other.certificate == usual.certificate
        assert list(other.frame.index) == list(range(len(frame)))
        pairs = zip(other.partition.tolist(), usual.partition[shuffled.index].tolist(), strict=True)
        assert len(set(pairs)) >= usual.certificate.classes.count


def test_partition_is_in_input_order() -> None:
    """Ages say where a row is: those of one class lie in the range that the class was written with."""
    table = TABLES["one column"]
    frame = frame_of(table).sample(frac=1, random_state=1)
    release = released(table, frame)
    written = {cell for (cell,) in rows_of(release.columns, ["weight"])}
    for number in set(release.partition.tolist()):
        mine = frame["weight"].to_numpy(dtype=float)[release.partition == number]
        lo, hi = (int(x // 10 * 10) for x in (mine.min(), mine.max()))  # weights are decimals with a step of 10
        assert f"[{lo}, {hi + 10}]" in written


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow", "csv", "parquet"])
def test_every_library_gives_the_same_release(library: str, tmp_path: Path) -> None:
    table = TABLES["missing cells"]
    arrow = pa.table({name: column.cells() for name, column in table.columns.items()})
    made: dict[str, Any] = {
        "pandas": lambda: arrow.to_pandas(),
        "polars": lambda: pl.from_arrow(arrow),
        "arrow": lambda: arrow,
        "csv": lambda: _file(tmp_path / "people.csv", table, arrow),
        "parquet": lambda: _file(tmp_path / "people.parquet", table, arrow),
    }
    release = released(table, made[library]())
    assert release.certificate == released(table).certificate
    kinds = {"pandas": pd.DataFrame, "polars": pl.DataFrame}
    assert isinstance(release.frame, kinds.get(library, pa.Table))
    assert ck.audit(release.frame, certificate=release.certificate).ok


def _file(path: Path, table: Case, arrow: pa.Table) -> Path:
    frame = pl.from_arrow(arrow)
    assert isinstance(frame, pl.DataFrame)
    frame.write_csv(path) if path.suffix == ".csv" else frame.write_parquet(path)
    return path


def test_frame_is_not_changed_and_not_shared() -> None:
    table = TABLES["every kind"]
    frame = frame_of(table)
    before = frame.copy(deep=True)
    release = released(table, frame)
    pd.testing.assert_frame_equal(frame, before)
    release.frame.iloc[:, 0] = "changed"
    pd.testing.assert_frame_equal(frame, before)


def test_quasi_cells_are_text_and_secrets_keep_their_type() -> None:
    table = TABLES["two secrets"]
    frame = released(table, frame_of(table)).frame
    assert all(isinstance(cell, str) for cell in frame["age"].dropna())
    assert frame["charge"].dtype == "Int64" and sorted(frame["charge"]) == sorted(table.columns["charge"].cells())


@pytest.mark.parametrize("raw", [[3, 20, 40, 50, 3, 20], [3, 4, 5, 31, 44, 58]], ids=["one value a bin", "several"])
@pytest.mark.parametrize("as_text", [False, True])
def test_binned_secret_is_published_in_bins(raw: list[int], as_text: bool) -> None:
    """Whatever type the column has, and whether or not two values share a bin."""
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"cost": ck.numeric(0, 60, bins=4)})
    cells = {"age": list(range(6)), "cost": [str(x) for x in raw] if as_text else raw}
    release = ck.anonymize(Columns.of(cells), schema, [ck.KAnonymity(2)], seed=SEED)
    assert {str(cell) for cell in release.columns["cost"].cells()} <= {"[0, 15]", "[15, 30]", "[30, 45]", "[45, 60]"}
    assert ck.audit(release.columns, certificate=release.certificate).ok


def test_secret_of_months_is_published_in_months() -> None:
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"since": ck.date(["month", "year"])})
    days = np.array(["2024-01-05", "2024-02-06", "2024-03-07", "2024-04-08"], dtype="datetime64[D]")
    release = ck.anonymize(pd.DataFrame({"age": [1, 2, 3, 4], "since": days}), schema, [ck.KAnonymity(2)], seed=SEED)
    assert sorted(map(str, release.columns["since"].cells())) == ["2024-01", "2024-02", "2024-03", "2024-04"]


# Requests that are refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("models", "said"),
    [
        ([], "no guarantee is requested"),
        ([ck.KAnonymity(2), ck.TCloseness("age", 0.2)], "column 'age'.*not sensitive.*disease"),
        ([ck.KAnonymity(2), ck.TCloseness("disease", 0.2, "ordered")], "column 'disease'.*ordered distance"),
        ([ck.KAnonymity(2), ck.TCloseness("nowhere", 0.2)], "nowhere"),
    ],
)
def test_request_without_meaning_is_refused(models: list[Any], said: str) -> None:
    with pytest.raises(ck.BadInput, match=said):
        ck.anonymize(SMALL, PLAIN, models, seed=SEED)


@pytest.mark.parametrize("models", [[ck.KAnonymity(7)], [ck.KAnonymity(2), ck.LDiversity("disease", 4)]])
def test_impossible_is_unsatisfiable_and_not_an_empty_frame(models: list[Any]) -> None:
    with pytest.raises(ck.Unsatisfiable) as no:
        ck.anonymize(SMALL, PLAIN, models, seed=SEED)
    assert no.value.status == 1 and no.value.hint


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (ck.Schema(quasi={"age": ck.numeric()}), "column 'disease': has no role"),
        (
            ck.Schema(quasi={"age": ck.numeric(), "sex": ck.flat()}, sensitive={"disease": ck.flat()}),
            "column 'sex'.*not in the table",
        ),
        (ck.Schema(sensitive={"disease": ck.flat()}, plain=["age"]), "no quasi-identifier"),
        (
            ck.Schema(quasi={"age": ck.numeric(), "disease": ck.flat()}, sensitive={"disease": ck.flat()}),
            "quasi and as sensitive",
        ),
        (ck.Schema(quasi={"disease": ck.flat()}, plain=["age"]), "column 'age': is plain, and 6 of its values"),
        (ck.Schema(quasi={"age": ck.numeric(), "disease": ck.numeric()}), "column 'disease', row 1: 'flu' is not a number"),
        (ck.Schema(quasi={"age": ck.numeric(0, 40)}, sensitive={"disease": ck.flat()}), "column 'age', row 5: 50 is outside"),
    ],
)
def test_schema_that_does_not_fit_is_refused(schema: ck.Schema, said: str) -> None:
    with pytest.raises(ck.BadInput, match=said):
        ck.anonymize(SMALL, schema, [ck.KAnonymity(2)], seed=SEED)


@pytest.mark.parametrize("raw", ["*", "[20, 30]", "(1;2]"])
def test_raw_value_that_looks_written_is_refused(raw: str) -> None:
    for kind in (ck.numeric(), ck.flat(), ck.prefix()):
        schema = ck.Schema(quasi={"age": kind}, sensitive={"disease": ck.flat()})
        cells = Columns.of({"age": ["20", raw, "21"], "disease": ["flu", "gout", "flu"]})
        with pytest.raises(ck.BadInput, match="column 'age', row 2"):
            ck.anonymize(cells, schema, [ck.KAnonymity(2)], seed=SEED)


def test_raw_value_that_looks_written_is_refused_in_a_secret() -> None:
    cells = Columns.of({"age": [20, 21, 22], "disease": ["flu", "*", "gout"]})
    with pytest.raises(ck.BadInput, match="column 'disease', row 2"):
        ck.anonymize(cells, PLAIN, [ck.KAnonymity(2)], seed=SEED)


@pytest.mark.parametrize(
    ("more", "said"),
    [({"suppress": 1.5}, "suppress"), ({"suppress": -0.1}, "suppress"), ({"seed": -1}, "seed"), ({"seed": "x"}, "seed")],
)
def test_bad_arguments_are_named(more: dict[str, Any], said: str) -> None:
    with pytest.raises(ck.BadInput, match=said):
        ck.anonymize(SMALL, PLAIN, [ck.KAnonymity(2)], **{"seed": SEED, **more})


def test_something_that_is_no_table_is_refused() -> None:
    with pytest.raises(ck.BadInput, match="list is not a table"):
        ck.anonymize([1, 2], PLAIN, [ck.KAnonymity(2)])


def test_table_without_rows_is_refused() -> None:
    with pytest.raises(ck.BadInput, match="no rows"):
        ck.anonymize(
            pa.table({"age": pa.array([], pa.int64()), "disease": pa.array([], pa.string())}), PLAIN, [ck.KAnonymity(2)]
        )


def test_plain_column_may_be_allowed_to_identify() -> None:
    schema = ck.Schema(quasi={"disease": ck.flat()}, plain=["age"], allow_unique=["age"])
    release = ck.anonymize(SMALL, schema, [ck.KAnonymity(2)], seed=SEED)
    assert any("'age' is published as it is" in note for note in release.certificate.notes)


# What a release says ----------------------------------------------------------------------------------------------------


def test_constant_secret_is_a_loud_warning() -> None:
    cells = Columns.of({"age": [1, 2, 3, 4], "disease": ["flu"] * 4})
    with pytest.warns(UserWarning, match="column 'disease': every row has the same value"):
        ck.anonymize(cells, PLAIN, [ck.KAnonymity(2)], seed=SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ck.anonymize(SMALL, PLAIN, [ck.KAnonymity(2)], seed=SEED)


def test_tight_ranges_are_said_to_be_true_values_and_snapped_ones_are_not() -> None:
    said = "both ends of a range are true values"
    assert any(said in note for note in ck.anonymize(SMALL, PLAIN, [ck.KAnonymity(2)], seed=SEED).certificate.notes)
    schema = ck.Schema(quasi={"age": ck.numeric(step=10)}, sensitive={"disease": ck.flat()})
    snapped = ck.anonymize(SMALL, schema, [ck.KAnonymity(2)], form=ck.generalized(snap=True), seed=SEED)
    assert not any(said in note for note in snapped.certificate.notes)
    assert {end for (cell,) in rows_of(snapped.columns, ["age"]) for end in str(cell).strip("[]").split(", ")} <= {
        "20",
        "30",
        "40",
        "50",
        "60",
    }
    assert ck.audit(snapped.columns, certificate=snapped.certificate).ok


def test_loss_is_that_of_the_certificate_and_known_by_hand() -> None:
    cells = Columns.of({"age": [0, 10, 90, 100], "disease": ["a", "b", "a", "b"]})
    schema = ck.Schema(quasi={"age": ck.numeric(0, 100)}, sensitive={"disease": ck.flat()})
    release = ck.anonymize(cells, schema, [ck.KAnonymity(2)], seed=SEED)
    assert release.loss == release.certificate.loss.a == pytest.approx(0.1)
    assert release.certificate.ok and "k-anonymity, k = 2: measured 2" in str(release)


def test_progress_is_reported_and_ends() -> None:
    reported: list[tuple[str, float]] = []
    ck.anonymize(SMALL, PLAIN, [ck.KAnonymity(2)], seed=SEED, progress=lambda what, share: reported.append((what, share)))
    shares = [share for _, share in reported]
    assert reported[-1] == ("done", 1.0) and shares == sorted(shares)


def test_release_of_numbers_written_in_many_ways() -> None:
    """Large, small, negative and decimal numbers are read back as what they were."""
    ages = [-1e-7, 1e-7, 0.1, 1 / 3, 12345678.9, 1e15, 1e20, 2.5e-300, 1e22, 3]
    cells = Columns.of({"age": ages, "disease": ["a", "b"] * 5})
    release = ck.anonymize(cells, PLAIN, [ck.KAnonymity(2)], seed=SEED)
    assert ck.audit(release.columns, certificate=release.certificate).ok


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("role", ["quasi", "sensitive"])
def test_whole_number_that_would_be_rounded_is_refused(text: bool, role: str) -> None:
    """2^53 + 1 is no double: rounded, a range would not hold it and a secret would be another one."""
    numbers = [2**53, 2**53 + 1, 2**53 + 2, 7]
    cells = Columns.of({"number": [str(x) for x in numbers] if text else numbers, "other": ["a", "b", "a", "b"]})
    roles: dict[str, Any] = {"quasi": {"other": ck.flat()}, "sensitive": {}}
    roles[role] = {**roles[role], "number": ck.numeric()}
    with pytest.raises(ck.BadInput, match=r"column 'number', row 2: 9007199254740993 is too large.*flat or prefix$"):
        ck.anonymize(cells, ck.Schema(**roles), [ck.KAnonymity(2)], seed=SEED)


def test_single_missing_plain_cell_may_identify_too() -> None:
    cells = Columns.of({"age": [1, 2, 3, 4], "ward": ["a", "a", "a", None]})
    schema = ck.Schema(quasi={"age": ck.numeric()}, plain=["ward"])
    with pytest.raises(ck.BadInput, match="column 'ward': is plain, and 1 of its values"):
        ck.anonymize(cells, schema, [ck.KAnonymity(2)], seed=SEED)


def test_secrets_of_odd_text_survive_a_file(tmp_path: Path) -> None:
    odd = ['a "quoted" one', "comma, here", "line\nbreak", " space ", "NA", "null", "0012", "1e5", "-", "ß", "NaN", "'"]
    cells = Columns.of({"age": list(range(12)), "disease": odd})
    release = ck.anonymize(cells, PLAIN, [ck.KAnonymity(3)], seed=SEED)
    for format in ("csv", "parquet"):
        release.save(tmp_path / format, format, report=False)
        found = ck.audit(tmp_path / format / f"release.{format}", certificate=tmp_path / format / "certificate.json")
        assert found.ok, (format, found.findings)


def test_dropped_column_is_not_read_and_may_be_absent() -> None:
    schema = ck.Schema(quasi={"age": ck.numeric()}, drop=["remark"])
    for cells in ({"age": [30, 31], "remark": ["[1, 2]", "*"]}, {"age": [30, 31]}):
        release = ck.anonymize(Columns.of(cells), schema, [ck.KAnonymity(2)])
        assert list(release.columns) == ["age"] and "remark" not in release.certificate.to_json()
    assert ck.Schema.from_forms(schema.forms()) == schema
    with pytest.raises(ck.BadInput, match="is listed as quasi and as drop"):
        ck.Schema(quasi={"age": ck.numeric()}, drop=["age"])
