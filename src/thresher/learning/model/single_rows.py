"""Single rows: dictionaries of named features, learned and predicted without a source and new arrays.

``learn([row], [label])`` opens a source, checks its layout and makes dozens of arrays: 166 µs for nine
numbers, of which the compiled loop takes one. Here a row is written to arrays that are used again, one
compiled function sorts, centres and looks it up, and the loop is that of all rows, so the model has the same
bits. A call of a compiled function takes half a microsecond if its arguments are a tuple already, so these
are kept for as long as a model has the tables that are in them.

What is taken here needs no further check: a dictionary of named features, a label known to be in the domain.
Everything else, and whatever is wrong, is left to the general way and its messages.
"""

from __future__ import annotations

import struct
import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.data.chunk import Chunk, read_only
from thresher.data.errors import DataError
from thresher.data.inputs.arrays import RowReader
from thresher.engine.centring import one_row
from thresher.engine.index import GrowingIndex
from thresher.learning.model.agreement import SMALL, knows_names
from thresher.learning.model.divergence import EXTREME

if TYPE_CHECKING:
    from thresher.learning.model.prediction import LinearPredictor

_LEAST, _MOST = 1e-30, 1e30
"""Numbers of this magnitude are positive and finite in float32 too"""
LONGEST = 256
"""Features of a row that is taken here: the time to sort them grows with the square"""
_here = threading.local()


def is_plain(number: Any) -> bool:
    """Whether it is a number of Python that float32 only rounds: 0, or not extreme."""
    kind = type(number)
    return (kind is float or kind is int) and (number == 0 or _LEAST < abs(number) < _MOST)


class RowBuffers:
    """The arrays of a row, which the next one overwrites. Each thread has its own, for all models."""

    def __init__(self, most: int = 16) -> None:
        self._most, self._reader = most, RowReader()
        self._packers = dict[int, tuple[Any, Any]]()
        self.given, self.numbers = np.empty(most + 2, np.uint64), np.empty(most)
        self.raw = np.zeros(2, np.int64), np.empty(most, np.uint64), *np.empty((2, most), np.float32)
        self.own = np.zeros(2, np.int64), np.empty(most + 1, np.float32), np.empty(most + 1, np.uint64)
        self.found = np.empty(most + 1, np.uint32)
        self.label, self.target, self.weight = np.ones((3, 1), np.float32)
        """`target`: the label as the loss takes it"""
        self.room = {kind: np.empty(most + 1, kind) for kind in (np.float32, np.float64)}
        of_row: Any = *self.own, self.found, self.target, self.weight, np.arange(most + 1, dtype=np.uint32)
        self.ends, self.values, self.keys, self.rows, self.targets, self.weights, self.places = map(
            read_only, of_row
        )
        self.ready = dict[int, Ready]()
        """by the id of the model"""

    def read(self, row: dict[Any, Any], used: int, columns: int) -> bool:
        """Read a row for an index with so many rows in use, and a model that centres so many columns.

        False if the row is wrong or too long, or there was no room: next time there is.
        """
        keys: list[int] = []  # `list[int]()` takes four times as long
        values: list[float] = []
        try:
            self._reader.add(row, keys, values, 1)
        except DataError:
            return False
        count = len(keys)
        if count > LONGEST:
            return False
        if count + columns > self._most:
            _here.arrays = RowBuffers(2 * (count + columns))
            return False
        if (packers := self._packers.get(count)) is None:
            packers = struct.Struct(f"{count + 2}Q").pack_into, struct.Struct(f"{count}d").pack_into
            self._packers[count] = packers
        packers[0](self.given.data, 0, count, used, *keys)
        packers[1](self.numbers.data, 0, *values)
        return True

    def chunk(self, total: int) -> Chunk:
        """A copy of the row, which has so many features, with its label and importance."""
        keys, values = self.keys[:total].copy(), self.values[:total].copy()
        return Chunk(self.ends.copy(), keys, values, self.label.copy(), self.weight.copy())


def arrays_here() -> RowBuffers:
    """Those of this thread."""
    try:
        found: RowBuffers = _here.arrays
    except AttributeError:
        found = _here.arrays = RowBuffers()
    return found


class Ready:
    """The arguments of compiled functions for one model and the arrays of a thread."""

    def __init__(self, model: LinearPredictor, arrays: RowBuffers) -> None:
        index, means = model.index, model.only_means
        assert isinstance(index, GrowingIndex)
        assert means is not None
        self.arrays, self._index, self._means, self._table = arrays, index, means, model.table
        self._slots, self._kept, self._columns = index.tables[0], means.kept, len(means.keys)
        self._layout = model.layout
        loop = getattr(model, "loop", None)
        self.learn = None if loop is None else loop.learner_of_row(arrays)
        """learns the row that was added; False if its loss is not finite; None: it is learned otherwise"""
        self.margins = model.reader_of_row(arrays)
        """the margins ``(1,)`` of the row that was found, which has so many features; None: read otherwise"""
        limits, room = (np.uint64(SMALL), float(EXTREME)), 0 if self.learn is None else index.size
        before = arrays.given, arrays.numbers, *limits, read_only(means.keys), means.kept
        after = arrays.raw, arrays.own, index.tables, room, arrays.found
        self._find, self._add = (*before, False, *after), (*before, True, *after)

    def holds(self, model: LinearPredictor) -> bool:
        """Whether the model has the tables that are in the arguments."""
        slots, known = self._index.tables
        return (
            (model.table is self._table and slots is self._slots)
            and (model.index is self._index and self._means.kept is self._kept)
            and (model.layout is self._layout and model.numbering is None)
            and (self._index.used == 1 or known.item(1) > SMALL)
        )

    def add(self, row: dict[Any, Any]) -> tuple[int, bool] | None:
        """Read a row to learn: how many features it has, and whether there is more to do; None: not read.

        There is if a column has left, a value is extreme, the index has no room for the keys, or without
        `learn`; then keys are not added.
        """
        if self._index.is_ahead or not self.arrays.read(row, self._index.used, self._columns):
            return None
        total, used, more = one_row(*self._add)
        if total < 0:
            return None
        self._index.added(used)
        return total, more

    def find(self, row: dict[Any, Any]) -> int:
        """Read a row to predict: how many features it has; negative: not read."""
        if not self.arrays.read(row, self._index.used, self._columns):
            return -1
        total: int = one_row(*self._find)[0]
        return total


def ready_for(model: LinearPredictor) -> Ready | None:
    """What this thread has ready for rows of named features; None if they go the general way."""
    arrays, who = arrays_here(), id(model)
    found = arrays.ready.get(who)
    if found is not None and found.holds(model):
        return found
    growing = isinstance(model.index, GrowingIndex)
    if not growing or model.only_means is None or model.shifted or model.sliced or not knows_names(model):
        return None
    if found is None:
        weakref.finalize(model, arrays.ready.pop, who, None).atexit = False
    found = arrays.ready[who] = Ready(model, arrays)
    return found
