"""CSV files as people have them: encoding, delimiter, quote, decimal sign and thousands separator are detected together."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import closeknit as ck
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.io.csv import CsvFormat
from closeknit.io.csv_format import SAMPLE, detect_encoding, detect_signs
from closeknit.io.csv_numbers import settle_numbers
from closeknit.io.files import read, read_with_format, read_written


def saved(folder: Path, content: bytes | str, name: str = "people.csv") -> Path:
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


GERMAN = "Name;Größe;Lohn;geboren\nJörg;1,80;53.281;20.01.1959\nÄnne;1,75;1.234.567,50;03.02.1961\n"
READ = {
    "Name": ["Jörg", "Änne"],
    "Größe": ["1.80", "1.75"],
    "Lohn": ["53281", "1234567.50"],
    "geboren": ["20.01.1959", "03.02.1961"],
}


@pytest.mark.parametrize("sign", [";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_everything_is_detected_together(tmp_path: Path, encoding: str, sign: str) -> None:
    table, format = read_with_format(saved(tmp_path, GERMAN.replace(";", sign).encode(encoding)))
    assert {name: column.cells() for name, column in table.items()} == READ
    expected = {"delimiter": sign, "encoding": encoding, "decimal": ",", "thousands": "."}
    assert format is not None
    assert format.form() == {key: value for key, value in expected.items() if value not in ("utf-8", "utf-8-sig")}


def test_what_was_detected_is_read_the_same_when_it_is_said(tmp_path: Path) -> None:
    file = saved(tmp_path, GERMAN)
    table, format = read_with_format(file)
    assert format is not None
    again = read(file, CsvFormat(**format.form()))
    assert {name: column.cells() for name, column in again.items()} == {name: table[name].cells() for name in table}


@pytest.mark.parametrize(
    ("text", "delimiter", "quote"),
    [
        ("a,b\n1,2\n", ",", '"'),
        ("name;cost, net\nAnn;1,5\nBob;2,5\n", ";", '"'),
        ("a;b\n1;x, y, z\n2;x\n", ";", '"'),
        ('"a;b",c\n"1;2",3\n', ",", '"'),
        ("'a, b';c\n'1, 2';3\n", ";", "'"),
        ("it's;c\n1;3\n", ";", '"'),
        ("note\nfirst, second\nthird\n", ",", '"'),
        ("a\tb\n1,5\t2,5\n", "\t", '"'),
        ("a,b\n1,2\n3\n", ",", '"'),
        ('a;b\n"x\ny;z";2\n3;4\n', ";", '"'),
    ],
)
def test_the_delimiter_cuts_header_and_rows_alike(text: str, delimiter: str, quote: str) -> None:
    found = detect_signs(text.encode(), CsvFormat())
    assert (found.delimiter, found.quote) == (delimiter, quote)


def test_a_long_file_is_judged_by_its_beginning_and_options_win() -> None:
    data = b"a;b\n" + b"1,5;2\n" * SAMPLE + b"broken"
    assert detect_signs(data, CsvFormat()).delimiter == ";"
    assert detect_signs(data, CsvFormat(delimiter=",")).delimiter == ","


def test_damaged_utf8_is_not_taken_for_another_encoding(tmp_path: Path) -> None:
    assert detect_encoding("Köln, Zürich, Ärger".encode("cp1252")) == "cp1252"
    assert detect_encoding(b"a\x81b") == "latin-1"
    with pytest.raises(BadInput, match="row 2: byte 0xe9 cannot be read as utf-8"):
        read(saved(tmp_path, "name,town\nJosé,Köln\n".encode() + b"Andr\xe9,x\n"))


def numbers(cells: dict[str, list[str]], **known: str) -> tuple[dict[str, list[object]], str | None, str | None]:
    table, format = settle_numbers(Columns.of(dict(cells)), CsvFormat(**{"delimiter": ";", **known}))  # type: ignore[arg-type]
    return {name: column.cells() for name, column in table.items()}, format.decimal, format.thousands


@pytest.mark.parametrize(
    ("cells", "plain", "signs"),
    [
        (["53.281", "1,5"], ["53281", "1.5"], (",", ".")),
        (["-1.234,50", "7"], ["-1234.50", "7"], (",", ".")),
        (["1,234.50", "53,281"], ["1234.50", "53281"], (".", ",")),
        (["1,234,567"], ["1234567"], (".", ",")),
        (["1 234,50", "2\u00a0345,5", "3\u202f456"], ["1234.50", "2345.5", "3456"], (",", " ")),
        (["1'234.50", "2’345"], ["1234.50", "2345"], (".", "'")),
        (["1.5", "53.281"], ["1.5", "53.281"], (".", "")),
        (["0.281", "53.281"], ["0.281", "53.281"], (".", "")),
        (["1234.567", "1.234"], ["1234.567", "1.234"], (".", "")),
        (["53,281", "12,500"], ["53,281", "12,500"], (".", "")),  # no evidence: stays text, which numeric refuses
        (["1,5", "2,5", "?", "unknown"], ["1.5", "2.5", "?", "unknown"], (",", "")),
        (["20.01.1959", "03.02.1961"], ["20.01.1959", "03.02.1961"], (".", "")),
        (["1.2.3", "1.10.0"], ["1.2.3", "1.10.0"], (".", "")),
        (["192.168.100.101", "192.168.100.102"], ["192.168.100.101", "192.168.100.102"], (".", "")),
        (["030 123 456", "171 234"], ["030 123 456", "171 234"], (".", "")),
    ],
)
def test_signs_of_a_column(cells: list[str], plain: list[str], signs: tuple[str, str]) -> None:
    found, *decided = numbers({"x": cells})
    assert (found["x"], tuple(decided)) == (plain, signs)


def test_one_column_decides_for_the_others_and_texts_are_left_alone() -> None:
    texts = {"born": ["20.01.1959"], "version": ["1.2.3"], "host": ["10.0.0.1"], "note": ["1,5 km"]}
    found, *_ = numbers({"cost": ["1,5"], "price": ["53.281"], **texts})
    assert found == {"cost": ["1.5"], "price": ["53281"], **texts}
    found, *_ = numbers({"cost": ["1.5"], "price": ["53,281"], **texts})
    assert found == {"cost": ["1.5"], "price": ["53281"], **texts}


@pytest.mark.parametrize(
    ("cells", "known", "words"),
    [
        (
            {"x": ["7", "53.281"]},
            {},
            "column 'x', row 2: '53.281' is 53.281 with a decimal point and 53281 with a point between",
        ),
        ({"x": ["1,5"], "y": ["1.5"]}, {}, "column 'y', row 1: '1.5' has a decimal point, but '1,5' in column 'x', row 1"),
        ({"x": ["53.281", "1.5"]}, {"decimal": ","}, "row 1: '53.281' is 53.281 with a decimal point and 53281 with a point"),
        ({"x": ["1,5", "1.5"]}, {"decimal": ","}, "column 'x', row 2: '1.5' is 1.5 with a decimal point and 15 with a point"),
    ],
)
def test_a_point_with_two_readings_is_refused(cells: dict[str, list[str]], known: dict[str, str], words: str) -> None:
    with pytest.raises(BadInput) as caught:
        numbers(cells, **known)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_what_is_said_settles_it() -> None:
    assert numbers({"x": ["53.281"]}, decimal=".")[0]["x"] == ["53.281"]
    assert numbers({"x": ["53.281"]}, decimal=",")[0]["x"] == ["53281"]
    assert numbers({"x": ["53.281", "1.5"]}, decimal=",", thousands="")[0]["x"] == ["53.281", "1.5"]
    assert numbers({"x": ["53,281"]}, decimal=".")[0]["x"] == ["53281"]
    assert numbers({"x": ["53,281"]}, decimal=",")[0]["x"] == ["53.281"]


@pytest.mark.parametrize("cells", [["1,5", "2,7"], ["53,281"], ["53.281", "7.125"]])
def test_between_commas_a_point_is_decimal_and_a_comma_may_be_a_list(cells: list[str]) -> None:
    assert numbers({"x": cells}, delimiter=",")[0]["x"] == cells


@given(st.lists(st.integers(-(10**9), 10**9), min_size=1), st.sampled_from(["1,5", "0,25"]))
def test_every_whole_number_comes_back_from_its_groups(values: list[int], share: str) -> None:
    grouped = [f"{value:,}".replace(",", ".") for value in values]
    found, *_ = numbers({"x": grouped, "share": [share] * len(values)})
    assert [int(str(cell)) for cell in found["x"]] == values


def test_a_release_is_read_as_it_is_written(tmp_path: Path) -> None:
    rows = ["1.234,50", "1,5"] * 10
    table = Columns.of({"age": [30] * 20, "code": rows})
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"code": ck.flat()})
    ck.anonymize(table, schema, [ck.KAnonymity(2)]).save(tmp_path / "out")
    file = tmp_path / "out" / "release.csv"
    assert sorted(read_written(file)["code"].cells()) == sorted(rows)
    assert ck.audit(file, certificate=tmp_path / "out" / "certificate.json").ok
    assert ck.attack(file).rows == 20


def test_a_tab_separated_file_just_works_and_the_private_recipe_says_how_it_is_written(tmp_path: Path) -> None:
    rows = "".join(f"{20 + i}\t{i}.{i}00,50\tflu\n" for i in range(1, 10))
    file = saved(tmp_path, "age\tpay\till\n" + rows)
    assert ck.suggest(file).csv == {"delimiter": "\t", "decimal": ",", "thousands": "."}
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"pay": ck.numeric(), "ill": ck.flat()})
    release = ck.anonymize(file, schema, [ck.KAnonymity(3)], seed=2**70)
    assert sorted(release.columns["pay"].cells())[0] == 1100.5
    release.save(tmp_path / "out")
    recipe = tmp_path / "out.private" / "recipe.yaml"
    assert "thousands: ." in recipe.read_text(encoding="utf-8")
    assert ck.run(recipe).certificate.content_sha256 == release.certificate.content_sha256


def test_part_files_are_judged_as_one_table(tmp_path: Path) -> None:
    folder = tmp_path / "people.csv"
    folder.mkdir()
    saved(folder, "x;y\n53.281;a\n", "part-0.csv")
    saved(folder, "x;y\n1,5;b\n", "part-1.csv")
    assert read(folder)["x"].cells() == ["53281", "1.5"]
