"""Types are the schema of headers: what fits one becomes a value of it; all else is refused in one line."""

import json
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import pytest

from thresher.engine.sound import StateError
from thresher.learning.files.schema import Finite, form_of, read


class Pair(NamedTuple):
    name: str
    size: int | None


@dataclass(frozen=True)
class Inner:
    number: int


@dataclass(frozen=True)
class Outer:
    pairs: tuple[Pair, ...]
    inner: Inner
    mark: tuple[float, bool] | None
    words: list[str]
    share: Finite = 0.5


WHOLE = Outer((Pair("a", 1), Pair("b", None)), Inner(3), (0.5, True), ["x"], 2.0)


def test_what_was_written_is_read() -> None:
    assert read(Outer, json.loads(json.dumps(asdict(WHOLE))), "outer") == WHOLE
    given: dict[str, Any] = {"pairs": [], "inner": {"number": 0}, "mark": None, "words": [], "share": 0.5}
    assert read(Outer, given, "outer") == Outer((), Inner(0), None, [])
    del given["share"]
    with pytest.raises(StateError, match="outer: share is missing"):
        read(Outer, given, "outer")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"pairs": [["a"]]}, r"outer: pairs must be a list, each a list of name, size, not \[\['a'\]\]"),
        ({"pairs": [["a", True]]}, "outer: pairs must be"),
        ({"inner": []}, r"outer: inner must be an object, not \[\]"),
        ({"inner": {"number": -1}}, "inner: number must be a number >= 0, not -1"),
        ({"inner": {}}, "inner: number is missing"),
        ({"inner": {"number": 1, "more": 1}}, "inner: unknown field more"),
        ({"mark": [1.0]}, "outer: mark must be a list of 2 or null"),
        ({"mark": [1.0, 1]}, "outer: mark must be a list of 2 or null"),
        ({"words": [1]}, "outer: words must be a list, each text"),
        ({"share": float("inf")}, "outer: share must be a finite number"),
        ({"other": 1}, "outer: unknown field other"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], said: str) -> None:
    given = json.loads(json.dumps(asdict(WHOLE)))
    with pytest.raises(StateError, match=said):
        read(Outer, {**given, **change}, "outer")
    others: tuple[Any, ...] = (None, 1, [], "x")
    for other in others:
        with pytest.raises(StateError, match="outer: expected an object"):
            read(Outer, other, "outer")


def test_a_type_that_a_header_cannot_hold_is_named() -> None:
    with pytest.raises(TypeError, match="a header cannot hold <class 'complex'>: annotate it with a Form"):
        form_of(list[complex])
