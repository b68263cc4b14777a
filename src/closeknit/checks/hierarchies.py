"""Checks of a kind of column: its cells are nested, tight, can be read back, and have a loss between 0 and 1."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from closeknit.checks.failures import require
from closeknit.checks.naive_cells import covers, text_of
from closeknit.core.domain import Domain
from closeknit.core.kind_forms import kind_form, kind_from

KindCheck = Callable[[Any, list[Any]], None]


class Bound:
    """A kind bound to values: the label of every range of leaves, and the raw values that each label contains."""

    def __init__(self, kind: Any, values: list[Any]) -> None:
        text = any(isinstance(value, str) for value in values)
        array = np.array(values, dtype=object if text else None)
        self.domain: Domain
        self.domain, codes = kind.bind(array)
        self.raw: list[tuple[int, str]] = [
            (int(code), str(text_of(value))) for code, value in zip(codes, array.tolist(), strict=True)
        ]
        self.labels: dict[tuple[int, int], str] = {}
        for lo in range(self.domain.size + 1):
            for hi in range(lo, self.domain.size + 1):
                (self.labels[lo, hi],) = self.domain.labels(np.array([lo], dtype=np.int32), np.array([hi], dtype=np.int32))
        self.held = {
            label: frozenset(raw for _, raw in self.raw if covers(kind, label or None, raw)) for label in self.labels.values()
        }


def ranges_are_covered(kind: Any, values: list[Any]) -> None:
    """The label of a range of leaves contains every raw value in it; with the missing leaf it is `*`, for that alone empty."""
    bound = Bound(kind, values)
    last = bound.domain.size
    for (lo, hi), label in bound.labels.items():
        if hi == last:
            require(label == ("" if lo == last else "*"), f"leaves {lo} to {hi} (the missing one) are written {label!r}")
        else:
            for code, raw in bound.raw:
                require(not lo <= code <= hi or raw in bound.held[label], f"{label!r} does not contain {raw!r}")


def covers_are_minimal(kind: Any, values: list[Any]) -> None:
    """No other label contains the same range of raw values and fewer others."""
    bound = Bound(kind, values)
    for (lo, hi), label in bound.labels.items():
        inside = frozenset(raw for code, raw in bound.raw if lo <= code <= hi)
        if hi < bound.domain.size and inside and {lo, hi} <= {code for code, _ in bound.raw}:
            for other, held in bound.held.items():
                require(not inside <= held < bound.held[label], f"{label!r} was written where {other!r} is narrower")


def nodes_are_nested(kind: Any, values: list[Any]) -> None:
    """Two nodes of a tree are disjoint, or one contains the other; ranges of numbers may overlap."""
    bound = Bound(kind, values)
    if bound.domain.tree is not None:
        for (one, a), (other, b) in combinations(bound.held.items(), 2):
            require(a <= b or b <= a or not a & b, f"{one!r} and {other!r} overlap")


def labels_are_unambiguous(kind: Any, values: list[Any]) -> None:
    """Ranges of leaves with different numbers at both ends share a label only where a tree joins them."""
    bound = Bound(kind, values)
    if bound.domain.tree is None:
        labels = [label for (_, hi), label in bound.labels.items() if hi < bound.domain.size]
        require(len(labels) == len(set(labels)), "two ranges of numbers share a label")


def losses_are_shares(kind: Any, values: list[Any]) -> None:
    """Losses lie between 0 and 1: 0 for a single value and for missing, 1 for `*`; a wider cell never has a smaller loss."""
    if not values:
        cells = ["", "*"]
        require(kind.losses(cells).tolist() == [[0, 0], [1, 1]], "the loss of a missing cell is not 0, or that of '*' not 1")
        return
    bound = Bound(kind, values)
    cells = sorted(set(bound.labels.values()))
    shown = kind.publish_kind(cells)
    loss = dict(zip(cells, shown.losses(cells).tolist(), strict=True))
    require(loss["*"] == [1, 1] and loss[""] == [0, 0], "the loss of a missing cell is not 0, or that of '*' not 1")
    for (lo, hi), label in bound.labels.items():
        a, b = loss[label]
        require(0 <= b <= a <= 1, f"{label!r} has the loss {a} (variant A) and {b} (variant B)")
        require(
            lo < hi or bound.held[label] == set() or len(bound.held[label]) > 1 or kind_bins(kind) or a == 0,
            f"the single value {label!r} has the loss {a}",
        )
        for other, held in bound.held.items():
            wider = frozenset() < bound.held[label] < held
            require(not wider or loss[other][0] >= a, f"{other!r} contains more than {label!r} and has a smaller loss")


def kind_bins(kind: Any) -> bool:
    """Return whether a single leaf of this kind is an interval, whose loss is its width."""
    return not {"bins", "coarsen", "top", "bottom", "keep", "level"}.isdisjoint(kind.spec())


def cells_are_read_back(kind: Any, values: list[Any]) -> None:
    """The certificate's description of the column suffices to read every written label."""
    if values:
        bound = Bound(kind, values)
        cells = sorted(set(bound.labels.values()))
        again = kind_from(kind_form(kind.publish_kind(cells)))
        require(
            np.array_equal(again.losses(cells), kind.publish_kind(cells).losses(cells)),
            "losses change when a certificate is read",
        )


def recipe_reads_back(kind: Any, values: list[Any]) -> None:
    """A recipe reads the kind back unchanged."""
    require(kind_from(kind_form(kind)) == kind, f"a recipe reads {kind} back as a different kind")


def derived_domain_lists_written_nodes_only(kind: Any, values: list[Any]) -> None:
    """A domain that is derived from the data is published with the written nodes only."""
    if not values or kind.name not in ("flat", "prefix", "tree") or (kind.name == "tree" and not kind.from_data):
        return
    bound = Bound(kind, values)
    top = bound.labels[0, bound.domain.size - 1]
    published = str(kind_form(kind.publish_kind([top, ""])))
    for label in set(bound.labels.values()) - {top, "", "*"}:
        require(repr(label) not in published, f"the certificate discloses {label!r}, which is not written")


CHECKS: tuple[KindCheck, ...] = (
    ranges_are_covered,
    covers_are_minimal,
    nodes_are_nested,
    labels_are_unambiguous,
    losses_are_shares,
    cells_are_read_back,
    recipe_reads_back,
    derived_domain_lists_written_nodes_only,
)
