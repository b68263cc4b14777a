"""Membership disclosure: does a sliced release reveal whether a person is in the table at all?

A bucket admits every combination of the values in its column groups: the tuples of its rows, and others that no row has. An
adversary who knows a whole tuple can count the buckets that admit it. Where the others, the *fakes*, are many and match as many
buckets as the originals do, that number reveals nothing.

Source: the paper on slicing, sec. 3 and 5.1.
Different from the source:
- a bucket of k rows and c column groups admits at most k^c - k fakes, and buckets share many of theirs. Here distinct fakes
  with distinct values are counted; the sum of k^c - k is reported as `bound` (Table 1(f): 24 compared with 20).
- in addition to three classes of matching buckets there is one number: `auc`, the probability that an original matches more
  buckets than a fake, ties counting half. 1/2 is no information, 1 separates originals from fakes without error.
- a fake is any combination, likely or not, but an adversary asks about people. Where tuples of people outside the table are
  given, originals are compared with these too, admitted or not: a grouping of similar rows brings `auc` to 1/2 and still
  shows who is in the table, since it admits hardly anyone else.

Cost: the sum over buckets of the product of distinct values, where that is at most `most`; else `draws` tuples are sampled and
fakes and `auc` come with a standard error.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from closeknit.attacks.fakes import Tallies, distinct, tally_fakes, tally_outsiders
from closeknit.core.certificate import Record
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.core.limits import MOST_DRAWS, MOST_PROPOSALS
from closeknit.core.params import whole
from closeknit.core.reading import Reading
from closeknit.core.row_sorting import Coded, groups
from closeknit.core.table import WrittenTable
from closeknit.kernels.arrays import Int32

MOST = 1 << 30  # steps: seconds
DRAWS = 1 << 18
FEW, SOME = 10, 20  # the classes of matching buckets in the source


class Matches(Record):
    """How many tuples match how many buckets; whole numbers where all were counted.

    Args:
        few: Tuples that match at most 10 buckets.
        some: Tuples that match 11 to 20 buckets.
        many: Tuples that match more than 20 buckets.

    >>> Matches.of(np.array([0, 5, 3])).few
    8
    """

    few: int | float
    some: int | float
    many: int | float

    @classmethod
    def of(cls, tally: NDArray[np.int64] | NDArray[np.float64]) -> Matches:
        """Summarize how many tuples match how many buckets.

        Args:
            tally: The number of tuples that match exactly 0, 1, 2 ... buckets.
        """
        few, some, many = (part.sum().item() for part in np.split(tally, [FEW + 1, SOME + 1]))
        return cls(few=few, some=some, many=many)


class Against(Record):
    """Originals compared with other tuples.

    Args:
        count: The number of other tuples.
        error: Standard error of an estimated count; None where all were counted.
        matches: How many buckets the other tuples match.
        auc: P(an original matches more buckets), ties as halves; None where there is nothing to compare.
        auc_error: Standard error of an estimated `auc`; None where all were counted.
        auc_exact: `auc` as a fraction, where all were counted.
    """

    count: int | float
    error: float | None
    matches: Matches
    auc: float | None
    auc_error: float | None
    auc_exact: str | None

    @classmethod
    def of(cls, tallies: Tallies) -> Against:
        """Return tallies as a record.

        Args:
            tallies: Originals and other tuples by the number of buckets they match.
        """
        auc = tallies.auc()
        return cls(
            count=tallies.count,
            error=tallies.error,
            matches=Matches.of(tallies.other),
            auc=None if auc is None else float(auc),
            auc_error=tallies.auc_error(),
            auc_exact=str(auc) if isinstance(auc, Fraction) else None,
        )


class Membership(Record):
    """What a release reveals about who is in the table; `str()` summarizes it.

    Args:
        buckets: Number of buckets.
        columns: Number of column groups.
        originals: Number of distinct tuples of the table.
        matches: How many buckets the originals match.
        fakes: Originals compared with combinations that no row has.
        bound: Sum over buckets of k^c - k: the source's upper bound on the fakes.
        quasi: Compared with fakes without the sensitive attribute; None where no known parts were given.
        outsiders: Compared with tuples of people outside that are no originals; None where no such people were given.
        admitted: Number of outsiders that the buckets admit.
    """

    buckets: int
    columns: int
    originals: int
    matches: Matches
    fakes: Against
    bound: int
    quasi: Against | None
    outsiders: Against | None
    admitted: int | None

    def __str__(self) -> str:
        if not self.fakes.count:
            return f"Buckets admit only the {self.originals:,} tuples of the table: whoever matches one is in the table."
        about = "" if self.fakes.error is None else "about "
        exact = self.quasi is not None and not self.quasi.count
        none = ", but none without the sensitive attribute: quasi-identifiers are published exactly" if exact else ""
        fakes = (
            f"In addition to {self.originals:,} original tuples the buckets admit {about}{self.fakes.count:,.0f} others{none}; "
            f"an original matches more buckets than one of these with probability {about}{self.fakes.auc:.3f} (1/2 means no "
            "information)."
        )
        if self.outsiders is None or self.outsiders.auc is None:
            return fakes
        people = f"{self.outsiders.count:,}"
        return (
            f"{fakes} Of {people} tuples of people outside the table {self.admitted:,} are admitted; an original matches more "
            f"buckets than one of the {people} with probability {self.outsiders.auc:.3f}."
        )


def membership(
    bucket_of: Int32,
    values: Int32,
    originals: Int32,
    known: Int32 | None = None,
    outsiders: Int32 | None = None,
    seed: int = 0,
    most: int = MOST,
    draws: int = DRAWS,
) -> Membership:
    """Count the tuples that buckets of column values admit, and how well buckets separate originals from these.

    Args:
        bucket_of: Bucket of each written row.
        values: [rows, groups] Code of the value of each written row in each column group; rows of different groups belong
            together by their bucket alone.
        originals: [tuples, groups] The table's tuples in the same codes, repeated or not.
        known: [rows, groups] Codes of the same values without the sensitive attribute (0 where nothing is left), for the
            fakes among quasi-identifiers.
        outsiders: [people, groups] Tuples of people outside the table in the codes of `values`; originals are left out.
        seed: Seed of the sample.
        most: Largest number of steps for counting all tuples.
        draws: Size of the sample where there are more.

    >>> values = np.array([[0, 0], [1, 1], [2, 2], [3, 3]], np.int32)
    >>> print(membership(np.array([0, 0, 1, 1], np.int32), values, values))
    In addition to 4 original tuples the buckets admit 4 others; an original matches more buckets than one of these with
    probability 0.500 (1/2 means no information).
    """
    most, draws = whole("most", most, 0, MOST_PROPOSALS), whole("draws", draws, 2, MOST_DRAWS)
    _refuse(bucket_of, values, originals, *(given for given in (known, outsiders) if given is not None))
    originals = distinct(originals)
    found, quasi, out = tally_fakes(bucket_of, values, originals, seed, most, draws), None, None
    if known is not None:
        seen = np.column_stack([_translate_values(*columns) for columns in zip(values.T, known.T, originals.T, strict=True)])
        quasi = tally_fakes(bucket_of, known, distinct(seen), seed, most, draws)
    if outsiders is not None:
        out = tally_outsiders(bucket_of, values, originals, distinct(outsiders))
    c, sizes = values.shape[1], np.bincount(bucket_of)
    return Membership(
        buckets=int((sizes > 0).sum()),
        columns=c,
        originals=len(originals),
        matches=Matches.of(found.original),
        fakes=Against.of(found),
        bound=sum(k**c - k for k in sizes.tolist()),
        quasi=Against.of(quasi) if quasi else None,
        outsiders=Against.of(out) if out else None,
        admitted=int(out.other[1:].sum()) if out else None,
    )


def membership_of(
    reading: Reading, written: WrittenTable, secret: str, outsiders: Columns | None = None, seed: int = 0
) -> Membership:
    """Measure the membership disclosure of a release in column groups, with its private row order.

    Args:
        reading: The release as its form reads it (`reading_of`).
        written: The written table with the original row of each cell.
        secret: Sensitive attribute that the adversary does not know.
        outsiders: People outside the table, with cells as the release writes them.
        seed: Seed of the sample.

    >>> import closeknit as ck
    >>> from closeknit.core.table import Partition
    >>> schema, form = ck.Schema(quasi={"age": ck.flat()}, sensitive={"wage": ck.flat()}), ck.bucketized()
    >>> table = schema.encode(Columns.of({"age": [1, 2], "wage": [3, 4]}))
    >>> written = form.write(table, Partition.of([0, 0]))
    >>> membership_of(form.read(written.columns, schema), written, "wage").fakes.count
    2
    """
    if not reading.column_groups:
        right = "choose a form of column groups: sliced, bucketized, multiset or permuted"
        raise BadInput("the cells of a row belong together in this release, so it has no fakes", right=right)
    values, others = group_codes(reading, outsiders)
    originals = written.align_codes(values, reading.column_groups)
    return membership(reading.class_of, values, originals, reading.slices(secret).known, others, seed)


def group_codes(
    reading: Reading, outsiders: Columns | None, column_groups: Sequence[Sequence[str]] | None = None
) -> tuple[Int32, Int32 | None]:
    """Encode the cells of each column group, with the same codes for written rows and outsiders.

    `column_groups` can omit columns that are unknown for the outsiders.

    >>> import closeknit as ck
    >>> schema = ck.Schema(quasi={"age": ck.flat()}, sensitive={"wage": ck.flat()})
    >>> reading = ck.bucketized().read(Columns.of({"bucket": [1, 1], "age": [1, 2], "wage": [3, 4]}), schema)
    >>> [codes.tolist() for codes in group_codes(reading, Columns.of({"age": [2, 5]}), [("age",)])]
    [[[0], [1]], [[1], [2]]]
    """
    rows = reading.columns.rows
    both = rows + (outsiders.rows if outsiders is not None else 0)
    wanted = reading.column_groups if column_groups is None else column_groups
    codes = [groups([_encode_shared(name, reading.columns, outsiders) for name in group], both)[0] for group in wanted]
    values = np.column_stack(codes)
    return values[:rows], None if outsiders is None else values[rows:]


def _encode_shared(name: str, columns: Columns, outsiders: Columns | None) -> Coded:
    """Encode one column, its written cells first, then those of the outsiders; equal texts are equal cells."""
    both = [columns[name], *([] if outsiders is None else [outsiders[name]])]
    texts = [np.array(["", *map(str, column.values.tolist())]) for column in both]  # the first entry serves code -1
    found, shared = np.unique(np.concatenate(texts), return_inverse=True)
    starts = itertools.accumulate(map(len, texts[:-1]), initial=1)
    return np.concatenate([shared[column.codes + start] for column, start in zip(both, starts, strict=True)]), len(found)


def _refuse(bucket_of: Int32, values: Int32, originals: Int32, *more: Int32) -> None:
    if values.ndim != 2 or values.size == 0 or len(bucket_of) != len(values):
        right = "give one bucket for each row of values, and at least one row and one column group"
        raise BadInput(f"{len(bucket_of)} buckets do not match values of shape {values.shape}", right=right)
    if len(originals) == 0:
        raise BadInput("there are no original tuples", right="give those of the table, in the codes of the values")
    for given in (originals, *more):
        if given.ndim != 2 or given.shape[1] != values.shape[1]:
            right = f"give as many column groups as the values have: {values.shape[1]}"
            raise BadInput(f"tuples of shape {given.shape} do not match the values", right=right)


def _translate_values(values: Int32, known: Int32, wanted: Int32) -> Int32:
    """Return the known part of each wanted value; one that is not written (its row is suppressed) gets a code of its own."""
    size = int(max(values.max(), wanted.max(initial=0))) + 1
    part = int(known.max()) + 1 + np.arange(size)
    part[values] = known
    return part[wanted].astype(np.int32)
