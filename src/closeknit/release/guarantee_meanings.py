"""What each guarantee means for the people in a table: the model's own sentence for laymen."""

from __future__ import annotations

from closeknit.core.certificate import Guarantee
from closeknit.core.params import build_from_form
from closeknit.core.subsets import render_over
from closeknit.models import REGISTRY


def meaning(guarantee: Guarantee, class_word: str = "class") -> str:
    """A guarantee in plain words; for a model that is not registered, its own line.

    >>> model, text = {"k_anonymity": {"k": 6}}, "k-anonymity, k = 6"
    >>> k = Guarantee(model=model, text=text, column=None, requested=">= 6", met=True, status="recomputable")
    >>> meaning(k)[:87]
    'An adversary who knows every quasi-identifier of a person still finds at least 6 rows t'
    """
    if not REGISTRY.keys() & guarantee.model.keys():
        return guarantee.text
    model = build_from_form("model", guarantee.model, REGISTRY)
    if model.over:
        class_word = f"group of rows with equal cells in {render_over(model.over)}"
    sentence: str = model.explain(class_word, guarantee.status == "attested")
    return sentence
