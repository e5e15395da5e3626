"""A model for each value of a column, such as a country, a shop or a tenant, beside a model of all rows.

The models of a value learn its rows and no others, as if ``where`` had read these alone (law 7): each has its
own feed, index, scales and batches. With ``passes="auto"``, each makes as many passes as its rows alone would
get, if all rows can be kept and the store is ``growing``, without admission or samples. A value that was
never seen, or is missing, has the model of all rows.

A call of the compiled loop takes as long as a hundred rows, so rows of many values are gathered before they
are dealt. In later passes, which may come from memory or a cache, rows are known by their numbers: their
values are kept from the first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk
from thresher.data.column_values import ColumnValues, apart, read_beside
from thresher.data.errors import DataError
from thresher.data.inputs.matrices import DistinctKeys
from thresher.data.source import Source
from thresher.engine.index import GrowingIndex
from thresher.engine.sound import Tensors, given, require
from thresher.learning.files.choice import by_option, by_spec
from thresher.learning.model.ensemble import ModelsByValue
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet, Share
from thresher.learning.training.passes import MOST_PASSES, Size, passes_for
from thresher.learning.training.record import Record

MOST = 100_000
"""Maximum number of values"""


class ByColumn(Share):
    """Part 0 learns all rows; each value of a column has a part of its own, from its first row on."""

    deals = together = True
    recorded = slice(0)
    worth, most_waiting = 128, 1 << 23  # a call of the compiled loop; 100 MB

    def __init__(self, column: str, record: Record | None = None, names: Sequence[str] = ()) -> None:
        """`record` is that of models that go on with other data, and `names` the values that they have."""
        self.column, self.spec, self._record = column, by_spec(column), record
        self._know(names)
        self._values: ColumnValues | None = None
        self._numbers = [np.zeros(0, np.int32)]
        """the part of each row of the first pass, as long as rows may come again"""
        self._counted = np.zeros((1 + len(self.names), 2), np.int64)
        """rows of importance above 0 and their stored values in the first pass, by part"""

    def _know(self, names: Sequence[str]) -> None:
        self.names, self.parts = [*names], 1 + len(names)

    def attach(self, *sources: Source | None) -> None:
        """Let sources give the cells of the column. `DataError` if one cannot."""
        for source in sources:
            if source is not None:
                read_beside(source, [self.column], by_option)
                if self._values is None and source.layout is not None:
                    self._values = ColumnValues(self.column, source.layout, MOST + 1, known=self.names)

    def noted(self, chunk: Chunk, first: int) -> Chunk:
        """`chunk` with the numbers of parts for cells. `DataError` for too many values."""
        if chunk.cells is None:
            self._numbers = [np.concatenate(self._numbers)]
            return replace(chunk, cells=self._numbers[0][first : first + len(chunk), np.newaxis])
        assert self._values is not None
        numbers = self._values.numbers(chunk.cells[:, 0]).astype(np.int32)
        if numbers.max(initial=0) > MOST:
            many = f"it has more than {MOST:,} values, each of which would have a model"
            raise DataError(f"{by_option(self.column)}: {many}: choose a column with fewer")
        if len(self._values.known) > len(self.names):
            self._know([*self._values.known])
        if self.kept and first == sum(map(len, self._numbers)):
            self._count(chunk, numbers)
        return replace(chunk, cells=numbers[:, np.newaxis])

    def _count(self, chunk: Chunk, numbers: NDArray[np.int32]) -> None:
        """Note new rows, which may come again."""
        self._numbers.append(numbers)
        grown = np.zeros((self.parts, 2), np.int64)
        grown[: len(self._counted)] = self._counted
        counting = chunk.weights > 0
        np.add.at(grown[:, 0], numbers[counting], 1)
        np.add.at(grown[:, 1], numbers[counting], np.diff(chunk.indptr)[counting])
        self._counted = grown
        if grown[:, 0].sum() > self.kept:
            self.kept, self._numbers = 0, [np.zeros(0, np.int32)]

    def dealt(self, chunk: Chunk, first: int) -> Callable[[int], Chunk]:
        """All rows, or those of the value of a part."""
        assert chunk.cells is not None
        numbers, whole = chunk.cells[:, 0], replace(chunk, cells=None)
        _, rows = apart(whole, numbers, self.parts)
        self.last = int(numbers[-1])
        return lambda part: rows(part) if part else whole

    def settle(self, models: ModelSet, passes: int) -> int:
        """The most passes of any part; each gets its own."""
        recipe, own = models.recipe, [passes]
        for part, (rows, stored) in zip(models.parts[1:], self._counted[1:].tolist(), strict=True):
            index, alone = part.feed.index, passes
            if isinstance(index, GrowingIndex) and recipe.admit is recipe.sample is None:
                alone = passes_for(Size(rows, stored, features=DistinctKeys.of(index.features()[1:])))
            own.append(alone)
        self.own_passes = np.array(own)
        return max(own)

    def as_one(self, models: list[Model]) -> ModelsByValue[Model]:
        """The models of the values, as one."""
        return ModelsByValue(models, self.spec, self._record, self.names)

    def state(self) -> dict[str, NDArray[Any]]:
        """The values, and what is known of the rows of the first pass."""
        return {
            "values": np.frombuffer(json.dumps(self.names).encode(), np.uint8),
            "numbers": np.concatenate(self._numbers),
            "counted": self._counted,
            "passes": self.own_passes,
        }

    def restore(self, state: Tensors) -> None:
        """Go on from a `state`. StateError."""
        try:
            names = json.loads(given(state, "values", (None,), np.uint8).tobytes())
        except ValueError:
            names = None
        texts = isinstance(names, list) and all(isinstance(one, str) and one for one in names)
        require(texts and len({*names}) == len(names) <= MOST, "values", "expected different texts")
        numbers = given(state, "numbers", (None,), np.int32)
        known = numbers.min(initial=0) >= 0 and numbers.max(initial=0) <= len(names)
        require(known, "numbers", "expected those of parts")
        counted = given(state, "counted", (None, 2), np.int64)
        counts = len(counted) <= 1 + len(names) and (counted >= 0).all()
        require(counts, "counted", "expected numbers of rows")
        passes = given(state, "passes", (None,), np.int64)
        sound = ((passes >= 1) & (passes <= MOST_PASSES)).all() and len(passes) in (0, 1 + len(names))
        require(sound, "passes", "expected those of parts")
        self._know(names)
        self._numbers, self._counted, self.own_passes = [numbers], counted, passes
        if self._values is not None:
            self._values.know(names)
