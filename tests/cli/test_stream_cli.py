"""`closeknit stream`: what goes in and out, signals, pipes, bad lines, and every refusal as one sentence."""

from __future__ import annotations

import json
import os
import signal
import stat
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from closeknit.cli.commands import app
from closeknit.core.columns import Columns
from closeknit.io.canonical import canonical_blocks
from closeknit.io.files import read
from closeknit.streams.lines import LONGEST
from stream_runs import RECIPE, Run, as_ndjson, some_rows, write_recipe

ROWS = some_rows(150)
CLOSE = {"t_closeness": {"column": "ill", "t": 0.3}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "home").mkdir()
    write_recipe(tmp_path)
    (tmp_path / "in.ndjson").write_bytes(as_ndjson(ROWS))
    return tmp_path


def stream(*words: object, recipe: str = "recipe.yaml", input: str = "in.ndjson", output: str = "out/rows.ndjson") -> Any:
    return CliRunner().invoke(app, ["stream", recipe, "-i", input, "-o", output, *map(str, words)])


def refused(result: Any, *says: str, status: int = 2) -> None:
    assert result.exit_code == status, result.output
    (sentence,) = result.stderr.splitlines()
    assert sentence.startswith("closeknit: ") and "Traceback" not in sentence
    for part in says:
        assert part in sentence, sentence


def ndjson(file: str | Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(file).read_text(encoding="utf-8").splitlines()]


def csv_text(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(canonical_blocks(Columns.of({name: [row[name] for row in rows] for name in rows[0]})))


def classes(rows: list[dict[str, Any]]) -> Counter[tuple[str, str]]:
    return Counter((row["age"], row["sex"]) for row in rows)


def mode(path: str) -> int:
    return stat.S_IMODE(Path(path).stat().st_mode)


def test_rows_leave_in_classes_of_k(folder: Path) -> None:
    result = stream("--counters", "home/counters.json")
    assert result.exit_code == 0, result.output
    rows = ndjson("out/rows.ndjson")
    assert len(rows) == 150 and list(rows[0]) == ["age", "sex", "ill"]
    assert min(classes(rows).values()) >= 4
    assert Counter(row["ill"] for row in rows) == Counter(row["ill"] for row in ROWS)
    counted = json.loads(Path("home/counters.json").read_text())
    assert (counted["rows_in"], counted["rows_out"], counted["pending"], counted["set_aside"]) == (150, 150, 0, 0)
    assert 0 < counted["delay_mean"] <= counted["delay_most"] == 40 and 0 < counted["loss"] < 1
    assert mode("home/counters.json") == 0o600 and mode("out/rows.ndjson") == 0o644
    (line,) = result.stderr.splitlines()
    assert line.startswith("rows in 150, out 150, pending 0, suppressed 0; delay at most 40, mean ")


def test_csv_gives_the_same_as_ndjson(folder: Path) -> None:
    Path("in.csv").write_bytes(csv_text(ROWS))
    Path("in.txt").write_bytes(b"\xef\xbb\xbf" + csv_text(ROWS).replace(b",", b";").replace(b"\n", b"\r\n"))
    assert stream(output="out/0.ndjson").exit_code == 0
    assert stream(input="in.csv", output="out/1.ndjson").exit_code == 0
    assert stream(input="in.txt", output="out/2.csv").exit_code == 0
    assert (
        stream("--input-format", "csv", "--output-format", "csv", "--delimiter", ";", input="in.txt", output="out/3").exit_code
        == 0
    )
    first = Path("out/0.ndjson").read_bytes()
    assert Path("out/1.ndjson").read_bytes() == first
    assert Path("out/2.csv").read_bytes() == Path("out/3").read_bytes() == csv_text(ndjson("out/0.ndjson"))
    assert read("out/2.csv").rows == 150


def test_standard_output_has_a_line_for_each_batch(folder: Path) -> None:
    run = Run("stream", folder / "recipe.yaml", out=folder / "stdout", stdin=folder / "in.ndjson")
    assert run.wait() == 0, run.said
    batches = ndjson("stdout")
    assert [batch["batch"] for batch in batches] == list(range(1, len(batches) + 1))
    assert all(len(classes(batch["rows"])) == 1 and len(batch["rows"]) >= 4 for batch in batches)
    stream()
    assert [row for batch in batches for row in batch["rows"]] == ndjson("out/rows.ndjson")


def test_bad_lines_are_set_aside(folder: Path) -> None:
    good = as_ndjson(ROWS).splitlines(keepends=True)
    long = b'{"age": "' + b"9" * (LONGEST + 70_000) + b'"}\n'
    bad = [
        b"nonsense\n",
        b"[1]\n",
        b'{"age": 3, "age": 4}\n',
        b'{"age": NaN}\n',
        b"\xff\n",
        long,
        b"[" * 100_000 + b"\n",
        b'{"name": "x", "age": [1], "sex": "f", "ill": "flu"}\n',
        b'{"name": "x", "sex": "f", "ill": "flu"}\n',
        b'{"name": "x", "age": 1, "sex": "f", "ill": "flu", "shoe": 44}\n',
        b'{"name": "x", "age": 1e999, "sex": "f", "ill": "a"}\n',
        b'{"age": 1' + b"0" * 5000 + b"}\n",
    ]
    Path("bad.ndjson").write_bytes(b"".join([*good[:70], *bad, b"\n", *good[70:]]))
    result = stream("--rejects", "home/rejects.ndjson", input="bad.ndjson")
    assert result.exit_code == 0 and f"set aside {len(bad)}" in result.stderr
    assert "--rejects FILE" not in result.stderr
    aside = ndjson("home/rejects.ndjson")
    assert [each["line"] for each in aside] == list(range(71, 71 + len(bad)))
    reasons = " ".join(each["why"] for each in aside)
    syntax, cells = (
        "not JSON|not a JSON object|'age' occurs twice|NaN is not a number|not UTF-8",
        "longer than|'age' holds a list|'age' is not in the row|'shoe' has no role|too large",
    )
    for why in f"{syntax}|{cells}".split("|"):
        assert why in reasons, why
    assert mode("home/rejects.ndjson") == 0o600
    again = stream(output="out/clean.ndjson")
    assert again.exit_code == 0 and Path("out/clean.ndjson").read_bytes() == Path("out/rows.ndjson").read_bytes()
    refused(stream("--strict", input="bad.ndjson", output="out/s.ndjson"), "line 71: it is not JSON", "--strict")
    counted = stream(input="bad.ndjson", output="out/c.ndjson")
    assert counted.exit_code == 0 and "line 71 is set aside: it is not JSON" in counted.stderr, "of the first line only"
    assert counted.stderr.count("is set aside") == 1 and "--rejects FILE keeps all such lines" in counted.stderr


def test_bad_csv_records_cost_no_others(folder: Path) -> None:
    text = csv_text(ROWS)
    Path("clean.csv").write_bytes(text)
    lines = text.splitlines(keepends=True)
    lines[50:50] = [b'x,41,"f,flu\n', b"x,41\n", b'x,41,"f"f,flu\n']
    Path("bad.csv").write_bytes(b"".join(lines))
    result = stream("--rejects", "home/rejects", input="bad.csv")
    assert result.exit_code == 0, result.output
    assert [each["line"] for each in ndjson("home/rejects")] == [51, 52, 53]
    stream(input="clean.csv", output="out/clean.ndjson")
    assert Path("out/clean.ndjson").read_bytes() == Path("out/rows.ndjson").read_bytes()
    Path("bad.csv").write_bytes(text.replace(b"ill", b"evil", 1))
    refused(stream(input="bad.csv", output="out/c"), "column 'ill'", "not in the table", "evil")
    Path("bad.csv").write_bytes(b'"age\n')
    refused(stream(input="bad.csv", output="out/d"), "header cannot be read")


def test_an_open_quote_does_not_swallow_the_stream(folder: Path) -> None:
    lines = csv_text(some_rows(2500)).splitlines(keepends=True)
    lines[20:20] = [b'x,"41,f,flu\n']
    Path("in.csv").write_bytes(b"".join(lines))
    result = stream("--rejects", "home/rejects", input="in.csv")
    assert result.exit_code == 0 and "rows in 2,500" in result.stderr
    assert [each["line"] for each in ndjson("home/rejects")] == [21]


def test_a_row_without_a_person_is_set_aside(folder: Path) -> None:
    write_recipe(folder, schema={**RECIPE["schema"], "identifier": [], "person": "name"})
    rows = [{**row, "name": None if i == 9 else f"p{i}"} for i, row in enumerate(ROWS)]
    Path("in.ndjson").write_bytes(as_ndjson(rows))
    result = stream("--rejects", "home/rejects")
    assert result.exit_code == 0 and "rows in 149" in result.stderr
    assert [(each["line"], "without a person" in each["why"]) for each in ndjson("home/rejects")] == [(10, True)]


def test_late_and_repeated_positions_are_refused(folder: Path) -> None:
    write_recipe(folder, stream={**RECIPE["stream"], "position": "nr"})
    numbers = [*range(10), 9, 4, "x", *range(20, 157)]
    rows = [{**row, "nr": nr} for row, nr in zip(ROWS, numbers, strict=True)]
    Path("in.ndjson").write_bytes(as_ndjson(rows))
    assert stream("--rejects", "home/rejects").exit_code == 0
    assert [(each["line"], each["why"][:12]) for each in ndjson("home/rejects")] == [
        (11, "position 9 i"),
        (12, "position 4 i"),
        (13, "position 'x'"),
    ]
    assert len(ndjson("out/rows.ndjson")) == 147 and "nr" not in ndjson("out/rows.ndjson")[0]
    refused(stream("--strict", output="out/s"), "line 11: position 9 is late or repeated")
    Path("in.csv").write_bytes(csv_text(ROWS))
    refused(stream(input="in.csv", output="out/c"), "column 'nr'", "not in the header")


def test_time_from_a_column(folder: Path) -> None:
    write_recipe(folder, stream={"castle": {"k": 4, "delta": "10s"}, "time": "seen"})
    rows = [{**row, "seen": f"2024-05-01T10:00:{i // 10:02}"} for i, row in enumerate(ROWS)]
    rows[100]["seen"] = "2024-05-01T09:00:00"
    Path("in.ndjson").write_bytes(as_ndjson(rows))
    result = stream("--rejects", "home/rejects", "--strict", output="out/s")
    refused(result, "line 101: time '2024-05-01T09:00:00' is late")
    assert stream("--rejects", "home/rejects", "--force").exit_code == 0
    assert len(ndjson("out/rows.ndjson")) == 149 and "seen" not in ndjson("out/rows.ndjson")[0]
    write_recipe(folder, stream={**RECIPE["stream"], "time": "seen"})
    refused(stream(output="out/t"), "its delay is counted in rows")


# signals and pipes -----------------------------------------------------------------------------------------------------


def rows_in(folder: Path) -> int:
    try:
        return int(json.loads((folder / "home" / "counters").read_text())["rows_in"])
    except FileNotFoundError:
        return -1


def fed(folder: Path, rows: list[dict[str, Any]], expected: int, *words: object) -> tuple[Run, int]:
    """A run that has taken these rows from a named pipe, and the pipe's other end."""
    if not (folder / "pipe").exists():
        os.mkfifo(folder / "pipe")
    run = Run(
        "stream",
        folder / "recipe.yaml",
        "-i",
        folder / "pipe",
        "-o",
        folder / "out" / "rows.ndjson",
        "--counters",
        folder / "home" / "counters",
        "--every",
        1,
        *words,
        out=folder / "said",
    )
    end = os.open(folder / "pipe", os.O_WRONLY)
    os.write(end, as_ndjson(rows))
    while run.process.is_alive() and rows_in(folder) < expected:
        run.process.join(0.02)
    assert run.process.is_alive(), run.said
    return run, end


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_with_a_checkpoint_saves_and_does_not_flush(folder: Path, number: int) -> None:
    assert stream(output="out/whole.ndjson").exit_code == 0
    run, end = fed(folder, ROWS[:100], 100, "--checkpoint", folder / "home" / "ck")
    run.send(number)
    assert run.wait() == 0, run.said
    os.close(end)
    assert run.said.startswith("stopped; rows in 100, ") and "pending 0" not in run.said
    assert 0 < len(ndjson("out/rows.ndjson")) < 100
    assert mode("home/ck") == 0o700 and mode("home/ck/checkpoint") == 0o600
    restarted = stream("--checkpoint", "home/ck", input="pipe")  # a pipe does not know its position
    refused(restarted, "a pipe cannot be wound forward", "--pipe replay", "--pipe resume")

    run, end = fed(folder, ROWS[100:], 150, "--checkpoint", folder / "home" / "ck", "--pipe", "resume")
    os.close(end)
    assert run.wait() == 0, run.said
    assert Path("out/rows.ndjson").read_bytes() == Path("out/whole.ndjson").read_bytes()


def test_other_names_of_what_a_pipe_does_are_refused(folder: Path) -> None:
    says = {"again": "'again' is now called 'replay'", "goes-on": "write --pipe resume", "resmue": "did you mean 'resume'?"}
    for given, sentence in says.items():
        result = stream("--pipe", given)
        assert result.exit_code == 2 and sentence in " ".join(result.stderr.split()), result.stderr


def test_a_pipe_that_replays_from_the_start(folder: Path) -> None:
    assert stream(output="out/whole.ndjson").exit_code == 0
    run, end = fed(folder, ROWS[:100], 100, "--checkpoint", folder / "home" / "ck")
    run.send(signal.SIGTERM)
    assert run.wait() == 0
    os.close(end)
    run, end = fed(folder, ROWS, 150, "--checkpoint", folder / "home" / "ck", "--pipe", "replay")
    os.close(end)
    assert run.wait() == 0, run.said
    assert Path("out/rows.ndjson").read_bytes() == Path("out/whole.ndjson").read_bytes()


def test_the_certificate_describes_what_is_published(folder: Path) -> None:
    run, end = fed(folder, ROWS[:100], 100, "--checkpoint", folder / "home" / "ck", "--certificate", folder / "out" / "c.json")
    run.send(signal.SIGTERM)
    assert run.wait() == 0, run.said
    os.close(end)
    certificate = json.loads(Path("out/c.json").read_text())
    assert certificate["rows"] == len(ndjson("out/rows.ndjson")) < 100 and certificate["guarantees"][0]["met"]
    assert mode("out/c.json") == 0o644
    refused(stream("--counters", "nowhere/counters", output="out/b"), "nowhere/counters: there is no such file or folder")


def test_a_signal_without_a_checkpoint_flushes(folder: Path) -> None:
    run, end = fed(folder, ROWS[:100], 100)
    run.send(signal.SIGTERM)
    assert run.wait() == 0, run.said
    os.close(end)
    rows = ndjson("out/rows.ndjson")
    assert len(rows) == 100 and min(classes(rows).values()) >= 4 and "pending 0" in run.said


def test_a_delay_in_seconds_is_over_in_silence(folder: Path) -> None:
    write_recipe(folder, stream={"castle": {"k": 4, "delta": "50ms"}})
    run, end = fed(folder, ROWS[:100], 100, "--checkpoint", folder / "home" / "ck")
    while run.process.is_alive() and len(ndjson("out/rows.ndjson")) < 100:  # though no further row comes
        run.process.join(0.02)
    run.send(signal.SIGTERM)
    assert run.wait() == 0, run.said
    os.close(end)
    assert len(ndjson("out/rows.ndjson")) == 100


# refusals --------------------------------------------------------------------------------------------------------------


def test_what_stands_there_is_not_replaced(folder: Path) -> None:
    Path("out/rows.ndjson").write_text("mine\n")
    refused(stream(), "out/rows.ndjson: it exists already", "--force")
    assert Path("out/rows.ndjson").read_text() == "mine\n"
    assert stream("--force").exit_code == 0 and len(ndjson("out/rows.ndjson")) == 150
    Path("home/rejects").write_text("mine\n")
    refused(stream("--rejects", "home/rejects", output="out/b"), "home/rejects: it exists already")


def test_what_is_private_stays_out_of_the_folder_of_the_output(folder: Path) -> None:
    for option in ("--rejects", "--counters", "--checkpoint"):
        refused(stream(option, "out/private"), f"out/private: {option} is in the folder of the output")
        Path("link").unlink(missing_ok=True)
        Path("link").symlink_to("out")
        refused(stream(option, "link/deep/private"), "is in the folder of the output")
    assert os.listdir("out") == []


def test_a_checkpoint_of_something_else_is_refused(folder: Path) -> None:
    assert stream("--checkpoint", "home/ck").exit_code == 0
    out = Path("out/rows.ndjson").read_bytes()
    write_recipe(folder, stream={"castle": {"k": 5, "delta": 40}})
    refused(stream("--checkpoint", "home/ck"), "has another k (4, now 5)")
    write_recipe(folder, stream={"knn_stream": {"k": 4, "delta": 40}})
    refused(stream("--checkpoint", "home/ck"), "checkpoint of castle, and knn_stream is requested")
    write_recipe(folder, schema={**RECIPE["schema"], "missing": ["?"]})
    refused(stream("--checkpoint", "home/ck"), "has another schema")
    write_recipe(folder, seed=8)
    refused(stream("--checkpoint", "home/ck"), "has another seed")
    write_recipe(folder)
    refused(stream("--checkpoint", "home/ck", output="out/other"), "the checkpoint writes to", "rows.ndjson as NDJSON")
    Path("in.ndjson").write_bytes(as_ndjson(some_rows(150, seed=2)))
    refused(stream("--checkpoint", "home/ck"), "in.ndjson: this is not the input that the checkpoint has read")
    Path("in.ndjson").write_bytes(as_ndjson(ROWS))
    assert Path("out/rows.ndjson").read_bytes() == out
    Path("out/rows.ndjson").write_bytes(out[:-1])
    refused(stream("--checkpoint", "home/ck"), "bytes, and the checkpoint has written")
    Path("home/ck/checkpoint").write_bytes(b"nonsense")
    refused(stream("--checkpoint", "home/ck"), "not a checkpoint of a stream")


def test_a_stream_that_has_ended_is_left_alone(folder: Path) -> None:
    assert stream("--checkpoint", "home/ck").exit_code == 0
    out = Path("out/rows.ndjson").read_bytes()
    result = stream("--checkpoint", "home/ck")
    assert result.exit_code == 0 and "had ended before" in result.stderr
    assert Path("out/rows.ndjson").read_bytes() == out


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"stream": {"castel": {}}}, "stream 'castel' is unknown; did you mean 'castle'?"),
        ({"stream": {"river": {}}}, "stream 'river' is unknown; choose one of: burel_window, castle"),
        ({"stream": {"castle": {"kk": 4}}}, "stream 'castle' has no parameter 'kk'; choose one of: k, delta"),
        ({"stream": {"castle": {"k": 4, "delta": 0}}}, "delta=0 is too small"),
        ({"stream": {"castle": {"k": 4, "delta": "soon"}}}, "delta='soon' is not a delay"),
        ({"stream": {"castle": 4}}, "has 4 for its parameters"),
        ({"stream": {"castle": {"k": 4}, "knn_stream": {"k": 4}}}, "cannot be read"),
        ({"stream": {"castle": {"k": 4}, "position": 3}}, "position=3, which is not a column"),
        ({"method": "sabre"}, "has a method and a stream"),
        ({"stream": None}, "the recipe has no stream"),
        ({"schema": {"quasi": {"age": "numeric"}}}, "is numeric without bounds"),
        ({"stream": {"sabre_window": {"omega": 10, "advance": 3}}, "models": [CLOSE]}, "omega=10 is not a multiple of advance"),
    ],
)
def test_bad_recipes(folder: Path, changes: dict[str, Any], says: str) -> None:
    recipe = write_recipe(folder, **{"models": [], **changes})
    refused(stream(recipe=str(recipe)), says)
    assert not Path("out/rows.ndjson").exists()


def test_bad_places(folder: Path) -> None:
    refused(stream(input="nothing.ndjson"), "nothing.ndjson: there is no such file")
    refused(stream(input="home", output="out/b"), "home: this is a folder")
    Path("in.ndjson.gz").write_bytes(b"")
    refused(stream(input="in.ndjson.gz", output="out/c"), "a stream cannot resume within a compressed file")
    refused(stream(output="nowhere/rows"), "nowhere/rows: there is no such file or folder")
    os.mkfifo("pipe")
    refused(stream("--checkpoint", "home/ck", "--output-format", "csv", output="pipe"), "cannot mark a batch that is repeated")


def test_a_recipe_of_a_stream_is_none_of_a_table(folder: Path) -> None:
    write_recipe(folder, data="in.ndjson")
    result = CliRunner().invoke(app, ["anonymize", "recipe.yaml", "-o", "release"])
    refused(result, "the recipe describes the stream 'castle', not a table", "closeknit stream")


def test_the_recipe_may_name_the_input(folder: Path) -> None:
    write_recipe(folder, data="in.ndjson")
    result = CliRunner().invoke(app, ["stream", "recipe.yaml", "-o", "out/rows.ndjson"])
    assert result.exit_code == 0 and len(ndjson("out/rows.ndjson")) == 150
