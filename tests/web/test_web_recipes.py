"""Recipes that the page is given: numbers that only YAML has, recipes that no page can show, and forms that take long."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from closeknit.core.errors import BadInput
from closeknit.web.case_tasks import draft_of
from closeknit.web.cases import Case
from closeknit.web.desk.draft import read_draft
from closeknit.web.desk.table_preview import Limits
from closeknit.web.page_tasks import inspect_table
from closeknit.web.pages import guarantees_step
from web_runs import HERE, ROWS, client_of, team


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, str]]:
    """A client and the address of a table that was looked at."""
    app = team(tmp_path_factory.mktemp("home"), at_once=0)
    with client_of(app) as client:
        client.headers["origin"] = HERE
        at = client.post("/tables", files={"table": ("people.csv", ROWS.encode())}).headers["location"]
        case = app.state.cases.of("ann", at.rpartition("/")[2])
        found = inspect_table(case, {}, Limits(), lambda what, share: None)  # here: a process of its own takes seconds to start
        (case.folder / "tasks" / "1.result.json").write_text(json.dumps(found), encoding="utf-8")
        app.state.tasks._over(case, app.state.tasks.status(case), "done")
        yield client, at


def test_a_page_that_takes_long_delays_no_other_request(desk: tuple[Any, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Forms of any fields are parsed outside the loop in which all others are answered."""
    client, at = desk
    seen: list[threading.Thread] = []

    def watched(case: Case) -> dict[str, Any]:
        seen.append(threading.current_thread())
        return draft_of(case)

    monkeypatch.setattr(guarantees_step, "draft_of", watched)
    client.post(f"{at}/guarantees", data={"model": "k_anonymity", "k": "2"})

    async def loop() -> threading.Thread:
        return threading.current_thread()

    assert seen and seen[0] is not client.portal.call(loop)


NUMBERS = {
    "sixties": "1" + ":1" * 200_000,  # takes minutes
    "sixties with a point": "1" + ":1" * 400 + ".5",  # larger than any float
    "sixteens": "0x" + "f" * 5000,  # cannot be written in tens
}


SCHEMA = "schema: {quasi: {age: numeric, sex: flat}, sensitive: {disease: flat}}\n"


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
def test_numbers_that_yaml_alone_has_are_refused(number: str) -> None:
    with pytest.raises(BadInput, match="the recipe has a number of"):
        read_draft(f"models: [{{k_anonymity: {{k: {number}}}}}]")


def test_usual_numbers_are_read() -> None:
    assert read_draft("{a: 0x1f, b: 1:30, c: -1.5e+3, d: 1_000, e: .inf}") == {
        "a": 31,
        "b": 90,
        "c": -1500.0,
        "d": 1000,
        "e": math.inf,
    }


@pytest.mark.parametrize(
    "more",
    [
        "models: [{k_anonymity: {k: 2}}]\nsuppress: 1/3",
        "models: [{k_anonymity: {k: 2}}]\nsuppress: '0.1'",
        "models: [{k_anonymity: {k: 2}}]\nnotes: [{2024-01-31: 1}]",
    ],
    ids=["fraction", "text", "day"],
)
def test_a_recipe_that_is_taken_breaks_no_page(desk: tuple[Any, str], more: str) -> None:
    client, at = desk
    taken = client.post(f"{at}/recipe", files={"recipe": ("r.yaml", (SCHEMA + more).encode())})
    assert taken.status_code == 303, taken.text
    assert [client.get(at + page).status_code for page in ("/roles", "/guarantees", "/methods", "/release")] == [200] * 4


@pytest.mark.parametrize(
    "recipe,sentence",
    [
        (SCHEMA.replace("numeric", "{intervals: {lo: 0, hi: 100000, width: 1}}") + "models: []", "choose at most 10,000"),
        (SCHEMA.replace("numeric", "{tree: {a: [b, c]}, edges: [[0, 1], x]}") + "models: []", "are not pairs"),
        (SCHEMA + 'models: []\nnotes: ["\\ud800"]', "lone surrogate"),
    ],
    ids=["intervals", "edges", "surrogate"],
)
def test_a_recipe_that_a_page_cannot_bear_is_a_sentence(desk: tuple[Any, str], recipe: str, sentence: str) -> None:
    client, at = desk
    answer = client.post(f"{at}/recipe", files={"recipe": ("r.yaml", recipe.encode())})
    assert answer.status_code == 422 and sentence in answer.text
