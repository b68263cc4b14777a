"""Every attack of an adversary who knows the algorithm, on every method and several tables.

An attack is one line of `ATTACKS`: a function of a `Case` that returns a cell of the table. The tables are the first rows, in a
fixed random order, of public tables where these are at hand, and a generated one.

`python benchmarks/known_algorithm.py knit soft_stop` prints single methods without writing them anywhere.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

import closeknit as ck
import tables
from closeknit.api.repeating import build_repeat
from closeknit.api.request_checks import read_table
from closeknit.attacks.exchange import Repeat, measure_gain
from closeknit.core.columns import Columns
from closeknit.core.comparison import AlgorithmGain
from closeknit.core.method import Method
from closeknit.core.model import Model
from closeknit.methods import REGISTRY
from sections import Section

ROWS, RUNS, QUICK = 150, 120, 30
SEED = 2**127  # long, so that nothing is said about it


@dataclass(frozen=True)
class Case:
    """A table with guarantees, and a method that meets them."""

    name: str
    table: Columns
    schema: ck.Schema
    models: Sequence[Model]
    method: Method
    runs: int

    @cached_property
    def release(self) -> ck.Release:
        """The release under attack; SoftStop's runs here are not attested."""
        return ck.anonymize(self.table, self.schema, self.models, self.method, seed=SEED)

    @cached_property
    def repeat(self) -> Repeat:
        """The method as the adversary runs it again."""
        return build_repeat(self.schema, self.models, self.method, seed=SEED)

    @cached_property
    def gain(self) -> AlgorithmGain | None:
        """What exchanges of two members disclose."""
        return measure_gain(self.table, self.schema, self.repeat, runs=self.runs)


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


ATTACKS: dict[str, Callable[[Case], str]] = {
    "loss": loss,
    "exchange, seed known": exchange_with_seed,
    "exchange, seed unknown": exchange_without_seed,
    "open pairs": open_pairs,
}


def run(section: Section, rows: int | None) -> None:
    """Every method on every table; in a quick run fewer runs of each method."""
    report(section, list(REGISTRY), RUNS if rows is None else QUICK)


def report(section: Section, names: Sequence[str], runs: int) -> None:
    """The named methods on every table."""
    lines, refused = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # given seeds are not attested
        for name, table, schema, models in list_tables():
            for method in names:
                case = Case(name, table, schema, models, REGISTRY[method](), runs)
                try:
                    lines.append([f"{name}, {_texts(models)}", method, *(attack(case) for attack in ATTACKS.values())])
                except ck.CloseknitError:
                    refused.append(f"{method} ({name})")
    section.say(
        f"Tables of {ROWS} rows, drawn from public ones where these are at hand. The adversary knows the method, all "
        "quasi-identifiers, the classes, and every sensitive value but who of two members of a class has which: the class "
        f"alone gives 50 %, a gain of 0.5 is certainty. {runs} runs of each method; intervals are 95 % for the mean over all "
        "pairs (Clopper and Pearson; by betting without the seed), not for the worst pair."
    )
    section.table(["table", "method", *ATTACKS], lines)
    section.say(f"Not served by these methods, or not met: {', '.join(refused)}." if refused else None)


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
