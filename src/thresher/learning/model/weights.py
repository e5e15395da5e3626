"""Readout: the settled weights of a model, which is all that prediction needs.

A weight can be non-zero before its first example: in `simplex`, and in `eg` without sign, each starts at 1/N.
So a model file stores the weight of unseen features once, and all features that were seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher import parts
from thresher.data.chunk import Chunk
from thresher.data.features.names import Names
from thresher.data.layout import SettledLayout
from thresher.engine.index import make_index
from thresher.engine.sound import Tensors, ascending, given, offsets, require
from thresher.learning.diagnostics.advice import feature_name
from thresher.learning.model.margins import table_margins
from thresher.learning.model.objective import F64, Head, Output
from thresher.learning.model.prediction import Predictor, Summands, some_features
from thresher.learning.model.scaling import Divisors, Means, divisors_of, means_of, ones

_OF_MODELS = ("learn", "finish", "examples", "recipe", "state", "restore")
"""What a model has that can learn"""
_BLOCK = 1 << 20
"""Weights processed at a time."""


class Readout(Predictor):
    """Settled weights of a model.

    `keys` ``(stored,)`` uint64 ascend; `weights` ``(stored,)``, or ``(stored, outputs)`` for many outputs,
    and the intercepts `bias` ``(outputs,)`` have the dtype of the state. Features that are not stored have
    the weight `unmet` ``(outputs,)``, which is 0 except for rules that start elsewhere. `divisors` are those
    of numeric columns, None without scaling; the weight of such a column applies to the scaled value. `means`
    are those of centred columns, None if none are; then `centred_bias` are the intercepts for centred values,
    and `bias`, float64, those for values as they are.
    """

    def __init__(
        self,
        head: Head,
        store: str,
        keys: NDArray[np.uint64],
        weights: NDArray[Any],
        bias: NDArray[Any],
        lowest_label: float = 0.0,
        unmet: NDArray[Any] | None = None,
        divisors: Divisors | None = None,
        means: Means | None = None,
    ) -> None:
        self.head, self.loss, self.store = head, head.loss, store
        self.keys, self.weights, self.centred_bias = keys, weights, bias
        self.lowest_label = lowest_label
        self.layout: SettledLayout | None = None
        """how the training data became features, if they came from files or tables"""
        self.names: Names | None = None
        """names of features, if they were requested"""
        self.numbering = None
        self.made: tuple[str, int] | None = None
        """SPEC of the rule and seed of the model in the file; None if unknown"""
        self.divisors, self.means = divisors, means
        self.unmet = np.zeros_like(bias) if unmet is None else unmet
        inner = weights.shape[1:]
        self._index = make_index(store)
        rows = self._index.enter(keys)
        self._table = _rows_of(self.unmet.reshape(inner), self._index.size, weights.dtype)
        self._table[rows] = weights

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """AttributeError, which says how to load a model that can learn."""
            what = f"{type(self).__name__!r} object has no attribute {name!r}"
            hint = ": it can only predict; load the model with Model.load to go on learning"
            raise AttributeError(what + (hint if name in _OF_MODELS else ""), name=name, obj=self)

    def __repr__(self) -> str:
        """Loss, outputs and number of features."""
        loss, outputs = parts.part_name(type(self.loss)), self.head.outputs.spec
        return f"<{type(self).__name__}: {loss} loss, outputs {outputs}, {len(self.keys):,} features>"

    @classmethod
    def of(cls, head: Head, store: str, lowest_label: float, tensors: Tensors) -> Readout:
        """The weights in a model file; StateError if the tensors are not weights for `head`."""
        keys = given(tensors, "weights.keys", (None,), np.uint64)
        require(ascending(keys), "weights.keys", "keys ascend")
        inner = () if head.count == 1 else (head.count,)
        weights = given(tensors, "weights.values", (len(keys), *inner), np.float32, np.float64)
        bias = given(tensors, "weights.intercept", (head.count,), weights.dtype)
        unmet = given(tensors, "weights.unmet", (head.count,), weights.dtype)
        return cls(
            head, store, keys, weights, bias, lowest_label, unmet, divisors_of(tensors), means_of(tensors)
        )

    def _some_keys(self) -> NDArray[np.uint64]:
        return some_features(self._index)

    @property
    def classes(self) -> tuple[str, ...]:
        """Label words in the order of their classes; empty if labels are numbers."""
        return self.layout.classes if self.layout else ()

    @property
    def centres(self) -> bool:
        """Whether columns are centred."""
        return self.means is not None

    @property
    def bias(self) -> NDArray[Any]:
        """The intercepts ``(outputs,)`` for values as they are: without means."""
        if self.means is None or not len(self.means.keys):
            return self.centred_bias
        nothing = np.zeros_like(self.centred_bias)
        weights = table_margins(self._index, self._table, nothing, self.means.ones())
        return self.means.intercept(weights, self.centred_bias, self.divisors)

    @bias.setter
    def bias(self, given: NDArray[Any]) -> None:
        """Replace the intercepts; for centred values they change by as much."""
        self.centred_bias = self.centred_bias + (given - self.bias)

    @property
    def intercept(self) -> Any:
        """Intercept, ``(outputs,)`` for many outputs."""
        return float(self.bias[0]) if self.weights.ndim == 1 else self.bias

    def _sums(self, chunk: Chunk) -> F64:
        """Weighted sums of rows without offsets."""
        return self.margins_of_prepared(self._scaled(chunk if self.means is None else self.means.of(chunk)))

    def terms(self, chunk: Chunk) -> Summands:
        """What the margins of `chunk` are sums of: see `Predictor.terms`."""
        chunk.check_arrays()
        rows = self._scaled(chunk if self.means is None else self.means.of(chunk))
        weights = table_margins(self._index, self._table, np.zeros_like(self.centred_bias), ones(rows.keys))
        return Summands.of(rows, weights, self.centred_bias)

    def _scaled(self, chunk: Chunk) -> Chunk:
        return chunk if self.divisors is None else self.divisors.of(chunk)

    def margins_of_prepared(self, chunk: Chunk) -> F64:
        """Weighted sums of rows whose values have been centred and scaled; shapes as for `margins`."""
        found: F64 = table_margins(self._index, self._table, self.centred_bias, chunk)
        return found

    def respond(self, margins: F64, output: Output) -> F64:
        """Turn `margins` into predictions: see `predict`."""
        return self.head.respond(margins, output, self.lowest_label)

    def _weights(self) -> Readout:
        return self

    def save(self, path: str | Path) -> None:
        """Write a model file with weights only. Raises OSError."""
        from thresher.learning.files.model_file import save_all

        save_all([self], path)

    def weight_of(self, row: int) -> str:
        """The weight stored in a row, for messages."""
        return f"the weight of {feature_name(int(self.keys[row]), self.layout, self.names)}"

    @property
    def nonzero(self) -> int:
        """Number of nonzero weights, without the intercepts."""
        return int(np.count_nonzero(self.weights))

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        own = self.keys.nbytes + self.weights.nbytes + self._table.nbytes + self._index.nbytes
        names = self.names
        return own + (names.features.nbytes + names.ends.nbytes + names.letters.nbytes if names else 0)

    def blocks(self) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """The weights ``(rows, outputs)`` as float64, a million at a time, with their slice of rows."""
        table = self.weights.reshape(len(self.keys), self.head.count)
        step = max(1, _BLOCK // self.head.count)
        for lo in range(0, len(table), step):
            yield slice(lo, lo + step), table[lo : lo + step].astype(np.float64)

    def heaviest(self, top: int | None = None) -> list[tuple[int, int, Any]]:
        """Key, output and weight of nonzero weights, largest magnitude first, then by key and output."""
        table = self.weights.reshape(len(self.keys), self.head.count)
        rows, columns = np.nonzero(table)
        values = table[rows, columns]
        order = np.lexsort((columns, self.keys[rows], -np.abs(values)))[:top]
        return list(zip(self.keys[rows[order]].tolist(), columns[order].tolist(), values[order], strict=True))


def _rows_of(unmet: NDArray[Any], size: int, dtype: Any) -> NDArray[Any]:
    """A table of weights with `unmet` in every row. Zeros take no memory until they are written."""
    table = np.zeros((size, *unmet.shape), dtype)
    if unmet.any():
        table[:] = unmet
    return table


def names_of(tensors: Tensors, prefix: str) -> Names | None:
    """The names in a model file, or None. StateError if they are invalid."""
    if not any(name.startswith(prefix) for name in tensors):
        return None
    keys = given(tensors, prefix + "keys", (None,), np.uint64)
    ends = given(tensors, prefix + "ends", (len(keys),), np.int64)
    letters = given(tensors, prefix + "letters", (None,), np.uint8)
    require(ascending(keys), prefix + "keys", "keys ascend")
    require(offsets(ends, len(letters)), prefix + "ends", "names must be consecutive and cover all bytes")
    return Names(keys, ends, letters)
