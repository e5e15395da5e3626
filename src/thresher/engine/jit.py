"""Decorators that compile Python functions: `kernel`, `scalar`, `compiled_apart`, `helper`, `inlined`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numba
from numba.extending import overload

from thresher.engine.codecache import CodeCache
from thresher.engine.linking import KernelCompiler, LinkedCompiler, NoAliasCompiler

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
        self.compiled._cache = CodeCache(function)

    def __call__(self, *args: Any) -> Any:
        """Call the compiled function."""
        return self.compiled(*args)

    def for_parts(self, *parts: object) -> Any:
        """The function for these parts: here the compiled one. Each Model looks it up once."""
        return self.compiled


def kernel(function: Callable[..., Any]) -> Kernel:
    """Compile `function` on first call, without the GIL; the code is cached on disk for later processes."""
    return Kernel(function)


def _called_with(options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        overload(function, jit_options=options, strict=False)(lambda *args: function)
        return function

    return decorate


scalar = _called_with({**BORROWING, "forceinline": True})
"""Decorator for functions called by parts and kernels that neither create nor return arrays; plain Python
when called from Python. LLVM inlines them, which makes parsers up to 50 % faster."""
compiled_apart = _called_with({**BORROWING, "forceinline": False, "pipeline_class": NoAliasCompiler})
"""The same for a function that is called rarely, from several places: compiled once, not inlined."""
helper = _called_with(OPTIONS)
"""The same for a function that does create arrays: with reference counting, slower to compile and to run."""
inlined = _called_with({**OPTIONS, "forceinline": True})
"""A helper that is called once per example: LLVM would find it too large to inline, and would then save
dozens of registers around each call."""
