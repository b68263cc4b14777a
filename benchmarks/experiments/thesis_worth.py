"""What releases of SAL are worth in the thesis on SABRE and BUREL: COUNT queries and the datacube (figures 3.12, 3.13, 4.8)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import tables
from closeknit.core.columns import Columns
from closeknit.core.model import Model
from closeknit.io.files import read
from closeknit.metrics import Workload, kl_divergence, queries, workload_error
from experiments.figures import Claim, Experiment, Figure, Trial
from experiments.thesis_claims import Drawn, ahead, moves
from experiments.thesis_sal import (
    BETA,
    BETAS,
    BUREL,
    D_BOOK,
    D_MONDRIAN,
    DEFAULT,
    FIVE,
    INCOGNITO,
    KNN,
    KNN_CUTS,
    L_BOOK,
    L_MONDRIAN,
    QUASI,
    SABRE,
    SAMPLE,
    T_BOOK,
    T_MONDRIAN,
    TS,
    K,
    Sal,
    T,
    closely,
    likely,
    read_as,
    released,
    sal,
)
from pictures import Panel

LAMBDAS, LAMBDA, THETAS, THETA = (1, 2, 3, 4, 5), 3, (0.05, 0.1, 0.15, 0.2, 0.25), 0.1
QUERIES, FEW_QUERIES, LEVELS, LEVEL = 10_000, 200, (1, 2, 3, 4), 2
CLOSE, LIKE = (KNN, KNN_CUTS, SABRE, T_BOOK, T_MONDRIAN, INCOGNITO), (BUREL, DEFAULT, L_BOOK, L_MONDRIAN, D_BOOK, D_MONDRIAN)
ERROR, DIVERGENCE = "median relative error", "KL-divergence (logarithmic)"
ABOUT_A_TENTH = 0.15
Problem = tuple[tables.Source, tuple[Model, ...]]


def close_queries(trial: Trial) -> Figure:
    """Figure 3.12."""
    table, ask = sal(trial), Errors(trial)
    usual = table.part(SAMPLE), closely(table.secret, K, T)
    by_lambda = _over(CLOSE, trial.some(LAMBDAS, LAMBDAS[::4]), lambda name, x: ask(name, usual, int(x), THETA))
    by_theta = _over(CLOSE, trial.some(THETAS, THETAS[::4]), lambda name, x: ask(name, usual, LAMBDA, x))
    by_quasi = _over(CLOSE, trial.some(QUASI, QUASI[::4]), lambda name, n: ask(name, _fewer(table, n), LAMBDA, THETA))
    by_t = _over(
        CLOSE, trial.some(TS, TS[2::2]), lambda name, t: ask(name, (usual[0], closely(table.secret, K, t)), LAMBDA, THETA)
    )
    every = _together([by_lambda, by_quasi, by_t, by_theta])
    claims = [
        ahead(every, [(KNN, T_BOOK), (SABRE, T_MONDRIAN)], "SABRE's error is smaller than tMondrian's (one over the other)"),
        ahead(every, [(KNN, INCOGNITO), (SABRE, INCOGNITO)], "it is a tenth of tIncognito's", ABOUT_A_TENTH),
        *_directions((KNN, SABRE, T_MONDRIAN), by_lambda, by_quasi, by_t, by_theta),
    ]
    panels = _panels(("lambda", by_lambda), ("quasi-identifiers", by_quasi), ("t", by_t), ("theta", by_theta))
    settings = f"{_settings_close(table)} {_workload(trial)}"
    return Figure("COUNT queries to releases under t-closeness (figure 3.12)", settings, claims, panels)


def like_queries(trial: Trial) -> Figure:
    """Figure 4.8."""
    table, ask = sal(trial), Errors(trial)
    three, five = (table.part(quasi=FIVE[:n]) for n in (3, 5))

    def guaranteed(name: str, source: tables.Source, beta: float = BETA) -> Problem:
        return source, likely(name, source, beta)

    def fewer(name: str, n: float) -> float:
        return ask(name, guaranteed(name, table.part(quasi=FIVE[: int(n)])), min(LAMBDA, int(n)), THETA)

    by_lambda = _over(LIKE, trial.some(LAMBDAS, LAMBDAS[::4]), lambda name, x: ask(name, guaranteed(name, five), int(x), THETA))
    by_beta = _over(LIKE, trial.some(BETAS, BETAS[::4]), lambda name, b: ask(name, guaranteed(name, three, b), LAMBDA, THETA))
    by_quasi = _over(LIKE, trial.some((1, 2, 3, 4, 5), (1, 5)), fewer)
    by_theta = _over(LIKE, trial.some(THETAS, THETAS[::4]), lambda name, x: ask(name, guaranteed(name, three), LAMBDA, x))
    every = _together([by_lambda, by_beta, by_quasi, by_theta])
    claims = [
        ahead(
            every, [(BUREL, L_BOOK), (DEFAULT, L_MONDRIAN)], "BUREL's error is smaller than LMondrian's (one over the other)"
        ),
        ahead(every, [(BUREL, D_BOOK), (DEFAULT, D_MONDRIAN)], "it is smaller than DMondrian's"),
        _not_even(by_lambda, (BUREL, DEFAULT)),
        *_directions((BUREL, DEFAULT, L_MONDRIAN), None, by_quasi, by_beta, by_theta, "beta"),
    ]
    panels = _panels(
        ("lambda (five quasi-identifiers)", by_lambda), ("beta", by_beta), ("quasi-identifiers", by_quasi), ("theta", by_theta)
    )
    settings = (
        f"{table.whole.remark} Unless varied: all rows, quasi-identifiers {', '.join(FIVE[:3])}, beta = {BETA}. "
        f"{_workload(trial)} Where "
        "there are fewer quasi-identifiers than lambda, a query uses all of them. Names as for figure 4.5."
    )
    return Figure("COUNT queries to releases under beta-likeness (figure 4.8)", settings, claims, panels)


def divergence(trial: Trial) -> Figure:
    """Figure 3.13."""
    table = sal(trial)
    usual = table.part(SAMPLE), closely(table.secret, K, T)
    by_t = _over(CLOSE, trial.some(TS, TS[2::2]), lambda name, t: _apart(name, (usual[0], closely(table.secret, K, t)), LEVEL))
    by_level = _over(CLOSE, trial.some(LEVELS, LEVELS[:2]), lambda name, level: _apart(name, usual, int(level)))
    by_quasi = _over(CLOSE, trial.some(QUASI, QUASI[::4]), lambda name, n: _apart(name, _fewer(table, n), LEVEL))
    by_rows = _over(CLOSE, table.sizes, lambda name, n: _apart(name, (table.part(int(n)), usual[1]), LEVEL))
    every = _together([by_t, by_level, by_quasi, by_rows])
    printed, ours = [(KNN, T_BOOK), (KNN, INCOGNITO)], [(SABRE, T_MONDRIAN), (SABRE, INCOGNITO)]
    claims = [
        ahead(every, printed, "SABRE's divergence is clearly smaller than its rivals' (one over the other)"),
        ahead(every, ours, "the same, with the defaults"),
        moves(by_t, (KNN, SABRE, T_MONDRIAN), "it falls as t grows", grows=False),
        moves(by_level, (KNN, SABRE, T_MONDRIAN), "it grows with the level", grows=True),
        moves(by_quasi, (KNN, SABRE, T_MONDRIAN, INCOGNITO), "it grows with the number of columns", grows=True),
        ahead(_rise(by_quasi), [*printed, *ours], "SABRE's grows less than its rivals' (growth of one over that of the other)"),
        moves(by_rows, (KNN, SABRE, T_MONDRIAN), "it falls slightly as rows are added", grows=False),
    ]
    drawn = [("t", by_t), ("level of the lattice", by_level), ("quasi-identifiers", by_quasi), ("rows", by_rows)]
    panels = [Panel(x, DIVERGENCE, lines, log=True) for x, lines in drawn]
    settings = (
        f"{_settings_close(table)} Natural logarithm, summed over all group-bys of {LEVEL} quasi-identifiers and the salary, "
        "divided by the number of rows; rows are spread evenly over the values in their cells."
    )
    return Figure("The datacube of releases under t-closeness (figure 3.13)", settings, claims, panels)


def _rise(lines: Drawn) -> Drawn:
    """By how much each line grows from its first place to its last."""
    return {name: {0: line[max(line)] - line[min(line)]} for name, line in lines.items()}


# One measurement -----------------------------------------------------------------------------------------------------------


class Errors:
    """Median errors of releases: the same queries for all methods; nothing is asked twice, for panels share usual settings."""

    def __init__(self, trial: Trial) -> None:
        self.count = FEW_QUERIES if trial.quick else QUERIES
        self.workloads: dict[tuple[Path, int, float], Workload] = {}
        self.known: dict[tuple[str, tuple[Model, ...], tuple[Path, int, float]], float] = {}

    def __call__(self, name: str, requested: Problem, lambda_: int, theta: float) -> float:
        source, models = requested
        at = source.path, lambda_, theta
        if at not in self.workloads:
            self.workloads[at] = queries(source.path, source.schema, source.secret, lambda_, theta, self.count)
        if (name, models, at) not in self.known:
            reading = read_as(source, name, released(name, source, models)[0])
            found = workload_error(reading, _rows(source), self.workloads[at])
            self.known[name, models, at] = float("nan") if found.median is None else found.median
        return self.known[name, models, at]


def _apart(name: str, requested: Problem, level: int) -> float:
    source, models = requested
    reading = read_as(source, name, released(name, source, models)[0])
    return kl_divergence(reading, _rows(source), source.schema, level).kl


def _rows(source: tables.Source) -> Columns:
    return _read(source.path)


@lru_cache(maxsize=4)
def _read(path: Path) -> Columns:
    return read(path)


# What the figures share ----------------------------------------------------------------------------------------------------


def _over(
    names: Iterable[str], places: Sequence[float], measure: Callable[[str, float], float]
) -> dict[str, dict[float, float]]:
    return {name: {x: measure(name, x) for x in places} for name in names}


def _fewer(table: Sal, quasi: float) -> Problem:
    return table.part(SAMPLE, table.names[: int(quasi)]), closely(table.secret, K, T)


def _together(lines: Sequence[Drawn]) -> Drawn:
    """All panels as one, each place of its own."""
    shift = 1e9  # farther than any axis is long
    return {name: {i * shift + x: y for i, one in enumerate(lines) for x, y in one[name].items()} for name in lines[0]}


def _directions(
    names: Sequence[str], by_lambda: Drawn | None, by_quasi: Drawn, by_limit: Drawn, by_theta: Drawn, limit: str = "t"
) -> list[Claim]:
    claims = [] if by_lambda is None else [moves(by_lambda, names, "the error grows with lambda", grows=True)]
    return [
        *claims,
        moves(by_quasi, names, "it grows with the number of columns", grows=True),
        moves(by_limit, names, f"it falls as {limit} grows", grows=False),
        moves(by_theta, names, "it falls as theta grows", grows=False),
    ]


def _not_even(by_lambda: Drawn, names: Sequence[str]) -> Claim:
    """Whether the error rises somewhere and falls somewhere."""
    holds = all(not moves(by_lambda, [name], "", grows, slack=0).holds for name in names for grows in (True, False))
    return Claim("the error does not depend on lambda in one direction", holds, moves(by_lambda, names, "", True).here)


def _panels(*drawn: tuple[str, Mapping[str, Mapping[float, float]]]) -> list[Panel]:
    return [Panel(x, f"{ERROR} (logarithmic)", lines, log=True) for x, lines in drawn]


def _workload(trial: Trial) -> str:
    count = FEW_QUERIES if trial.quick else QUERIES
    return (
        f"{count:,} queries to lambda = {LAMBDA} columns and the salary, theta = {THETA}; those without an answer are left out."
    )


def _settings_close(table: Sal) -> str:
    one = table.part(SAMPLE)
    said = f"{one.rows:,} rows, {len(table.names)} quasi-identifiers, k = {K}, t = {T}"
    return f"{one.remark} Unless varied: {said}. Names as for figure 3.7."


EXPERIMENTS: dict[str, Experiment] = {"3.12": close_queries, "3.13": divergence, "4.8": like_queries}
