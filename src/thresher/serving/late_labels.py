"""The body of ``/label``: lines of ids and labels, as the model knows labels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from thresher.data.labels import ONE
from thresher.learning.model.divergence import LIGHT, too_heavy
from thresher.serving.errors import NOT_JSON, RefusedError, why_not_json
from thresher.serving.requests import AN_ID, is_id

_SHOWN = 40
_PLACE = re.compile(r" - at `\$\[([0-9]+)\]\.?(.*)`")
"""Where msgspec found what is wrong in a list or in lines"""


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    id: msgspec.Raw
    """text, or what is written there, such as 1e3: rows are known by what stands in their bodies"""
    label: str | float | bool
    weight: float = 1.0


class LateLabels(NamedTuple):
    """Labels of rows that were kept."""

    ids: list[str]
    labels: NDArray[np.float32]
    weights: NDArray[np.float32]


_ONE, _SEVERAL = msgspec.json.Decoder(_Line), msgspec.json.Decoder(list[_Line])


def read_labels(body: bytes, model: Any, most: int) -> LateLabels:
    """The labels in a body of JSON: an object, an array of objects or lines; `RefusedError`."""
    lines, ids = _lines(body)
    if len(lines) > most:
        raise RefusedError(413, f"the body has more than {most:,} labels")
    given = np.array([one.weight for one in lines])
    if (given < 0).any():
        wrong = given[given < 0][0]
        raise RefusedError(400, f"line {_first(given < 0)}: expected a weight of at least 0, found {wrong:g}")
    labels = _numbers([one.label for one in lines], model)
    if (heavy := too_heavy(labels, given)).any():
        raise RefusedError(400, f"line {_first(heavy)}: expected {LIGHT}, found more")
    return LateLabels(ids, labels, given.astype(np.float32))


def _shown(place: re.Match[str]) -> str:
    """The line, and the field if it is known."""
    return f" (line {int(place[1]) + 1}{', ' * bool(place[2])}{place[2]})"


def _id_of(line: _Line, number: int) -> str:
    """The id as it was written, or the text that it is. `RefusedError`."""
    written = bytes(line.id).decode()
    is_text = written[0] == '"'
    found = msgspec.json.decode(line.id, type=str) if is_text else written
    if not is_id(found, is_text):
        raise RefusedError(400, f"line {number}: expected {AN_ID}, found {written[:_SHOWN]}")
    return found


def _lines(body: bytes) -> tuple[list[_Line], list[str]]:
    """The lines, and their ids."""
    text = body.strip()
    try:
        found = _SEVERAL.decode(text) if text.startswith(b"[") else _ONE.decode_lines(text)
        ids = [_id_of(one, k) for k, one in enumerate(found, 1)]
    except NOT_JSON as error:
        raise RefusedError(
            400,
            f'expected lines such as {{"id": "a", "label": 1}}: {_PLACE.sub(_shown, why_not_json(error))}',
        ) from error
    if not found:
        raise RefusedError(400, "the body is empty: send a line of id and label for each row")
    return found, ids


def _numbers(given: Sequence[Any], model: Any) -> NDArray[np.float32]:
    """Labels as numbers; `RefusedError` for one that the model does not know."""
    domain = model.head.domain.of_model(True).of_words(model.classes)
    if domain.kind != ONE:
        raise RefusedError(409, "labels can come late only if a row has one, and here it has several")
    words = domain.words
    try:
        numbers = [words.number_of(str(one).encode()) if words is not None else float(one) for one in given]
    except ValueError:
        raise RefusedError(400, f"expected {domain.meaning}") from None
    labels = np.array(numbers, np.float32)
    fits = domain.allows(labels) & (domain.allows(np.array(numbers)) if domain.whole else True)
    if not fits.all():
        wrong = _first(~fits)
        shown = repr(str(given[wrong - 1])[:_SHOWN])
        raise RefusedError(400, f"line {wrong}: expected {domain.meaning}, found {shown}")
    return labels


def _first(wrong: NDArray[np.bool_]) -> int:
    return int(np.argmax(wrong)) + 1
