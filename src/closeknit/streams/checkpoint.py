"""A stream on disk: pending rows, what the algorithm holds, counters, the secret and what it was made with; no history.

The file is private (mode 0600): it holds raw rows and the secret from which all choices derive. It is written whole or not at
all, and read without running anything that stands in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from closeknit.core.certificate import model_form
from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.params import build_from_form
from closeknit.core.schema import Schema
from closeknit.io.faults import explain_os_error
from closeknit.io.folders import write_whole
from closeknit.methods import REGISTRY as METHODS
from closeknit.models import REGISTRY as MODELS
from closeknit.streams.arrivals import Coder
from closeknit.streams.counters import Counters
from closeknit.streams.packing import from_bytes, to_bytes

if TYPE_CHECKING:
    from closeknit.streams.stream import Stream

MARK = "closeknit stream"
VERSION = 1  # raised whenever the file changes, or what a stream would do with what stands in it
MODE = 0o600


def save(stream: Stream, path: str | PathLike[str], beside: Mapping[str, Any] | None = None) -> None:
    """Write a stream down, with what others want to find `beside` it (offsets of its input and output).

    >>> import tempfile
    >>> from closeknit.core.kinds import numeric
    >>> from closeknit.streams.castle import Castle
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Castle(Schema(quasi={"age": numeric(0, 100)}), k=2, delta=9), f"{folder}/kept", {"offset": 5})
    ...     stream, beside = load_with_metadata(f"{folder}/kept", Castle)
    >>> stream.k, beside
    (2, {'offset': 5})
    """
    content = {**_collect_state(stream), "requested": dump_params(stream), "beside": dict(beside or {})}
    write_whole(path, to_bytes(content), MODE)


def save_state(stream: Stream) -> bytes:
    """What a stream holds, without what it was made with: for whoever makes it anew and keeps many such states.

    >>> from closeknit.core.kinds import numeric
    >>> from closeknit.streams.castle import Castle
    >>> schema = Schema(quasi={"age": numeric(0, 100)})
    >>> one, other = Castle(schema, k=2, delta=9), Castle(schema, k=2, delta=9)
    >>> _ = one.push({"age": 30})
    >>> load_state(other, save_state(one))
    >>> other.counters.pending, other.secret == one.secret
    (1, True)
    """
    return to_bytes(_collect_state(stream))


def load_state(stream: Stream, state: bytes) -> None:
    """Go on from what `save_state` gave: `stream` is a new one, made with the same parameters."""
    _restore_content(stream, _check_content(from_bytes(state), "the state of a stream"))


def set_secret(stream: Stream, secret: bytes) -> None:
    """A new stream whose choices derive from this secret instead of its own."""
    _restore_content(stream, {**_collect_state(stream), "secret": secret})


def _collect_state(stream: Stream) -> dict[str, Any]:
    positions = stream.pending.positions()
    return {
        "mark": MARK,
        "version": VERSION,
        "stream": stream.name,
        "secret": stream.secret,
        "position": stream.position,
        "ended": stream.ended,
        "counters": asdict(stream.counters),
        "span": [stream.pending.first, stream.pending.end],
        "positions": positions,
        "rows": stream.pending.take(positions) if len(positions) else None,
        "state": stream._state(),
    }


def load(path: str | PathLike[str], kind: type[Any]) -> Stream:
    """The stream in a file; `kind` is the class that it must have."""
    return load_with_metadata(path, kind)[0]


def load_with_metadata(path: str | PathLike[str], kind: type[Any]) -> tuple[Stream, dict[str, Any]]:
    """The stream, and what was written down beside it."""
    content = _read_content(Path(path))
    try:
        cls = _class_of(content["stream"], kind, path)
        stream = cls(**_build_value(content["requested"]))
        _restore_content(stream, content)
        return stream, content["beside"]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise _not_a_checkpoint(path) from None


def dump_params(stream: Stream) -> dict[str, Any]:
    """What a stream was made with, as plain values: schema, models and methods as a recipe writes them.

    >>> from closeknit.core.kinds import numeric
    >>> from closeknit.streams.castle import Castle
    >>> dump_params(Castle(Schema(quasi={"age": numeric(0, 100)}), k=2, delta=9))
    {'schema': {'schema of': {'quasi': {'age': {'numeric': {'lo': 0, 'hi': 100}}}}}, 'k': 2, 'delta': 9}
    """
    return {name: _dump_value(value) for name, value in stream.init_params.items()}


def refuse_other(stream: Stream, requested: Stream, path: str | PathLike[str]) -> None:
    """Refuse the stream of a checkpoint that was not made with what is asked for now."""
    refuse_changed(stream.name, dump_params(stream), requested, path)


def refuse_changed(name: str, then: Mapping[str, Any], requested: Stream, path: str | PathLike[str]) -> None:
    """The same, of a stream whose name is kept with the forms of what it was made with."""
    right = "use the recipe that it was made with, or begin with another --checkpoint folder"
    if name != requested.name:
        raise BadInput(f"this checkpoint is one of {name}, and asked is {requested.name}", file=path, right=right)
    now = dump_params(requested)
    for name in sorted({*then, *now}):
        if then.get(name) != now.get(name):
            told = "" if name in ("schema", "models") else f" ({then.get(name)!r}, now {now.get(name)!r})"
            raise BadInput(f"this checkpoint was made with another {name}{told}", file=path, right=right)


def _read_content(path: Path) -> dict[str, Any]:
    try:
        return _check_content(from_bytes(path.read_bytes()), path)
    except OSError as error:
        raise explain_os_error(error, path) from None
    except ValueError:
        raise _not_a_checkpoint(path) from None


def _check_content(content: Any, path: str | PathLike[str]) -> dict[str, Any]:
    if not isinstance(content, dict) or content.get("mark") != MARK:
        raise _not_a_checkpoint(path)
    if content.get("version") != VERSION:
        what = f"this checkpoint has version {content.get('version')}, and this closeknit reads version {VERSION}"
        raise BadInput(what, file=path, right="end the stream with the closeknit that began it, or begin another one")
    return content


def _not_a_checkpoint(path: str | PathLike[str]) -> BadInput:
    return BadInput("this is no checkpoint of a stream", file=path, right="name a file that save() or --checkpoint wrote")


def _class_of(name: str, kind: type[Any], path: str | PathLike[str]) -> type[Stream]:
    if getattr(kind, "name", None) is not None:
        if kind.name != name:
            raise BadInput(f"this checkpoint is one of {name}, not of {kind.name}", file=path, right=f"load it as {name}")
        return kind
    from closeknit.streams import REGISTRY  # knows all algorithms, which know this file

    if name not in REGISTRY:
        raise BadInput(f"this checkpoint is one of {name}, which is unknown", file=path, right=suggest_name(name, REGISTRY))
    return REGISTRY[name]


def _restore_content(stream: Stream, content: Mapping[str, Any]) -> None:
    stream.secret = content["secret"]
    stream.coder = Coder(stream.schema, stream.secret, stream.folds)
    stream.position, stream.ended = content["position"], content["ended"]
    stream.counters = Counters(**content["counters"])
    first, end = content["span"]
    stream.pending.restore(content["positions"], content["rows"], first, end)
    stream._restore(content["state"])


def _dump_value(value: Any) -> Any:
    if isinstance(value, Schema):
        return {"schema of": value.forms()}
    for kind, registry in (("model", MODELS), ("method", METHODS)):
        if registry.get(str(getattr(value, "name", None))) is type(value):
            return {f"{kind} of": model_form(value)}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_dump_value(part) for part in value]
    return {key: _dump_value(part) for key, part in value.items()} if isinstance(value, Mapping) else value


def _build_value(form: Any) -> Any:
    makers: dict[str, Callable[[Any], Any]] = {
        "schema of": Schema.from_forms,
        "model of": lambda of: build_from_form("model", of, MODELS),
        "method of": lambda of: build_from_form("method", of, METHODS),
    }
    if isinstance(form, Mapping):
        (key, *others) = form or ("",)
        return (
            makers[key](form[key])
            if key in makers and not others
            else {name: _build_value(part) for name, part in form.items()}
        )
    return [_build_value(part) for part in form] if isinstance(form, list) else form
