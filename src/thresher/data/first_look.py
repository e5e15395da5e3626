"""Finding out, before training, whether labels are words, and which."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from thresher.data.class_words import MOST_CLASSES, check_repeated, is_boolean
from thresher.data.columns import CATEGORICAL, IGNORE, LIST, TEXT
from thresher.data.errors import DataError, shown
from thresher.data.files.streams import head_of
from thresher.data.formats.lines.vw import is_word
from thresher.data.labels import Domain, any_words, is_number
from thresher.data.layout import Layout, SettledLayout
from thresher.data.source import Source
from thresher.data.sources.parsed import ParsedSource

_HEAD = 1 << 16
Opener = Callable[[Any, Domain], Source]
"""Opens a source, given a layout and a label domain"""


def with_words(opened: Opener, layout: Any) -> Any:
    """The layout with the label words, sorted, as `classes`; `layout` itself if labels are numbers.

    Labels count as words if at least half of the examples have a label that is not a number. The data are
    read to the end only if one of the first labels is not a number. Raises `DataError` as
    `classes_among` does.
    """
    source = opened(layout, any_words())
    if not isinstance(source, ParsedSource) or not (source.may_be_words or _begins_with_words(source)):
        return layout
    kinds = tuple(IGNORE if kind in (CATEGORICAL, LIST, TEXT) else kind for kind in source.layout.kinds)
    found = _labels(opened, replace(source.layout, kinds=kinds, interact=(), ngrams=Layout.ngrams))
    if source.layout.columns and all(is_boolean(str(label, "utf-8", "replace")) for label in found):
        return layout  # tables: true is 1, false is 0
    classes = classes_among(found, source.names[0])
    return replace(layout or Layout(), classes=classes) if classes else layout


def classes_among(counts: Mapping[bytes, int], name: str) -> tuple[str, ...]:
    """The distinct labels, sorted, or none if more than half of the examples have a number as label.

    `counts` has the number of examples of each label; `name` is the file, for messages. Raises
    `DataError` if there is only one label, one is not UTF-8, or very many occur once.
    """
    words = sum(count for label, count in counts.items() if not is_number(label))
    if 2 * words < sum(counts.values()):
        return ()
    if len(counts) == 1:
        raise DataError(f"{name}: all labels are {shown(*counts)}: there must be at least two classes")
    check_repeated(len(counts), sum(counts.values()), name)
    try:
        return tuple(sorted((label.decode() for label in counts), key=_minus_first))
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: the label {shown(error.object)} is not UTF-8") from error


def _minus_first(word: str) -> str:
    """Sort key by code point, but with - before +, so that + is the positive class of the two."""
    return word.translate({ord("-"): "+", ord("+"): "-"})


def _labels(opened: Opener, layout: SettledLayout) -> dict[bytes, int]:
    """The distinct labels and the number of examples of each."""
    domain = any_words()
    counts = np.zeros(MOST_CLASSES, np.int64)
    with closing(opened(layout, domain).chunks()) as chunks:
        for chunk in chunks:
            counts += np.bincount(chunk.labels.astype(np.int64), minlength=len(counts))
    assert domain.words is not None
    return {label: int(counts[k]) for k, label in domain.words.words().items() if counts[k]}


def _begins_with_words(source: ParsedSource) -> bool:
    """Whether the first labels of VW text include words."""
    if source.layout.format != "vw":
        return False
    lines = head_of(source.names[0], _HEAD, {}).split(b"\n")
    return any(is_word(line.partition(b"|")[0]) for line in lines if b"|" in line)
