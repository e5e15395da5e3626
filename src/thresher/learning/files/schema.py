"""What the header of a file must hold, from the types of the classes that it becomes.

A named tuple is a list there, a dataclass an object, and a `Form` anything else. Everything is checked before
it is used.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from thresher.data.errors import shortened
from thresher.engine.sound import StateError

T = TypeVar("T")
Fields = Mapping[str, Any]
"""The type of each field of an object."""
_SHOWN = 40


def _same(value: Any) -> Any:
    return value


class Form(NamedTuple):
    """How a header holds values of a type."""

    words: str
    fits: Callable[[Any], bool]
    made: Callable[[Any], Any] = _same
    """the value that a fitting one means; may raise StateError"""


def _is_number(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) < 1 << 1023)


def _is_count(value: Any, bits: int = 63) -> bool:
    return type(value) is int and 0 <= value < 1 << bits


_PLAIN = {
    str: Form("text", lambda v: isinstance(v, str)),
    bool: Form("true or false", lambda v: isinstance(v, bool)),
    int: Form("a number >= 0", _is_count),
    float: Form("a number", _is_number),
    list: Form("a list", lambda v: isinstance(v, list)),
    dict: Form("an object", lambda v: isinstance(v, dict)),
    NoneType: Form("null", lambda v: v is None),
    object: Form("anything", lambda v: True),
}
Positive = Annotated[int, Form("a number >= 1", lambda v: _is_count(v) and v >= 1)]
Key = Annotated[int, Form("a number >= 0", functools.partial(_is_count, bits=64))]
Finite = Annotated[float, Form("a finite number", lambda v: _is_number(v) and math.isfinite(v))]


@functools.cache
def form_of(kind: Any) -> Form:
    """How a header holds values of a type. TypeError for a type that it cannot hold."""
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if origin is Annotated:
        return next(one for one in inner if isinstance(one, Form))
    if origin in (Union, UnionType):
        forms = [form_of(one) for one in inner]
        return Form(
            " or ".join(one.words for one in forms),
            lambda v: any(one.fits(v) for one in forms),
            lambda v: next(one for one in forms if one.fits(v)).made(v),
        )
    if inner and (origin is list or inner[1:] == (...,)):
        form = form_of(inner[0])
        return Form(
            f"a list, each {form.words}",
            lambda v: isinstance(v, list) and all(map(form.fits, v)),
            lambda v: origin(map(form.made, v)),
        )
    if origin in _PLAIN:
        return _PLAIN[origin]
    if isinstance(kind, type) and is_dataclass(kind):
        return _PLAIN[dict]._replace(made=lambda v: read(kind, v, kind.__name__.lower()))
    if inner and origin is tuple:
        words, each, made = f"a list of {len(inner)}", [form_of(one) for one in inner], tuple
    elif isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_make"):
        known = kinds_of(kind)
        words, each, made = f"a list of {', '.join(known)}", [*map(form_of, known.values())], kind._make
    else:
        raise TypeError(f"a header cannot hold {kind}: annotate it with a Form")
    return Form(
        words,
        lambda v: (
            isinstance(v, list) and len(v) == len(each) and all(f.fits(v[k]) for k, f in enumerate(each))
        ),
        lambda v: made(f.made(one) for f, one in zip(each, v, strict=True)),
    )


@functools.cache
def kinds_of(cls: Any) -> Fields:
    """The types of the fields of a dataclass or named tuple."""
    found = get_type_hints(cls, include_extras=True)
    names = [one.name for one in fields(cls) if one.init] if is_dataclass(cls) else cls._fields
    return {name: found[name] for name in names}


def _are_figures(value: Any) -> bool:
    plain = isinstance(value, dict) and all(one is None or _is_number(one) for one in value.values())
    return plain and _is_number(value.get("loss"))


Figures = Annotated[dict[str, Any], Form("figures with a loss", _are_figures)]


def check(given: Any, wanted: Fields, where: str = "header", others: Fields | None = None) -> None:
    """StateError with `where` and the field, unless `given` is an object with the `wanted` fields.

    Of all other fields it may have only `others`; if these are None, any.
    """
    if not isinstance(given, dict):
        raise StateError(f"{where}: expected an object, found {_described(given)}")
    for name, kind in {**wanted, **(others or {})}.items():
        if name not in given and name in wanted:
            raise StateError(f"{where}: {name} is missing")
        if name in given and not (form := form_of(kind)).fits(given[name]):
            raise StateError(f"{where}: {name} must be {form.words}, not {_described(given[name])}")
    if others is not None and (unknown := given.keys() - wanted.keys() - others.keys()):
        raise StateError(f"{where}: unknown field {min(unknown)}")


def read(cls: type[T], given: Any, where: str) -> T:
    """The object of a dataclass with these fields and no others. StateError, as `check`."""
    wanted = kinds_of(cast(Any, cls))
    check(given, wanted, where, {})
    return cls(**{name: form_of(wanted[name]).made(value) for name, value in given.items()})


def _described(value: Any) -> str:
    return shortened(repr(value), _SHOWN)
