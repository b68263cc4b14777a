"""Findings of the thesis that are comparisons of lines: whether one lies below another, whether it rises or falls."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from experiments.figures import Claim

Drawn = Mapping[str, Mapping[float, float]]


def ahead(lines: Drawn, pairs: Sequence[tuple[str, str]], claim: str, factor: float = 1.0) -> Claim:
    """In which share of the places the first line of a pair lies below the second, or below this share of it."""
    below, said = [], []
    for one, other in pairs:
        shares = [y / lines[other][x] for x, y in lines[one].items() if lines[other].get(x)]
        below += [share < factor for share in shares]
        said.append(f"{one} / {other} {spread(shares)}")
    return Claim(claim, statistics.mean(below) if below else 0, "; ".join(said))


def spread(shares: Sequence[float]) -> str:
    """The mean of ratios, the least and the largest."""
    if not shares:
        return "cannot be decided"
    mean = statistics.geometric_mean(max(share, 1e-9) for share in shares)
    return f"{mean:.2f} ({min(shares):.2f} to {max(shares):.2f})"


def moves(lines: Drawn, names: Iterable[str], claim: str, grows: bool, slack: float = 0.02) -> Claim:
    """Which share of the lines rises (or falls) from its first place to its last, and never turns back by more than this."""
    holds, said = [], []
    for name in names:
        values = [lines[name][x] for x in sorted(lines[name])]
        steps = [b / a - 1 if a else float(b > 0) for a, b in pairwise(values)]
        back = max(((-step if grows else step) for step in steps), default=0.0)
        holds.append((values[-1] > values[0]) == grows and values[-1] != values[0] and back <= slack)
        said.append(f"{name} {', '.join(f'{value:.3g}' for value in values)}")
    return Claim(claim, statistics.mean(holds), "; ".join(said))
