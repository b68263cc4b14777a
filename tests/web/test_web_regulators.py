"""Populations, presets and dossiers on the page, end to end with a real worker."""

from __future__ import annotations

import io
import re
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from test_web_pages import done, sent

import closeknit as ck
from closeknit.checks.risk_oracle import count_fitting
from closeknit.io.files import read
from web_runs import HERE, client_of, team

PEOPLE = [(20 + i % 40, "fm"[i % 2]) for i in range(240)]
ROWS = PEOPLE[::3]


def csv_of(rows: list[tuple[int, str]]) -> bytes:
    return "\n".join(["age,sex", *(f"{age},{sex}" for age, sex in rows)]).encode()


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, str, Any, Any]]:
    app = team(tmp_path_factory.mktemp("home"), idle=2)
    with client_of(app) as client:
        client.headers["origin"] = HERE
        at = client.post("/tables", files={"table": ("people.csv", csv_of(ROWS))}).headers["location"]
        case = app.state.cases.of("ann", at.rpartition("/")[2])
        done(app, case)
        for number in (0, 1):
            sent(client, f"{at}/roles/{number}", role="quasi")
        yield client, at, case, app


def upload(desk: tuple[Any, str, Any, Any], content: bytes, name: str = "voters.csv") -> Any:
    client, at, case, app = desk
    assert client.post(f"{at}/population", files={"people": (name, content)}).status_code == 303
    while not app.state.tasks.status(case).over:
        time.sleep(0.05)
    return app.state.tasks.status(case)


def test_the_risk_of_the_raw_table_follows_the_roles(desk: tuple[Any, str, Any, Any]) -> None:
    client, at, _, _ = desk
    shown = {}
    for role in ("plain", "drop", "quasi"):  # two rows have each age, forty each sex
        sent(client, f"{at}/roles/0", role=role)
        shown[role] = re.findall(r"<dt>Highest risk</dt><dd>(.*?)</dd>", client.get(f"{at}/risk").text)
    assert shown == {"plain": ["0.025"], "drop": ["0.025"], "quasi": ["0.5"]}
    assert f'"{at}/risk"' in client.get(f"{at}/roles").text


def test_a_population_is_refused_in_a_sentence(desk: tuple[Any, str, Any, Any]) -> None:
    client, at, case, _ = desk
    asked = {"key": "population", "model": "delta_presence", "lo": "0", "hi": "0.5"}
    assert "upload the population" in client.post(f"{at}/guarantees", data=asked).text
    assert upload(desk, csv_of(PEOPLE[:10])).sentence.startswith("the population has 10 people")
    assert upload(desk, b"age\n30\n31\n" * 100).sentence.startswith("column 'sex': the population has no such column")
    assert "the suffix" in client.post(f"{at}/population", files={"people": ("people.zip", b"PK")}).text
    assert case.people is None and not list(case.folder.glob("upload-*"))
    assert "has no such column" in client.get(f"{at}/guarantees").text


def test_guarantees_count_the_people_of_an_upload(desk: tuple[Any, str, Any, Any]) -> None:
    client, at, case, app = desk
    assert upload(desk, csv_of(PEOPLE)).state == "done"
    assert "<b>voters.csv</b>: 240 people" in client.get(f"{at}/guarantees").text
    sent(client, f"{at}/guarantees/look")
    done(app, case)
    page = client.get(f"{at}/guarantees").text
    assert "of the 240 people of the population are expected" in page and "true None" not in page
    assert "delta-presence" in page and "count the people of the uploaded population" in page
    while yaml.safe_load(case.draft.read_text(encoding="utf-8"))["models"]:
        sent(client, f"{at}/guarantees/0/remove")
    sent(client, f"{at}/guarantees", model="delta_presence", lo="0", hi="0.5")
    sent(client, f"{at}/guarantees", model="k_map", k="9", fraction="0.1", population="yes")
    sent(client, f"{at}/guarantees", model="average_risk", r="0.1", population="yes")
    draft = yaml.safe_load(case.draft.read_text(encoding="utf-8"))
    assert draft["models"][1] == {"k_map": {"k": 9, "population": "people.parquet"}}
    assert "in a population of 240 people" in client.get(f"{at}/guarantees").text
    assert str(case.folder) not in client.get(f"{at}/recipe.yaml").text
    sent(client, f"{at}/release", method="mondrian")
    done(app, case)
    found = ck.audit(case.out, population=case.people)
    assert found.ok and [one.status for one in found.guarantees] == ["recomputed"] * 3
    written = read(case.out / "release.csv")
    rows = set(zip(*(map(str, written[name].cells()) for name in ("age", "sex")), strict=True))
    assert min(count_fitting(row, PEOPLE) for row in rows) >= 9
    assert str(case.folder) not in (case.private / "recipe.yaml").read_text(encoding="utf-8")


def test_the_private_download_runs_again_next_to_the_table(desk: tuple[Any, str, Any, Any], tmp_path: Path) -> None:
    client, at, case, _ = desk
    with zipfile.ZipFile(io.BytesIO(client.get(f"{at}/private.zip").content)) as pack:
        pack.extractall(tmp_path)
    (tmp_path / "people.csv").write_bytes(csv_of(ROWS))
    ck.run(tmp_path / "recipe.yaml").save(tmp_path / "out", report=False)
    assert (tmp_path / "out" / "release.csv").read_bytes() == (case.out / "release.csv").read_bytes()
    with zipfile.ZipFile(io.BytesIO(client.get(f"{at}/release.zip").content)) as public:
        assert not [name for name in public.namelist() if "people" in name]


@pytest.mark.parametrize("edition", ["public", "private"])
def test_a_dossier_is_written_from_the_page(desk: tuple[Any, str, Any, Any], edition: str) -> None:
    client, at, case, app = desk
    assert case.finished
    sent(client, f"{at}/dossier", framework="ema", edition=edition)
    done(app, case)
    page = client.get(f"{at}/release").text
    assert "Open the dossier" in page and f"{edition} edition" in page
    text = client.get(f"{at}/dossier").text
    assert "EMA" in text and f"{edition} edition" in text.lower()
    assert client.post(f"{at}/dossier", data={"framework": "none"}).status_code == 400
    assert not list(case.folder.glob(".dossier-*"))


def test_a_preset_is_shown_expanded_and_added(desk: tuple[Any, str, Any, Any]) -> None:
    client, at, case, _ = desk
    page = client.get(f"{at}/guarantees").text
    assert all(part in page for part in ("ema_0070", "k_anonymity", "It does not settle", "ema.europa.eu"))
    sent(client, f"{at}/preset", preset="ema_0070")
    assert yaml.safe_load(case.draft.read_text(encoding="utf-8"))["models"][0] == {"k_anonymity": {"k": 11}}
    for name, sentence in {"ema_70": "did you mean", "ehds": "there is no preset"}.items():
        answer = client.post(f"{at}/preset", data={"preset": name})
        assert answer.status_code == 422 and sentence in answer.text
    zips = client.post(f"{at}/preset", data={"preset": "hipaa_safe_harbor", "zip3": "/etc/passwd"})
    assert zips.status_code == 422 and "census2000" in zips.text
    sent(client, f"{at}/preset", preset="hipaa_safe_harbor")
    draft = yaml.safe_load(case.draft.read_text(encoding="utf-8"))
    assert draft["method"] == "fixed_levels" and draft["schema"]["quasi"]["age"] == {"numeric": {"top": 90}}
