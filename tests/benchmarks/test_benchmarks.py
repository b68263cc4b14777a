"""The benchmarks run on small generated tables, and a second run takes the place of the first on their page."""

from __future__ import annotations

import ast
import importlib
import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import closeknit as ck
from bench_runs import ROOT, bench
from closeknit.core.columns import Columns


def test_page_has_every_section_once(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for names in (["rivals"], ["measures", "rivals"]):
        done = bench(page, *names)
        assert done.returncode == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    titles = [line for line in text.splitlines() if line.startswith("## ")]
    assert [title.split(":")[0].split()[1] for title in titles] == ["Measuring", "Other"]
    assert text.count("is generated (300 rows") == 1, "a stand-in is never silent"
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    apart = {line[0]: float(line[3]) for line in lines if len(line) == 9 and line[1] == "300"}
    assert len(apart) == 5 and apart["Anatomy, bucketized"] < apart["Stack & Deal, literal"], "exact cells disclose more"
    assert [line[0] for line in lines if len(line) == 5][2:] == ["1", "2", "3"], "levels of the lattice"
    assert "Not measured: the rivals' environment is absent" in text
    assert str(tmp_path) not in text, "a page names no place"


def test_benchmarks_use_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of them run under soak only, so a name that has moved would not be seen."""
    folder = ROOT / "benchmarks"
    monkeypatch.syspath_prepend(str(folder))
    missing = []
    for path in folder.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = [each.asname or each.name for node in tree.body if isinstance(node, ast.Import) for each in node.names]
        siblings = {name: importlib.import_module(name) for name in imported if (folder / f"{name}.py").is_file()}
        used = {(node.value.id, node.attr) for node in ast.walk(tree) if is_of_a_name(node)}
        missing += [
            f"{path.name}: {name}.{attr}" for name, attr in used if name in siblings and not hasattr(siblings[name], attr)
        ]
    for step in importlib.import_module("steps").STEPS:
        for place in (step.function, step.caller):
            file, function = place.split(":")
            nodes = ast.walk(ast.parse((ROOT / "src" / "closeknit" / file).read_text(encoding="utf-8")))
            if function not in {node.name for node in nodes if isinstance(node, ast.FunctionDef)}:
                missing.append(f"steps.py: {place}")
    assert missing == []


def is_of_a_name(node: ast.AST) -> bool:
    """Whether a node is `name.attribute`."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)


def test_attacks_that_know_the_algorithm_replace_the_tables_of_the_docs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    known, sections = (importlib.import_module(name) for name in ("known_algorithm", "sections"))
    quasi = {"age": ck.numeric(0, 100), "sex": ck.flat()}
    schema = ck.Schema(quasi=quasi, sensitive={"disease": ck.flat()})
    hospital = ck.datasets.hospital(40)
    table = Columns({name: hospital[name] for name in schema.used}, 40)
    models = [ck.KAnonymity(3), ck.LDiversity("disease", 2)]
    page = tmp_path / "attacks.md"
    page.write_text("before\n<!-- known_algorithm -->\n| old |\n<!-- end -->\nafter\n", encoding="utf-8")
    methods = {"mondrian": ck.Mondrian, "anatomy": ck.Anatomy}
    for name, value in {"list_tables": lambda: iter([("patients", table, schema, models)]), "DOCS": page, "RUNS": 20}.items():
        monkeypatch.setattr(known, name, value)
    monkeypatch.setattr(known, "REGISTRY", methods)
    section = sections.Section("The algorithm is known")
    known.run(section, None)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n<!-- known_algorithm -->\n| table") and text.endswith("|\n<!-- end -->\nafter\n")
    assert "old" not in text and text.count("`mondrian`") == 2 and "anatomy (patients)" in section.text()
    for attack in ("minimality", "exchange, seed known", "exchange, seed unknown", "refinement", "downcoding", "singling out"):
        assert attack in text
    cells = [cell.strip() for cell in text.splitlines()[-3].split("|")[3:9]]  # downcoding, then singling out
    shares = [float(cell.split()[0]) for cell in cells]
    assert shares[0] > shares[1] == shares[2] == 0, "snapped and coarsened ages are not recovered"


@pytest.mark.soak
def test_tables_of_loss_are_made(tmp_path: Path) -> None:
    done = bench(tmp_path / "page.md", "burel", "sal", "adult")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert [line.split(":")[0].split()[1] for line in text.splitlines() if line.startswith("## ")] == ["SAL", "Adult", "BUREL"]
    assert text.count("is generated (300 rows") == 3, "a stand-in is never silent"


@pytest.mark.soak
def test_service_is_measured(tmp_path: Path) -> None:
    done = bench(tmp_path / "page.md", "web")
    assert done.returncode == 0, done.stderr
    lines = [line.split("|") for line in (tmp_path / "page.md").read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    assert [line[1].strip() for line in lines[2:]] == ["Adult", "SAL"] and all(int(line[6]) > 3 for line in lines[2:])


@pytest.mark.soak
def test_no_variant_of_sabre_exceeds_what_was_asked(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    done = bench(page, "sabre")
    assert done.returncode == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    tables = text.split("| t measured")[1:]
    assert len(tables) == 2, "SAL and Adult"
    for table in tables:
        head, _, *lines = table.split("\n\n")[0].splitlines()
        requested = [float(cell.split("=")[1]) for cell in head.split("|")[1:-1]]
        cells = [(cell, t) for line in lines for cell, t in zip(line.split("|")[2:-1], requested, strict=True) if cell.strip()]
        assert len(cells) > len(requested)
        assert all(float(cell) <= t for cell, t in cells)


@pytest.mark.soak
def test_speed_is_compared_with_the_floor(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    done = bench(page, "speed")
    assert done.returncode == 0, done.stderr
    lines = page.read_text(encoding="utf-8").splitlines()
    for name in ("floor", "SABRE, t=0.35, plain", "BUREL, beta=4, plain", "SABRE, t=0.35 ", "BUREL, beta=4 ", "knn, 300 rows"):
        assert sum(line.startswith(f"| {name}") for line in lines) == 1, name


def test_growth_is_measured_in_a_process_of_its_own() -> None:
    question = {"method": "burel", "options": "plain", "rows": 2_000}
    script = ROOT / "benchmarks" / "growth.py"
    done = subprocess.run(
        [sys.executable, str(script)], input=json.dumps(question), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["seconds"] > 0 and answer["peak"] >= answer["start"] > 0
    assert 0 < answer["loss"] <= 1 and answer["classes"] > 1


@pytest.mark.soak
def test_several_secrets_are_measured(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    done = bench(page, "several", "several_large")
    assert done.returncode == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    assert text.count("is generated (300 rows") == 2, "a stand-in is never silent"
    assert sum(line.startswith("| PcaDraw, one-hot") for line in text.splitlines()) == 10, "five figures over t, five over k"
    for name in ("Fragmentation", "PcaDraw"):
        assert f"| {name} " in text, name


@pytest.mark.soak
def test_mondrian_and_incognito_are_compared_with_the_planned_methods(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    done = bench(page, "mondrian", "incognito")
    assert done.returncode == 0, done.stderr
    lines = page.read_text(encoding="utf-8").splitlines()
    assert sum("is generated (300 rows" in line for line in lines) == 4, "a stand-in is never silent"
    assert not any(line.startswith("| aim") or "0.645" in line for line in lines), "known figures are those of other rows"
    for name, count in (("Mondrian strict, median, widest", 1), ("Stack & Deal", 1), ("floor", 3), ("Incognito, k=6 ", 4)):
        assert sum(line.startswith(f"| {name}") for line in lines) == count, name
    generated = [line.split("|")[2].strip() for line in lines if line.startswith("| default, k=6")]
    assert generated == ["300", "300"], "with k, with k and t"


@pytest.mark.soak
def test_buckets_are_measured(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    done = bench(page, "slicing")
    assert done.returncode == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("|")]
    for name in ("strict cuts", "spread buckets of 100", "Anatomy", "Slicing, relaxed cuts", "relaxed "):
        assert sum(line.startswith(f"| {name}") for line in lines) >= 1, name
    assert text.count("is generated (300 rows") == 2, "a stand-in is never silent"


@pytest.mark.soak
def test_knit_is_compared_with_every_other_method(tmp_path: Path) -> None:
    done = bench(tmp_path / "page.md", "knit_drawn")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "Only generated tables" in text, "a stand-in is never silent"
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line[:1] == "|"]
    assert len(lines) == 2 + 4 * 4, "four guarantees for each number of columns"
    assert all(float(line[6]) <= 1 <= float(line[8]) for line in lines[2:]), "between the bound and the best other method"


def test_drawn_lines_are_between_the_bound_and_the_best_other_method(benchmark: Callable[[str], Any]) -> None:
    drawn = benchmark("knit_drawn")
    for line in itertools.islice(drawn.list_lines(200, None), 4):
        release = drawn.Made.by(ck.Knit(), line).release
        others = drawn.measure_others(line)
        assert {"mondrian", "microaggregation", "microaggregation, refine = True", "soft_stop"} <= set(others)
        assert ("sabre, fill = knn" in others, "burel, fill = knn" in others) == ("t =" in line.name, "beta" in line.name)
        bound = ck.bound_loss(line.frame, line.schema, line.models, seconds=1).loss
        assert bound <= release.loss <= min(others.values()), line.name


@pytest.mark.usefixtures("data_folder")
def test_public_lines_are_drawn_with_every_guarantee(data_folder: Path, benchmark: Callable[[str], Any]) -> None:
    drawn = benchmark("knit_drawn")
    names = [line.name for line in drawn.list_lines(300, data_folder)]
    assert len(set(names)) == len(names) == 4 * 4 + 2 * len(drawn.GUARANTEES)
    for guarantee in ("beta = 1,", "beta = 1.5,", "beta = 2,", "beta = 4,", "delta", "frequency l", "entropy l", " and "):
        assert sum(guarantee in f"{name}," for name in names) >= 2, guarantee


def test_streams_are_measured_in_processes_of_their_own() -> None:
    for stream in ("KnitStream, push", "SabreWindow, push_many", "memory"):
        question = {"stream": stream, "rows": 3_000}
        command = [sys.executable, str(ROOT / "benchmarks" / "stream_speed.py")]
        done = subprocess.run(command, input=json.dumps(question), capture_output=True, text=True, check=True)
        answer = json.loads(done.stdout)
        assert answer["peak" if stream == "memory" else "speed"] > 0


@pytest.mark.soak
def test_streams_are_compared_at_each_delay(tmp_path: Path) -> None:
    done = bench(tmp_path / "page.md", "stream_delay")
    assert done.returncode == 0, done.stderr
    lines = [line.split("|") for line in (tmp_path / "page.md").read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    named = [line[2].strip() for line in lines if line[1].strip() == "100"]
    assert named.count("KnitStream") == named.count("Castle") == 2, "for each k"


def test_unknown_name_is_refused(tmp_path: Path) -> None:
    done = bench(tmp_path / "page.md", "nothing")
    assert done.returncode == 2
    assert "there is no benchmark 'nothing'" in done.stderr
    assert not (tmp_path / "page.md").exists()
