"""Compiler options of all kernels, and progress reports while kernels are compiled.

A kernel is compiled at its first call, and its machine code is cached on disk (`caching`). By default, numba also compiles each
function that a kernel calls as if Python called it: with two wrappers, optimised separately, as machine code, in a cache file;
and then once more inside every caller. Here a function is compiled like that only when Python calls it. Inside another kernel
it is a *part*: its code is linked unoptimised and optimised once, inside the caller. The same holds for functions of numba's
library, such as `np.empty`. `target` saves numba's compiler further work.

Compiling takes time at the first call, so kernels also avoid the expensive functions of the library: sorting, searching, and
slices assigned to slices (numba also compiles the text of their error message) are loops here. The wheel contains no compiled
code, because such code is specific to one processor and one release of numba.

`bare` functions are compiled without reference counts. Numba counts references to each array of a tuple whenever a function
takes it, with atomic instructions; where a step takes 20 nanoseconds that is most of its time, and threads that share arrays
wait for one another. A bare function may read and write arrays and call other bare ones; it must not create, keep or
return any.

Pass integers to kernels as `whole` and booleans as `truth`: numba compiles a function again for every literal, such as 0 or
False, and for every width of a number.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from typing import Any, TypeVar, cast

import numpy as np
from llvmlite.binding import parse_assembly
from numba.core import event
from numba.core.caching import NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.errors import TypingError
from numba.core.registry import CPUDispatcher
from numba.core.target_extension import dispatcher_registry, jit_registry, target_registry
from numba.np import linalg

from closeknit.kernels.caching import KernelCache, cache_folder
from closeknit.kernels.target import KernelTarget, TargetCompiler

if "numba.np.arraymath" not in sys.modules:  # it loads scipy.linalg just to see that it is installed, which closeknit requires
    _ensure_blas, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    import_module("numba.np.arraymath")
    linalg.ensure_blas = _ensure_blas

Function = TypeVar("Function", bound=Callable[..., Any])
CompileProgress = Callable[[int, int], None]

whole: Callable[[int], int] = cast(Any, np.int64)
truth: Callable[[bool], bool] = cast(Any, np.bool_)


WRAPPER = "_ZN7cpython"  # how numba's names of functions that Python calls begin


class _KernelCode(JITCodeLibrary):
    """A code library that Python calls. It is optimised as a whole, not also function by function.

    The wrapper that unpacks the arguments runs once per call and is as long as the tuples that it unpacks: it is not optimised.
    """

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout
        for function in ll_module.functions:
            if function.name.startswith(WRAPPER) and not function.is_declaration:
                function.add_function_attribute("noinline")
                function.add_function_attribute("optnone")

    def serialize_using_object_code(self) -> tuple[str, str, tuple[bytes, bytes]]:
        """Return the machine code and the names in it; numba would add code for other functions to inline, which parts have."""
        self._ensure_finalized()
        names = (each.name for each in self.get_defined_functions())
        listed = parse_assembly("\n".join(f'define void @"{name}"() {{ ret void }}' for name in names))
        return self.name, "object", (self._get_compiled_object(), listed.as_bitcode())


class _PartCode(JITCodeLibrary):
    """A code library that is only linked into kernels."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _KernelCompiler(TargetCompiler):
    """Compiles a function for Python.

    Numba compiles its own functions again for every set of flags of a caller. So the flags change only here, after numba has
    copied the set that it compares with.
    """

    def define_pipelines(self) -> Any:
        """Define numba's passes without the C wrapper."""
        state = self.state
        state.flags.no_cfunc_wrapper = True
        state.library = _KernelCode(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super().define_pipelines()


class _PartCompiler(TargetCompiler):
    """Compiles a function for use by other kernels."""

    def define_pipelines(self) -> Any:
        """Define numba's passes up to the code for the linker."""
        state = self.state
        state.flags.no_compile = state.flags.no_cfunc_wrapper = state.flags.no_cpython_wrapper = True
        state.library = _PartCode(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()

    def compile_extra(self, func: Any) -> Any:
        """Compile under a new key: numba looks code up by its entry point, which a part does not have."""
        found = super().compile_extra(func)
        key = object()
        self.state.targetctx.insert_user_function(key, found.fndesc, [found.library])
        return found._replace(entry_point=key)


class _LibraryPart(CPUDispatcher):
    """A function of numba's library that only kernels call."""

    def compile(self, sig: Any) -> Any:
        """Compile for these types. Unlike numba's method it neither looks for a cache file nor times each step."""
        args = tuple(sig)
        if args not in self.overloads:
            data = {"dispatcher": self, "args": args, "return_type": None}
            with self._compiling_counter, event.trigger_event("numba:compile", data=data):
                self.overloads[args] = self._compiler.compile(args, None)  # type: ignore[attr-defined]
        return self.overloads[args].entry_point  # type: ignore[attr-defined]


def _library_part(**options: Any) -> Callable[[Any], _LibraryPart]:
    return lambda function: _LibraryPart(function, targetoptions=options, pipeline_class=_PartCompiler)


target_registry["closeknit"] = KernelTarget
dispatcher_registry[KernelTarget] = CPUDispatcher
jit_registry[KernelTarget] = _library_part


class _Part(_LibraryPart):
    """A function that only kernels call."""


class Kernel(CPUDispatcher):
    """A function compiled at its first call: completely for Python, as a part for other kernels. It must not be recursive."""

    def compile(self, sig: Any) -> Any:
        """Compile for these types, or load cached code. Garbage collection is off meanwhile: it takes a sixth of the time."""
        collects = gc.isenabled()
        gc.disable()
        try:
            self._enable_caching()
            return super().compile(sig)
        finally:
            if collects:
                if not gc.get_freeze_count():  # moves live objects to the oldest generation, else the next collection scans all
                    gc.freeze()
                    gc.unfreeze()
                gc.enable()

    @cached_property
    def part(self) -> Any:
        """The dispatcher that other kernels call."""
        return _Part(self.py_func, self.locals, self.targetoptions, pipeline_class=_PartCompiler)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return the types of a call by another kernel; other numba code passes tuples differently and is refused."""
        if self.typingctx.callstack[0].target is not KernelTarget:
            raise TypingError(f"{self.py_func.__name__} is a kernel, and only kernels call it; decorate its caller as one")
        return self.part.get_call_template(args, kws)

    def get_overload(self, sig: Any) -> Any:
        """Return the code for a call by another kernel."""
        return self.part.get_overload(sig)

    def _enable_caching(self) -> None:
        """Cache the machine code on disk if a folder is writable."""
        cached: Any = self._cache
        if isinstance(cached, NullCache) and cache_folder() and os.path.exists(self.py_func.__code__.co_filename):
            self._cache: Any = KernelCache(self.py_func)

    def list_callees(self) -> list[Kernel]:
        """List the kernels that this one calls directly."""
        named = (self.py_func.__globals__.get(name) for name in self.py_func.__code__.co_names)
        return [each for each in named if isinstance(each, Kernel)]


def _build_decorator(**options: Any) -> Callable[[Function], Function]:
    def decorate(function: Function) -> Function:
        options_of_all = {"nopython": True, "nogil": True}
        return cast(Function, Kernel(function, targetoptions=options_of_all | options, pipeline_class=_KernelCompiler))

    return decorate


kernel = _build_decorator()
bare: Any = _build_decorator(_nrt=False)
inlined = _build_decorator(forceinline=True)


class _Count(event.Listener):
    """Count of kernels and parts compiled so far in this process, and of those known to follow."""

    def __init__(self) -> None:
        self.begun, self.depth, self.known, self.watchers = 0, 0, set[Any](), list[CompileProgress]()

    def on_start(self, event: Any) -> None:
        """Count and report a function when its compilation starts."""
        begun = event.data["dispatcher"]
        if isinstance(begun, (Kernel, _Part)):
            self.begun += 1
            self.depth += 1
            if isinstance(begun, Kernel):
                self._foresee(begun)
            self._report(self.begun, max(self.begun, len(self.known)))

    def on_end(self, event: Any) -> None:
        """Report the end when no compilation is left."""
        if isinstance(event.data["dispatcher"], (Kernel, _Part)):
            self.depth -= 1
            if self.depth == 0:
                self._report(0, 0)

    def _foresee(self, begun: Kernel) -> None:
        self.known.add(begun)
        waiting = begun.list_callees()
        while waiting:
            each = waiting.pop()
            if each.part not in self.known:
                self.known.add(each.part)
                waiting += each.list_callees()

    def _report(self, begun: int, known: int) -> None:
        for progress in self.watchers:
            progress(begun, known)


_count = _Count()
event.register("numba:compile", _count)


@contextmanager
def watch_compiling(progress: CompileProgress) -> Iterator[None]:
    """Call `progress(i, n)` when the compilation of the i-th kernel of this process starts, and `progress(0, 0)` at the end.

    `n` is the number of kernels known so far: it grows when a further kernel is needed.

    >>> seen = []
    >>> @kernel
    ... def doubled(x):
    ...     return x + x
    >>> with watch_compiling(lambda i, n: seen.append(n >= i)):
    ...     doubled(2)
    4
    >>> seen
    [True, True]
    """
    _count.watchers.append(progress)
    try:
        yield
    finally:
        _count.watchers.remove(progress)
