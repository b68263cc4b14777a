"""What the operating system refuses, said as one sentence."""

from __future__ import annotations

import errno
from os import PathLike

from closeknit.core.errors import BadInput

_SENTENCES = {
    errno.ENOENT: ("there is no such file or folder", "check the path"),
    errno.ENOTDIR: ("a part of the path is a file, not a folder", "check the path"),
    errno.EISDIR: ("this is a folder, not a file", "name a file in it"),
    errno.EACCES: ("no permission", "change the rights of the file or folder, or choose another"),
    errno.EPERM: ("no permission", "change the rights of the file or folder, or choose another"),
    errno.EROFS: ("the file system is read-only", "choose another folder"),
    errno.ENOSPC: ("the disk is full", "free some space, or choose another folder"),
    errno.EDQUOT: ("the disk quota is used up", "free some space, or choose another folder"),
    errno.EEXIST: ("it exists already", "remove it, or choose another name"),
    errno.ENOTEMPTY: ("it exists already", "remove it, or choose another name"),
    errno.ENAMETOOLONG: ("the name is too long", "choose a shorter one"),
}


def refused(error: OSError, path: str | PathLike[str]) -> BadInput:
    """The sentence for an error of the operating system; its traceback helps nobody.

    >>> print(refused(OSError(errno.ENOSPC, "No space left on device"), "out"))
    out: the disk is full; free some space, or choose another folder
    """
    spoken = error.strerror or str(error) or type(error).__name__
    what, right = _SENTENCES.get(error.errno or 0, (f"the system refuses it ({spoken.lower()})", None))
    return BadInput(what, file=path, right=right)
