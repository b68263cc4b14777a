"""The pages as text: nothing of a table becomes a part of a page, every field has a label, errors stand at their fields."""

from __future__ import annotations

import hashlib
import html
import re
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from closeknit.web.case_tasks import draft_of
from closeknit.web.desk.roles import role_of
from web_runs import BOB, HERE, client_of, team


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


EVIL = "<script>alert(1)</script>"
SIGNS = ('"><img src=x onerror=alert(1)>', "{{7*191}}", "'><b>", "a&b")
ROWS = [(20 + i % 30, SIGNS[i % 4], ("flu", "gout", "'\"<i>")[i % 3]) for i in range(60)]
TABLE = f"age,{EVIL},disease\n" + "".join(f"{age},{quoted(sign)},{quoted(secret)}\n" for age, sign, secret in ROWS)
PAGES = (
    "",
    "/roles",
    "/risk",
    "/columns/0",
    "/columns/0?builder=intervals",
    "/columns/1",
    "/columns/1?builder=rare",
    "/columns/2",
    "/guarantees",
    "/methods",
    "/methods?point=0",
    "/release",
)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, str, Any]]:
    """A client, the address of a table that has gone the whole way, and its case."""
    app = team(tmp_path_factory.mktemp("home"), idle=2)
    with client_of(app) as client:
        client.headers["origin"] = HERE
        at = client.post("/tables", files={"table": ("people.csv", TABLE.encode())}).headers["location"]
        case = app.state.cases.of("ann", at.rpartition("/")[2])
        done(app, case)
        sent(client, f"{at}/roles/1", role="quasi")
        sent(client, f"{at}/roles/2", role="sensitive")
        sent(client, f"{at}/guarantees/look")
        done(app, case)
        sent(client, f"{at}/guarantees", model="k_anonymity", k="3", place="0")
        sent(client, f"{at}/methods", do="all", name="mondrian")
        done(app, case)
        sent(client, f"{at}/release", point="0")
        done(app, case)
        yield client, at, case


def done(app: Any, case: Any) -> None:
    while not app.state.tasks.status(case).over:
        time.sleep(0.05)
    assert app.state.tasks.status(case).state == "done", app.state.tasks.status(case).sentence


def sent(client: Any, address: str, **form: str) -> None:
    answer = client.post(address, data=form)
    assert answer.status_code == 303, answer.text


class Tags(HTMLParser):
    """What the browser would make of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.labelled, self.inside = set[str](), 0
        self.bare: list[str] = []  # fields that have no label
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        given = dict(attrs)
        self.tags.append((tag, given))
        if tag == "label":
            self.labelled.add(given.get("for") or "")
            self.inside += "for" not in given
        quiet = given.get("type") == "hidden" or "aria-label" in given or "aria-labelledby" in given or self.inside
        if tag in ("input", "select", "textarea") and not quiet:
            self.bare.append(given.get("id") or "?")

    def handle_endtag(self, tag: str) -> None:
        if tag == "label":
            self.inside = 0


@pytest.mark.parametrize("place", PAGES)
def test_nothing_of_a_table_becomes_a_part_of_a_page(desk: tuple[Any, str, Any], place: str) -> None:
    client, at, _ = desk
    answer = client.get(at + place)
    assert answer.status_code == 200
    page = Tags(answer.text)
    assert [given.get("src") for tag, given in page.tags if tag == "script"] == ["/static/htmx.min.js", "/static/page.js"]
    assert not [given for _, given in page.tags if any(name == "style" or name.startswith("on") for name in given)]
    assert {given["src"] for tag, given in page.tags if tag == "img"} <= {
        "/static/icon.svg",
        *(f"{at}/pictures/{name}.svg" for name in ("loss", "risk", "distributions", "associations")),
    }
    assert "1337" not in re.findall(r">(\d+)<", answer.text), "a template in a cell was carried out"
    assert set(page.bare) <= page.labelled, "a field without a label"
    ids = [given["id"] for _, given in page.tags if "id" in given]
    assert len(ids) == len(set(ids))


def test_looking_changes_nothing(desk: tuple[Any, str, Any]) -> None:
    client, at, case = desk
    before = snapshot(case.folder)
    for place in PAGES:
        client.get(at + place)
    assert snapshot(case.folder) == before


def snapshot(folder: Path) -> dict[str, str]:
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize(
    "place", [*PAGES, "/report", "/private-report", "/release.zip", "/private.zip", "/columns/0/hierarchy.csv"]
)
def test_pages_are_their_owners_alone(desk: tuple[Any, str, Any], place: str) -> None:
    client, at, _ = desk
    assert client.get(at + place, headers=BOB).status_code == 404


ERRORS = [  # where it is sent, what, and a part of the sentence
    ("/guarantees", {"key": "requested-0", "model": "k_anonymity", "place": "0", "k": "0"}, "k=0 is too small"),
    ("/guarantees", {"key": "requested-1", "model": "t_closeness", "place": "1", "column": "disease", "t": "x"}, "t"),
    ("/guarantees", {"key": "requested-0", "model": "k_anonymity", "place": "0", "k": "9999"}, "the table reaches at most"),
    ("/roles", {"role": "drop"}, "no column is ticked"),
    ("/roles", {"role": "person", "column": ["0", "1"]}, "2 columns are ticked"),
    ("/suppress", {"share": "100"}, "less than 100 percent"),
    ("/roles/0", {"role": "king"}, "king"),
    ("/columns/0/kind", {"builder": "intervals", "lo": "0", "hi": "10", "width": "-1"}, "width"),
    ("/columns/0/kind", {"builder": "quantiles", "bins": "1000000000"}, "bins=1000000000 is too large"),
    ("/columns/1/tree", {"do": "rename", "label": "x", "node": "[" * 100_000}, "names no node"),
    ("/columns/0/kind", {"builder": "magic"}, "no builder"),
    ("/columns/1/tree", {"do": "rename", "label": "x"}, "nothing is ticked"),
    ("/columns/1/tree", {"do": "rename", "label": "x", "node": "{}"}, "names no node"),
    ("/columns/0/more", {"importance": "0"}, "more than 0"),
    ("/methods", {"do": "sample", "rows": "few"}, "rows"),
    ("/form", {"form": "perturbed", "retain": "2"}, "retain"),
    ("/form", {"form": "poem"}, "poem"),
    ("/format", {"delimiter": "long"}, "delimiter"),
]


@pytest.mark.parametrize(("place", "form", "sentence"), ERRORS)
def test_an_error_is_a_sentence_on_the_page(desk: tuple[Any, str, Any], place: str, form: Any, sentence: str) -> None:
    client, at, case = desk
    before = draft_of(case)
    answer = client.post(at + place, data=form)
    assert answer.status_code == 422
    (said,) = re.findall(r'role="alert"[^>]*>([^<]*)<', answer.text)
    assert sentence in said
    assert draft_of(case) == before


def test_a_change_is_taken_back(desk: tuple[Any, str, Any]) -> None:
    client, at, case = desk
    before = draft_of(case)

    answer = client.post(f"{at}/columns/1/tree", data={"do": "merge", "label": "both", "node": ['["a&b"]', '["{{7*191}}"]']})
    assert answer.status_code == 303
    assert draft_of(case) != before
    assert "for these roles" in client.get(f"{at}/guarantees").text, "what was counted for other trees is out of date"
    assert "has changed since" in client.get(f"{at}/release").text
    sent(client, f"{at}/undo", to="1")
    assert draft_of(case) == before


def test_no_method_is_chosen_before_every_attribute_has_a_guarantee_or_a_confirmation(desk: tuple[Any, str, Any]) -> None:
    client, at, case = desk
    before = draft_of(case)
    sent(client, f"{at}/guarantees/1/remove")
    shown = client.get(f"{at}/guarantees").text
    assert "Without a guarantee: disease" in shown and ">Continue to the methods<" not in shown
    for place, form in (("/methods", {"do": "all"}), ("/release", {"method": "mondrian"})):
        answer = client.post(at + place, data=form)
        assert answer.status_code == 422 and "no guarantee protects disease" in answer.text
    assert "tick the box to confirm" in client.post(f"{at}/guarantees/confirm").text
    sent(client, f"{at}/guarantees", propose="disease")
    assert draft_of(case)["models"] == [{"k_anonymity": {"k": 3}}, {"t_closeness": {"column": "disease", "t": 0.2}}]
    sent(client, f"{at}/undo")
    sent(client, f"{at}/guarantees/confirm", sure="yes")
    assert ">Continue to the methods<" in client.get(f"{at}/guarantees").text
    assert "confirmed" not in client.get(f"{at}/recipe.yaml").text, "no recipe has it"
    for _ in range(2):
        sent(client, f"{at}/undo")
    assert draft_of(case) == before


def test_columns_and_shares_of_a_guarantee_are_shown_as_they_are_typed(desk: tuple[Any, str, Any]) -> None:
    client, at, case = desk
    before = draft_of(case)
    values = sorted({secret for _, _, secret in ROWS})
    shares = ", ".join(f"{value}: {i}" for i, value in enumerate(values, 3))
    typed = {"key": "requested-1", "model": "t_closeness", "column": "disease", "t": "0.5", "over": "age", "reference": shares}
    sent(client, f"{at}/guarantees", **typed, place="1")
    chosen = {"over": ["age"], "reference": {value: i for i, value in enumerate(values, 3)}}
    assert draft_of(case)["models"][1] == {"t_closeness": {"column": "disease", "t": 0.5, **chosen}}
    shown = html.unescape(client.get(f"{at}/guarantees").text)
    assert f'value="{shares}"' in shown and 'value="age"' in shown
    refused = client.post(f"{at}/guarantees", data=typed | {"reference": "flu"})
    assert refused.status_code == 422 and "is no distribution" in refused.text
    sent(client, f"{at}/undo")
    assert draft_of(case) == before


def test_several_columns_get_one_role_at_once_and_others_are_filtered(desk: tuple[Any, str, Any]) -> None:
    client, at, case = desk
    before = draft_of(case)
    answer = client.post(f"{at}/roles", data={"role": "drop", "column": ["0", "1"], "filter": "a&b"})
    assert answer.status_code == 303 and answer.headers["location"].endswith("/roles?filter=a%26b")
    assert len(draft_of(case)["schema"]["drop"]) == 2
    sent(client, f"{at}/undo")
    assert draft_of(case) == before, "one change"
    assert client.get(f"{at}/roles?filter=no such name").text.count('name="column"') == 0


def test_a_hierarchy_goes_out_and_comes_in_again(desk: tuple[Any, str, Any]) -> None:
    client, at, case = desk
    before = draft_of(case)
    text = client.get(f"{at}/columns/1/hierarchy.csv").content
    files = {"hierarchy": ("tree.csv", text)}
    assert client.post(f"{at}/columns/1/import", files=files, data={"from_data": "yes"}).status_code == 303
    assert client.get(f"{at}/columns/1/hierarchy.csv").content == text
    sent(client, f"{at}/undo", to="1")
    assert draft_of(case) == before
    refused = client.post(f"{at}/columns/1/import", files={"hierarchy": ("tree.csv", b"x;*\n")})
    assert refused.status_code == 422 and 'role="alert"' in refused.text, "it has no place for the values of the column"


def test_values_are_replaced_by_a_level_of_a_declared_tree(desk: tuple[Any, str, Any]) -> None:
    client, at, case = desk
    before = draft_of(case)
    leaves = [line.split(";")[0] for line in client.get(f"{at}/columns/1/hierarchy.csv").text.splitlines()]
    assert "Replace values by level" not in client.get(f"{at}/columns/1").text, "its tree was derived from the table"
    text = "".join(f"{leaf};{'low' if i % 2 else 'high'};*\n" for i, leaf in enumerate(leaves))
    client.post(f"{at}/columns/1/import", files={"hierarchy": ("tree.csv", text.encode())})
    assert "Replace values by level" in client.get(f"{at}/columns/1").text
    sent(client, f"{at}/columns/1/level", level="1")
    assert "level: 1" in client.get(f"{at}/recipe.yaml").text and 'value="1"' in client.get(f"{at}/columns/1").text
    for wrong in ("2", "-1", "high"):
        refused = client.post(f"{at}/columns/1/level", data={"level": wrong})
        assert refused.status_code == 422 and 'role="alert"' in refused.text
    sent(client, f"{at}/columns/1/level", level="")
    assert "level: 1" not in client.get(f"{at}/recipe.yaml").text
    for _ in range(3):
        sent(client, f"{at}/undo")
    assert draft_of(case) == before


def test_a_recipe_goes_out_and_comes_in_again(desk: tuple[Any, str, Any]) -> None:
    client, at, case = desk
    before = draft_of(case)
    text = client.get(f"{at}/recipe.yaml").text
    assert "people.csv" in text and case.table.name not in text
    assert client.post(f"{at}/recipe", files={"recipe": ("recipe.yaml", text.encode())}).status_code == 303
    assert draft_of(case) == before
    for kind, why in (("csv: /etc/passwd", "a file of its own"), ("numeric: {lo: 0, hi: 9, bins: 1000000000}", "is too large")):
        other = f"schema: {{quasi: {{age: {{{kind}}}}}}}\nmodels: []\n".encode()
        refused = client.post(f"{at}/recipe", files={"recipe": ("recipe.yaml", other)})
        assert refused.status_code == 422 and why in refused.text


def test_another_form_has_other_guarantees_and_methods(desk: tuple[Any, str, Any]) -> None:
    client, at, case = desk
    before = draft_of(case)
    assert "applies only to a release of the form" in client.get(f"{at}/guarantees").text
    sent(client, f"{at}/form", form="sliced")
    assert "k_anonymity has no meaning" in client.get(f"{at}/guarantees").text
    sent(client, f"{at}/undo")
    assert draft_of(case) == before


def test_ranges_of_whole_numbers_are_snapped_by_a_tick(desk: tuple[Any, str, Any]) -> None:
    client, at, case = desk
    before = draft_of(case)
    sent(client, f"{at}/form", form="generalized", snap="yes")
    assert draft_of(case)["form"] == {"generalized": {"snap": True}}
    assert 'name="snap" value="yes" checked' in client.get(f"{at}/guarantees").text
    sent(client, f"{at}/form", form="generalized")
    assert "form" not in draft_of(case)
    assert 'name="snap" value="yes" checked' not in client.get(f"{at}/guarantees").text
    sent(client, f"{at}/undo")
    sent(client, f"{at}/undo")
    assert draft_of(case) == before


def test_generalized_numbers_are_written_as_chosen(desk: tuple[Any, str, Any]) -> None:
    client, at, case = desk
    before = draft_of(case)
    sent(client, f"{at}/form", form="generalized", cells="bounds")
    assert draft_of(case)["form"] == {"generalized": {"cells": "bounds"}}
    assert '<option value="bounds" selected>' in client.get(f"{at}/guarantees").text
    assert "is unknown" in client.post(f"{at}/form", data={"form": "generalized", "cells": "dots"}).text
    sent(client, f"{at}/undo")
    assert draft_of(case) == before


def test_options_of_the_recipe_are_set_by_ticks(desk: tuple[Any, str, Any]) -> None:
    client, at, case = desk
    before = draft_of(case)
    for name in ("escape_formulas", "allow_vacuous"):
        sent(client, f"{at}/options", **{name: "yes"})
        assert {key for key in draft_of(case) if key not in before} == {name} and draft_of(case)[name] is True
        assert f'name="{name}" value="yes" checked aria-describedby="{name}-means"' in client.get(f"{at}/guarantees").text
        assert "has changed since" in client.get(f"{at}/release").text
        assert ("have changed since" in client.get(f"{at}/methods").text) == (name == "allow_vacuous")
        sent(client, f"{at}/options")
        assert draft_of(case) == before
    assert "checked" not in client.get(f"{at}/guarantees").text.partition('id="options"')[2].partition("</form>")[0]


def test_a_vacuous_guarantee_is_refused_unless_it_is_allowed(desk: tuple[Any, str, Any]) -> None:
    client, at, case = desk
    before = draft_of(case)
    vacuous = {"key": "requested-1", "model": "t_closeness", "place": "1", "column": "disease", "t": "1"}
    refused = client.post(f"{at}/guarantees", data=vacuous)
    assert refused.status_code == 422 and "is vacuous" in refused.text
    sent(client, f"{at}/options", allow_vacuous="yes")
    sent(client, f"{at}/guarantees", **vacuous)
    sent(client, f"{at}/methods", do="all", name="mondrian")
    done(client.app, case)
    assert "Anonymize with mondrian" in client.get(f"{at}/methods").text
    while draft_of(case) != before:
        sent(client, f"{at}/undo")


def test_an_identifier_that_repeats_is_declared_by_a_tick(desk: tuple[Any, str, Any]) -> None:
    client, at, case = desk
    before = draft_of(case)
    sent(client, f"{at}/roles/0", role="identifier")
    assert 'role="alert"' in client.get(f"{at}/roles").text
    sent(client, f"{at}/persons", rows_are_persons="yes")
    shown = client.get(f"{at}/roles").text
    assert draft_of(case)["schema"]["rows_are_persons"] is True and 'role="alert"' not in shown
    assert 'name="rows_are_persons" value="yes" checked' in shown
    sent(client, f"{at}/roles/0", role="person")
    assert "rows_are_persons" not in draft_of(case)["schema"], "a person column says it instead"
    assert "rows_are_persons" not in client.get(f"{at}/roles").text
    while draft_of(case) != before:
        sent(client, f"{at}/undo")


def test_work_is_shown_and_can_be_cancelled(desk: tuple[Any, str, Any]) -> None:
    client, at, case = desk
    before = draft_of(case)
    sent(client, f"{at}/guarantees", model="t_closeness", column="disease", t="0.3")
    sent(client, f"{at}/methods", do="all", name="knit")
    tasks = client.app.state.tasks
    task = tasks.status(case)
    assert "<progress" in client.get(f"{at}/methods").text
    assert "hx-get" in client.get(f"{at}/tasks/{task.number}").text
    sent(client, f"{at}/tasks/{task.number}/cancel")
    assert tasks.status(case).state == "cancelled"
    assert "the task was cancelled" in client.get(f"{at}/methods").text
    assert client.get(f"{at}/tasks/{task.number}").headers["hx-refresh"] == "true"
    while draft_of(case) != before:
        sent(client, f"{at}/undo")


def test_an_address_that_takes_forms_leads_to_their_page(desk: tuple[Any, str, Any]) -> None:
    client, at, _ = desk
    for place, page in (
        ("/suppress", "/guarantees"),
        ("/options", "/guarantees"),
        ("/persons", "/roles"),
        ("/missing", "/roles"),
        ("/columns/1/tree", "/columns/1"),
        ("/format", ""),
    ):
        answer = client.get(at + place)
        assert (answer.status_code, answer.headers["location"]) == (303, at + page)


def test_the_risk_of_the_raw_table_follows_the_roles(desk: tuple[Any, str, Any]) -> None:
    client, at, case = desk
    names = list(dict.fromkeys(age for age, _, _ in ROWS))
    assert f'hx-get="{at}/risk" hx-trigger="load delay:' in client.get(f"{at}/roles").text
    sent(client, f"{at}/roles", role="drop", column="1")
    before = client.get(f"{at}/risk").text
    assert "<b>prosecutor</b>" in before and f"{len(names) / len(ROWS):.4g}" in before and "k = 12 meets it" in before
    sent(client, f"{at}/roles", role="plain", column="0")
    assert "Not measured: no column has the role quasi" in client.get(f"{at}/risk").text
    for _ in range(2):
        sent(client, f"{at}/undo")
    assert role_of(draft_of(case), EVIL) == "quasi"
