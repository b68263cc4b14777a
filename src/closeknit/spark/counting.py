"""Methods that scale by counting: the driver gets the distinct combinations of cells with their counts, and no row.

The method works on these as on a table with weights. It returns a level for each column, and each executor writes its own rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from closeknit.core.combined_secrets import parts
from closeknit.core.errors import BadInput
from closeknit.core.method import Method, ignore_progress
from closeknit.core.model import Model
from closeknit.core.row_sorting import groups, row_order
from closeknit.core.table import Form, Partition, Table
from closeknit.io.batches import Block, codes_in, numbers_in
from closeknit.spark.coding import Coding, count_combinations
from closeknit.spark.packed_frame import PackedFrame
from closeknit.spark.row_writing import WrittenPacks, write_block

MOST = 20_000_000  # distinct combinations that the driver can hold


def write_by_counts(
    coding: Coding, coded: PackedFrame, method: Method, models: Sequence[Model], form: Form, seed: int
) -> WrittenPacks:
    """The rows as a method writes them that was run on counted combinations."""
    outcome = method.run(count_table(coding, coded, models), models, seed, ignore_progress)
    form = outcome.form or form
    return WrittenPacks(write_levels(coding, coded, form, seed), form, outcome.notes)


def write_levels(coding: Coding, coded: PackedFrame, shape: Form, seed: int) -> PackedFrame:
    """Write each row separately, in a form of whole levels."""
    shared = coded.share(coding)

    def write(block: Block) -> Block:
        coding = shared.value
        table, order = coding.table(block)
        sizes = [domain.size + 1 for domain in coding.head.quasi_domains]
        alike = Partition(*groups(list(zip(table.quasi.T, sizes, strict=True)), len(table)))  # a level applies to each cell
        return write_block(coding, shape, block, order, table, alike, seed)

    return coded.each(write)


def count_table(coding: Coding, coded: PackedFrame, models: Sequence[Model]) -> Table:
    """Each combination of quasi cells and guaranteed sensitive values once, with its rows as weight."""
    schema, head = coding.head.schema, coding.head
    secrets = [name for name in schema.sensitive if any(name in parts(model.column) for model in models)]
    places = [list(schema.sensitive).index(name) for name in secrets]
    names = [*coding.quasi_names, *(f"s{j}" for j in places)]
    found = count_combinations(coded, names, MOST)
    if found is None:
        right = "give columns coarser kinds, leave some out, or choose mondrian"
        raise BadInput(f"more than {MOST:,} distinct combinations of cells occur, too many for the driver", right=right)
    domains = (*head.quasi_domains, *(head.sensitive_domains[j] for j in places))
    codes = codes_in(found, names)
    order = row_order([(codes[:, j], domain.size + 1) for j, domain in enumerate(domains)], len(codes))
    codes, rows, d = codes[order], numbers_in(found, "rows")[order], len(head.quasi_domains)
    quasi, sensitive = np.ascontiguousarray(codes[:, :d]), np.ascontiguousarray(codes[:, d:])
    narrow = schema.model_copy(update={"sensitive": {name: schema.sensitive[name] for name in secrets}})
    table = replace(
        head,
        schema=narrow,
        quasi=quasi,
        sensitive=sensitive,
        sensitive_domains=domains[d:],
        shown=tuple(head.shown[j] for j in places),
        rows=np.arange(len(codes)),
        weights=rows,
        references={},
    )
    return table.join_secrets(coding.joints)
