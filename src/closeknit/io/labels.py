"""`Labels`: what a statistical file says about its columns: labels of variables and of values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from closeknit.core.columns import Column


@dataclass(frozen=True)
class Labels:
    """Labels of the columns of a statistical file.

    Args:
        variables: the label of each column that has one.
        values: per column with value labels, the label of each code.

    >>> labels = Labels({"sex": "Sex of the patient"}, {"sex": {1.0: "male", 2.0: "female"}})
    >>> labels.apply("sex", Column(np.array([1.0, 2.0]), np.array([1, 0, -1]))).cells()
    ['female', 'male', None]
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[Any, str]] = field(default_factory=dict)

    def apply(self, name: str, column: Column) -> Column:
        """The labels instead of the codes, if every value that occurs has one; otherwise the column as it is.

        A column with values that have no label holds numbers, of which some codes have a meaning of their own.
        """
        labels = self.values.get(name, {})
        if not labels or not len(column.values) or len(column.values) > len(labels):
            return column
        values = column.values.tolist()
        if any(value not in labels for value in values):
            return column
        return column.with_texts([labels[value] for value in values])

    def codes_of(self, name: str, column: Column) -> tuple[Column, dict[Any, str]] | None:
        """The codes of written cells that are all labels, and the labels that occur; None if a cell is something else."""
        labels = self.values.get(name, {})
        code_of = {label: code for code, label in labels.items()}
        texts = column.drop_unused().values.tolist()
        if not texts or len(code_of) < len(labels) or any(text not in code_of for text in texts):
            return None
        codes = np.array([code_of[text] for text in texts], dtype=object if isinstance(code_of[texts[0]], str) else None)
        return Column(codes, column.drop_unused().codes), {code_of[text]: text for text in sorted(texts)}
