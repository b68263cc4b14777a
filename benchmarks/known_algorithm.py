"""Every attack of an adversary who knows the algorithm, on every method and several tables.

An attack is one line of `ON_VALUES` or `ON_CELLS`: a function of a `Case` that returns a cell of a table. The tables are some
rows of public tables where these are at hand, and a generated one. A whole run replaces both tables in docs/attacks.md too.

`python benchmarks/known_algorithm.py knit soft_stop` prints single methods without writing them anywhere.
"""

from __future__ import annotations

import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import closeknit as ck
import tables
from closeknit.api.repeating import build_repeat
from closeknit.api.request_checks import read_table
from closeknit.attacks.exchange import Repeat, measure_gain
from closeknit.attacks.finding import Finding
from closeknit.core.columns import Columns
from closeknit.core.comparison import AlgorithmGain
from closeknit.core.errors import CloseknitError
from closeknit.core.kinds import Numeric
from closeknit.core.method import Method
from closeknit.core.model import Model
from closeknit.methods import REGISTRY
from sections import Section

ROWS, RUNS, QUICK = 150, 120, 30
SOLVES, STEP = 60, 5
SEED = 2**127  # long, so that nothing is said about it
DOCS = Path(__file__).resolve().parents[1] / "docs" / "attacks.md"


@dataclass(frozen=True)
class Case:
    """A table with guarantees, and a method that meets them."""

    name: str
    table: Columns
    schema: ck.Schema
    models: Sequence[Model]
    method: Method
    runs: int

    written: str = "tight"

    @property
    def form(self) -> ck.generalized | None:
        """How ranges are written; None: the usual form."""
        return ck.generalized(snap=True) if self.written == "snapped" else None

    @cached_property
    def ways(self) -> Mapping[str, Case]:
        """The same case with ranges that are tight, snapped when written, and of values coarsened before the method."""
        return {"tight": self, "snapped": self._write("snapped"), "coarsened": self._write("coarsened", coarsen=True)}

    def _write(self, written: str, **options: Any) -> Case:
        quasi = {
            name: replace(kind, step=STEP, **options) if isinstance(kind, Numeric) else kind
            for name, kind in self.schema.quasi.items()
        }
        return replace(self, schema=self.schema.model_copy(update={"quasi": quasi}), written=written)

    @cached_property
    def release(self) -> ck.Release:
        """The release under attack; SoftStop's runs here are not attested."""
        return ck.anonymize(self.table, self.schema, self.models, self.method, form=self.form, seed=SEED)

    @cached_property
    def repeat(self) -> Repeat:
        """The method as the adversary runs it again."""
        return build_repeat(self.schema, self.models, self.method, seed=SEED, form=self.form)

    @cached_property
    def gain(self) -> AlgorithmGain | None:
        """What exchanges of two members disclose."""
        return measure_gain(self.table, self.schema, self.repeat, runs=self.runs)

    @cached_property
    def findings(self) -> Mapping[str, Finding]:
        """The worst finding of each attack that compares with the original, by its name; those on cells, if not tight."""
        known: dict[str, Any] = {"rerun": self._rerun, "made_by": (self.method, self.models)} if self.written == "tight" else {}
        try:
            class_of = self.release.partition
        except CloseknitError:  # coarsened values may not meet the guarantees
            return {}
        given = {"runs": self.runs // 2, "solves": SOLVES, "class_of": class_of, **known}
        found = ck.attacks.with_original(self.release, self.table, self.schema, **given)
        return {each.attack: each for each in reversed(found)}

    def _rerun(self, table: Columns) -> Columns | None:
        found = self.repeat(table, 0)
        return None if found is None else found.columns


def loss(case: Case) -> str:
    """Loss A of the release."""
    return f"{case.release.loss:.3f}"


def exchange_with_seed(case: Case) -> str:
    """Exchanges of two members that the release excludes, with the seed: the adversary's gain over 50 %."""
    found = case.gain
    return "-" if found is None else f"{found.seed_known:.2f} ({found.seed_known_low:.2f}-{found.seed_known_high:.2f})"


def exchange_without_seed(case: Case) -> str:
    """The same gain without the seed; the interval counts pairs whose class did not come again as 0 and as 1/2."""
    found = case.gain
    if found is None:
        return "-"
    return f"{'open' if found.gain is None else f'{found.gain:.2f}'} ({found.low:.2f}-{found.high:.2f})"


def open_pairs(case: Case) -> str:
    """Pairs whose class did not come again with other seeds, of those drawn for the gain without the seed."""
    return "-" if case.gain is None else f"{case.gain.open} of {case.gain.pairs}"


def minimality(case: Case) -> str:
    """The largest posterior of the classes that were tried, and that of the class alone."""
    return _compare(case.findings.get("minimality"), "naive")


def ruled_out(case: Case) -> str:
    """Values of a member that the class allows and refinement rules out, of all of them."""
    found = case.findings.get("refinement")
    share = None if found is None else found.details.get("excluded_share")
    return "-" if share is None else f"{100 * float(share):.1f}%"


def guessed(case: Case) -> str:
    """Members whose value is guessed by refinement, and by the class alone, of those in classes that were tried."""
    found = case.findings.get("refinement")
    if found is None or found.number is None:
        return "-"
    return f"{found.details['guessed_share']:.2f} ({found.details['guessed_by_class_share']:.2f})"


def downcode(written: str) -> Callable[[Case], str]:
    """Generalized cells that are recovered exactly, and those that a guess gets right."""
    return lambda case: _compare(case.ways[written].findings.get("downcoding"), "baseline")


def single_out(written: str) -> Callable[[Case], str]:
    """Descriptions by range ends that fit one row, and those that would by chance."""
    return lambda case: _compare(case.ways[written].findings.get("singling_out"), "baseline")


def _compare(found: Finding | None, other: str) -> str:
    """A number, and what it is compared with."""
    if found is None or found.number is None:
        return "-" if found is None else "none"
    return f"{found.number:.2f} ({found.details[other]:.2f})"


ON_VALUES: dict[str, Callable[[Case], str]] = {
    "loss": loss,
    "minimality (class)": minimality,
    "exchange, seed known": exchange_with_seed,
    "exchange, seed unknown": exchange_without_seed,
    "open pairs": open_pairs,
    "refinement: ruled out": ruled_out,
    "guessed (class)": guessed,
}
ON_CELLS: dict[str, Callable[[Case], str]] = {
    f"{attack}, {written}": measure(written)
    for attack, measure in (("downcoding", downcode), ("singling out", single_out))
    for written in ("tight", "snapped", "coarsened")
}


def run(section: Section, rows: int | None) -> None:
    """Every method on every table; in a quick run fewer runs of each method."""
    report(section, list(REGISTRY), RUNS if rows is None else QUICK)
    if rows is None:
        replace_in_docs(DOCS, section.parts, "known_algorithm")


def replace_in_docs(page: Path, parts: Sequence[str], name: str) -> None:
    """Put the tables of the section in the place of their last version in a page."""
    text, old = "\n\n".join(part for part in parts if part.startswith("|")), page.read_text(encoding="utf-8")
    new = re.sub(rf"(<!-- {name} -->\n).*?(<!-- end -->)", lambda found: f"{found[1]}{text}\n{found[2]}", old, flags=re.S)
    page.write_text(new, encoding="utf-8")


def report(section: Section, names: Sequence[str], runs: int) -> None:
    """The named methods on every table."""
    values, cells, refused = [], [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # given seeds are not attested
        for name, table, schema, models in list_tables():
            for method in names:
                case, place = Case(name, table, schema, models, REGISTRY[method](), runs), f"{name}, {_texts(models)}"
                try:
                    case.release  # noqa: B018
                except CloseknitError:
                    refused.append(f"{method} ({name})")
                    continue
                values.append([place, f"`{method}`", *(attack(case) for attack in ON_VALUES.values())])
                if "downcoding" in case.findings:
                    cells.append([place, f"`{method}`", *(attack(case) for attack in ON_CELLS.values())])
    section.say(
        f"Tables of {ROWS} rows, drawn from public ones where these are at hand; {runs} runs of each method for exchange "
        f"and half as many for minimality, {SOLVES} programs for refinement."
    )
    section.say("Sensitive values")
    section.table(["table", "method", *ON_VALUES], values)
    section.say("Cells")
    section.table(["table", "method", *ON_CELLS], cells)
    section.say(f"Methods that do not support or do not meet the guarantees: {', '.join(refused)}." if refused else None)


def list_tables() -> Iterator[tuple[str, Columns, ck.Schema, Sequence[Model]]]:
    """Adult and SAL, or tables that stand for them, and hospital patients."""
    with tempfile.TemporaryDirectory() as folder:
        adult, sal = tables.adult(Path(folder)), tables.sal(Path(folder))
        for name, source, limit in (("Adult", adult, "0.35"), ("SAL", sal, "0.25")):
            columns = draw_rows(read_table(source.path, None, source.schema)[0])
            yield name, columns, source.schema, [ck.KAnonymity(5), ck.TCloseness(source.secret, limit)]
        yield "Adult", *_likeness(adult)
    patients = ck.datasets.hospital(ROWS)
    quasi = {"age": ck.numeric(0, 100), "sex": ck.flat(), "zip": ck.prefix(5)}
    unused = ["job", "admission", "ward", "stay", "charge"]
    schema = ck.Schema(identifier=["name"], quasi=quasi, sensitive={"disease": ck.flat()}, drop=unused)
    yield "patients", patients, schema, [ck.KAnonymity(5), ck.LDiversity("disease", 3)]


def _likeness(adult: tables.Source) -> tuple[Columns, ck.Schema, Sequence[Model]]:
    columns = draw_rows(read_table(adult.path, None, adult.schema)[0])
    return columns, adult.schema, [ck.BetaLikeness(adult.secret, 4)]


def draw_rows(columns: Columns) -> Columns:
    """Some rows of a table, always the same."""
    return columns.take(np.random.default_rng(2026).choice(columns.rows, ROWS, replace=False))


def _texts(models: Sequence[Model]) -> str:
    parts = [f"{model.parameter.name} = {getattr(model, model.parameter.name)}" for model in models if model.parameter]
    return ", ".join(parts)


def main(names: Sequence[str]) -> None:
    """Print single methods, without writing them anywhere."""
    section = Section("The algorithm is known")
    report(section, names or list(REGISTRY), RUNS)
    print(section.text())


if __name__ == "__main__":
    main(sys.argv[1:])
