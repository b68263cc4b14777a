"""An integer program over the ways to assign the sensitive values of a class to its members, given vetoes of a method.

A veto is a change that the method did not make, so at least one of its parts does not meet some guarantee. Members who are in
the same parts of all vetoes are one group: the program's unknowns are how many rows of each group have each value. Of each
guarantee the program uses its compiled form (`search.guards`), which refuses whatever the model refuses. So the program allows
every assignment that the vetoes allow, and perhaps some more: what it rules out is impossible.

    rows of a group, and of a value, as published;
    one alternative or more of each veto: closeness `sum weight * |n * u - s * rows| > most`, with one binary per node for the
    sign where it is open; caps `u * den > s * num` of some value; too few different values, with one binary per value.
    Entropy below ln l implies that some value has a share above 1 / l, and this is what is required of it.

A change of one member alone (`Vetoes.excluded`) rules out values of that member: their variables are 0.

Guarantees without a compiled form may have vetoed anything; their vetoes are left out. Sensitive attributes are counted
separately, as if any of their values could go together. Rows that are equal in all quasi-identifiers but in different parts
(a cut through ties) differ by their places only, so they are counted together (`Block`).

Source: combinatorial refinement (bibliography), which does this for ARX local recoding.
Cost: a program has a variable for each group and value and up to two binaries for each value in each part; HiGHS solves it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, floor

import numpy as np
from numpy.typing import NDArray

from closeknit.attacks.compiled_guards import Guards
from closeknit.core.combined_secrets import Secret
from closeknit.core.method import Veto
from closeknit.core.row_sorting import groups
from closeknit.core.table import Table
from closeknit.kernels.arrays import Flags, Int64
from closeknit.kernels.exchange.knit_guard import CAPS, CLOSENESS, ENTROPY, Guard

NODES = 2_000  # subproblems of one solution; a bound is used where it is not the optimum
ROUNDED = 1e-6  # what HiGHS may be off

Terms = dict[int, float]


@dataclass(frozen=True, eq=False)
class Block:
    """Members of a class whom the program does not distinguish, and the groups that they are in."""

    members: Int64  # rows of the table
    groups: Int64


@dataclass(eq=False)
class Program:
    """The program of one class. `solves` counts solutions, `unsettled` those that ended with a bound."""

    table: Table
    members: Int64
    guards: Guards
    group_of: Int64
    blocks: list[Block]
    values: Mapping[Secret, Int64]  # codes that occur in the class
    excluded: Flags  # [members, members], or [members, 0]
    vetoes: list[Veto] = field(default_factory=list)  # that say something
    first: dict[Secret, int] = field(default_factory=dict)  # variable of the first group and value
    upper: list[float] = field(default_factory=list)
    whole: list[int] = field(default_factory=list)  # 1 for whole numbers
    rows: list[tuple[Terms, float, float]] = field(default_factory=list)  # terms, least, most
    solves: int = 0
    unsettled: int = 0

    @classmethod
    def of(
        cls, table: Table, members: Int64, vetoes: Sequence[Veto], guards: Guards, most: int, excluded: Flags | None = None
    ) -> Program | None:
        """Set up the program of the class with these rows of the table; None where it has more than `most` variables.

        `excluded`: which member, the first index, cannot have the sensitive values of which other.
        """
        vetoes = [] if guards.open_ended else vetoes
        place = np.full(len(table), -1, dtype=np.int64)
        place[members] = np.arange(len(members))
        within = [[place[part][place[part] >= 0] for part in veto] for veto in vetoes]
        marks = np.zeros((len(vetoes), len(members)), dtype=np.int64)
        for i, parts in enumerate(within):
            for number, part in enumerate(parts):
                marks[i, part] = number + 1
        excluded = np.zeros((len(members), 0), dtype=bool) if excluded is None or guards.open_ended else excluded
        alike = np.unique(excluded, axis=0, return_inverse=True)[1].reshape(1, -1)
        group_of, blocks = _group_members(table.quasi[members], np.concatenate([marks, alike]))
        values = {name: np.unique(table.secret(name)[0][members]).astype(np.int64) for name in guards.secrets}
        grouped = [Block(members[rows], owned) for rows, owned in blocks]
        found = cls(table, members, guards, group_of, grouped, values, excluded)
        if sum(map(len, values.values())) * (int(group_of.max()) + 1) > most:
            return None
        found._count_rows()
        found._exclude_values()
        for veto, mine in zip(vetoes, within, strict=True):
            found._add_veto(veto, mine)
            if found.size > most:
                return None
        return found

    @property
    def size(self) -> int:
        """Number of variables."""
        return len(self.upper)

    @property
    def is_open(self) -> bool:
        """Whether nothing is known beyond the class."""
        return not self.vetoes and not self.excluded.any()

    # Rows and columns of the program --------------------------------------------------------------------------------------

    def _add_variable(self, most: float, whole: int = 1) -> int:
        self.upper.append(most)
        self.whole.append(whole)
        return self.size - 1

    def _variable(self, secret: Secret, group: int, value: int) -> int:
        return self.first[secret] + group * len(self.values[secret]) + value

    def _count_rows(self) -> None:
        """As many rows of each group, and of each value, as there are."""
        sizes = np.bincount(self.group_of)
        for secret, values in self.values.items():
            self.first[secret] = self.size
            have = np.bincount(np.searchsorted(values, self.table.secret(secret)[0][self.members]))
            for size in sizes.tolist():
                for count in have.tolist():
                    self._add_variable(min(size, count))
            for g, size in enumerate(sizes.tolist()):
                self.rows.append(({self._variable(secret, g, v): 1.0 for v in range(len(values))}, size, size))
            for v, count in enumerate(have.tolist()):
                self.rows.append(({self._variable(secret, g, v): 1.0 for g in range(len(sizes))}, count, count))

    def _exclude_values(self) -> None:
        """No row of a group has a value if its members cannot have the sensitive values of anyone who has it."""
        for secret, values in self.values.items() if self.excluded.size else ():
            codes = self.table.secret(secret)[0][self.members]
            for v, code in enumerate(values.tolist()):
                never = self.excluded[:, codes == code].all(axis=1)
                for g in np.unique(self.group_of[never]).tolist():
                    self.upper[self._variable(secret, g, v)] = 0.0

    def _add_veto(self, veto: Veto, within: Sequence[Int64]) -> None:
        """One alternative or more must be true; a veto with an alternative that is always true says nothing."""
        mark = self.size, len(self.rows)
        alternatives: list[int] = []
        for part, mine in zip(veto, within, strict=True):
            for secret, guard in self.guards.compiled:
                found: list[int | None] = [] if len(part) >= guard.k else [None]
                if secret is not None:
                    for view in range(len(guard.kind)):
                        found += self._list_alternatives(_Part.of(self, secret, guard, view, part, mine))
                if None in found:  # it fails whatever the members have
                    del self.upper[mark[0] :], self.whole[mark[0] :], self.rows[mark[1] :]
                    return
                alternatives += [each for each in found if each is not None]
        self.rows.append((dict.fromkeys(alternatives, 1.0), 1.0, np.inf))
        self.vetoes.append(veto)

    def _list_alternatives(self, part: _Part) -> Iterator[int | None]:
        """Binaries, each of which means that this part does not meet one view of a guarantee; None: it never does."""
        guard, size, a = part.guard, part.size, part.first
        if part.kind == CLOSENESS:
            yield from self._add_distance(part)
        elif part.kind == CAPS:
            for x in range(part.nodes):
                yield from self._add_least(part, x, size * int(guard.cap_num[a + x]) // int(guard.cap_den[a + x]) + 1)
                if guard.low_num[a + x] > 0:
                    yield from self._add_most(part, x, -(-size * int(guard.low_num[a + x]) // int(guard.low_den[a + x])) - 1)
        elif part.kind == ENTROPY:
            need = floor(size / exp(float(guard.entropy[part.view])) - ROUNDED) + 1
            for x in np.flatnonzero(guard.leaf[a : a + part.nodes]).tolist():
                yield from self._add_least(part, x, need)
        else:
            yield from self._add_few_values(part)

    def _add_least(self, part: _Part, x: int, need: int) -> Iterator[int | None]:
        """At least `need` rows under a node."""
        if part.least[x] >= need:
            yield None
        elif part.most[x] >= need:
            z = self._add_variable(1)
            self.rows.append(({**part.terms[x], z: float(part.least[x] - need)}, float(part.least[x] - part.base[x]), np.inf))
            yield z

    def _add_most(self, part: _Part, x: int, need: int) -> Iterator[int | None]:
        """At most `need` rows under a node."""
        if part.most[x] <= need:
            yield None
        elif part.least[x] <= need:
            z = self._add_variable(1)
            self.rows.append(({**part.terms[x], z: float(part.most[x] - need)}, -np.inf, float(part.most[x] - part.base[x])))
            yield z

    def _add_few_values(self, part: _Part) -> Iterator[int | None]:
        """Fewer different values than required."""
        leaves = [x for x in range(part.nodes) if part.guard.leaf[part.first + x]]
        present = [x for x in leaves if part.least[x] > 0]
        open_ = [x for x in leaves if part.least[x] == 0 and part.most[x] > 0]
        room = int(part.guard.values[part.view]) - 1 - len(present)
        if room >= len(open_):
            yield None
        elif room >= 0:
            z, shown = self._add_variable(1), [self._add_variable(1) for _ in open_]
            for x, y in zip(open_, shown, strict=True):
                self.rows.append(({**part.terms[x], y: -float(part.most[x])}, -np.inf, 0.0))
            self.rows.append(({**dict.fromkeys(shown, 1.0), z: float(len(open_) - room)}, -np.inf, float(len(open_))))
            yield z

    def _add_distance(self, part: _Part) -> Iterator[int | None]:
        """More than the limit on the distance: the sum of weighted absolute differences."""
        guard, a, s = part.guard, part.first, part.size
        n, need = int(guard.rows[a]), int(guard.most[part.view, s]) + 0.5  # whole numbers: more than the limit is 1 more
        weighted = [x for x in range(part.nodes) if guard.weight[a + x] > 0]
        expected = {x: s * int(guard.rows[a + x]) / n for x in weighted}
        weight = {x: float(guard.weight[a + x]) for x in weighted}
        reach = {x: max(part.most[x] - expected[x], expected[x] - part.least[x]) for x in weighted}
        if sum(weight[x] * reach[x] for x in weighted) * n < need:
            return
        z = self._add_variable(1)
        total: Terms = {z: -need / n}
        for x in weighted:
            over, under = part.most[x] - expected[x], expected[x] - part.least[x]
            gap = self._add_variable(max(reach[x], 0.0), whole=0)
            total[gap] = weight[x]
            less = {i: -value for i, value in part.terms[x].items()}  # gap <= u - expected, and gap <= expected - u
            more = part.terms[x]
            if over > 0 and under > 0:
                b = self._add_variable(1)
                self.rows.append(({**less, gap: 1.0, b: 2 * under}, -np.inf, part.base[x] - expected[x] + 2 * under))
                self.rows.append(({**more, gap: 1.0, b: -2 * over}, -np.inf, expected[x] - part.base[x]))
            elif over > 0:
                self.rows.append(({**less, gap: 1.0}, -np.inf, part.base[x] - expected[x]))
            else:
                self.rows.append(({**more, gap: 1.0}, -np.inf, expected[x] - part.base[x]))
        self.rows.append((total, -ROUNDED, np.inf))
        yield z

    # Solutions ------------------------------------------------------------------------------------------------------------

    def count_true(self, secret: Secret) -> Int64:
        """Rows of each block with each value, as they are."""
        codes = self.table.secret(secret)[0]
        return np.stack([self.count_values(codes[block.members], secret) for block in self.blocks])

    def count_values(self, codes: NDArray[np.int32], secret: Secret) -> Int64:
        place = np.searchsorted(self.values[secret], codes)
        return np.bincount(place, minlength=len(self.values[secret])).astype(np.int64)

    def allows_truth(self) -> bool:
        """Whether the program allows the rows of each block and value as they are."""
        fixed = []
        for secret, values in self.values.items():
            true = self.count_true(secret)
            for i, v in np.ndindex(len(self.blocks), len(values)):
                terms = {self._variable(secret, g, v): 1.0 for g in self.blocks[i].groups.tolist()}
                fixed.append((terms, float(true[i, v]), float(true[i, v])))
        return self._solve({}, fixed) is not None

    def find_bound(self, secret: Secret, block: int, value: int, most: bool, seen: Int64) -> int:
        """Return the least or most rows of a block with a value; solutions found widen `seen`, [2, blocks, values]."""
        sign = -1.0 if most else 1.0
        terms = {self._variable(secret, g, value): sign for g in self.blocks[block].groups.tolist()}
        solved = self._solve(terms, [])
        if solved is None:
            raise AssertionError("a program that allows the true assignment has no solution")
        limit, x = solved
        if x is not None:
            first, width = self.first[secret], len(self.values[secret])
            cells = np.rint(x[first : first + (int(self.group_of.max()) + 1) * width]).astype(np.int64).reshape(-1, width)
            counts = np.stack([cells[each.groups].sum(axis=0) for each in self.blocks])
            seen[0], seen[1] = np.minimum(seen[0], counts), np.maximum(seen[1], counts)
        return floor(-limit + 1e-4) if most else -floor(-limit + 1e-4)

    def _solve(
        self, objective: Terms, more: Sequence[tuple[Terms, float, float]]
    ) -> tuple[float, NDArray[np.float64] | None] | None:
        """Return the bound on the objective and a solution, where one was found; None where there is none."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

        rows = [*self.rows, *more]
        entries = [(i, j, value) for i, (terms, _, _) in enumerate(rows) for j, value in terms.items()]
        at, to, values = (np.array(column) for column in zip(*entries, strict=True))
        matrix = csr_array((values.astype(np.float64), (at, to)), shape=(len(rows), self.size))
        cost = np.zeros(self.size)
        cost[list(objective)] = list(objective.values())
        self.solves += 1
        found = milp(
            cost,
            integrality=np.array(self.whole),
            bounds=Bounds(0, np.array(self.upper)),
            constraints=LinearConstraint(matrix, [row[1] for row in rows], [row[2] for row in rows]),
            # presolving prints to the terminal in some cases, and has lost solutions in others
            options={"node_limit": NODES, "mip_rel_gap": 0.0, "presolve": False},
        )
        if found.status == 2:
            return None
        x = found.x
        if x is not None and not _keeps_rows(matrix @ np.where(self.whole, np.rint(x), x), rows):
            x = None
        if found.status == 0:
            return float(found.fun), x
        self.unsettled += 1
        limit = -np.inf if found.mip_dual_bound is None else float(found.mip_dual_bound)
        return max(limit, sum(c * self.upper[j] for j, c in objective.items() if c < 0)), x


def _keeps_rows(sums: NDArray[np.float64], rows: Sequence[tuple[Terms, float, float]]) -> bool:
    """Whether a solution is one: HiGHS has returned others."""
    limits = np.array([row[1:] for row in rows])
    return bool((sums >= limits[:, 0] - 1e-4).all() and (sums <= limits[:, 1] + 1e-4).all())


def _group_members(quasi: NDArray[np.int32], marks: Int64) -> tuple[Int64, list[tuple[Int64, Int64]]]:
    """Return the group of each member, and the members and groups of each block."""
    m = len(quasi)
    run_of = groups([(column, int(column.max()) + 1) for column in quasi.T], m)[0]
    side_of = groups([(row, int(row.max()) + 1) for row in marks], m)[0] if len(marks) else np.zeros(m, dtype=np.int32)
    pairs = np.unique(np.stack([run_of, side_of]), axis=1)
    divided = np.bincount(pairs[0]) > 1  # rows that are equal, yet in different parts
    owner = np.where(divided[run_of], run_of + 1, 0)
    group_of = groups([(side_of, m + 1), (owner, m + 2)], m)[0].astype(np.int64)
    block_of = np.where(owner > 0, owner, -1 - side_of.astype(np.int64))
    blocks = [np.flatnonzero(block_of == block) for block in np.unique(block_of)]
    return group_of, [(rows, np.unique(group_of[rows])) for rows in blocks]


@dataclass(frozen=True, eq=False)
class _Part:
    """One part of a veto as one view of a guarantee counts it: rows under each node, known ones and unknown ones."""

    guard: Guard
    view: int
    kind: int
    size: int
    first: int  # node of the guard
    nodes: int
    terms: list[Terms]
    base: Int64  # rows under each node that are known
    least: Int64
    most: Int64

    @classmethod
    def of(cls, program: Program, secret: Secret, guard: Guard, view: int, part: Int64, mine: Int64) -> _Part:
        """Count a part; `mine`: the members in it, by their place in the class."""
        first, end = int(guard.start[view]), int(guard.start[view + 1])
        values, codes = program.values[secret], program.table.secret(secret)[0]
        have = np.bincount(np.searchsorted(values, codes[program.members]), minlength=len(values))
        sample = dict(zip(codes[program.members].tolist(), (guard.node[program.members, view] - first).tolist(), strict=True))
        under = [_list_above(guard, first, sample[code]) for code in values.tolist()]
        sizes = np.bincount(program.group_of[mine], minlength=int(program.group_of.max()) + 1)
        terms: list[Terms] = [{} for _ in range(end - first)]
        value_total = np.zeros(end - first, dtype=np.int64)
        for v, nodes in enumerate(under):
            for x in nodes:
                value_total[x] += have[v]
                terms[x].update({program._variable(secret, int(g), v): 1.0 for g in np.flatnonzero(sizes)})
        base = np.zeros(end - first, dtype=np.int64)
        inside = np.zeros(len(codes), dtype=bool)
        inside[program.members] = True
        for node, count in zip(*np.unique(guard.node[part[~inside[part]], view] - first, return_counts=True), strict=True):
            base[_list_above(guard, first, int(node))] += count
        s, m = len(program.members), len(mine)
        least, most = base + np.maximum(value_total - (s - m), 0), base + np.minimum(value_total, m)
        return cls(guard, view, int(guard.kind[view]), len(part), first, end - first, terms, base, least, most)


def _list_above(guard: Guard, first: int, node: int) -> list[int]:
    """A node and all nodes above it, counted from the first of its view."""
    found = [node]
    while guard.parent[first + found[-1]] - first != found[-1]:
        found.append(int(guard.parent[first + found[-1]]) - first)
    return found
