"""SoftStop: its exact law on tiny tables, controls that must fail, what it refuses, and what it attests."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import closeknit as ck
from closeknit.api.run_ledger import STATE
from closeknit.core.coins import Coins, below_exp
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.core.method import ignore_progress
from closeknit.io.frames import from_frame
from closeknit.methods import soft_stop
from closeknit.search import margins
from closeknit.search.advice import Advice
from conftest import SOAK, SOAK_SEED
from exact_law import HardCoins, ScriptedCoins, worst_log_ratio

TREE = ck.Hierarchy.from_nested({"lung": ["flu", "cough"], "other": ["gout"]})
ILL = ["flu", "flu", "gout", "cough", "flu", "gout"]
AGES = {"age": [10, 20, 30, 40, 50, 60]}
K = ck.KAnonymity(2)
VARIANTS: dict[str, tuple[ck.SoftStop, Any, list[Any]]] = {
    "several tests, then the last": (ck.SoftStop(c="1/2", share="1/2"), ck.flat(), [K, ck.TCloseness("ill", 0.4)]),
    "one test": (ck.SoftStop(c=100), ck.flat(), [K, ck.TCloseness("ill", 0.3)]),
    "tree distance": (ck.SoftStop(c="1/4"), TREE, [K, ck.TCloseness("ill", 0.3)]),
    "small eps": (ck.SoftStop(eps="1/4", c="1/8"), TREE, [K, ck.TCloseness("ill", 0.4)]),
    "strict": (ck.SoftStop(c="1/2", split="strict"), ck.flat(), [K, ck.TCloseness("ill", 0.4)]),
    "caps": (ck.SoftStop(), ck.flat(), [K, ck.BetaLikeness("ill", 1)]),
    "basic caps": (ck.SoftStop(), ck.flat(), [K, ck.BetaLikeness("ill", 0.5, kind="basic")]),
    "frequency": (ck.SoftStop(), ck.flat(), [K, ck.LDiversity("ill", 1.5, kind="frequency")]),
    "values": (ck.SoftStop(), ck.flat(), [K, ck.LDiversity("ill", 2)]),
    "another guarantee": (ck.SoftStop(), ck.flat(), [K, ck.LDiversity("ill", 1.5, kind="entropy")]),
    "caps and floors": (ck.SoftStop(), ck.flat(), [K, ck.DeltaDisclosure("ill", 1)]),
    "two guarantees": (ck.SoftStop(c=1), ck.flat(), [K, ck.TCloseness("ill", 0.5), ck.LDiversity("ill", 2)]),
}


def schema_of(kind: Any, **roles: Any) -> ck.Schema:
    return ck.Schema(quasi={"age": ck.numeric(0, 100)}, sensitive={"ill": kind}, **roles)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv(STATE, str(tmp_path / "state"))
    yield tmp_path / "state"


@pytest.mark.parametrize("name", VARIANTS)
def test_no_exchange_inside_a_class_changes_the_odds_of_a_release_by_more_than_eps(name: str) -> None:
    method, kind, models = VARIANTS[name]
    cells = {**AGES, "ill": list("aabbab") if name == "caps and floors" else ILL}
    worst = worst_log_ratio(method, cells, schema_of(kind), models)
    assert 0 < worst <= float(Fraction(str(method.eps))) + 1e-9


def test_ties_are_covered_by_the_shuffle() -> None:
    cells = {"age": [10, 10, 20, 20, 30, 40], "ill": ["flu", "gout", "flu", "gout", "flu", "gout"]}
    method = ck.SoftStop(c="1/2", share="1/2")
    assert 0 < worst_log_ratio(method, cells, schema_of(ck.flat()), [K, ck.TCloseness("ill", 0.3)]) <= 1 + 1e-9


def test_persons_are_exchanged_whole() -> None:
    cells = {"age": [10, 11, 20, 21, 30, 31, 40, 50], "ill": ["flu", "gout", "flu", "flu", "gout", "gout", "flu", "gout"]}
    cells["who"] = ["a", "a", "b", "b", "c", "c", "d", "e"]  # type: ignore[list-item]
    schema, units = schema_of(ck.flat(), person="who"), [[0, 1], [2, 3], [4, 5], [6], [7]]
    for models in ([K, ck.TCloseness("ill", 0.5)], [K, ck.BetaLikeness("ill", 1)], [K, ck.LDiversity("ill", 2)]):
        assert worst_log_ratio(ck.SoftStop(c="1/2"), cells, schema, models, units) <= 1 + 1e-9


def test_the_certificate_counts_persons_alone_with_their_number_of_rows(state: Path) -> None:
    cells = {
        "age": [10, 10, 20, 30, 40, 40, 40],
        "ill": ["flu", "gout", "flu", "gout", "flu", "gout", "flu"],
        "who": [*"aabcddd"],
    }
    schema, models = schema_of(ck.flat(), person="who"), [ck.KAnonymity(4)]
    release = ck.anonymize(Columns.of(cells), schema, models, ck.SoftStop())
    (note,) = [note for note in release.certificate.notes if "eps-transparency" in note]
    assert "does not cover 2 of 4 persons" in note  # a has two rows and d three; b and c have one each
    assert not ck.audit(release.columns, schema, certificate=release.certificate).findings
    plain = ck.anonymize(Columns.of(cells), schema, models, ck.Mondrian())
    assert not any("eps-transparency" in note for note in plain.certificate.notes)


def test_several_attributes_are_exchanged_together() -> None:
    cells = {**AGES, "ill": ILL, "pay": [1, 2, 2, 3, 3, 1]}
    schema = ck.Schema(quasi={"age": ck.numeric(0, 100)}, sensitive={"ill": ck.flat(), "pay": ck.numeric()})
    models = [K, ck.TCloseness("ill", 0.5), ck.TCloseness("pay", 0.5), ck.TCloseness(("ill", "pay"), 0.7)]
    few = {name: column[:5] for name, column in cells.items()}
    assert 0 < worst_log_ratio(ck.SoftStop(c="1/2"), few, schema, models) <= 1 + 1e-9


def test_given_its_noisy_counts_an_advised_run_spends_the_rest_of_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    cells, schema, models = {**AGES, "ill": ILL}, schema_of(ck.flat()), [K, ck.TCloseness("ill", 0.4)]
    table = schema.encode(Columns.of({**cells, "ill": ILL[::-1]}))
    fixed = Advice.of(table, models[1:], ("age",), Fraction(1, 5), 1, Coins(b"noise"))
    monkeypatch.setattr(Advice, "of", lambda *given: fixed)
    monkeypatch.setattr(Advice, "find_hopeless", lambda self, rows, starts: np.diff(starts) == 3)
    method = ck.SoftStop(c="1/2", advice=("age",))
    assert 0 < worst_log_ratio(method, cells, schema, models) <= 0.8 + 1e-9


def test_advice_is_for_quasi_identifiers_of_rows() -> None:
    models = [ck.KAnonymity(5), ck.TCloseness("ill", 0.3)]
    release = ck.anonymize(PATIENTS, schema_of(ck.flat()), models, ck.SoftStop(advice=["age"]))
    assert release.certificate.ok and release.certificate.guarantees[-1].status == "attested"
    with pytest.raises(BadInput, match="is no quasi-identifier"):
        ck.anonymize(PATIENTS, schema_of(ck.flat()), models, ck.SoftStop(advice=["ill"]))
    with pytest.raises(BadInput, match="is no list of columns"):
        ck.SoftStop(advice="age")  # type: ignore[arg-type]


def test_the_control_that_cuts_whenever_it_may_is_caught() -> None:
    models = [K, ck.TCloseness("ill", 0.3)]
    assert worst_log_ratio(ck.SoftStop(), {**AGES, "ill": ILL}, schema_of(ck.flat()), models, coins=HardCoins) == float("inf")


FRESH = {"age": [10, 20, 30, 40, 50, 60, 70], "ill": list("aaaabbb")}


def test_the_control_with_a_fresh_budget_for_each_class_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    models = [ck.KAnonymity(1), ck.TCloseness("ill", 0.5)]
    assert worst_log_ratio(ck.SoftStop(c=1), FRESH, schema_of(ck.flat()), models) <= 1 + 1e-9
    monkeypatch.setattr(soft_stop, "inherit", lambda spent: np.zeros(2 * len(spent), dtype=np.int64))
    assert worst_log_ratio(ck.SoftStop(c=1), FRESH, schema_of(ck.flat()), models) > 1.5


def test_the_control_with_margins_that_jump_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = margins.measure_margins
    monkeypatch.setattr(soft_stop, "measure_margins", lambda *given: 2 * np.minimum(right(*given), 100))
    models = [K, ck.TCloseness("ill", 0.3)]
    assert worst_log_ratio(ck.SoftStop(), {**AGES, "ill": ILL}, schema_of(ck.flat()), models) > 1.4


@pytest.mark.grows
def test_the_law_on_random_tables() -> None:
    draw = random.Random(SOAK_SEED if SOAK else 7)
    for _ in range(200 if SOAK else 3):
        rows = draw.choice([5, 6, 7] if SOAK else [5, 6])
        cells = {
            "age": draw.sample(range(100), rows),
            "sex": [draw.choice("fm") for _ in range(rows)],
            "ill": [draw.choice(["flu", "cough", "gout"]) for _ in range(rows)],
        }
        schema = ck.Schema(
            quasi={"age": ck.numeric(0, 100), "sex": ck.flat()}, sensitive={"ill": draw.choice([ck.flat(), TREE])}
        )
        eps, c = draw.choice(["1/4", "1/2", "1", "2"]), draw.choice(["1/10", "1/2", "2", "20"])
        model = draw.choice(
            [ck.TCloseness("ill", draw.choice([0.2, 0.4, 0.6])), ck.BetaLikeness("ill", draw.choice([0.5, 1, 2]))]
        )
        method = ck.SoftStop(eps=eps, c=c, share=draw.choice(["1/2", "3/4"]), split=draw.choice(["relaxed", "strict"]))
        models = [ck.KAnonymity(draw.choice([1, 2])), model]
        assert worst_log_ratio(method, cells, schema, models) <= float(Fraction(eps)) + 1e-9, (cells, method, models)


def test_coins_are_exact_beyond_the_reach_of_floats() -> None:
    coins = Coins(b"key")
    for x in (Fraction(1, 3), Fraction(5, 2)):
        share = np.mean([coins.stops(x, f"{x} {i}") for i in range(20_000)])
        assert abs(share - np.exp(-float(x))) < 0.015
    assert not any(coins.stops(Fraction(2000), str(i)) for i in range(100))
    zeros = type("Zeros", (), {"digest": lambda self, size: bytes(size)})()
    assert below_exp(Fraction(2000), bytes(8), zeros), "e^-x is above 0 however large x is"
    draws = [coins.geometric(Fraction(1, 2), str(i)) for i in range(4000)]
    assert abs(np.mean(draws)) < 0.15 and abs(np.mean(np.array(draws) == 0) - np.tanh(0.25)) < 0.03


PATIENTS = pa.table({"age": list(range(20, 80)), "ill": ["flu", "gout", "cough"] * 20})


def test_the_first_run_on_a_table_is_attested_and_the_second_is_not(state: Path) -> None:
    models = [ck.KAnonymity(5), ck.TCloseness("ill", 0.3)]
    first = ck.anonymize(PATIENTS, schema_of(ck.flat()), models, ck.SoftStop())
    assert first.certificate.ok and first.certificate.guarantees[-1].status == "attested"
    assert first.certificate.guarantees[-1].text == "eps-transparent, eps = 1"
    with pytest.warns(UserWarning, match="is not attested: the method has run on this table before"):
        second = ck.anonymize(PATIENTS, schema_of(ck.flat()), models, "soft_stop")
    assert [guarantee.model for guarantee in second.certificate.guarantees] == [
        guarantee.model for guarantee in first.certificate.guarantees[:-1]
    ]
    with pytest.raises(BadInput, match="eps-transparent, eps = 1 cannot be attested"):
        ck.anonymize(PATIENTS, schema_of(ck.flat()), [*models, ck.Transparency(1)], ck.SoftStop())
    assert (state / "runs").stat().st_mode & 0o777 == 0o600


def test_a_given_seed_is_not_attested_and_a_refusal_is_not_a_run() -> None:
    models = [ck.KAnonymity(5), ck.TCloseness("ill", 0.3)]
    with pytest.raises(ck.Unsatisfiable):
        ck.anonymize(PATIENTS, schema_of(ck.flat()), [ck.KAnonymity(100)], ck.SoftStop())
    with pytest.warns(UserWarning, match="the seed was given"):
        given = ck.anonymize(PATIENTS, schema_of(ck.flat()), models, ck.SoftStop(), seed=2**70)
    assert len(given.certificate.guarantees) == 2
    with pytest.warns(UserWarning):
        again = ck.anonymize(PATIENTS, schema_of(ck.flat()), models, ck.SoftStop(), seed=2**70)
    assert again.frame == given.frame


def test_comparisons_see_a_shuffled_table_and_are_no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    right = ck.SoftStop.run
    monkeypatch.setattr(ck.SoftStop, "run", lambda self, table, *rest: seen.append(table) or right(self, table, *rest))
    models = [ck.KAnonymity(5), ck.TCloseness("ill", 0.3)]
    rows = ck.compare(PATIENTS, schema_of(ck.flat()), models, [ck.SoftStop(), ck.Mondrian()], seed=2**70)
    assert rows is not None
    whole = [table for table in seen if len(table) == 60]
    pairs = {(int(q), int(s)) for table in whole for q, s in zip(table.quasi[:, 0], table.sensitive[:, 0], strict=True)}
    codes = schema_of(ck.flat()).encode(from_frame(PATIENTS))
    true = {(int(q), int(s)) for q, s in zip(codes.quasi[:, 0], codes.sensitive[:, 0], strict=True)}
    assert whole and pairs != true
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ck.anonymize(PATIENTS, schema_of(ck.flat()), models, ck.SoftStop()).certificate.ok


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"suppress": 0.1}, "cannot suppress rows"),
        ({"schema": ck.Schema(quasi={"age": ck.numeric()}, plain=["ill"])}, "is plain"),
        ({"models": [K, ck.LDiversity("ill", 2, kind="recursive", c=2)]}, None),
        ({"engine": "spark"}, "cannot run on Spark"),
    ],
)
def test_what_the_proof_does_not_cover_is_refused(change: dict[str, Any], message: str | None) -> None:
    given = {"schema": schema_of(ck.flat()), "models": [K], **change}
    if message is None:
        assert ck.anonymize(PATIENTS, method=ck.SoftStop(), **given).certificate.ok
        return
    with pytest.raises(BadInput, match=message):
        ck.anonymize(PATIENTS, method=ck.SoftStop(), **given)


def test_other_methods_cannot_claim_it_and_an_audit_says_what_it_cannot_check(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is a property of a method, and mondrian does not have it"):
        ck.anonymize(PATIENTS, schema_of(ck.flat()), [K, ck.Transparency(1)], ck.Mondrian())
    with pytest.raises(BadInput, match="about one run on a table"):
        ck.Windowed("soft_stop", schema_of(ck.flat()), [K], omega=20, advance=5)
    release = ck.anonymize(PATIENTS, schema_of(ck.flat()), [ck.KAnonymity(5)], ck.SoftStop())
    release.save(tmp_path / "out")
    found = ck.audit(tmp_path / "out")
    assert not found.ok and found.guarantees[-1].status == "not checkable"
    assert "cannot be seen in what was written" in str(found.guarantees[-1].why)


def test_a_class_is_cut_as_far_as_k_allows_where_no_value_is_at_stake() -> None:
    release = ck.anonymize(PATIENTS, schema_of(ck.flat()), [ck.KAnonymity(5)], ck.SoftStop())
    assert release.certificate.classes.largest < 10
    table = schema_of(ck.flat()).encode(from_frame(PATIENTS))
    coins = ScriptedCoins(())
    ck.SoftStop().cut_table(table, [ck.KAnonymity(5)], coins, ignore_progress)
    assert coins.tested == []


def test_runs_are_counted_by_the_cells_of_the_table(state: Path) -> None:
    """Another order of columns or rows, shifted dates and an interrupted run do not make a table new."""
    cells = {"age": list(range(20, 80)), "sex": ["f", "m"] * 30, "ill": ["flu", "gout", "cough"] * 20}
    quasi = {"age": ck.numeric(0, 100), "sex": ck.flat()}
    schema = ck.Schema(quasi=quasi, sensitive={"ill": ck.flat()})

    def stop(what: str, share: float) -> None:
        if what == "writing":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ck.anonymize(pa.table(cells), schema, [ck.KAnonymity(5)], ck.SoftStop(), progress=stop)
    other = ck.Schema(quasi=dict(reversed(quasi.items())), sensitive={"ill": ck.flat()})
    turned = pa.table({name: column[::-1] for name, column in cells.items()})
    with pytest.warns(UserWarning, match="has run on this table before"):
        assert len(ck.anonymize(turned, other, [ck.KAnonymity(5)], ck.SoftStop()).certificate.guarantees) == 1


def test_only_the_method_itself_attests_it(tmp_path: Path) -> None:
    models = [ck.KAnonymity(5), ck.TCloseness("ill", 0.4)]
    pq.write_table(PATIENTS, tmp_path / "patients.parquet")
    release = ck.anonymize(tmp_path / "patients.parquet", schema_of(ck.flat()), models, ck.SoftStop())
    release.save(tmp_path / "out")
    later = ck.apply(release.recoding, PATIENTS, suppress=1)
    assert [guarantee.status for guarantee in later.certificate.guarantees] == ["recomputable", "recomputable"]
    with pytest.warns(UserWarning, match="the seed was given"):  # the recipe repeats the release
        again = ck.run(tmp_path / "out.private" / "recipe.yaml")
    assert again.certificate.content_sha256 == release.certificate.content_sha256
    with pytest.raises(BadInput, match="is a property of a method"):
        ck.Windowed(ck.Mondrian(), schema_of(ck.flat()), [K, ck.Transparency(1)], omega=20, advance=5)
    for form in (ck.generalized(snap=True), ck.generalized(cells="stars")):
        with pytest.raises(BadInput, match="writes many classes alike"):
            ck.anonymize(PATIENTS, schema_of(ck.flat()), models, ck.SoftStop(), form=form)


def test_a_table_smaller_than_k_meets_k_map_in_its_population() -> None:
    people, few = pa.table({"age": [30, 40] * 10}), pa.table({"age": [30, 30, 40, 40]})
    schema = ck.Schema(quasi={"age": ck.numeric()})
    release = ck.anonymize(few, schema, [ck.KMap(5, population=people)], ck.Mondrian(), seed=2**80)
    assert release.certificate.guarantees[0].met


def test_comparisons_shuffle_by_a_secret_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, ...]] = []
    right = ck.SoftStop.run

    def run(self: ck.SoftStop, table: Any, *rest: Any) -> Any:
        seen.append(tuple(table.sensitive[:, 0].tolist()))
        return right(self, table, *rest)

    monkeypatch.setattr(ck.SoftStop, "run", run)
    for _ in range(2):
        ck.compare(PATIENTS, schema_of(ck.flat()), [ck.KAnonymity(5)], [ck.SoftStop(), ck.Mondrian()], seed=2**70)
    whole = [codes for codes in seen if len(codes) == 60]
    assert len(set(whole)) > 1, "a fixed shuffle would be a function of who has which value"
