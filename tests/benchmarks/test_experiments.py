"""The sources' experiments in their quick form: every figure is drawn and judged, and findings that must hold do.

Quick runs use generated tables, so that no public table is needed.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from conftest import BENCHMARKS

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("dissertation", "stack_and_deal", "several_secrets", "slicing", "thesis")
VERDICTS = ("Reproduced", "Reproduced in part", "Not reproduced", "Nothing to compare with")
FIGURES = {
    "dissertation": {"tables-3", "3.1", "3.2", "5.1", "6.1"},
    "stack_and_deal": {"1", "2", "3", "4", "5"},
    "several_secrets": {"tables-6-8", "arithmetic", "3-5", "6"},
    "slicing": {"fakes", "matching", "printed", "groupings", "worth"},
}


@pytest.fixture(scope="module")
def experiments(benchmark: Callable[[str], ModuleType]) -> ModuleType:
    """The module that lists them."""
    return benchmark("experiments.sources")


@pytest.fixture(scope="module")
def trial(experiments: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> object:
    from experiments.figures import Trial

    return Trial(True, tmp_path_factory.mktemp("tables"))


# The page ------------------------------------------------------------------------------------------------------------------


def run(*arguments: str) -> int:
    """The command in this process; its status."""
    from experiments.run import main

    return main([*arguments])


def test_command_writes_a_page_with_pictures(tmp_path: Path) -> None:
    command = [
        sys.executable,
        str(BENCHMARKS / "experiments" / "run.py"),
        "stack_and_deal:1",
        "--quick",
        "--into",
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "experiments.md").read_text(encoding="utf-8")
    assert "### Figure 1" in done.stdout and str(tmp_path) not in text, "a page names no place"
    (picture,) = re.findall(r"\]\((\S+\.png)\)", text)
    assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("places", "ticks"), [((0.24, 0.25, 3.7), [0.1, 1, 10]), ((1, 7, 600), [1, 10, 100, 1000]), ((), [])])
def test_a_logarithmic_axis_has_ticks_around_its_places(
    benchmark: Callable[[str], ModuleType], places: tuple[float, ...], ticks: list[float]
) -> None:
    pictures = benchmark("pictures")
    panel = pictures.Panel("rows", "seconds", {"Knit": dict.fromkeys(places, 1.0)}, log_x=True)
    drawn = pictures._chart(panel, ["Knit"]).to_dict()["encoding"]["x"]
    assert drawn["axis"]["values"] == ticks and drawn["scale"] == {"type": "log"}, "its ends are powers of ten too"


def test_a_figure_takes_the_place_of_its_last_version(experiments: ModuleType, tmp_path: Path) -> None:
    for name in ("stack_and_deal:1", "dissertation:tables-3", "stack_and_deal:1"):
        assert run(name, "--quick", "--into", str(tmp_path)) == 0
    text = (tmp_path / "experiments.md").read_text(encoding="utf-8")
    titles = [line for line in text.splitlines() if line.startswith("#")]
    assert [title.split(":")[0] for title in titles] == [
        "# The sources' experiments",
        "## In short",
        "## The dissertation on methods to achieve t-closeness",
        "### Tables 3.2 to 3.4",
        "## The Stack & Deal paper",
        "### Figure 1",
    ]
    short = [line.split("|")[2].strip() for line in text.splitlines() if line.startswith("| The ")]
    assert short == ["Reproduced in part", "Reproduced"]


def test_missing_figures_alone_are_run(experiments: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("dissertation:tables-3", "--quick", "--into", str(tmp_path)) == 0
    capsys.readouterr()
    assert run("dissertation:tables-3", "stack_and_deal:1", "--quick", "--missing", "--into", str(tmp_path)) == 0
    shown = capsys.readouterr().out
    assert "### Figure 1" in shown and "### Tables 3.2" not in shown


@pytest.mark.parametrize(("name", "known"), [("nothing", "dissertation"), ("slicing:9", "fakes")])
def test_unknown_names_are_refused(name: str, known: str, experiments: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(name, "--quick")
    shown = capsys.readouterr().err
    assert f"there is no experiment '{name}'" in shown and known in shown


def test_without_the_public_tables_only_quick_runs(
    experiments: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CLOSEKNIT_DATA", str(tmp_path / "absent"))
    assert run("dissertation:tables-3", "--into", str(tmp_path)) == 2
    assert "The public tables are not here" in capsys.readouterr().err
    assert not (tmp_path / "experiments.md").exists()


# Every experiment ----------------------------------------------------------------------------------------------------------


STEPS = {"thesis": 9, "slicing": 3, "dissertation": 2}  # one figure in so many; all of them under soak
SOME = [(source, STEPS.get(source, 1)) for source in SOURCES]
ALL = [pytest.param(source, 1, marks=pytest.mark.soak) for source in STEPS]


@pytest.mark.parametrize(("source", "step"), [*SOME, *ALL])
def test_figures_are_drawn_and_judged(source: str, step: int, experiments: ModuleType, trial: object, tmp_path: Path) -> None:
    about = experiments.SOURCES[source]
    assert set(about.experiments) >= FIGURES.get(source, set()) and about.experiments
    for name in list(about.experiments)[::step]:
        figure = about.experiments[name](trial)
        assert figure.claims and figure.verdict in VERDICTS, name
        assert all(0 <= claim.holds <= 1 and claim.source and claim.here for claim in figure.claims), name
        picture = tmp_path / f"{name}.png"
        drawn = figure.draw(picture)
        assert drawn == picture.exists() and (drawn or figure.tables), name
        text = figure.text(picture if drawn else None)
        assert text.startswith(f"### {figure.title}\n") and f"**{figure.verdict}.**" in text, name
        assert "nan" not in text.lower().split(), name


# Findings that must hold -----------------------------------------------------------------------------------------------------


def test_dealing_is_closer_than_random_partitions_of_made_up_frequencies(experiments: ModuleType, trial: object) -> None:
    figure = experiments.SOURCES["dissertation"].experiments["3.1"](trial)
    for panel in figure.panels[:2]:  # groups A and B
        dealt, nearest = panel.lines["Stack & Deal"], panel.lines["random, least"]
        assert set(dealt) == set(nearest) and all(dealt[k] < nearest[k] for k in dealt), panel.title
    assert figure.claims[0].holds == 1


def test_printed_example_is_what_it_is(experiments: ModuleType, trial: object) -> None:
    figure = experiments.SOURCES["dissertation"].experiments["tables-3"](trial)
    assert [claim.holds for claim in figure.claims] == [True, False]
    (panel,) = figure.panels
    by_value, by_frequency = panel.lines.values()
    assert sorted(by_value.values()) == pytest.approx([1 / 225, 11 / 2250, 11 / 2250, 17 / 2250, 23 / 2250])
    assert list(by_frequency.values()) == pytest.approx([19 / 1125, 13 / 2250, 7 / 1125, 7 / 1125, 11 / 2250])


def test_all_six_values_stand_in_every_class_from_nine_rows_on(experiments: ModuleType, trial: object) -> None:
    figure = experiments.SOURCES["stack_and_deal"].experiments["1"](trial)
    (panel,) = figure.panels
    found, most = panel.lines["Stack & Deal"], panel.lines["the most that so many classes can have"]
    assert [found[k] for k in (7, 8, 9, 10)] == [5, 5, 6, 6] and figure.verdict == "Reproduced"
    assert all(found[k] <= most[k] for k in found)


def test_printed_sizes_that_no_partition_has(experiments: ModuleType, trial: object) -> None:
    figure = experiments.SOURCES["several_secrets"].experiments["arithmetic"](trial)
    assert "23 cells leave rows over" in figure.claims[0].here
    assert any("That concerns 23 cells" in part for part in figure.details)


def test_bucketization_admits_no_one_else(experiments: ModuleType, trial: object) -> None:
    figure = experiments.SOURCES["slicing"].experiments["fakes"](trial)
    assert figure.claims[-1].holds == 1
    (panel,) = figure.panels
    assert all(panel.lines["OCC-7, c = 5"][p] > panel.lines["OCC-7, c = 2"][p] for p in panel.lines["OCC-7, c = 2"])
    assert not panel.reported, "a stand-in is compared with nothing printed"
