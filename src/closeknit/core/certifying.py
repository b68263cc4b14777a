"""The notes of a certificate, and the refusal of guarantees that are not met."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from closeknit.core.certificate import Guarantee
from closeknit.core.combined_secrets import Secret, parts, render_secret
from closeknit.core.domain import Domain
from closeknit.core.errors import BadInput, Unsatisfiable, suggest_name
from closeknit.core.formulas import RISK, formula_notes
from closeknit.core.look_alikes import look_alike_notes
from closeknit.core.model import Model
from closeknit.core.reading import Reading
from closeknit.core.schema import Schema
from closeknit.core.vacuity import vacuity_notes


def list_cell_notes(reading: Reading, models: Sequence[Model], allow_vacuous: bool) -> list[str]:
    """Notes that follow from written cells: vacuous guarantees, values that look alike, cells that a spreadsheet may run.

    Args:
        reading: the written cells and their classes.
        models: the guarantees.
        allow_vacuous: whether a vacuous guarantee is noted; otherwise it is refused.
    """
    vacuous = vacuity_notes(models, lambda model: reading.of(model.column).classes, allow_vacuous)
    alike = look_alike_notes(references_of(reading, models))
    return [*vacuous, *alike, *note_formulas(formula_notes(reading.columns))]


def references_of(reading: Reading, models: Sequence[Model]) -> dict[Secret, tuple[Domain, NDArray[np.int64]]]:
    """The leaves of every guaranteed attribute and their rows.

    Args:
        reading: the written cells and their classes.
        models: the guarantees.
    """
    names = dict.fromkeys(model.column for model in models if model.column)
    histograms = {name: reading.of(name).classes.histograms[name] for name in names}
    return {name: (histogram.domain, histogram.reference) for name, histogram in histograms.items()}


def note_formulas(found: Sequence[str]) -> tuple[str, ...]:
    """Notes on cells that a spreadsheet may run, with the risk.

    Args:
        found: what was found; nothing is noted where nothing was.
    """
    return (*found, RISK) if found else ()


def refuse_unmet(guarantees: Sequence[Guarantee]) -> None:
    """Raise `Unsatisfiable` for the first guarantee that is not met.

    Args:
        guarantees: as they were measured on the written cells.
    """
    for guarantee in guarantees:
        if not guarantee.met:
            level = "no bound" if guarantee.measured is None else f"{guarantee.measured:.6g}"
            attested = guarantee.status == "attested"
            measured = "not met, as the data owner measures it" if attested else f"the written release reaches {level}"
            raise Unsatisfiable(guarantee.text, measured, guarantee.why or "request less, or choose another method")


COUNTS_PERSONS = "k and diversity count persons; who they are is not published"


def persons_note(schema: Schema, checked: bool = True) -> str:
    """What k counts, in a sentence. `checked`: whether rows that share an identifier were refused.

    >>> persons_note(Schema(identifier=["name"], rows_are_persons=True))
    'every row was counted as a person of its own, as the data owner declares (rows_are_persons)'
    """
    if schema.person is not None:
        return COUNTS_PERSONS
    declared = ", as the data owner declares (rows_are_persons)" if schema.rows_are_persons else ""
    unchecked = "; whether an identifier repeats was not checked" if schema.unique and not checked else ""
    return f"every row was counted as a person of its own{declared}{unchecked}"


def alone_note(class_of: NDArray[np.integer], persons: NDArray[np.integer]) -> str:
    """How many persons no other person of their class can be exchanged with, because no other has as many rows.

    Args:
        class_of: class of each row; all rows of a person are in one class.
        persons: person of each row.

    >>> alone_note(np.array([0, 0, 0, 0, 1, 1]), np.array([7, 7, 8, 9, 4, 5]))
    'eps-transparency does not cover 1 of 5 persons: each is the only one of their class with their number of rows'
    """
    _, first, rows = np.unique(persons, return_index=True, return_counts=True)
    _, alike = np.unique(np.stack([class_of[first], rows]), axis=1, return_counts=True)
    alone = int((alike == 1).sum())
    of = f"{alone:,} of {len(rows):,} persons: each is"
    return f"eps-transparency does not cover {of} the only one of their class with their number of rows"


def list_codings(schema: Schema) -> list[str]:
    """What was done to values before a method saw them, per column.

    Args:
        schema: the published columns.
    """
    return [note for name, kind in {**schema.quasi, **schema.sensitive}.items() for note in kind.notes(name)]


def check_columns(schema: Schema, models: Sequence[Model]) -> None:
    """Refuse guarantees about columns that are not sensitive, or about several that they cannot cover together.

    Args:
        schema: the columns.
        models: the guarantees.
    """
    for model in models:
        for name in parts(model.column):
            if name not in schema.sensitive:
                right = suggest_name(name, schema.sensitive)
                raise BadInput(f"{model.name} is requested for a column that is not sensitive", column=name, right=right)
        if not isinstance(model.column, str | None) and not model.joins:
            right = "request it for each column separately, or t_closeness for them together"
            raise BadInput(f"{model.name} cannot cover {render_secret(model.column)}", right=right)


def list_unprotected(schema: Schema, models: Sequence[Model]) -> list[str]:
    """Columns that are published and that no guarantee covers, alone or together."""
    guaranteed = {name for model in models for name in parts(model.column)}
    notes, secrets = [], tuple(schema.sensitive)
    if len(secrets) > 1 and not any({*parts(model.column)} == {*secrets} for model in models):
        notes.append(f"no guarantee covers {render_secret(secrets)}: one value may disclose another")
    notes += [
        f"column '{name}' is sensitive, and no guarantee covers it" for name in schema.sensitive if name not in guaranteed
    ]
    return notes + [f"column '{name}' is published as it is, without any protection" for name in schema.plain]
