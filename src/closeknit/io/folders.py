"""Atomic writes: files and folders appear complete or not at all, even if the process is killed."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from closeknit.core.errors import BadInput
from closeknit.io.faults import explain_os_error

Writer = Callable[[Path], None]
Ours = Callable[[str], bool]  # whether a file of this name may be one of an earlier run
PRIVATE = (0o700, 0o600)  # modes of a folder and of the files in it
PUBLIC = (0o755, 0o644)


def write_whole(path: str | PathLike[str], content: bytes | Iterable[bytes], mode: int = 0o644) -> None:
    """Write a file atomically: to a hidden file in the same folder, synced and renamed; an existing file is replaced.

    Args:
        path: the file.
        content: its bytes.
        mode: its permissions.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "note.txt"), b"whole")
    ...     Path(folder, "note.txt").read_bytes(), len(os.listdir(folder))
    (b'whole', 1)
    """
    place = Path(path)
    hidden = _dot_path(place, "tmp")
    try:
        with os.fdopen(os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.writelines((content,) if isinstance(content, bytes) else content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.rename(hidden, place)
        _sync(place.parent)
    except OSError as error:
        raise explain_os_error(error, place) from None
    finally:
        hidden.unlink(missing_ok=True)


def write_inside(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Write a new file in a folder that `save_folders` syncs and renames."""
    with open(path, "xb") as file:
        file.writelines((content,) if isinstance(content, bytes) else content)


def save_folders(
    public: Path, private: Path, write_public: Writer, write_private: Writer, force: bool = False, ours: Ours | None = None
) -> None:
    """Write both folders atomically, the public one last.

    A public folder therefore means that the run is complete, and a private folder without it that the run was interrupted.

    Args:
        public: the public folder.
        private: the private folder.
        write_public: fills the public folder.
        write_private: fills the private folder.
        force: whether existing folders are replaced; they are deleted only when the new ones are complete.
        ours: whether a file of this name may be deleted; a folder with other files is refused.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     out, private = Path(folder, "out"), Path(folder, "out.private")
    ...     save_folders(out, private, lambda f: write_inside(f / "a", b"1"), lambda f: write_inside(f / "b", b"2"))
    ...     sorted(str(file.relative_to(folder)) for file in Path(folder).rglob("?"))
    ['out.private/b', 'out/a']
    """
    public, private = Path(os.path.abspath(public)), Path(os.path.abspath(private))
    writers = {private: (write_private, PRIVATE), public: (write_public, PUBLIC)}
    _save(writers, lambda: _refuse_bad_places(public, private, ours, force))


def save_private(place: Path, write: Writer, force: bool = False, ours: Ours | None = None) -> None:
    """Write only a private folder, atomically.

    Args:
        place: the folder.
        write: fills it.
        force: whether an existing folder is replaced; it is deleted only when the new one is complete.
        ours: whether a file of this name may be deleted; a folder with other files is refused.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_private(Path(folder, "private"), lambda f: write_inside(f / "a", b"1"))
    ...     oct(Path(folder, "private").stat().st_mode & 0o777), Path(folder, "private", "a").read_bytes()
    ('0o700', b'1')
    """
    save_folder(place, write, private=True, force=force, ours=ours)


def save_folder(place: Path, write: Writer, private: bool, force: bool = False, ours: Ours | None = None) -> None:
    """Write one folder, atomically.

    Args:
        place: the folder.
        write: fills it.
        private: whether only its owner may read it.
        force: whether an existing folder is replaced; it is deleted only when the new one is complete.
        ours: whether a file of this name may be deleted; a folder with other files is refused.
    """
    place = Path(os.path.abspath(place))

    def refuse() -> None:
        _refuse_no_folder(place)
        _refuse_existing(place, ours, force)

    _save({place: (write, PRIVATE if private else PUBLIC)}, refuse)


def _save(writers: dict[Path, tuple[Writer, tuple[int, int]]], refuse: Callable[[], None]) -> None:
    """Fill each folder under a hidden name, then rename all in the given order."""
    refuse()
    *_, last = writers
    places = {_dot_path(place, "tmp"): place for place in writers}
    try:
        for new, place in places.items():
            write, modes = writers[place]
            _fill(new, write, *modes)
        with _lock_folder(last.parent):  # another run may have written its folders meanwhile
            refuse()
            _put_in_place(places)
    except OSError as error:
        raise explain_os_error(error, last) from None
    except BadInput as error:
        raise _with_final_place(error, places) from None
    finally:
        for folder in places:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Only one process at a time; the system releases the lock even if the process is killed."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _refuse_bad_places(public: Path, private: Path, ours: Ours | None, force: bool) -> None:
    if public == private or public in private.parents or private in public.parents:
        right = "choose two folders of which none is inside the other"
        raise BadInput(f"the private folder {private} must be separate from the public one", file=public, right=right)
    for folder in (public, private):
        _refuse_no_folder(folder)
    _refuse_existing(public, ours, force)
    if os.path.lexists(private) and not force:
        what = f"the private folder exists without {public.name}, so an earlier run was interrupted"
        raise BadInput(what, file=private, right="remove it, or force it to be replaced")
    _refuse_existing(private, ours, force)


def refuse_no_parent(place: Path) -> None:
    """Refuse a new file or folder in a folder that does not exist."""
    if not os.path.isdir(place.parent):
        raise BadInput(f"the folder {place.parent} does not exist", file=place, right="create it first")


def _refuse_no_folder(folder: Path) -> None:
    refuse_no_parent(folder)
    if os.path.lexists(folder) and (os.path.islink(folder) or not os.path.isdir(folder)):
        raise BadInput("this is not a folder", file=folder, right="choose another name")


def _refuse_existing(folder: Path, ours: Ours | None, force: bool) -> None:
    """`force` replaces what closeknit wrote before, and deletes nothing else."""
    if not os.path.lexists(folder):
        return
    if not force:
        raise BadInput("the folder exists already", file=folder, right="choose another folder, or force it to be replaced")
    if ours is not None and (foreign := sorted(name for name in os.listdir(folder) if not ours(name))):
        right = "choose another folder: only files that closeknit writes are replaced"
        raise BadInput(f"the folder also contains '{foreign[0]}', which would be deleted", file=folder, right=right)


def _fill(folder: Path, write: Writer, folder_mode: int, file_mode: int) -> None:
    """A new folder, not readable for others until everything in it is written and synced."""
    folder.mkdir(mode=0o700)
    write(folder)
    for parent, _, files in os.walk(folder, topdown=False):
        for name in files:
            os.chmod(Path(parent, name), file_mode)
            _sync(Path(parent, name))
        os.chmod(parent, folder_mode)
        _sync(Path(parent))


def _put_in_place(places: dict[Path, Path]) -> None:
    """Rename in the given order; existing folders are moved away in the reverse order, and back if a rename fails."""
    aside: dict[Path, Path] = {}
    done: list[tuple[Path, Path]] = []
    try:
        for place in reversed(places.values()):
            if os.path.lexists(place):
                aside[place] = _dot_path(place, "old")
                os.rename(place, aside[place])
                _sync(place.parent)
        for new, place in places.items():
            os.rename(new, place)
            done.append((new, place))
            _sync(place.parent)
    except BaseException:
        for new, place in reversed(done):
            os.rename(place, new)
        for place, old in reversed(aside.items()):
            if os.path.lexists(old):
                os.rename(old, place)
        raise
    for old in aside.values():
        shutil.rmtree(old, ignore_errors=True)


def _with_final_place(error: BadInput, places: dict[Path, Path]) -> BadInput:
    """The error with the final path of the file, because the hidden folder no longer exists."""
    for new, place in places.items():
        if error.file is not None and Path(str(error.file)).is_relative_to(new):
            return error.replace(file=place / Path(str(error.file)).relative_to(new))
    return error


def _dot_path(place: Path, kind: str) -> Path:
    return place.parent / f".{place.name}.{kind}-{secrets.token_hex(8)}"


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
