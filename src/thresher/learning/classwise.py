"""Confusion, precision, recall and F1, accumulated over a stream."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.learning.head import F64

MOST = 1000
"""Confusion is counted for at most this many classes; above, only the figures of each class."""


class Classwise:
    """Importance sums for each class: of examples that belong to it, are predicted as it, and both."""

    def __init__(self, names: list[str], confusing: bool = True) -> None:
        self.names = names
        count = len(names)
        self.hits, self.truths, self.claims = np.zeros((3, count))
        self.confusion = np.zeros((count, count)) if confusing and count <= MOST else None
        """``(true class, predicted class)``"""

    def add(self, truth: NDArray[np.int64], predicted: NDArray[np.int64], weights: F64) -> None:
        """Add examples of one class each; all arrays are ``(n,)``, classes numbered from 0."""
        count = len(self.names)
        self.truths += np.bincount(truth, weights, count)
        self.claims += np.bincount(predicted, weights, count)
        right = truth == predicted
        self.hits += np.bincount(truth[right], weights[right], count)
        if self.confusion is not None:
            np.add.at(self.confusion, (truth, predicted), weights)

    def add_lists(self, truth: NDArray[np.bool_], predicted: NDArray[np.bool_], weights: F64) -> None:
        """Add examples of any number of classes: booleans ``(n, classes)``, weights ``(n,)``."""
        self.truths += weights @ truth
        self.claims += weights @ predicted
        self.hits += weights @ (truth & predicted)

    @property
    def weight(self) -> float:
        """Total weight of the examples, if each has one class."""
        return float(self.truths.sum())

    def error(self) -> float | None:
        """Share of examples predicted wrongly; None without examples."""
        return 1.0 - float(self.hits.sum()) / self.weight if self.weight else None

    def of(self, number: int) -> dict[str, float | None]:
        """``precision``, ``recall`` and ``f1`` of a class; None where the denominator is zero."""
        return _figures(*(float(one[number]) for one in (self.hits, self.truths, self.claims)))

    def micro(self) -> dict[str, float | None]:
        """The same figures over all pairs of an example and a class."""
        sums = _figures(*(float(one.sum()) for one in (self.hits, self.truths, self.claims)))
        return {f"micro_{name}": value for name, value in sums.items()}

    def macro(self) -> dict[str, float | None]:
        """Their means over the classes that occur or are predicted; undefined figures count as 0."""
        (met,) = np.nonzero(self.truths + self.claims)
        if not len(met):
            return dict.fromkeys(("macro_precision", "macro_recall", "macro_f1"))
        each = [self.of(k) for k in met.tolist()]
        return {f"macro_{name}": sum(one[name] or 0.0 for one in each) / len(each) for name in each[0]}

    def tables(self) -> dict[str, Any]:
        """``by_class``, and ``confusion`` if it was counted."""
        rows = [
            {"class": name, **self.of(k), "weight": float(self.truths[k])}
            for k, name in enumerate(self.names)
        ]
        counted = {} if self.confusion is None else {"confusion": self.confusion.tolist()}
        return {"by_class": rows, **counted}


def _figures(hits: float, truths: float, claims: float) -> dict[str, float | None]:
    return {
        "precision": hits / claims if claims else None,
        "recall": hits / truths if truths else None,
        "f1": 2 * hits / (truths + claims) if truths + claims else None,
    }
