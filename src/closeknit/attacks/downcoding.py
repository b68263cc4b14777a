"""Downcoding: generalized cells that follow exactly because a release generalizes no more than it needs to.

The adversary knows how cells are written, the hierarchies, which of their values occur in the table, and which columns have
missing values. Then some cells follow:

- a tight range `[30, 41]` of a class of two or more rows: one cell is 30 and one is 41;
- the lowest node over a class: rows are under at least two of its children. If it has two, one cell or more is under each of
  them. A child that is a value recovers a cell exactly, any other child narrows one;
- one level for all rows, as low as possible (Incognito): one level lower at least one class would be divided. If only one class
  has a node with several children, it is that class, and what was said of lowest nodes is true of it.

Snapped ranges, ranges of coarsened values, and cells at declared levels recover nothing exactly: the ends of their steps are no
values; the step at each end has a row, which narrows two cells.

With the class of each row the facts are compared with the original, and with a guess by the marginal distributions: the same
number of values of the same cell, the most frequent ones in the table. `number` is the share of generalized cells that are
recovered exactly, `baseline` the share that the guess gets right; `risk` is what the release adds, (number - baseline) /
(1 - baseline). The cells of a class are recovered as a set: which of its rows has the value is not known.

Source: Cohen, Attacks on deidentification's defenses (2022): a release that is minimal can be downcoded.
Different from the source: it constructs tables whose cells are all recovered; here facts are derived from any release, and
counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from closeknit.attacks.beliefs import NotApplicable
from closeknit.attacks.deals import Classes
from closeknit.attacks.finding import Detail, Finding
from closeknit.attacks.finding_texts import format_count, percent
from closeknit.attacks.refinement import encode_classes
from closeknit.core.columns import Columns
from closeknit.core.date_shift import list_shifted
from closeknit.core.domain import Domain
from closeknit.core.levels import level_nodes, top_level, tree_of
from closeknit.core.params import spec
from closeknit.core.schema import Schema
from closeknit.core.table import Form, Partition, Table
from closeknit.core.tree import STAR, Tree
from closeknit.forms.release_reading import Published, form_behind, reading_of
from closeknit.kernels.counting.histograms import count_codes
from closeknit.kernels.geometry.boxes import boxes

KNOWS = "how cells are written, and the values of columns that are no numbers"
RANGES = "ranges"  # cells of a form that writes ranges and nodes
Children = list[tuple[int, int]]  # ranges of leaf codes, in each of which the class has a row


def downcoding(published: Published, original: Columns, schema: Schema, class_of: Classes) -> Finding:
    """Measure how many generalized cells are recovered exactly, next to a guess by the marginal distributions.

    Args:
        published: A release whose cells belong together.
        original: The original rows.
        schema: Schema of the original rows.
        class_of: Class of each original row (`Release.partition`).

    >>> import closeknit as ck
    >>> schema = ck.Schema(quasi={"age": ck.numeric(step=20)}, sensitive={"ill": ck.flat()})
    >>> table = Columns.of({"age": [31, 42, 42, 55, 61, 77], "ill": ["flu", "gout"] * 3})
    >>> for form in (ck.generalized(), ck.generalized(snap=True)):
    ...     release = ck.anonymize(table, schema, [ck.KAnonymity(3)], form=form)
    ...     found = downcoding(release, table, schema, release.partition)
    ...     print(found.number, found.details["recovered"], found.details["narrowed"])
    0.6666666666666666 4 0
    0.0 0 4
    """
    form, reading = form_behind(published), reading_of(published)
    if reading.column_groups or "classes" in form.attested or spec(form).get("cells", RANGES) != RANGES:
        raise NotApplicable("quasi-identifiers are not written as cells of classes", right="see record_linkage")
    if list_shifted(schema):
        raise NotApplicable("dates are shifted by the seed, so cells are not those of the original", right="leave shift out")
    table, partition, _ = encode_classes(original, class_of, schema, [])
    facts = list(_derive_facts(table, partition, form, reading.tight))
    return _build_finding(facts, table, partition)


@dataclass(frozen=True)
class _Facts:
    """What follows for the cells of one class in one column."""

    column: int
    number: int  # of the class
    lo: int  # codes that the written cell covers
    hi: int
    children: Children
    exact: bool = True  # whether a child with one code is a value, and not a step or a bin


def _derive_facts(table: Table, partition: Partition, form: Form, tight: tuple[str, ...]) -> Iterator[_Facts]:
    """Yield every generalized cell of a class with what follows for it."""
    lo, hi = boxes(table.quasi, partition.class_of, partition.count)
    for j, (name, domain) in enumerate(zip(table.schema.quasi, table.quasi_domains, strict=True)):
        missing = bool((table.quasi[:, j] == domain.size).any())
        levels = form.levels or {}
        if name in levels:
            yield from _at_level(table, partition, j, levels[name], missing)
            continue
        for number in np.flatnonzero(lo[:, j] < hi[:, j]).tolist():
            a, b = int(lo[number, j]), int(hi[number, j])
            if domain.tree is not None:
                node = int(domain.tree.cover([a], [b])[0])
                tree = domain.tree
                children = _pair(_list_children(tree, node, missing))
                yield _Facts(j, number, int(tree.lo[node]), int(tree.hi[node]), children, not domain.coarse)
            elif b == domain.size:  # a range and missing values: `*`
                yield _Facts(j, number, 0, b, [])
            else:
                yield _Facts(j, number, *_find_range(domain, a, b, name in tight))


def _find_range(domain: Domain, a: int, b: int, tight: bool) -> tuple[int, int, Children, bool]:
    """The codes that a written range covers, those at both of its ends, and whether these are values."""
    if tight:
        return a, b, [(a, a), (b, b)], domain.ends is None and not domain.coarse
    steps = tree_of(domain)
    nodes = level_nodes(steps)[0 if domain.step is None or domain.coarse else 1]
    ends = [(int(steps.lo[node]), int(steps.hi[node])) for node in dict.fromkeys((int(nodes[a]), int(nodes[b])))]
    return ends[0][0], ends[-1][1], ends, False


def _list_children(tree: Tree, node: int, missing: bool) -> Children:
    """The ranges of codes under each child of a node; missing values are one of `*` where there are any."""
    below = np.flatnonzero((tree.parent == node) & (np.arange(len(tree.parent)) != node))
    found = [(int(tree.lo[child]), int(tree.hi[child])) for child in below]
    return [each for each in found if missing or each[0] < tree.size]


def _pair(children: Children) -> Children:
    """A class under a node with two children has a row under each; of more children it is open which ones."""
    return children if len(children) == 2 else []


def _at_level(table: Table, partition: Partition, j: int, level: int | str, missing: bool) -> Iterator[_Facts]:
    """Cells at one level for all rows: some class would be divided one level lower."""
    domain = table.quasi_domains[j]
    tree = tree_of(domain)
    height = top_level(domain) if level == STAR else int(level)
    if height == 0:
        return
    high, low = level_nodes(tree)[height], level_nodes(tree)[height - 1]
    leaf = np.zeros(partition.count, dtype=np.int64)
    leaf[partition.class_of[partition.class_of >= 0]] = table.quasi[partition.class_of >= 0, j]
    found = []
    for number, node in enumerate(high[leaf].tolist()):
        leaves = np.flatnonzero(high == node)
        leaves = leaves[(leaves < domain.size) | missing]
        parts = [leaves[low[leaves] == child] for child in np.unique(low[leaves])]
        found.append((number, int(leaves[0]), int(leaves[-1]), [(int(part[0]), int(part[-1])) for part in parts]))
    several = [number for number, _, _, parts in found if len(parts) > 1]
    for number, a, b, parts in found:
        if a < b:
            yield _Facts(
                j, number, a, b, _pair(parts) if several == [number] else [], domain.tree is not None and not domain.coarse
            )


def _build_finding(facts: list[_Facts], table: Table, partition: Partition) -> Finding:
    sizes = count_codes(partition.class_of, partition.count)
    cells = int(sum(sizes[fact.number] for fact in facts))
    if cells == 0:
        raise NotApplicable("no cell is generalized", right="see record_linkage")
    recovered = narrowed = right = by_marginal = 0
    rows = partition.list_rows()
    common = [count_codes(table.quasi[:, j], domain.size + 1) for j, domain in enumerate(table.quasi_domains)]
    for fact in facts:
        exact = [a for a, b in fact.children if a == b and fact.exact]
        recovered, narrowed = recovered + len(exact), narrowed + len(fact.children) - len(exact)
        here = table.quasi[rows[fact.number], fact.column]
        right += sum(bool((here == code).any()) for code in exact)
        have = common[fact.column][fact.lo : fact.hi + 1]
        guesses = fact.lo + np.argsort(-have, kind="stable")[: len(exact)]
        by_marginal += sum(bool((here == code).any()) for code in guesses)
    share, baseline = right / cells, by_marginal / cells
    details: dict[str, Detail] = {
        "generalized_cells": cells,
        "recovered": recovered,
        "right": right,
        "narrowed": narrowed,
        "by_marginal": by_marginal,
        "baseline": baseline,
    }
    return Finding(
        attack="downcoding",
        knows=KNOWS,
        measure="share of generalized cells that are recovered exactly",
        number=share,
        risk=max(share - baseline, 0) / (1 - baseline) if baseline < 1 else 0.0,
        sentence=f"Of {format_count(cells, 'generalized cell')} {recovered:,} ({percent(recovered / cells)}) are recovered "
        f"exactly, up to which row of the class has them, and {narrowed:,} are narrowed; guessing as many by the distribution "
        f"of each column gets {by_marginal:,} ({percent(baseline)}) right.",
        details=details,
    )
