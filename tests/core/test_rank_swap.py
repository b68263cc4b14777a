"""Rank swapping: how far numbers move, what is kept, and where it is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import closeknit as ck
from closeknit.core.columns import Columns
from closeknit.core.rank_swap import draw_order, swap_ranks
from closeknit.datasets import hospital

SEED = 2**100


def schema_of(swap: float | None = 5, **sensitive: object) -> ck.Schema:
    kinds = {"disease": ck.flat(), "charge": ck.numeric(swap=swap, step=1), **sensitive}
    return ck.Schema(quasi={"age": ck.numeric()}, sensitive=kinds, drop=["name", "sex", "zip", "job", "admission", "stay"])


@given(st.integers(0, 300), st.floats(0.1, 50), st.integers(0, 2**64))
def test_no_rank_moves_farther_than_requested(count: int, percent: float, seed: int) -> None:
    order = draw_order(count, percent, seed)
    assert sorted(order.tolist()) == list(range(count))
    assert (np.abs(order - np.arange(count)) <= max(1, count * percent / 100)).all()


def test_numbers_move_within_their_window_and_the_column_keeps_its_values() -> None:
    table, rows = hospital(2000), np.arange(2000)
    masked = swap_ranks(table, schema_of(5), SEED)
    before, after = (np.array(columns["charge"].cells()) for columns in (table, masked))
    assert sorted(before) == sorted(after) and (before != after).mean() > 0.8
    ends = np.sort(before)
    low = ends[np.maximum(np.searchsorted(ends, before, "left") - 100, 0)]
    high = ends[np.minimum(np.searchsorted(ends, before, "right") + 99, 1999)]
    assert ((low <= after) & (after <= high)).all()
    assert all(masked[name].cells() == table[name].cells() for name in table if name != "charge")
    assert (before != np.array(swap_ranks(table, schema_of(5), SEED + 1)["charge"].cells())).any()
    shuffled = np.random.default_rng(1).permutation(rows)
    again = swap_ranks(table.take(shuffled), schema_of(5), SEED)

    def sorted_rows(columns: Columns) -> list[tuple[str, ...]]:
        return sorted(zip(*(map(str, columns[name].cells()) for name in columns), strict=True))

    assert sorted_rows(again) == sorted_rows(masked)


def test_missing_numbers_stay_and_bad_ones_are_named() -> None:
    table = Columns.of({"age": [30] * 6, "charge": [1, None, 2, 3, None, 4], "disease": ["flu"] * 6})
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"charge": ck.numeric(swap=50), "disease": ck.flat()})
    found = swap_ranks(table, schema, SEED)["charge"].cells()
    assert [cell is None for cell in found] == [False, True, False, False, True, False] and set(found) == {1, 2, 3, 4, None}
    bad = Columns.of({"age": [30, 31], "charge": ["1", "much"], "disease": ["flu", "gout"]})
    with pytest.raises(ck.BadInput, match="'much' is not a number"):
        swap_ranks(bad, schema, SEED)
    with pytest.raises(ck.BadInput, match="swap"):
        ck.numeric(swap=60)


def test_the_certificate_says_that_nothing_follows_and_an_audit_reads_it() -> None:
    release = ck.anonymize(hospital(300), schema_of(5), [ck.KAnonymity(5), ck.TCloseness("charge", 0.3)], seed=SEED)
    (note,) = [note for note in release.certificate.notes if "exchanged" in note]
    assert note.startswith("column 'charge': numbers were exchanged with others of at most 5 % distance in rank")
    assert "no guarantee follows" in note
    assert ck.audit(release.frame, certificate=release.certificate).ok
    again = ck.anonymize(hospital(300), schema_of(5), [ck.KAnonymity(5), ck.TCloseness("charge", 0.3)], seed=SEED)
    assert again.certificate.content_sha256 == release.certificate.content_sha256


def test_it_is_refused_where_it_cannot_be() -> None:
    with pytest.raises(ck.BadInput, match="its numbers cannot be exchanged in a stream"):
        ck.Castle(ck.Schema(quasi={"age": ck.numeric(0, 120, swap=5)}, sensitive={"ill": ck.flat()}), k=2, delta=3)
    with pytest.raises(ck.BadInput, match="its numbers cannot be exchanged with the method soft_stop"):
        ck.anonymize(hospital(60), schema_of(5), [ck.KAnonymity(5)], ck.SoftStop(1), seed=SEED)
