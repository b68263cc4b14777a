"""What a hostile look at attacks, frontier, choice of k and reports found: each was wrong once."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import closeknit as ck
from closeknit.api.reporting import load_release
from closeknit.attacks.candidate_rows import candidate_rows
from closeknit.attacks.intersection import intersection
from closeknit.attacks.population import population_linkage
from closeknit.attacks.presence import delta_presence
from closeknit.attacks.private_attacks import with_original
from closeknit.core.columns import Columns
from closeknit.core.covering import Covering
from closeknit.release import samples

SCHEMA = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})
SEED = 2**64


def of_persons() -> tuple[Columns, ck.Schema, ck.Release]:
    """Four people with six rows, each of which gives the secret away by itself."""
    schema = SCHEMA.model_copy(update={"person": "who"})
    cells = {"age": [30] * 4 + [60] * 2, "ill": ["flu"] * 4 + ["gout"] * 2, "who": ["a", "a", "b", "b", "c", "d"]}
    table = Columns.of(cells)
    return table, schema, ck.anonymize(table, schema, [ck.KAnonymity(2)], ck.Mondrian(), seed=SEED)


def test_people_who_are_given_away_by_single_rows_are_counted_once() -> None:
    table, schema, release = of_persons()
    both, rows = intersection(release, release, table, schema), intersection(release, None, table, schema)
    assert (both.details["victims"], both.details["given_away"], both.details["alone"]) == (4, 4, 4)
    assert (rows.details["victims"], rows.details["given_away"], rows.details["alone"]) == (2, 2, 2)


def test_no_person_in_both_releases_is_reported() -> None:
    def release(ages: list[int]) -> ck.Release:
        return ck.anonymize(
            Columns.of({"age": ages, "ill": ["flu", "gout"]}), SCHEMA, [ck.KAnonymity(2)], ck.Mondrian(), seed=SEED
        )

    found = intersection(release([20, 21]), release([70, 71]), Columns.of({"age": [20, 70]}), SCHEMA)
    assert found.number is None
    assert found.sentence.endswith("no one is in both.")


def test_rows_of_the_table_are_not_called_people() -> None:
    table, schema, release = of_persons()
    sentence = candidate_rows(release, table, schema).sentence
    assert sentence.startswith("Each of 6 rows of the table has at least 2 candidates in the release;")


def test_one_person_of_a_population_is_reported_in_the_singular() -> None:
    table = Columns.of({"age": [30, 31, 70, 71], "ill": ["flu", "gout"] * 2})
    release = ck.anonymize(table, SCHEMA, [ck.KAnonymity(2)], ck.Mondrian(), seed=SEED)
    alone = Columns.of({"age": [30]})
    assert population_linkage(release, alone).sentence.startswith("Each row matches at least 1 person of the population")
    assert "1 person and the release at least as many rows" in delta_presence(release, alone).sentence
    many = Columns.of({"age": [30, 30, 31, 31, 31, 70, 71, 99]})
    assert "1 is certainly not; without the release" in delta_presence(release, many).sentence


@pytest.mark.parametrize("ks", [5, []])
def test_ks_that_name_no_k_are_refused(ks: object) -> None:
    table = Columns.of({"age": [30, 31, 70, 71], "ill": ["flu", "gout"] * 2})
    with pytest.raises(ck.BadInput, match="names no k"):
        ck.choose_k(table, SCHEMA, ks=ks)  # type: ignore[arg-type]


def test_k_is_chosen_by_one_secret() -> None:
    with pytest.raises(ck.BadInput, match="is not one column"):
        ck.choose_k(ck.datasets.hospital(60), ck.datasets.hospital_schema(), column=("disease", "stay"), ks=[2])  # type: ignore[arg-type]


def test_baskets_may_be_one_name_and_must_be_names() -> None:
    table = Columns.of({"age": [30, 31, 70, 71], "ill": ["flu;gout", "gout"] * 2})
    release = ck.anonymize(table, SCHEMA, [ck.KAnonymity(2)], ck.Mondrian(), seed=SEED)
    assert ck.attack(release, baskets="ill") == ck.attack(release, baskets=["ill"])
    with pytest.raises(ck.BadInput, match="baskets=3 is not a list of columns"):
        ck.attack(release, baskets=3)  # type: ignore[arg-type]


def test_the_table_of_another_release_is_refused() -> None:
    table = Columns.of({"age": [30, 31, 70, 71], "ill": ["flu", "gout"] * 2})
    release = ck.anonymize(table, SCHEMA, [ck.KAnonymity(2)], ck.Mondrian(), seed=SEED)
    with pytest.raises(ck.BadInput, match="has 3 rows, but the release was computed from 4"):
        ck.attack(release, original=table.take(np.arange(3)), schema=SCHEMA)


@pytest.mark.parametrize(
    "text", ["class\nabc\n\n\n\n", "foo\n0\n0\n0\n0\n", "class\n-7\n0\n0\n0\n", "class\n99999999999\n0\n0\n0\n"]
)
def test_classes_that_are_none_are_named(text: str, tmp_path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("age,ill\n30,flu\n31,gout\n70,flu\n71,gout\n")
    ck.anonymize(file, SCHEMA, [ck.KAnonymity(2)], ck.Mondrian(), seed=SEED).save(tmp_path / "out", report=False)
    recipe = tmp_path / "out.private" / "recipe.yaml"
    assert load_release(tmp_path / "out", recipe).partition.tolist() == [0, 0, 1, 1]
    recipe.with_name("classes.csv").write_text(text)
    with pytest.raises(ck.BadInput, match=r"classes\.csv"):
        load_release(tmp_path / "out", recipe)


def test_a_level_that_is_attested_cannot_be_matched() -> None:
    table, schema, _ = of_persons()
    with pytest.raises(ck.BadInput, match="it is attested, or has no bound"):
        ck.frontier(table, schema, [ck.KAnonymity(2)], ["mondrian", "stack_and_deal"], match="k")


def test_a_class_before_and_after_is_looked_for_once_in_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no class is found (secrets were changed), the release was read again for each class that was tried."""
    table = Columns.of({"age": list(range(60)), "ill": [f"v{i}" for i in range(60)]})
    release = ck.anonymize(table, SCHEMA, [ck.KAnonymity(1)], ck.Mondrian(), seed=SEED)
    other = Columns.of({"age": table["age"].cells(), "ill": ["other"] * 60})
    requested: list[int] = []
    of = samples._Texts.of
    monkeypatch.setattr(samples._Texts, "of", lambda self, rows: requested.append(1) or of(self, rows))
    assert samples.find_class(other, SCHEMA, release, release.partition) is None
    assert len(requested) <= 60 + 2 * samples.TRIED
    found = samples.find_class(table, SCHEMA, release, release.partition)
    assert found is not None
    assert found.rows == 1


def test_masks_of_prefixes_cover_what_begins_with_them() -> None:
    schema = ck.Schema(quasi={"zip": ck.prefix()})
    people = Columns.of({"zip": ["123", "124", "199", "299"]})
    written = Columns.of({"zip": ["12*", "1**", "3**", "299", "*"]})
    assert Covering.of(written, people, schema, ["zip"]).people_in_boxes.tolist() == [2, 3, 0, 1, 4]


def test_classes_without_room_for_their_deals_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Columns.of({"age": [*range(12)], "ill": [f"v{i}" for i in range(12)]})

    def run(columns: Columns) -> ck.Release:
        return ck.anonymize(columns, SCHEMA, [ck.KAnonymity(12)], ck.Mondrian(), seed=SEED)

    def found() -> list[str]:
        release, again = run(table), lambda columns: run(columns).columns
        made = with_original(release, table, SCHEMA, rerun=again, class_of=release.partition, runs=2)
        return [each.attack for each in made]

    assert "minimality" in found()
    monkeypatch.setattr(sys.modules["closeknit.attacks.private_attacks"], "ROOM", 100)
    assert "minimality" not in found()
