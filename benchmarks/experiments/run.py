"""Run the sources' experiments again: `python benchmarks/experiments/run.py [source[:figure] ...] [--quick] [--missing]`.

    dissertation     t-closeness and Stack & Deal: figures 3.1, 3.2, 5.1, 6.1, tables 3.2 to 3.4
    stack_and_deal   the paper on it: figures 1 to 5
    several_secrets  multiple sensitive attributes: tables 6 to 8, figures 3 to 6
    slicing          section 5: membership, and what a release is worth
    thesis           SABRE, BUREL, CASTLE and windows: chapters 3 to 6

Each figure takes the place of its last version in docs/experiments.md, its picture in docs/pictures/experiments/, as soon as it
is done: `--missing` resumes a run that was stopped. `--quick` tries everything on small generated tables, in about a
minute, and keeps nothing unless `--into FOLDER` says where.
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the benchmarks: what both measure with stands there

import tables
from experiments.figures import PICTURES, Trial, wrap
from experiments.sources import SOURCES
from sections import Section, replace, sections_of

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE, SUMMARY = "experiments.md", "in_short"
HEAD = """# The sources' experiments

This page repeats what each [source](bibliography.md) measured, with the methods of this package and on the same public
tables. `python benchmarks/experiments/run.py` measures, draws the figures and computes the verdicts: to repeat one
figure, run the command below it.

A dashed line in a picture shows numbers that the source prints. Where a source only draws, its finding is quoted in
words. Each finding is confirmed, confirmed in part or not confirmed; a figure is reproduced if all of them are
confirmed. Other measurements, such as speed, are in `benchmarks/RESULTS.md`. The [glossary](glossary.md) defines the
terms.

Some sources measure a large t. A class may then hold a single value, so the guarantee
[excludes nothing](guarantees.md#guarantees-that-exclude-nothing) for these values. These releases are made with
`allow_vacuous=True`, and their certificates state the share of rows concerned.
"""


def main(arguments: list[str] | None = None) -> int:
    requested = _arguments(arguments)
    if not requested.quick and tables.data_folder() is None:
        print("The public tables are not here: set CLOSEKNIT_DATA to their folder, or try --quick.", file=sys.stderr)
        return 2
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        into = requested.into or (place if requested.quick else DOCS)
        done = set(sections_of(into / PAGE)) if requested.missing else set()
        for source, figure in requested.wanted:
            if f"{source}_{_key(figure)}" not in done:
                _run(source, figure, Trial(requested.quick, place), into)
    return 0


def _run(source: str, figure: str, trial: Trial, into: Path) -> None:
    """One figure, from its numbers to the page."""
    start = time.perf_counter()
    made = SOURCES[source].experiments[figure](trial)
    picture = PICTURES / f"{source}-{figure}.png"
    drawn = made.draw(into / picture)
    took = time.perf_counter() - start
    how = " --quick" if trial.quick else ""
    note = f"`python benchmarks/experiments/run.py {source}:{figure}{how}`, {datetime.date.today()}, {took:,.0f} s."
    text = f"{made.text(picture if drawn else None)}\n\n{note}"
    page, order = into / PAGE, _order()
    replace(page, source, f"## {SOURCES[source].title}\n\n{wrap(SOURCES[source].about)}", order, HEAD)
    replace(page, f"{source}_{_key(figure)}", text, order, HEAD)
    replace(page, SUMMARY, _summary(sections_of(page)), order, HEAD)
    print(text, end="\n\n", flush=True)


def _summary(found: dict[str, str]) -> str:
    """All figures of the page with their verdicts."""
    rows = []
    for name, source in SOURCES.items():
        for text in (found.get(f"{name}_{_key(figure)}") for figure in source.experiments):
            if text and (parts := re.match(r"### ([^\n]+)\n.*?\n\*\*([^*]+)\.\*\*", text, re.S)):
                rows.append([f"{source.title}. {parts[1]}", parts[2]])
    section = Section("In short")
    counted = Counter(verdict for *_, verdict in rows)
    section.say(f"{'; '.join(f'{verdict}: {count}' for verdict, count in counted.most_common())}.")
    section.table(["figure or table", "verdict"], rows)
    return section.text()


def _order() -> list[str]:
    figures = [key for name, source in SOURCES.items() for key in (name, *(f"{name}_{_key(f)}" for f in source.experiments))]
    return [SUMMARY, *figures]


def _key(figure: str) -> str:
    """A name in the page's comments."""
    return figure.replace(".", "_").replace("-", "_")


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="which sources, or which of their figures; all if none is named")
    parser.add_argument("--quick", action="store_true", help="small generated tables, about a minute for everything")
    parser.add_argument("--missing", action="store_true", help="only figures that the page has not got yet")
    parser.add_argument("--into", type=Path, help="the folder for the page and its pictures; docs/ unless --quick")
    requested = parser.parse_args(arguments)
    requested.wanted = []
    for name in requested.names or SOURCES:
        source, _, figure = name.partition(":")
        known = SOURCES[source].experiments if source in SOURCES else {}
        if source not in SOURCES or (figure and figure not in known):
            names = ", ".join(known if source in SOURCES else SOURCES)
            parser.error(f"there is no experiment '{name}'; known are: {names}")
        requested.wanted += [(source, one) for one in ([figure] if figure else known)]
    return requested


if __name__ == "__main__":
    sys.exit(main())
