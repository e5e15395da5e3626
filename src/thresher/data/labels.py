"""Which labels an example may have, by the name of the domain."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.errors import DataError

MOST_CLASSES = 1 << 16
"""A range of classes may hold so many."""


class Domain(NamedTuple):
    """The labels from `low` to `high`, or only the whole numbers among them."""

    low: float
    high: float
    whole: bool
    meaning: str

    def code(self) -> tuple[float, float, bool]:
        """What compiled code needs of it."""
        return self.low, self.high, self.whole


_LARGEST = float(np.finfo(np.float32).max)
DOMAINS = {
    "binary": Domain(-1.0, 1.0, True, "a label -1, 0 or 1"),
    "real": Domain(-_LARGEST, _LARGEST, False, "a finite number as label"),
    "nonnegative": Domain(0.0, _LARGEST, False, "a label that is not negative"),
    "whole": Domain(-(2.0**24), 2.0**24, True, "a whole number as label"),
}
"""Domains by name. In `binary`, 0 and -1 both mean the negative class; classes are ``classes:LO-HI``."""


def domain_of(name: str) -> Domain:
    """The domain of a name; `DataError` for a name that is none."""
    found = re.fullmatch(r"classes:(-?\d+)-(-?\d+)", name)
    if found:
        low, high = int(found[1]), int(found[2])
        if not 1 <= high - low < MOST_CLASSES or max(abs(low), abs(high)) > 1 << 24:
            raise DataError(f"classes {low}-{high}: give at least 2 and at most {MOST_CLASSES}")
        meaning = f"a class from {low} to {high} as label"
        return Domain(float(low), float(high), True, meaning)
    if name not in DOMAINS:
        known = ", ".join(DOMAINS)
        raise DataError(f"no label domain '{name}': choose among {known} and classes:LO-HI")
    return DOMAINS[name]


def allowed(labels: NDArray[np.float32], domain: str) -> NDArray[np.bool_]:
    """Which of `labels` (n,) lie in `domain`, as (n,) bool."""
    low, high, whole = domain_of(domain).code()
    fits: NDArray[np.bool_] = (labels >= low) & (labels <= high)
    return fits & (labels == np.floor(labels)) if whole else fits


def check_labels(labels: NDArray[np.float32], domain: str) -> None:
    """`DataError` naming the first label outside `domain`."""
    wrong = np.flatnonzero(~allowed(labels, domain))
    if len(wrong):
        raise DataError(
            f"example {wrong[0] + 1}: expected {domain_of(domain).meaning}, found {labels[wrong[0]]:g}"
        )
