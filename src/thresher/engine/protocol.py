"""The protocol of parts: how verbs are declared, and how a class is checked against them.

A *part* (loss, rate, rule ...) is a NamedTuple: its fields are run-time hyper-parameters, its class selects
the code. A *verb* is a function that calls the part's method of the same name, from plain Python and from
compiled code alike. So one generic kernel compiles to one fused loop per combination of part classes.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from thresher.engine.compile import jit
from thresher.engine.compile.jit import in_place

NUMBER, PAIR, TRUTH = "a number", "two numbers, (loss, slope)", "true or false"
"""What the methods of a verb can return"""
KINDS: dict[type, str] = {}
"""The classes of parts, and what they are"""
IN_SPECS = ("group",)
"""Fields that are parts of the kind with the same name, and are written in the SPEC"""
NEVER = ">= 1, or inf"
"""The limit of a number whose infinity means never: loops are compiled without its code (`in_dtype`)"""


class PartError(TypeError):
    """A method of a part that cannot be compiled, or returns something else than its verb."""


class Verb(NamedTuple):
    """The arguments of `verb`, and the decorated function."""

    default: Callable[..., Any]
    """what the verb does if a class does not define it; unused if `required`"""
    required: bool
    compiled: bool
    returns: str
    """one of the three above, or "" for nothing that is used"""
    parameters: list[str]
    """names, `self` first"""


PROTOCOL: dict[str, dict[str, Verb]] = {kind: {} for kind in ("loss", "joint loss", "rate", "group", "rule")}
"""kind -> name -> verb; `engine.verbs` declares them"""
_OF_LOSSES: dict[str, Any] = dict.fromkeys(
    ("PROBABILITY", "BOOSTABLE", "SHIFTS", "SCALES", "LOG_ODDS"), False
)
_OF_LOSSES["LEVEL"] = None
_OF_FIELDS: dict[str, Any] = {"LIMITS": {}, "TUNED": None}
# Attributes that a part may define beside its verbs.
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "loss": {"DOMAIN": "real", **_OF_LOSSES, **_OF_FIELDS},
    "joint loss": {"DOMAIN": "classes", "ONE": None, "RELATIVE": False, **_OF_LOSSES, **_OF_FIELDS},
    "rate": _OF_FIELDS,
    "group": _OF_FIELDS,
    "rule": {
        **_OF_FIELDS,
        "SLOTS": (),  # the columns of its state: every rule must say them
        "CLOCK": ("unused",),
        "PENALTIES": (),
        "DTYPE": "float32",
        "DRIFTS": None,
        "CLAMPS": None,  # verbs after which a clamped weight is written, see `parts.clamped`; None: unable
        "RELATIVE_IMPORTANCE": False,  # whether multiplying all importances by a number changes nothing
        "AUTOMATIC": False,  # columns are centred and short streams replayed, unless the user says otherwise
    },
}


def verb(
    *kinds: str, required: bool = False, arrays: bool = False, compiled: bool = True, returns: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a verb of these kinds: the decorated function gives its name, parameters and default.

    The verb calls the method of the part it is given. If `required`, every class must define it. `arrays`
    allows its methods to create arrays; methods called in loops over coordinates must not. With
    `compiled=False`, only Python calls it. `returns` says what its methods must return (`compile.translate`).
    """

    def declare(default: Callable[..., object]) -> Callable[..., Any]:
        name = default.__name__

        @functools.wraps(default)
        def call(self: Any, *args: Any) -> Any:
            return getattr(self, name)(*args)

        def method(self: Any, *args: Any) -> Any:
            return getattr(getattr(self, "instance_class", None), name, None)

        declared = Verb(default, required, compiled, returns, list(inspect.signature(default).parameters))
        for kind in kinds:
            PROTOCOL[kind][name] = declared
        if compiled:  # `part` has checked the parameters, so Numba need not
            jit.declare(call, "helper" if arrays else "borrowing", method)
        return call

    return declare


def writes(cls: Any, name: str) -> bool:
    """Whether the class of a part defines a verb itself; those made of a rule, to keep signs, are rules."""
    return getattr(cls, name) is not PROTOCOL[KINDS.get(cls, "rule")][name].default


def rebuilt(value: Any, **changes: Any) -> Any:
    """A copy of a part with some fields changed, validated like a new one."""
    return type(value)(**{**value._asdict(), **changes})


def shares_a_clock(rule: object) -> bool:
    """Whether the clock of a rule is independent of the examples, so that many outputs can share one."""
    return not any(
        writes(type(rule), verb)
        for verb in ("size_before_margin", "slope_after_margin", "note_after_margin", "constrain")
    )


def in_dtype(value: Any, dtype: Any) -> Any:
    """The part with its numbers in another dtype, so that compiled arithmetic uses it; None if `NEVER`."""
    return _in_dtype(value, tuple(map(type, value)), dtype)


@functools.lru_cache(maxsize=256, typed=True)
def _in_dtype(value: Any, kinds: tuple[type, ...], dtype: Any) -> Any:
    """`kinds` tell parts within it apart that are equal tuples, such as groups and rates."""
    cast, limits = np.dtype(dtype).type, type(value).LIMITS
    numbers = {f: cast(v) for f, v in value._asdict().items() if isinstance(v, float)}
    never = {f: None for f, v in numbers.items() if limits.get(f) == NEVER and np.isinf(v)}
    return tuple.__new__(type(value), (value._asdict() | numbers | never).values())


def intercept_of(rule: Any) -> Any:
    """The rule of the intercept of a rule."""
    return _intercept_of(rule, tuple(map(type, rule)))


@functools.lru_cache(maxsize=256, typed=True)
def _intercept_of(rule: Any, kinds: tuple[type, ...]) -> Any:
    """`kinds` as in `_in_dtype`."""
    return rule.intercept()


@in_place
def snapshot(self, clock, S):
    """The clock as a tuple in the dtype of S: the argument `now` of `weight` and `step`.

    A tuple stays in registers, so a loop over a row loads and rounds it once. A running sum is rounded in
    the same way when it is noted and when the lazy update is applied, so the differences add up.

    If the verbs got the clock as an array of float64, every read would be a load and a conversion: truncated
    gradient took 4.7 ns per non-zero. With the tuple it takes 2.6, and plain C 2.35.
    """
    return tuple(clock.astype(S.dtype, copy=False))
