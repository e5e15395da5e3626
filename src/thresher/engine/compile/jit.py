"""Decorators that compile Python functions: `kernel`, `scalar`, `compiled_apart`, `helper`, `inlined`.

Functions that only kernels call are translated once, and turned into machine code in the kernel.

Numba makes a whole library of each function that a kernel calls: it optimises it, generates machine code
that never runs, and links it into its callers, where all of that happens again at each level of calls.
Here such a function is only translated and linked; its callers optimise it together with their own code.
That halves the compile time of a kernel, and the machine code is as good.

The two hooks that Numba has for that are `pipeline_class` and a library class. A first training run with an
empty cache took 13.7 s of processor before, 7.9 after (the svmlight parser 8.0 and 3.2, `learn` 3.2 and 1.6,
`find_or_add` 1.5 and 0.5). The loops are as fast: `sgd` 3.7 and 3.8, `ftrl` 6.4 and 6.5, `ft-ftrl` 11.5 and
11.9 ns per non-zero; averages of many outputs became 20 % faster. LLVM is told to inline scalars: left to
itself, it made the parsers of svmlight and VW text 20 % slower.

Functions of one coordinate do no reference counting (`BORROWING`). Numba counts references to an array at
every call, and removes the counting only if it can analyse the control flow. One branch too many prevented
that: `ft-ftrl` took 28.5 ns per non-zero, and 12.0 without the counts; `normalized` took 10.1 and 9.3. (`sgd`
takes 3.8, `ftrl` 6.5.) The price is that such a function must neither create nor return an array, nor call
one that does: the array would be freed twice, or never. The compiler checks that, after a crash showed why.

Loops over outputs are vectorised only if LLVM finds no reference counts in them. Numba removes these between
two rounds of optimisation, and by default the first round does too little; at level ``max`` (used unless the
user sets NUMBA_OPT) it does the same work as the second. ns per non-zero to read and to write a softmax model
of 20 classes: `fobos` 20.7 and 11.8 before, 9.9 and 6.0 after; `sgd` 15.1 and 8.4 before, 4.7 and 4.1 after.
Compile times and the loops of one output did not change. Lower levels save at most 5 %, since half of
compiling is type inference; other pass managers gained nothing.

Some functions are compiled once and not inlined (`compiled_apart`). LLVM inlines everything it is told to,
and the number parser was in the VW parser five times. Labels, weights and scales now share one copy, and so
do the sorts of short rows: optimising takes a quarter less. LLVM's own heuristics inlined them all the same,
so it is forbidden.

What costs time to compile is avoided. Single instructions and copies of a clock (`fetch`, `snapshot`) are
emitted in place. Numba makes a library, with machine code, of `in` with a tuple for each length, and of `min`
and `max` for each pair of types, again in every process: parsers test bits (`among`), and loops do not call
them. Allocating an array in a kernel brings in numpy's allocation code, 0.1 s: `learn` and the cell parser
get their room as an argument. Assigning to whole slices costs a second, for the error messages about shapes,
so kernels write loops.
"""

from __future__ import annotations

import gc
import inspect
import os
from collections.abc import Callable
from typing import Any

import numba
from llvmlite import binding
from numba.core import codegen, compiler, typed_passes
from numba.core.compiler_machinery import register_pass
from numba.core.errors import TypingError
from numba.extending import overload

from thresher.engine.compile.codecache import CodeCache
from thresher.engine.compile.notices import compiling, work_of
from thresher.engine.compile.part_errors import check_returned, in_kernel, in_method

_codegen: Any = codegen  # these modules have no type hints
_llvm: Any = binding
_compiler: Any = compiler
_passes: Any = typed_passes
_register: Any = register_pass
_APART = set[Callable[..., Any]]()
"""Functions that LLVM must not inline"""


class _NoAddresses:
    """A code generator for functions without an address, which need no environment."""

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)

    def set_env(self, name: str, env: Any) -> None:
        """Do nothing. Functions loaded from a cache have no environment either."""


class _Linked(_codegen.JITCodeLibrary):
    """A library to link into others, without optimisation or machine code of its own."""

    @property
    def codegen(self) -> Any:
        return _NoAddresses(self._codegen)

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self) -> Any:
        """Serialise as Numba does, but without machine code."""
        return self.name, "bitcode", self._get_module_for_linking().as_bitcode()

    @classmethod
    def revived(cls, codegen: Any, name: str, _: str, bitcode: bytes) -> Any:
        """The library, from its serialised form."""
        library = cls(codegen, name)
        library._final_module = _llvm.parse_bitcode(bitcode)
        library._finalize_final_module()
        return library

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
    """Lower typed statements to LLVM, into a `_Linked` library."""

    _name = "linked_lowering"

    def run_pass(self, state: Any) -> bool:
        if not state.flags.nrt:
            _check_borrows(state)
        state.library = _Linked(state.targetctx.codegen(), state.func_id.func_qualname)
        done: bool = super().run_pass(state)
        if state.func_id.func in _APART:
            function = state.library._final_module.get_function(state.cr.fndesc.mangled_name)
            function.add_function_attribute("noinline")
        return done


def _check_borrows(state: Any) -> None:
    """TypingError if a function creates arrays without counting references: freed twice, or never."""
    made = [state.return_type]
    for expression, signature in state.calltypes.items():
        if getattr(expression, "op", "") == "call":
            called = getattr(state.typemap[expression.func.name], "typing_key", None)
            made += [signature.return_type] * inspect.isfunction(called)
    for one in made:
        if state.targetctx.data_model_manager[one].contains_nrt_meminfo():
            name = state.func_id.func_qualname
            raise TypingError(
                f"{name} makes or returns {one}, but does not count references: compute with numbers only, or"
                " make it a helper"
            )


def _revived(
    context: Any, library: Any, fndesc: Any, env: Any, signature: Any, objectmode: bool, lifted: Any,
    annotation: str, initialisers: Any, environments: Any,
) -> Any:  # fmt: skip
    """A function from the cache, registered with its callers, like `CompileResult._rebuild`."""
    for initialise in initialisers:
        initialise()
    found = _Linked.revived(context.codegen(), *library)
    entry = context.get_executable(found, fndesc, env)
    context.insert_user_function(entry, fndesc, [found])
    fields = dict.fromkeys(_compiler.CR_FIELDS) | {
        "typing_context": context.typing_context,
        "target_context": context,
        "library": found,
        "environment": env,
        "entry_point": entry,
        "fndesc": fndesc,
        "signature": signature,
        "objectmode": objectmode,
        "lifted": lifted,
        "reload_init": initialisers,
        "referenced_envs": environments,
    }
    return _compiler.CompileResult(**fields)


class LinkedCompiler(_compiler.CompilerBase):
    """Compiles functions that only kernels call."""

    def compile_extra(self, function: Any) -> Any:
        """Load the function from the cache, or compile and cache it, for use in other kernels too."""
        state, cache = self.state, CodeCache(function)
        if function.__closure__ or " at 0x" in str(state.args):  # function arguments have no stable name
            return self._compiled(function)
        words = state.flags.get_mangle_string()
        reduced = cache.kept(state.args, words)
        if reduced is not None:
            return _revived(state.targetctx, *reduced)
        compiled = self._compiled(function)
        cache.keep(state.args, compiled, words)
        return compiled

    def _compiled(self, function: Any) -> Any:
        with in_method(function, self.state.args):
            compiled = super().compile_extra(function)
        check_returned(function, self.state.args, compiled.signature.return_type)
        return compiled

    def define_pipelines(self) -> list[Any]:
        """Numba's pipeline with another last step."""
        passes = _compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        for place, (one, words) in enumerate(passes.passes):
            if one is _passes.NativeLowering:
                passes.passes[place] = (_LinkedLowering, words)
        passes.finalize()
        return [passes]


class KernelCompiler(_compiler.Compiler):
    """Compiles kernels. The garbage collector is off meanwhile: it would find nothing."""

    def compile_extra(self, function: Any) -> Any:
        """The compiled function."""
        work = work_of(f"{function.__module__}.{function.__name__}", self.state.args)
        wanted = gc.isenabled()
        gc.disable()
        try:
            with compiling(work), in_kernel():
                return super().compile_extra(function)
        finally:
            if wanted:
                gc.enable()


_ALL: Any = {"error_model": "numpy", "_nrt": True, "no_cfunc_wrapper": True}
_KERNEL: Any = {**_ALL, "nogil": True, "pipeline_class": KernelCompiler}
OPTIONS: Any = {**_ALL, "pipeline_class": LinkedCompiler}
"""For functions that kernels call"""
BORROWING: Any = {**OPTIONS, "_nrt": False}
"""For functions that neither create nor return arrays: no reference counting, which is costly."""
_config: Any = numba.config  # its settings are defined at run time
if "NUMBA_OPT" not in os.environ:
    # At lower levels, reference counts are removed only after vectorisation, and so prevent it.
    _config.OPT = type(_config.OPT)("max")


class Kernel:
    """A generic compiled function, cached on disk."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.compiled: Any = numba.njit(**_KERNEL)(function)
        """The Numba dispatcher, for calls from other kernels and for `stats`"""
        self.cache = self.compiled._cache = CodeCache(function)

    def __call__(self, *args: Any) -> Any:
        """Call the compiled function."""
        return self.compiled(*args)

    def for_parts(self, *parts: object) -> Any:
        """The function for these parts: here the compiled one. Each Model looks it up once."""
        return self.compiled


kernel = Kernel
"""Decorator: compile a function on first call, without the GIL; the code is cached for later processes."""


def _called_with(options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        overload(function, jit_options=options, strict=False)(lambda *args: function)
        return function

    return decorate


scalar = _called_with({**BORROWING, "forceinline": True})
"""Decorator for functions called by parts and kernels that neither create nor return arrays; plain Python
when called from Python. LLVM inlines them, which makes parsers up to 50 % faster."""


def compiled_apart(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a function without new arrays that is called rarely, from several places.

    It is compiled once in a kernel, and not inlined.
    """
    _APART.add(function)
    return _called_with({**BORROWING, "forceinline": False})(function)


helper = _called_with(OPTIONS)
"""Decorator for functions called by kernels that create arrays: with reference counting, slower to compile
and to run."""
inlined = _called_with({**OPTIONS, "forceinline": True})
"""A helper that is called once per example: LLVM would find it too large to inline, and would then save
dozens of registers around each call."""
