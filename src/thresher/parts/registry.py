"""The registry of parts: `part()` checks, completes and registers them; `make()` reads a SPEC.

A SPEC names a part and its parameters: ``ftrl:alpha=0.5,l1=1``. Values may be positional, in field order
(``power:0.5,1000,0.5``), and may refer to another field of the part (``theta=gravity``).

`rule_of` makes a rule from its SPEC and separate parameters: rate, penalties, step size.

What the class of a part declares is checked when it is defined: its fields, its attributes, its state. A rule
that compares counts (`rounding`) or replays steps (`subgradient`) sets ``DTYPE = "float64"``: a float32 stops
counting at 2^24.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import os
import re
import sys
import textwrap
from collections.abc import Callable, Collection
from itertools import pairwise
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from thresher.engine import verbs as verbs  # declares the verbs checked here
from thresher.engine.protocol import (
    ATTRIBUTES,
    IN_SPECS,
    KINDS,
    NEVER,
    PROTOCOL,
    rebuilt,
    writes,
)
from thresher.options.messages import mention, warn_user
from thresher.options.synonyms import meant
from thresher.parts.clamped import clamped_class
from thresher.parts.origins import (
    MAIN,
    entry_points,
    is_built_in,
    load_named,
    part_name,
    reduce_part,
)
from thresher.parts.origins import REGISTRY as REGISTRY
from thresher.parts.origins import SpecError as SpecError

SPARSE_RULES = "ft-ftrl, ftrl, fobos, adagrad-rda and others"
"""Rules with an `l1`, for messages"""


T = TypeVar("T", bound=type)


_PLAIN_NUMBER = re.compile(r"\d*\.?\d+(e[+-]?\d+)?")
_LONGEST = 80
_FAMILIES = {"loss": ("loss", "joint loss")}  # a SPEC of kind "loss" may name either


def part(kind: str, **declared: object) -> Callable[[T], T]:
    """Class decorator: check a NamedTuple against its protocol, complete it, register it.

    `declared` are constants of the class, such as SLOTS: type checkers take those in the body for fields.
    Raises TypeError for another kind or constant, if a required verb is missing or if parameters have other
    names.
    """
    if kind not in REGISTRY:
        kinds = ", ".join(f'@part("{one}")' for one in REGISTRY)
        raise TypeError(f"a part is one of {kinds}; not {getattr(kind, '__name__', kind)!r}")
    if unknown := declared.keys() - ATTRIBUTES[kind].keys():
        known = ", ".join(sorted(ATTRIBUTES[kind]))
        raise TypeError(f"a {kind} cannot declare {min(unknown)}; it can declare {known}")

    def register(cls: T) -> T:
        begin, fields = f"{kind} {cls.__name__}", getattr(cls, "_fields", None)
        if not fields:  # for Numba, one without fields is an empty tuple, which has no methods
            raise TypeError(f"{begin} must be a NamedTuple with a field or more, such as factor: float = 1.0")
        for name, value in declared.items():
            setattr(cls, name, value)
        _complete(begin, kind, cls)
        _check_declarations(begin, kind, cls)
        before = REGISTRY[kind].get(part_name(cls))
        if before is not None and is_built_in(before) and cls.__module__ != before.__module__:
            raise TypeError(f"a {kind} is already called {part_name(cls)}: give {cls.__name__} another name")
        if before is not None and before is not cls:
            cls.__name__ = f"{before.__name__}_"  # one of yours is replaced; Numba tells types by their names
        _check_values_at_birth(kind, cls)
        if kind == "rule":
            _check_first_steps(cls)
        _attach_to_module(cls)
        REGISTRY[kind][part_name(cls)] = cls
        if not is_built_in(cls):
            cls.__reduce__ = reduce_part  # type: ignore[assignment]
            cls.__copy__ = cls.__deepcopy__ = lambda self, memo=None: self  # type: ignore[attr-defined]
        return cls

    return register


def _check_values_at_birth(kind: str, cls: Any) -> None:
    """Make every number a float (``l1=1`` and ``l1=1.0`` share a kernel) and check it against LIMITS.

    SpecError also for a non-number where a number is needed.
    """
    plain = cls.__new__

    def new(klass: type, *args: Any, **kwargs: Any) -> Any:
        values = [_as_float(v) for v in plain(klass, *args, **kwargs)]
        for place, field in enumerate(cls._fields):
            values[place] = value = make(field, values[place]) if field in IN_SPECS else values[place]
            if isinstance(cls._field_defaults.get(field), float) and not isinstance(value, float):
                raise SpecError(f"{part_name(klass)}: {field} must be a number, not {value!r}")
            if isinstance(value, float):
                limit = cls.LIMITS.get(field, LEAST)
                bounded = "inf" not in limit and not math.isinf(cls._field_defaults.get(field, 0.0) or 0.0)
                if math.isnan(value) or (bounded and math.isinf(value)) or not LIMITS[limit](value):
                    finite = "finite and " if math.isinf(value) else ""
                    raise SpecError(f"{part_name(klass)}: {field} must be {finite}{limit}, not {value:g}")
        made: Any = tuple.__new__(klass, values)
        if kind == "loss":
            begin = f"{part_name(klass)}: link"
            each = [_value_at(begin, "margin", margin, made.link) for margin in (-30.0, 0.0, 30.0)]
            found = [float(one) for one in each if one is not None]
            if made.PROBABILITY and not all(low <= high for low, high in pairwise([0.0, *found, 1.0])):
                at = f"at -30, 0 and 30 it is {', '.join(f'{one:g}' for one in found)}"
                raise SpecError(f"{begin} of a PROBABILITY must rise within [0, 1]; {at}")
        if kind == "rate":
            _value_at(f"{part_name(klass)}: at", "step", 1.0, made.at)
        return made

    cls._field_defaults.update({field: _as_float(value) for field, value in cls._field_defaults.items()})
    cls.__new__ = new


def _value_at(begin: str, what: str, point: float, method: Callable[[float], Any]) -> Any:
    """What a method returns, which must be a number; None if plain Python cannot compute it."""
    try:
        one = method(point)
    except ArithmeticError:
        return None  # compiled code gives inf or NaN
    except (AttributeError, NameError, TypeError, ValueError) as error:
        raise SpecError(f"{begin} fails at {what} {point:g}: {type(error).__name__}: {error}") from error
    if not isinstance(one, int | float | np.number):
        raise SpecError(f"{begin} must return a number; at {what} {point:g} it is {one!r}")
    return one


def _as_float(value: object) -> object:
    if type(value) is float:
        return value
    if isinstance(value, int | np.integer | np.floating) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    return value


def _attach_to_module(cls: type) -> None:
    """Move a class of ``__main__`` to a module of its own in `sys.modules`.

    Another process has a different ``__main__``, so code cached under that name would be useless.
    """
    main = sys.modules["__main__"]
    if cls.__module__ != "__main__" or not os.path.isfile(getattr(main, "__file__", None) or ""):
        return
    name = MAIN + re.sub(r"\W", "_", str(main.__file__))
    home = sys.modules.setdefault(name, ModuleType(name))
    home.__file__ = main.__file__
    home.__dict__.update({k: v for k, v in vars(main).items() if not k.startswith("__")})
    setattr(home, cls.__qualname__, cls)
    cls.__module__ = name


def _kinds(kind: str) -> tuple[str, ...]:
    return _FAMILIES.get(kind, (kind,))


def _family(kind: str) -> dict[str, type]:
    return {name: cls for k in _kinds(kind) for name, cls in REGISTRY[k].items()}


def no_probabilities(loss: object) -> str:
    """What to say of a loss that gives no probabilities: which losses do."""
    *able, last = [
        name for name, cls in sorted(_family("loss").items()) if getattr(cls, "PROBABILITY", False) is True
    ]
    return f"the loss {part_name(type(loss))} gives no probabilities; {', '.join(able)} and {last} do"


def names(kind: str) -> list[str]:
    """Names that a SPEC of this kind can begin with, sorted, those of installed packages among them."""
    for name in sorted({one.name for one in entry_points()}):
        try:
            load_named(name)
        except SpecError as error:
            warn_user(str(error), UserWarning)
    return sorted(_family(kind))


def find(kind: str, name: str) -> Any:
    """The class of this name, built in, defined before or in an installed package; None if there is none.

    SpecError if the package cannot be imported.
    """
    known = [REGISTRY[k] for k in reversed(_kinds(kind))]
    if not any(name in one for one in known):
        load_named(name)
    return next((one[name] for one in known if name in one), None)


def lookup(kind: str, name: str) -> Any:
    """The class registered under a name; SpecError with near matches otherwise."""
    if (cls := find(kind, name)) is not None:
        return cls
    known = _family(kind)
    plain = name.lower().replace("_", "-")
    others = [one for one in ("rule", "loss", "rate") if one != kind and plain in _family(one)]
    started = re.match(r"([\w-]+)[\s,;=(]+(.*?)\)?$", plain)
    if others:
        hint = f"it is a {others[0]} ({mention(**{others[0]: plain})})"
    elif kind == "rate" and _PLAIN_NUMBER.fullmatch(plain):
        hint = f"did you mean constant:{plain} or inverse-sqrt:{plain}?"
    elif started and started[1] in known:
        hint = f"write {started[1]}:{started[2]}"
    elif near := meant(plain, [*known, *(one.name for one in entry_points())]):
        hint = f"did you mean {' or '.join(near)}?"
    else:
        hint = f"known: {', '.join(sorted(known))}"
    raise SpecError(f"no {kind} is called {name!r}; {hint}")


def make(kind: str, spec: Any, **nested: Any) -> Any:
    """A part from its SPEC (or the part itself, unchanged).

    `nested` sets fields that are parts themselves, such as ``rate=``. SpecError.
    """
    if any(type(spec) in REGISTRY[k].values() for k in _kinds(kind)):
        cls, values = type(spec), spec._asdict()
    elif isinstance(spec, str):
        values = fields_said(kind, spec)
        cls = find(kind, spec.partition(":")[0].strip())
    else:
        found = textwrap.shorten(repr(spec), _LONGEST, placeholder="...")
        raise SpecError(f"expected the name of a {kind} or a {kind}, not {found}")
    for field in nested:
        if field not in cls._fields:
            raise SpecError(f"{kind} {part_name(cls)} has no {field}")
    return cls(**values | nested) if nested or isinstance(spec, str) else spec


def changed(kind: str, value: object, fields: dict[str, Any]) -> Any:
    """The part with some fields changed: a SPEC if `value` is one. SpecError for a field it does not have."""
    made = make(kind, value)
    for field in fields:
        _check_field(type(made), field, type(made)._fields)
    new = rebuilt(made, **fields)
    return spec_of(new) if isinstance(value, str) else new


def _check_field(cls: Any, field: str, known: Collection[str], said: str = "") -> None:
    """SpecError unless the field is among the `known` ones of a part; it was `said` by that name."""
    if field in known:
        return
    parameter = said or field
    instead = meant(parameter, cls._fields)
    listed = f"it has {', '.join(known)}" if known else "it takes none"
    if instead and instead[0] not in known:  # a part of its own
        usual = spec_of(cls._field_defaults[instead[0]])
        has = f"its step size is the option {instead[0]}, such as {usual}{f' ({listed})' if known else ''}"
    elif instead:
        has = f"did you mean {instead[0]}? ({listed})"
    else:
        has = listed + (f"; {SPARSE_RULES} have one" if parameter == "l1" else "")
    raise SpecError(f"{part_name(cls)} has no parameter {parameter}; {has}")


def lacking(rule: object, options: Collection[str]) -> set[str]:
    """Those of `options` that set a parameter of some rule, but none of this one; empty if it is unknown.

    >>> lacking("sgd", ["alpha", "rate", "passes"])
    {'alpha'}
    """
    known: dict[str, Any] = _family("rule")
    cls: Any = known.get(rule.partition(":")[0]) if isinstance(rule, str) else type(rule)
    if cls not in known.values():
        return set()
    fields = {field for one in known.values() for field in one._fields}
    return fields.intersection(options).difference(cls._fields)


def parameters(cls: Any) -> dict[str, Any]:
    """Field -> default, for the fields that a SPEC can set (numbers, flags, groups)."""
    defaults = cls._field_defaults.items()
    return {f: d for f, d in defaults if f in IN_SPECS or not isinstance(d, tuple)}


def fields_said(kind: str, spec: str) -> dict[str, Any]:
    """The fields that a SPEC sets. SpecError."""
    name, _, text = spec.partition(":")
    cls = lookup(kind, name.strip())
    if without := [field for field in cls._fields if field not in cls._field_defaults]:
        reason = f"{part_name(cls)} has no default for {without[0]}, which a SPEC needs"
        raise SpecError(f"{reason}: give its class one, such as {without[0]}: float = 1.0")
    known = parameters(cls)
    in_order = [field for field in known if field not in IN_SPECS]
    raw: dict[str, str] = {}
    for place, item in enumerate(text.split(",") if text.strip() else []):
        field, equals, value = (s.strip() for s in item.partition("="))
        spelled = field.replace("-", "_")
        field = spelled if spelled in known else field
        if field in known and (not equals or (field in IN_SPECS and not value)):
            one_of = "|".join(REGISTRY.get(field, ["VALUE"]))
            raise SpecError(f"{part_name(cls)}: {field} needs a value: write {field}={one_of}")
        if not equals:
            if place >= len(in_order):
                most = f"at most {len(in_order)} values: {', '.join(in_order)}"
                raise SpecError(f"{part_name(cls)} takes {most}")
            field, value = in_order[place], field
        _check_field(cls, field, known)
        if field in raw:
            raise SpecError(f"{part_name(cls)}: {field} is given twice")
        raw[field] = value
    return {field: _read_value(cls, raw, field) for field in raw}


def _read_value(cls: Any, raw: dict[str, str], field: str) -> Any:
    text, defaults = raw[field], cls._field_defaults
    if field in IN_SPECS:
        return lookup(field, text)()
    default = defaults[field]
    if (
        text != field and isinstance(default, float) and isinstance(defaults.get(text), float)
    ):  # theta=gravity
        named = raw.get(text, defaults[text])
        if isinstance(defaults.get(named), float):
            raise SpecError(f"{part_name(cls)}: {field} names {text}, which must be a number, not {named!r}")
        return named if text not in raw else _read_value(cls, raw, text)
    if isinstance(default, bool):
        flags = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}
        if text.lower() not in flags:
            raise SpecError(f"{part_name(cls)}: {field} must be true or false, not {text!r}")
        return flags[text.lower()]
    try:
        return float("" if "_" in str(text) else text)  # Python reads 1_0 as 10
    except (TypeError, ValueError):
        raise SpecError(f"{part_name(cls)}: {field} must be a number, not {text!r}") from None


def spec_of(value: object) -> str:
    """The SPEC that makes this part, without nested parts."""
    shown = []
    for field in parameters(type(value)):
        own = getattr(value, field)
        text = part_name(type(own)) if isinstance(own, tuple) else repr(float(own))
        shown.append(f"{field}={str(own).lower() if isinstance(own, bool) else text}")
    return f"{part_name(type(value))}:{','.join(shown)}"


def able(fits: Callable[[Any], bool]) -> str:
    """For messages: the rules of classes that `fits` is true of."""
    return f"these rules can: {', '.join(sorted(name for name, cls in _family('rule').items() if fits(cls)))}"


def clamped(rule: Any, sign: float) -> object:
    """The rule with weights of this sign, or each with that of its row (see `clamped`). SpecError."""
    if rule.CLAMPS is None:
        others = able(lambda cls: cls.CLAMPS is not None)
        raise SpecError(f"{part_name(type(rule))} does not keep signs of weights; {others}")
    cls: Any = type(rule)
    return tuple.__new__(clamped_class(cls, sign), rule)


def rule_of(rule: object, rate: object = None, eta0: float | None = None, **fields: float | None) -> Any:
    """The rule with its rate and some fields changed (None: unchanged). SpecError for a field it lacks.

    >>> rule_of("ft-ftrl", l1=2.0, alpha=None).l1
    2.0
    """
    made = make("rule", rule)
    flat: dict[str, object] = {name: value for name, value in fields.items() if value is not None}
    if rate is not None or eta0 is not None:
        _check_field(type(made), "rate", type(made)._fields, "rate" if rate is not None else "eta0")
        given = make("rate", made.rate if rate is None else rate)
        flat["rate"] = given if eta0 is None else changed("rate", given, {"eta0": eta0})
    return changed("rule", made, flat) if flat else made


LIMITS: dict[str, Callable[[float], bool]] = {
    ">= 0": lambda v: v >= 0,
    "> 0": lambda v: v > 0,
    ">= 1": lambda v: v >= 1,
    ">= 1, inf included": lambda v: v >= 1,
    NEVER: lambda v: v >= 1,
    "0, or >= 1": lambda v: v == 0 or v >= 1,
    "in [0, 1]": lambda v: 0 <= v <= 1,
    "in (0, 1)": lambda v: 0 < v < 1,
    "in (0.5, 1)": lambda v: 0.5 < v < 1,
    "in (1, 2)": lambda v: 1 < v < 2,
    "a whole number >= 1": lambda v: v >= 1 and v == math.floor(v),
    "any number": lambda v: True,
}
"""The ranges that a part can set for a field"""
LEAST = ">= 0"
"""The range of other fields"""
_DOMAINS = "binary", "real", "nonnegative", "positive"
"""labels that a loss of one output can take"""
_DTYPES = "float32", "float64"
_LEFT_TO_THE_COMPILER = ArithmeticError, AttributeError, NameError, TypeError, ValueError
_LINKS = {"loss": "link(self, margin)", "joint loss": "links(self, margins, out)"}


def _complete(begin: str, kind: str, cls: Any) -> None:
    """Add the defaults of the verbs and attributes of a kind. TypeError if what is there does not fit."""
    KINDS[cls] = kind
    for name, verb in PROTOCOL[kind].items():
        method, takes = getattr(cls, name, None), ", ".join(verb.parameters)
        if method is None and verb.required:
            raise TypeError(f"{begin} must define {name}({takes})")
        if method is None:
            setattr(cls, name, verb.default)
        elif list(inspect.signature(method).parameters)[1:] != verb.parameters[1:]:
            raise TypeError(f"{begin}: {name} takes ({takes}), by these names")
    for name, value in ATTRIBUTES[kind].items():
        if not hasattr(cls, name):
            setattr(cls, name, value)


@functools.cache
def _drift_at(places: tuple[int, ...]) -> object:
    """The verb `drift` of a rule whose drifts are numbers of its clock."""

    def drift(self, clock, out):
        for k in range(len(places)):
            out[k] = clock[places[k]]

    return drift


@functools.cache
def _area_at(place: int) -> object:
    """The verb `area` of a rule whose weights are linear in one number of its clock until they are zero."""
    after = place + 1

    def area(self, S, j, n, sums, now):
        return n * verbs.weight(self, S, j, (*now[:place], sums[0] / n, *now[after:]))

    return area


def _check_declarations(begin: str, kind: str, cls: Any) -> None:
    """TypeError if a field or an attribute is not what it must be."""
    for field, default in cls._field_defaults.items():
        if not isinstance(default, int | float | np.number | tuple):
            raise TypeError(f"{begin}: the default of {field} must be a number or a flag, not {default!r}")
    for field, limit in cls.LIMITS.items():
        if limit not in LIMITS:
            raise TypeError(f"{begin}: LIMITS[{field!r}] must be one of {[*LIMITS]}; not {limit!r}")
    for name in ("LIMITS", "TUNED", "PENALTIES"):
        for field in getattr(cls, name, None) or ():
            if field not in cls._fields:
                raise TypeError(f"{begin}: {name} names {field!r}; its fields are {', '.join(cls._fields)}")
    if kind in _LINKS:
        if kind == "loss" and cls.DOMAIN not in _DOMAINS:
            raise TypeError(f"{begin}: DOMAIN must be {', '.join(_DOMAINS[:-1])} or {_DOMAINS[-1]}")
        if kind == "loss" and cls.PROBABILITY and cls.DOMAIN != "binary":
            raise TypeError(f'{begin}: PROBABILITY = True needs DOMAIN = "binary", not {cls.DOMAIN!r}')
        verb = _LINKS[kind].partition("(")[0]
        if cls.PROBABILITY and not writes(cls, verb):
            raise TypeError(f"{begin}: PROBABILITY = True needs {_LINKS[kind]}, which returns probabilities")
    if kind == "rule":
        _complete_rule(begin, cls)


def _complete_rule(begin: str, cls: Any) -> None:
    """Check what a rule declares; make its `drift` if that only reads the clock, and `area` by one drift."""
    if not cls.SLOTS:
        raise TypeError(f"{begin} must say SLOTS = ('name', ...): the columns of its state")
    for name in ("SLOTS", "CLOCK", "PENALTIES", "DRIFTS"):
        value = getattr(cls, name)
        if not (value is None and name == "DRIFTS") and not (
            isinstance(value, tuple | list) and all(isinstance(one, str) for one in value)
        ):
            raise TypeError(f"{begin}: {name} must be a tuple of names, such as ('w',), not {value!r}")
    if cls.DRIFTS and not writes(cls, "drift"):
        if not {*cls.DRIFTS} <= {*cls.CLOCK}:
            raise TypeError(f"{begin} must define drift, unless all of DRIFTS = {cls.DRIFTS} are in CLOCK")
        places = tuple(cls.CLOCK.index(name) for name in cls.DRIFTS)
        cls.drift = _drift_at(places)
        if len(places) == 1 and not writes(cls, "area"):
            cls.area = _area_at(places[0])
    if cls.DTYPE not in _DTYPES:
        raise TypeError(f"{begin}: DTYPE must be {' or '.join(_DTYPES)}, not {cls.DTYPE!r}")
    if writes(cls, "tick") and cls.CLOCK is ATTRIBUTES["rule"]["CLOCK"]:
        raise TypeError(f"{begin} has tick, but no CLOCK = ('t',): a name for each number that tick keeps")


def _check_first_steps(cls: Any) -> None:
    """TypeError unless a new clock holds a float64 for each name in CLOCK, and the first step keeps within.

    That is so if it uses no columns beyond SLOTS, and `tick` no numbers beyond CLOCK: compiled code does not
    check indices. Whatever else fails here, the compiler reports with its line. A rule without defaults for
    all fields is not tried.
    """
    if len(cls._field_defaults) < len(cls._fields):
        return
    rule, clock = cls(), cls().clock0()
    if not isinstance(clock, np.ndarray) or clock.dtype != np.float64 or clock.shape != (len(cls.CLOCK),):
        wanted = f"an array of float64 with a number for each of CLOCK = {cls.CLOCK}"
        what = f"{type(clock).__name__} of {np.asarray(clock).dtype}, {np.shape(clock)}"
        raise TypeError(f"rule {cls.__name__}: clock0 must return {wanted}, not {what}")
    S, now, clock = np.zeros((1, len(cls.SLOTS))), tuple(clock.tolist()), clock.copy()
    calls: dict[str, Callable[[], Any]] = {
        "weight": lambda: rule.weight(S, 0, now),
        "step": lambda: rule.step(S, 0, 0.0, 1.0, 0.5, now),
        "tick": lambda: rule.tick(clock),
    }
    for method, call in calls.items():
        try:
            with np.errstate(all="ignore"), contextlib.suppress(*_LEFT_TO_THE_COMPILER):
                call()
        except IndexError as error:
            there = f"SLOTS = {tuple(cls.SLOTS)}, CLOCK = {tuple(cls.CLOCK)}"
            what = f"{method} uses a column of S or a number of the clock that there is not"
            raise TypeError(f"rule {cls.__name__}: {what}: {there} ({error})") from None
