"""A Redis server: its address, commands and raw answers, and its errors as one sentence."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from closeknit.core.errors import BadInput, suggest_name
from closeknit.streams.sinks import SinkDown

ANSWER = 30.0  # seconds to wait for an answer
OPTIONS = {"in": ("group", "consumer", "count", "field", "end"), "out": ("field",)}
EXAMPLE = "redis://localhost:6379/0/people?group=closeknit&consumer=one"


@dataclass(frozen=True)
class RedisAddress:
    """A stream in a database of a server, and the options of its address.

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
    def of(cls, url: str, direction: str) -> RedisAddress:
        """Read an address.

        Args:
            url: as `redis://localhost:6379/0/people?group=closeknit&consumer=one`.
            direction: "in" or "out".
        """
        right = "write " + (EXAMPLE if direction == "in" else EXAMPLE.partition("?")[0])
        parts = urlsplit(url)
        shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        try:
            host, port = parts.hostname or "localhost", parts.port or 6379
        except ValueError:
            raise BadInput(f"{shown} has an invalid port", right=right) from None
        db, _, key = parts.path.removeprefix("/").partition("/")
        if not (db.isascii() and db.isdigit()) or not key:
            raise BadInput(f"{shown} names no database and stream", right=right)
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        for name in options:
            if name not in OPTIONS[direction]:
                raise BadInput(f"{shown} has the unknown option '{name}'", right=suggest_name(name, OPTIONS[direction]))
        for name in ("group", "consumer") if direction == "in" else ():
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
    """A connection whose answers are those of Redis, in bytes and lists, whatever the version of the client.

    A command whose answer is lost may have had its effect. So no command is repeated here: a sink compares a batch whose answer
    was lost, and a source that is cut off resumes from its checkpoint.

    Args:
        place: the address of a stream on the server.

    >>> Server(RedisAddress("localhost", 1, 0, "people"))
    Traceback (most recent call last):
    closeknit.streams.sinks.SinkDown: redis://localhost:1/0/people: no Redis answers there (...); start one, or correct ...
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
        """The groups that read the stream."""
        known = self.ask("EXISTS", self.place.key)
        return [as_record(one) for one in self.ask("XINFO", "GROUPS", self.place.key)] if known else []

    def close(self) -> None:
        """End the connection."""
        self.client.close()


def client_library() -> Any:
    """The module `redis`, which an extra installs.

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
    """A mapping from alternating names and values.

    >>> as_record([b"name", b"g", b"pending", 0])
    {'name': 'g', 'pending': 0}
    """
    values = [part.decode("utf-8", "replace") if isinstance(part, bytes) else part for part in answer]
    return dict(zip(values[::2], values[1::2], strict=True))


@contextmanager
def translate_errors(place: RedisAddress) -> Iterator[None]:
    """Turn an error of the server into one sentence.

    >>> with translate_errors(RedisAddress("localhost", 6379, 0, "people")):
    ...     raise client_library().ResponseError("WRONGTYPE Operation against a key holding the wrong kind of value")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: redis://localhost:6379/0/people: this key is not a stream; choose another one
    """
    errors = client_library().exceptions
    try:
        yield
    except (errors.AuthenticationError, errors.NoPermissionError) as error:
        right = "write redis://user:password@..., or put the password into REDISCLI_AUTH"
        raise BadInput(f"Redis refuses the login ({error})", file=place, right=right) from None
    except (errors.ConnectionError, errors.TimeoutError) as error:
        right = "start one, or correct the address; the stream resumes from its checkpoint"
        raise SinkDown(f"no Redis answers there ({error})", file=place, right=right) from None
    except errors.WatchError:
        raise BadInput("another process writes to this stream", file=place, right="choose another one") from None
    except errors.RedisError as error:
        if "WRONGTYPE" in str(error):
            raise BadInput("this key is not a stream", file=place, right="choose another one") from None
        raise BadInput(f"Redis refuses a command ({error})", file=place, right="ask the administrator of the server") from None
