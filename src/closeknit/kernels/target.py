"""The compilation target of kernels: this processor, with less work for the compiler than numba's own target.

- For each addition numba searches all overloads of addition, when it infers types and again when it generates code. Here a
  function of its library remembers the types of its calls; a tenth of the calls are looked up.
- Numba passes a tuple to a function field by field, and an array in it as seven or more fields: `Costs`, `Guard` and `Room`
  become some 300 arguments of every call. Here a named tuple is passed as one pointer, without a copy.
- Two of numba's passes, for closures and for expressions of whole arrays, analyse every function several times. Here they are
  skipped where a function has neither.

The functions of numba's library that a kernel calls are compiled for this target too, see `compiling`.
"""

from __future__ import annotations

from functools import cache
from types import CodeType
from typing import Any

import numpy as np
from llvmlite.ir import Argument
from llvmlite.ir.instructions import LoadInstr
from numba.core import ir, types
from numba.core.cgutils import alloca_once_value, gep_inbounds
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import register_pass
from numba.core.datamodel import DataModelManager, default_manager
from numba.core.datamodel.models import OpaqueModel, TupleModel
from numba.core.datamodel.registry import register_default
from numba.core.lowering import Lower
from numba.core.target_extension import CPU
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import NativeLowering, NopythonRewrites
from numba.core.typing import Context
from numba.core.untyped_passes import InlineClosureLikes


class KernelTarget(CPU):
    """The name of the target in numba's registry."""


class _KnownFunction(types.Function):
    """A function of numba's library that remembers the types of its calls."""

    def __init__(self, templates: Any) -> None:
        super().__init__(templates)
        self._known: dict[Any, Any] = {}

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """Return the signature of a call; functions with and without reference counts are compiled separately."""
        key = tuple(args), tuple(kws.items()), ConfigStack.top_or_none().nrt
        if key not in self._known:
            found = super().get_call_type(context, args, kws)
            if not all(each.is_precise() for each in args):
                return found
            self._known[key] = found
        return self._known[key]


register_default(_KnownFunction)(OpaqueModel)
_known_function = cache(lambda function: _KnownFunction(function.templates))


class _Types(Context):
    """Numba's typing context, with functions that remember the types of their calls."""

    def __init__(self, context: Any) -> None:
        self.__dict__ = context.__dict__

    def _lookup_global(self, gv: Any) -> Any:
        found = super()._lookup_global(gv)
        return _known_function(found) if type(found) is types.Function else found


_types = cache(_Types)


class _ByReference(TupleModel):
    """The data model of a tuple that functions take as a pointer."""

    def get_argument_type(self) -> Any:
        """Return the pointer type."""
        return self.get_value_type().as_pointer()

    def as_argument(self, builder: Any, value: Any) -> Any:
        """Return the address of the tuple: an argument is passed on, anything else is put on the stack."""
        if isinstance(value, LoadInstr) and isinstance(value.operands[0], Argument):
            return value.operands[0]
        return alloca_once_value(builder, value)

    def from_argument(self, builder: Any, value: Any) -> Any:
        """Load the tuple."""
        return builder.load(value)


_models = DataModelManager().chain(default_manager)
_models.register(types.NamedTuple, _ByReference)


class _Lower(Lower):
    """Generates the code of a function. Tuple arguments are not copied: the caller keeps them alive during the call."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._places: dict[str, Any] = {}

    def lower_inst(self, inst: Any) -> None:
        """Lower an instruction; assigning an argument to a variable needs no code."""
        if isinstance(inst, ir.Assign):
            name = inst.target.name
            assert name not in self._places  # in this form every variable is assigned once
            if isinstance(inst.value, ir.Arg) and isinstance(self.typeof(name), types.NamedTuple):
                self._places[name] = self.fnargs[inst.value.index].operands[0]
                return
        super().lower_inst(inst)

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        """Lower an expression; of a tuple argument only the requested field is loaded."""
        if expr.op != "getattr" or expr.value.name not in self._places:
            return super().lower_expr(resty, expr)
        kind = self.typeof(expr.value.name)
        at = kind.fields.index(expr.attr)
        field = self.builder.load(gep_inbounds(self.builder, self._places[expr.value.name], 0, at))
        found = self.context.cast(self.builder, field, kind.types[at], resty)
        self.incref(resty, found)
        return found

    def loadvar(self, name: str) -> Any:
        """Load the value of a variable."""
        return self.builder.load(self._places[name]) if name in self._places else super().loadvar(name)

    def delvar(self, name: str) -> None:
        """Release a variable; tuple arguments belong to the caller."""
        if name not in self._places:
            super().delvar(name)


@register_pass(mutates_CFG=True, analysis_only=False)
class _InlineClosures(InlineClosureLikes):
    _name = "closeknit_inline_closures"

    def run_pass(self, state: Any) -> bool:
        """Inline closures and comprehensions, if the function has any."""
        return any(isinstance(each, CodeType) for each in state.func_id.code.co_consts) and super().run_pass(state)


@register_pass(mutates_CFG=True, analysis_only=False)
class _FuseArrays(NopythonRewrites):
    _name = "closeknit_fuse_arrays"

    def run_pass(self, state: Any) -> bool:
        """Fuse expressions of whole arrays, if the function has any."""
        assigned = (inst for block in state.func_ir.blocks.values() for inst in block.find_insts(ir.Assign))
        return any(_is_array_expression(each, state.typemap) for each in assigned) and super().run_pass(state)


def _is_array_expression(assigned: ir.Assign, typemap: Any) -> bool:
    value = assigned.value
    if not isinstance(value, ir.Expr) or not isinstance(typemap.get(assigned.target.name), types.Array):
        return False
    if value.op != "call":
        return value.op in ("unary", "binop")
    function = typemap.get(value.func.name)
    return isinstance(function, types.Function) and isinstance(function.typing_key, np.ufunc)


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):
    _name = "closeknit_lowering"
    lowering_class = _Lower


PASSES = {InlineClosureLikes: _InlineClosures, NopythonRewrites: _FuseArrays, NativeLowering: _Lowering}


class TargetCompiler(Compiler):
    """Compiles a function for this target."""

    def __init__(self, typingctx: Any, *rest: Any) -> None:
        super().__init__(typingctx, *rest)
        self.state.typingctx = self.state.targetctx.typing_context = _types(typingctx)
        self.state.targetctx.target = KernelTarget
        self.state.targetctx.data_model_manager = _models

    def define_pipelines(self) -> Any:
        """Define numba's passes, some replaced by those of this target."""
        (passes,) = super().define_pipelines()
        passes.passes = [(PASSES.get(each, each), text) for each, text in passes.passes]
        passes.finalize()
        return [passes]
