"""Checks of what the class of a part declares, when it is defined: its fields, its attributes, its state.

A rule that compares counts (`rounding`) or replays steps (`subgradient`) sets ``DTYPE = "float64"``: a
float32 stops counting at 2^24.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from thresher.engine.protocol import ATTRIBUTES, NEVER, PROTOCOL, writes

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
    "a whole number >= 1": lambda v: v >= 1 and v == math.floor(v),
    "any number": lambda v: True,
}
"""The ranges that a part can set for a field"""
OPTIONAL = "LIMITS", "TUNED"
"""What parts of any kind can declare of their fields"""
_DOMAINS = "binary", "real", "nonnegative", "positive"
"""labels that a loss of one output can take"""
_DTYPES = "float32", "float64"
_LEFT_TO_THE_COMPILER = ArithmeticError, AttributeError, NameError, TypeError, ValueError
_LINKS = {"loss": "link(self, margin)", "joint loss": "links(self, margins, out)"}


def check_declarations(kind: str, cls: Any) -> None:
    """TypeError, naming the part, if a field or an attribute is not what it must be."""
    begin = f"{kind} {cls.__name__}"
    for field, default in cls._field_defaults.items():
        if not isinstance(default, int | float | np.number | tuple):
            raise TypeError(
                f"{begin}: the default of {field} must be a number, True or False, not {default!r}:"
                f" {field}: float = 1.0"
            )
    _check_limits(begin, cls)
    if kind in _LINKS:
        if kind == "loss" and cls.DOMAIN not in _DOMAINS:
            raise TypeError(f"{begin}: DOMAIN must be {', '.join(_DOMAINS[:-1])} or {_DOMAINS[-1]}")
        if kind == "loss" and cls.PROBABILITY and cls.DOMAIN != "binary":
            raise TypeError(f'{begin}: PROBABILITY = True needs DOMAIN = "binary", not {cls.DOMAIN!r}')
        verb = _LINKS[kind].partition("(")[0]
        if cls.PROBABILITY and getattr(cls, verb) is PROTOCOL[kind][verb].default:
            raise TypeError(
                f"{begin}: PROBABILITY = True needs {_LINKS[kind]}, which turns margins into probabilities"
            )
    if kind == "rule":
        _check_rule(begin, cls)


def _check_limits(begin: str, cls: Any) -> None:
    for field, limit in getattr(cls, "LIMITS", {}).items():
        if limit not in LIMITS:
            known = ", ".join(map(repr, LIMITS))
            raise TypeError(f"{begin}: LIMITS[{field!r}] must be one of {known}; not {limit!r}")
    for name in (*OPTIONAL, "PENALTIES"):
        for field in getattr(cls, name, ()):
            if field not in cls._fields:
                raise TypeError(f"{begin}: {name} names {field!r}; its fields are {', '.join(cls._fields)}")


def _check_rule(begin: str, cls: Any) -> None:
    if cls.DRIFTS and writes(cls, "couple") and not writes(cls, "areas"):
        raise TypeError(f"{begin} has couple and DRIFTS: it must define areas too")
    for name in ("SLOTS", "CLOCK", "PENALTIES", "DRIFTS"):
        value = getattr(cls, name)
        if not (value is None and name == "DRIFTS") and not (
            isinstance(value, tuple | list) and all(isinstance(one, str) for one in value)
        ):
            raise TypeError(f"{begin}: {name} must be a tuple of names, such as ('w',), not {value!r}")
    if not cls.SLOTS:
        raise TypeError(f"{begin}: SLOTS must name at least one column")
    if cls.DTYPE not in _DTYPES:
        raise TypeError(f"{begin}: DTYPE must be {' or '.join(_DTYPES)}, not {cls.DTYPE!r}")
    if writes(cls, "tick") and cls.CLOCK is ATTRIBUTES["rule"]["CLOCK"]:
        raise TypeError(
            f"{begin} has tick, but no CLOCK: say CLOCK = ('t',), a name for each number that tick keeps"
        )


def check_first_steps(rule: Any, clock: Any) -> None:
    """TypeError if the first step of a rule uses columns beyond SLOTS, or its `tick` numbers beyond CLOCK.

    Compiled code does not check indices. Whatever else fails here, the compiler reports with its line.
    """
    cls = type(rule)
    S, now, clock = np.zeros((1, len(cls.SLOTS))), tuple(clock.tolist()), clock.copy()
    begin = f"rule {cls.__qualname__.rpartition('.')[2]}"
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
            raise TypeError(
                f"{begin}: {method} uses a column of S or a number of the clock that there is not:"
                f" SLOTS = {tuple(cls.SLOTS)}, CLOCK = {tuple(cls.CLOCK)} ({error})"
            ) from None
