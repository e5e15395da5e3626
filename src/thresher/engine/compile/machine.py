"""Machine code: loaded from its bytes and called, without the compiler.

The bytes are an object file whose one function takes a tuple of Python objects, the arguments, and the words
that these have to match (`Code`). `translate` makes it.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from array import array
from importlib import import_module
from typing import Any

import numpy as np
from llvmlite import binding

_llvm: Any = binding  # has no type hints
_CALL: Any = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p)
C, F = 0x1, 0x2
ORDERS = {True: 0x501, False: 0x503}
"""The flags of an array that its type depends on, by whether it is in C order: C and else also Fortran order,
aligned, writeable"""
PORTABLE = "x86-64-v3"
ABILITIES = "+avx2,+bmi,+bmi2,+cx16,+f16c,+fma,+lzcnt,+movbe,+popcnt,+sahf,+sse4.2,+xsave"
"""Of processors of this kind, in words of LLVM"""
_ENTRIES: dict[str, tuple[Any, bytes]] = {}
"""Functions that are loaded, by name, and their object files, which LLVM does not copy"""


def kind_of(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """What compiled code depends on: classes, lengths of tuples, dtypes, axes and orders of arrays."""
    found: list[Any] = [len(args)]
    for value in args:
        found.append(type(value))
        if isinstance(value, np.ndarray):
            flags = value.flags.num
            found += value.dtype, value.ndim, flags & ORDERS[flags & C != 0]
        elif isinstance(value, tuple):
            found += kind_of(value)
    return tuple(found)


@functools.cache
def _engine() -> Any:
    """What object files are loaded into, as long as the process lives."""
    _llvm.initialize_native_target()
    _llvm.initialize_native_asmprinter()
    target = _llvm.Target.from_default_triple().create_target_machine(codemodel="jitdefault", jit=True)
    module = _llvm.parse_assembly("")
    module.triple = _llvm.get_process_triple()
    return _llvm.create_mcjit_compiler(module, target)


@functools.cache
def processor() -> tuple[str, str, str]:
    """What code is compiled for: the system, the processor, its abilities; this one, unless Numba is told."""
    name, features = (os.environ.get(f"NUMBA_CPU_{one}") for one in ("NAME", "FEATURES"))
    if features is None and name != "generic":
        with contextlib.suppress(RuntimeError):  # LLVM cannot tell on some systems
            features = _llvm.get_host_cpu_features().flatten()
    return _llvm.get_process_triple(), name or _llvm.get_host_cpu_name(), features or ""


def runs_portable() -> bool:
    """Whether code for Linux on `PORTABLE` runs here, and no other is asked for."""
    system, _, features = processor()
    able = {*ABILITIES.split(",")} <= {*features.split(",")}
    return able and system.startswith("x86_64") and "linux" in system


def pack(name: str, needs: list[str], code: bytes) -> bytes:
    """The name of the function that is called, the names of functions that it calls, and the object file."""
    return " ".join([name, *needs]).encode() + b"\n" + code


def entry_of(given: bytes) -> Any:
    """The function that is called, from `pack`; ImportError if it calls one that does not exist here."""
    words, _, code = given.partition(b"\n")
    name, *needs = words.decode().split(" ")
    if name not in _ENTRIES:
        engine = _engine()
        if any(_llvm.address_of_symbol(one) is None or one.startswith("PyExc_") for one in needs):
            import_module("thresher.engine.compile.translate")  # they are Numba's, or mean what it has there
        for one in needs:  # LLVM would end the process
            if _llvm.address_of_symbol(one) is None:
                raise ImportError(f"compiled code calls {one}, which is in no library that is loaded")
        engine.add_object_file(_llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        _ENTRIES[name] = _CALL(engine.get_function_address(name)), code
    return _ENTRIES[name][0]


class Code:
    """Machine code, and what its arguments have to match: addresses of classes and dtypes, and numbers."""

    def __init__(self, entry: Any, kind: tuple[Any, ...]) -> None:
        self._kept = [NotImplemented, RuntimeError, *kind]
        words = [one if type(one) is int else id(one) for one in self._kept]
        self._words = array("Q", words)
        self._place, _ = self._words.buffer_info()
        self._entry = entry

    def __call__(self, args: tuple[Any, ...]) -> Any:
        """The result for these arguments; NotImplemented if they are of another kind."""
        try:
            return self._entry(args, self._place)
        except RuntimeError as error:
            if isinstance(error, RecursionError):
                raise
            raise import_module("thresher.engine.compile.translate").raised_exception(error) from None
