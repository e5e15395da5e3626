"""Decorators that declare what is compiled: `kernel`, `scalar`, `compiled_apart`, `helper`, `inlined`.

Nothing here needs the compiler, whose import takes longer than the rest of a small command. What is declared
is told to Numba when something has to be compiled (`translate`); what was compiled is loaded from its file
and called without it (`machine`).

A call of a kernel compares what the arguments are with those of the call before: the dtype, number of axes
and memory order of arrays, and the classes of everything else, also inside tuples. Compiled code does that: a
call of `learn`, with 23 arguments, takes 1.2 µs, and took 5.4 through Numba's dispatcher.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

from thresher.engine.compile import codecache, machine

DECLARED: list[Callable[[], object]] = []
"""What Numba has to be told before it compiles, in this order"""
PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
"""Whether kernels run as plain Python, as all that Numba compiles does then"""
_one_at_a_time = threading.RLock()


def _translate() -> Any:
    return import_module("thresher.engine.compile.translate")


def declare(subject: Any, way: str, method: Callable[..., object]) -> None:
    """Compiled code that calls `subject` calls what `method` returns for the types of its arguments.

    `way` is one of those of `translate.OPTIONS`.
    """
    subject.way = way  # code depends on it
    DECLARED.append(lambda: _translate().called(subject, way, method))


def _called(way: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(function: Callable[..., object]) -> Callable[..., Any]:
        declare(function, way, lambda *args: function)
        return function

    return decorate


scalar = _called("scalar")
"""Decorator for functions called by parts and kernels that neither create nor return arrays; plain Python
when called from Python. LLVM inlines them, which makes parsers up to 50 % faster."""
compiled_apart = _called("apart")
"""Decorator for functions without new arrays that are called rarely, from several places: compiled once in a
kernel, not inlined."""
helper = _called("helper")
"""Decorator for functions called by kernels that create arrays: with reference counting, slower to compile
and to run."""
inlined = _called("inlined")
"""A helper that is called once per example: LLVM would find it too large to inline, and would then save
dozens of registers around each call."""


class InPlace:
    """A function whose body in compiled code is written by hand, in instructions of LLVM."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function

    def __call__(self, *args: Any) -> Any:
        """Call the plain Python function."""
        return self.function(*args)


in_place: Any = InPlace
"""Decorator for a function in plain Python, whose body is in the module `emitted`"""


def emitted(signature: str) -> Callable[[Callable[..., Any]], Any]:
    """Decorator for a function that emits the body: its first argument is LLVM's builder, others are values.

    It returns the result, a list for a tuple, or None. `signature` is what compiled code calls.
    """

    def decorate(function: Callable[..., object]) -> Any:
        what = InPlace(function)
        DECLARED.append(lambda: _translate().emitted(what, signature))
        return what

    return decorate


class Call:
    """Calls a kernel; it is quick as long as arguments are of the kind of those before."""

    __slots__ = "kernel", "last"

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.last: Callable[[Any], Any] = lambda args: NotImplemented

    def __call__(self, *args: Any) -> Any:
        """Call the compiled function."""
        found = self.last(args)
        if found is NotImplemented:
            code = self.last = self.kernel.code_for(args)
            found = code(args)
        return found


class Kernel(Call):
    """A generic function, compiled for each kind of arguments at its first call, and kept on disk."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(self)
        functools.update_wrapper(self, function)
        self.function = function
        self.entries: dict[Any, Any] = {}
        """machine code by the kind of the arguments: equal dtypes are one, as copies are unpickled"""
        self._calls: dict[Any, Call] = {}
        self.loaded = self.compiled = 0
        """how many of these came from files, and how many were compiled"""
        declare(self, "helper", lambda *args: function)

    def code_for(self, args: tuple[object, ...]) -> Callable[[tuple[Any, ...]], Any]:
        """The machine code for such arguments: known, in the cache, or compiled; Python if Numba is off."""
        if PLAIN:
            return lambda args: self.function(*args)
        kind = machine.kind_of(args)
        if kind not in self.entries:
            with _one_at_a_time:
                if kind not in self.entries:
                    self.entries[kind] = self._entry_for(kind, args)
        return machine.Code(self.entries[kind], kind)

    def _entry_for(self, kind: tuple[object, ...], args: tuple[object, ...]) -> Any:
        known = codecache.find(self.function, kind)
        if known is not None:
            with contextlib.suppress(ImportError):  # of a library that it calls
                entry = machine.entry_of(known)
                self.loaded += 1
                return entry
        code, lasting = _translate().machine_code(self.function, args)
        entry = machine.entry_of(code)
        self.compiled += 1
        if lasting:
            codecache.keep(self.function, kind, code)
        return entry

    def for_parts(self, *parts: object) -> Callable[..., Any]:
        """The function for parts of these classes, whose arguments are mostly of one kind."""
        classes = tuple(map(type, parts))
        return self._calls.get(classes) or self._calls.setdefault(classes, Call(self))


kernel = Kernel
