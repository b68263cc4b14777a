"""Where the time of a release goes: the steps of the way, by the profiler's own account of who called what."""

from __future__ import annotations

import cProfile
import pstats
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import clock
from sections import Section


@dataclass(frozen=True)
class Step:
    """A function and its caller, each as `file:function`."""

    name: str
    function: str
    caller: str


STEPS = (
    Step("read the CSV", "io/files.py:read_with_format", "api/request_checks.py:read_table"),
    Step("encode", "core/schema.py:encode", "api/anonymizing.py:anonymize"),
    Step("check the request", "api/request_checks.py:check_request", "api/table_release.py:release_table"),
    Step("method", "methods/stack_and_deal.py:run", "api/table_release.py:work"),
    Step("last look at the guarantees, repair", "search/repair.py:repair_partition", "api/table_release.py:_outcome"),
    Step("write the cells", "forms/generalized.py:write", "api/publishing.py:_certify_written"),
    Step("read back", "forms/generalized.py:read", "api/publishing.py:_certify_written"),
    Step("certify", "core/measurement.py:of", "api/publishing.py:_certify_written"),
    Step("content hash", "io/canonical.py:content_hash", "release/local_release.py:certificate"),
    Step("save: private folder", "release/release.py:write_private", "io/folders.py:_fill"),
    Step("save: release and certificate", "release/release.py:write_public", "io/folders.py:_fill"),
)

Stats = dict[tuple[str, int, str], tuple[int, int, float, float, dict[tuple[str, int, str], tuple[int, int, float, float]]]]


def report(section: Section, name: str, way: Callable[[], object], rounds: int = clock.ROUNDS) -> None:
    """A table of the steps of one way, medians over some rounds."""
    seconds: dict[str, list[float]] = {}
    for _ in range(rounds):
        for step, took in measured(way).items():
            seconds.setdefault(step, []).append(took)
    whole = statistics.median(seconds["all"])
    lines = [
        [step, f"{statistics.median(took):.3f} s", f"{100 * statistics.median(took) / whole:.0f} %"]
        for step, took in seconds.items()
    ]
    section.table([f"steps of {name}", "time", "share"], lines)


def measured(way: Callable[[], object]) -> dict[str, float]:
    """Seconds of every step, of the rest, and of all, in one run."""
    profiler = cProfile.Profile()
    took = clock.timed(lambda: profiler.runcall(way))
    stats: Stats = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    seconds = {step.name: _under(stats, step) for step in STEPS}
    return {**seconds, "all else": took - sum(seconds.values()), "all": took}


def _under(stats: Stats, step: Step) -> float:
    """Seconds that the function took when the caller called it; a step that is not found would silently count as nothing."""
    found = [
        times[3]
        for key, (*_, callers) in stats.items()
        if _is(key, step.function)
        for caller, times in callers.items()
        if _is(caller, step.caller)
    ]
    if not found:
        raise LookupError(f"the step '{step.name}' has moved: nothing like {step.function} was called by {step.caller}")
    return sum(found)


def _is(key: tuple[str, int, str], named: str) -> bool:
    file, function = named.split(":")
    return key[2] == function and key[0].replace("\\", "/").endswith(f"closeknit/{file}")
