"""Guarantees about risk and over chosen columns on the page."""

from __future__ import annotations

import pytest

from closeknit.core.errors import BadInput
from closeknit.web.desk import draft, guarantees


@pytest.mark.parametrize("name", ["k_map", "delta_presence"])
def test_a_page_reads_no_file_of_people(name: str) -> None:
    """A sender must not choose what is read on the server; a number of people reads nothing."""
    given = {"k_map": {"k": 3}, "delta_presence": {"lo": 0, "hi": 0.5}}[name]
    with pytest.raises(BadInput, match="population of its own"):
        draft.confine_paths({"schema": {}, "models": [{name: {**given, "population": "people.csv"}}]}, "table.csv")
    with pytest.raises(BadInput, match="population"):
        guarantees.guarantee_form(name, {**given, "population": "people.csv"})


def test_columns_that_an_adversary_knows_are_typed_as_a_list() -> None:
    assert guarantees.guarantee_form("k_anonymity", {"k": "5", "over": "age, sex"}) == {
        "k_anonymity": {"k": 5, "over": ["age", "sex"]}
    }
    assert guarantees.guarantee_form("k_anonymity", {"k": "5", "over": "pairs"})["k_anonymity"]["over"] == "pairs"
