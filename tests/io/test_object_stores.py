"""Files in object stores: on a local folder in place of a store, and (soak) on an S3-compatible server on loopback."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from pyarrow import fs
from typer.testing import CliRunner

import closeknit as ck
from closeknit.cli.commands import app
from closeknit.core.errors import BadInput
from closeknit.datasets import hospital, hospital_recipe, hospital_schema
from closeknit.io import object_folders, object_stores
from closeknit.io.files import read, write_csv, write_parquet
from closeknit.io.object_folders import ObjectFolder
from closeknit.io.object_stores import ObjectFile

ROOT = Path(__file__).resolve().parents[2]
RUNNER = CliRunner()


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that takes the place of every object store; its sub-folders are the buckets."""
    bucket = tmp_path / "store" / "hospital"
    bucket.mkdir(parents=True)

    def open_store(address: str) -> tuple[fs.FileSystem, str]:
        return fs.SubTreeFileSystem(str(bucket.parent), fs.LocalFileSystem()), address.partition("://")[2].partition("?")[0]

    monkeypatch.setattr(object_stores, "open_store", open_store)
    return bucket


def test_files_of_every_format_are_read(store: Path) -> None:
    (store / "people.csv").write_text("age;cost\n30;1,5\n", encoding="utf-8")
    (store / "people.ndjson").write_text('{"age": 30, "cost": 1.5}\n', encoding="utf-8")
    pq.write_table(pa.table({"age": [30], "cost": [1.5]}), store / "people.parquet")
    for scheme in ("s3", "gs", "az", "abfs"):
        for suffix in ("csv", "ndjson", "parquet"):
            table = read(f"{scheme}://hospital/people.{suffix}")
            assert [str(cell) for name in table for cell in table[name].cells()] == ["30", "1.5"]
    assert list(ObjectFile("s3://hospital/people.parquet?region=eu").read(["cost"])) == ["cost"]
    (store / "parts.csv").mkdir()
    for part in "ab":
        shutil.copy(store / "people.csv", store / "parts.csv" / f"part-{part}.csv")
    assert read("s3://hospital/parts.csv").rows == 2
    for year in (2023, 2024):
        (store / "years" / f"year={year}").mkdir(parents=True)
        shutil.copy(store / "people.parquet", store / "years" / f"year={year}")
    assert read("s3://hospital/years")["year"].cells() == ["2023", "2024"]


def small_release() -> ck.LocalRelease:
    return ck.anonymize(hospital(60), hospital_schema(), [ck.KAnonymity(5)], ck.Mondrian(), seed=2**100)


def test_a_release_in_a_store_has_its_public_files_and_is_audited_there(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    release = small_release()
    release.save("s3://hospital/results/out/?region=eu", format="parquet", report=False)
    assert sorted(file.name for file in (store / "results" / "out").iterdir()) == ["certificate.json", "release.parquet"]
    assert {"recipe.yaml", "classes.csv"} <= {file.name for file in (tmp_path / "out.private").iterdir()}
    assert (tmp_path / "out.private").stat().st_mode & 0o777 == 0o700
    assert ck.audit("s3://hospital/results/out/release.parquet").ok
    with pytest.raises(BadInput, match="s3://hospital/results/out: the folder exists already; choose another folder, or force"):
        release.save("s3://hospital/results/out")
    release.save("s3://hospital/results/out", format="csv", force=True, report=False)
    assert sorted(file.name for file in (store / "results" / "out").iterdir()) == ["certificate.json", "release.csv"]
    (store / "results" / "out" / "thesis.txt").touch()
    with pytest.raises(BadInput, match=r"the folder also contains 'thesis\.txt', which would be deleted"):
        release.save("s3://hospital/results/out", force=True)
    with pytest.raises(BadInput, match="has the option 'sig'"):
        release.save("az://hospital/other?sig=hunter2")


@pytest.mark.parametrize("force", [False, True])
def test_a_store_that_fails_never_has_a_certificate_of_other_files(
    force: bool, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    release = small_release()
    calls, last, ended = 0, 10**9, False

    def count(kind: str) -> None:
        original = getattr(ObjectFolder, kind)

        def call(self: ObjectFolder, store: fs.FileSystem, file: Path, path: str) -> None:
            nonlocal calls
            calls += 1
            if calls > last:
                raise OSError("the store is gone")
            original(self, store, file, path)
            if calls == last and file.name == "release.csv":
                with store.open_output_stream(path) as cut:
                    cut.write(b"half")
                raise OSError("the store is gone")

        monkeypatch.setattr(ObjectFolder, kind, call)

    count("_put_file")
    for last in range(3):
        if force:
            calls = -(10**9)
            release.save("s3://hospital/out", format="csv", force=True, report=False)
        calls = 0
        if last < 2:
            with pytest.raises(BadInput, match=r"the object store does not take it \(the store is gone\)"):
                release.save("s3://hospital/out", format="csv", force=force, report=False)
            assert not [file for file in (store / "out").rglob("*") if file.is_file()]
            assert force or not (tmp_path / "out.private").exists()
        else:
            release.save("s3://hospital/out", format="csv", force=force, report=False)
            ended = True
    assert ended and ck.audit("s3://hospital/out/release.csv").ok


def test_bytes_that_a_store_changes_are_noticed(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(object_folders, "copyfileobj", lambda source, target, size: target.write(source.read()[:-1]))
    with pytest.raises(BadInput, match="it returns other bytes than were written"):
        small_release().save("s3://hospital/out", report=False)
    assert not list((store / "out").iterdir()) and not (tmp_path / "out.private").exists()


def test_the_command_writes_to_a_store(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_csv(hospital(60), tmp_path / "patients.csv")
    recipe = hospital_recipe("patients.csv")
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    words = ["anonymize", "recipe.yaml", "-o", "s3://hospital/out", "--no-report"]
    result = RUNNER.invoke(app, words)
    assert result.exit_code == 0 and "s3://hospital/out/  the release" in result.output, result.output
    assert "out.private/  private, do not share" in result.output
    again = RUNNER.invoke(app, words)
    assert again.exit_code == 2 and "the folder exists already" in again.output
    assert RUNNER.invoke(app, [*words, "--force"]).exit_code == 0


def test_what_is_wrong_is_one_sentence_with_the_address(store: Path) -> None:
    for place, sentence in {
        "s3://hospital/none.csv": "s3://hospital/none.csv: there is no such file",
        "s3://hospital": "names no file",
        "az://hospital/a.csv?sig=hunter2": "has the option 'sig'; leave it out",
    }.items():
        with pytest.raises(BadInput, match=sentence) as found:
            read(place)
        assert "hunter2" not in str(found.value)
        with pytest.raises(BadInput) as found:
            ck.anonymize(place, hospital_schema(), [ck.KAnonymity(5)])
        assert "hunter2" not in str(found.value)
    (store / "empty.csv").touch()
    with pytest.raises(BadInput, match=r"^s3://hospital/empty\.csv: ") as found:
        read("s3://hospital/empty.csv")
    assert tempfile.gettempdir() not in str(found.value)


def test_the_storage_account_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(BadInput, match="names no storage account; set AZURE_STORAGE_ACCOUNT_NAME"):
        read("az://data/people.csv")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "clinic")
    assert object_stores.full_address("az://data/people.csv") == "abfss://data@clinic.dfs.core.windows.net/people.csv"
    with pytest.raises(BadInput, match="set them in the environment") as found:
        read("abfs://data:hunter2@clinic.dfs.core.windows.net/people.csv")
    assert "hunter2" not in str(found.value)


def test_a_release_in_a_store_is_audited(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_csv(hospital(300), store / "patients.csv")
    recipe = {**hospital_recipe("s3://hospital/patients.csv"), "method": "mondrian", "seed": 2**70}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    done = RUNNER.invoke(app, ["anonymize", "recipe.yaml", "-o", "out", "--no-report"])
    assert done.exit_code == 0, done.output
    assert yaml.safe_load(Path("out.private/recipe.yaml").read_text("utf-8"))["data"] == {"url": "s3://hospital/patients.csv"}
    shutil.copytree("out", store / "out")
    assert ck.audit("s3://hospital/out/release.csv").ok
    text = (store / "out" / "release.csv").read_text("utf-8")
    (store / "out" / "release.csv").write_text(text.replace("influenza", "pneumonia", 1), encoding="utf-8")
    assert not ck.audit("s3://hospital/out/release.csv").ok
    with pytest.raises(BadInput, match="no certificate with this table"):
        ck.audit("s3://hospital/patients.csv")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    program = Path(os.environ.get("CLOSEKNIT_S3", ROOT / ".venv-s3" / "bin" / "moto_server"))
    if not program.is_file():
        pytest.skip("the environment of the S3-compatible server is absent: `make stores` prepares it")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(program), "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        while process.poll() is None:
            try:
                urllib.request.urlopen(address)
                break
            except urllib.error.HTTPError:
                break
            except OSError:
                time.sleep(0.1)
        keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "hunter2", "AWS_EC2_METADATA_DISABLED": "true"}
        for name, value in {**keys, "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": address, "AWS_ALLOW_HTTP": "true"}.items():
            monkeypatch.setenv(name, value)
        yield
    finally:
        process.terminate()
        process.wait()


@pytest.mark.soak  # its environment takes half a minute to install
def test_an_s3_compatible_server(server: None, tmp_path: Path) -> None:
    write_parquet(hospital(300), tmp_path / "patients.parquet")
    bucket, _ = fs.FileSystem.from_uri("s3://hospital/?allow_bucket_creation=true")
    bucket.create_dir("hospital")
    fs.copy_files(str(tmp_path / "patients.parquet"), "hospital/patients.parquet", destination_filesystem=bucket)
    schema, models = hospital_schema(), [ck.KAnonymity(5)]
    release = ck.anonymize("s3://hospital/patients.parquet", schema, models, ck.Mondrian(), seed=2**70)
    plain = ck.anonymize(hospital(300), schema, models, ck.Mondrian(), seed=2**70)
    assert release.certificate.content_sha256 == plain.certificate.content_sha256
    release.save(tmp_path / "out", report=False)
    fs.copy_files(str(tmp_path / "out"), "hospital/out", destination_filesystem=bucket)
    assert ck.audit("s3://hospital/out/release.csv").ok
    release.write_to("delta+s3://hospital/release")
    assert ck.audit("delta+s3://hospital/release").ok
    for place in ("s3://hospital/none.csv", "s3://elsewhere/none.csv", "delta+s3://hospital/none"):
        with pytest.raises(BadInput) as found:
            read(place)
        assert "hunter2" not in str(found.value)
