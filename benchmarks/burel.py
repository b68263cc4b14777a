"""BUREL on SAL: what cutting, polish and slack are worth at each beta, with three and five quasi-identifiers, and for "
"ranges."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import closeknit as ck
import tables
from closeknit.core.method import Method, Progress
from closeknit.core.model import Model
from closeknit.core.table import Outcome, Table
from closeknit.methods.plan_search import choose_target, limits_of
from closeknit.plans import burel_plan
from sections import Section
from trials import Grid, Made, filled, part, warm

BETAS, BETA, WIDTHS = (1, 2, 3, 4, 5), 4, (2, 4, 6, 8)
QUASI = {"three": ("age", "sex", "education"), "five": ("age", "sex", "education", "marital-status", "work-class")}
DEALT, SLACK = "Stack & Deal, k=2", "+ cuts + slack"


@dataclass(frozen=True)
class Bare(Method):
    """BUREL as the thesis has it: one plan, filled. `Burel` also cuts classes further, whatever its options."""

    name = "bare"
    needs_bound = "growth"
    scale = "plan"

    fill: str = "hilbert"

    def run(self, table: Table, models: Sequence[Model], seed: int, progress: Progress) -> Outcome:
        model, column = choose_target(self, models, None)
        secret = table.one_class().histograms[column]
        growth = limits_of(model, secret).growth
        assert growth is not None
        plan = burel_plan(secret, secret.domain, growth.most)
        return filled(table, column, plan, self.fill, seed)


VARIANTS: dict[str, Method] = {
    "plan and fill": Bare(),
    "+ cuts": ck.Burel(polish=False, slack=False),
    "+ cuts + polish": ck.Burel(slack=False),
    SLACK: ck.Burel(polish=False),
    "default": ck.Burel(),
    DEALT: ck.StackAndDeal(),
}
FEWER = {("three", SLACK): (1, 4), ("five", SLACK): (1, 4), ("three", DEALT): (4,), ("five", DEALT): ()}  # they take long
PAIRS = (
    ("+ cuts", "plan and fill"),
    ("+ cuts + polish", "+ cuts"),
    (SLACK, "+ cuts"),
    ("default", "+ cuts + polish"),
    ("default", "plan and fill"),
    ("default", DEALT),
)


def run(section: Section, rows: int | None) -> None:
    """Every beta with both sets of quasi-identifiers, then ranges of salaries."""
    section.say(
        "Enhanced beta-likeness of salaries, no k but for Stack & Deal. Plan and fill: the thesis's BUREL with the hilbert "
        "fill. Cuts: classes are cut further where the actual rows keep the guarantee, which `Burel` always does. Default: "
        "cuts, polish and slack. Losses and beta are measured on the written cells; every guarantee is met. Seconds: one run "
        "from CSV file to certified release in memory."
    )
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        whole = tables.sal(place, rows)
        section.say(whole.remark)
        for many, quasi in QUASI.items():
            source = part(whole, place / "part.csv", quasi=quasi)
            section.say(f"With {many} quasi-identifiers: {', '.join(quasi)}.")
            _betas(section, source, place, many)
            _ranges(section, source)


def _list_models(method: Method, model: Model) -> list[Model]:
    return [ck.KAnonymity(2), model] if isinstance(method, ck.StackAndDeal) else [model]


def _betas(section: Section, source: tables.Source, place: Path, many: str) -> None:
    warm(VARIANTS, source, [ck.KAnonymity(2), ck.BetaLikeness(source.secret, BETA)], place)
    grid = Grid("beta")
    for variant, method in VARIANTS.items():
        for beta in FEWER.get((many, variant), BETAS):
            model = ck.BetaLikeness(source.secret, beta)
            grid.add(variant, beta, Made.by(method, source, _list_models(method, model)))
    grid.report(section)
    grid.compare(section, PAIRS)
    section.say(
        f"Plan and fill use up {grid.used('plan and fill'):.0%} of the beta that was requested, the default "
        f"{grid.used('default'):.0%}. {_slack(grid)}"
    )


def _slack(grid: Grid) -> str:
    """Whether trying more plans is worth its time once everything is polished and cut."""
    shares = grid.shares("default", "+ cuts + polish")
    worse = sum(share > 1 for share in shares)
    if not worse:
        return "Slack never raises the loss of what is polished and cut."
    return (
        f"Slack raises the loss at {worse} of {len(shares)} beta: plans are compared before they are polished and cut, and the "
        "one that leads then need not lead in the end."
    )


def _ranges(section: Section, source: tables.Source) -> None:
    """Range likeness: runs of neighbouring salaries are judged too, by merging what the plan did not foresee."""
    grid = Grid("eps")
    for variant in ("+ cuts", "default"):
        for eps in WIDTHS:
            model = ck.BetaLikeness(source.secret, BETA, kind="range", eps=eps)
            grid.add(variant, eps, Made.by(VARIANTS[variant], source, [model]))
    section.say(f"Range beta-likeness, beta = {BETA}: what the width eps of the ranges costs.")
    rows = [
        [variant, *(f"{made.loss:.4f} / {made.classes:,} / {made.seconds:.1f} s" for made in line.values())]
        for variant, line in grid.lines.items()
    ]
    section.table(["loss A / classes / time", *(f"eps = {eps}" for eps in WIDTHS)], rows)
