"""One file per algorithm; each decides who stands with whom."""

from closeknit.core.method import Method
from closeknit.methods.burel import Burel
from closeknit.methods.sabre import Sabre
from closeknit.methods.stack_and_deal import StackAndDeal

REGISTRY: dict[str, type[Method]] = {method.name: method for method in (StackAndDeal, Sabre, Burel)}

__all__ = ["REGISTRY", "Burel", "Sabre", "StackAndDeal"]
