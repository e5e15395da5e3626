"""Machine code: loaded from its bytes and called, without the compiler.

The bytes are an object file whose one function takes a tuple of Python objects, the arguments, and the
addresses of what they are made of (`expected`). `translate` makes it.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np
from llvmlite import binding

_llvm: Any = binding  # has no type hints
_CALL: Any = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p)
ORDER = 0x1 | 0x2 | 0x100 | 0x400
"""The flags of an array that its type depends on: C and Fortran order, aligned, writeable"""


def kind_of(value: Any) -> Any:
    """What compiled code depends on: for an array, its dtype, axes and order; else its class."""
    cls = type(value)
    if cls is np.ndarray:
        return value.dtype, value.ndim, value.flags.num & ORDER
    if issubclass(cls, tuple):
        return cls, tuple(map(kind_of, value))
    return cls


def expected(args: tuple[Any, ...]) -> list[int]:
    """What code compares with its arguments: addresses of classes and dtypes, lengths of tuples, orders."""
    found = [len(args)]
    for value in args:
        found.append(id(type(value)))
        if isinstance(value, np.ndarray):
            found += id(value.dtype), value.ndim, value.flags.num & ORDER
        elif isinstance(value, tuple):
            found += expected(value)
    return found


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
    """Whose code runs here: the system, the processor, its abilities."""
    features = _llvm.get_host_cpu_features().flatten()
    return _llvm.get_process_triple(), _llvm.get_host_cpu_name(), features


def packed(name: str, code: bytes) -> bytes:
    """The name of the function that is called, and the object file."""
    return name.encode() + b"\n" + code


class Code:
    """Machine code for one kind of arguments, and what it expects of them."""

    def __init__(self, given: bytes, args: tuple[Any, ...]) -> None:
        """`given` is from `packed`; `args` are like those of calls."""
        name, _, code = given.partition(b"\n")
        engine = _engine()
        engine.add_object_file(_llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        self._kept = kind_of(args)  # the classes and dtypes whose addresses are expected
        words = [id(NotImplemented), *expected(args)]
        self.words = (ctypes.c_uint64 * len(words))(*words)
        self.place = ctypes.addressof(self.words)
        self.entry = _CALL(engine.get_function_address(name.decode()))

    def __call__(self, args: tuple[Any, ...]) -> Any:
        """The result for these arguments; NotImplemented if they are of another kind."""
        return self.entry(args, self.place)
