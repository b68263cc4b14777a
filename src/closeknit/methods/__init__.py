"""One file per algorithm; each assigns rows to equivalence classes."""

from closeknit.core.method import Method
from closeknit.methods.anatomy import Anatomy
from closeknit.methods.burel import Burel
from closeknit.methods.fcm_draw import FcmDraw
from closeknit.methods.fixed_levels import FixedLevels
from closeknit.methods.fragmentation import Fragmentation
from closeknit.methods.incognito import Incognito
from closeknit.methods.knit import Knit
from closeknit.methods.microaggregation import Microaggregation
from closeknit.methods.mondrian import Mondrian
from closeknit.methods.pca_draw import PcaDraw
from closeknit.methods.sabre import Sabre
from closeknit.methods.slicing import Slicing
from closeknit.methods.soft_stop import SoftStop
from closeknit.methods.stack_and_deal import StackAndDeal

REGISTRY: dict[str, type[Method]] = {
    method.name: method
    for method in (
        StackAndDeal,
        Knit,
        Sabre,
        Burel,
        Mondrian,
        Incognito,
        Microaggregation,
        FcmDraw,
        PcaDraw,
        Fragmentation,
        Slicing,
        Anatomy,
        SoftStop,
        FixedLevels,
    )
}
