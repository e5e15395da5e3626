"""What each kind of part can do: its verbs, their parameters, and what they do where they are not written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thresher.engine.jit import couple, weight

IN_SPECS = ("group",)
"""Fields that are parts, of the kind of that name, and are written in the SPEC"""


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
    for k in range(out.size):
        out[k] = weight(self, T, k, now)  # type: ignore[no-untyped-call]
    couple(self, T, out, now)  # type: ignore[no-untyped-call]
    for k in range(out.size):
        out[k] *= n


def _plain_renorm(self, clock):  # type: ignore[no-untyped-def]
    return 1.0


def _plain_begin_pass(self, clock, number, S):  # type: ignore[no-untyped-def]
    pass


def _plain_sound(self, S, clock, steps):  # type: ignore[no-untyped-def]
    return ""


def _plain_shown(self, S, j, w, now):  # type: ignore[no-untyped-def]
    return w


def _never(self, S, j, w, now):  # type: ignore[no-untyped-def]
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
    groups = {f: d for f, d in cls._field_defaults.items() if f in IN_SPECS}
    return rebuilt(self, **dict.fromkeys(cls.PENALTIES, 0.0), **groups)


# kind -> verb -> (parameter names, default; None = must be written)
# `clock0`, `begin_pass`, `intercept` and `sound` are never compiled. `begin_pass` tells the clock that pass
# `number` (from 1) over the same data begins, or goes on after a stop, with the rows S of one output: told
# twice of a pass, it changes nothing.
# `sound` is asked when a state comes from a file, with arrays of one output: what is wrong with S and clock
# after at most so many steps, in words; "" if nothing. It is for rules that keep places of rows, or counts,
# in S or clock, which compiled code trusts.
PROTOCOL: dict[str, dict[str, tuple[str, Callable[..., Any] | None]]] = {
    "loss": {"value_slope": ("margin y", None), "link": ("margin", _identity)},
    "joint loss": {
        "values_slopes": ("margins y values slopes", None),
        "links": ("margins out", _identities),
    },
    "rate": {"at": ("t", None), "steady": ("", _no)},
    "group": {
        "alone": ("v owed", None),
        "together": ("out owed", None),
        "dual": ("v", None),
        "grouped": ("", None),
    },
    "rule": {
        "clock0": ("", None),
        "begin_pass": ("clock number S", _plain_begin_pass),
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
        "idle": ("S j w now", _never),
        "sound": ("S clock steps", _plain_sound),
        "intercept": ("", _without_penalties),
    },
}
# What a part may say of itself beside its verbs.
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "loss": {"DOMAIN": "real", "PROBABILITY": False, "BOOSTABLE": False, "SHIFTS": False},
    "joint loss": {"DOMAIN": "classes", "PROBABILITY": False, "BOOSTABLE": False, "SHIFTS": False},
    "rate": {},
    "group": {},
    "rule": {"PENALTIES": (), "DTYPE": "float32", "DRIFTS": None},
}
NEEDED: dict[str, dict[str, str]] = {
    "loss": {},
    "joint loss": {},
    "rate": {},
    "group": {},
    "rule": {"SLOTS": "the columns of its state", "CLOCK": "the scalars that all coordinates share"},
}


def rebuilt(value: Any, **changes: Any) -> Any:
    """The same part with some fields changed, checked as a new one is."""
    return type(value)(**{**value._asdict(), **changes})


def writes(cls: Any, verb: str) -> bool:
    """Whether the class of a rule writes a verb itself."""
    return getattr(cls, verb) is not PROTOCOL["rule"][verb][1]
