"""Public files disclose nothing but what was guaranteed: a recipient's test, and searches for anything private in `out/`."""

from __future__ import annotations

import getpass
import io
import json
import os
import pickle
import re
import shutil
import socket
import stat
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import closeknit
import closeknit as ck
from closeknit.api.publishing import publish_table
from closeknit.checks.naive_cells import rows_of, text_of
from closeknit.checks.tables import Case, edge_tables, random_tables
from closeknit.core.columns import Columns
from closeknit.core.kind_forms import kind_form
from closeknit.core.kinds import Numeric
from closeknit.core.table import Partition
from closeknit.io.files import read, write_csv
from closeknit.release import LocalRelease
from conftest import examples

SEED = 271828182845904523536028747135266249775
TABLES = [*edge_tables(), *random_tables(examples(8), seed=3)]
IDS = [table.name for table in TABLES]
RECIPIENT = """
import json, sys
from pathlib import Path
import closeknit as ck
for folder in sorted(Path('.').iterdir()):
    (file,) = folder.glob('release.*')
    found = ck.audit(file, certificate=folder / 'certificate.json')
    said = [guarantee.status for guarantee in found.guarantees]
    print(json.dumps([folder.name, found.ok, list(found.findings), said, found.loss.a, found.classes.count]))
"""


def released(table: Case, data: object = None, seed: int = SEED) -> ck.Release:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = table.columns if data is None else data
        return ck.anonymize(source, table.schema, list(table.models), ck.Knit(proposals=10_000), seed=seed)


def format_of(number: int) -> str:
    return ("csv", "parquet")[number % 2]


def has_pages(number: int) -> bool:
    """Every third has reports: they take longer than everything else."""
    return number % 3 == 0


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every table through a file with a revealing name, saved under its number."""
    base = tmp_path_factory.mktemp("at-home-4711")
    for number, table in enumerate(TABLES):
        file = base / f"patients-of-dr-quill-{number}.csv"
        write_csv(table.columns, file)
        released(table, file).save(base / f"{number:03}", format_of(number), report=has_pages(number))
    return base


def bytes_in(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def test_a_recipient_recomputes_the_certificate(folders: Path, tmp_path: Path) -> None:
    for number in range(len(TABLES)):
        shutil.copytree(folders / f"{number:03}", tmp_path / f"{number:03}")
    source = str(Path(closeknit.__file__).resolve().parents[1])
    bare = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": source, "HOME": str(tmp_path.parent)}
    done = subprocess.run([sys.executable, "-c", RECIPIENT], cwd=tmp_path, env=bare, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(TABLES)
    for table, (folder, ok, findings, said, loss, classes) in zip(TABLES, answers, strict=True):
        certificate = json.loads((tmp_path / folder / "certificate.json").read_text("utf-8"))
        attested = [guarantee["status"] == "attested" for guarantee in certificate["guarantees"]]
        assert findings == [], (table.name, findings)
        assert said == ["not checkable" if hidden else "recomputed" for hidden in attested], table.name
        assert ok is not any(attested), table.name
        assert any(attested) == (table.schema.person is not None), table.name
        assert (loss, classes) == (pytest.approx(certificate["loss"]["a"]), certificate["classes"]["count"])


@pytest.mark.parametrize("number", range(len(TABLES)), ids=IDS)
def test_nothing_private_in_out(folders: Path, number: int) -> None:
    table, public = TABLES[number], folders / f"{number:03}"
    found = bytes_in(public)
    pages = {"report.html", "report.json"} if has_pages(number) else set()
    assert set(found) == {f"release.{format_of(number)}", "certificate.json", *pages}
    text = b"\n".join(found.values()).decode("utf-8", errors="replace")
    names = [*table.schema.identifier, *([table.schema.person] if table.schema.person else [])]
    private = {str(cell) for name in names for cell in table.columns[name].cells()}
    assert [cell for cell in private if cell in text] == []
    words = [str(SEED), f"{SEED:x}", "quill", "at-home", str(folders), "stack_and_deal", "recipe", "seed"]
    assert [word for word in words if word in text] == []
    who = [socket.gethostname(), getpass.getuser()]
    assert [word for word in who if re.search(rf"(?<![\w]){re.escape(word)}(?![\w])", text)] == []


BELOW = {
    "one code below each mask": (ck.prefix(), 1, ["47601", "47601", "47911", "47912"], ["47602", "47603", "47913", "47913"]),
    "codes of a declared length": (ck.prefix(5), 2, ["47601", "47601", "48911", "48912"], ["47602", "47613", "48900", "48900"]),
    "days of a month": (
        ck.date(),
        1,
        ["2024-01-07", "2024-01-07", "2024-03-01", "2024-03-02"],
        ["2024-01-01", "2024-01-31", "2024-03-31", "2024-03-31"],
    ),
    "leaves of a tree made from data": (
        ck.Hierarchy({"A": ["a", "b"], "C": ["c", "d", "e"]}, from_data=True),
        1,
        ["a", "a", "c", "d"],
        ["a", "b", "e", "e"],
    ),
    "values under a star": (ck.flat(), "*", ["a", "a", "b", "b"], ["a", "b", "c", "d"]),
    "numbers of a step": (ck.numeric(step=5), 1, [20, 21, 26, 27], [23, 24, 28, 29]),
}


@pytest.mark.parametrize("below", BELOW)
def test_values_below_a_written_node_do_not_show(below: str, tmp_path: Path) -> None:
    """The classes and cells are the same, and only how many values there are below them differs: so are all public bytes."""
    kind, level, *tables = BELOW[below]
    written = []
    for values in tables:
        schema = ck.Schema(quasi={"q": kind}, sensitive={"ill": ck.flat()})
        data = Columns.of({"q": values, "ill": ["x", "y", "x", "y"]})
        partition = Partition.of(np.array([0, 0, 1, 1])[(table := schema.encode(data)).rows])
        columns, certificate = publish_table(table, partition, [ck.KAnonymity(2)], ck.generalized(levels={"q": level}))
        LocalRelease(columns, certificate).save(folder := tmp_path / str(len(written)), report=False)
        written.append(bytes_in(folder))
    assert written[0] == written[1]


def test_the_loss_of_ranges_does_not_disclose_the_raw_minimum_and_maximum() -> None:
    """Ages from 21 to 28 in cells [20, 25] and [25, 30]: the loss is 5 of 10 years, not 5 of 7."""
    schema = ck.Schema(quasi={"age": ck.numeric(step=5)}, sensitive={"ill": ck.flat()})
    data = Columns.of({"age": [21, 24, 26, 28], "ill": ["x", "y", "x", "y"]})
    release = ck.anonymize(data, schema, [ck.KAnonymity(2)], form=ck.generalized(snap=True), seed=SEED)
    assert sorted(set(release.columns["age"].cells())) == ["[20, 25]", "[25, 30]"] and release.loss == 0.5


@pytest.mark.parametrize("number", range(len(TABLES)), ids=IDS)
def test_certificate_discloses_no_cell_that_is_not_written(folders: Path, number: int) -> None:
    """Of trees that were made from data only the written nodes occur; all else is as declared."""
    table, public = TABLES[number], folders / f"{number:03}"
    release = read(next(public.glob("release.*")))
    certificate = json.loads((public / "certificate.json").read_text("utf-8"))
    for name, kind in table.schema.quasi.items():
        written = {text_of(cell) for cell in release[name].cells()}
        reported = certificate["columns"]["quasi"][name]
        if getattr(kind, "from_data", False):
            assert set(reported) == {"written"}, name
            assert set(reported["written"]["nodes"]) <= written, name
            assert set(reported["written"]["nodes"].values()) <= {"value", "group", "all"}, name
        else:
            snapped = [kind_form(replace(kind, snap=True))] if isinstance(kind, Numeric) else []  # ranges of decimals
            assert reported in [kind_form(kind), *snapped], name
        for guarantee in certificate["guarantees"]:
            if guarantee["worst"]:
                assert (guarantee["worst"]["cells"][name] or None) in written


def test_decimals_generalized_away_occur_nowhere(tmp_path: Path) -> None:
    """Numbers that do not occur by chance: those that are no end of a written range are in no public byte."""
    rng = np.random.default_rng(8)
    income = [f"{x:.5f}" for x in rng.uniform(1000, 9000, 60)]
    towns = [f"Town{number}" for number in rng.integers(1000, 9000, 60)]
    cells = {"income": [float(x) for x in income], "town": towns, "ill": rng.choice(["flu", "gout", "colic"], 60).tolist()}
    schema = ck.Schema(quasi={"income": ck.numeric(), "town": ck.flat()}, sensitive={"ill": ck.flat()})
    release = ck.anonymize(Columns.of(cells), schema, [ck.KAnonymity(5), ck.TCloseness("ill", 0.5)], seed=SEED)
    written = "\n".join(str(cell) for row in rows_of(release.columns, ["income", "town"]) for cell in row)
    hidden = [x for x in [*(repr(float(x)) for x in income), *towns] if x not in written]
    assert len(hidden) > 60
    release.save(tmp_path / "csv")
    release.save(tmp_path / "parquet", "parquet")
    _ = release.frame
    sent = [*bytes_in(tmp_path / "csv").values(), *bytes_in(tmp_path / "parquet").values(), pickle.dumps(release)]
    sent += [arrow_bytes(release.frame), arrow_bytes(pq.read_table(tmp_path / "parquet" / "release.parquet"))]
    for content in sent:
        assert [x for x in hidden if x.encode() in content] == []
    doubles = [np.float64(x).tobytes() for x in income]
    assert [x for content in sent for x in doubles if x in content] == []


def arrow_bytes(table: pa.Table) -> bytes:
    """Everything in the buffers and metadata of an Arrow table."""
    buffers = [buffer for column in table.columns for chunk in column.chunks for buffer in chunk.buffers() if buffer]
    return b"|".join([*(buffer.to_pybytes() for buffer in buffers), str(table.schema.metadata).encode()])


def test_parquet_contains_nothing_but_its_cells(folders: Path) -> None:
    """Dictionaries and statistics are of written cells, and there is no metadata of the input."""
    for number, table in enumerate(TABLES):
        if format_of(number) != "parquet":
            continue
        file = pq.ParquetFile(folders / f"{number:03}" / "release.parquet")
        assert set(file.metadata.metadata or {}) <= {b"ARROW:schema"}
        assert file.schema_arrow.metadata is None
        written = {str(cell) for column in file.read().columns for cell in column.to_pylist()}
        for group in range(file.metadata.num_row_groups):
            for place in range(file.metadata.num_columns):
                column = file.metadata.row_group(group).column(place)
                if column.is_stats_set and column.statistics.has_min_max:
                    assert {str(column.statistics.min), str(column.statistics.max)} <= written, table.name


def test_suppressed_rows_leave_no_byte(tmp_path: Path) -> None:
    table = next(table for table in TABLES if table.name == "unicode")
    cells = {name: column.cells() for name, column in table.columns.items()}
    class_of = np.arange(40) // 8
    for row in np.flatnonzero(class_of == 2):
        class_of[row] = -1
        cells["blood"][row] = f"Suppressed-blood-{row}"
        cells["ward"][row] = "Suppressed-ward"
    coded = table.schema.encode(Columns.of(cells))
    columns, certificate = publish_table(coded, Partition.of(class_of[coded.rows]), [ck.KAnonymity(8)], ck.generalized())
    release = LocalRelease(columns, certificate, partition=class_of.astype(np.int32), recipe={"seed": SEED})
    assert certificate.suppressed == 8 and columns.rows == 32
    release.save(tmp_path / "csv")
    release.save(tmp_path / "parquet", "parquet")
    memory = io.BytesIO()
    pq.write_table(release.frame, memory)
    sent = [*bytes_in(tmp_path / "csv").values(), *bytes_in(tmp_path / "parquet").values()]
    for content in [*sent, memory.getvalue(), pickle.dumps(release), arrow_bytes(release.frame)]:
        assert b"Suppressed-" not in content
    assert ck.audit(tmp_path / "csv" / "release.csv", certificate=tmp_path / "csv" / "certificate.json").ok


@pytest.mark.parametrize("number", range(0, len(TABLES), 3), ids=IDS[::3])
def test_order_of_the_input_shows_in_no_byte(folders: Path, tmp_path: Path, number: int) -> None:
    table = TABLES[number]
    shuffled = table.columns.take(np.random.default_rng(number).permutation(table.columns.rows))
    file = tmp_path / "shuffled.csv"
    write_csv(shuffled, file)
    released(table, file).save(tmp_path / "out", format_of(number), report=has_pages(number))
    assert bytes_in(tmp_path / "out") == bytes_in(folders / f"{number:03}")


def test_identifiers_are_without_any_influence() -> None:
    table = TABLES[0]
    cells = {name: column.cells() for name, column in table.columns.items()}
    cells["name"] = [f"Other-{row * 7919 % 40}" for row in range(40)]
    assert released(table, Columns.of(cells)).certificate == released(table).certificate


SAVES = """
import sys
import closeknit as ck
from closeknit.checks.tables import edge_tables
for table in edge_tables()[:4]:
    release = ck.anonymize(table.columns, table.schema, list(table.models), ck.Knit(proposals=10_000), seed=2**100)
    print(release.certificate.to_json())
    print(release.report())
"""


def test_the_process_shows_nowhere() -> None:
    """Neither the hashes of a process, nor its threads, its time zone or its language."""
    source = str(Path(closeknit.__file__).resolve().parents[1])
    worlds = [("1", "1", "UTC", "C.UTF-8"), ("77", "2", "Asia/Tokyo", "de_DE.UTF-8")]
    said = []
    for hashes, threads, zone, language in worlds:
        world = {"PYTHONHASHSEED": hashes, "NUMBA_NUM_THREADS": threads, "TZ": zone, "LC_ALL": language}
        world |= {"PYTHONPATH": source, "PATH": os.environ.get("PATH", ""), "HOME": os.environ.get("HOME", "")}
        done = subprocess.run([sys.executable, "-c", SAVES], env=world, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert said[0] == said[1] and "content_sha256" in said[0]


def test_metadata_of_the_input_is_not_published() -> None:
    table = TABLES[3]
    cells = {name: column.cells() for name, column in table.columns.items()}
    arrow = pa.table(cells).replace_schema_metadata({"source": "ward 7"})
    assert released(table, arrow).frame.schema.metadata is None
    frame = pd.DataFrame(cells)
    frame.attrs["source"] = "ward 7"
    frame.index.name = "patient"
    frame["blood"] = pd.Categorical(frame["blood"], categories=["A", "Ward-7-only", "B", "0"])
    made = released(table, frame).frame
    assert made.attrs == {} and made.index.name is None and isinstance(made.index, pd.RangeIndex)
    assert "Ward-7-only" not in made["blood"].cat.categories


def test_private_folder_is_closed_to_others(folders: Path) -> None:
    private = folders / "000.private"
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    own = {"recipe.yaml", "classes.csv", "recoding.json", "report.html", "report.json"}
    assert {file.name for file in private.iterdir()} == own
    assert {stat.S_IMODE(file.stat().st_mode) for file in private.iterdir()} == {0o600}
    recipe = (private / "recipe.yaml").read_text("utf-8")
    assert str(SEED) in recipe and "patients-of-dr-quill-0.csv" in recipe


@pytest.mark.parametrize("number", range(len(TABLES)), ids=IDS)
def test_recipe_repeats_the_release(folders: Path, number: int) -> None:
    recipe = closeknit.api.recipe.Recipe.read(folders / f"{number:03}.private" / "recipe.yaml")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = ck.api.run(recipe)
    certificate = json.loads((folders / f"{number:03}" / "certificate.json").read_text("utf-8"))
    assert again.certificate.content_sha256 == certificate["content_sha256"]


def test_pickle_is_private(tmp_path: Path) -> None:
    table = next(table for table in TABLES if table.name == "persons")
    release = released(table)
    _ = release.frame, release.partition
    packed = pickle.dumps(release)
    for private in [b"Person-", b"Patient-", str(SEED).encode(), SEED.to_bytes(16, "little"), b"stack_and_deal"]:
        assert private not in packed
    again = pickle.loads(packed)
    assert again.certificate == release.certificate
    assert rows_of(again.columns, list(release.columns)) == rows_of(release.columns, list(release.columns))
    with pytest.raises(ck.BadInput, match="partition"):
        _ = again.partition


def test_two_seeds_are_drawn_apart_and_long() -> None:
    table = TABLES[0]
    seeds = []
    for _ in range(2):
        release = ck.anonymize(table.columns, table.schema, list(table.models))
        seeds.append(release._recipe["seed"])  # type: ignore[index]
    assert seeds[0] != seeds[1] and max(seeds) > 2**100
    with pytest.warns(UserWarning, match="seed is short"):
        ck.anonymize(table.columns, table.schema, list(table.models), seed=7)
