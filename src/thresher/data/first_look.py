"""What labels are, found before they are learned: words, and which."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from thresher.data.class_words import MOST_CLASSES
from thresher.data.columns import CATEGORICAL, IGNORE, LIST, TEXT
from thresher.data.errors import DataError, shown
from thresher.data.files.streams import head_of
from thresher.data.formats.lines.vw_labels import is_word
from thresher.data.labels import Domain, any_words, is_number
from thresher.data.layout import Layout, SettledLayout

_HEAD = 1 << 16
Opener = Callable[[Any, Domain], Any]
"""Makes a source, by a layout, of labels of a domain"""


def with_words(opened: Opener, layout: Any) -> Any:
    """The layout with the words that labels are as `classes`, sorted; `layout` itself where they are numbers.

    Labels are words where those of at least half of the examples are no numbers. The data are read to the end
    only if one of the first labels is none. `DataError`.
    """
    source = opened(layout, any_words())
    if not (source.worded or _begins_with_words(source)):
        return layout
    classes = classes_among(_labels(opened, _narrow(source.layout)), source.names[0])
    return replace(source.layout, classes=classes) if classes else layout


def classes_among(counts: Mapping[bytes, int], name: str) -> tuple[str, ...]:
    """The different labels, sorted, where those of at least half of the examples are no numbers.

    `counts` says of how many each is the label, `name` whose they are. `DataError` for only one.
    """
    words = sum(count for label, count in counts.items() if not is_number(label))
    if 2 * words < sum(counts.values()):
        return ()
    if len(counts) == 1:
        raise DataError(f"{name}: all labels are {shown(*counts)}: there must be at least two classes")
    try:
        return tuple(sorted(label.decode() for label in counts))
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: the label {shown(error.object)} is not UTF-8") from error


def _labels(opened: Opener, layout: SettledLayout) -> dict[bytes, int]:
    """The different labels of the examples, and of how many each is the label."""
    domain = any_words()
    counts = np.zeros(MOST_CLASSES, np.int64)
    with closing(opened(layout, domain).chunks()) as chunks:
        for chunk in chunks:
            counts += np.bincount(chunk.labels.astype(np.int64), minlength=len(counts))
    assert domain.words is not None
    return {label: int(counts[k]) for k, label in domain.words.words().items() if counts[k]}


def _begins_with_words(source: Any) -> bool:
    """Whether VW text has labels at its beginning that are words."""
    if source.layout.format != "vw":
        return False
    lines = head_of(source.names[0], _HEAD, {}).split(b"\n")
    return any(is_word(line.partition(b"|")[0]) for line in lines if b"|" in line)


def _narrow(layout: SettledLayout) -> SettledLayout:
    """The same rows without the features that any row can have."""
    kinds = tuple(IGNORE if kind in (CATEGORICAL, LIST, TEXT) else kind for kind in layout.kinds)
    return replace(layout, kinds=kinds, interact=(), ngrams=Layout.ngrams)
