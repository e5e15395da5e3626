"""Predictions as plain values, for JSON: a number or a word for one output, an object by name for several."""

from __future__ import annotations

from typing import Any

import numpy as np

from thresher.learning.model.objective import F64, Output


class Responses:
    """What a model says of rows."""

    def __init__(self, model: Any) -> None:
        """`model` is a LinearPredictor."""
        self._model, self._outputs = model, model.head.outputs
        self.is_one: bool = model.head.count == 1
        self.usual: Output = "probability" if model.head.has_probabilities else "margin"
        """what is said if nothing is asked for"""
        labels = model.layout.labels if model.layout is not None else ()
        self.names = list(labels) if self._outputs.kind == "values" else []
        """of the outputs, if there are several"""
        self.names = self.names or model.head.names(model.classes)

    def values(self, margins: F64, output: Output) -> list[Any]:
        """What is said of each row."""
        found = self._model.respond(margins.reshape(-1) if self.is_one else margins, output)
        head = self._model.head
        if output == "label":
            if self._model.classes:
                return [*head.worded(found, self._model.classes)]
            if self._outputs.kind == "labels":
                return [(np.flatnonzero(row > 0) + self._outputs.low).tolist() for row in found]
            if head.classifies:
                return [*map(int, found)]
        values: list[Any] = found.tolist()
        return values if found.ndim == 1 else [self.by_name(row) for row in values]

    def by_name(self, each: Any) -> Any:
        """One number as it is, several by the names of their outputs."""
        return each if self.is_one else dict(zip(self.names, each, strict=True))
