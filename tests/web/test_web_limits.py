"""What is too much is refused: bodies, fields, columns, rows, archives, names that are paths, recipes that name files."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xlsxwriter
from starlette.testclient import TestClient

import closeknit as ck
from closeknit.core.certificate import Certificate
from closeknit.core.columns import Columns
from closeknit.core.method import ignore_progress
from closeknit.web.body_limits import ANONYMOUS
from closeknit.web.case_tasks import anonymize
from closeknit.web.cases import Case, Cases, LimitExceeded
from closeknit.web.desk.table_preview import Limits
from closeknit.web.desk.tree_edits import PASSING
from closeknit.web.page_tasks import inspect_table
from closeknit.web.settings import Settings
from closeknit.web.tasks import Tasks
from closeknit.web.worker import work
from web_runs import ANN, HERE, RECIPE, ROWS, client_of, job_files, team

SMALL = Limits(rows=1000, columns=20, unpacked=100_000)
MANY = "age,sex,disease\n" + "30,f,flu\n" * 20_000


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    limits = {"body": 50_000, "fields": 5, "files": 3, "text": 5_000, "waiting": 4, "cases": 6}
    with client_of(team(tmp_path / "home", at_once=0, **limits)) as found:
        yield found


def left(client: TestClient) -> list[Path]:
    return list(client.app.state.settings.home.iterdir())  # type: ignore[attr-defined]


def test_declared_body_over_the_limit_is_refused_unread(client: TestClient) -> None:
    def body() -> Iterator[bytes]:
        raise AssertionError("it should never be read")
        yield b""

    headers = {"content-length": "50001", "content-type": "multipart/form-data"}
    answer = client.post("/api/jobs", content=body(), headers=headers)
    assert answer.status_code == 413 and answer.headers["connection"] == "close"
    assert answer.json() == {"error": "the request is larger than this server accepts: 50,000 bytes"}
    assert left(client) == []


@pytest.mark.parametrize("length", [None, "40000"])
def test_body_is_counted_while_it_comes(client: TestClient, length: str | None) -> None:
    """A body that is longer than it says, or does not say: read up to the limit, and no further."""
    read = []

    def body() -> Iterator[bytes]:
        yield b'--x\r\nContent-Disposition: form-data; name="table"; filename="a.csv"\r\n\r\n'
        for _ in range(1000):
            read.append(1)
            yield b"1" * 1000

    headers = {"content-type": "multipart/form-data; boundary=x"} | ({"content-length": length} if length else {})
    answer = client.post("/api/jobs", content=body(), headers=headers)
    assert answer.status_code == 413 and left(client) == []


@pytest.mark.parametrize(
    "more,sentence",
    [
        ({"data": {f"f{i}": "x" for i in range(6)}}, "Too many fields"),
        ({"data": {"report": "1" * 6000}}, "exceeded maximum size"),
        ({"files": [("more", ("a.csv", b"x"))] * 4}, "Too many files"),
        ({"data": {"report": "perhaps"}}, "report"),
    ],
    ids=["fields", "long field", "files", "type"],
)
def test_forms_are_limited(client: TestClient, more: dict[str, Any], sentence: str) -> None:
    files = [*job_files().items(), *more.get("files", [])]
    answer = client.post("/api/jobs", files=files, data=more.get("data"))
    assert answer.status_code in (400, 422) and sentence in answer.json()["error"] and left(client) == []


def test_long_recipe_is_refused(client: TestClient) -> None:
    answer = client.post("/api/jobs", files=job_files(recipe="#" * 5001))
    assert answer.status_code == 400 and "the recipe is longer than 5,000 bytes" in answer.json()["error"]
    assert left(client) == []


@pytest.mark.parametrize(
    "name", ["people.zip", "people", "people.csv.zip", "people.parquet.gz", ".csv/..", "people.xlsx.gz", ""]
)
def test_files_that_no_door_reads_are_refused(client: TestClient, name: str) -> None:
    answer = client.post("/api/jobs", files=job_files(name=name))
    assert answer.status_code in (400, 422) and "Traceback" not in answer.text and left(client) == []


@pytest.mark.parametrize(
    "name",
    [
        "../../people.csv",
        "/etc/cron.d/people.csv",
        "..\\..\\people.csv",
        "C:\\people.csv",
        "x\x00/people.csv",
        "%2e%2e%2fpeople.csv",
        "....//people.csv",
    ],
)
def test_names_never_become_paths(client: TestClient, name: str) -> None:
    job = client.post("/api/jobs", files=job_files(name=name))
    assert job.status_code == 202
    assert "/" not in job.json()["name"] and "\\" not in job.json()["name"] and job.json()["name"].endswith("people.csv")
    (folder,) = left(client)
    assert folder.name == job.json()["id"] and (folder.stat().st_mode & 0o777) == 0o700
    assert sorted(place.name for place in folder.iterdir()) == ["case.json", "draft.yaml", "table.csv", "tasks"]
    assert all(place.stat().st_mode & 0o077 == 0 for place in folder.rglob("*"))
    assert [place.name for place in folder.parent.parent.iterdir()] == ["home"]


def test_ids_never_become_paths(client: TestClient) -> None:
    for id in ("%2e%2e", "..%2f..", "%2fetc%2fpasswd", "x" * 500, "%00", "case.json"):
        answer = client.get(f"/api/jobs/{id}")
        assert answer.status_code in (404, 422) and "Traceback" not in answer.text, id


def test_jobs_are_limited(client: TestClient) -> None:
    answers = [client.post("/api/jobs", files=job_files()).status_code for _ in range(6)]
    assert answers == [202] * 4 + [429] * 2
    assert len(left(client)) == 4, "a job that is refused leaves nothing"


def test_cases_are_limited(tmp_path: Path) -> None:
    cases = Cases(Settings(home=tmp_path, cases=2))
    for _ in range(2):
        cases.new("ann", "a.csv", io.BytesIO(b"x"))
    with pytest.raises(LimitExceeded, match="you have 2 tables here already"):
        cases.new("ann", "a.csv", io.BytesIO(b"x"))
    assert cases.new("bob", "a.csv", io.BytesIO(b"x")).owner == "bob"


# Work, in this process ---------------------------------------------------------------------------------------------------


def said(tmp_path: Path, content: bytes, name: str = "people.csv", recipe: Any = None) -> tuple[str, Case]:
    """The sentence of a job that fails."""
    cases = Cases(Settings(home=tmp_path / "home"))
    tasks = Tasks(cases)
    case = cases.new("ann", name, io.BytesIO(content))
    case.draft.write_text(recipe if isinstance(recipe, str) else json.dumps(recipe or RECIPE), encoding="utf-8")
    task = tasks.start(case, "anonymize", report=False)
    work(case.folder, task.number, SMALL)
    failed = json.loads((case.folder / "tasks" / f"{task.number}.failed.json").read_text())
    assert not case.finished
    assert str(tmp_path) not in failed["sentence"] and "fault of the program" not in failed["sentence"], failed
    return failed["sentence"], case


def bomb(text: str) -> bytes:
    return gzip.compress(text.encode())


def parquet(rows: int, columns: int = 3) -> bytes:
    place = io.BytesIO()
    pq.write_table(pa.table({f"c{i}": pa.array(["x"] * rows) for i in range(columns)}), place)
    return place.getvalue()


def workbook(rows: int, far: int = 0) -> bytes:
    place = io.BytesIO()
    with xlsxwriter.Workbook(place) as book:
        sheet = book.add_worksheet()
        for row, cells in enumerate([["age", "sex", "disease"], *[[30, "f", "flu"], [40, "m", "gout"]] * rows]):
            sheet.write_row(row, 0, cells)
        if far:
            sheet.write(far, 2, "flu")
    return place.getvalue()


@pytest.mark.parametrize("name", ["people.xlsx", "people.XLSX"])
def test_a_workbook_is_uploaded_and_released(tmp_path: Path, name: str) -> None:
    cases = Cases(Settings(home=tmp_path / "home"))
    case = cases.new("ann", name, io.BytesIO(workbook(20)))
    assert inspect_table(case, {}, SMALL, ignore_progress)["looked"]["rows"] == 40 and case.draft.is_file()
    case.draft.write_text(json.dumps({**RECIPE, "method": "mondrian", "output": {"format": "xlsx"}}), encoding="utf-8")
    assert anonymize(case, {"report": False}, SMALL, ignore_progress)["ok"]
    assert case.finished and (case.out / "release.xlsx").is_file()


@pytest.mark.parametrize(
    "content,name,sentence",
    [
        (bomb(MANY), "people.csv.gz", "people.csv.gz: it decompresses to more than 100,000 bytes"),
        (bomb(MANY), "people.csv", "people.csv: it decompresses to more than 100,000 bytes"),  # whatever it is called
        (MANY.encode(), "people.csv", "people.csv: the table has 20,000 rows; at most 1,000 are taken"),
        (parquet(20_000), "people.parquet", "people.parquet: the table has 20,000 rows"),
        (parquet(2, 30), "people.parquet", "people.parquet: the table has 30 columns"),
        ((",".join(f"c{i}" for i in range(30)) + "\n").encode() * 2, "people.csv", "people.csv: the table has 30 columns"),
        (b"PK\x03\x04" + b"\x00" * 100, "people.csv", "people.csv"),
        (b"\x1f\x8b\x08\x00broken", "people.csv.gz", "people.csv.gz: the gzip data is damaged"),
        (b"not parquet", "people.parquet", "people.parquet: this is not a complete Parquet file"),
        (b"", "people.csv", "people.csv"),
        (workbook(2_000), "people.xlsx", "people.xlsx: it decompresses to more than 100,000 bytes"),
        (workbook(1, far=5_000), "people.xlsx", "people.xlsx: the table has 5,001 rows; at most 1,000 are taken"),
        (workbook(20)[:-30], "people.xlsx", "people.xlsx: this is not a complete .xlsx workbook"),
        (b"not a Stata file", "people.dta", "people.dta: this is not a complete .dta file"),
    ],
    ids=[
        "gzip",
        "hidden gzip",
        "rows",
        "parquet rows",
        "parquet columns",
        "columns",
        "zip",
        "broken gzip",
        "broken parquet",
        "empty",
        "workbook",
        "far cell",
        "broken workbook",
        "broken statistics",
    ],
)
def test_tables_that_are_too_much(tmp_path: Path, content: bytes, name: str, sentence: str) -> None:
    assert said(tmp_path, content, name)[0].startswith(sentence)


def test_zip_is_not_unpacked(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("people.csv", ROWS)
    assert "people.csv" in said(tmp_path, packed.getvalue())[0]


@pytest.mark.parametrize(
    "recipe,sentence",
    [
        (
            {**RECIPE, "schema": {**RECIPE["schema"], "quasi": {"age": "numeric", "sex": {"csv": "/etc/passwd"}}}},
            "column 'sex': its hierarchy is a file of its own",
        ),
        (
            {**RECIPE, "schema": {**RECIPE["schema"], "sensitive": {"disease": {"csv": "../../x.csv"}}}},
            "column 'disease': its hierarchy is a file of its own",
        ),
        ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]", "the recipe refers to itself"),
        ("schema: [", "the recipe: is not valid YAML"),
        ("!!python/object/apply:os.system ['true']", "the recipe: is not valid YAML"),
        ({"schema": RECIPE["schema"], "stream": {"castle": {"k": 2}}}, "the recipe describes the stream"),
        ({**RECIPE, "models": [{"k_anonymity": {"k": 50}}]}, "k-anonymity, k = 50 cannot be met"),
        ("[" * 4000, "the recipe: is not valid YAML"),
        (
            {**RECIPE, "schema": {"quasi": {"age": {"numeric": {"lo": 0, "hi": 99, "bins": 10**9}}, "sex": "flat"}}},
            "column 'age': numeric: bins=1000000000 is too large",
        ),
        ({**RECIPE, "method": {"knit": {"proposals": 10**18}}}, "method 'knit': proposals=1000000000000000000 is too large"),
        ({**RECIPE, "method": {"knit": {"seconds": 10**9}}}, "method 'knit': seconds=1000000000 is out of range"),
        ({**RECIPE, "method": {"incognito": {"most": 10**12}}}, "method 'incognito': most=1000000000000 is too large"),
    ],
    ids=[
        "csv",
        "csv of secrets",
        "references",
        "yaml",
        "python",
        "stream",
        "unsatisfiable",
        "nested",
        "bins",
        "proposals",
        "seconds",
        "vectors",
    ],
)
def test_recipes_that_are_refused(tmp_path: Path, recipe: Any, sentence: str) -> None:
    assert said(tmp_path, ROWS.encode(), recipe=recipe)[0].startswith(sentence)


def test_certificate_that_names_a_file_is_refused(tmp_path: Path) -> None:
    """An audited certificate is untrusted: it must not make the server read anything."""
    schema = ck.Schema(quasi={"age": ck.numeric(), "sex": ck.flat()})
    release = ck.anonymize(Columns.of({"age": [30, 30], "sex": ["f", "f"]}), schema, [ck.KAnonymity(2)])
    forged = json.loads(release.certificate.to_json())
    forged["columns"]["quasi"]["sex"] = {"csv": "/etc/passwd"}
    cases = Cases(Settings(home=tmp_path / "home"))
    tasks = Tasks(cases)
    case = cases.new("ann", "release.csv", io.BytesIO(b"age,sex\n30,f\n30,f\n"), "release")
    (case.folder / "certificate.json").write_text(json.dumps(forged))
    work(case.folder, tasks.start(case, "audit").number, SMALL)
    failed = json.loads((case.folder / "tasks" / "1.failed.json").read_text())
    assert "column 'sex': its hierarchy is a file of its own" in failed["sentence"]


def test_certificate_with_more_bins_than_anybody_needs_is_refused() -> None:
    table = Columns.of({"age": [30, 31]})
    release = ck.anonymize(table, ck.Schema(quasi={"age": ck.numeric(0, 99, bins=3)}), [ck.KAnonymity(2)])
    forged = json.loads(release.certificate.to_json())
    forged["columns"]["quasi"]["age"]["numeric"]["bins"] = 10**9
    with pytest.raises(ck.BadInput, match="bins=1000000000 is too large"):
        ck.audit(release.columns, certificate=Certificate.from_json(json.dumps(forged)))


def test_uploads_of_one_owner_at_the_same_time_are_limited(tmp_path: Path) -> None:
    with client_of(team(tmp_path / "home", at_once=0, uploads=0, text=100)) as client:
        answer = client.post("/api/jobs", files=job_files())
        assert answer.status_code == 429 and "too many of your uploads" in answer.json()["error"]


@pytest.mark.parametrize("data", ["/etc/passwd", {"path": "/etc/passwd", "delimiter": ","}, "../other/table.csv"])
def test_path_of_an_uploaded_recipe_is_not_followed(tmp_path: Path, data: Any) -> None:
    cases = Cases(Settings(home=tmp_path / "home"))
    tasks = Tasks(cases)
    case = cases.new("ann", "people.csv", io.BytesIO(ROWS.encode()))
    case.draft.write_text(json.dumps({**RECIPE, "data": data}), encoding="utf-8")
    work(case.folder, tasks.start(case, "anonymize", report=False).number, SMALL)
    assert "disease" in (case.out / "release.csv").read_text() and case.finished
    private = (case.private / "recipe.yaml").read_text()
    assert "people.csv" in private and "passwd" not in private and str(tmp_path) not in private


def never() -> Iterator[bytes]:
    raise AssertionError("it should never be read")
    yield b""


FORM, TEXT = "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"


@pytest.mark.parametrize("kind", [FORM, TEXT])
def test_an_unknown_visitor_sends_no_more_than_a_token(tmp_path: Path, kind: str) -> None:
    """The form for the token is open to everyone: a gigabyte in it would fill the disk, or in memory."""
    with client_of(team(tmp_path / "home", at_once=0), {"origin": HERE}) as client:
        reported = {"content-type": kind, "content-length": str(ANONYMOUS + 1)}
        assert client.post("/login", content=never(), headers=reported).status_code == 413
        assert (
            client.post("/login", content=iter([b"token=" + b"x" * ANONYMOUS]), headers={"content-type": kind}).status_code
            == 413
        )


@pytest.mark.parametrize("kind", ["application/json", TEXT, ""])
def test_only_files_may_be_large(tmp_path: Path, kind: str) -> None:
    """Everything but the files of a form is held in memory, and JSON takes many times its length there."""
    with client_of(team(tmp_path / "home", at_once=0)) as client:
        reported = {"content-type": kind, "content-length": "2000000"}
        assert client.post("/api/jobs/x/attack", content=never(), headers=reported).status_code == 413


def test_nothing_stays_of_what_is_refused_or_was_cut_off(tmp_path: Path) -> None:
    """A table whose work is refused, and a hierarchy that was being imported when the server was killed."""
    left = tmp_path / "home" / f"{PASSING}x"
    left.mkdir(parents=True)
    app = team(tmp_path / "home", at_once=0, waiting=0)
    assert not left.exists()
    with client_of(app, {**ANN, "origin": HERE}) as client:
        assert client.post("/tables", files={"table": ("people.csv", ROWS.encode())}).status_code == 429
        assert client.post("/tables/built-in").status_code == 429 and list((tmp_path / "home").iterdir()) == []
