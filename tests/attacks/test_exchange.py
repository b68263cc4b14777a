"""Exchange: what an adversary who knows the method learns about two members of a class, as an estimate with intervals."""

from __future__ import annotations

import numpy as np
import pytest

import closeknit as ck
from closeknit.api.repeating import build_repeat
from closeknit.attacks.exchange import Repeat, Repeated, exchange, measure_gain
from closeknit.attacks.intervals import mean_interval, share_interval
from closeknit.core.columns import Columns
from closeknit.io.canonical import content_hash

SCHEMA = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})


def table_of(rows: int, seed: int = 1) -> Columns:
    rng = np.random.default_rng(seed)
    return Columns.of(
        {"age": rng.integers(20, 60, rows).tolist(), "ill": rng.choice(["flu", "gout", "HIV", "cold"], rows).tolist()}
    )


def test_the_share_of_excluded_exchanges_is_the_one_of_all_pairs() -> None:
    """Every pair is tried by hand: persons have equal weight, then each partner with another value."""
    table = table_of(30)
    repeat = build_repeat(SCHEMA, [ck.KAnonymity(3), ck.TCloseness("ill", 0.3)], ck.Microaggregation(), seed=2**64)
    release = repeat(table, 0)
    assert release is not None
    goal, ill = content_hash(release.columns), np.array(table["ill"].cells())
    per_person = []
    for person in range(table.rows):
        partners = [j for j in range(table.rows) if release.class_of[j] == release.class_of[person] and ill[j] != ill[person]]
        other = []
        for partner in partners:
            source = np.arange(table.rows)
            source[[person, partner]] = partner, person
            again = repeat(Columns({**table.columns, "ill": table["ill"].take(source)}, table.rows), 0)
            other.append(again is None or content_hash(again.columns) != goal)
        per_person += [np.mean(other)] if other else []
    truth = float(np.mean(per_person))
    assert 0.05 < truth < 0.95
    found = measure_gain(table, SCHEMA, repeat, runs=900, seed=3)
    assert found is not None and found.seed_known_pairs >= 250 and found.runs <= 900
    assert found.seed_known_low <= truth / 2 <= found.seed_known_high
    assert found.seed_known == pytest.approx(truth / 2, abs=0.05)


def flip_classes(probability_same: float) -> Repeat:
    """A method of one class, or of two at random: always two with other seeds unless the first row has flu."""

    def repeat(columns: Columns, number: int) -> Repeated:
        rng = np.random.default_rng(number)
        whole = number == 0 or rng.random() < (1.0 if columns["ill"].cells()[0] == "flu" else probability_same)
        classes = np.zeros(columns.rows, dtype=np.int32) if whole else np.arange(columns.rows, dtype=np.int32)
        return Repeated(Columns.of({"age": ["*"] * columns.rows, "ill": sorted(map(str, columns["ill"].cells()))}), classes)

    return repeat


@pytest.mark.parametrize(("probability", "least", "most"), [(1.0, 0.0, 0.0), (0.0, 0.5, 0.5)])
def test_the_gain_without_the_seed_is_that_of_the_likelihoods(probability: float, least: float, most: float) -> None:
    """The class is certain if the first person has flu, and else as likely as given: a gain of 0, or of 1/2."""
    table = Columns.of({"age": [30, 31], "ill": ["flu", "gout"]})
    found = measure_gain(table, SCHEMA, flip_classes(probability), runs=300)
    assert found is not None and found.gain is not None and found.open == 0
    assert least - 1e-12 <= found.gain <= most + 1e-12 and found.low <= found.gain <= found.high
    assert found.seed_known == 0.0  # the seed of the release gives one class on both tables


def test_pairs_whose_class_never_comes_again_widen_the_interval() -> None:
    table = table_of(12)

    def never(columns: Columns, number: int) -> Repeated:
        classes = np.zeros(columns.rows, dtype=np.int32) if number == 0 else np.arange(columns.rows, dtype=np.int32)
        return Repeated(columns, classes)

    found = measure_gain(table, SCHEMA, never, runs=200)
    assert found is not None and found.gain is None and found.open == found.pairs
    assert (found.low, found.high) == (0.0, pytest.approx(0.5, abs=1e-9))
    assert [each.number for each in exchange(table, SCHEMA, never, runs=50)][1] is None


def test_a_method_that_ignores_sensitive_values_reveals_nothing() -> None:
    repeat = build_repeat(SCHEMA, [ck.KAnonymity(4)], ck.Mondrian("strict"), seed=2**64)
    for neighbours in (None, 20):
        found = measure_gain(table_of(80), SCHEMA, repeat, runs=300, neighbours=neighbours)
        assert found is not None and (found.gain, found.seed_known, found.neighbours) == (0.0, 0.0, neighbours)


def test_soft_stop_stays_below_its_bound() -> None:
    repeat = build_repeat(SCHEMA, [ck.TCloseness("ill", 0.4)], ck.SoftStop(eps=1), seed=2**64)
    found = measure_gain(table_of(40), SCHEMA, repeat, runs=900)
    assert found is not None and found.low <= np.e / (1 + np.e) - 0.5


def test_persons_are_exchanged_with_all_their_rows() -> None:
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()}, person="who")
    table = Columns.of({"who": [*"aabbc"], "age": [30, 30, 31, 31, 31], "ill": ["flu", "cold", "gout", "HIV", "ulcer"]})
    seen = set()

    def repeat(columns: Columns, number: int) -> Repeated:
        seen.add(tuple(map(str, columns["ill"].cells())))
        return Repeated(columns, np.zeros(5, dtype=np.int32))

    assert measure_gain(table, schema, repeat, runs=30) is not None
    assert seen == {("flu", "cold", "gout", "HIV", "ulcer"), ("gout", "HIV", "flu", "cold", "ulcer")}  # c has no partner


def test_no_one_has_a_partner_where_all_values_are_equal() -> None:
    table = Columns.of({"age": [30, 31, 32], "ill": ["flu"] * 3})
    assert exchange(table, SCHEMA, lambda columns, _: Repeated(columns, np.zeros(3, dtype=np.int32))) == []


def test_intervals_cover_the_mean() -> None:
    rng = np.random.default_rng(5)
    misses, wide = 0, 0
    for _ in range(200):
        values = rng.choice([0.0, 0.5], 25, p=[0.7, 0.3])
        low, high = mean_interval(values.tolist(), -0.5, 0.5)
        misses += not low <= 0.15 <= high
        share_low, share_high = share_interval(int((values > 0).sum()), 25)
        wide += not share_low <= 0.3 <= share_high
    assert misses <= 20 and wide <= 20  # 5 % of 200, with room for luck
    assert all(mean_interval([x] * 400, -0.5, 0.5)[1] - x < 0.02 for x in (0.0, 0.25))
