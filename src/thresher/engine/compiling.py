"""From Python to machine code: `kernel`, `scalar`, `helper`, and the disk cache of what is compiled.

What is compiled lies in a folder named after all sources that can be compiled, so that an edit anywhere
is never served the old machine code.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numba
from numba.extending import overload

from thresher.engine.folders import cache_folder

_HOT = ("engine", "parts", "data", "batch")  # the wings that hold compiled code
OPTIONS: Any = {"error_model": "numpy"}
_config: Any = numba.config  # its settings are made at run time
if "NUMBA_OPT" not in os.environ:
    # Below this level reference counts go only after loops were vectorised, and keep them from being so.
    _config.OPT = type(_config.OPT)("max")


def _package_sources() -> list[Path]:
    root = Path(__file__).parents[1]
    return sorted(path for wing in _HOT for path in (root / wing).rglob("*.py"))


def _stamp(paths: Iterable[Path], *names: str) -> str:
    digest = hashlib.sha256(f"{numba.__version__} {sys.version_info[:2]} {names}".encode())
    for path in paths:
        digest.update(str(path).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


STAMP = _stamp(_package_sources())
FRESH = not (cache_folder() / "code" / STAMP).exists()
"""Nothing is compiled yet on this machine: first calls will take seconds instead of milliseconds."""


def _is_users(module: ModuleType) -> bool:
    """Whether a module is the user's own: not ours, not the standard library's, not installed."""
    if module.__name__.partition(".")[0] == "thresher" or not getattr(module, "__file__", None):
        return False
    library = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    return not {"site-packages", "dist-packages", library} & set(Path(str(module.__file__)).parts)


def _foreign_sources(classes: Iterable[type]) -> list[Path]:
    """The files of these classes, and every file of the user's own they reach through module globals."""
    waiting = [sys.modules[cls.__module__] for cls in classes]
    found = {str(module.__file__): module for module in waiting if getattr(module, "__file__", None)}
    while waiting:
        for value in list(vars(waiting.pop()).values()):
            name = getattr(value, "__module__", None)
            module = value if isinstance(value, ModuleType) else sys.modules.get(str(name))
            if module is not None and _is_users(module) and str(module.__file__) not in found:
                found[str(module.__file__)] = module
                waiting.append(module)
    return sorted(Path(path) for path in found)


def part_classes(*values: object) -> list[type]:
    """The classes of the given parts and of the parts nested in their fields."""
    classes: list[type] = []
    for value in values:
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            classes += [type(value), *part_classes(*value)]
    return classes


class Kernel:
    """A generic compiled function with its disk cache.

    The cache folder is named after *all* hot sources, and after the user's own files when a part
    comes from one: Numba itself stamps a cached function with its own file only and would serve
    the old machine code after an edit elsewhere.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self._compiled: dict[str | None, Any] = {}
        self._plain = self._compile(STAMP)

    def __call__(self, *args: Any) -> Any:
        """The compiled function, for parts that are ours."""
        return self._plain(*args)

    def _compile(self, folder: str | None) -> Any:
        if folder not in self._compiled:
            self._compiled[folder] = _cached_njit(self.function, folder)
        return self._compiled[folder]

    def for_parts(self, *parts: object) -> Any:
        """The compiled function to call with these parts (looked up once by each Model)."""
        classes = [c for c in part_classes(*parts) if c.__module__.partition(".")[0] != "thresher"]
        if not classes:
            return self._plain
        if not all(
            os.path.isfile(getattr(sys.modules[c.__module__], "__file__", None) or "") for c in classes
        ):
            return self._compile(None)  # typed at a prompt: no other process could find the class
        # Cached code names its classes, and all that lies in one folder is read at once. A folder for each
        # set of classes: others may not be defined yet, and a script's have another module's name.
        names = sorted({f"{cls.__module__}.{cls.__qualname__}" for cls in classes})
        return self._compile(f"{STAMP}-{_stamp(_foreign_sources(classes), *names)}")

    @property
    def compiled(self) -> Any:
        """The Numba dispatcher, for calls from other kernels and for `stats`."""
        return self._plain


def _cached_njit(function: Callable[..., Any], folder: str | None) -> Any:
    if folder is None:
        return numba.njit(nogil=True, **OPTIONS)(function)
    target = cache_folder() / "code" / folder
    saved = _config.CACHE_DIR
    try:
        target.mkdir(parents=True, exist_ok=True)
        cache = os.access(target, os.W_OK)
    except OSError:
        cache = False
    _config.CACHE_DIR = str(target)
    try:
        return numba.njit(cache=cache, nogil=True, **OPTIONS)(function)
    finally:
        _config.CACHE_DIR = saved


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
