"""The common checks of streams: they know every registered one, and find out those that err."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import closeknit as ck
from closeknit.checks import parameter_sets, stream_checks
from closeknit.checks.failures import CheckFailed
from closeknit.checks.stream_cases import StreamCase, edge_streams, random_streams
from closeknit.checks.stream_logs import SEED
from closeknit.core.params import spec
from closeknit.streams import REGISTRY
from closeknit.streams.stream import Emission
from conftest import SOAK, SOAK_SEED

CASES = {case.name: case for case in edge_streams()}
MORE = random_streams(40, SOAK_SEED) if SOAK else []


def test_every_stream_has_examples_and_wrong_ones() -> None:
    assert set(parameter_sets.STREAMS) == set(parameter_sets.STREAMS_REFUSED) == set(REGISTRY)
    assert all(parameter_sets.STREAMS.values()) and all(parameter_sets.STREAMS_REFUSED.values())


@pytest.mark.soak
@pytest.mark.parametrize("case", MORE, ids=[case.name for case in MORE])
@pytest.mark.parametrize("name", REGISTRY)
def test_many_random_streams(name: str, case: StreamCase) -> None:
    for params in parameter_sets.STREAMS[name]:
        declared = any(spec(model).get("reference") for model in params.get("models", ()))  # another value stops the stream
        kept = case.keep_values(parameter_sets.DECLARED) if declared else case
        for check in stream_checks(partial(_made, REGISTRY[name], params), [kept], name):
            check.run()


def _made(stream: Any, params: dict[str, Any], schema: ck.Schema) -> Any:
    return stream(schema=schema, seed=SEED, **params)


class TooSmall(ck.KnnStream):
    """The expiring row leaves alone."""

    def _expire(self, y: int) -> Iterator[Emission]:
        yield Emission(np.array([y]), at=self.handled)


class Late(ck.KnnStream):
    """Nothing leaves before the end."""

    def _expire(self, y: int) -> Iterator[Emission]:
        self.handled = -1
        yield from ()

    def _oldest(self) -> int | None:
        return None


class Lost(ck.KnnStream):
    """Suppressed rows are not counted."""

    def _suppress(self, positions: Any) -> None:
        if len(positions):
            self.pending.drop(positions)


class Narrow(ck.KnnStream):
    """What is written covers the first row of a class alone."""

    def _expire(self, y: int) -> Iterator[Emission]:
        for leaving in super()._expire(y):
            row = self.pending.quasi(leaving.positions[:1])[0]
            yield Emission(leaving.positions, (row, row), at=leaving.at)


class CountsRows(ck.Castle):
    """Rows of one person count as several persons."""

    def __init__(self, schema: ck.Schema, **params: Any) -> None:
        super().__init__(schema, **params)
        self.judge.by_person = self.clusters.by_person = False


class Forgetful(ck.Castle):
    """A checkpoint does not keep the losses of the last classes."""

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "recent": []}


class Chancy(ck.Castle):
    """Choices come from elsewhere than the secret."""

    def choice(self, *what: object) -> np.random.Generator:
        return np.random.default_rng()


class CutsBlindly(ck.KnitStream):
    """Both sides of a cut have k rows, and may have fewer persons."""

    def _holds(self, positions: Any) -> bool:
        return len(positions) >= self.k

    def _divide(self, piece: Any) -> Any:
        self.judge.by_person = False
        parts = super()._divide(piece)
        self.judge.by_person = True
        return parts


class LosesPieces(ck.KnitStream):
    """A checkpoint does not keep the rows that are being cut."""

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "pieces": []}


class FarOff(ck.Windowed):
    """Windows are guaranteed and everything that waits is one class, close or not."""

    def _split_window(self, first: int, end: int, window: int, thin: bool = False) -> Any:
        found = self.pending.positions(first, end)
        return [np.array([position]) for position in found.tolist()]


DELAYED: dict[str, Any] = {"k": 3, "delta": 12}
WINDOWS: dict[str, Any] = {"method": ck.Mondrian(), "models": [ck.TCloseness("ill", 0.2)], "omega": 20, "advance": 5}
BAD: list[tuple[type[Any], dict[str, Any], str, set[str]]] = [
    (TooSmall, DELAYED, "every kind", {"guarantees_at_every_instant"}),
    (Late, DELAYED, "every kind", {"delay_is_kept", "memory_is_bounded"}),
    (Lost, DELAYED, "few persons arrive often", {"every_row_once", "flush_empties"}),
    (Narrow, DELAYED, "every kind", {"raw_value_inside"}),
    (CountsRows, DELAYED, "few persons arrive often", {"guarantees_at_every_instant"}),
    (Forgetful, {**DELAYED, "eta": 4}, "every kind", {"resume_changes_nothing"}),
    (Chancy, {**DELAYED, "delta": 30, "eta": 2}, "every kind", {"secret_repeats"}),
    (CutsBlindly, {"k": 3, "delta": 30}, "few persons arrive often", {"guarantees_at_every_instant"}),
    (LosesPieces, {"k": 3, "delta": 35}, "every kind", {"resume_changes_nothing"}),
    (FarOff, WINDOWS, "every kind", {"close_to_its_window"}),
]


@pytest.mark.parametrize(("stream", "params", "on", "failing"), BAD, ids=[bad[0].__name__ for bad in BAD])
def test_a_bad_stream_is_found_out(stream: type[Any], params: dict[str, Any], on: str, failing: set[str]) -> None:
    found = set()
    for check in stream_checks(partial(_made, stream, params), [CASES[on]], "bad"):
        try:
            check.run()
        except Exception as error:
            found.add(check.check)
            assert check.check not in failing or isinstance(error, CheckFailed), f"{check.check}: {error!r}"
    assert failing <= found, found


@pytest.mark.parametrize("name", ["castle", "knn_stream", "knit_stream"])
def test_fewer_rows_may_wait_than_a_class_needs(name: str) -> None:
    with pytest.warns(UserWarning, match="fewer than k"):
        REGISTRY[name](schema=CASES["every kind"].schema, k=5, delta=3)  # type: ignore[call-arg]
