"""Predictions as the bodies of answers: a JSON object for each row, an Arrow stream of rows, or tensors.

One output is a number or a word, several are an object with a value for each. A number that is not finite is
null. A bad row has the error in its place.

A request of the Open Inference Protocol, version 2, has a tensor for each column, of the shape [n] or
[n, 1]. A model of other data than tables takes a single tensor of texts, called ``rows``, which are lines in
the text format of the model; a model of a table takes lines of JSON there. The protocol has no place for the
error of a row: a bad one is an error of all.
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
from thresher.data.sources.reader import filled
from thresher.learning.inspection import explanation
from thresher.learning.model.prediction import LinearPredictor
from thresher.options.kinds import Whole, WrongValueError
from thresher.serving.bodies import Bodies
from thresher.serving.errors import NOT_JSON, RefusedError, why_not_json
from thresher.serving.openapi import EXPLAIN, JSON, OUTPUTS, DescribedModel, Inferred, TensorData, TensorKind

F64 = NDArray[np.float64]
_encoder = msgspec.json.Encoder()


def lines_of(rows: Rows, good: Sequence[dict[str, Any]]) -> bytes:
    """A line for each row, with its id if there are ids."""
    if rows.gaps:
        good = filled(
            good,
            rows.gaps,
            [{"error": one.error, "line": one.line, "column": one.column} for one in rows.bad],
        )
    if rows.ids is not None:
        good = [{"id": name, **one} for name, one in zip(rows.ids, good, strict=True)]
    return _encoder.encode_lines(good)


# the Open Inference Protocol

_LINES = "rows"
_WHOLE, _FRACTIONS = "INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64", "FP16 FP32 FP64"
_TYPES: dict[str, set[type]] = {
    "BOOL": {bool, type(None)},
    "BYTES": {str, type(None)},
    **{name: {int, type(None)} for name in _WHOLE.split()},
    **{name: {int, float, type(None)} for name in _FRACTIONS.split()},
}
"""What the data of a type may be; null is a missing value"""
_LARGEST = {name: float(np.finfo(name.lower().replace("fp", "float")).max) for name in _FRACTIONS.split()}
_RANGES: dict[str, tuple[float, float]] = {
    **{name: (np.iinfo(name.lower()).min, np.iinfo(name.lower()).max) for name in _WHOLE.split()},
    **{name: (-most, most) for name, most in _LARGEST.items()},
}


class Tensor(msgspec.Struct):
    """A tensor of a request."""

    name: str
    shape: list[int]
    datatype: str
    data: list[Any]

    def column(self) -> list[Any]:
        """Its elements; `RefusedError` unless it has the shape of a column, and elements of its type."""
        where = f"the tensor '{self.name}'"
        if len(self.shape) not in (1, 2) or self.shape[1:] not in ([], [1]):
            raise RefusedError(
                400, f"{where} has the shape {self.shape}: give one tensor per column, [n] or [n, 1]"
            )
        if self.datatype not in _TYPES:
            raise RefusedError(400, f"{where} has the type {self.datatype}, not one of {', '.join(_TYPES)}")
        nested = bool(self.data) and all(isinstance(one, list) and len(one) == 1 for one in self.data)
        found = [one[0] for one in self.data] if nested else self.data
        if len(found) != self.shape[0]:
            raise RefusedError(400, f"{where} has {len(found)} elements, not {self.shape[0]}")
        if not {*map(type, found)} <= _TYPES[self.datatype]:
            raise RefusedError(400, f"{where} has elements that are not of its type, {self.datatype}")
        if self.datatype in _RANGES:
            (lowest, highest), numbers = _RANGES[self.datatype], [one for one in found if one is not None]
            if numbers and not lowest <= min(numbers) <= max(numbers) <= highest:
                raise RefusedError(400, f"{where} has elements beyond the range of its type, {self.datatype}")
        return found


class Wanted(msgspec.Struct):
    """An output that is asked for."""

    name: str


class Inquiry(msgspec.Struct):
    """A request for inference."""

    inputs: list[Tensor]
    id: str | None = None
    outputs: list[Wanted] = []

    def wanted(self, usual: str) -> list[str]:
        """The outputs that are asked for."""
        return [one.name for one in self.outputs] or [usual]


_decode = msgspec.json.Decoder(Inquiry).decode


class Answers:
    """Writes predictions of a model."""

    def __init__(self, model: LinearPredictor, name: str = "") -> None:
        """`name` of the model in addresses."""
        self._model, self._name, self._said = model, name, explanation.Responses(model)
        self.usual = self._said.usual
        """what is written if nothing is asked for"""
        self._of_table = model.layout is not None and bool(model.layout.columns)
        self._features = {} if model.layout is None else model.layout.features

    def check(self, output: str, top: str = "") -> None:
        """`RefusedError` for what the model does not have, and for a `top` that is not for an explanation."""
        if output not in ("", *OUTPUTS):
            raise RefusedError(400, f"output must be {', '.join(OUTPUTS)}, not {output}")
        if output == "probability" and self.usual != output:
            why = "the loss of this model gives no probabilities"
            raise RefusedError(400, f"{why}: use output=margin or {self._model.head.label}")
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
        found = filled(self._said.values(margins, asked), rows.gaps, repeat(None))
        one, head = pa.float64(), self._model.head
        kind = one if self._said.is_one else pa.struct([(name, one) for name in self._said.names])
        if asked == "label" and self._said.says_words:
            kind = pa.string()
        elif asked == "label" and head.outputs.kind == "labels":
            kind = pa.list_(pa.int64())
        elif asked == "label" and head.classifies:
            kind = pa.int64()
        errors = filled([None] * rows.good, rows.gaps, [one.error for one in rows.bad])
        columns = {} if rows.ids is None else {"id": pa.array(rows.ids, pa.string())}
        columns |= {asked: pa.array(found, kind), "error": pa.array(errors, pa.string())}
        table, sink = pa.table(columns), pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        written: bytes = sink.getvalue().to_pybytes()
        return written

    # the Open Inference Protocol

    def inquiry(self, body: bytes, bodies: Bodies) -> tuple[Inquiry, Rows]:
        """A request for inference, and its rows, all of which are good. `RefusedError`."""
        try:
            request = _decode(body)
        except NOT_JSON as error:
            raise RefusedError(400, f"this is not a request for inference: {why_not_json(error)}") from error
        for output in request.wanted(self.usual):
            self.check(output)
            if output == "explain":
                raise RefusedError(400, "explanations are no tensors: use /predict?output=explain")
        rows = self._rows(request.inputs, bodies)
        if rows.bad:
            first = rows.bad[0]
            raise RefusedError(400, f"row {first.line}: {first.error}")
        return request, rows

    def inferred(self, request: Inquiry, margins: F64) -> bytes:
        """The answer to a request for inference, with the margins of all rows."""
        outputs = [self._tensor(output, margins) for output in request.wanted(self.usual)]
        return _encoder.encode(Inferred(self._name, outputs, request.id or None))

    def described(self) -> DescribedModel:
        """What the protocol of inference tells of the model; -1 stands for any number of rows."""
        inputs = [TensorKind(_LINES, "BYTES", [-1])]
        if self._of_table:
            inputs = [
                TensorKind(name, "FP64" if is_number else "BYTES", [-1])
                for name, is_number in self._features.items()
            ]
        margins = np.zeros((1, self._model.head.count))
        outputs = list[TensorKind]()
        for output in dict.fromkeys([self.usual, "label", "margin"]):
            tensor = self._tensor(output, margins if margins.shape[1] > 1 else margins[0])
            outputs.append(TensorKind(output, tensor.datatype, [-1, *tensor.shape[1:]]))
        return DescribedModel(self._name, "thresher", inputs, outputs)

    def _rows(self, tensors: Sequence[Tensor], bodies: Bodies) -> Rows:
        columns = {one.name: one.column() for one in tensors}
        if len({len(one) for one in columns.values()}) != 1 or len(columns) != len(tensors):
            raise RefusedError(400, "give tensors of different names with the same number of rows")
        if [*columns] == [_LINES] and tensors[0].datatype == "BYTES" and _LINES not in self._features:
            lines = columns[_LINES]
            if not all(isinstance(one, str) and "\n" not in one and one.strip() for one in lines):
                raise RefusedError(400, f"each element of the tensor '{_LINES}' must be a line of text")
            text, media = "\n".join(lines).encode(), JSON if self._of_table else ""
        elif self._of_table:
            objects = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
            text, media = _encoder.encode_lines(objects), JSON
        else:
            raise RefusedError(
                400, f"this model has no columns: give one tensor of lines of text, '{_LINES}'"
            )
        rows = bodies.read(text, media, labelled=False)
        if len(rows.chunk) + len(rows.bad) != len(next(iter(columns.values()))):
            raise RefusedError(400, f"each element of the tensor '{_LINES}' must be a row")
        return rows

    def _tensor(self, output: Any, margins: F64) -> TensorData:
        """An output for rows with these margins."""
        found, head = self._model.respond(margins, output), self._model.head
        several, data = head.outputs.kind == "labels", list[Any]()
        if output == "label" and self._said.says_words:
            kind, data, shape = "BYTES", self._said.values(margins, output), [len(found)]
        elif output == "label" and several:
            kind, data, shape = "BOOL", (found > 0).ravel().tolist(), [*found.shape]
        elif output == "label" and head.classifies:
            kind, data, shape = "INT64", self._said.values(margins, output), [len(found)]
        else:
            kind, data, shape = "FP64", found.ravel().tolist(), [*found.shape]
        return TensorData(output, kind, shape, data)
