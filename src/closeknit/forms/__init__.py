"""Forms: how a release is written and read back; one file per form."""

from closeknit.core.table import Form
from closeknit.forms.bucketized import Bucketized, bucketized
from closeknit.forms.generalized import Generalized, generalized
from closeknit.forms.multiset import Multiset, multiset
from closeknit.forms.permuted import Permuted, permuted
from closeknit.forms.perturbed import Perturbed, perturbed
from closeknit.forms.sliced import Sliced, sliced

REGISTRY: dict[str, type[Form]] = {form.name: form for form in (Generalized, Bucketized, Sliced, Multiset, Permuted, Perturbed)}

__all__ = [
    "REGISTRY",
    "Bucketized",
    "Generalized",
    "Multiset",
    "Permuted",
    "Perturbed",
    "Sliced",
    "bucketized",
    "generalized",
    "multiset",
    "permuted",
    "perturbed",
    "sliced",
]
