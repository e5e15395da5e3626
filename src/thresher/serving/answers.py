"""Predictions as the bodies of answers: a JSON object for each row, or an Arrow stream of rows.

One output is a number or a word, several are an object with a value for each. A number that is not finite is
null. A bad row has the error in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.data.bodies import Rows
from thresher.data.sources.reader import fill_gaps
from thresher.learning.inspection import explanation
from thresher.learning.model.ensemble import ModelsByValue
from thresher.learning.model.prediction import BasePredictor
from thresher.options.kinds import Whole, WrongValueError
from thresher.serving.errors import RefusedError
from thresher.serving.openapi import EXPLAIN

F64 = NDArray[np.float64]
_encoder = msgspec.json.Encoder()


def lines_of(rows: Rows, good: Sequence[dict[str, Any]]) -> bytes:
    """A line for each row, with its id if there are ids."""
    if rows.gaps:
        bad = [{"error": one.error, "line": one.line, "column": one.column} for one in rows.bad]
        good = fill_gaps(good, rows.gaps, bad)
    if rows.ids is not None:
        good = [{"id": name, **one} for name, one in zip(rows.ids, good, strict=True)]
    return _encoder.encode_lines(good)


class Answers:
    """Writes predictions of a model."""

    def __init__(self, model: BasePredictor) -> None:
        self._model, self._said = model, explanation.Responses(model)
        self.usual = self._said.usual
        """what is written if nothing is asked for"""

    def check(self, output: str, top: str = "") -> None:
        """`RefusedError` for what the model does not have, and for a `top` that is not for an explanation."""
        if output == "probability" and self.usual != output:
            why = "the loss of this model gives no probabilities"
            raise RefusedError(400, f"{why}: use output=margin or {self._model.head.label}")
        if output == EXPLAIN and isinstance(self._model, ModelsByValue):
            why = f"each value of {self._model.column} has a model of its own"
            raise RefusedError(400, f"{why}: ask a server of one of them, which thresher choose takes out")
        if top and output != EXPLAIN:
            raise RefusedError(400, f"top is for output={EXPLAIN}")
        try:
            Whole(1).read(top or "1")
        except WrongValueError as error:
            raise RefusedError(400, f"top must be {error.wanted}") from None

    def together(self, several: Sequence[Rows], margins: F64, output: Any) -> list[bytes]:
        """The lines of each body, for bodies that were read together; `margins` are those of all rows."""
        asked = output or self.usual
        objects = [{asked: value} for value in self._said.values(margins, asked)]
        return [lines_of(rows, objects[rows.first : rows.last]) for rows in several]

    def write(self, rows: Rows, margins: F64, output: Any, arrow: bool = False) -> bytes:
        """A line for each row, good and bad; `margins` are those of the good ones.

        Or an Arrow stream: the ids if there are any, what was asked for, and the error of bad rows.
        """
        if not arrow:
            return self.together([rows], margins, output)[0]
        asked = output or self.usual
        found = fill_gaps(self._said.values(margins, asked), rows.gaps, repeat(None))
        one, head = pa.float64(), self._model.head
        kind = one if self._said.is_one else pa.struct([(name, one) for name in self._said.names])
        words = self._model.classes
        if asked == "label" and words and head.to_words(np.zeros(0), words).dtype == object:
            kind = pa.string()
        elif asked == "label" and head.outputs.kind == "labels":
            kind = pa.list_(pa.int64())
        elif asked == "label" and head.classifies:
            kind = pa.int64()
        errors = fill_gaps([None] * rows.good, rows.gaps, [one.error for one in rows.bad])
        columns = {} if rows.ids is None else {"id": pa.array(rows.ids, pa.string())}
        columns |= {asked: pa.array(found, kind), "error": pa.array(errors, pa.string())}
        table, sink = pa.table(columns), pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        written: bytes = sink.getvalue().to_pybytes()
        return written
