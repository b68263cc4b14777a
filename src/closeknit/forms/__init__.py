"""Forms: how a release is written and read back; one file per form."""

from closeknit.core.table import Form
from closeknit.forms.bucketized import Bucketized
from closeknit.forms.bucketized import bucketized as bucketized
from closeknit.forms.generalized import Generalized
from closeknit.forms.generalized import generalized as generalized
from closeknit.forms.multiset import Multiset
from closeknit.forms.multiset import multiset as multiset
from closeknit.forms.permuted import Permuted
from closeknit.forms.permuted import permuted as permuted
from closeknit.forms.perturbed import Perturbed
from closeknit.forms.perturbed import perturbed as perturbed
from closeknit.forms.sliced import Sliced
from closeknit.forms.sliced import sliced as sliced

REGISTRY: dict[str, type[Form]] = {form.name: form for form in (Generalized, Bucketized, Sliced, Multiset, Permuted, Perturbed)}
