"""From Python to machine code: `kernel`, the verbs, and the disk cache both share.

A *part* (loss, rate, rule) is a NamedTuple: its fields are run-time hyper-parameters, its class
selects the code. Each verb below is an ordinary function that calls the part's method of the same
name; `overload` lets compiled code do likewise, so one generic kernel compiles to one fused loop
for each combination of part classes, and the same source still runs as plain Python.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
from numba import types
from numba.extending import intrinsic, overload

from thresher.engine.folders import cache_folder

_HOT = ("engine", "parts", "data")  # the wings that hold compiled code
_OPTIONS: Any = {"error_model": "numpy"}
_config: Any = numba.config  # its settings are made at run time


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
        return numba.njit(nogil=True, **_OPTIONS)(function)
    target = cache_folder() / "code" / folder
    saved = _config.CACHE_DIR
    try:
        target.mkdir(parents=True, exist_ok=True)
        cache = os.access(target, os.W_OK)
    except OSError:
        cache = False
    _config.CACHE_DIR = str(target)
    try:
        return numba.njit(cache=cache, nogil=True, **_OPTIONS)(function)
    finally:
        _config.CACHE_DIR = saved


def kernel(function: Callable[..., Any]) -> Kernel:
    """Compile `function` on first call, without the GIL, cached on disk for all later processes."""
    return Kernel(function)


scalar = numba.njit(inline="always", **_OPTIONS)
"""Decorator of a small function without state, called from parts and kernels."""


# The verbs. `_verb` ties a function to the method of the same name of a part's class; Numba wants
# the parameter names of both to agree, which `part()` checks.


def _verb(function: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return overload(function, jit_options=_OPTIONS)


def _method(part: Any, name: str) -> Any:
    return getattr(getattr(part, "instance_class", None), name, None)


def snapshot(self, clock, S):
    """The clock as a tuple in the dtype of S: what `weight` and `step` read as `now`.

    A tuple lives in registers, so a loop over a row loads and rounds it once; and a running sum is
    rounded in the same way when a debt is noted and when it is paid, so that payments add up.
    """
    return tuple(S.dtype.type(value) for value in clock)


@_verb(snapshot)
def _snapshot(self, clock, S):
    length = len(self.instance_class.CLOCK)

    def impl(self, clock, S):
        return _as_tuple(clock, S, length)

    return impl


@intrinsic
def _as_tuple(typing_context, clock, S, length):
    """The first `length` (a literal) elements of `clock`, cast to the dtype of S, as a tuple."""
    if not isinstance(length, types.IntegerLiteral):
        return None  # Numba then asks again with the literal
    result = types.UniTuple(S.dtype, length.literal_value)

    def codegen(context, builder, signature, args):
        source = signature.args[0]
        data = context.make_array(source)(context, builder, args[0]).data
        items = []
        for k in range(result.count):
            place = builder.gep(data, [context.get_constant(types.intp, k)])
            items.append(context.cast(builder, builder.load(place), source.dtype, S.dtype))
        return context.make_tuple(builder, result, items)

    return result(clock, S, length), codegen


def value_slope(self, margin, y):
    """Loss and its derivative in the margin: ``(loss, slope)``."""
    return self.value_slope(margin, y)


@_verb(value_slope)
def _value_slope(self, margin, y):
    return _method(self, "value_slope")


def link(self, margin):
    """From the margin to what `predict` prints: a probability, a mean."""
    return self.link(margin)


@_verb(link)
def _link(self, margin):
    return _method(self, "link")


def at(self, t):
    """Step size of example t = 1, 2, ..."""
    return self.at(t)


@_verb(at)
def _at(self, t):
    return _method(self, "at")


def steady(self):
    """Whether the step size never changes."""
    return self.steady()


@_verb(steady)
def _steady(self):
    return _method(self, "steady")


def weight(self, S, j, now):
    """Weight of row j with all its debts paid; changes nothing."""
    return self.weight(S, j, now)


@_verb(weight)
def _weight(self, S, j, now):
    return _method(self, "weight")


def step(self, S, j, w, x, slope, now):
    """Write row j: its settled weight `w` after the gradient ``slope * x``."""
    return self.step(S, j, w, x, slope, now)


@_verb(step)
def _step(self, S, j, w, x, slope, now):
    return _method(self, "step")


def gauge(self, S, j, x, now):
    """A number summed over the row: ``x * x``, ``x V x``, ..."""
    return self.gauge(S, j, x, now)


@_verb(gauge)
def _gauge(self, S, j, x, now):
    return _method(self, "gauge")


def assess(self, margin, importance, value, slope, size, clock):
    """Note in the clock what the steps of an example need to know of it as a whole.

    Asked before `gain`, of the rule and of the intercept's, each with its own clock. `margin` is the
    whole one, intercept included; `value` and `slope` are multiplied by `importance`.
    """
    self.assess(margin, importance, value, slope, size, clock)


@_verb(assess)
def _assess(self, margin, importance, value, slope, size, clock):
    return _method(self, "assess")


def gain(self, margin, value, slope, size, clock):
    """The slope to step with, once margin (without intercept), loss and gauge of the row are known.

    `value` and `slope` are multiplied by the importance; `size` counts the intercept's gauge.
    """
    return self.gain(margin, value, slope, size, clock)


@_verb(gain)
def _gain(self, margin, value, slope, size, clock):
    return _method(self, "gain")


def tick(self, clock):
    """End of the example."""
    return self.tick(clock)


@_verb(tick)
def _tick(self, clock):
    return _method(self, "tick")


def constrain(self, S, rows, begin, end, clock):
    """After the steps of an example on ``rows[begin:end]``: restore what holds of all rows together."""
    self.constrain(S, rows, begin, end, clock)


@_verb(constrain)
def _constrain(self, S, rows, begin, end, clock):
    return _method(self, "constrain")


def relocate(self, S, count, clock):
    """Rows have moved, ``S[:count]`` are in use: rebuild whatever points to rows."""
    self.relocate(S, count, clock)


@_verb(relocate)
def _relocate(self, S, count, clock):
    return _method(self, "relocate")


def renorm(self, clock):
    """A power of two that every row is to be multiplied by now (1 nearly always)."""
    return self.renorm(clock)


@_verb(renorm)
def _renorm(self, clock):
    return _method(self, "renorm")


def shown(self, S, j, w, now):
    """The weight of row j as it is read, given the settled one."""
    return self.shown(S, j, w, now)


@_verb(shown)
def _shown(self, S, j, w, now):
    return _method(self, "shown")


def idle(self, S, j, w):
    """Whether row j, of settled weight `w`, is as good as a row of zeros."""
    return self.idle(S, j, w)


@_verb(idle)
def _idle(self, S, j, w):
    return _method(self, "idle")
