"""Schema of the header: which fields it has and what each holds. Checked before anything else reads it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from thresher.engine.sound import StateError
from thresher.learning.model.recipe import Recipe
from thresher.learning.training.progress import Row, is_curve
from thresher.learning.training.shares import is_old, is_text

Fields = Mapping[str, str]
"""For each name, what its value must be: a key of `_KINDS`."""
_SHOWN = 40


def _is_number(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) < 1 << 1023)


def _is_whole(value: Any) -> bool:
    return type(value) is int


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 64


def _is_place(value: Any) -> bool:
    return _is_count(value) and value < 1 << 63


_KINDS: dict[str, Callable[[Any], bool]] = {
    "text": lambda v: isinstance(v, str),
    "text or null": lambda v: v is None or isinstance(v, str),
    "true or false": lambda v: isinstance(v, bool),
    "a whole number": _is_whole,
    "a number >= 0": _is_count,
    "a number >= 1": lambda v: _is_count(v) and v >= 1,
    "a place": _is_place,
    "three whole numbers or null": lambda v: v is None or (_is_list(v, 3, 3) and all(map(_is_place, v))),
    "a finite number": lambda v: _is_finite(v),
    "a number": _is_number,
    "a number or null": lambda v: v is None or _is_number(v),
    "two numbers": lambda v: _is_list(v, 2, 2) and all(map(_is_number, v)),
    "numbers": lambda v: _is_list(v, 0) and all(map(_is_finite, v)),
    "features and sizes": lambda v: _is_list(v, 0) and all(map(_is_size, v)),
    "features and values": lambda v: _is_list(v, 0) and all(map(_is_span, v)),
    "counts and sums": lambda v: _is_list(v, 0) and all(map(_is_mark, v)),
    "losses of passes": lambda v: _is_list(v, 0) and all(map(_is_pass, v)),
    "a span of keys": lambda v: _is_list(v, 2, 2) and all(map(_is_count, v)) and v[0] <= v[1],
    "ids of a training": lambda v: _is_list(v, 3, 3) and all(map(_is_count, v[:2])) and type(v[2]) is bool,
    "a list": lambda v: _is_list(v, 0),
    "names, size and rows of data": lambda v: _is_data(v),
    "a share of the rows": is_text,
    "every N-th": is_old,
    "points of a curve": is_curve,
    "what is held out": lambda v: _is_list(v, 4, 4) and (is_text(v[0]) or is_old(v[0])) and _is_data(v[1:]),
    "hashes and sizes": lambda v: _is_list(v, 0) and all(map(_is_content, v)),
    "rows of numbers": lambda v: _is_list(v, 0) and all(map(_is_row, v)),
    "lines of text": lambda v: _is_list(v, 0) and all(isinstance(one, str) for one in v),
    "lists of four texts": lambda v: (
        _is_list(v, 0) and all(_is_list(one, 4) and all(isinstance(part, str) for part in one) for one in v)
    ),
    "an object": lambda v: isinstance(v, dict),
    "an object or null": lambda v: v is None or isinstance(v, dict),
}


def _is_list(value: Any, least: int, most: int | None = None) -> bool:
    return isinstance(value, list) and least <= len(value) <= (len(value) if most is None else most)


def _is_data(value: Any) -> bool:
    if not _is_list(value, 3, 3):
        return False
    names, size, where = value
    return isinstance(names, str) and (size is None or _is_count(size)) and isinstance(where, str)


def _is_content(value: Any) -> bool:
    return _is_list(value, 2, 2) and all(map(_is_count, value))


def _is_finite(value: Any) -> bool:
    return _is_number(value) and math.isfinite(value)


def _is_span(value: Any) -> bool:
    """Whether it is a key, its lowest and highest value, and a count."""
    numbers = _is_list(value, 4, 4) and all(map(_is_finite, value[1:3]))
    return numbers and _is_count(value[0]) and _is_count(value[3])


def _is_size(value: Any) -> bool:
    return _is_list(value, 2, 2) and _is_count(value[0]) and _is_finite(value[1])


def _is_mark(value: Any) -> bool:
    return _is_list(value, 3, 3) and _is_count(value[0]) and all(map(_is_number, value))


def _is_pass(value: Any) -> bool:
    return _is_list(value, 3, 3) and all(map(_is_number, value[:2])) and _KINDS["a number or null"](value[2])


def _is_row(value: Any) -> bool:
    fields = len(Row._fields)  # older checkpoints do not have the pass
    return _is_list(value, fields - 1, fields) and all(map(_is_number, value)) and _is_count(value[0])


EDITION: Fields = {"format": "a whole number", "version": "text"}
"""Fields of every file, in any format version."""
MODEL: Fields = {"recipe": "an object", "lowest_label": "a finite number"}
"""Fields of every model."""
CURVE: Fields = {"curve": "points of a curve"}
"""Fields of a model with a progress curve."""
NUMBERING: Fields = {"numbering": "ids of a training"}
"""Fields of a model whose features are numbers: the lowest and highest, and whether they are columns."""
COUNTS: Fields = {
    "examples": "a number >= 0",
    "features_seen": "a number >= 0",
    "progressive_loss": "a number or null",
    "loss_of_later_passes": "a number",
}
"""Counts of a training, which a file may lack."""
SHOWN: Fields = {"nonzero": "a number >= 0"}
"""Fields of every model that has a file to itself, for the commands that show it."""
_OF_TYPES = {
    "Spec": "text",
    "Spec | None": "text or null",
    "str": "text",
    "str | None": "text or null",
    "str | int | None": "text or null",
    "int": "a whole number",
    "bool": "true or false",
    "bool | None": "true or false",
    "SettledLayout | None": "an object or null",
}
"""The types of Recipe fields, and how a header holds them."""
RECIPE: Fields = {field.name: _OF_TYPES[str(field.type)] for field in fields(Recipe)}
"""Fields of the recipe of a model that can keep learning."""
_WEIGHTS = ("loss", "outputs", "store", "intercept", "layout")
"""Fields of the recipe in a file with weights only."""
TRAINING: Fields = {
    "data": "names, size and rows of data",
    "read": "hashes and sizes",
    "holdout": "what is held out",
    "evaluated": "hashes and sizes",
    "order": "text",
    "passes": "a number >= 1",
    "patience": "a number >= 0",
    "position": "an object",
    "label": "a number",
    "table": "rows of numbers",
    "reported": "two numbers",
    "best": "an object or null",
    "passes_since": "a number >= 0",
    "seen": "an object",
}
"""Fields of ``training`` in a checkpoint."""
REPLAY: Fields = {"replay": "a place", "settled": "true or false"}
"""Further fields of it, which older checkpoints do not have."""
POSITION: Fields = {
    "number": "a number >= 1",
    "place": "three whole numbers or null",
    "learned": "a place",
    "report": "an object",
}
SEEN: Fields = {
    **dict.fromkeys(
        ("rows", "changes", "rises", "falls", "zeros", "numbers", "weightless", "positives", "measured"),
        "a place",
    ),
    **dict.fromkeys(("positive", "weight", "last", "low", "high"), "a finite number"),
    "stride": "a number >= 1",
    **dict.fromkeys(("labels", "weights"), "numbers"),
    "marks": "counts and sums",
    "passes": "losses of passes",
    "features": "features and sizes",
    "spans": "features and values",
    "span": "a span of keys",
}
REPORT: Fields = {
    **dict.fromkeys(("lines", "examples", "blank", "skipped", "merged", "quarantined_bytes"), "a place"),
    "first_bad": "a list",
}
BAD_LINE: Fields = {
    **dict.fromkeys(("file", "expected", "found", "raw"), "text"),
    **dict.fromkeys(("line", "column"), "a place"),
}
RECORD: Fields = {
    "passes": "a number >= 1",
    **dict.fromkeys(("order", "where"), "text"),
    "holdout": "a share of the rows",
    **dict.fromkeys(("lines", "examples", "blank", "skipped", "merged"), "a place"),
    "warnings": "lines of text",
}
"""Fields of ``record``, which says how the model was trained."""
BEST: Fields = {"number": "a number >= 1", "figures": "an object"}


def check(given: Any, fields: Fields, where: str = "header") -> None:
    """Raise StateError with `where` and the field, unless `given` is an object with these fields."""
    if not isinstance(given, dict):
        raise StateError(f"{where}: expected an object, found {_described(given)}")
    for name, kind in fields.items():
        if name not in given:
            raise StateError(f"{where}: {name} is missing")
        if not _KINDS[kind](given[name]):
            raise StateError(f"{where}: {name} must be {kind}, not {_described(given[name])}")


def check_model(given: Any) -> None:
    """Check the header of a model. Raises StateError, as do the functions below."""
    check(given, MODEL)
    if "warm" in given:
        check(given, {"warm": "true or false"})
    check(given, {name: kind for name, kind in COUNTS.items() if name in given})
    for name, kind in (*CURVE.items(), *NUMBERING.items()):
        if name in given:
            check(given, {name: kind})
    if "record" in given:
        check_record(given["record"])
    recipe = given["recipe"]
    check(recipe, {"rule": "text or null"}, "recipe")
    if recipe["rule"] is None:
        check(recipe, {name: RECIPE[name] for name in _WEIGHTS}, "recipe")
    else:
        _check_all_of({"centre": False, **recipe}, RECIPE, "recipe")  # older models do not say


def check_record(given: Any) -> None:
    """Check ``record``."""
    older = isinstance(given, dict) and "holdout_every" in given
    rest = {name: kind for name, kind in RECORD.items() if name != "holdout"}
    wanted = {**rest, "holdout_every": "every N-th"} if older else RECORD
    more = ("planned", "patience") if isinstance(given, dict) else ()
    wanted = {**wanted, **{name: "a number >= 1" for name in more if name in given}}
    _check_all_of(given, wanted, "record")


def check_training(given: Any) -> None:
    """Check ``training`` and everything in it."""
    check(given, TRAINING, "training")
    check(given, {name: kind for name, kind in REPLAY.items() if name in given}, "training")
    _check_all_of(given["position"], POSITION, "position")
    report = given["position"]["report"]
    noticed = {"noticed": "lists of four texts"} if "noticed" in report else {}
    _check_all_of(report, {**REPORT, **noticed}, "report")
    for bad in report["first_bad"]:
        _check_all_of(bad, BAD_LINE, "first_bad")
    older = {
        "span": [0, 0],
        "weightless": 0,
        "positives": 0,
        "measured": 0,
        "spans": [],
    }  # what older checkpoints do not have
    _check_all_of({**older, **given["seen"]}, SEEN, "seen")
    number = given["position"]["number"]
    if number > given["passes"]:
        raise StateError(f"position: stopped in pass {number} of {given['passes']}")
    if given["best"] is not None:
        _check_all_of(given["best"], BEST, "best")
        if given["best"]["number"] > number:
            raise StateError(f"best: pass {given['best']['number']} is not finished in pass {number}")
        figures = given["best"]["figures"]
        check(figures, {**dict.fromkeys(figures, "a number or null"), "loss": "a number"}, "figures")


def _check_all_of(given: Any, fields: Fields, where: str) -> None:
    """`check`, and no other fields may be present."""
    check(given, fields, where)
    if unknown := given.keys() - fields.keys():
        raise StateError(f"{where}: there is no {min(unknown)}")


def _described(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
