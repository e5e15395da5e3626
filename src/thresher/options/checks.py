"""Checks of arguments. An error names the argument, what it must be and what was given."""

from __future__ import annotations

import numpy as np

from thresher.data.errors import OneLineError
from thresher.data.feature_specs import ANY, as_list
from thresher.options.kinds import WrongValueError, names
from thresher.options.messages import mention


def check_whole(name: str, value: object, least: int, most: int | None = None) -> None:
    """ValueError unless `value` is a whole number from `least` to `most`; `name` is that of an option."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise OneLineError(f"{mention(name)} must be a whole number, {least} or more, not {value!r}")
    if most is not None and value > most:
        raise OneLineError(f"{mention(name)} must be at most {most}, not {value!r}")


def check_flag(name: str, value: object) -> None:
    """ValueError unless `value` is True or False (or 1 or 0)."""
    if not isinstance(value, bool | int | np.bool_ | np.integer) or value not in (0, 1):
        raise ValueError(f"{name} must be True or False, not {value!r}")


def names_spec(option: str, given: object) -> str | None:
    """The columns that an option names, as text; None for none. ValueError."""
    if given is None:
        return None
    try:
        found = names(given)
    except WrongValueError:
        found = ()
    if not found:
        raise OneLineError(f"{mention(option)} must be names of columns, or {ANY} for all, not {given!r}")
    if ANY in found and len(found) > 1:
        raise OneLineError(f"{mention(**{option: ANY})} is all columns: leave the other names out")
    return as_list(found)
