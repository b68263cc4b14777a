"""Files of Stata, SPSS, SAS and R: labels, missing values, dates, damaged files, and releases in these formats.

`examples/people*.sas7b*` were written with the writer of ReadStat; no maintained Python library writes these formats.
"""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyreadr
import pyreadstat
import pytest
import yaml
from typer.testing import CliRunner

import closeknit as ck
from closeknit.api.recipe import Recipe
from closeknit.cli.commands import app
from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadInput
from closeknit.datasets import hospital
from closeknit.io.canonical import content_hash
from closeknit.io.files import read
from closeknit.io.labels import Labels
from closeknit.io.statistical import StatisticalFile
from closeknit.io.statistical_writing import CLOCKS
from closeknit.io.written_files import write_release_file
from closeknit.web.desk.table_preview import Limits, read_table

EXAMPLES = Path(__file__).parent / "examples"
RUNNER = CliRunner()
SEX = {1: "male", 2: "female"}
OLD = {97: "refused", 98: "unknown", 99: "99 or older"}
PEOPLE = pl.DataFrame(
    {
        "age": [30.0, 41.0, None, 99.0],
        "cost": [0.1, None, 2.5, 1 / 3],
        "sex": [1.0, 2.0, 2.0, None],
        "ill": ["flu", "", "gout", "flu"],
    }
)
WRITE = {
    ".dta": (pyreadstat.write_dta, {}),
    ".sav": (pyreadstat.write_sav, {}),
    ".zsav": (pyreadstat.write_sav, {"compress": True}),
    ".por": (pyreadstat.write_por, {}),
    ".xpt": (pyreadstat.write_xport, {}),
}
LABELLED = (".dta", ".sav", ".zsav", ".por")


def write_people(folder: Path, suffix: str, **options: Any) -> Path:
    write, usual = WRITE[suffix]
    path = folder / f"people{suffix}"
    labels = {"variable_value_labels": {"sex": SEX, "age": OLD}} if suffix in LABELLED[:3] else {}
    write(PEOPLE, str(path), column_labels={"sex": "Sex at birth"}, **{**usual, **labels, **options})
    return path


@pytest.mark.parametrize("suffix", WRITE)
def test_cells_and_labels(suffix: str, tmp_path: Path) -> None:
    table = read(write_people(tmp_path, suffix))
    cells = {name.lower(): column.cells() for name, column in table.items()}
    named = ["male", "female", "female", None] if suffix in LABELLED[:3] else [1, 2, 2, None]
    assert cells["sex"] == named and cells["ill"] == ["flu", None, "gout", "flu"]
    assert cells["age"] == [30, 41, None, 99]  # not all of its values have a label, so it holds numbers
    assert cells["cost"] == pytest.approx([0.1, None, 2.5, 1 / 3])
    assert read(StatisticalFile(str(tmp_path / f"people{suffix}"), labels=False))[list(table)[2]].cells() == [1, 2, 2, None]


def test_labels_or_codes_by_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_people(tmp_path, ".sav")
    monkeypatch.chdir(tmp_path)
    found = RUNNER.invoke(app, ["inspect", "people.sav", "--codes", "-o", "recipe.yaml"])
    assert found.exit_code == 0, found.output
    assert yaml.safe_load(Path("recipe.yaml").read_text("utf-8"))["data"] == {"path": "people.sav", "labels": False}
    with pytest.raises(BadInput, match="labels='yes' is unknown"):
        StatisticalFile("people.sav", labels="yes")  # type: ignore[arg-type]


def test_missing_values_of_the_author_are_missing(tmp_path: Path) -> None:
    write_people(tmp_path, ".sav", missing_ranges={"age": [99], "ill": ["gout"]})
    table = read(tmp_path / "people.sav")
    assert table["age"].cells() == [30, 41, None, None] and table["ill"].cells() == ["flu", None, None, "flu"]
    frame = PEOPLE.to_pandas()
    frame["age"] = frame["age"].astype(object)
    frame.loc[3, "age"] = "a"
    pyreadstat.write_dta(frame, tmp_path / "people.dta", missing_user_values={"age": ["a"]})
    assert read(tmp_path / "people.dta")["age"].cells() == [30, 41, None, None]


DATES = {
    ".dta": {"day": "%td", "moment": "%tc", "clock": "%tcHH:MM:SS"},
    ".sav": {"day": "EDATE10", "moment": "DATETIME20", "clock": "TIME8"},
    ".xpt": {"day": "YYMMDD10.", "moment": "DATETIME20.", "clock": "TIME8."},
}
COUNTS = {".dta": (23406, 23406 * 86400000 + 1000, 30600000), ".xpt": (23406, 23406 * 86400 + 1, 30600)}
COUNTS[".sav"] = (161181 * 86400, 161181 * 86400 + 1, 30600)


@pytest.mark.parametrize("suffix", DATES)
def test_dates_are_iso_dates(suffix: str, tmp_path: Path) -> None:
    day, moment, clock = (float(count) for count in COUNTS[suffix])
    frame = pl.DataFrame({"day": [day, None], "moment": [moment, None], "clock": [clock, None], "n": [1.0, 2.0]})
    WRITE[suffix][0](frame, str(tmp_path / f"a{suffix}"), variable_format=DATES[suffix])
    assert {name: column.cells() for name, column in read(tmp_path / f"a{suffix}").items()} == {
        "day": [date(2024, 1, 31), None],
        "moment": ["2024-01-31T00:00:01", None],
        "clock": ["08:30:00", None],
        "n": [1, 2],
    }


def test_sas(tmp_path: Path) -> None:
    table = read(EXAMPLES / "people.sas7bdat")
    assert [table[name].cells() for name in table] == [[30.0, 41.5], [date(2024, 1, 31), None], ["flu", None]]
    assert StatisticalFile(str(EXAMPLES / "people.sas7bdat")).read_labels().variables == {"age": "Age in years"}


def test_a_catalogue_of_sas_gives_labels(tmp_path: Path) -> None:
    path, catalog = str(EXAMPLES / "people_coded.sas7bdat"), str(EXAMPLES / "people_formats.sas7bcat")
    coded, labelled = read(path), StatisticalFile(path, catalog=catalog).read()
    assert coded["sex"].cells() == [1, 2, 2, 1] and coded["ward"].cells() == ["A", "B", "A", None]
    assert labelled["sex"].cells() == ["male", "female", "female", "male"]
    assert labelled["ward"].cells() == ["Surgery", "Paediatrics", "Surgery", None]
    assert StatisticalFile(path, labels=False, catalog=catalog).read()["sex"].cells() == [1, 2, 2, 1]
    for bad, what in ((path, "this is not a complete .sas7bcat file"), (f"{path}x", "does not exist|no such file")):
        with pytest.raises(ck.BadInput, match=what):
            StatisticalFile(path, catalog=bad).read()
    with pytest.raises(ck.BadInput, match=r"only a \.sas7bdat file has a catalogue of formats; leave out catalog"):
        StatisticalFile("people.sav", catalog=catalog)


def test_a_recipe_names_a_catalogue_relative_to_itself(tmp_path: Path) -> None:
    for name in ("people_coded.sas7bdat", "people_formats.sas7bcat"):
        (tmp_path / name).write_bytes((EXAMPLES / name).read_bytes())
    words = ["inspect", str(tmp_path / "people_coded.sas7bdat"), "--catalog", str(tmp_path / "people_formats.sas7bcat")]
    result = RUNNER.invoke(app, [*words, "-o", str(tmp_path / "recipe.yaml")])
    assert result.exit_code == 0, result.output
    assert "catalog: people_formats.sas7bcat" in (tmp_path / "recipe.yaml").read_text(encoding="utf-8")
    assert Recipe.read(tmp_path / "recipe.yaml").data.read()["sex"].cells()[0] == "male"


def in_batches(rows: int) -> type[StatisticalFile]:
    return type("Small", (StatisticalFile,), {"batch": rows})


@pytest.mark.parametrize("suffix", WRITE)
def test_batches_give_the_same_table(suffix: str, tmp_path: Path) -> None:
    path = write_people(tmp_path, suffix)
    whole = read(path)
    for rows in (1, 2, 3):
        assert content_hash(in_batches(rows)(str(path)).read()) == content_hash(whole)
    name = list(whole)[-1]
    assert list(read(StatisticalFile(str(path))).keys())[-1] == name
    assert StatisticalFile(str(path)).read([name, next(iter(whole))])[name].cells() == whole[name].cells()


@pytest.mark.parametrize("names", [["a", "b", "c", "d", "e"], ["a", "b", "c", "b", "e"], ["a", "b", "", "d", ""]])
@pytest.mark.parametrize("suffix", [".dta", ".sav"])
def test_texts_that_are_mostly_distinct(suffix: str, names: list[str], tmp_path: Path) -> None:
    WRITE[suffix][0](pl.DataFrame({"name": names}), str(tmp_path / f"a{suffix}"))
    column = in_batches(2)(str(tmp_path / f"a{suffix}")).read()["name"]
    assert column.cells() == [name or None for name in names]
    assert sorted(column.values.tolist()) == sorted(set(names) - {""})


@pytest.mark.parametrize("suffix", [*WRITE, ".sas7bdat"])
def test_damaged_files(suffix: str, tmp_path: Path) -> None:
    whole = (EXAMPLES / "people.sas7bdat" if suffix == ".sas7bdat" else write_people(tmp_path, suffix)).read_bytes()
    for name, content in {"empty": b"", "cut": whole[: len(whole) // 3], "text": b"age\n30\n"}.items():
        path = tmp_path / f"{name}{suffix}"
        path.write_bytes(content)
        found = RUNNER.invoke(app, ["inspect", str(path), "-o", str(tmp_path / "recipe.yaml")])
        assert found.exit_code == 2 and f"not a complete {suffix} file" in found.output, (name, found.output)
    with pytest.raises(BadInput, match="no such file"):
        read(tmp_path / f"missing{suffix}")
    assert not (tmp_path / "recipe.yaml").exists()


def test_a_file_without_rows(tmp_path: Path) -> None:
    pyreadstat.write_sav(PEOPLE.clear(), str(tmp_path / "a.sav"))
    with pytest.raises(BadInput, match="no rows"):
        read(tmp_path / "a.sav")


def hard(suffix: str) -> Columns:
    """Cells that are hard to keep; transport files of SAS have fewer exponents."""
    days = Column(np.array(["1850-01-01", "2024-02-29", "9999-12-31"], dtype="datetime64[D]"), np.array([0, 1, 2, -1]))
    far = [1e300, 5e-300, 0.1, None] if suffix != ".xpt" else [1e70, 5e-70, 0.1, None]
    cells = Columns.of(
        {
            "text": ["=1+1", "007", "[30, 39]", None],
            "number": far,
            "whole": [2**52, -1, 0, None],
            "large": [2**60, -1, 0, None],
            "truth": [True, False, None, True],
            "none": [None] * 4,
        }
    )
    return Columns({**cells.columns, "day": days}, 4)


@pytest.mark.parametrize("suffix", [".dta", ".sav", ".xpt"])
def test_a_release_reads_back_as_the_same_cells(suffix: str, tmp_path: Path) -> None:
    cells = hard(suffix)
    for name in ("a", "b"):
        write_release_file(cells, tmp_path / f"{name}{suffix}")
    assert content_hash(read(tmp_path / f"a{suffix}")) == content_hash(cells)
    assert read(tmp_path / f"a{suffix}")["day"].values.dtype.kind == "M"
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


def test_what_a_format_cannot_hold_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    for name in ("age of patient", "x" * 33, "1st"):
        with pytest.raises(BadInput, match="takes names of at most 32"):
            write_release_file(Columns.of({name: [1]}), tmp_path / "release.dta")
    with pytest.raises(BadInput, match=r"column 'b': a cell would read back differently from a .sav file; save the release as"):
        write_release_file(Columns.of({"a": ["x"], "b": ["ends with spaces  "]}), tmp_path / "release.sav")
    with pytest.raises(BadInput, match="Größe"):
        write_release_file(Columns.of({"Größe": [1]}), tmp_path / "release.xpt")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", [".dta", ".sav"])
def test_labels_travel_to_the_release(suffix: str, tmp_path: Path) -> None:
    table = hospital(300)
    codes = {float(number): text for number, text in enumerate(sorted(table["disease"].values.tolist()), start=1)}
    labels = Labels({"disease": "Main diagnosis", "age": "Age in years"}, {"disease": {**codes, 99.0: "never seen"}})
    write_release_file(table, tmp_path / f"patients{suffix}", labels=labels)
    source = StatisticalFile(str(tmp_path / f"patients{suffix}"))
    assert source.read_labels().values["disease"] == codes
    schema, models = ck.datasets.hospital_schema(), [ck.KAnonymity(5), ck.LDiversity("disease", 2)]
    release = ck.anonymize(source, schema, models, ck.Mondrian(), seed=2**70)  # labels are the leaves of its hierarchy
    plain = ck.anonymize(table, schema, models, ck.Mondrian(), seed=2**70)
    assert release.certificate.content_sha256 == plain.certificate.content_sha256
    release.save(tmp_path / "out", format=suffix[1:], report=False)
    assert ck.audit(tmp_path / "out").ok
    saved = StatisticalFile(str(tmp_path / "out" / f"release{suffix}"))
    assert saved.read_labels().variables == {"disease": "Main diagnosis", "age": "Age in years"}
    assert set(saved.read_labels().values) == {"disease"}  # the only one with labels, and published unchanged
    assert saved.read_labels().values["disease"] == {
        code: text for code, text in codes.items() if text in release.columns["disease"].values.tolist()
    }


@pytest.mark.parametrize(
    ("suffix", "clock"), [(".dta", "05 Feb 2021 10:15"), (".sav", "05 Feb 2110:15:16"), (".xpt", "12MAR20:10:11:12")]
)
def test_only_the_clock_of_the_machine_is_left_out(suffix: str, clock: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    write_release_file(Columns.of({"a": [clock, "x"]}), path, labels=Labels({"a": f"as of {clock}"}, {}))
    assert StatisticalFile(str(path)).read()["a"].cells() == [clock, "x"]
    assert StatisticalFile(str(path)).read_labels().variables == {"a": f"as of {clock}"}
    _, constant, end = CLOCKS[suffix]
    assert path.read_bytes()[:end].endswith(constant) and path.read_bytes().count(constant) == (4 if suffix == ".xpt" else 1)


def test_the_page_refuses_by_the_head_of_the_file(tmp_path: Path) -> None:
    path = write_people(tmp_path, ".dta")
    assert read_table(path, "mine.dta", Limits(rows=4, columns=4, unpacked=10_000)).rows == 4
    with pytest.raises(BadInput, match=r"mine\.dta: the table has 4 rows"):
        read_table(path, "mine.dta", Limits(rows=3))
    with pytest.raises(BadInput, match="4 columns"):
        read_table(path, "mine.dta", Limits(columns=3))


def test_r(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"age": [30, 41], "sex": pd.Categorical(["f", None]), "cost": [0.1, None], "day": [date(2024, 1, 31)] * 2}
    )
    pyreadr.write_rds(str(tmp_path / "a.rds"), frame, compress="gzip")
    pyreadr.write_rdata(str(tmp_path / "a.RData"), frame, df_name="people")
    for name in ("a.rds", "a.RData"):
        cells = {name: column.cells() for name, column in read(tmp_path / name).items()}
        assert cells["age"] == [30, 41] and cells["sex"] == ["f", None] and cells["cost"] == [0.1, None]
        assert [str(day) for day in cells["day"]] == ["2024-01-31"] * 2
    for content in (b"", b"age\n30\n", (tmp_path / "a.rds").read_bytes()[:60]):
        (tmp_path / "b.rds").write_bytes(content)
        with pytest.raises(BadInput, match="not a complete R file"):
            read(tmp_path / "b.rds")


@pytest.mark.parametrize(("module", "suffix", "extra"), [("pyreadstat", ".dta", "stats"), ("pyreadr", ".rds", "r")])
def test_a_missing_library_names_its_extra(
    module: str, suffix: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(BadInput, match=rf"pip install 'closeknit\[{extra}\]'"):
        read(tmp_path / f"a{suffix}")
