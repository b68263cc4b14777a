"""Redis in and out: each row once whatever dies, entries acknowledged after a checkpoint, every refusal as one sentence."""

from __future__ import annotations

import json
import random
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from typer.testing import CliRunner

from closeknit.cli.commands import app
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.streams.redis_streams import RedisSink, RedisSource, sink, source
from conftest import SOAK_SEED
from redis_runs import Server, free_port, started
from stream_runs import Run, as_ndjson, some_rows, write_recipe

ROWS = some_rows(700)
NAMES = count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if shutil.which("redis-server") is None:
        pytest.skip("there is no redis-server here (Debian: apt-get install redis-server)")
    ours = Server(tmp_path_factory.mktemp("redis"))
    for row in as_ndjson(ROWS).splitlines():
        ours.client.xadd("people", {"row": row})
    ours.client.xadd("people", {"row": b'{"age": '}, id="*")
    ours.client.xadd("people", {"end": "1"})
    yield ours
    ours.process.terminate()
    ours.process.wait()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[str]]:
    """What comes of the same rows from a file, by batches."""
    place = tmp_path_factory.mktemp("whole")
    (place / "in.ndjson").write_bytes(as_ndjson(ROWS))
    run = Run("stream", write_recipe(place), "-i", place / "in.ndjson", out=place / "said")
    assert run.wait() == 0, run.said
    lines = [json.loads(line) for line in (place / "said").read_text(encoding="utf-8").splitlines()]
    return {one["batch"]: [json.dumps(row, separators=(",", ":")) for row in one["rows"]] for one in lines}


@pytest.fixture
def key() -> str:
    """A name that no other test uses."""
    return f"key{next(NAMES)}"


def test_batches_are_those_of_the_same_rows_in_a_file(
    server: Server, expected: dict[int, list[str]], key: str, tmp_path: Path
) -> None:
    run = started(server, tmp_path, key, group=key)
    assert run.wait() == 0, run.said
    assert server.batches(key) == expected and sum(map(len, expected.values())) == 700
    assert server.pending("people", key) == 0
    (reject,) = (tmp_path / "rejects").read_text(encoding="utf-8").splitlines()
    assert json.loads(reject)["line"] == 701 and "it is not JSON" in reject
    assert "rows in 700, out 700" in run.said and "set aside 1" in run.said


def killed_again_and_again(server: Server, chance: random.Random, place: Path, key: str, kills: int, calls: int) -> int:
    for kill in range(kills):
        at = chance.randrange(1, calls * 2 // 3) if kill % 3 else None  # after so many calls of the system, or at any time
        run = started(server, place, key, die_at=at, group=key)
        if at is None:
            time.sleep(chance.random() * 0.8)
            run.process.kill()
        if (status := run.wait()) == 0:
            return kill
        assert status == -signal.SIGKILL, run.said
    run = started(server, place, key, group=key)
    assert run.wait() == 0, run.said
    return kills


def kill_runs(server: Server, expected: dict[int, list[str]], tmp_path: Path, key: str, kills: int, seed: int) -> None:
    (tmp_path / "whole").mkdir()
    whole = started(server, tmp_path / "whole", f"{key}-whole", group=f"{key}-whole")
    assert whole.wait() == 0, whole.said
    chance, done = random.Random(seed), 0
    while done < kills:
        place, name = tmp_path / str(done), f"{key}-{done}"
        place.mkdir()
        done += max(killed_again_and_again(server, chance, place, name, min(kills - done, 4), whole.calls), 1)
        assert server.batches(name) == expected
        assert server.pending("people", name) == 0
        assert (place / "rejects").read_bytes() == (tmp_path / "whole" / "rejects").read_bytes()


def test_killed_at_any_instant_each_row_stands_once(
    server: Server, expected: dict[int, list[str]], key: str, tmp_path: Path
) -> None:
    kill_runs(server, expected, tmp_path, key, 4, 3)


@pytest.mark.soak
def test_killed_a_hundred_times(server: Server, expected: dict[int, list[str]], key: str, tmp_path: Path) -> None:
    kill_runs(server, expected, tmp_path, key, 100, SOAK_SEED)


def test_a_signal_saves_and_stops_and_the_rest_follows(
    server: Server, expected: dict[int, list[str]], key: str, tmp_path: Path
) -> None:
    lines = as_ndjson(ROWS).splitlines()
    for line in lines[:333]:
        server.client.xadd(f"{key}-in", {"row": line})
    run = started(server, tmp_path, key, input=f"{key}-in")
    while run.process.is_alive() and server.client.xlen(key) < 250:
        time.sleep(0.01)
    run.send(signal.SIGTERM)
    assert run.wait() == 0 and "stopped; rows in" in run.said, run.said
    assert server.pending(f"{key}-in") == 0, "what the checkpoint holds was not acknowledged"
    assert server.client.xlen(key) < 333, "a stop is no end"
    for line in lines[333:]:
        server.client.xadd(f"{key}-in", {"row": line})
    server.client.xadd(f"{key}-in", {"end": ""})
    run = started(server, tmp_path, key, input=f"{key}-in")
    assert run.wait() == 0, run.said
    assert server.batches(key) == expected
    run = started(server, tmp_path, key, input=f"{key}-in")
    assert run.wait() == 0 and "had ended before" in run.said


def test_time_advances_while_nothing_arrives(server: Server, key: str, tmp_path: Path) -> None:
    for line in as_ndjson(ROWS[:9]).splitlines():
        server.client.xadd(f"{key}-in", {"row": line})
    run = started(server, tmp_path, key, input=f"{key}-in", recipe={"castle": {"k": 4, "delta": "0.2s"}})
    while run.process.is_alive() and server.client.xlen(key) < 8:
        time.sleep(0.01)
    run.send(signal.SIGTERM)
    assert run.wait() == 0 and server.client.xlen(key) >= 8, run.said


def test_a_server_that_is_gone_is_one_sentence(key: str, server: Server, tmp_path: Path) -> None:
    mortal = Server(tmp_path)
    run = started(mortal, tmp_path, key)
    while run.process.is_alive() and not mortal.client.exists("people"):  # the group is there
        time.sleep(0.01)
    mortal.process.kill()
    mortal.process.wait()
    assert run.wait() == 2
    (sentence,) = run.said.splitlines()
    assert "no Redis answers there" in sentence and "resumes from its checkpoint" in sentence


def test_consumers_of_a_group_share_the_rows(server: Server, key: str) -> None:
    for i in range(100):
        server.client.xadd(key, {"age": i, "ill": ""})
    readers = [source(server.url(key, group="g", consumer=name, count=7)) for name in "ab"]
    blocks = [[found.row for found in reader.read(0.0).rows] for _ in range(9) for reader in readers]  # type: ignore[union-attr]
    assert sorted(int(row["age"]) for block in blocks for row in block) == list(range(100))
    assert {len(block) for block in blocks[:14]} == {7} and blocks[0][0] == {"age": "0", "ill": None}


# a source --------------------------------------------------------------------------------------------------------------


def numbers(reader: RedisSource) -> list[str]:
    found: list[str] = []
    while (block := reader.read(0.0)) is not None and block.rows:
        found += [each.row["nr"] for each in block.rows]
    return found


def test_entries_are_acknowledged_when_a_checkpoint_holds_them(server: Server, key: str) -> None:
    add = [server.client.xadd(key, {"nr": i}) for i in range(25)]
    url = server.url(key, group="g", consumer="c", count=10)
    reader = source(url)
    reader.read(0.0)
    first = reader.mark()
    assert server.pending(key) == 10 and first["id"] == add[9].decode()
    reader.commit()
    assert server.pending(key) == 0
    assert numbers(reader) == [str(i) for i in range(10, 25)] and server.pending(key) == 15
    last = reader.mark()  # in a checkpoint; then a kill, before it is acknowledged
    again = source(url)
    again.seek(first)
    assert numbers(again) == [str(i) for i in range(10, 25)], "pending entries are read from the checkpoint on"
    other = source(url)
    other.seek(last)
    assert numbers(other) == [] and server.pending(key) == 0
    server.client.xadd(key, {"nr": 25})
    assert numbers(other) == ["25"]


def test_what_a_consumer_left_is_read_by_a_new_stream(server: Server, key: str) -> None:
    for i in range(5):
        server.client.xadd(key, {"nr": i})
    url = server.url(key, group="g", consumer="c")
    assert numbers(source(url)) == numbers(source(url)) == list("01234")


def test_what_is_no_row_is_set_aside(server: Server, key: str) -> None:
    server.client.execute_command("XADD", key, "5-1", "age", "4", "age", "5")
    server.client.xadd(key, {"age": b"\xff"})
    block = source(server.url(key, group="g", consumer="c")).read(0.0)
    assert block is not None and [each.line for each in block.refused] == [1, 2]
    assert block.refused[0].why == "entry 5-1: a field occurs twice" and "UTF-8" in block.refused[1].why
    block = source(server.url(key, group="other", consumer="c", field="row")).read(0.0)
    assert block is not None and block.refused[0].why == "entry 5-1: it has no field 'row'"


def test_behind_the_end_begins_another_stream(server: Server, key: str) -> None:
    for cells in ({"nr": 1}, {"over": ""}, {"nr": 2}):
        server.client.xadd(key, cells)
    url = server.url(key, group="g", consumer="c", end="over")
    reader = source(url)
    assert numbers(reader) == ["1"] and reader.read(0.0) is None
    reader.mark()
    reader.commit()
    assert server.pending(key) == 1 and numbers(source(url)) == ["2"]


def test_an_input_that_changed_is_refused(server: Server, key: str) -> None:
    ids = [server.client.xadd(key, {"nr": i}) for i in range(20)]
    url = server.url(key, group="g", consumer="c", count=10)
    reader = source(url)
    reader.read(0.0)
    mark = reader.mark()
    reader.read(0.0)
    with pytest.raises(BadInput, match=r"reads from c, not from d; name the consumer"):
        source(server.url(key, group="g", consumer="d")).seek(mark)
    server.client.xdel(key, ids[15])
    again = source(url)
    again.seek(mark)
    with pytest.raises(BadInput, match=rf"entry {ids[15].decode()} was removed .* XACK {key} g {ids[15].decode()}"):
        again.read(0.0)
    for change in (lambda: server.client.xgroup_setid(key, "g", "0"), lambda: server.client.delete(key)):
        change()
        with pytest.raises(BadInput, match=r"'g' has not reached .*: this is another input"):
            source(url).seek(mark)


# a sink ----------------------------------------------------------------------------------------------------------------

BATCH = Columns.of({"age": ["[30, 39]", "41"], "cost": [2.0, None]})


def test_rows_are_entries_with_the_number_of_their_batch(server: Server, key: str) -> None:
    server.client.xgroup_create(key, "readers", mkstream=True)
    writer = sink(server.url(key))
    assert not writer.begun
    writer.empty()
    assert server.client.xinfo_groups(key), "readers that were there before stay"
    writer.write(1, BATCH)
    writer.write(12, BATCH)
    one = {b"age": b"[30, 39]", b"cost": b"2"}
    assert server.client.xrange(key) == [
        (id, cells) for n in (b"1", b"12") for id, cells in ((n + b"-1", one), (n + b"-2", {b"age": b"41", b"cost": b""}))
    ]
    assert writer.begun and writer.mark()["batch"] == 12
    writer.empty()
    assert not writer.begun


def test_a_batch_that_comes_again_is_not_written_twice(server: Server, key: str) -> None:
    writer = sink(server.url(key, field="row"))
    for number in (1, 2, 3):
        writer.write(number, BATCH)
    there = server.client.xrange(key)
    again: RedisSink = sink(server.url(key, field="row"))
    again.seek({"path": str(again.place), "batch": 1, "field": "row"})
    again.write(2, BATCH)
    again.write(3, BATCH)
    assert server.client.xrange(key) == there
    server.client.xtrim(key, maxlen=1, approximate=False)
    again.write(2, BATCH)
    assert server.client.xlen(key) == 1, "what readers have removed is not written again"


def test_entries_of_another_source_are_no_repeats(server: Server, key: str) -> None:
    writer = sink(server.url(key))
    writer.write(1, BATCH)
    for other in (BATCH.take([1, 0]), BATCH.take([0])):  # type: ignore[arg-type]
        with pytest.raises(BadInput, match="another writer in place of batch 1"):
            writer.write(1, other)
    for id in ("1-3", "5-1", "*"):
        server.client.xadd(key, {"age": "5"}, id=id)
        with pytest.raises(BadInput, match="another writer in place of batch 2"):
            writer.write(2, BATCH)
    with pytest.raises(BadInput, match="another writer in place of batch 2"):
        sink(server.url(key)).write(2, BATCH)
    assert server.client.xlen(key) == 5


def test_an_output_that_lost_batches_is_refused(server: Server, key: str) -> None:
    writer = sink(server.url(key))
    writer.write(7, BATCH)
    mark = writer.mark()
    server.client.delete(key)
    with pytest.raises(BadInput, match="ends with batch 0, and the checkpoint has written 7"):
        sink(server.url(key)).seek(mark)
    with pytest.raises(BadInput, match=r"the checkpoint writes to rows\.csv as CSV"):
        writer.seek({"path": "rows.csv", "csv": True, "offset": 4})


# refusals of the command -----------------------------------------------------------------------------------------------


def refused(place: Path, words: list[object], *says: str) -> None:
    result = CliRunner().invoke(app, ["stream", str(write_recipe(place)), *map(str, words)])
    assert result.exit_code == 2, result.output
    (sentence,) = result.stderr.splitlines()
    assert sentence.startswith("closeknit: ")
    for part in says:
        assert part in sentence, sentence


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("redis://localhost/people?group=g&consumer=c", "names no database and stream; write redis://localhost:6379/0/people?"),
        ("redis://localhost:port/0/people?group=g&consumer=c", "has an invalid port"),
        ("redis://localhost/0/people?consumer=c", "names no group"),
        ("redis://localhost/0/people?group=g", "names no consumer"),
        ("redis://localhost/0/people?group=g&consumer=c&count=0", "has count=0"),
        (
            "redis://localhost/0/people?group=g&consumer=c&speed=9",
            "has the unknown option 'speed'; choose one of: group, consumer",
        ),
        ("kafka://localhost/people", "there is no connector for kafka://; choose one of: redis, rediss"),
    ],
)
def test_a_wrong_address_is_refused(url: str, says: str, tmp_path: Path) -> None:
    refused(tmp_path, ["-i", url, "--checkpoint", tmp_path / "ck"], says)


def test_no_server_answers(tmp_path: Path) -> None:
    url = f"redis://ann:secret@127.0.0.1:{free_port()}/0/people"
    refused(tmp_path, ["-i", f"{url}?group=g&consumer=c", "--checkpoint", tmp_path / "ck"], "no Redis answers there")
    (tmp_path / "in.ndjson").write_bytes(as_ndjson(ROWS[:9]))
    refused(tmp_path, ["-i", tmp_path / "in.ndjson", "-o", url], "closeknit: redis://127.0.0.1", "/0/people: no Redis answers")


def test_the_client_may_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    url = "redis://localhost/0/people?group=g&consumer=c"
    refused(tmp_path, ["-i", url, "--checkpoint", tmp_path / "ck"], "install it with: pip install 'closeknit[redis]'")


def test_what_cannot_be_is_refused(server: Server, key: str, tmp_path: Path) -> None:
    server.client.set(key, "text")
    people, ck = server.people("people", group=key), ["--checkpoint", tmp_path / "ck"]
    refused(tmp_path, ["-i", server.people(key), *ck], f"/0/{key}: this key is not a stream")
    shutil.rmtree(tmp_path / "ck")
    refused(tmp_path, ["-i", people, "-o", server.url(key), *ck], f"/0/{key}: this key is not a stream")
    refused(tmp_path, ["-i", people, "-o", server.url("people"), *ck], "it is not empty", "use --force")
    refused(tmp_path, ["-i", people], "name a private folder with --checkpoint")
    refused(tmp_path, ["-i", people, "--input-format", "csv", *ck], "rows from redis have no file format")
    refused(
        tmp_path, ["-i", people, "-o", server.url(f"{key}-o"), "--output-format", "csv", *ck], "cannot be sent to redis as CSV"
    )
    assert server.client.xlen("people") == 702 and not server.client.exists(f"{key}-o")


def test_force_replaces_what_was_there(server: Server, key: str, tmp_path: Path) -> None:
    server.client.xadd(key, {"old": "row"})
    (tmp_path / "in.ndjson").write_bytes(as_ndjson(ROWS[:50]))
    words = ["-i", tmp_path / "in.ndjson", "-o", server.url(key), "--force"]
    result = CliRunner().invoke(app, ["stream", str(write_recipe(tmp_path)), *map(str, words)])
    assert result.exit_code == 0, result.output
    entries = [cells for _, cells in server.client.xrange(key)]
    assert len(entries) == 50 and {tuple(cells) for cells in entries} == {(b"age", b"sex", b"ill")}


def test_a_checkpoint_knows_its_input_and_output(server: Server, key: str, tmp_path: Path) -> None:
    assert started(server, tmp_path, key, group=key).wait() == 0
    (tmp_path / "in.ndjson").write_bytes(as_ndjson(ROWS[:50]))
    people, out, ck = server.people("people", group=key), server.url(key, field="row"), ["--checkpoint", tmp_path / "ck"]
    refused(tmp_path, ["-i", tmp_path / "in.ndjson", "-o", out, *ck], "the checkpoint reads from redis://", "/0/people")
    refused(tmp_path, ["-i", people, "-o", server.url(f"{key}-o", field="row"), *ck], "the checkpoint writes to redis://")
    refused(tmp_path, ["-i", people, "-o", server.url(key), *ck], "the checkpoint writes to redis://")
    (tmp_path / "out").mkdir()
    refused(tmp_path, ["-i", people, "-o", tmp_path / "out" / "rows", *ck], "the checkpoint writes to redis://")
    refused(tmp_path, ["-i", people, *ck], "the checkpoint writes to redis://", "not to a pipe")


def test_a_password_is_needed(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.client.execute_command("ACL", "SETUSER", "ann", "on", ">secret", "allcommands", "allkeys")
    url = f"redis://ann@127.0.0.1:{server.port}/0/people"
    monkeypatch.setenv("REDISCLI_AUTH", "wrong")
    with pytest.raises(BadInput, match=r"Redis refuses the login .* put the password into REDISCLI_AUTH"):
        sink(url)
    monkeypatch.setenv("REDISCLI_AUTH", "secret")
    assert sink(url).begun
