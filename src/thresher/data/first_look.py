"""What labels are, found before they are learned: words, and which."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from thresher.data.columns import CATEGORICAL, IGNORE, LIST, TEXT
from thresher.data.errors import DataError
from thresher.data.files.streams import head_of
from thresher.data.formats.lines.vw_labels import is_word
from thresher.data.labels import Domain, any_words, is_number
from thresher.data.layout import Layout, SettledLayout

_HEAD = 1 << 16
Opener = Callable[[Any, Domain], Any]
"""Makes a source, by a layout, of labels of a domain"""


def with_words(opened: Opener, layout: Any) -> Any:
    """The layout with the words that labels are as `classes`, sorted; `layout` itself where they are numbers.

    Labels are words where two or more of them are no numbers. The data are read to the end only if the first
    labels look like words. `DataError`.
    """
    source = opened(layout, any_words())
    if not (source.worded or _begins_with_words(source)):
        return layout
    domain = any_words()
    found = _words(opened(_narrow(source.layout), domain), domain)
    words = [word for word in found if not is_number(word.encode())]
    if len(found) == 1 and words:
        raise DataError(f"{source.names[0]}: all labels are '{words[0]}': there must be two or more classes")
    return replace(source.layout, classes=tuple(found)) if len(words) > 1 else layout


def _words(source: Any, domain: Domain) -> list[str]:
    """The different labels of the examples of a source, sorted."""
    assert domain.words is not None
    numbers = set[float]()
    with closing(source.chunks()) as chunks:
        for chunk in chunks:
            numbers.update(np.unique(chunk.labels).tolist())
    words = domain.words.words()
    return sorted(words[int(number)] for number in numbers)


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
