"""A server of Redis as the connector sees it: its address, commands and raw answers, and what it refuses in one sentence."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from closeknit.core.errors import BadInput, suggest_name

ANSWER = 30.0  # seconds after which a server that says nothing is given up
OPTIONS = {"in": ("group", "consumer", "count", "field", "end"), "out": ("field",)}
EXAMPLE = "redis://localhost:6379/0/people?group=closeknit&consumer=one"


@dataclass(frozen=True)
class RedisAddress:
    """A stream in a database of a server, and what its address asks for.

    >>> place = RedisAddress.of("redis://ann:secret@localhost/0/people?group=g&consumer=c", "in")
    >>> str(place), place.port, place.options
    ('redis://localhost:6379/0/people', 6379, {'group': 'g', 'consumer': 'c'})
    >>> RedisAddress.of("redis://localhost/people", "out")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: ... names no database and stream; write redis://localhost:6379/0/people
    """

    host: str
    port: int
    db: int
    key: str
    tls: bool = False
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    options: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, url: str, way: str) -> RedisAddress:
        """Read an address; `way` is "in" or "out"."""
        right = "write " + (EXAMPLE if way == "in" else EXAMPLE.partition("?")[0])
        parts = urlsplit(url)
        shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        try:
            host, port = parts.hostname or "localhost", parts.port or 6379
        except ValueError:
            raise BadInput(f"{shown} has a port that is none", right=right) from None
        db, _, key = parts.path.removeprefix("/").partition("/")
        if not (db.isascii() and db.isdigit()) or not key:
            raise BadInput(f"{shown} names no database and stream", right=right)
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        for name in options:
            if name not in OPTIONS[way]:
                raise BadInput(f"{shown} has '{name}' behind its ?", right=suggest_name(name, OPTIONS[way]))
        for name in ("group", "consumer") if way == "in" else ():
            if not options.get(name):
                raise BadInput(f"{shown} names no {name}", right=right)
        count = options.get("count", "1")
        if not (count.isascii() and count.isdigit() and int(count) > 0):
            raise BadInput(f"{shown} has count={count}", right="give a whole number of at least 1")
        user, password = (None if text is None else unquote(text) for text in (parts.username, parts.password))
        return cls(host, port, int(db), unquote(key), parts.scheme == "rediss", user, password, options)

    def __str__(self) -> str:
        return f"{'rediss' if self.tls else 'redis'}://{self.host}:{self.port}/{self.db}/{self.key}"


class Server:
    """A connection that answers as Redis does, in bytes and lists, whatever the version of the client makes of them.

    An answer that got lost may have had its effect. So nothing is asked twice: whoever is cut off starts again at a checkpoint.

    >>> Server(RedisAddress("localhost", 1, 0, "people"))
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: redis://localhost:1/0/people: no Redis answers there (...); start one, or correct ...
    """

    def __init__(self, place: RedisAddress) -> None:
        self.place, redis = place, client_library()
        self.client = redis.Redis(
            host=place.host,
            port=place.port,
            db=place.db,
            ssl=place.tls,
            username=place.user,
            protocol=2,
            password=place.password or os.environ.get("REDISCLI_AUTH"),
            socket_connect_timeout=5.0,
            socket_timeout=ANSWER,
            retry=redis.retry.Retry(redis.backoff.NoBackoff(), 0),
        )
        for verb in ("XREADGROUP", "XPENDING", "XRANGE"):
            self.client.set_response_callback(verb, lambda answer, **_: answer)
        self.ask("PING")

    def ask(self, *words: Any) -> Any:
        """One command and its answer."""
        with translate_errors(self.place):
            return self.client.execute_command(*words)

    def groups(self) -> list[dict[str, Any]]:
        """Those that read the stream."""
        return (
            [as_record(one) for one in self.ask("XINFO", "GROUPS", self.place.key)]
            if self.ask("EXISTS", self.place.key)
            else []
        )

    def close(self) -> None:
        """No more is asked."""
        self.client.close()


def client_library() -> Any:
    """The module `redis`, which comes with an extra.

    >>> client_library().__name__
    'redis'
    """
    try:
        import redis
    except ImportError:
        right = "install it with: pip install 'closeknit[redis]'"
        raise BadInput("the client of Redis is not installed", right=right) from None
    return redis


def as_record(answer: list[Any]) -> dict[str, Any]:
    """Names and values that come in turn.

    >>> as_record([b"name", b"g", b"pending", 0])
    {'name': 'g', 'pending': 0}
    """
    values = [part.decode("utf-8", "replace") if isinstance(part, bytes) else part for part in answer]
    return dict(zip(values[::2], values[1::2], strict=True))


@contextmanager
def translate_errors(place: RedisAddress) -> Iterator[None]:
    """What a server refuses, said as one sentence.

    >>> with translate_errors(RedisAddress("localhost", 6379, 0, "people")):
    ...     raise client_library().ResponseError("WRONGTYPE Operation against a key holding the wrong kind of value")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: redis://localhost:6379/0/people: this key holds no stream; choose another one
    """
    errors = client_library().exceptions
    try:
        yield
    except (errors.AuthenticationError, errors.NoPermissionError) as error:
        right = "write redis://user:password@..., or put the password into REDISCLI_AUTH"
        raise BadInput(f"Redis does not let us in ({error})", file=place, right=right) from None
    except (errors.ConnectionError, errors.TimeoutError) as error:
        right = "start one, or correct the address; a stream that ran goes on from its checkpoint"
        raise BadInput(f"no Redis answers there ({error})", file=place, right=right) from None
    except errors.WatchError:
        raise BadInput("somebody else writes to this stream", file=place, right="choose another one") from None
    except errors.RedisError as error:
        if "WRONGTYPE" in str(error):
            raise BadInput("this key holds no stream", file=place, right="choose another one") from None
        raise BadInput(f"Redis refuses it ({error})", file=place, right="ask whoever runs it") from None
