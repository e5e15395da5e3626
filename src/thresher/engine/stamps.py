"""Stamps of source code: what compiled code was made from, so that no edit is served the old machine code.

Numba stamps a cached function with its own file only. A kernel's code comes from many: those that its
module imports, and those of the parts that it is compiled for. Only these count, so an edit leaves the
rest of the cache as good as it was.
"""

from __future__ import annotations

import functools
import hashlib
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

_ROOT = Path(__file__).parents[1]
_WINGS = ("engine", "parts", "data", "batch")  # the folders that hold compiled code
_IMPORT = re.compile(r"^(?:from (thresher[\w.]*) import (\([^)]*\)|[^\n]*)|import (thresher[\w.]*))", re.M)


def _read_all() -> dict[str, str]:
    """Module name -> source, of all wings; read at once, as near as can be to when they are imported."""
    found = {}
    for path in sorted(path for wing in _WINGS for path in (_ROOT / wing).rglob("*.py")):
        parts = path.relative_to(_ROOT.parent).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = path.read_text(encoding="utf-8")
    return found


_SOURCES = _read_all()


@functools.cache
def _imports(module: str) -> frozenset[str]:
    """What one of our modules imports of the others when it is imported itself."""
    found: set[str] = set()
    for package, names, plain in _IMPORT.findall(_SOURCES[module]):
        words = re.findall(r"(\w+)(?: as \w+)?", re.sub(r"#[^\n]*", "", names))
        inner = {f"{package}.{word}" for word in words}
        found |= inner if inner and inner <= _SOURCES.keys() else {plain or package, *inner}
    return frozenset(name for name in found if name in _SOURCES)


def _is_ours(module: str) -> bool:
    return module in _SOURCES


def _is_users(module: ModuleType) -> bool:
    """Whether a module is the user's own: not ours, not the standard library's, not installed."""
    if module.__name__.partition(".")[0] == "thresher" or not getattr(module, "__file__", None):
        return False
    library = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    return not {"site-packages", "dist-packages", library} & set(Path(str(module.__file__)).parts)


def _reached(module: str) -> set[str]:
    """What a module's code may come from, one step away."""
    if _is_ours(module):
        return set(_imports(module))
    found: set[str] = set()
    for value in list(vars(sys.modules[module]).values()):
        name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        known = sys.modules.get(str(name))
        if _is_ours(str(name)) or (known is not None and _is_users(known)):
            found.add(str(name))
    return found


def closure(modules: Iterable[str]) -> list[str]:
    """These modules, and all of ours and of the user's own that they reach by imports and globals."""
    waiting = list(modules)
    found = set(waiting)
    while waiting:
        new = _reached(waiting.pop()) - found
        found |= new
        waiting += new
    return sorted(found)


@functools.cache
def _digest(module: str) -> bytes:
    source = _SOURCES.get(module)
    if source is None:
        source = Path(str(sys.modules[module].__file__)).read_text(encoding="utf-8")
    return hashlib.sha256(source.encode()).digest()


@functools.cache
def stamp(*modules: str) -> str:
    """A name of the sources of these modules and of all that they reach."""
    total = hashlib.sha256()
    for module in closure(modules):
        total.update(module.encode() + b"\0" + _digest(module))
    return total.hexdigest()
