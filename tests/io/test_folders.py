"""Folders appear whole or not at all: under errors, under force, and under kill -9."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import closeknit as ck
from closeknit.core.errors import BadInput
from closeknit.io import folders
from closeknit.io.folders import save_folders, write_inside, write_whole

KILLS = 300 if os.environ.get("CLOSEKNIT_SOAK") == "1" else 10


def writer(mark: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / "inner").mkdir()
        (folder / "inner" / "part").write_text(mark, encoding="utf-8")
        (folder / "main").write_text(mark, encoding="utf-8")

    return write


def save(folder: Path, mark: str = "new", force: bool = False) -> None:
    save_folders(folder / "out", folder / "out.private", writer(mark), writer(mark + " private"), force)


def marks(folder: Path) -> dict[str, str]:
    return {str(f.relative_to(folder)): f.read_text(encoding="utf-8") for f in folder.rglob("*") if f.is_file()}


def pair(mark: str) -> dict[str, str]:
    public = {"out/main": mark, "out/inner/part": mark}
    return public | {name.replace("out/", "out.private/"): mark + " private" for name in public}


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_both_folders_and_their_rights(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        save(tmp_path)
    finally:
        os.umask(before)
    assert marks(tmp_path) == pair("new")
    assert [mode(tmp_path / "out" / name) for name in ("", "inner", "main", "inner/part")] == [0o755, 0o755, 0o644, 0o644]
    private = tmp_path / "out.private"
    assert [mode(private / name) for name in ("", "inner", "main", "inner/part")] == [0o700, 0o700, 0o600, 0o600]


def test_folders_are_closed_and_hidden_while_written(tmp_path: Path) -> None:
    seen: list[tuple[str, int]] = []

    def look(folder: Path) -> None:
        seen.append((folder.name, mode(folder)))
        assert not (tmp_path / "out").exists()
        assert not (tmp_path / "out.private").exists()

    save_folders(tmp_path / "out", tmp_path / "out.private", look, look)
    assert [rights for _, rights in seen] == [0o700, 0o700]
    assert sorted(name.split("tmp-")[0] for name, _ in seen) == [".out.", ".out.private."]


def test_existing_folders_are_refused(tmp_path: Path) -> None:
    save(tmp_path, "old")
    with pytest.raises(BadInput, match="out: the folder exists already"):
        save(tmp_path)
    assert marks(tmp_path) == pair("old")
    (tmp_path / "out").rename(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match=r"out\.private: .*an earlier run was interrupted"):
        save(tmp_path)
    save(tmp_path, "new", force=True)
    assert pair("new").items() <= marks(tmp_path).items()


def test_force_replaces_the_pair(tmp_path: Path) -> None:
    save(tmp_path, "old")
    save(tmp_path, "new", force=True)
    assert marks(tmp_path) == pair("new")
    assert sorted(os.listdir(tmp_path)) == ["out", "out.private"]


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left")])
def test_an_error_while_writing_leaves_nothing(tmp_path: Path, error: BaseException, force: bool) -> None:
    if force:
        save(tmp_path, "old")
    before = marks(tmp_path)

    def fail(folder: Path) -> None:
        (folder / "half").write_text("half", encoding="utf-8")
        raise error

    expected = BadInput if isinstance(error, OSError) else type(error)
    for first, second in ((fail, writer("x")), (writer("x"), fail)):
        with pytest.raises(expected):
            save_folders(tmp_path / "out", tmp_path / "out.private", first, second, force)
        assert marks(tmp_path) == before
        assert len(os.listdir(tmp_path)) == len({name.split("/")[0] for name in before})


@pytest.mark.parametrize(
    ("failing", "force"), [(0, False), (1, False), (0, True), (1, True), (2, True), (3, True)]
)  # without force there are two renames, with force four
def test_a_failing_rename_brings_the_old_pair_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int, force: bool
) -> None:
    if force:
        save(tmp_path, "old")
    before, rename, calls = marks(tmp_path), os.rename, []

    def stumbling(source: Path, target: Path) -> None:
        calls.append(target)
        if len(calls) == failing + 1:
            raise OSError(errno.EROFS, "Read-only file system")
        rename(source, target)

    monkeypatch.setattr(folders.os, "rename", stumbling)
    with pytest.raises(BadInput, match="read-only"):
        save(tmp_path, "new", force)
    monkeypatch.undo()
    assert marks(tmp_path) == before
    assert all(not name.startswith(".") for name in os.listdir(tmp_path))


def test_bad_places(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    for public, private, sentence in [
        ("a", "a", "must be separate"),
        ("a", "a/b", "must be separate"),
        ("none/a", "b", "does not exist"),
        ("file", "b", "not a folder"),
    ]:
        with pytest.raises(BadInput, match=sentence):
            save_folders(tmp_path / public, tmp_path / private, writer("x"), writer("x"), force=True)
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.usefixtures("modes_bind")
def test_no_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(BadInput, match="no permission"):
        save(tmp_path)
    with pytest.raises(BadInput, match="no permission"):
        write_whole(tmp_path / "x", b"x")
    tmp_path.chmod(0o700)


def test_single_files(tmp_path: Path) -> None:
    file = tmp_path / "x"
    write_whole(file, [b"a", b"b"])
    write_whole(file, b"new", mode=0o600)
    assert (file.read_bytes(), mode(file)) == (b"new", 0o600)

    def broken() -> Iterator[bytes]:
        yield b"half"
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(BadInput, match="x: the disk is full"):
        write_whole(file, broken())
    assert file.read_bytes() == b"new"
    with pytest.raises(BadInput, match="this is a folder"):
        write_whole(tmp_path, b"x")
    with pytest.raises(BadInput, match="no such file or folder"):
        write_whole(tmp_path / "absent" / "x", b"x")
    assert os.listdir(tmp_path) == ["x"]


def test_the_sentence_names_the_final_place(tmp_path: Path) -> None:
    def full(folder: Path) -> None:
        def content() -> Iterator[bytes]:
            yield b"half"
            raise OSError(errno.ENOSPC, "No space left on device")

        write_whole(folder / "release.csv", content())

    with pytest.raises(BadInput) as caught:
        save_folders(tmp_path / "out", tmp_path / "out.private", full, writer("x"))
    assert str(caught.value).startswith(f"{tmp_path}/out/release.csv: the disk is full")
    assert os.listdir(tmp_path) == []


STEPS = """
import os, shutil, signal, sys
from pathlib import Path
from closeknit.io.folders import save_folders, write_whole

def writer(mark):
    return lambda folder: [write_whole(folder / str(name), mark * 5000) for name in range(2)]

def save(here, mark, force):
    save_folders(here / "out", here / "out.private", writer(mark.encode()), writer(mark.upper().encode()), force)

def kill_before(step, here, old):
    left = [step]
    def counted(call):
        def wrapped(*args, **kwargs):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **kwargs)
        return wrapped
    for name in ("open", "fsync", "rename", "chmod", "mkdir", "unlink", "rmdir"):
        setattr(os, name, counted(getattr(os, name)))
    save(here, "n", old)
    os._exit(0)

base = Path(sys.argv[1])
for old in (False, True):
    for step in range(1, 1000):
        here = base / f"{int(old)}-{step}"
        here.mkdir()
        if old:
            save(here, "o", False)
        child = os.fork()
        if child == 0:
            kill_before(step, here, old)
        if os.waitpid(child, 0)[1] == 0:
            break
"""


def marked(folder: Path) -> set[bytes]:
    """The signs of the files in a whole folder; half a folder is caught here."""
    files = [file.read_bytes() for file in folder.iterdir()]
    assert [len(content) for content in files] == [5000, 5000]
    return {content[:1] for content in files}


def test_kill_before_every_step(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", STEPS, str(tmp_path)], check=True)
    seen = set()
    for here in tmp_path.iterdir():
        out, private = here / "out", here / "out.private"
        public_sign = marked(out) if out.exists() else None
        private_sign = marked(private) if private.exists() else None
        if public_sign:
            assert private_sign == {sign.upper() for sign in public_sign}
        seen.add((here.name[0], str(public_sign), str(private_sign)))
        save(here, "after", force=out.exists() or private.exists())
        assert pair("after").items() <= marks(here).items()
    fresh = {("0", "None", "None"), ("0", "None", "{b'N'}"), ("0", "{b'n'}", "{b'N'}")}
    forced = {("1", "{b'o'}", "{b'O'}"), ("1", "None", "{b'O'}"), ("1", "None", "None"), ("1", "None", "{b'N'}")}
    assert seen == fresh | forced | {("1", "{b'n'}", "{b'N'}")}


VICTIM = """
import sys
from pathlib import Path
from closeknit.io.folders import save_folders
here, size = Path(sys.argv[1]), int(sys.argv[2])
def writer(mark):
    def write(folder):
        for name in range(4):
            (folder / str(name)).write_bytes(mark * size)
    return write
print("ready", flush=True)
while True:
    save_folders(here / "out", here / "out.private", writer(b"o"), writer(b"p"), force=True)
    print("saved", flush=True)
"""


def whole(folder: Path, sign: bytes, size: int) -> bool:
    return [file.read_bytes() for file in sorted(folder.iterdir())] == [sign * size] * 4


@pytest.mark.grows
def test_kill_at_any_moment(tmp_path: Path) -> None:
    draw, size, broken = random.Random(5), 20_000, 0
    for attempt in range(KILLS):
        here = tmp_path / str(attempt)
        here.mkdir()
        command = [sys.executable, "-c", VICTIM, str(here), str(size)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as victim:
            assert victim.stdout is not None
            victim.stdout.readline()
            time.sleep(draw.uniform(0, 0.03))
            victim.send_signal(signal.SIGKILL)
        out, private = here / "out", here / "out.private"
        if out.exists():
            assert whole(out, b"o", size)
            assert private.exists()
        if private.exists():
            assert whole(private, b"p", size)
        left = [name for name in os.listdir(here) if name.startswith(".")]
        broken += bool(left)
        assert all(mode(here / name) == 0o700 for name in left if ".private." in name)
        save(here, "after", force=out.exists() or private.exists())
        assert pair("after").items() <= marks(here).items()
    assert broken, "no kill fell into a save: the test shows nothing"


def test_a_run_that_finds_a_release_when_it_is_done_does_not_replace_it(tmp_path: Path) -> None:
    out, private = tmp_path / "out", tmp_path / "out.private"

    def slow(folder: Path) -> None:
        save_folders(out, private, lambda f: write_inside(f / "first", b"1"), lambda f: write_inside(f / "first", b"1"))
        write_inside(folder / "second", b"2")

    with pytest.raises(ck.BadInput, match="exists already"):
        save_folders(out, private, slow, lambda f: write_inside(f / "second", b"2"))
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["first", "first", "out", "out.private"]
