"""From Python to machine code: `kernel`, `scalar`, `helper`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Literal

import numba
from numba.extending import overload

from thresher.engine.codecache import CodeCache

OPTIONS: Any = {"error_model": "numpy", "_nrt": True}
BORROWING: Any = {**OPTIONS, "_nrt": False}
"""Of functions that make no array: they count no references, which would cost more than all else they do."""
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
        self.compiled: Any = numba.njit(nogil=True, **OPTIONS)(function)
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


def _jitable(inline: Literal["never", "always"]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        overload(function, jit_options=OPTIONS, strict=False, inline=inline)(lambda *args: function)
        return function

    return decorate


scalar = _jitable("always")
"""Decorator of a function called from parts and kernels, pasted in; plain Python when called from there."""
helper = _jitable("never")
"""The same, left to LLVM to inline: it compiles much faster, so paste in only what is slower otherwise."""
