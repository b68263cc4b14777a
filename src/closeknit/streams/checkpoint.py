"""A stream on disk: pending rows, the state of the algorithm, counters, the secret and the parameters; no history.

The file is private (mode 0600): it holds raw rows and the secret from which all choices derive. It is written whole or not at
all, and reading it runs no code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from closeknit import __version__
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
from closeknit.streams.input_rules import InputRules
from closeknit.streams.packing import from_bytes, to_bytes

if TYPE_CHECKING:
    from closeknit.streams.stream import Stream

MARK = "closeknit stream"
VERSION = 2  # raised whenever the file changes, or what a stream does with its content
MODE = 0o600


def save(stream: Stream, path: str | PathLike[str], metadata: Mapping[str, Any] | None = None) -> None:
    """Write a stream to a file.

    Args:
        stream: any stream.
        path: the file, which is replaced.
        metadata: plain values to store with the stream, such as offsets of its input and output.

    >>> import tempfile
    >>> from closeknit.core.kinds import numeric
    >>> from closeknit.streams.castle import Castle
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Castle(Schema(quasi={"age": numeric(0, 100)}), k=2, delta=9), f"{folder}/saved", {"offset": 5})
    ...     stream, metadata = load_with_metadata(f"{folder}/saved", Castle)
    >>> stream.k, metadata
    (2, {'offset': 5})
    """
    content = {**_collect_state(stream), "requested": dump_params(stream), "metadata": dict(metadata or {})}
    write_whole(path, seal(content), MODE)


def save_state(stream: Stream) -> bytes:
    """The state of a stream without its parameters, for a caller that stores these once for many states.

    >>> from closeknit.core.kinds import numeric
    >>> from closeknit.streams.castle import Castle
    >>> schema = Schema(quasi={"age": numeric(0, 100)})
    >>> one, other = Castle(schema, k=2, delta=9), Castle(schema, k=2, delta=9)
    >>> _ = one.push({"age": 30})
    >>> load_state(other, save_state(one))
    >>> other.counters.pending, other.secret == one.secret
    (1, True)
    """
    return seal(_collect_state(stream))


def load_state(stream: Stream, state: bytes) -> None:
    """Resume from what `save_state` returned; `stream` is a new one with the same parameters."""
    _restore_content(stream, unseal(state, "the state of a stream"))


def seal(content: Mapping[str, Any]) -> bytes:
    """A checkpoint as bytes, with its version and the closeknit that wrote it."""
    return to_bytes({"mark": MARK, "version": VERSION, "closeknit": __version__, **content})


def unseal(data: bytes, path: str | PathLike[str]) -> dict[str, Any]:
    """What `seal` was given; `path` is named in the message if this is no checkpoint, or one of another version."""
    try:
        content = from_bytes(data)
    except ValueError:
        raise _not_a_checkpoint(path) from None
    if not isinstance(content, dict) or not (content.get("mark") == MARK or {"secret", "stream"} <= content.keys()):
        raise _not_a_checkpoint(path)
    if (version := content.get("version", 1)) != VERSION:
        writer = content.get("closeknit", "0.1")  # version 1 does not name its writer
        what = (
            f"closeknit {writer} wrote this checkpoint (version {version}), and closeknit {__version__} reads version {VERSION}"
        )
        raise BadInput(
            what, file=path, right=f"end this stream with closeknit {writer}, or begin a new one with another checkpoint"
        )
    return content


def set_secret(stream: Stream, secret: bytes) -> None:
    """Let the choices of a new stream derive from this secret."""
    _restore_content(stream, {**_collect_state(stream), "secret": secret})


def _collect_state(stream: Stream) -> dict[str, Any]:
    positions = stream.pending.positions()
    return {
        "stream": stream.name,
        "secret": stream.secret,
        "position": stream.position,
        "ended": stream.ended,
        "rules": asdict(stream.rules),
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
    """The stream in a file, and the metadata stored with it."""
    try:
        content = unseal(Path(path).read_bytes(), path)
        cls = _class_of(content["stream"], kind, path)
        stream = cls(**_build_value(content["requested"]))
        _restore_content(stream, content)
        return stream, content["metadata"]
    except OSError as error:
        raise explain_os_error(error, path) from None
    except (KeyError, TypeError, ValueError, AttributeError):
        raise _not_a_checkpoint(path) from None


def dump_params(stream: Stream) -> dict[str, Any]:
    """The parameters of a stream as plain values: schema, models and methods as a recipe writes them.

    >>> from closeknit.core.kinds import numeric
    >>> from closeknit.streams.castle import Castle
    >>> dump_params(Castle(Schema(quasi={"age": numeric(0, 100)}), k=2, delta=9))
    {'schema': {'schema of': {'quasi': {'age': {'numeric': {'lo': 0, 'hi': 100}}}}}, 'k': 2, 'delta': 9}
    """
    return {name: _dump_value(value) for name, value in stream.init_params.items()}


def refuse_other(stream: Stream, requested: Stream, path: str | PathLike[str]) -> None:
    """Refuse the stream of a checkpoint if its parameters differ from those of the requested one."""
    refuse_changed(stream.name, dump_params(stream), requested, path)


def refuse_changed(name: str, then: Mapping[str, Any], requested: Stream, path: str | PathLike[str]) -> None:
    """As `refuse_other`, for a stream that is known by its name and the forms of its parameters."""
    right = "use the recipe of the checkpoint, or begin with another --checkpoint folder"
    if name != requested.name:
        raise BadInput(f"this is a checkpoint of {name}, and {requested.name} is requested", file=path, right=right)
    now = dump_params(requested)
    for name in sorted({*then, *now}):
        if then.get(name) != now.get(name):
            values = "" if name in ("schema", "models") else f" ({then.get(name)!r}, now {now.get(name)!r})"
            raise BadInput(f"this checkpoint has another {name}{values}", file=path, right=right)


def _not_a_checkpoint(path: str | PathLike[str]) -> BadInput:
    right = "name one that save() or --checkpoint wrote, restore a copy, or begin with another --checkpoint folder"
    return BadInput("this is not a checkpoint of a stream, or it is damaged", file=path, right=right)


def _class_of(name: str, kind: type[Any], path: str | PathLike[str]) -> type[Stream]:
    if kind.name:
        if kind.name != name:
            raise BadInput(f"this is a checkpoint of {name}, not of {kind.name}", file=path, right=f"load it as {name}")
        return kind
    from closeknit.streams import REGISTRY  # imports all algorithms, which import this file

    if name not in REGISTRY:
        raise BadInput(f"this is a checkpoint of {name}, which is unknown", file=path, right=suggest_name(name, REGISTRY))
    return REGISTRY[name]


def _restore_content(stream: Stream, content: Mapping[str, Any]) -> None:
    stream.secret = content["secret"]
    stream.coder = Coder(stream.schema, stream.secret, stream.folds)
    stream.position, stream.ended = content["position"], content["ended"]
    stream.counters, stream.rules = Counters(**content["counters"]), InputRules(**content.get("rules", {}))
    first, end = content["span"]
    stream.pending.restore(content["positions"], content["rows"], first, end)
    stream._restore(content["state"])


def _dump_value(value: Any) -> Any:
    if isinstance(value, Schema):
        return {"schema of": value.forms()}
    for kind, registry in (("model", MODELS), ("method", METHODS)):
        if type(value) in registry.values():
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
        if key in makers and not others:
            return makers[key](form[key])
        return {name: _build_value(part) for name, part in form.items()}
    return [_build_value(part) for part in form] if isinstance(form, list) else form
