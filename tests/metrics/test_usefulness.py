"""Utility where people look: distributions and associations by hand, a classifier, and what report and page show of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats.contingency import association
from typer.testing import CliRunner

import closeknit as ck
from closeknit.checks.tables import edge_tables, random_tables
from closeknit.cli.commands import app
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.io.files import write_csv
from closeknit.metrics import cramers_v, release_accuracy, usefulness
from closeknit.metrics.usefulness import BINS, MOST_COLUMNS
from closeknit.report.utility_charts import distribution_svg, matrix_svg, utility_pictures
from closeknit.web.desk.result import pictures, result

HOSPITAL = ck.datasets.hospital_schema()


@given(hnp.arrays(np.int64, st.tuples(st.integers(2, 6), st.integers(2, 6)), elements=st.integers(1, 50)))
def test_association_is_that_of_scipy(joint: Any) -> None:
    assert cramers_v(joint.astype(float)) == pytest.approx(association(joint, method="cramer"), abs=1e-9)


def test_a_release_of_exact_cells_changes_nothing() -> None:
    table = ck.datasets.hospital(120)
    found = usefulness(ck.anonymize(table, HOSPITAL, [ck.KAnonymity(1)], ck.Mondrian()), table, HOSPITAL)
    assert found.change == pytest.approx(0, abs=1e-12)
    assert max(one.distance for one in found.distributions) == pytest.approx(0, abs=1e-12)
    assert [one.column for one in found.distributions] == [*HOSPITAL.quasi, *HOSPITAL.sensitive]


def test_a_cell_counts_by_its_share_of_each_bin() -> None:
    table = Columns.of({"age": [0, 10, 20, 40], "sex": ["f", "m", None, "f"], "ill": ["flu", "flu", "gout", "gout"]})
    schema = ck.Schema(quasi={"age": ck.numeric(0, 40), "sex": ck.flat()}, sensitive={"ill": ck.flat()})
    written = Columns.of(
        {"age": ["[0, 20]", "[0, 20]", "40", "40"], "sex": ["*", "*", None, None], "ill": ["flu", "flu", "gout", "gout"]}
    )
    found = usefulness(ck.generalized().read(written, schema), table, schema)
    age, sex, ill = found.distributions
    edges = [float(name.split(" to ")[1]) for name in age.bins]
    inside = [max(min(high, 20) - low, 0) / 20 for low, high in zip([0, *edges[:-1]], edges, strict=True)]
    expected = [share / 2 + (high == 40) / 2 for share, high in zip(inside, edges, strict=True)]
    assert age.published == pytest.approx(expected) and sum(age.published) == pytest.approx(1)
    assert sex.bins == ("f", "m", "missing") and sex.original == (0.5, 0.25, 0.25)
    assert sex.published == (0.25, 0.25, 0.5) and sex.distance == 0.25
    assert ill.distance == 0


def test_columns_that_do_not_line_up_are_combined_alike() -> None:
    table = Columns.of({"sex": ["f", "m"] * 4, "ill": ["flu", "gout"] * 4})
    schema = ck.Schema(quasi={"sex": ck.flat()}, sensitive={"ill": ck.flat()})
    release = ck.anonymize(table, schema, [ck.LDiversity("ill", 2)], ck.Anatomy(l=2), seed=2**80)
    found = usefulness(release, table, schema)
    assert found.original[0][1] == 1 and found.published[0][1] == pytest.approx(0)
    assert all(one.distance == 0 for one in found.distributions) and found.change == pytest.approx(1)


def test_many_values_and_columns_are_few_bins() -> None:
    rng = np.random.default_rng(1)
    cells = {f"c{i:02}": [f"v{value}" for value in rng.integers(0, 60, 80)] for i in range(MOST_COLUMNS + 2)}
    schema = ck.Schema(quasi={name: ck.flat() for name in cells})
    table = Columns.of(cells)
    found = usefulness(ck.anonymize(table, schema, [ck.KAnonymity(40)], ck.Mondrian(), seed=2**80), table, schema)
    assert len(found.columns) == len(found.original) == MOST_COLUMNS and len(found.distributions) == MOST_COLUMNS + 2
    assert all(len(one.bins) == BINS and sum(one.original) == pytest.approx(1) for one in found.distributions)


def test_every_table_can_be_compared() -> None:
    """The report of a certified release is written whatever the table is like."""
    for case in (*edge_tables(), *random_tables(5, seed=3)):
        release = ck.anonymize(case.columns, case.schema, [ck.KAnonymity(1)], ck.Mondrian(), seed=2**80, allow_vacuous=True)
        found = usefulness(release, case.columns, case.schema)
        for one in found.distributions:
            assert sum(one.original) == pytest.approx(1) and sum(one.published) == pytest.approx(1), case.name
        assert all(0 <= value <= 1 for matrix in (found.original, found.published) for row in matrix for value in row)


def test_charts_escape_and_cut_texts() -> None:
    found = usefulness_of_odd_names()
    drawn = [*utility_pictures(found).values(), *map(distribution_svg, found.distributions)]
    for picture in [*drawn, matrix_svg(found.columns, found.original, "original")]:
        assert "<script" not in picture and "\x07" not in picture and picture.count("<svg") == 1


def usefulness_of_odd_names() -> Any:
    odd = "<script>alert(1)</script>\x07"
    table = Columns.of({odd: ["<script>", "b"] * 3, "ill": ["flu", "gout", "flu"] * 2})
    schema = ck.Schema(quasi={odd: ck.flat()}, sensitive={"ill": ck.flat()})
    return usefulness(ck.anonymize(table, schema, [ck.KAnonymity(3)], seed=2**80), table, schema)


def test_a_classifier_learns_less_from_a_release() -> None:
    table = ck.datasets.hospital(200)
    releases = [ck.anonymize(table, HOSPITAL, [ck.KAnonymity(k)], ck.Mondrian(), seed=2**80) for k in (1, 100)]
    exact, coarse = (release_accuracy(release, table, HOSPITAL, "disease") for release in releases)
    assert exact.original == coarse.original and exact.tested == 200
    assert exact.release.accuracy == pytest.approx(exact.original.accuracy, abs=0.1)
    assert coarse.release.accuracy < coarse.original.accuracy - 0.05 and "these rows themselves" in str(coarse)
    with pytest.raises(BadInput, match="is a number, not a category"):
        release_accuracy(releases[0], table, HOSPITAL, "charge")


def test_report_page_and_command_show_it(tmp_path: Path) -> None:
    table = ck.datasets.hospital(100)
    write_csv(table, tmp_path / "t.csv")
    release = ck.anonymize(tmp_path / "t.csv", HOSPITAL, [ck.KAnonymity(5)], ck.Mondrian(), seed=2**80)
    release.save(tmp_path / "out")
    page = (tmp_path / "out.private" / "report.html").read_text(encoding="utf-8")
    assert "What the release still shows" in page and "Associations of columns" in page and "leaves open" in page
    assert "Learning from the release" not in page, "no classifier is trained unless a target is chosen"
    public = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "What the release still shows" not in public and "leaves open" in public
    found = result(tmp_path / "out")
    assert found.usefulness is not None and "leaves open" in found.loss_means
    assert {"distributions", "associations"} <= set(pictures(tmp_path / "out"))
    words = ["report", str(tmp_path / "out"), "--private", str(tmp_path / "out.private" / "recipe.yaml"), "--force"]
    assert CliRunner().invoke(app, [*words, "--target", "disease"]).exit_code == 0
    assert "Learning from the release" in (tmp_path / "out.private" / "report.html").read_text(encoding="utf-8")
    (missing,) = [why for why in release.private_record(target="stay").missing if "What a classifier learns" in why]
    assert "column 'stay': is a number" in missing
    refused = CliRunner().invoke(app, ["report", str(tmp_path / "out"), "--target", "disease"])
    assert refused.exit_code == 2 and "belong to the private report" in refused.output
