"""One file per algorithm; each decides who stands with whom."""

from closeknit.core.method import Method
from closeknit.methods.stack_and_deal import StackAndDeal

REGISTRY: dict[str, type[Method]] = {method.name: method for method in (StackAndDeal,)}

__all__ = ["REGISTRY", "StackAndDeal"]
