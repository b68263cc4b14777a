"""The re-identification risk of the raw table under the roles of a draft, for the page on which roles are chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.core.kinds import Kind, flat, numeric
from closeknit.core.schema import Schema
from closeknit.risks.class_counts import ClassCounts
from closeknit.risks.risk import measure_risk
from closeknit.risks.risk_record import RiskRecord
from closeknit.web.desk.roles import BOTH, kind_of, missing_of, role_of


def measure_roles(columns: Columns, draft: Mapping[str, Any]) -> RiskRecord:
    """Measure the risk of the raw table for an adversary who knows the quasi-identifiers of the draft.

    Args:
        columns: The raw table.
        draft: The draft of a recipe.

    >>> table = Columns.of({"age": [41, 30, 30], "sex": ["f", "m", "m"]})
    >>> found = measure_roles(table, {"schema": {"quasi": {"age": "numeric"}, "plain": ["sex"]}})
    >>> found.uniques, found.attackers[0].average
    (1, 0.6666666666666666)
    """
    quasi: dict[str, Kind] = {}
    for name in columns:
        if role_of(draft, name) in ("quasi", BOTH):
            kind = kind_of(draft, name)
            quasi[name] = numeric() if kind == "numeric" or (isinstance(kind, dict) and "numeric" in kind) else flat()
    if not quasi:
        raise BadInput("no column has the role quasi", right="give it to columns that could identify a person")
    person = next((name for name in columns if role_of(draft, name) == "person"), None)
    schema = Schema(quasi=quasi, person=person, missing=missing_of(draft))
    needed = [*quasi, *([person] if person else [])]
    return measure_risk(ClassCounts.of_table(columns.select(needed), schema)).record
