"""Hashes of source code, so that no edit is served old machine code.

Numba stamps a cached function only with its own file. A kernel's code comes from many files: those that its
module imports, and those of the parts it is compiled for. Only these count, so after an edit the rest of
the cache stays valid.

Code of a user's rule is stamped by the rule in memory: bytecode, closures, and the constants and functions
that it names, wherever they come from. A digest of files missed a constant imported from elsewhere, one read
from the environment, and an edit after the import. Our own code is stamped by the text of its modules and of
those they import, all read at the start, which is faster.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

_ROOT = Path(__file__).parents[2]
_WINGS = ("engine", "parts", "data", "batch")  # the folders that hold compiled code
_LIBRARIES = {*sys.stdlib_module_names, "numpy", "numba", "llvmlite"} - {"__main__"}
"""Libraries whose versions are part of the cache key."""
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_OF_TUPLES = {"_make", "_replace", "_asdict", "_fields", "_field_defaults"}
_IMPORT = re.compile(r"^(?:from (thresher[\w.]*) import (\([^)]*\)|[^\n]*)|import (thresher[\w.]*))", re.M)


class _Source(NamedTuple):
    """A file as it was when this module was imported."""

    path: Path
    state: tuple[int, ...]
    text: str


def _state_of(path: Path) -> tuple[int, ...]:
    """mtime, inode and size, which change on any rewrite; () if the file is missing."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_ino, found.st_size


def _read_all() -> dict[str, _Source]:
    """Module name -> source, for all folders; read at once, as soon after import as possible."""
    found = {}
    for path in sorted(path for wing in _WINGS for path in (_ROOT / wing).rglob("*.py")):
        parts = path.relative_to(_ROOT.parent).with_suffix("").parts
        source = _Source(path, _state_of(path), path.read_text(encoding="utf-8"))
        found[".".join(parts).removesuffix(".__init__")] = source
    return found


SOURCES = _read_all()
"""The modules of thresher as they were when this process began."""
THIS_PROCESS = os.urandom(16)
"""Stands for this process in stamps of code that no other process may use."""


@functools.cache
def _imports(module: str) -> frozenset[str]:
    """The modules of thresher that a module imports at module level."""
    found: set[str] = set()
    for package, names, plain in _IMPORT.findall(SOURCES[module].text):
        words = re.findall(r"(\w+)(?: as \w+)?", re.sub(r"#[^\n]*", "", names))
        inner = {f"{package}.{word}" for word in words}
        found |= inner if inner and inner <= SOURCES.keys() else {plain or package, *inner}
    return frozenset(name for name in found if name in SOURCES)


def closure(modules: Iterable[str]) -> list[str]:
    """These modules, and all modules of thresher that they import."""
    waiting = list(modules)
    found = set(waiting)
    while waiting:
        new = _imports(waiting.pop()) - found
        found |= new
        waiting += new
    return sorted(found)


@functools.cache
def stamp(*roots: Any) -> str:
    """A hash of everything that functions and classes are made of.

    For thresher: the sources of their modules and of everything these import. For other code: what is in
    memory, because files may have been edited, and constants set, since the import.
    """
    seen = _Seen()
    for root in roots:
        seen.follow(root)
    seen.total.update(_digest_of(*sorted(seen.modules)))
    return seen.total.hexdigest()


@functools.cache
def _digest_of(*modules: str) -> bytes:
    total = hashlib.sha256()
    for module in closure(modules):
        total.update(module.encode() + b"\0" + _digest(module))
    return total.digest()


@functools.cache
def _digest(module: str) -> bytes:
    """A hash of the source of a module that has been imported.

    If its file has changed since it was read here, nobody knows which text was imported: then no other
    process gets the compiled code of this one, nor this one theirs.
    """
    source = SOURCES[module]
    known = hashlib.sha256(source.text.encode()).digest()
    return known if _state_of(source.path) == source.state else known + THIS_PROCESS


class _Seen:
    """What compiled code may depend on: functions, the names they use, their constants."""

    def __init__(self) -> None:
        self.total = hashlib.sha256()
        self.modules: set[str] = set()
        """modules of thresher"""
        self._known: set[int] = set()

    def follow(self, value: Any) -> None:
        """Add a value and everything it refers to."""
        module = str(getattr(value, "__module__", None))
        if module in SOURCES:
            self.modules.add(module)
        elif isinstance(value, _PLAIN):
            self._say(type(value).__name__, repr(value))
        elif isinstance(value, np.ndarray | np.generic):
            self._say(str(value.dtype), str(value.shape))
            self.total.update(value.tobytes())
        elif id(value) not in self._known:
            self._known.add(id(value))
            python = getattr(value, "py_func", None)
            self._say(type(value).__name__, module, str(getattr(value, "__qualname__", "")))
            if isinstance(value, tuple | list):
                for one in value:
                    self.follow(one)
            elif isinstance(python or value, FunctionType):
                self._follow_function(python or value)
            elif isinstance(value, type) and module.partition(".")[0] not in _LIBRARIES:
                for name in sorted(vars(value).keys() - _OF_TUPLES):
                    if not name.startswith("__"):
                        self._say(name)
                        self.follow(vars(value)[name])

    def _follow_function(self, function: FunctionType) -> None:
        if function.__module__.partition(".")[0] in _LIBRARIES:
            return
        for cell in function.__closure__ or ():
            self.follow(cell.cell_contents)
        self.follow(function.__defaults__)
        self._follow_code(function.__code__, function.__globals__)

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
