"""From Python to machine code: `kernel`, `scalar`, `apart`, `helper`, `inlined`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numba
from numba.extending import overload

from thresher.engine.codecache import CodeCache
from thresher.engine.linking import ApartCompiler, KernelCompiler, LinkedCompiler

_ALL: Any = {"error_model": "numpy", "_nrt": True, "no_cfunc_wrapper": True}
_KERNEL: Any = {**_ALL, "nogil": True, "pipeline_class": KernelCompiler}
OPTIONS: Any = {**_ALL, "pipeline_class": LinkedCompiler}
"""Of functions that kernels call"""
BORROWING: Any = {**OPTIONS, "_nrt": False}
"""Of those that neither make nor return arrays: they count no references, which costs more than all else."""
_config: Any = numba.config  # its settings are made at run time
if "NUMBA_OPT" not in os.environ:
    # Below this level reference counts go only after loops were vectorised, and keep them from being so.
    _config.OPT = type(_config.OPT)("max")


class Kernel:
    """A generic compiled function with its disk cache."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.compiled: Any = numba.njit(**_KERNEL)(function)
        """the Numba dispatcher, for calls from other kernels and for `stats`"""
        self.compiled._cache = CodeCache(function)

    def __call__(self, *args: Any) -> Any:
        """The compiled function."""
        return self.compiled(*args)

    def for_parts(self, *parts: object) -> Any:
        """The function to call with these parts, looked up once by each Model: the compiled one."""
        return self.compiled


def kernel(function: Callable[..., Any]) -> Kernel:
    """Compile `function` on first call, without the GIL, cached on disk for all later processes."""
    return Kernel(function)


def _called_with(options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        overload(function, jit_options=options, strict=False)(lambda *args: function)
        return function

    return decorate


scalar = _called_with({**BORROWING, "forceinline": True})
"""Decorator of a function that parts and kernels call, which neither makes nor returns an array; plain Python
when called from there. LLVM puts it where it is called: parsers become up to a half faster by that."""
apart = _called_with({**BORROWING, "forceinline": False, "pipeline_class": ApartCompiler})
"""The same for a function that is seldom called, from several places: it is made machine code of once."""
helper = _called_with(OPTIONS)
"""The same for a function that does: it counts references, which takes longer to compile and to run."""
inlined = _called_with({**OPTIONS, "forceinline": True})
"""A helper called once an example: LLVM finds it too large to put it where it is called, and then saves
dozens of registers around it."""
