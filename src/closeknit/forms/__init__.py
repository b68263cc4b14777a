"""How a result is written and read back; one file per form."""

from closeknit.forms.generalized import Generalized, generalized

REGISTRY = {form.name: form for form in (Generalized,)}

__all__ = ["REGISTRY", "Generalized", "generalized"]
