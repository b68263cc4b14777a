"""Charts drawn by vl-convert: in this process, or in a second one that starts while this one computes.

The first chart of a process takes 0.4 s, in which vl-convert holds the interpreter's lock, so a thread would not help. A
command that is going to draw charts starts the second process at its beginning, with `draw_ahead`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

OPTIONS: dict[str, Any] = {"allowed_base_urls": [], "show_warnings": False}  # no requests
SECOND = f"""
import json, sys
import vl_convert
vl_convert.vegalite_to_svg({{"data": {{"values": [{{}}]}}, "mark": "point"}}, **{OPTIONS})
for line in sys.stdin:
    print(json.dumps(vl_convert.vegalite_to_svg(json.loads(line), **{OPTIONS})), flush=True)
"""
_second: list[subprocess.Popen[str]] = []  # at most one


@contextmanager
def draw_ahead() -> Iterator[None]:
    """Draw charts in a second process; where that is impossible, in this one.

    >>> values = ", ".join(f'{{"x": {i / 33}}}' for i in range(9))
    >>> shown = '{"x": {"field": "x", "type": "quantitative"}}'
    >>> spec = f'{{"data": {{"values": [{values}]}}, "mark": "bar", "encoding": {shown}}}'
    >>> with draw_ahead():
    ...     drawn = draw(spec)
    >>> drawn == draw(spec)
    True
    """
    with suppress(OSError):
        words = [sys.executable, "-P", "-c", SECOND]  # -P: no module of the current folder is loaded
        pipe = subprocess.PIPE
        _second.append(subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, encoding="utf-8"))
    try:
        yield
    finally:
        while _second:
            _end(_second.pop())


def draw(spec: str) -> str:
    """Return the SVG of a specification of Vega-Lite, given as JSON on one line.

    >>> draw('{"data": {"values": [{}]}, "mark": "point"}')[:4]
    '<svg'
    """
    if _second:
        with suppress(OSError, ValueError):  # it has ended, or was ended
            return _ask(_second[0], spec)
        _end(_second.pop())
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(json.loads(spec), **OPTIONS)  # of a text, vl-convert rounds numbers differently
    return drawn


def _ask(process: subprocess.Popen[str], spec: str) -> str:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{spec}\n")
    process.stdin.flush()
    drawn: str = json.loads(process.stdout.readline())
    return drawn


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()  # it keeps nothing
    with suppress(OSError):
        process.communicate()
