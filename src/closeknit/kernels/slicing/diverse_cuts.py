"""Cut buckets of a sliced release in two while no profile learns too much (see `profile_matching`).

Every profile has its `mass`: per sensitive value the sum of weight * count over the buckets that it fits into. A cut changes
only the masses of profiles that fit into the bucket, and every profile that fits into a side is among these: so every bucket
has its own list of them. If no bucket of a profile fails alone, the profile holds; if it fits into a single bucket, that bucket
decides, both in integers; otherwise the masses decide, or rationals if these are close to the limit or rounding errors are
large.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from closeknit.kernels.arrays import Reals
from closeknit.kernels.compiling import kernel, truth, whole
from closeknit.kernels.cutting.cut_offers import offers
from closeknit.kernels.cutting.cut_sides import mark
from closeknit.kernels.geometry.boxes import Codes, Ints, Scales
from closeknit.kernels.slicing.profile_matching import TINY, position

HOLDS, FAILS, UNDECIDED, CROWDED, PAUSED, DONE = range(6)  # results of a cut; all but the first two end a search
NEAR = 1e-9
ROUNDING = 1e-15  # relative, of all that is added to or subtracted from a mass
WORN = 1e-10  # of the total: larger rounding errors require summing a profile again


class Rows(NamedTuple):
    """Constant input: rows, their distinct profiles, and the pairs (known part in the secret's group, secret), ascending."""

    quasi: Codes  # [n, d]
    known: Codes  # [n, groups] the codes of group i from base[i] on, without gaps over all groups
    pair: Codes  # [n]
    part: Codes  # [pairs] the known part of each, as in `known`
    profiles: Codes  # [m, groups]
    shift: Ints  # [m] what to add to a pair to find the profile's `mass` of it
    starts: Ints  # [m + 1] start of the `mass` of each profile
    place: int


class Rule(NamedTuple):
    """The conditions on every bucket and on the whole release."""

    limit: float  # 1/l
    allowed: Ints  # [n + 1] how many of so many rows may have one value
    by_size: bool
    least: int  # rows of a bucket
    relaxed: bool  # whether ties may be divided


class CutState(NamedTuple):
    """The buckets so far, replaced ones included, and what every profile learns from them."""

    order: Codes  # [n] rows, bucket by bucket
    by_pair: Codes  # [n] the same, inside a bucket by pair
    first: Ints  # [2n] start of each bucket in both; 2n, because every cut adds two buckets
    last: Ints
    alive: Codes  # [2n]
    fit_first: Ints  # [2n] the profiles that fit into a bucket, ascending: from here to there in `fits`
    fit_last: Ints
    fits: Codes
    used: Ints  # [2] used buckets, and used entries of `fits`
    mass: Reals  # per profile and pair: sum of weight * count over the buckets
    total: Reals  # [m] sum of the masses
    top: Reals  # [m] the largest of them, or infinity if not computed yet
    rounding_error: Reals  # [m] bound of the rounding error of each of them
    matches: Ints  # [m] buckets
    failing: Ints  # [m] of these, buckets that fail alone


class Scratch(NamedTuple):
    """Counts of one bucket and of both sides of a cut of it; all 0 between cuts."""

    codes: Ints  # [2, codes]
    pairs: Ints  # [2, pairs]
    fails: Ints  # [3, codes] per known part in the secret's group: whether whole, left or right side fail alone
    here: Codes  # [n] pairs of the bucket, ascending
    here_first: Ints  # [codes] start of those of a known part
    here_last: Ints
    left: Codes  # [n] per row: 0 goes left, 1 right
    stale: Codes  # [m] profiles to be summed again


class Place(NamedTuple):
    """Where a search continues: a bucket, one of its cuts, and how many of its profiles are judged."""

    bucket: int
    turn: int
    judged: int


class Sides(NamedTuple):
    """Both sides of a cut: their rows, and whether a profile fits into them."""

    lefts: int
    rights: int
    here: bool
    there: bool


@kernel
def search(scales: Scales, rows: Rows, rule: Rule, standing: CutState, scratch: Scratch, at: Place,
           pause: int) -> tuple[int, Place]:  # fmt: skip
    """Cut buckets in the order of their numbers, each by the first cut after which no profile learns too much.

    Returns why it stopped, and where: a decision that needs rationals, no space left in `fits`, or `pause` reached.
    """
    bucket, turn, place = at
    while bucket < min(standing.used[0], pause):
        quasi = rows.quasi[standing.order[standing.first[bucket] : standing.last[bucket]]]
        _, cuts = offers(scales, quasi, np.array([0, len(quasi)]), rule.least, rule.relaxed, truth(False), truth(False))
        status = FAILS
        while turn < len(cuts) and status == FAILS:
            lefts = _mark_sides(standing, scratch, bucket, quasi, cuts[turn : turn + 1])
            status, place = _try_cut(rows, rule, standing, scratch, bucket, lefts, place)
            if status in (UNDECIDED, CROWDED):
                return status, Place(bucket, turn, place)
            turn, place = turn + 1, 0
        bucket, turn, place = bucket + 1, 0, 0
    return DONE if bucket == standing.used[0] else PAUSED, Place(bucket, whole(0), whole(0))


@kernel
def _mark_sides(standing: CutState, scratch: Scratch, bucket: int, quasi: Codes, cut: Codes) -> int:
    """Mark on which side of a cut each row of a bucket is, and return the number of rows on the left."""
    a, n = standing.first[bucket], len(quasi)
    left = np.empty(n, np.bool_)
    size = mark(quasi, np.array([0, n]), np.zeros(1, np.int64), cut, left)[0]
    for x in range(n):
        scratch.left[standing.order[a + x]] = 0 if left[x] else 1
    return size


@kernel
def _try_cut(rows: Rows, rule: Rule, standing: CutState, scratch: Scratch, bucket: int, lefts: int,
             place: int) -> tuple[int, int]:  # fmt: skip
    """Try the marked cut of a bucket: apply it if it holds, otherwise restore everything."""
    a, b = standing.first[bucket], standing.last[bucket]
    _tally(rows, rule, standing, scratch, bucket)
    verdict, place = _judge(rows, rule, standing, scratch, bucket, lefts, place)
    if verdict == HOLDS:
        if standing.used[1] + standing.fit_last[bucket] - standing.fit_first[bucket] > len(standing.fits):
            verdict = CROWDED
        else:
            _take(rows, rule, standing, scratch, bucket, lefts)
    _wipe(rows, standing, scratch, a, b)
    return verdict, place


@kernel
def _tally(rows: Rows, rule: Rule, standing: CutState, scratch: Scratch, bucket: int) -> None:
    """Count the codes and pairs of both sides, and find known parts that fail alone: in the bucket, left and right."""
    count, part = 0, np.int32(-1)
    for x in range(standing.first[bucket], standing.last[bucket]):
        r = standing.by_pair[x]
        side, pair = scratch.left[r], rows.pair[r]
        for i in range(rows.known.shape[1]):
            scratch.codes[side, rows.known[r, i]] += 1
        if scratch.pairs[0, pair] + scratch.pairs[1, pair] == 0:
            if rows.part[pair] != part:
                part = rows.part[pair]
                scratch.here_first[part] = count
            scratch.here[count] = pair
            count += 1
            scratch.here_last[part] = count
        scratch.pairs[side, pair] += 1
    for x in range(count):
        pair = scratch.here[x]
        part = rows.part[pair]
        one, other = scratch.pairs[0, pair], scratch.pairs[1, pair]
        lefts, rights = scratch.codes[0, part], scratch.codes[1, part]
        scratch.fails[0, part] |= one + other > rule.allowed[lefts + rights]
        scratch.fails[1, part] |= one > rule.allowed[lefts]
        scratch.fails[2, part] |= other > rule.allowed[rights]


@kernel
def _wipe(rows: Rows, standing: CutState, scratch: Scratch, a: int, b: int) -> None:
    """Reset what `tally` counted for these positions."""
    for x in range(a, b):
        r = standing.by_pair[x]
        scratch.pairs[:, rows.pair[r]] = 0
        for i in range(rows.known.shape[1]):
            scratch.codes[:, rows.known[r, i]] = 0
        scratch.fails[:, rows.known[r, rows.place]] = 0


@kernel
def _weights(rows: Rows, rule: Rule, codes: Ints, profile: Codes, sides: Sides) -> tuple[float, float, float]:
    """The weight per row that matches a profile, in a bucket and in its left and right side; 0 where it does not fit."""
    lefts, rights = sides.lefts, sides.rights
    size = lefts + rights
    whole, one, other = (1.0, 1.0, 1.0) if rule.by_size else (1.0 / size, 1.0 / max(lefts, 1), 1.0 / max(rights, 1))
    for i in range(len(profile)):
        if i != rows.place:
            here, there = codes[0, profile[i]], codes[1, profile[i]]
            whole *= (here + there) / size
            one *= here / max(lefts, 1)
            other *= there / max(rights, 1)
    return whole, one if sides.here else 0.0, other if sides.there else 0.0


@kernel
def _fits(codes: Ints, profile: Codes) -> bool:
    for code in profile:  # noqa: SIM110 - a generator is slow when compiled
        if codes[code] == 0:
            return False
    return True


@kernel
def _judge(rows: Rows, rule: Rule, standing: CutState, scratch: Scratch, bucket: int, lefts: int,
           place: int) -> tuple[int, int]:  # fmt: skip
    """Whether the profiles of a bucket, from one index on, hold after the cut; and where the check ended."""
    rights = standing.last[bucket] - standing.first[bucket] - lefts
    fits = standing.fits[standing.fit_first[bucket] : standing.fit_last[bucket]]
    for x in range(place, len(fits)):
        q = fits[x]
        profile = rows.profiles[q]
        part = profile[rows.place]
        here, there = _fits(scratch.codes[0], profile), _fits(scratch.codes[1], profile)
        failing = standing.failing[q] - scratch.fails[0, part]
        failing += (scratch.fails[1, part] if here else 0) + (scratch.fails[2, part] if there else 0)
        if failing == 0:
            continue
        if standing.matches[q] - 1 + here + there == 1:
            return FAILS, x
        verdict = _compare_masses(rows, rule, standing, scratch, q, Sides(lefts, rights, here, there))
        if verdict != HOLDS:
            return verdict, x
    return HOLDS, len(fits)


@kernel
def _compare_masses(rows: Rows, rule: Rule, standing: CutState, scratch: Scratch, q: int, sides: Sides) -> int:
    """Decide by the masses after a cut."""
    profile = rows.profiles[q]
    part = profile[rows.place]
    whole, one, other = _weights(rows, rule, scratch.codes, profile, sides)
    more = one * scratch.codes[0, part] + other * scratch.codes[1, part]
    less = whole * (scratch.codes[0, part] + scratch.codes[1, part])
    total = standing.total[q] - less + more
    rounding_error = standing.rounding_error[q] + ROUNDING * (standing.total[q] + less + more)
    if total <= TINY or rounding_error > WORN * total:
        return UNDECIDED
    top = 0.0
    for x in range(scratch.here_first[part], scratch.here_last[part]):
        pair = scratch.here[x]
        n, m = scratch.pairs[0, pair], scratch.pairs[1, pair]
        top = max(top, standing.mass[rows.shift[q] + pair] - whole * (n + m) + one * n + other * m)
    if standing.top[q] > (rule.limit - 2 * NEAR) * total:  # a value outside this bucket might exceed the limit
        for at in range(rows.starts[q], rows.starts[q + 1]):
            pair = at - rows.shift[q]
            if scratch.pairs[0, pair] + scratch.pairs[1, pair] == 0:
                top = max(top, standing.mass[at])
    near = NEAR * total + rounding_error
    if top > rule.limit * total + near:
        return FAILS
    return HOLDS if top < rule.limit * total - near else UNDECIDED


@kernel
def _take(rows: Rows, rule: Rule, standing: CutState, scratch: Scratch, bucket: int, lefts: int) -> None:
    """Replace a bucket by the two sides of its cut: in `fits` the left side replaces it, the right one is appended."""
    a, b, new = standing.first[bucket], standing.last[bucket], standing.used[0]
    first, last, end = standing.fit_first[bucket], standing.fit_last[bucket], standing.used[1]
    at, right, stale = first, end, 0
    for x in range(first, last):
        q = standing.fits[x]
        here, there = _fits(scratch.codes[0], rows.profiles[q]), _fits(scratch.codes[1], rows.profiles[q])
        if _change(rows, rule, standing, scratch, q, Sides(lefts, b - a - lefts, here, there)):
            scratch.stale[stale] = q
            stale += 1
        if here:
            standing.fits[at] = q
            at += 1
        if there:
            standing.fits[right] = q
            right += 1
    _divide(standing.order, scratch.left, a, b, lefts)
    _divide(standing.by_pair, scratch.left, a, b, lefts)
    standing.alive[bucket] = 0
    for side in range(2):
        standing.alive[new + side] = 1
        standing.first[new + side] = a if side == 0 else a + lefts
        standing.last[new + side] = a + lefts if side == 0 else b
        standing.fit_first[new + side] = first if side == 0 else end
        standing.fit_last[new + side] = at if side == 0 else right
    standing.used[0], standing.used[1] = new + 2, right
    for x in range(stale):
        _recompute_mass(rows, rule, standing, scratch.stale[x])


@kernel
def _divide(order: Codes, left: Codes, a: int, b: int, lefts: int) -> None:
    """Partition the rows of a bucket stably: left rows before right rows."""
    was = order[a:b].copy()
    at, right = a, a + lefts
    for r in was:
        if left[r] == 0:
            order[at] = r
            at += 1
        else:
            order[right] = r
            right += 1


@kernel
def _change(rows: Rows, rule: Rule, standing: CutState, scratch: Scratch, q: int, sides: Sides) -> bool:
    """Update the masses of one profile by the cut of a bucket; whether rounding errors are too large."""
    part = rows.profiles[q, rows.place]
    whole, one, other = _weights(rows, rule, scratch.codes, rows.profiles[q], sides)
    for x in range(scratch.here_first[part], scratch.here_last[part]):
        pair = scratch.here[x]
        n, m = scratch.pairs[0, pair], scratch.pairs[1, pair]
        standing.mass[rows.shift[q] + pair] += one * n + other * m - whole * (n + m)
    more = one * scratch.codes[0, part] + other * scratch.codes[1, part]
    less = whole * (scratch.codes[0, part] + scratch.codes[1, part])
    standing.rounding_error[q] += ROUNDING * (standing.total[q] + less + more)
    standing.total[q] += more - less
    standing.matches[q] += sides.here + sides.there - 1
    failing = (scratch.fails[1, part] if sides.here else 0) + (scratch.fails[2, part] if sides.there else 0)
    standing.failing[q] += failing - scratch.fails[0, part]
    standing.top[q] = _largest(standing.mass[rows.starts[q] : rows.starts[q + 1]]) if standing.failing[q] > 0 else np.inf
    return standing.rounding_error[q] > WORN / 2 * standing.total[q]


@kernel
def _largest(numbers: Reals) -> float:
    top = 0.0
    for number in numbers:
        top = max(top, number)
    return top


@kernel
def holders(standing: CutState, q: int) -> Ints:
    """Find the buckets that a profile fits into."""
    found, count = np.empty(standing.matches[q], np.int64), 0
    for bucket in range(standing.used[0]):
        if standing.alive[bucket]:
            lo, hi = standing.fit_first[bucket], standing.fit_last[bucket]
            if position(standing.fits, lo, hi, q) >= 0:
                found[count] = bucket
                count += 1
    return found[:count]


@kernel
def _recompute_mass(rows: Rows, rule: Rule, standing: CutState, q: int) -> None:
    """Recompute the masses of one profile from its buckets, without earlier rounding errors."""
    mass = standing.mass[rows.starts[q] : rows.starts[q + 1]]
    mass[:] = 0.0
    profile, counts = rows.profiles[q], np.zeros(rows.profiles.shape[1], np.int64)
    total = 0.0
    for bucket in holders(standing, q):
        a, b = standing.first[bucket], standing.last[bucket]
        counts[:] = 0
        for r in standing.order[a:b]:
            for i in range(len(profile)):
                counts[i] += rows.known[r, i] == profile[i]
        weight = 1.0 if rule.by_size else 1.0 / (b - a)
        for i in range(len(profile)):
            weight *= counts[i] / (b - a) if i != rows.place else 1.0
        x = a
        while x < b:
            pair, run = rows.pair[standing.by_pair[x]], x
            while x < b and rows.pair[standing.by_pair[x]] == pair:
                x += 1
            if rows.part[pair] == profile[rows.place]:
                mass[rows.shift[q] + pair - rows.starts[q]] += weight * (x - run)
                total += weight * (x - run)
    standing.total[q], standing.top[q] = total, _largest(mass)
    standing.rounding_error[q] = ROUNDING / 4 * (standing.matches[q] + 4) * total


@kernel
def begin(rows: Rows, rule: Rule, standing: CutState, scratch: Scratch) -> None:
    """Start with one bucket of all rows, into which every profile fits; `left` is 0 everywhere."""
    n = len(rows.known)
    _tally(rows, rule, standing, scratch, whole(0))
    for q in range(len(rows.profiles)):
        part = rows.profiles[q, rows.place]
        _, weight, _ = _weights(rows, rule, scratch.codes, rows.profiles[q], Sides(n, whole(0), truth(True), truth(False)))
        for x in range(scratch.here_first[part], scratch.here_last[part]):
            pair = scratch.here[x]
            standing.mass[rows.shift[q] + pair] = weight * scratch.pairs[0, pair]
        standing.total[q] = weight * scratch.codes[0, part]
        standing.top[q] = np.inf
        standing.rounding_error[q], standing.matches[q], standing.failing[q] = (
            ROUNDING * standing.total[q],
            1,
            scratch.fails[1, part],
        )
    _wipe(rows, standing, scratch, whole(0), n)
