"""Refinement: what a method did not do rules out ways to assign the sensitive values of a class to its members.

The adversary knows the method with its parameters, all quasi-identifiers, and the class of each row; no seed and no auxiliary
data. A method that cuts classes as far as the guarantees allow ends where no cut that it offers is allowed, so every cut has a
side that does not meet a guarantee (`Method.find_vetoes`). Among all ways to assign the values of a class, an integer program
(`assignment_program`) finds the least and the most rows of each block of members that can have each value.

The number is the largest probability that the program proves for a member: the least number of rows of a block with the value,
divided by the rows of the block, for the pair of block and value whose proof adds most to the class alone. `risk` is that
addition, (number - share of the value in the class) / (1 - share). The details count pairs of a member and a value that the
class allows and the program rules out, members with one value left, and how many members an adversary names correctly who
guesses the value in the middle of whose range is the largest.

A method whose search ends with a budget (Knit) ensures nothing, so an adversary who assumes a local optimum may derive what is
false. Its number is that of a stronger adversary, to whom the data owner reveals where this is true: which classes have no cut
left over, and which pairs of classes no move and no exchange of rows. What this adversary cannot prove, no one proves who knows
only that the search looks for a local optimum. A method that stops by a random draw has no number: that is no proof of safety.

Sources: combinatorial refinement of ARX's local recoding (2025), and the paper on minimality (2007).
Different from the source: any method that declares what it ensures, and guarantees by their compiled form. Vetoes of other
classes are not used: only those of the class itself and, for levels of a whole table, those that the values of other classes,
which are then known, leave to it.

Cost: at most `solves` programs, each of at most `NODES` subproblems; classes whose program is larger than `MOST` are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from closeknit.attacks.assignment_program import Program
from closeknit.attacks.assignment_trials import Trials
from closeknit.attacks.compiled_guards import Guards
from closeknit.attacks.deals import Classes, check_attacked, check_classes
from closeknit.attacks.finding import Detail, Finding
from closeknit.attacks.finding_texts import certainty, format_count, percent
from closeknit.attacks.intervals import share_interval
from closeknit.core.columns import Columns
from closeknit.core.combined_secrets import Secret
from closeknit.core.date_shift import list_shifted
from closeknit.core.limits import MOST_SOLVES
from closeknit.core.look_alikes import with_folded
from closeknit.core.method import Exclusion, Method, Vetoes, list_guarantees
from closeknit.core.model import Model, joints
from closeknit.core.params import whole
from closeknit.core.schema import Schema
from closeknit.core.table import Partition, Table
from closeknit.kernels.arrays import Int64

SOLVES = 200  # programs that are solved
MOST = 4_000  # variables of a program
KNOWS = "the method and its parameters, all quasi-identifiers, and the class of each person"
OUTSIDE = ", and all sensitive values outside the class"
GIVEN = "; and, from the data owner, between which classes no improvement was left over"
DERIVED = ("what the method did not do", "where no improvement was left over, which only the data owner can see,")
COUNTED = ("members", "narrowed", "pairs", "excluded", "one_value_left", "guessed", "guessed_by_class")
CONFIDENCE = 0.95

_find = partial(Finding, attack="refinement", measure="largest probability that is proved")


def refinement(
    original: Columns,
    class_of: Classes,
    schema: Schema,
    method: Method,
    models: Sequence[Model],
    secret: str | None = None,
    *,
    solves: int = SOLVES,
    seed: int = 0,
) -> Finding:
    """Measure what an adversary derives who knows that the method left no change over that the guarantees allow.

    In the example four people of age 40 and two of age 30 share a class. If the two of age 30 had two diseases, they would be a
    class of their own.

    Args:
        original: The original rows.
        class_of: Class of each original row (`Release.partition`), as the method returned it.
        schema: Schema of the original rows.
        method: The method that assigned the rows to classes.
        models: The requested guarantees.
        secret: Sensitive attribute under attack; None takes the first with a guarantee.
        solves: Largest number of programs that are solved.
        seed: Seed of the order in which classes are tried.

    >>> import closeknit as ck
    >>> schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})
    >>> table = Columns.of({"age": [30, 30, 40, 40, 40, 40], "ill": ["HIV", "HIV", "flu", "gout", "cold", "ulcer"]})
    >>> release = ck.anonymize(table, schema, [ck.LDiversity("ill", 2)], ck.Mondrian("strict"))
    >>> found = refinement(table, release.partition, schema, ck.Mondrian("strict"), [ck.LDiversity("ill", 2)])
    >>> found.number, round(found.details["class_alone"], 3), found.details["one_value_left"]
    (1.0, 0.333, 2)
    """
    solves = whole("solves", solves, 1, MOST_SOLVES)
    check_attacked(secret, schema)
    guarantees = [model for model in list_guarantees(method, schema, models) if not model.of_method]
    mentioned = [model.column for model in guarantees if model.column is not None]
    target = secret if secret is not None else next(iter([*mentioned, *schema.sensitive]))
    if (why := _why_nothing(schema, class_of, guarantees, target)) is not None:
        return _explain_nothing(target, why)
    table, partition, judged = encode_classes(original, class_of, schema, guarantees)
    if (vetoes := method.find_vetoes(table, partition, judged)) is None:
        return _explain_nothing(target, f"{method.name} ensures no condition on the classes that it returns")
    return refine_classes(table, partition, judged, vetoes, target, solves=solves, seed=seed)


def _why_nothing(schema: Schema, class_of: Classes, models: Sequence[Model], target: Secret) -> str | None:
    """Return why nothing is ensured of the classes whatever the method is; None where there may be something."""
    if all(model.column != target for model in models):
        return f"no guarantee mentions `{target}`"
    if schema.person is not None:
        return "rows of one person are kept together after the method has run"
    if list_shifted(schema):
        return "dates are shifted by the seed"
    if any(model.budget or not model.by_class for model in models):
        return "a guarantee about the whole release changes classes after the method has run"
    if (np.asarray(class_of) < 0).any():
        return "suppressed rows were taken out of their classes after the method had run"
    return None


def encode_classes(
    original: Columns, class_of: Classes, schema: Schema, models: Sequence[Model]
) -> tuple[Table, Partition, list[Model]]:
    """Return the coded table, its classes, and the guarantees that a method sees."""
    class_of = check_classes(class_of, original)
    own = schema.without_identifiers()
    table = own.encode(original.select(own.used)).join_secrets(joints(models))
    return table, Partition.of(class_of[table.rows]), with_folded(models, table)


def refine_classes(
    table: Table,
    partition: Partition,
    models: Sequence[Model],
    vetoes: Vetoes,
    secret: Secret,
    *,
    solves: int = SOLVES,
    seed: int = 0,
) -> Finding:
    """Refine classes in random order until all are refined or the budget is spent.

    Args:
        table: The coded rows.
        partition: Their classes.
        models: The guarantees.
        vetoes: Lists the changes of a class that some guarantee does not allow.
        secret: Sensitive attribute under attack.
        solves: Largest number of programs that are solved.
        seed: Seed of the order in which classes are tried.
    """
    guards, tally = Guards.of(table, models), _Tally(vetoes.others_known, vetoes.given)
    if secret not in guards.secrets or guards.open_ended:
        why = f"a guarantee of `{secret}`, or another one, has no linear form, so it may have vetoed anything"
        return _explain_nothing(secret, why)
    rows = partition.list_rows()
    for number in np.random.default_rng(seed).permutation(partition.count).tolist():
        if tally.solves >= solves:
            break
        members = rows[number]
        excluded = None if vetoes.excluded is None else tally.note_conditions(vetoes.excluded(number))
        program = Program.of(table, members, vetoes.of_class(number), guards, MOST, excluded)
        tally.looked_at += 1
        if program is None:
            tally.too_large += 1
        elif not program.is_open and len(program.values[secret]) > 1:
            tally.add(program, secret, solves)
    return tally.finding(secret, partition.count)


@dataclass(eq=False)
class _Tally:
    """What the classes that were tried reveal together."""

    others_known: bool
    given: bool
    held: int = 0  # conditions of two classes
    left_over: int = 0
    looked_at: int = 0
    tried: int = 0
    too_large: int = 0
    contradicted: int = 0  # classes whose true values the program excludes: the method does not leave such classes
    solves: int = 0
    unsettled: int = 0
    classes_narrowed: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTED, 0))
    best: tuple[float, float, float] = (0.0, 0.0, 0.0)  # gain, proved, class alone

    def note_conditions(self, found: Exclusion) -> NDArray[np.bool_]:
        """Count what is true of a class and each other one, and return which values are excluded."""
        self.held, self.left_over = self.held + found.held, self.left_over + found.left_over
        return found.values

    def add(self, program: Program, secret: Secret, solves: int) -> None:
        """Refine one class."""
        true = program.count_true(secret)
        trials = Trials(program, secret)  # ties may be divided in another way than here: then the program decides
        if not trials.is_consistent(np.arange(len(program.members))) and not program.allows_truth():
            self.contradicted += 1
            return
        least, most = find_ranges(program, secret, true, solves - self.solves - program.solves)
        if ((true < least) | (true > most)).any():
            self.contradicted += 1
        sizes, have = true.sum(axis=1), true.sum(axis=0)
        self.tried, self.solves = self.tried + 1, self.solves + program.solves
        self.unsettled += program.unsettled
        possible = most > 0
        narrowed = np.any([each != bound for each, bound in zip((least, most), bound_by_class(true), strict=True)], axis=(0, 2))
        self.classes_narrowed += int(narrowed.any())
        guess = np.argmax(least + most + have / (2 * have.sum() + 1), axis=1)
        added = {
            "members": int(sizes.sum()),
            "narrowed": int(sizes[narrowed].sum()),
            "pairs": int(sizes.sum()) * len(have),
            "excluded": int((sizes[:, None] * ~possible).sum()),
            "one_value_left": int(sizes[possible.sum(axis=1) == 1].sum()),
            "guessed": int(true[np.arange(len(true)), guess].sum()),
            "guessed_by_class": int(have.max()),
        }
        self.counts = {name: count + added[name] for name, count in self.counts.items()}
        proved, alone = least / sizes[:, None], np.broadcast_to(have / have.sum(), least.shape)
        gain = np.maximum(proved - alone, 0) / np.maximum(1 - alone, 1e-12)
        at = np.unravel_index(int(np.argmax(gain)), gain.shape)
        self.best = max(self.best, (float(gain[at]), float(proved[at]), float(alone[at])))

    def finding(self, secret: Secret, classes: int) -> Finding:
        """Return the result of all classes that were tried."""
        details: dict[str, Detail] = {
            "classes": classes,
            "classes_looked_at": self.looked_at,
            "classes_tried": self.tried,
            "classes_narrowed": self.classes_narrowed,
            "classes_too_large": self.too_large,
            "solves": self.solves,
            "unsettled": self.unsettled,
        }
        if self.given:
            details |= {"conditions_held": self.held, "conditions_left_over": self.left_over}
        if self.looked_at < classes:
            low, high = share_interval(self.classes_narrowed, max(self.looked_at - self.too_large, 1), CONFIDENCE)
            details |= {"classes_narrowed_low": low, "classes_narrowed_high": high}
        if self.contradicted:
            what = f"{format_count(self.contradicted, 'class', 'classes')} of this release had an allowed change left over, so "
            what += "the method with these guarantees did not return them: nothing is derived from what it ensures."
            return _build_empty(secret, what, {**details, "contradicted": self.contradicted})
        if self.tried == 0:
            found = f"None of the {format_count(self.looked_at, 'class', 'classes')} that were looked at"
            return _build_empty(secret, f"{found} has a change that only its own values rule out.", details)
        gain, proved, alone = self.best
        counts, members = self.counts, self.counts["members"]
        right, by_class = counts["guessed"] / members, counts["guessed_by_class"] / members
        details |= {
            **counts,
            "excluded_share": counts["excluded"] / counts["pairs"],
            "class_alone": alone if gain > 0 else None,
            "guessed_share": right,
            "guessed_by_class_share": by_class,
        }
        proof = "nothing is proved about a person beyond that"
        if gain > 0:
            proof = f"a value is proved {certainty(proved)}, where the class alone reveals it with probability {percent(alone)}"
        return _find(
            knows=KNOWS + OUTSIDE * self.others_known + GIVEN * self.given,
            column=secret,
            number=proved if gain > 0 else 0.0,
            risk=gain,
            sentence=f"In {format_count(self.tried, 'class', 'classes')} of {format_count(members, 'row')} that were tried, "
            f"{DERIVED[self.given]} rules out {percent(counts['excluded'] / counts['pairs'])} of the values of `{secret}` "
            f"that a member may have, and leaves one to {format_count(counts['one_value_left'], 'member')}; {proof}. Guessing "
            f"is right for {percent(right)}, by the class alone for {percent(by_class)}.",
            details=details,
        )


def bound_by_class(true: Int64) -> tuple[Int64, Int64]:
    """Return the least and the most rows of each block with each value that the class alone allows.

    Args:
        true: Rows of each block with each value, as they are.
    """
    sizes, have = true.sum(axis=1)[:, None], true.sum(axis=0)[None]
    return np.maximum(have - (have.sum() - sizes), 0), np.minimum(sizes, have)


def find_ranges(program: Program, secret: Secret, true: Int64, budget: int) -> tuple[Int64, Int64]:
    """Return the least and the most rows of each block that can have each value; [blocks, values] each.

    The true assignment, those that are tried and every solution are possible, so most bounds need no program of their own.

    Args:
        program: The program of a class.
        secret: Sensitive attribute.
        true: Rows of each block with each value, as they are.
        budget: Programs that may still be solved; what is not solved keeps the bound of the class alone.
    """
    least, most = bound_by_class(true)
    seen = np.stack([true, true])
    before, trials = program.solves, Trials(program, secret)
    for block, value in np.ndindex(*true.shape):
        for upper, limit in ((True, most), (False, least)):
            if seen[int(upper), block, value] == limit[block, value]:
                continue
            if trials.reach(block, value, upper, int(limit[block, value]), seen):
                continue
            if program.solves - before >= budget:
                return least, most
            limit[block, value] = program.find_bound(secret, block, value, upper, seen)
    return least, most


def _explain_nothing(secret: Secret, why: str) -> Finding:
    return _build_empty(secret, f"There is nothing to derive: {why}. This does not show that the method is safe.", {})


def _build_empty(secret: Secret, sentence: str, details: dict[str, Detail]) -> Finding:
    """Return a record without a number."""
    return _find(knows=KNOWS, column=secret, number=None, risk=0.0, sentence=sentence, details=details)
