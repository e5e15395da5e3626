"""The disk cache of compiled code: one file per function and signature.

A file's name is a hash of all that determines its contents: the function, its types, what they are made of,
versions and processor. So an edit of one reader leaves the code of every rule valid, and a cache can be
copied to a machine with the same processor. The file has a hash of that text and the code, and is renamed
when it is complete: there is nothing to lock, and no index of a function's files, as Numba's own cache has,
which two processes can both read, change and write. Only files that nobody else can have written are loaded,
as ssh does with keys.

A file holds machine code for the arguments of a kernel, and no more: it is found, loaded and run without the
compiler. What kernels call is compiled with each of them. A wheel may bring files too (`SHIPPED`).

Code is stamped by what is in memory, so that no edit is served old machine code: bytecode, closures, and the
constants and functions that it names, wherever they come from; of classes, methods and fields. A digest of
files, as Numba takes, missed a constant imported from elsewhere, one read from the environment, and an edit
after the import; to read all sources of thresher took 9 ms of each start, more than following these names.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import sys
import threading
import warnings
from collections.abc import Callable
from enum import Enum, EnumMeta
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import llvmlite
import numpy as np

from thresher.engine.atomic import CacheWarning, cache_folder, check_private, private_folder
from thresher.engine.compile import machine

_LIBRARIES = {*sys.stdlib_module_names, "numpy", "numba", "llvmlite"} - {"__main__"}
"""Libraries whose versions are part of the cache key."""
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_OF_TUPLES = {"_make", "_replace", "_asdict", "_field_defaults"}


def stamp(*roots: object) -> str:
    """A hash of everything that functions and classes are made of."""
    seen = _Seen()
    for root in roots:
        seen.follow(root)
    return seen.total.hexdigest()


class _Seen:
    """What compiled code may depend on: functions, the names they use, their constants."""

    def __init__(self) -> None:
        self.total = hashlib.sha256()
        self._known: set[int] = set()

    def follow(self, value: object) -> None:
        if isinstance(value, _PLAIN):
            self._say(type(value).__name__, repr(value))
        elif isinstance(value, np.ndarray | np.generic):
            self._say(str(value.dtype), str(value.shape))
            self.total.update(value.tobytes())
        elif id(value) not in self._known:
            self._known.add(id(value))
            function = getattr(value, "py_func", None) or getattr(value, "function", None) or value
            module, way = str(getattr(value, "__module__", None)), str(getattr(value, "way", ""))
            self._say(type(value).__name__, module, str(getattr(value, "__qualname__", "")), way)
            if isinstance(value, tuple | list):
                for one in value:
                    self.follow(one)
            elif isinstance(value, EnumMeta):
                for member in value.__members__:
                    self._say(member)
                    self.follow(value[member].value)
            elif isinstance(value, Enum):
                self.follow(value.value)
            elif type(value).__module__.startswith("numba.core.types"):
                self._say(str(value))
            elif isinstance(function, FunctionType):
                if function.__module__.partition(".")[0] not in _LIBRARIES:
                    for cell in function.__closure__ or ():
                        self.follow(cell.cell_contents)
                    self.follow(function.__defaults__)
                    self._follow_code(function.__code__, function.__globals__)
            elif isinstance(value, type) and module.partition(".")[0] not in _LIBRARIES:
                for name in sorted(vars(value).keys() - _OF_TUPLES):
                    if not name.startswith("__"):
                        self._say(name)
                        self.follow(vars(value)[name])
                self.follow(value.__bases__)

    def _follow_code(self, code: CodeType, names: dict[str, Any]) -> None:
        self.total.update(code.co_code)
        self._say(*code.co_names, *code.co_varnames, *code.co_freevars)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._follow_code(constant, names)
            else:
                self._say(repr(constant))
        found = [names[name] for name in code.co_names if name in names]
        for value in found:
            if isinstance(value, ModuleType):
                own = (vars(value)[name] for name in code.co_names if name in vars(value))
                found += [] if value.__name__.partition(".")[0] in _LIBRARIES else own
            else:
                self.follow(value)

    def _say(self, *words: str) -> None:
        for word in words:
            self.total.update(word.encode(errors="backslashreplace") + b"\0")


_DIGEST = hashlib.sha256().digest_size
SHIPPED = Path(__file__).parents[2] / "compiled"
"""Code that came with thresher, for `machine.PORTABLE`: only read, and trusted like the sources beside it"""
NOT_WARNED = threading.Lock()
"""Acquired forever by the first warning"""


@functools.cache
def usable_folder() -> Path | None:
    """The folder of code if it is safe and this user may read it; else None, with one warning per process."""
    try:
        folder = private_folder(cache_folder() / "code")
        if not os.access(folder, os.X_OK):
            raise PermissionError(13, "not readable", str(folder))
    except OSError as error:
        _warn(error)
        return None
    return folder


def _warn(error: OSError) -> None:
    """Warn once per process, from whichever thread or file is first."""
    if not NOT_WARNED.acquire(blocking=False):
        return
    where = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    warnings.warn(
        f"compiled code cannot be kept, so every run compiles again ({where})", CacheWarning, stacklevel=2
    )


def _has_file(module: str) -> bool:
    """Whether another process could import the module; false for code typed at a prompt."""
    return os.path.isfile(getattr(sys.modules.get(module), "__file__", None) or "")


def _said(one: Any) -> str:
    """An item of `machine.kind_of`, in words that mean the same in other processes."""
    if isinstance(one, type):
        return f"{one.__module__}.{one.__qualname__}"
    return str(one if isinstance(one, int) else one.descr if one.names else one.str)


@functools.cache
def making() -> tuple[str, ...]:
    """What makes object code, beside the compiler: our sources, settings; Python, whose objects it reads."""
    ours = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    python = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
    settings = (os.environ.get(f"NUMBA_{name}", "") for name in ("OPT", "BOUNDSCHECK"))
    return hashlib.sha256(ours).hexdigest(), python, *settings


@functools.cache
def compiler() -> tuple[str, ...]:
    """Its versions and its target; Numba's version is read from a file, since its import takes long."""
    found = importlib.util.find_spec("numba")
    folder = Path(found.origin if found is not None and found.origin else "numba").parent
    numba = (folder / "_version.py").read_text(encoding="utf-8")
    return numba, llvmlite.__version__, *machine.processor()


def place_of(function: Callable[..., Any], kind: Any, shipped: bool = False) -> tuple[Path, bytes] | None:
    """The file for a function and a kind of arguments, and the key in it; None if it cannot be cached.

    What is `shipped` was compiled elsewhere, by a compiler of any version: it calls nothing of it.
    """
    classes = (cls for cls in kind if isinstance(cls, type))
    parts = {_said(cls): cls for cls in classes if cls.__module__.partition(".")[0] not in _LIBRARIES}
    if not _has_file(function.__module__):
        return None
    # A class that another process would not find, as it was made in a function, would be another class there.
    for cls in parts.values():
        found: Any = sys.modules.get(cls.__module__)
        for name in cls.__qualname__.split("."):
            found = getattr(found, name, None)
        if found is not cls or not _has_file(cls.__module__):
            return None
    folder = SHIPPED if shipped else usable_folder()
    if folder is None:
        return None
    facts = [function.__module__, function.__qualname__, *map(_said, kind)]
    facts += [stamp(function, *(parts[name] for name in sorted(parts))), *making()]
    facts += [*((machine.PORTABLE,) if shipped else compiler())]
    key = "\n".join(word.replace("\n", " ") for word in facts).encode()
    name = f"{function.__module__}.{function.__name__}"
    return folder / f"{name}-{hashlib.sha256(key).hexdigest()[:32]}.nbc", key


def find(function: Callable[..., Any], kind: Any) -> bytes | None:
    """The code that came with thresher or was kept; None if there is none."""
    for shipped in (True, False) if SHIPPED.is_dir() and machine.runs_portable() else (False,):
        place = place_of(function, kind, shipped)
        code = None if place is None else read_code(*place)
        if code is not None:
            return code
    return None


def keep(function: Callable[..., Any], kind: Any, code: bytes, shipped: bool = False) -> None:
    """Keep code where `find` looks for it, if it can be cached."""
    place = place_of(function, kind, shipped)
    if place is not None:
        write_code(*place, code)


def read_code(path: Path, key: bytes) -> bytes | None:
    """What `write_code` wrote for this key; None if there is nothing or others could have changed it."""
    try:
        with open(path, "rb") as file:
            if path.parent != SHIPPED:
                check_private(path, os.fstat(file.fileno()))
            whole = file.read()
    except OSError:
        return None
    digest, code = whole[:_DIGEST], whole[_DIGEST:]
    return code if digest == hashlib.sha256(key + code).digest() else None


def write_code(path: Path, key: bytes, code: bytes) -> None:
    """Write the file completely or not at all; concurrent writers of the same file do no harm."""
    from thresher.engine.atomic import whole_file  # not among the sources that compiled code depends on

    try:
        with whole_file(path, "wb", cached=True) as file:
            file.write(hashlib.sha256(key + code).digest() + code)
    except OSError as error:
        _warn(error)
