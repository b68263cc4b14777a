"""Slicing: columns that say much of each other stay together, and the links between such groups are broken inside buckets.

Guarantees. l-diverse slicing of every sensitive column where `l` is given (`models.DiverseSlicing`), and whatever else is
asked of the classes in which a sensitive attribute is seen: a bucket, and in it the part with the same known cells next to
the sensitive attribute.

Source: the paper on slicing, sec. 2.2 (diverse slicing), 3 and 4 (attribute partition, column generalization, tuple partition).

Different from the source:
- the sensitive attribute is alone in its group unless `attached` or `columns` say otherwise: a unique value next to it
  discloses it (and correlation drives exactly such columns together). What shares its group is generalized by whole levels
  until each of its values, over the whole table, meets the guarantees (`generalize=False` refuses instead);
- `rare` does the same for any group: no combination of its cells occurs in fewer rows, so that no person is found by one group;
- the table as one bucket is tested before it is cut, and a bucket is closed only when no column can be cut;
- `diverse="local"` (default) asks diversity of every bucket by itself. It implies `"size"` and `"paper"`, for which buckets are
  weighed, and needs a look at the bucket alone. The printed test weighs buckets wrongly unless they are of one size;
- a bucket has at least `min_bucket` rows (default: l, and 2): a bucket of one row is that row in clear;
- `cuts="strict"` (default) keeps equal values together. Every person then fits into one bucket only, so the paper's several
  matching buckets, and what it says of membership, are not there; `"relaxed"`, `"random"` and `"spread"` have them.
  `"spread"` is ours: every bucket is a systematic sample of the table, so that fakes fit into as many buckets as true rows
  do. So is `"near"`: buckets of as few rows as diversity allows, with different sensitive values and like quasi-identifiers,
  as in Anatomy;
- buckets that are not cut and do not meet a guarantee are merged.

Cost: one pass for each pair of columns, then that of Mondrian; `size` and `paper` look at the profiles of a bucket as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import cast

import numpy as np
from numpy.typing import NDArray

from closeknit.core.combined_secrets import Secret, parts
from closeknit.core.errors import BadInput, Unsatisfiable
from closeknit.core.exact import Number, fraction
from closeknit.core.geometry import scales
from closeknit.core.method import Method, Progress, ignore_progress
from closeknit.core.model import Model
from closeknit.core.params import choice, number, whole
from closeknit.core.reading import list_known_columns
from closeknit.core.schema import Schema
from closeknit.core.slices import Slices
from closeknit.core.table import Outcome, Partition, Table
from closeknit.fills.spreading import spread_buckets
from closeknit.forms import Generalized, Sliced, sliced
from closeknit.forms.grouped import ColumnGroups, encode_known
from closeknit.methods.anatomy import Anatomy
from closeknit.methods.incognito import Incognito
from closeknit.models import DiverseSlicing, KAnonymity
from closeknit.plans.attribute_partition import choose_columns
from closeknit.plans.correlation import HOW
from closeknit.search.diverse_cuts import Requested, diverse_partition
from closeknit.search.known_parts import judge_known_parts
from closeknit.search.refine import Cuts, refine_partition, root_holds
from closeknit.search.repair import repair_partition

DIVERSE = ("local", "size", "paper")
CUTS = ("strict", "relaxed", "random", "spread", "near")
USUAL_BUCKET = 100  # rows, where buckets are not cut


@dataclass(frozen=True)
class Slicing(Method):
    """Column groups and buckets for diverse slicing.

    Args:
        columns: How many column groups, or which; None groups by correlation.
        l: No value has a share above 1/l; None adds no guarantee.
        diverse: How buckets are weighed for `l`: "local", "size" or "paper".
        cuts: How buckets are made: by relaxed or random cuts, or "near" as in Anatomy.
        bucket: Rows of a bucket that is not cut.
        min_bucket: The least rows of a bucket.
        attached: The number of quasi-identifiers attached to the sensitive attributes.
        rare: The least rows of every combination of a group's known cells.
        generalize: Whether cells are generalized until no value next to the sensitive attribute discloses too much.
        bins: How numbers are binned, for the correlation alone.
        number: The name of the column with the bucket's number.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(300), ck.datasets.hospital_schema()
    >>> release = ck.anonymize(table, schema, [ck.TCloseness("disease", 0.3)], Slicing(columns=3, l=3))
    >>> release.certificate.ok, release.certificate.form["sliced"]["columns"][-1]
    (True, ['disease', 'stay', 'charge'])
    """

    name = "slicing"
    serves_both = True
    usual_form = "sliced"

    columns: int | ColumnGroups | None = None  # how many groups, or which
    l: Number | None = None
    diverse: str = DIVERSE[0]
    cuts: str = CUTS[0]
    bucket: int | None = None  # rows of a bucket that is not cut
    min_bucket: int | None = None
    attached: int = 0  # quasi-identifiers in the group of the sensitive attributes
    rare: int = 1  # rows that every combination of a group's known cells has
    generalize: bool = True
    bins: str = HOW[0]  # of numbers, for the correlation alone
    number: str = "bucket"  # the name of the column with the bucket's number

    def __post_init__(self) -> None:
        if not isinstance(self.columns, int | None) or isinstance(self.columns, bool):
            object.__setattr__(self, "columns", sliced(cast(ColumnGroups, self.columns)).columns)
        elif self.columns is not None:
            whole("columns", self.columns, least=2)
        if self.l is not None:
            number("l", self.l, least=1)
        choice("diverse", self.diverse, DIVERSE)
        choice("cuts", self.cuts, CUTS)
        choice("bins", self.bins, HOW)
        choice("generalize", self.generalize, (True, False))
        whole("attached", self.attached, least=0)
        whole("rare", self.rare, least=1)
        for name, size in (("bucket", self.bucket), ("min_bucket", self.min_bucket)):
            if size is not None:
                whole(name, size, least=2)
        if self.bucket is not None and self.cuts not in ("random", "spread"):
            right = "choose cuts 'random' or 'spread'"
            raise BadInput(f"bucket={self.bucket} has no meaning for cuts={self.cuts!r}", right=right)
        if self.diverse != "local" and self.l is None:
            raise BadInput(f"diverse={self.diverse!r} has no meaning without l", right="give l, a number of at least 1")
        if self.cuts == "near" and (self.l is None or number("l", self.l) <= 1):
            raise BadInput("cuts='near' means nothing without sensitive values to keep apart", right="give l, a number above 1")

    def guarantees(self, schema: Schema) -> tuple[Model, ...]:
        """Diverse slicing of every sensitive column."""
        if self.l is None:
            return ()
        return tuple(DiverseSlicing(name, self.l, self.diverse) for name in schema.sensitive)

    def run(self, table: Table, models: Sequence[Model], seed: int, progress: Progress) -> Outcome:
        """Attribute partition, column generalization, tuple partition."""
        if len(table) < self.least_rows:
            requested, hint = f"slicing into buckets of at least {self.least_rows:,} rows", "ask for less (min_bucket, l)"
            raise Unsatisfiable(requested, f"the table has {len(table):,} rows", hint)
        progress("columns", 0.15)
        groups = self.columns if isinstance(self.columns, tuple) else self._columns(table)
        form = sliced(groups, number=self.number)
        form.check(table.schema)
        form = replace(form, levels=self._levels(table, form, models) or None)
        if self.diverse == "local":
            partition = self._local(table, form, models, seed, progress)
        else:
            partition = self._weigh_buckets(table, form, models, seed, progress)
        notes = (f"columns {groups}, levels {form.levels or 'none'}", f"{partition.count:,} buckets")
        return Outcome(partition, form, notes, settled=self.diverse != "local")

    def _columns(self, table: Table) -> ColumnGroups:
        for name in table.schema.plain:
            right = "name the groups of columns, with this one in a group, or drop it"
            raise BadInput("is plain, and slicing does not know where to put it", column=name, right=right)
        return tuple(tuple(group) for group in choose_columns(table, cast(int | None, self.columns), self.attached, self.bins))

    @property
    def least_rows(self) -> int:
        """As `Method`: those of a bucket."""
        return max(2, ceil(fraction("l", self.l or 1)), self.min_bucket or 0)

    def _levels(self, table: Table, form: Sliced, models: Sequence[Model]) -> dict[str, int | str]:
        """Column generalization: of each group the finest levels at which no value discloses too much."""
        levels: dict[str, int | str] = {}
        for group in form.column_groups(table.schema):
            known = [name for name in list_known_columns(group, "", table.schema) if name in table.schema.quasi]
            requested = [model for model in models if set(parts(model.column)) & set(group)]
            requested += [KAnonymity(self.rare)] if self.rare > 1 else []
            coarser = [name for name in known if name not in table.schema.sensitive]
            if coarser and requested:
                levels |= self._levels_of(_restrict_table(table, coarser), requested)
        return levels

    def _levels_of(self, table: Table, models: Sequence[Model]) -> dict[str, int | str]:
        if not self.generalize:
            _refuse_disclosing(table, models)
            return {}
        form = Incognito().run(table, models, 0, ignore_progress).form
        assert isinstance(form, Generalized)
        return {name: level for name, level in (form.levels or {}).items() if level != 0}

    def _local(self, table: Table, form: Sliced, models: Sequence[Model], seed: int, progress: Progress) -> Partition:
        """Buckets that meet every guarantee by themselves."""
        known = _encode_known(table, form, models)
        table, judged = judge_known_parts(table, [*models, KAnonymity(self.least_rows)], known)
        if self.cuts not in ("strict", "relaxed"):
            return repair_partition(table, self._deal_buckets(table, form, seed, progress), judged)
        whole_table = Partition.whole(len(table))
        if not root_holds(table, judged):
            return whole_table
        return refine_partition(table, whole_table, judged, scales(table), Cuts(relaxed=self.cuts == "relaxed"), progress)

    def _weigh_buckets(self, table: Table, form: Sliced, models: Sequence[Model], seed: int, progress: Progress) -> Partition:
        """Buckets whose weighed sum keeps diversity, for every person."""
        if len(table.schema.sensitive) > 1 or any("release" not in model.needs for model in models):
            right = "ask for nothing else, or choose diverse='local'"
            raise BadInput(
                f"diverse={self.diverse!r} is about one sensitive attribute and goes with no other guarantee", right=right
            )
        (secret,) = table.schema.sensitive
        if self.cuts not in ("strict", "relaxed"):
            return self._deal_buckets(table, form, seed, progress)
        codes, domain = table.fold_values(secret).secret(secret)
        if (codes == domain.size).any():  # weighed shares count every row, and missing values must not: buckets hold alone
            return self._local(table, form, models, seed, progress)
        known = encode_known(table, form, secret)
        place = next(i for i, group in enumerate(form.column_groups(table.schema)) if secret in group)
        assert self.l is not None
        slices = Slices(np.zeros(len(table), dtype=np.int32), known, place, codes)
        requested = Requested(fraction("l", self.l), self.diverse, self.cuts == "relaxed", self.least_rows)
        return diverse_partition(table, slices, requested, progress)

    def _deal_buckets(self, table: Table, form: Sliced, seed: int, progress: Progress) -> Partition:
        """Buckets of a given size, the last one joined to its neighbour where it is too small; or as Anatomy makes them."""
        if self.cuts == "near":
            assert self.l is not None
            near = Anatomy(self.l).run(table, (), seed, progress).partition
            return repair_partition(table, near, [KAnonymity(self.least_rows)])
        size = max(self.bucket or min(USUAL_BUCKET, len(table)), self.least_rows)
        if self.cuts == "spread":
            bucket_of = spread_buckets(encode_known(table, form, ""), size, seed)
        else:
            bucket_of = np.empty(len(table), dtype=np.int32)
            bucket_of[np.random.default_rng(seed).permutation(len(table))] = np.arange(len(table)) // size
        last = int(bucket_of.max())
        if last > 0 and (bucket_of == last).sum() < self.least_rows:
            bucket_of[bucket_of == last] = last - 1
        return Partition.of(bucket_of)


def _restrict_table(table: Table, names: Sequence[str]) -> Table:
    """The same rows with these quasi-identifiers alone."""
    places = [list(table.schema.quasi).index(name) for name in names]
    schema = table.schema.model_copy(
        update={
            "quasi": {name: table.schema.quasi[name] for name in names},
            "importance": {name: weight for name, weight in table.schema.importance.items() if name in names},
        }
    )
    domains = tuple(table.quasi_domains[place] for place in places)
    return replace(table, schema=schema, quasi=table.quasi[:, places], quasi_domains=domains, suppressible=0)


def _refuse_disclosing(table: Table, models: Sequence[Model]) -> None:
    """Values that disclose too much by themselves, in every bucket there could be."""
    _, class_of = np.unique(table.quasi, axis=0, return_inverse=True)
    partition = Partition.of(class_of)
    classes = table.count_classes(partition)
    for model in models:
        if len(broken := np.flatnonzero(~model.holds(classes))):
            row = int(np.argmax(partition.class_of == broken[0]))
            named = zip(table.schema.quasi, table.quasi_domains, table.quasi[row].tolist(), strict=True)
            cells = ", ".join(f"{name} = {domain.labels(np.array([c]), np.array([c]))[0]}" for name, domain, c in named)
            rows = int(classes.sizes[broken[0]])
            measured = f"the {rows:,} rows with {cells} reach {model.levels(classes)[broken[0]]:.6g} in the whole table"
            hint = "let columns be generalized (generalize=True), or put them into another group"
            raise Unsatisfiable(model.describe(None), measured, hint)


def _encode_known(table: Table, form: Sliced, models: Sequence[Model]) -> dict[Secret, NDArray[np.int32]]:
    """What may be known next to each sensitive attribute that a guarantee is about; nothing where it is alone."""
    known: dict[Secret, NDArray[np.int32]] = {}
    for secret in dict.fromkeys(model.column for model in models if model.column is not None):
        groups = form.column_groups(table.schema)
        place = next(i for i, group in enumerate(groups) if parts(secret)[0] in group)
        if list_known_columns(groups[place], secret, table.schema):
            known[secret] = encode_known(table, form, secret)[:, place]
    return known
