"""Why a model predicts what it predicts: the terms that a margin is the sum of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk
from thresher.data.features.names import numeric_keys
from thresher.learning.model.objective import F64, Output
from thresher.learning.model.prediction import BasePredictor, Summands

_NONE: Mapping[int, str] = {}
SKIPPED = {"error": "skipped"}
"""Stands for a row that is not a valid example."""


class Responses:
    """What a model says of rows."""

    def __init__(self, model: Any) -> None:
        """`model` is a BasePredictor."""
        self._model, self._outputs = model, model.head.outputs
        self.is_one: bool = model.head.count == 1
        self.usual: Output = "probability" if model.head.has_probabilities else "margin"
        """what is said if nothing is asked for"""
        labels = model.layout.labels if model.layout is not None else ()
        self.given: Sequence[str] = labels if self._outputs.kind == "values" else ()
        """names of the outputs in place of those of the model"""

    @property
    def names(self) -> list[str]:
        """Of the outputs, if there are several; classes may come while the model learns."""
        return list(self.given) or self._model.head.names(self._model.classes)

    def values(self, margins: F64, output: Output) -> list[Any]:
        """What is said of each row."""
        found = self._model.respond(margins.reshape(-1) if self.is_one else margins, output)
        head = self._model.head
        if output == "label":
            if self._model.classes:
                found = head.to_words(found, self._model.classes)
            elif self._outputs.kind == "labels":
                return [(np.flatnonzero(row > 0) + self._outputs.low).tolist() for row in found]
            elif head.classifies:
                return [*map(int, found)]
        values: list[Any] = found.tolist()
        names = self.names
        return values if found.ndim == 1 else [dict(zip(names, row, strict=False)) for row in values]


class Term(NamedTuple):
    """What a feature adds to the margin of a row. Numbers are lists for many outputs, one for each."""

    feature: str | int
    """its name if known, else its key"""
    value: float
    """as the model multiplies it: the value in the row, unless its column is centred or scaled"""
    weight: Any
    contribution: Any


class Explanation(NamedTuple):
    """The margins of rows, to which the intercept and the contributions of their features add up.

    A column that is centred or scaled contributes what the model multiplies: what remains of its value. So
    one that is 0 in the row may contribute, and the intercept is the one for such values.
    """

    margins: F64
    """``(n,)`` or ``(n, outputs)``"""
    summed: Summands
    names: Mapping[int, str]
    responses: Responses
    offsets: NDArray[np.float32] | None = None
    """``(n,)``, which are added too, if the model was trained with any"""

    def terms(self, row: int, output: int | None = None) -> list[Term]:
        """The terms of a row, the largest contribution first, without those that add nothing.

        They are ordered by what they add to one `output`, or to any.
        """
        rows, weights, parts, _ = self.summed
        own = slice(*rows.indptr[row : row + 2].tolist())
        own_parts = np.abs(parts[own])
        size: F64 = own_parts if own_parts.ndim == 1 else own_parts.max(axis=1, initial=0.0)
        size = size if output is None else own_parts[:, output]
        order = np.argsort(-size, kind="stable")[: np.count_nonzero(size)]
        found = ((array[own])[order].tolist() for array in (rows.keys, rows.values, weights, parts))
        return [Term(self.names.get(key, key), *rest) for key, *rest in zip(*found, strict=True)]

    def told(self, top: int | None = None, outputs: Sequence[int] | None = None) -> list[dict[str, Any]]:
        """For each row: label, probability if there is one, margin, intercept, features, rest.

        The features are the `top` largest terms, all if it is None. What they leave out is summed in
        ``rest``, so the intercept, their contributions and the rest add up to the margin. Of several outputs,
        these numbers are dictionaries with a number for each, or those of one of the `outputs` for each row.
        """
        said, found = self.responses, list[dict[str, Any]]()
        asked = dict.fromkeys(("label", said.usual, "margin"))
        columns = zip(*(said.values(self.margins, one) for one in asked), strict=True)
        for row, values in enumerate(columns):
            output = None if outputs is None else outputs[row]

            def picked(each: Any, output: int | None = output) -> object:
                if output is not None:
                    return each[output]
                # while a single class is known, there is a second output, of the next one
                return each if said.is_one else dict(zip(said.names, each, strict=False))

            terms = self.terms(row, output)
            left = np.reshape(
                [one.contribution for one in terms[top:] if top], (-1, len(self.summed.intercepts))
            )
            rest = left.sum(axis=0).tolist()
            shown = [
                one._asdict() | {n: picked(getattr(one, n)) for n in ("weight", "contribution")}
                for one in terms[:top]
            ]
            offset = {} if self.offsets is None else {"offset": self.offsets.item(row)}
            sums = self.summed.intercepts.tolist(), rest
            intercept, rest = (picked(one[0] if said.is_one else one) for one in sums)
            shown_values = dict(zip(asked, values, strict=True))
            if output is not None:
                name = said.names[output]
                shown_values = {k: v[name] if isinstance(v, dict) else v for k, v in shown_values.items()}
            own = shown_values | {"intercept": intercept} | offset
            found.append(own | {"features": shown, "rest": rest})
        return found


def explain(model: BasePredictor, chunk: Chunk, names: Mapping[int, str] = _NONE) -> Explanation:
    """The terms of the margins of `chunk`; `names` are names of features besides those that `model` knows.

    ValueError for an ensemble whose models centre or scale columns differently.
    """
    own: Any = model
    terms, known = model.terms(chunk), numeric_keys(own.layout)
    for more in (own.names or _NONE, names):
        known |= {key: more[key] for key in terms.rows.keys.tolist() if key not in known and key in more}
    return Explanation(model.margins(chunk), terms, known, Responses(model), chunk.offsets)
