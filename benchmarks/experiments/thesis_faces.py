"""BUREL face to face with t-closeness (the thesis on SABRE and BUREL, figure 4.4): which beta each method's release reaches."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import closeknit as ck
import tables
from closeknit.api.level_search import MatchResult, match_level
from closeknit.core.method import Method
from closeknit.core.model import Model
from experiments.figures import Claim, Experiment, Figure, Trial
from experiments.thesis_claims import Drawn, ahead
from experiments.thesis_sal import BETAS, FIVE, Curves, level, sal
from pictures import Panel
from trials import timed

BUREL, SABRE, MONDRIAN = "BUREL", "SABRE", "tMondrian"
METHODS: dict[str, Method] = {
    BUREL: ck.Burel(polish=False, slack=False),
    SABRE: ck.Sabre(polish=False, slack=False),
    MONDRIAN: ck.Mondrian(),
}
TS, LOSSES = (0.05, 0.1, 0.15, 0.2, 0.25), (0.15, 0.2, 0.25, 0.3, 0.35)
BETA_RANGE, T_RANGE = (0.1, 100.0), (0.01, 1.0)
RUNS, TOLERANCE, QUICK_RUNS, QUICK_LOSSES = 10, 0.01, 4, (0.5, 0.8)
REACHED = "measured beta (logarithmic)"


class Faces:
    """Releases of one table, by method and limit, and what they come to."""

    def __init__(self, source: tables.Source, runs: int) -> None:
        self.source, self.runs = source, runs
        self.apart: list[float] = []  # by how much what was matched misses its target, as a share of it

    def release(self, name: str, limit: float) -> ck.Release:
        """One release: BUREL is asked for beta, the others for t."""
        secret = self.source.secret
        model: Model = ck.BetaLikeness(secret, limit) if name == BUREL else ck.TCloseness(secret, limit)
        return timed(METHODS[name], self.source, [model])[0]

    def beta(self, release: ck.Release) -> float:
        """The largest relative gain of a salary, without any cap."""
        return level(release, ck.BetaLikeness(self.source.secret, 1, kind="basic"))

    def t(self, release: ck.Release) -> float:
        return level(release, ck.TCloseness(self.source.secret, 1))

    def same(
        self, name: str, measure: Callable[[ck.Release], float], target: float, side: str, rises: bool
    ) -> ck.Release | None:
        """The method's release that comes nearest to a target, from one side."""
        strict, loose = BETA_RANGE if name == BUREL else T_RANGE
        run = partial(self.release, name)
        found: MatchResult[ck.Release] | None = match_level(
            run, measure, target, strict, loose, side=side, rises=rises, runs=self.runs, tolerance=TOLERANCE
        )
        if found is None:
            return None
        self.apart.append(abs(found.level / target - 1))
        return found.result


def face_to_face(trial: Trial) -> Figure:
    """Figure 4.4."""
    table = sal(trial)
    faces = Faces(table.part(quasi=FIVE[:3]), QUICK_RUNS if trial.quick else RUNS)
    by_beta = _by_beta(faces, trial.some(BETAS, BETAS[::4]))
    by_t = _by_t(faces, trial.some(TS, TS[1:4:2]))
    by_loss = _by_loss(faces, trial.some(LOSSES, QUICK_LOSSES))
    claims = [
        _higher(by_beta, "with the t measured for BUREL at a given beta, SABRE and tMondrian have a larger beta"),
        _higher(by_t, "with the same given t, they do"),
        _higher(by_loss, "with the same given loss, they do"),
        ahead(by_loss, [(SABRE, MONDRIAN)], "there SABRE comes second (beta of one over that of the other)"),
    ]
    panels = [
        Panel("beta requested of BUREL", REACHED, by_beta, log=True, title="(a) the same t, by beta"),
        Panel("t", REACHED, by_t, log=True, title="(b) the same t"),
        Panel("loss A", REACHED, by_loss, log=True, title="(c) the same loss"),
    ]
    requested = len(trial.some(TS, QUICK_LOSSES))
    lost = (
        ", not found where a point is missing"
        if any(len(line) < requested for line in (*by_t.values(), *by_loss.values()))
        else ""
    )
    settings = (
        f"{table.whole.remark} Quasi-identifiers {', '.join(FIVE[:3])}, no k. BUREL and SABRE with plan, fill and cuts, "
        "without polish and "
        f"slack, which search long for less loss; a search has at most {faces.runs} runs. Beta is the largest (q - p) / p of a "
        "salary, without the cap of enhanced likeness. In (b) BUREL's t is at most the given one, in (c) its loss is at most "
        "the given one and that of the others at least; what is searched for is missed by "
        f"{statistics.median(faces.apart or [0]):.1%} in the middle, by {max(faces.apart, default=0):.1%} at most{lost}."
    )
    return Figure("BUREL face to face with t-closeness (figure 4.4)", settings, claims, panels, columns=3)


def _by_beta(faces: Faces, betas: Sequence[float]) -> Curves:
    lines: Curves = {name: {} for name in METHODS}
    for beta in betas:
        ours = faces.release(BUREL, beta)
        lines[BUREL][beta] = faces.beta(ours)
        for name in (SABRE, MONDRIAN):
            lines[name][beta] = faces.beta(faces.release(name, faces.t(ours)))
    return lines


def _by_t(faces: Faces, ts: Sequence[float]) -> Curves:
    lines: Curves = {name: {t: faces.beta(faces.release(name, t)) for t in ts} for name in (SABRE, MONDRIAN)}
    found = {t: faces.same(BUREL, faces.t, t, "below", rises=True) for t in ts}
    return {BUREL: _betas(faces, found), **lines}


def _by_loss(faces: Faces, losses: Sequence[float]) -> Curves:
    def loss(release: ck.Release) -> float:
        return release.loss

    sides = {BUREL: "below", SABRE: "above", MONDRIAN: "above"}
    return {
        name: _betas(faces, {target: faces.same(name, loss, target, side, rises=False) for target in losses})
        for name, side in sides.items()
    }


def _betas(faces: Faces, found: Mapping[float, ck.Release | None]) -> dict[float, float]:
    return {x: faces.beta(release) for x, release in found.items() if release is not None}


def _higher(lines: Drawn, claim: str) -> Claim:
    places = [x for x, beta in lines[BUREL].items() if beta > 0 and x in lines[SABRE] and x in lines[MONDRIAN]]
    times = {name: [lines[name][x] / lines[BUREL][x] for x in places] for name in (SABRE, MONDRIAN)}
    said = "; ".join(f"{name} {min(found):.1f} to {max(found):.1f} times BUREL's" for name, found in times.items() if found)
    larger = [share > 1 for found in times.values() for share in found]
    return Claim(claim, sum(larger) / len(larger) if larger else 0, said or "no place to compare at")


EXPERIMENTS: dict[str, Experiment] = {"4.4": face_to_face}
