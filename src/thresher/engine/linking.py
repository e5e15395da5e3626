"""Functions that compiled loops are made of: translated once, made machine code of once, in the loop.

Numba makes a whole library of each function that a kernel calls: it is optimised, turned into machine code
that nothing ever runs, and linked into its callers, where all of that is done again, at each level of calls.
Here a function that only kernels call is translated and linked, no more; its callers optimise it with
themselves. That halves the time that a kernel takes to compile, and the machine code is as good.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
from collections.abc import Iterator
from typing import Any

from numba.core import codegen, compiler, typed_passes
from numba.core.compiler_machinery import register_pass
from numba.core.errors import TypingError

from thresher.engine.notices import compiling

_codegen: Any = codegen  # untyped, all of them
_compiler: Any = compiler
_passes: Any = typed_passes
_register: Any = register_pass


class _NoAddresses:
    """A code generator for functions that have no address, and so no place for an environment."""

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)

    def set_env(self, name: str, env: Any) -> None:
        """Nothing. Functions that come from a cache have none either."""


class _Linked(_codegen.JITCodeLibrary):
    """A library to be linked into others: not optimised, not made machine code of."""

    @property
    def codegen(self) -> Any:
        return _NoAddresses(self._codegen)

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


@_register(mutates_CFG=True, analysis_only=False)
class _LinkedLowering(_passes.NativeLowering):
    """From typed statements to LLVM's, in a library of the kind above."""

    _name = "linked_lowering"

    def run_pass(self, state: Any) -> bool:
        if not state.flags.nrt:
            _check_borrows(state)
        state.library = _Linked(state.targetctx.codegen(), state.func_id.func_qualname)
        done: bool = super().run_pass(state)
        return done


@_register(mutates_CFG=True, analysis_only=False)
class _ApartLowering(_LinkedLowering):
    """The same, of a function that LLVM is to leave where it is."""

    _name = "apart_lowering"

    def run_pass(self, state: Any) -> bool:
        done: bool = super().run_pass(state)
        function = state.library._final_module.get_function(state.cr.fndesc.mangled_name)
        function.add_function_attribute("noinline")
        return done


def _check_borrows(state: Any) -> None:
    """TypingError for arrays that a function makes without counting: they would be freed twice or never."""
    made = [state.return_type]
    for expression, signature in state.calltypes.items():
        if getattr(expression, "op", "") == "call":
            called = getattr(state.typemap[expression.func.name], "typing_key", None)
            made += [signature.return_type] * inspect.isfunction(called)
    for one in made:
        if state.targetctx.data_model_manager[one].contains_nrt_meminfo():
            name = state.func_id.func_qualname
            raise TypingError(f"{name} makes or returns {one}, but counts no references: make it a helper")


class LinkedCompiler(_compiler.CompilerBase):
    """Compiles what is called by kernels only."""

    lowering: type = _LinkedLowering

    def define_pipelines(self) -> list[Any]:
        """Numba's own, but for the last step."""
        passes = _compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        for place, (one, words) in enumerate(passes.passes):
            if one is _passes.NativeLowering:
                passes.passes[place] = (self.lowering, words)
        passes.finalize()
        return [passes]


class ApartCompiler(LinkedCompiler):
    """Compiles what is seldom called by kernels, once for all its calls."""

    lowering = _ApartLowering


class KernelCompiler(_compiler.Compiler):
    """Compiles kernels. Nothing that it makes is garbage before it is done, so none is looked for."""

    def compile_extra(self, function: Any) -> Any:
        """The compiled function."""
        with _no_collection(), compiling():
            return super().compile_extra(function)


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    wanted = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if wanted:
            gc.enable()
