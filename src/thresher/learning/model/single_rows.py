"""Single rows: dictionaries of named features, learned and predicted without a source and new arrays.

``learn([row], [label])`` opens a source, checks its layout and makes dozens of arrays: 166 µs for nine
numbers, of which the compiled loop takes one. Here a row is written to arrays that are used again, one
compiled function sorts, centres and looks it up, and the loop is that of all rows, so the model has the same
bits. A call of a compiled function takes half a microsecond if its arguments are a tuple already, so these
are kept for as long as a model has the tables that are in them. Whoever uses them takes them from the model
and gives them back: threads, handlers of signals and finalizers in the middle of a row find none, and make
their own.

What is taken here needs no further check: a dictionary of named features, a label known to be in the domain.
Everything else, and whatever is wrong, is left to the general way and its messages.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence, Set
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.data.chunk import Chunk, read_only
from thresher.data.errors import DataError
from thresher.data.inputs.arrays import RowReader
from thresher.engine.centring import one_row
from thresher.engine.index import GrowingIndex
from thresher.engine.sound import Array
from thresher.learning.model.agreement import NAMED, SMALL, kind_of_model
from thresher.learning.model.divergence import EXTREME
from thresher.learning.model.objective import F64

if TYPE_CHECKING:
    from thresher.learning.model.prediction import BasePredictor

Row = Mapping[Any, Any] | Sequence[float] | Array | str
"""One example without its label"""
_ROW = "give a dictionary of named features, a sequence of numbers or a text"
_AS_ROW = (
    (("to_dict", "give row.to_dict()"), ("to_list", "give row.to_list()")),
    (
        ("to_dicts", "give rows.to_dicts()[0]"),
        ("to_pylist", "give rows.to_pylist()[0]"),
        ("to_dict", 'give rows.to_dict("records")[0]'),
    ),
)
"""Methods of columns, and of tables, that give a row"""
_LEAST, _MOST = 1e-30, 2.0**53
"""Numbers of this magnitude are positive in float32 too, and whole ones are rounded once"""
LONGEST, _SPARE = 256, 4
"""Features of a row that is taken here: the time to sort them grows with the square; and room for more"""
LABELS = 1 << 10
"""How many are remembered as numbers"""
Features = tuple[list[int], list[float]]
_reader = RowReader()
SCALARS = frozenset((np.bool_, np.str_, np.float32, np.float64, np.int8, np.uint8, np.int32, np.int64))
"""Labels of these types are the same labels as values of Python."""


def check_row(row: object, label: object = None) -> None:
    """`DataError` for what is not one row."""
    if isinstance(row, Mapping | str) or hasattr(row, "tocsr"):
        return
    what, sides = type(row).__name__, getattr(row, "ndim", 2 if hasattr(row, "columns") else 1)
    if how := next((how for method, how in _AS_ROW[sides == 2] if hasattr(row, method)), ""):
        pass
    elif sides != 1 or not hasattr(row, "__iter__") or isinstance(row, bytes | Set):
        how = "the row comes first, then its label" if isinstance(label, Mapping) else _ROW
    elif isinstance(first := next(iter(row), 0.0), Mapping | Sequence | np.ndarray):
        what, how = f"{what} of {type(first).__name__}", f"{_ROW}; several rows are for learn and predict"
    else:
        return
    raise DataError(f"expected one row, not {what}: {how}")


def as_data(row: object) -> Any:
    """One row as data. A text in a list without labels could be the name of a file."""
    check_row(row)
    return ([row], [0.0]) if isinstance(row, str) else [row]


def is_plain(number: Any) -> bool:
    """Whether it is a number of Python that float32 only rounds: 0, or not extreme."""
    kind = type(number)
    return (kind is float or kind is int) and (number == 0 or _LEAST < abs(number) < _MOST)


@cache
def _packers(count: int) -> tuple[Any, Any]:
    """What writes two numbers and the keys of so many features to an array, and their values to another."""
    return struct.Struct(f"{count + 2}Q").pack_into, struct.Struct(f"{count}d").pack_into


class RowBuffers:
    """The arrays of a row, which the next one overwrites."""

    def __init__(self, most: int, dtype: Any) -> None:
        self.given, self.numbers = np.empty(most + 2, np.uint64), np.empty(most)
        self.raw = np.zeros(2, np.int64), np.empty(most, np.uint64), *np.empty((2, most), np.float32)
        self.own = np.zeros(2, np.int64), np.empty(most + 1, np.float32), np.empty(most + 1, np.uint64)
        self.found = np.empty(most + 1, np.uint32)
        self.label, self.target, self.weight = np.ones((3, 1), np.float32)
        """`target`: the label as the loss takes it"""
        self.room = np.empty(most + 1, dtype)
        of_row: Any = *self.own, self.found, self.target, self.weight, np.arange(most + 1, dtype=np.uint32)
        self.ends, self.values, self.keys, self.rows, self.targets, self.weights, self.places = map(
            read_only, of_row
        )

    def write(self, features: Features, used: int) -> None:
        """Write a row for an index with so many rows in use."""
        keys, values = features
        pack_keys, pack_values = _packers(len(keys))
        pack_keys(self.given, 0, len(keys), used, *keys)
        pack_values(self.numbers, 0, *values)

    def chunk(self, total: int) -> Chunk:
        """A copy of the row, which has so many features, with its label and importance."""
        keys, values = self.keys[:total].copy(), self.values[:total].copy()
        return Chunk(self.ends.copy(), keys, values, self.label.copy(), self.weight.copy())


class Ready:
    """The arguments of compiled functions for a Model or LinearPredictor, and its arrays for rows."""

    def __init__(self, model: Any, most: int) -> None:
        index, means = model.index, model.only_means
        assert isinstance(index, GrowingIndex)
        assert means is not None
        self._most, self._index, self._means, self._table = most, index, means, model.table
        self._slots, self._kept, self._layout = index.slots, means.kept, model.layout
        self.arrays = arrays = RowBuffers(most + len(means.keys), model.table.dtype)
        loop = getattr(model, "loop", None)
        self.learn = None if loop is None else loop.learner_of_row(arrays)
        """learns the row that was added; False if its loss is not finite; None: it is learned otherwise"""
        self.margins = model.reader_of_row(arrays) or (
            lambda model, total: model._products(arrays.chunk(total), model._bias())
        )
        """the margins ``(1,)`` that the model gives the row that was found, which has so many features"""
        limits, room = (np.uint64(SMALL), float(EXTREME)), 0 if self.learn is None else index.size
        before = arrays.given, arrays.numbers, *limits, read_only(means.keys), means.kept
        after = arrays.raw, arrays.own, (index.slots, index.known), room, arrays.found
        self._find, self._add = (*before, False, *after), (*before, True, *after)

    def holds(self, model: Any, count: int) -> bool:
        """Whether the model has the tables that are in the arguments, and so many features have room."""
        return (
            (model.table is self._table and self._index.slots is self._slots and count <= self._most)
            and (model.index is self._index and self._means.kept is self._kept)
            and (model.layout is self._layout and model.numbering is None)
            and (self._index.used == 1 or self._index.known.item(1) > SMALL)
        )

    def add(self, features: Features) -> tuple[int, bool] | None:
        """Add a row to learn: how many features it has, and whether there is more to do; None: not taken.

        There is if a column has left, a value is extreme, the index has no room for the keys, or without
        `learn`; then keys are not added.
        """
        self.arrays.write(features, self._index.used)
        total, used, more = one_row(*self._add)
        if total < 0:
            return None
        self._index.used = used
        return total, more

    def find(self, features: Features) -> int:
        """Find a row to predict: how many features it has; negative: not taken."""
        self.arrays.write(features, self._index.used)
        total: int = one_row(*self._find)[0]
        return total


def _takes_rows(model: BasePredictor) -> bool:
    """Whether rows of named features may be taken here."""
    growing = isinstance(model.index, GrowingIndex)
    if not growing or model.only_means is None or model.shifted or model.sliced:
        return False
    return kind_of_model(model).data in ("", NAMED)  # which `in_agreement` lets have named features


def features_of(model: BasePredictor, row: object) -> Features | None:
    """Keys and values of a row; None if it goes the general way.

    Values of classes of their own are asked for their numbers, and may use the model: so this comes first.
    """
    if type(row) is not dict or not (model.idle or _takes_rows(model)):
        return None
    keys: list[int] = []  # `list[int]()` takes four times as long
    values: list[float] = []
    try:
        _reader.add(row, keys, values, 1)
    except DataError:
        return None
    return (keys, values) if len(keys) <= LONGEST else None


def ready_for(model: BasePredictor, features: Features) -> Ready | None:
    """What is ready for such a row, taken from `idle`, to which it is to be given back; None: not taken."""
    count = len(features[0])
    try:
        found = model.idle.pop()
    except IndexError:
        pass
    else:
        if found.holds(model, count):
            return found
    return Ready(model, count + _SPARE) if _takes_rows(model) else None


def margins_of(model: BasePredictor, row: Row) -> F64 | None:
    """The margins of a row of named features; None if they have to be found in the general way."""
    if (features := features_of(model, row)) is None or (ready := ready_for(model, features)) is None:
        return None
    total = ready.find(features)
    found = None if total < 0 else ready.margins(model, total)
    model.idle.append(ready)
    return found
