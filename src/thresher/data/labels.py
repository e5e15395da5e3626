"""Which labels an example may have, by the name of the domain."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.errors import DataError

MOST_CLASSES = 1 << 16
"""A range of classes may hold so many."""

ONE, VALUES, LISTED = 0, 1, 2
"""What a label field holds: a number, a number for each output, or a list of the classes that hold."""


class Domain(NamedTuple):
    """The labels from `low` to `high`, or only the whole numbers among them."""

    low: float
    high: float
    whole: bool
    meaning: str
    kind: int = ONE
    outputs: int = 0
    """of several; 0 where any number of labels will do, and none is kept but the first"""
    open: bool = False
    """whether labels are not looked at, so that an example may come without"""

    def code(self) -> tuple[float, float, bool, int, bool]:
        """What compiled code needs of it."""
        return self.low, self.high, self.whole, self.kind, self.open

    @property
    def width(self) -> int | None:
        """Targets of an example; None for one label."""
        return None if self.kind == ONE else self.outputs


_LARGEST = float(np.finfo(np.float32).max)
DOMAINS = {
    "binary": Domain(
        -1.0,
        1.0,
        True,
        "a label -1, 0 or 1 (for several classes: --outputs classes; for a number: --loss squared)",
    ),
    "real": Domain(-_LARGEST, _LARGEST, False, "a finite number as label"),
    "nonnegative": Domain(0.0, _LARGEST, False, "a label that is not negative"),
    "whole": Domain(-(2.0**24), 2.0**24, True, "a whole number as label"),
    "open": Domain(-_LARGEST, _LARGEST, False, "a finite number as label", open=True),
    "values": Domain(-_LARGEST, _LARGEST, False, "finite numbers as labels", VALUES, open=True),
    "labels": Domain(-_LARGEST, _LARGEST, False, "finite numbers as labels", LISTED, open=True),
}
"""Domains by name. In `binary`, 0 and -1 both mean the negative class; `open`, and the lists of any length
`values` and `labels`, are for labels that are not looked at. Others name a size: ``classes:LO-HI``,
``labels:LO-HI``, ``values:K,NAME`` (of those above).
"""


def domain_of(name: str) -> Domain:
    """The domain of a name; `DataError` for a name that is none."""
    if found := re.fullmatch(r"(classes|labels):(-?\d+)-(-?\d+)", name):
        return _classes(found[1], int(found[2]), int(found[3]))
    if (found := re.fullmatch(r"values:(\d+),(\w+)", name)) and found[2] in DOMAINS:
        return DOMAINS[found[2]]._replace(kind=VALUES, outputs=int(found[1]), open=False)
    if name not in DOMAINS:
        known = ", ".join(DOMAINS)
        raise DataError(
            f"no label domain '{name}': choose among {known}, classes:LO-HI, labels:LO-HI and values:K,NAME"
        )
    return DOMAINS[name]


def _classes(kind: str, low: int, high: int) -> Domain:
    """One of the classes from low to high, or a list of them."""
    if not 1 <= high - low < MOST_CLASSES or max(abs(low), abs(high)) > 1 << 24:
        raise DataError(f"{kind} {low}-{high}: give at least 2 and at most {MOST_CLASSES}, from low to high")
    one = Domain(float(low), float(high), True, f"a class from {low} to {high} as label")
    return one if kind == "classes" else one._replace(kind=LISTED, outputs=high - low + 1)


def allowed(labels: NDArray[np.float32], domain: Domain) -> NDArray[np.bool_]:
    """Which of `labels` lie in `domain`, as bools of the same shape."""
    fits: NDArray[np.bool_] = (labels >= domain.low) & (labels <= domain.high)
    return fits & (labels == np.floor(labels)) if domain.whole else fits


def check_labels(
    labels: NDArray[np.float32], domain: str, targets: NDArray[np.float32] | None = None
) -> None:
    """`DataError` naming the first of `labels` (n,), for lists `targets` (n, outputs), outside `domain`."""
    known = domain_of(domain)
    if known.kind != ONE:
        if targets is None or known.outputs not in (0, targets.shape[1]):
            found = 1 if targets is None else targets.shape[1]
            raise DataError(f"expected {known.outputs} labels for each example, found {found}")
        labels, known = targets, DOMAINS["binary"] if known.kind == LISTED else known
    wrong = np.argwhere(~allowed(labels, known))
    if len(wrong):
        place = tuple(wrong[0])
        raise DataError(f"example {place[0] + 1}: expected {known.meaning}, found {labels[place]:g}")
