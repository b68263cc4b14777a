"""The thesis's experiments: sentences follow from numbers, releases keep what was asked, every figure of it has its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import closeknit as ck

FIGURES = [f"3.{n}" for n in range(7, 15)] + [f"4.{n}" for n in range(4, 10)] + [f"5.{n}" for n in range(5, 14)]
FIGURES += [f"6.{n}" for n in range(4, 8)]


@pytest.fixture(scope="module")
def experiments(benchmark: Callable[[str], Any]) -> Callable[[str], Any]:
    """A module of the experiments by its name."""
    return lambda name: benchmark(f"experiments.{name}")


@pytest.fixture(scope="module")
def trial(experiments: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return experiments("figures").Trial(True, tmp_path_factory.mktemp("tables"))


def test_every_figure_of_the_thesis_is_run_again(experiments: Any) -> None:
    assert list(experiments("sources").THESIS) == FIGURES


def test_one_line_is_ahead_of_another_in_a_share_of_the_places(experiments: Any) -> None:
    ahead = experiments("thesis_claims").ahead
    lines = {"a": {1: 0.2, 2: 0.4}, "b": {1: 0.4, 2: 0.8, 3: 0.1}, "c": {1: 0.1, 2: 0.9}, "none": {1: 0.0, 2: 0.0}}
    won = ahead(lines, [("a", "b")], "a is below b")
    assert won.holds == 1 and won.source == "a is below b" and won.here == "a / b 0.50 (0.50 to 0.50)"
    assert ahead(lines, [("a", "b")], "", factor=0.5).holds == 0, "half is not below half"
    assert ahead(lines, [("a", "b"), ("a", "c")], "").holds == 0.75, "c is below a at 1"
    assert ahead(lines, [("a", "c")], "").here == "a / c 0.94 (0.44 to 2.00)"
    nothing = ahead(lines, [("a", "none")], "")
    assert nothing.holds == 0 and nothing.here == "a / none cannot be decided"


def test_lines_rise_or_fall_or_turn_back(experiments: Any) -> None:
    moves = experiments("thesis_claims").moves
    lines = {
        "up": {1: 1.0, 3: 3.0, 2: 2.0},
        "nearly": {1: 1.0, 2: 0.99, 3: 2.0},
        "wave": {1: 1.0, 2: 3.0, 3: 2.0},
        "flat": {1: 1.0, 2: 1.0},
    }
    assert moves(lines, ["up", "nearly"], "", grows=True).holds == 1
    assert moves(lines, ["up"], "it rises", grows=True).here == "up 1, 2, 3"
    for name, grows in (("up", False), ("wave", True), ("wave", False), ("flat", True), ("flat", False)):
        assert moves(lines, [name], "", grows).holds == 0, (name, grows)
    assert moves(lines, ["nearly"], "", grows=True, slack=0).holds == 0
    assert moves(lines, ["up", "wave"], "", grows=True).holds == 0.5


def test_no_method_exceeds_what_was_asked(experiments: Any, trial: Any) -> None:
    on_sal = experiments("thesis_sal")
    panels = experiments("thesis_close").real_closeness(trial).panels
    by_t, by_quasi = (panel.lines for panel in panels)
    assert set(by_t) == set(on_sal.CLOSE) and len(by_quasi) == len(on_sal.CLOSE) - 1
    assert all(0 < measured <= t for line in by_t.values() for t, measured in line.items())
    assert all(0 < measured <= on_sal.T for line in by_quasi.values() for measured in line.values())
    source = on_sal.sal(trial).part(quasi=on_sal.FIVE[:3])
    for name in on_sal.LIKE:
        models = on_sal.likely(name, source, 3)
        release, _ = on_sal.released(name, source, models)
        for model in models:
            limit = model.beta if isinstance(model, ck.BetaLikeness) else model.delta
            assert on_sal.level(release, model) <= limit, (name, model)


def test_trees_of_numbers_are_read_as_ranges_of_numbers(experiments: Any, trial: Any) -> None:
    """Or Incognito would be asked other queries than its rivals."""
    on_sal = experiments("thesis_sal")
    source = on_sal.sal(trial).part()
    release, _ = on_sal.released(on_sal.INCOGNITO, source, on_sal.closely(source.secret, 6, 0.35))
    reading = on_sal.read_as(source, on_sal.INCOGNITO, release)
    assert {type(kind) for kind in reading.schema.quasi.values()} == {type(kind) for kind in source.schema.quasi.values()}
    assert sorted(reading.classes.sizes.tolist()) == sorted(np.unique(release.partition, return_counts=True)[1].tolist())
    everything = ck.metrics.queries(source.path, source.schema, theta=1, count=1)
    assert ck.metrics.workload_error(reading, source.path, everything).median == pytest.approx(0)


def test_matched_releases_are_on_the_right_side(experiments: Any, trial: Any) -> None:
    faces = experiments("thesis_faces")
    source = experiments("thesis_sal").sal(trial).part(quasi=("age", "sex", "education"))
    face = faces.Faces(source, runs=6)
    near = face.same(faces.BUREL, face.t, 0.2, "below", rises=True)
    assert near is not None and face.t(near) <= 0.2
    lossy = face.same(faces.MONDRIAN, lambda release: release.loss, 0.3, "above", rises=False)
    assert lossy is not None and lossy.loss >= 0.3
    assert len(face.apart) == 2 and face.apart[1] == pytest.approx(lossy.loss / 0.3 - 1)
    assert face.beta(face.release(faces.MONDRIAN, 0.2)) > face.beta(face.release(faces.BUREL, 2)), "t knows no rare values"


def test_windows_are_whole_steps_however_small(experiments: Any) -> None:
    windows = experiments("thesis_windows")
    for scale in (1.0, 0.5, 0.013, 1e-6):
        rows = windows.Rows(None, None, None, scale)
        step = rows.window(windows.ADVANCES[0])
        assert step >= 2 and all(rows.window(size) % step == 0 for size in (*windows.ADVANCES, *windows.OMEGAS))
        assert all(rows.window(windows.OMEGA) % rows.window(advance) == 0 for advance in windows.ADVANCES)
    assert windows.Rows(None, None, None, 1.0).window(windows.OMEGA) == windows.OMEGA
