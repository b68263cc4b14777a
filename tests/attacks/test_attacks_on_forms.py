"""Attacks on releases that keep cells exact: each of these once passed an audit, raised something else, or broke its word."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import closeknit as ck
from closeknit.core.certificate import Certificate
from closeknit.core.columns import Column, Columns
from closeknit.io.canonical import content_hash
from closeknit.io.files import read
from closeknit.models import DiverseSlicing
from closeknit.search import repair

SEED = 2**70
ILLS = ck.Schema(quasi={"age": ck.numeric(), "zip": ck.flat()}, sensitive={"ill": ck.flat()})
PEOPLE = pl.DataFrame(
    {
        "age": [20 + 7 * i % 40 for i in range(60)],
        "zip": [("100", "101", "200")[i * i % 3] for i in range(60)],
        "ill": ["abcdef"[5 * i % 6 if i % 7 else i % 6] for i in range(60)],
    }
)
DIVERSE = [ck.LDiversity("ill", 2, "frequency")]


def lined_up(release: Any) -> pl.DataFrame:
    """The same buckets with each person's own secret in their row: the table in clear."""
    people: dict[int, list[tuple[int, str, str]]] = defaultdict(list)
    for person, bucket in zip(PEOPLE.rows(), release.partition.tolist(), strict=True):
        people[bucket].append(person)
    frame = pl.DataFrame({name: release.columns[name].cells() for name in release.columns})
    rows = []
    for (bucket,), part in frame.group_by("bucket", maintain_order=True):
        content = sorted(map(str, part["age"])), sorted(part["zip"]), sorted(part["ill"])
        own = next(p for p in people.values() if tuple(sorted(map(str, cells)) for cells in zip(*p, strict=True)) == content)
        rows += [(bucket, str(age), zipcode, ill) for age, zipcode, ill in sorted(own)]
    return pl.DataFrame(rows, schema=["bucket", "age", "zip", "ill"], orient="row")


def forged(release: Any, frame: pl.DataFrame, **changed: Any) -> Certificate:
    """The certificate with other words, and a hash that fits."""
    words = {**json.loads(release.certificate.to_json()), **changed, "content_sha256": content_hash(read(frame))}
    return Certificate.from_json(json.dumps(words))


def test_a_table_whose_rows_line_up_does_not_pass_as_bucketized() -> None:
    release = ck.anonymize(PEOPLE, ILLS, [], ck.Anatomy(l=3), seed=SEED)
    clear = lined_up(release)
    foreign = ck.audit(clear, ILLS, DIVERSE, form="bucketized")
    assert not foreign.ok and "are not sorted" in foreign.findings[0]
    assert not ck.audit(clear, certificate=forged(release, clear)).ok
    assert ck.audit(release.frame, ILLS, DIVERSE, form="bucketized").ok


def test_cells_next_to_the_secret_cannot_be_declared_in_another_group() -> None:
    cells = {"bucket": ["1"] * 4, "age": ["1", "2", "3", "4"], "zip": ["a", "b", "c", "d"], "ill": ["x", "y", "x", "y"]}
    truly = ck.audit(pl.DataFrame(cells), ILLS, DIVERSE, form=ck.sliced([["age"], ["zip", "ill"]]))
    assert truly.guarantees[0].status == "not met"
    reported = ck.audit(pl.DataFrame(cells), ILLS, DIVERSE, form=ck.sliced([["age"], ["zip"], ["ill"]]))
    assert reported.findings == ("bucket 1: the cells of ill are not sorted, so rows may line up with others",)


@pytest.mark.parametrize("cells", [[1.0, 2.0], [True, False], [1e15, 2e15], [0.5, 3.0]], ids=str)
@pytest.mark.parametrize("role", ["plain", "both"])
@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_typed_cells_next_to_a_secret_are_audited_from_a_file(cells: list[Any], role: str, format: str, tmp_path: Path) -> None:
    frame = PEOPLE.select("age", "ill").with_columns(pl.Series("p", [cells[i // 3 % 2] for i in range(60)]))
    quasi, sensitive = {"age": ck.numeric()}, {"ill": ck.flat()}
    if role == "plain":
        schema = ck.Schema(quasi=quasi, sensitive=sensitive, plain=["p"])
    else:
        schema = ck.Schema(quasi={**quasi, "p": ck.flat()}, sensitive={**sensitive, "p": ck.flat()})
    release = ck.anonymize(frame, schema, DIVERSE, ck.Slicing(columns=[["age"], ["p", "ill"]]), seed=SEED)
    release.save(tmp_path / "out", format=format, report=False)
    audit = ck.audit(tmp_path / f"out/release.{format}", certificate=tmp_path / "out/certificate.json")
    assert audit.ok, audit.findings


def test_secrets_that_differ_in_spelling_alone_are_one_value_for_every_weight() -> None:
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"pay": ck.numeric()})
    cells = {"bucket": ["1", "1", "2", "2"], "age": ["1", "2", "3", "4"], "pay": ["1", "1.0", "2", "2.0"]}
    for weight in ("local", "size", "paper"):
        audit = ck.audit(pl.DataFrame(cells), schema, [DiverseSlicing("pay", 2, weight)], form="bucketized")
        assert not audit.ok and audit.guarantees[0].status != "recomputed"


def test_weighed_diversity_is_bounded_by_an_audit_with_its_certificate() -> None:
    release = ck.anonymize(PEOPLE, ILLS, [], ck.Slicing(l=2, diverse="size"), seed=SEED)
    assert release.certificate.guarantees[0].status == "attested"
    assert ck.audit(release.frame, certificate=release.certificate).guarantees[0].status == "recomputed"


def test_a_certificate_whose_groups_name_an_unknown_column_is_refused() -> None:
    release = ck.anonymize(PEOPLE, ILLS, [], ck.Slicing(l=2), seed=SEED)
    certificate = forged(release, release.frame, form={"sliced": {"columns": [["age"], ["zip", "ill", "none"]]}})
    with pytest.raises(ck.BadInput, match="'none'"):
        ck.audit(release.frame, certificate=certificate)


def test_a_table_with_a_column_called_bucket_can_be_sliced() -> None:
    schema = ck.Schema(quasi={"age": ck.numeric(), "bucket": ck.flat()}, sensitive={"ill": ck.flat()})
    table = PEOPLE.rename({"zip": "bucket"})
    with pytest.raises(ck.BadInput, match="number='group'"):
        ck.anonymize(table, schema, [], ck.Slicing(l=2), seed=SEED)
    release = ck.anonymize(table, schema, [], ck.Slicing(l=2, number="group"), seed=SEED)
    assert next(iter(release.columns)) == "group" and ck.audit(release.frame, certificate=release.certificate).ok


def test_the_number_of_a_bucket_needs_a_name() -> None:
    with pytest.raises(ck.BadInput, match="has no name"):
        ck.anonymize(PEOPLE, ILLS, DIVERSE, ck.Mondrian(), form=ck.bucketized(" "), seed=SEED)


def test_an_identifier_of_the_same_name_is_not_the_number_of_the_bucket() -> None:
    table = PEOPLE.with_columns(pl.int_range(60).alias("bucket"))
    schema = ck.Schema(identifier=["bucket"], quasi=ILLS.quasi, sensitive=ILLS.sensitive)
    release = ck.anonymize(table, schema, DIVERSE, ck.Mondrian(), form="bucketized", seed=SEED)
    assert ck.audit(release.frame, schema, DIVERSE, form="bucketized").ok


@pytest.mark.parametrize("cuts", ["strict", "relaxed", "random", "spread", "near"])
@pytest.mark.parametrize("diverse", ["local", "size"])
def test_no_bucket_is_smaller_than_asked(cuts: str, diverse: str) -> None:
    method = ck.Slicing(l=2, cuts=cuts, diverse=diverse, min_bucket=7)
    assert ck.anonymize(PEOPLE, ILLS, [], method, seed=SEED).certificate.classes.smallest >= 7
    with pytest.raises(ck.Unsatisfiable, match="7"):
        ck.anonymize(PEOPLE.head(6), ILLS, [], method, seed=SEED)


def test_pairs_of_classes_with_many_values_are_judged_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[int] = []
    pairs = repair.Classes.pairs

    def counted(classes: Any, one: Any, other: Any) -> Any:
        found = pairs(classes, one, other)
        judged.append(max(len(histogram.values) for histogram in found.histograms.values()))
        return found

    monkeypatch.setattr(repair.Classes, "pairs", counted)
    monkeypatch.setattr(repair, "COUNTED", 1 << 16)
    rng, rows = np.random.default_rng(1), 3000
    drawn = {name: Column(np.arange(top), rng.integers(0, top, rows)) for name, top in {"q": 40, "r": 40, "s": 20}.items()}
    schema = ck.Schema(quasi={"q": ck.flat(), "r": ck.flat()}, sensitive={"s": ck.flat()})
    method = ck.Slicing(columns=[["q"], ["r", "s"]], l=3, cuts="random", bucket=50)
    assert ck.anonymize(Columns(drawn, rows), schema, [], method, seed=SEED).certificate.ok
    assert judged and max(judged) <= 4 << 16


def test_a_changed_secret_is_drawn_again_under_the_same_seed() -> None:
    """With the same words whoever compares two releases would see the changed cell, and know both secrets for certain."""
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": {"tree": list("abcdef")}})
    ages, ills = list(range(300)), ["abcdef"[i * i % 6] for i in range(300)]

    def written(secrets: list[str]) -> list[object]:
        table = Columns.of({"age": ages, "ill": secrets})
        models, form = [ck.PosteriorBound("ill", 4)], ck.perturbed("1/3")
        return ck.anonymize(table, schema, models, ck.Mondrian(), form=form, seed=SEED).columns["ill"].cells()

    first = written(ills)
    assert written(ills) == first
    second = written(["f" if ills[0] != "f" else "a", *ills[1:]])
    assert sum(one != other for one, other in zip(first, second, strict=True)) > 100
