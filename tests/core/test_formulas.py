"""Cells that a spreadsheet would run: noted, written safely on request, and read back by everyone who has the certificate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import closeknit as ck
from closeknit.api import run
from closeknit.api.recipe import Recipe
from closeknit.api.reporting import load_release
from closeknit.core.columns import Columns
from closeknit.core.formulas import ESCAPED, RISK, escape, escape_columns, is_formula, unescape, unescape_columns
from closeknit.io.canonical import content_hash
from closeknit.io.files import read, write_csv
from closeknit.spark.session import find_formulas
from conftest import examples

SEED = 2**101
CELLS: dict[str, list[Any]] = {
    "=age": [30, 31, 60, 61],
    "job": ["@cook", "@cook", "=HYPERLINK(1)", "=HYPERLINK(1)"],
    "ill": ["+flu", "'=gout", "+flu", "'=gout"],
    "shift": ["-5", "+3.2", "-5", "+3.2"],
    "ward": ["north", "north", "\twest", "\twest"],
}
SCHEMA = ck.Schema(quasi={"=age": ck.numeric(), "job": ck.flat()}, sensitive={"ill": ck.flat()}, plain=["shift", "ward"])
MODELS = [ck.KAnonymity(2), ck.LDiversity("ill", 2)]
STARTS = "begin like a spreadsheet formula (=, +, -, @, tab or carriage return)"
NOTES = [f"column '{name}': some cells {STARTS}" for name in ("job", "ill", "ward")]
NOTES += ["column '=age': its name begins like a spreadsheet formula"]


def released(
    escape_formulas: bool = False, table: Any = None, schema: ck.Schema = SCHEMA, models: Any = MODELS, **options: Any
) -> ck.Release:
    table = Columns.of(CELLS) if table is None else table
    return ck.anonymize(table, schema, models, escape_formulas=escape_formulas, seed=SEED, **options)


TEXTS = [
    ("=1+1", True),
    ("+cmd", True),
    ("-2+3", True),
    ("@SUM(A1)", True),
    ("\t=1", True),
    ("\rx", True),
    ("-", True),
    ("-5\n", True),
    ("-5", False),
    ("+3.2", False),
    ("-1e-05", False),
    ("-inf", False),
    ("[-5, 3]", False),
    ("'=1", False),
    ("", False),
    (" =1", False),
    ("2024-03-17", False),
    ("*", False),
    ("*=1", False),
    ("-\u0665", True),
]


@pytest.mark.parametrize(("text", "runs"), TEXTS)
def test_what_a_spreadsheet_would_run(text: str, runs: bool) -> None:
    assert is_formula(text) == runs


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.text(alphabet="'=+-@\t\r5.a", max_size=6), min_size=1, max_size=6))
def test_no_escaped_text_runs_and_each_reads_back(texts: list[str]) -> None:
    assert [unescape(escape(text)) for text in texts] == texts
    assert not any(is_formula(escape(text)) for text in texts)
    assert len({*map(escape, texts)}) == len({*texts}), "no two texts become one"
    columns = Columns.of({f"x{text}": [text] for text in texts} | {text: ["a"] for text in texts if text.strip()})
    back = unescape_columns(escape_columns(columns))
    assert {name: column.cells() for name, column in back.items()} == {n: column.cells() for n, column in columns.items()}


def test_cells_and_names_that_would_run_are_noted_and_audited() -> None:
    release = released()
    assert [note for note in release.certificate.notes if "formula" in note] == [*NOTES, RISK]
    found = ck.audit(release.frame, certificate=release.certificate)
    assert found.ok and [note for note in found.notes if "formula" in note] == NOTES
    kept = tuple(note for note in release.certificate.notes if note != NOTES[1])
    silent = ck.audit(release.frame, certificate=release.certificate.model_copy(update={"notes": kept}))
    assert silent.findings == (f"the certificate does not note: {NOTES[1]}",)


def test_a_release_on_spark_notes_the_same(spark: Any, tmp_path: Path) -> None:
    write_csv(Columns.of(CELLS), tmp_path / "t.csv")
    release = ck.anonymize(tmp_path / "t.csv", SCHEMA, MODELS[:1], ck.Mondrian(), seed=SEED, engine="spark")
    assert [note for note in release.certificate.notes if "formula" in note] == [*NOTES, RISK]
    assert ck.audit(release.frame.toArrow(), certificate=release.certificate).ok


def test_spark_finds_the_same_texts(spark: Any) -> None:
    texts = [text for text, _ in TEXTS]
    frame = spark.createDataFrame([texts], ", ".join(f"c{i} string" for i, _ in enumerate(texts)))
    assert find_formulas(frame, frame.columns) == [f"c{i}" for i, (_, runs) in enumerate(TEXTS) if runs]


def test_a_table_without_formulas_has_no_such_note() -> None:
    release = ck.anonymize(ck.datasets.hospital(60), ck.datasets.hospital_schema(), [ck.KAnonymity(5)], ck.Mondrian())
    assert not any("formula" in note for note in release.certificate.notes) and not release.certificate.escape_formulas


@pytest.mark.parametrize("format", ["csv", "parquet"])
@pytest.mark.parametrize("form", ["generalized", "bucketized"])
def test_escaped_files_are_safe_and_what_was_meant_is_judged(tmp_path: Path, format: str, form: str) -> None:
    requested: dict[str, Any] = {"form": form}
    if form == "bucketized":  # without plain columns, and without classes of equal cells
        requested |= {"models": MODELS[1:], "schema": SCHEMA.model_copy(update={"plain": (), "drop": SCHEMA.plain})}
    plain, release = released(**requested), released(True, **requested)
    release.save(tmp_path / "out", format)
    file = tmp_path / "out" / f"release.{format}"
    for one in (tmp_path / "out").glob(f"*.{format}"):
        texts = [str(cell) for name, column in read(one).items() for cell in (name, *column.cells()) if cell is not None]
        assert any(text.startswith("'") for text in texts) and not any(is_formula(text) for text in texts), one
    certificate = ck.Certificate.from_json((tmp_path / "out" / "certificate.json").read_text())
    assert certificate.escape_formulas and certificate.notes[-1] == ESCAPED and RISK not in certificate.notes
    assert (certificate.guarantees, certificate.loss) == (plain.certificate.guarantees, plain.certificate.loss)
    found = ck.audit(file, certificate=certificate)
    assert found.ok, found
    assert ck.attack(file).findings == ck.attack(plain).findings
    assert load_release(tmp_path / "out").report() == release.report() == (tmp_path / "out" / "report.html").read_text()


def test_frame_csv_and_parquet_share_the_hash_of_the_escaped_text(tmp_path: Path) -> None:
    release = released(True, pd.DataFrame(CELLS))
    release.to_csv(tmp_path / "a.csv")
    release.to_parquet(tmp_path / "a.parquet")
    assert release.frame.columns[0] == "'=age" and pq.read_table(tmp_path / "a.parquet").column_names[0] == "'=age"
    assert "''=gout" in set(release.frame["ill"]) and "'=gout" in release.columns["ill"].cells()
    for one in (release.frame, tmp_path / "a.csv", tmp_path / "a.parquet"):
        assert content_hash(read(one)) == release.certificate.content_sha256
        assert ck.audit(one, certificate=release.certificate).ok


def test_a_recipe_escapes_and_repeats(tmp_path: Path) -> None:
    write_csv(Columns.of(CELLS), tmp_path / "t.csv")
    release = released(True, tmp_path / "t.csv")
    release.save(tmp_path / "out")
    recipe = Recipe.read(tmp_path / "out.private" / "recipe.yaml")
    assert recipe.escape_formulas and run(recipe).certificate.content_sha256 == release.certificate.content_sha256
    file = tmp_path / "out" / "release.csv"
    assert ck.audit(file, SCHEMA, MODELS, escape_formulas=True).ok
    assert not any("minimality: the recipe" in reason for reason in ck.attack(file, recipe=recipe, runs=1).untried)


def test_a_formula_in_a_release_that_is_said_to_be_escaped_is_found(tmp_path: Path) -> None:
    release = released(True)
    release.save(tmp_path / "out", report=False)
    file = tmp_path / "out" / "release.csv"
    file.write_text(file.read_text().replace("'=HYPERLINK", "=HYPERLINK"))
    forged = release.certificate.model_copy(update={"content_sha256": content_hash(read(file))})
    assert ck.audit(file, certificate=forged).findings == (f"{NOTES[0]}, which are not escaped",)
    with pytest.raises(ck.BadInput, match="its content differs from what its certificate states"):
        load_release(tmp_path / "out")


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: released(escape_formulas="yes"), "escape_formulas"),  # type: ignore[arg-type]
        (lambda: released(True, engine="spark"), "formulas cannot be escaped on Spark; leave escape_formulas out"),
        (
            lambda: ck.audit("a.csv", certificate=released(True).certificate, engine="spark"),
            "audited on Spark; audit it without",
        ),
        (lambda: unescape_columns(Columns.of({"=x": [1], "'=x": [2]})), "column '=x': occurs twice, escaped and not escaped"),
        (lambda: Recipe.of({"data": "a.csv", "schema": {}, "models": [], "escape_formulas": "perhaps"}), "escape_formulas"),
    ],
)
def test_what_cannot_be_escaped_or_read_is_refused(ask: Any, said: str) -> None:
    with pytest.raises(ck.BadInput, match=said):
        ask()
