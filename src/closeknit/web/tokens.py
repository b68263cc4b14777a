"""Tokens, single-use codes and login cookies. Only their digests are kept in memory."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
import threading
import time
from pathlib import Path

from closeknit.core.errors import BadInput
from closeknit.web.settings import Settings

SHORTEST = 20  # characters of a token
NAME = re.compile(r"[A-Za-z0-9][\w.@-]{0,63}")
ALONE = "you"  # the only user of `closeknit ui`


def digest(secret: str) -> bytes:
    """Return the digest that is stored and compared instead of a token, code or cookie."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


def read_tokens(file: Path) -> dict[str, bytes]:
    """Return users and the digests of their tokens from lines `name: token`; a file that others can read is refused.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "tokens")
    ...     _ = file.write_text("# team\\nann: " + "a" * 24 + "\\n")
    ...     file.chmod(0o600)
    ...     list(read_tokens(file))
    ['ann']
    """
    try:
        handle = os.open(file, os.O_RDONLY)
        with os.fdopen(handle, encoding="utf-8") as text:
            mode = stat.S_IMODE(os.fstat(text.fileno()).st_mode)
            lines = text.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"the tokens cannot be read ({error})", file=file, right="name a file of lines 'name: token'") from None
    if mode & 0o077:
        raise BadInput(f"other users can read it (mode {mode:o})", file=file, right="make it private: chmod 600")
    tokens: dict[str, bytes] = {}
    for row, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, sign, token = (part.strip() for part in line.partition(":"))
        if not sign or not NAME.fullmatch(name) or name in tokens:
            raise BadInput("this is not a line 'name: token' with a new name", file=file, row=row, right="write ann: TOKEN")
        if len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
            right = f"use at least {SHORTEST} random characters, such as those of 'openssl rand -hex 24'"
            raise BadInput(
                f"the token of {name} is too short, or has spaces or unusual characters", file=file, row=row, right=right
            )
        if digest(token) in tokens.values():
            raise BadInput(f"{name} has the token of another user", file=file, row=row, right="generate one for each user")
        tokens[name] = digest(token)
    if not tokens:
        raise BadInput("there is no token in it", file=file, right="write a line 'name: token' for each user")
    return tokens


class Logins:
    """Valid tokens, single-use codes and cookies, each with its owner.

    >>> logins = Logins(Settings(home=Path("cases")))
    >>> code = logins.code()
    >>> cookie = logins.enter(code)
    >>> logins.by_cookie(cookie), logins.enter(code), logins.by_cookie("guess")
    ('you', None, None)
    """

    def __init__(self, settings: Settings, tokens: dict[str, bytes] | None = None) -> None:
        self._settings, self._tokens = settings, tokens or {}
        self._lock = threading.Lock()
        self._codes: dict[bytes, float] = {}
        self._cookies: dict[bytes, tuple[str, float]] = {}

    def code(self) -> str:
        """Return a new single-use code for the login link."""
        code = secrets.token_urlsafe(32)
        self._codes[digest(code)] = time.monotonic() + self._settings.code
        return code

    def enter(self, code: str) -> str | None:
        """Exchange a code for a cookie, once."""
        with self._lock:
            until = self._codes.pop(digest(code), 0.0)
        return self._cookie(ALONE) if until > time.monotonic() else None

    def login(self, token: str) -> str | None:
        """Exchange a token for a cookie."""
        owner = self.by_token(token)
        return None if owner is None else self._cookie(owner)

    def by_token(self, token: str) -> str | None:
        """Return the user of a token; every token is compared, each in constant time."""
        given, found = digest(token), None
        for name, kept in self._tokens.items():
            if hmac.compare_digest(given, kept):
                found = name
        return found

    def by_cookie(self, cookie: str) -> str | None:
        """Return the user of a cookie."""
        owner, until = self._cookies.get(digest(cookie), (None, 0.0))
        return owner if until > time.monotonic() else None

    def logout(self, cookie: str) -> None:
        """Invalidate the cookie."""
        self._cookies.pop(digest(cookie), None)

    def _cookie(self, owner: str) -> str:
        now, cookie = time.monotonic(), secrets.token_urlsafe(32)
        with self._lock:
            self._cookies = {key: kept for key, kept in self._cookies.items() if kept[1] > now}
            self._cookies[digest(cookie)] = (owner, now + self._settings.session)
        return cookie
