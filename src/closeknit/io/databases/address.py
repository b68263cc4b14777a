"""`Address`: where a database is. Credentials are resolved here when a connection opens, and removed from all texts."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlencode

from closeknit.core.errors import BadInput

EMBEDDED = ("sqlite", "duckdb")  # the address names a file
REFERENCE = re.compile(r"\$\{(\w+)\}")
HIDDEN = "***"
SHORT = 4  # characters: a shorter password may be a part of any word
UNSHOWN = f"the driver's message is not shown, as it may hold the password; one of {SHORT} characters or more can be cut out"
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(?:([^/?#]*)@)?([^/?#]*)(/[^?#]*)?(?:\?([^#]*))?")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:@\[\]]*)(?::(\d+))?")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,40})://")
_SECRET = re.compile(  # names of URL parameters
    r"pass|pwd|token|secret|credential|jwt|odbc_connect|private_?key|api_?key|access_?key|^auth$|^key$", re.IGNORECASE
)
_PASSWORD = re.compile(r"://[^/@]*:(?!\$\{)[^@]+@")
_ENVIRONMENT = ("PGPASSWORD", "MYSQL_PWD")
_ESCAPE = "percent-encode the special characters of its password, such as %40 for @, or use ${VARIABLE} in its place"


@dataclass(frozen=True)
class Link:
    """The parts of a URL, with its credentials: exists only while a connection opens."""

    scheme: str
    user: str | None
    password: str | None = field(repr=False)
    host: str
    port: int | None
    path: str  # the database; of an embedded one its file
    options: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, url: str) -> Link:
        """Parse a URL; the message about a wrong one does not repeat it.

        >>> Link.of("postgresql://ann:a%40b@db.example:5433/clinic?sslmode=require").port
        5433
        >>> Link.of("postgresql://ann:a/b@db.example/clinic")
        Traceback (most recent call last):
        closeknit.core.errors.BadInput: the address postgresql://*** cannot be read; percent-encode the special ...
        """
        found = _URL.fullmatch(url)
        named = _SCHEME.match(url)  # other text may be credentials
        scheme = found[1].lower() if found else named[1] if named else HIDDEN
        if found is None or (scheme.partition("+")[0] not in EMBEDDED and "@" in f"{found[4]}{found[5]}"):
            raise BadInput(f"the address {scheme}://{HIDDEN} cannot be read", right=_ESCAPE)
        host = _HOST.fullmatch(found[3])
        if host is None:
            raise BadInput(f"the address {scheme}://{HIDDEN} names no host and port", right=_ESCAPE)
        user, mark, password = (found[2] or "").partition(":")
        return cls(
            scheme,
            unquote(user) or None,
            unquote(password) if mark else None,
            host[1],
            int(host[2]) if host[2] else None,
            unquote((found[4] or "").removeprefix("/")),
            dict(parse_qsl(found[5] or "", keep_blank_values=True)),
        )

    @property
    def secrets(self) -> set[str]:
        """Every text that must not be seen."""
        found = secrets_of(self.options.items())
        parts = [part.partition("=") for value in found for part in value.split(";")]  # of odbc_connect
        inner = {value.strip("{}") for value in secrets_of((name.strip(), value.strip()) for name, _, value in parts)}
        return {self.password or "", *found, *inner} - {""}

    def render(self, scheme: str | None = None, hide: bool = False) -> str:
        """The URL, each part escaped.

        Args:
            scheme: another scheme.
            hide: whether credentials are left out.

        >>> Link.of("mariadb://ann:x@host/clinic?password=y&charset=utf8mb4").render(hide=True)
        'mariadb://ann@host/clinic?charset=utf8mb4'
        """
        options = {name: value for name, value in self.options.items() if not (hide and _SECRET.search(name))}
        secret = "" if hide or self.password is None else f":{quote(self.password, safe='')}"
        user = f"{quote(self.user or '', safe='')}{secret}"
        place = f"{user}@{self.host}" if user else self.host
        port = "" if self.port is None else f":{self.port}"
        query = f"?{urlencode(options, safe='/')}" if options else ""
        return f"{scheme or self.scheme}://{place}{port}/{quote(self.path)}{query}".replace("%24%7B", "${").replace("%7D", "}")


@dataclass(frozen=True)
class Address:
    """Where a database is, as a user names it.

    A URL, in which `${VARIABLE}` is replaced by a variable of the environment; `${VARIABLE}` alone for a whole URL;
    `@file` for a file of mode 0600 with the URL; or `keyring://service/user` for a URL in the system's keyring.

    Args:
        given: what the user names, without a password: this may be recorded.
        secret: the URL with the password that the user wrote into it; None if there was none.
    """

    given: str
    secret: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, text: str) -> Address:
        """Take the credentials out of what the user names.

        >>> Address.of("postgresql://ann:secret@host/clinic")
        Address(given='postgresql://ann@host/clinic')
        >>> Address.of("postgresql://ann:${CLINIC_PASSWORD}@host/clinic").given
        'postgresql://ann:${CLINIC_PASSWORD}@host/clinic'
        """
        if REFERENCE.fullmatch(text) or text.startswith(("@", "keyring://")):
            return cls(text)
        link = Link.of(text)
        if link.scheme.partition("+")[0] in EMBEDDED:
            return cls(replace(link, path=os.path.abspath(link.path)).render(hide=True))
        if all(REFERENCE.fullmatch(secret) for secret in link.secrets):
            return cls(link.render())
        return cls(link.render(hide=True), text)

    def open(self) -> Link:
        """The parts of the URL, with the credentials of the environment, the file or the keyring."""
        if self.given.startswith("@"):
            return Link.of(read_url_file(self.given[1:]))
        if self.given.startswith("keyring://"):
            return Link.of(_read_keyring(self.given))
        if whole := REFERENCE.fullmatch(self.given):
            return Link.of(_read_variable(whole[1]))
        return Link.of(REFERENCE.sub(lambda found: quote(_read_variable(found[1]), safe=""), self.secret or self.given))

    def conceal(self, text: str) -> str:
        """A driver's message without credentials; one in which a very short password is a word is not shown at all.

        Args:
            text: the message.

        >>> Address.of("postgresql://ann:pa%20ss@host/clinic").conceal("no: pa ss, pa%20ss, pa+ss")
        'no: ***, ***, ***'
        """
        try:
            secrets = self.open().secrets
        except BadInput:
            secrets = Link.of(self.secret).secrets if self.secret else set()
        secrets |= {os.environ[name] for name in _ENVIRONMENT if os.environ.get(name)}
        forms = {form for secret in secrets for form in (secret, quote(secret, safe=""), quote(secret), quote_plus(secret))}
        short = {form for form in forms if len(form) < SHORT}
        for form in sorted(forms - short, key=len, reverse=True):
            text = text.replace(form, HIDDEN)
        return UNSHOWN if any(_find_word(form, text) for form in short) else text


def _find_word(secret: str, text: str) -> bool:
    """Whether a text has a secret that is not a part of a longer word."""
    before, after = (r"(?<!\w)" if re.match(r"\w", secret) else ""), (r"(?!\w)" if re.search(r"\w\Z", secret) else "")
    return re.search(f"{before}{re.escape(secret)}{after}", text) is not None


def secrets_of(options: Iterable[tuple[str, str]]) -> set[str]:
    """The values of the options of a URL whose names say that they are credentials.

    Args:
        options: names and values.

    >>> secrets_of([("jwt", "abc"), ("keyspace", "clinic")])
    {'abc'}
    """
    return {value for name, value in options if _SECRET.search(name)}


def holds_password(text: str) -> bool:
    """Whether a text is an address with a password in it, whatever its scheme.

    Args:
        text: an argument of a command, a path or an address.

    >>> holds_password("postgrsql://ann:secret@host/clinic"), holds_password("mysql://host/?password=${CLINIC_PASSWORD}")
    (True, False)
    """
    address, _, options = text.partition("?")
    found = secrets_of(parse_qsl(options)) if "://" in address else set()
    return bool(_PASSWORD.search(text)) or not all(map(REFERENCE.fullmatch, found))


def _read_variable(name: str) -> str:
    if not (value := os.environ.get(name)):
        raise BadInput(f"the environment variable {name} is not set", right=f"set it, or do not refer to ${{{name}}}")
    return value


def read_url_file(place: str) -> str:
    """The URL in a file that only its owner can read.

    Args:
        place: path of the file.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w+") as file:
    ...     _ = file.write("sqlite:///clinic.db"), file.flush()
    ...     read_url_file(file.name)
    'sqlite:///clinic.db'
    """
    try:
        with open(place, encoding="utf-8") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            text = file.read(10_000).strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise BadInput(f"cannot be read ({why})", file=place, right="name a file with the URL of a database") from None
    if mode & 0o077:
        raise BadInput(f"others may read it (mode {mode:04o})", file=place, right=f"run 'chmod 600 {Path(place).name}'")
    if "://" not in text or len(text.splitlines()) != 1:
        raise BadInput(
            "has no URL in its only line", file=place, right="write one line such as postgresql://user:...@host/name"
        )
    return text


def _read_keyring(address: str) -> str:
    service, _, user = address.removeprefix("keyring://").partition("/")
    try:
        import keyring
    except ImportError:
        right = "install it with: pip install 'closeknit[keyring]'"
        raise BadInput("the library keyring is missing", file=address, right=right) from None
    try:
        found = keyring.get_password(unquote(service), unquote(user))
    except keyring.errors.KeyringError as error:
        raise BadInput(f"the keyring cannot be read ({type(error).__name__})", file=address, right="unlock it") from None
    if not found:
        right = f"store the URL of the database with: keyring set {service or 'SERVICE'} {user or 'USER'}"
        raise BadInput("the keyring has nothing under this name", file=address, right=right)
    return found
