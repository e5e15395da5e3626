"""The registry of parts: `part()` checks, completes and names them; `make()` reads a SPEC.

A SPEC names a part and its parameters: ``ftrl:alpha=0.5,l1=1``. Values may come in field order
(``power:0.5,1000,0.5``) and may name another field of the part (``theta=gravity``).
"""

from __future__ import annotations

import difflib
import inspect
import math
import os
import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from thresher.engine.jit import weight

T = TypeVar("T", bound=type)


def _plain_meet(self, S, j, w, x, now):  # type: ignore[no-untyped-def]
    return w


def _plain_gauge(self, S, j, x, now):  # type: ignore[no-untyped-def]
    return 0.0


def _plain_assess(self, margin, importance, value, slope, size, clock):  # type: ignore[no-untyped-def]
    pass


def _plain_gain(self, margin, value, slope, size, clock):  # type: ignore[no-untyped-def]
    return slope


def _plain_tick(self, clock):  # type: ignore[no-untyped-def]
    pass


def _plain_constrain(self, S, rows, begin, end, clock):  # type: ignore[no-untyped-def]
    pass


def _plain_relocate(self, S, count, clock):  # type: ignore[no-untyped-def]
    pass


def _plain_rewrites(self, clock):  # type: ignore[no-untyped-def]
    return False


def _plain_drift(self, clock, out):  # type: ignore[no-untyped-def]
    pass


def _plain_area(self, S, j, n, sums, now):  # type: ignore[no-untyped-def]
    return n * weight(self, S, j, now)  # type: ignore[no-untyped-call]


def _plain_areas(self, T, out, n, sums, now):  # type: ignore[no-untyped-def]
    pass


def _plain_renorm(self, clock):  # type: ignore[no-untyped-def]
    return 1.0


def _plain_shown(self, S, j, w, now):  # type: ignore[no-untyped-def]
    return w


def _never(self, S, j, w):  # type: ignore[no-untyped-def]
    return False


def _identity(self, margin):  # type: ignore[no-untyped-def]
    return margin


def _identities(self, margins, out):  # type: ignore[no-untyped-def]
    out[:] = margins


def _plain_couple(self, T, out, now):  # type: ignore[no-untyped-def]
    pass


def _no(self):  # type: ignore[no-untyped-def]
    return False


def _without_penalties(self):  # type: ignore[no-untyped-def]
    """The rule of the intercept: the same one with its penalties at zero, and no group."""
    cls = type(self)
    groups = {f: d for f, d in cls._field_defaults.items() if f in _IN_SPECS}
    return rebuilt(self, **dict.fromkeys(cls.PENALTIES, 0.0), **groups)


# kind -> verb -> (parameter names, default; None = must be written)
PROTOCOL: dict[str, dict[str, tuple[str, Callable[..., Any] | None]]] = {
    "loss": {"value_slope": ("margin y", None), "link": ("margin", _identity)},
    "joint loss": {
        "values_slopes": ("margins y values slopes", None),
        "links": ("margins out", _identities),
    },
    "rate": {"at": ("t", None), "steady": ("", _no)},
    "group": {"alone": ("v owed", None), "together": ("out owed", None), "grouped": ("", None)},
    "rule": {
        "clock0": ("", None),
        "weight": ("S j now", None),
        "meet": ("S j w x now", _plain_meet),
        "step": ("S j w x slope now", None),
        "couple": ("T out now", _plain_couple),
        "grouped": ("", _no),
        "tick": ("clock", _plain_tick),
        "gauge": ("S j x now", _plain_gauge),
        "assess": ("margin importance value slope size clock", _plain_assess),
        "gain": ("margin value slope size clock", _plain_gain),
        "constrain": ("S rows begin end clock", _plain_constrain),
        "relocate": ("S count clock", _plain_relocate),
        "rewrites": ("clock", _plain_rewrites),
        "drift": ("clock out", _plain_drift),
        "area": ("S j n sums now", _plain_area),
        "areas": ("T out n sums now", _plain_areas),
        "renorm": ("clock", _plain_renorm),
        "shown": ("S j w now", _plain_shown),
        "idle": ("S j w", _never),
        "intercept": ("", _without_penalties),
    },
}
# What a part may say of itself beside its verbs.
_ATTRIBUTES: dict[str, dict[str, Any]] = {
    "loss": {"DOMAIN": "real", "PROBABILITY": False, "BOOSTABLE": False},
    "joint loss": {"DOMAIN": "classes", "PROBABILITY": False, "BOOSTABLE": False},
    "rate": {},
    "group": {},
    "rule": {"PENALTIES": (), "DTYPE": "float32", "DRIFTS": None},
}
_NEEDED: dict[str, dict[str, str]] = {
    "loss": {},
    "joint loss": {},
    "rate": {},
    "group": {},
    "rule": {"SLOTS": "the columns of its state", "CLOCK": "the scalars that all coordinates share"},
}
REGISTRY: dict[str, dict[str, type]] = {kind: {} for kind in PROTOCOL}
_FAMILIES = {"loss": ("loss", "joint loss")}  # a SPEC of the first names one of all of them
_IN_SPECS = ("group",)  # fields that are parts, of the kind of that name, and are written in the SPEC


class SpecError(ValueError):
    """A SPEC that names no part, or gives it what it cannot take. One line."""


def part(kind: str) -> Callable[[T], T]:
    """Class decorator: check a NamedTuple against its protocol, complete it, register it.

    Raises TypeError when a verb is missing or its parameters are misnamed.
    """

    def register(cls: T) -> T:
        if not getattr(cls, "_fields", ()):
            raise TypeError(f"{kind} {cls.__name__} needs at least one field: it must be a NamedTuple")
        for verb, (names, default) in PROTOCOL[kind].items():
            _check_verb(kind, cls, verb, names.split(), default)
        for needed in _NEEDED[kind]:
            if needed not in vars(cls):
                raise TypeError(
                    f"{kind} {cls.__name__} must say {needed} = ('name', ...): {_NEEDED[kind][needed]}"
                )
        for name, value in _ATTRIBUTES[kind].items():
            if not hasattr(cls, name):
                setattr(cls, name, value)
        if kind == "rule" and _couples_without_areas(cls):
            raise TypeError(f"{kind} {cls.__name__} has couple and DRIFTS: it must define areas too")
        _check_values_at_birth(cls)
        _give_a_lasting_home(cls)
        REGISTRY[kind][part_name(cls)] = cls
        return cls

    return register


def _check_verb(
    kind: str, cls: type, verb: str, names: list[str], default: Callable[..., Any] | None
) -> None:
    method = getattr(cls, verb, None)
    if method is None:
        if default is None:
            raise TypeError(f"{kind} {cls.__name__} must define {verb}({', '.join(['self', *names])})")
        setattr(cls, verb, default)
        return
    if list(inspect.signature(method).parameters)[1:] != names:
        raise TypeError(
            f"{kind} {cls.__name__}: {verb} takes ({', '.join(['self', *names])}), by these names"
        )
    method.__annotations__ = {}  # Numba would compare them with those of the verb, which has none


def _couples_without_areas(cls: Any) -> bool:
    return cls.DRIFTS is not None and cls.couple is not _plain_couple and cls.areas is _plain_areas


def _check_values_at_birth(cls: Any) -> None:
    """Make every number a float (``l1=1`` and ``l1=1.0`` are one kernel) and hold it to LIMITS."""
    plain = cls.__new__

    def new(klass: type, *args: Any, **kwargs: Any) -> Any:
        values = [float(v) if type(v) is int else v for v in plain(klass, *args, **kwargs)]
        for field, value in zip(cls._fields, values, strict=True):
            _check_limit(cls, field, value)
        return tuple.__new__(klass, values)

    cls.__new__ = new


_LIMITS: dict[str, Callable[[float], bool]] = {
    ">= 0": lambda v: v >= 0,
    "> 0": lambda v: v > 0,
    ">= 1, inf included": lambda v: v >= 1,
    "in [0, 1]": lambda v: 0 <= v <= 1,
    "in (0, 1)": lambda v: 0 < v < 1,
    "in (0.5, 1)": lambda v: 0.5 < v < 1,
    "a whole number >= 1": lambda v: v >= 1 and v == math.floor(v),
    "any number": lambda v: True,
}


def _check_limit(cls: Any, field: str, value: Any) -> None:
    if not isinstance(value, float):
        return
    limit = limit_of(cls, field)
    bounded = "inf" not in limit and not math.isinf(cls._field_defaults.get(field, 0.0) or 0.0)
    if math.isnan(value) or (bounded and math.isinf(value)) or not _LIMITS[limit](value):
        raise SpecError(f"{part_name(cls)}: {field} must be {limit}, not {value:g}")


def limit_of(cls: Any, field: str) -> str:
    """What a number in this field must be, in words."""
    limit: str = getattr(cls, "LIMITS", {}).get(field, ">= 0")
    return limit


def _give_a_lasting_home(cls: type) -> None:
    """Move a class of ``__main__`` to a module of its own in `sys.modules`.

    No other process knows what ``__main__`` was; compiled code cached under that name would be lost.
    """
    main = sys.modules["__main__"]
    if cls.__module__ != "__main__" or not os.path.isfile(getattr(main, "__file__", None) or ""):
        return
    name = "thresher_main_" + re.sub(r"\W", "_", str(main.__file__))
    home = sys.modules.setdefault(name, ModuleType(name))
    home.__file__ = main.__file__
    home.__dict__.update({k: v for k, v in vars(main).items() if not k.startswith("__")})
    setattr(home, cls.__name__, cls)
    cls.__module__ = name


def part_name(cls: type) -> str:
    """Command-line name of a part's class: ``TruncatedGradient`` is ``truncated-gradient``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()


def shares_a_clock(rule: Any) -> bool:
    """Whether the clock of a rule depends on no example, so that many outputs can have one."""
    plain = {
        "gauge": _plain_gauge,
        "gain": _plain_gain,
        "assess": _plain_assess,
        "constrain": _plain_constrain,
    }
    return all(getattr(type(rule), verb) is default for verb, default in plain.items())


def rebuilt(value: Any, **changes: Any) -> Any:
    """The same part with some fields changed, checked as a new one is."""
    return type(value)(**{**value._asdict(), **changes})


def in_dtype(value: Any, dtype: Any) -> Any:
    """The part with its own numbers in another dtype, so that compiled arithmetic is done in it."""
    cast = np.dtype(dtype).type
    return tuple.__new__(type(value), [cast(v) if isinstance(v, float) else v for v in value])


def lookup(kind: str, name: str) -> Any:
    """The class registered under a name; SpecError with near matches otherwise."""
    known = {name: cls for k in _FAMILIES.get(kind, (kind,)) for name, cls in REGISTRY[k].items()}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=2, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(sorted(known))}"
    raise SpecError(f"no {kind} is called {name!r}; {hint}")


def make(kind: str, spec: Any, **nested: Any) -> Any:
    """A part from its SPEC (or the part itself, unchanged).

    `nested` gives fields that are parts themselves, such as ``rate=``.
    """
    if any(type(spec) in REGISTRY[k].values() for k in _FAMILIES.get(kind, (kind,))):
        return rebuilt(spec, **nested) if nested else spec
    if not isinstance(spec, str):
        raise SpecError(f"expected the name of a {kind} or a {kind}, not {spec!r}")
    name, _, rest = spec.partition(":")
    cls = lookup(kind, name.strip())
    values = _read_fields(cls, rest)
    for field in nested:
        if field not in cls._fields:
            raise SpecError(f"{kind} {part_name(cls)} has no {field}")
    return cls(**values, **nested)


def parameters(cls: Any) -> dict[str, Any]:
    """Field -> default of the fields that a SPEC can set (numbers, flags, groups)."""
    defaults = cls._field_defaults.items()
    return {f: d for f, d in defaults if f in _IN_SPECS or not isinstance(d, tuple)}


def _numbers(cls: Any) -> set[str]:
    return {field for field, default in parameters(cls).items() if isinstance(default, float)}


def _read_fields(cls: Any, text: str) -> dict[str, Any]:
    known = parameters(cls)
    in_order = [field for field in known if field not in _IN_SPECS]
    raw: dict[str, str] = {}
    for place, item in enumerate(text.split(",") if text.strip() else []):
        field, equals, value = (s.strip() for s in item.partition("="))
        if not equals:
            if place >= len(in_order):
                raise SpecError(
                    f"{part_name(cls)} takes at most {len(in_order)} values: {', '.join(in_order)}"
                )
            field, value = in_order[place], field
        if field not in known:
            raise SpecError(f"{part_name(cls)} has no parameter {field!r}; it has {', '.join(known)}")
        if field in raw:
            raise SpecError(f"{part_name(cls)}: {field} is given twice")
        raw[field] = value
    return {field: _read_value(cls, raw, field) for field in raw}


def _read_value(cls: Any, raw: dict[str, str], field: str) -> Any:
    text, default = raw[field], cls._field_defaults[field]
    if field in _IN_SPECS:
        return make(field, text)
    if text in _numbers(cls) - {field} and field in _numbers(cls):  # theta=gravity
        named = raw.get(text, cls._field_defaults[text])
        if named in _numbers(cls):
            raise SpecError(
                f"{part_name(cls)}: {field} names {text}, which must then be a number, not {named!r}"
            )
        return named if text not in raw else _read_value(cls, raw, text)
    if isinstance(default, bool):
        flags = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}
        if text.lower() not in flags:
            raise SpecError(f"{part_name(cls)}: {field} is true or false, not {text!r}")
        return flags[text.lower()]
    try:
        return float(text)
    except ValueError:
        raise SpecError(f"{part_name(cls)}: {field} must be a number, not {text!r}") from None


def spec_of(value: Any) -> str:
    """The SPEC that makes this part again (nested parts left out)."""
    fields = parameters(type(value))
    shown = ",".join(f"{f}={_written(getattr(value, f))}" for f in fields)
    return f"{part_name(type(value))}:{shown}"


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return part_name(type(value))
    return str(value).lower() if isinstance(value, bool) else repr(float(value))
