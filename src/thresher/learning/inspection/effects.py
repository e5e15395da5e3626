"""What columns do to the margin: the standard deviation of what each adds to it, over a sample of rows.

The effect of a column g is the deviation over rows i of sum_{j in g} w_j x_ij, with the final weights; of
several outputs, the root of the mean of the variances. Each row counts once, the divisor is the number of
rows. So an income in euros and one in cents have the same effect, words of a text that come together count as
they add up, and a category that hardly any row has does little. Sums of the magnitudes of weights say none of
this. Counts of features in the store would, for columns with one feature in a row, but no rule keeps them,
and they say nothing of words that come together.

The rows are drawn while the stream is learned for the first time. An effect of n drawn rows has a relative
standard error of about sqrt((kurtosis - 1) / (4 n)): 1 % where contributions are normal.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, concat
from thresher.data.features.names import BETWEEN, numeric_keys
from thresher.data.layout import SettledLayout
from thresher.engine.sound import Tensors, check_tensor, require
from thresher.learning.model.objective import F64

ROWS, VALUES = 1 << 12, 1 << 17
"""Maximum number of rows that are drawn, and of their values."""
_WEIGHTS = 1 << 22
"""Maximum number of weights of the values that are looked at: many outputs have fewer rows."""
_BETWEEN = BETWEEN.encode()
UNNAMED = 0
"""The group of the features without a name"""
Effects = tuple[tuple[str | None, float], ...]
U64 = NDArray[np.uint64]


class DrawnRows:
    """Rows drawn uniformly from a stream: those whose numbers have the lowest hashes.

    As many are kept as hold `VALUES` values together, at most `ROWS`. So it makes no difference where the
    stream is cut. New ones wait until they are as many, since each choice copies all.
    """

    def __init__(self) -> None:
        self._hashes, self._rows = np.zeros(0, np.uint64), concat([])
        """ascending, and the rows in this order, without what is beside their features"""
        self._end = np.array([2**64 - 1], np.uint64)
        """rows with this hash or more are left out"""
        self._waiting, self._room = list[tuple[U64, Chunk]](), np.array([ROWS, VALUES])

    def add(self, chunk: Chunk, first: int) -> None:
        """Add the next rows, which begin with row number `first`."""
        x = np.arange(first, first + len(chunk), dtype=np.uint64)
        # the finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        hashes = x ^ (x >> np.uint64(31))
        new = hashes < self._end
        if not new.any():
            return
        own = chunk.take(new)
        own = Chunk(own.indptr, own.keys, own.values, own.labels, own.weights, rests=own.rests)
        self._waiting.append((hashes[new], own))
        self._room -= np.array([len(own), own.nnz])
        if (self._room <= 0).any():
            self._choose()

    def _choose(self) -> None:
        """Choose among all rows."""
        hashes = np.concatenate([self._hashes, *(one for one, _ in self._waiting)])
        rows = concat([self._rows, *(one for _, one in self._waiting)])
        order = np.argsort(hashes)
        count = min(int(np.searchsorted(np.cumsum(np.diff(rows.indptr)[order]), VALUES, "right")), ROWS)
        if count < len(order):
            self._end = hashes[order[count : count + 1]]
        self._hashes, self._rows, self._waiting = hashes[order[:count]], rows.take(order[:count]), []
        self._room = np.array([ROWS, VALUES])

    @property
    def rows(self) -> Chunk:
        """The rows, in random order."""
        self._choose()
        return self._rows

    def tensors(self) -> Tensors:
        """As a checkpoint holds them."""
        self._choose()
        return {"hashes": self._hashes, "end": self._end, **self._rows.arrays()}

    @classmethod
    def of(cls, tensors: Tensors) -> DrawnRows:
        """The inverse of `tensors`. StateError, `DataError`."""
        found, arrays = cls(), dict[str, Any](tensors)
        found._hashes = check_tensor(arrays, "hashes", (None,), np.uint64)
        found._end = check_tensor(arrays, "end", (1,), np.uint64)
        del arrays["hashes"], arrays["end"]
        names = found._rows.arrays().keys()
        require(names <= arrays.keys() <= {*names, "rests"}, "drawn", "expected the arrays of a chunk")
        found._rows = Chunk(**arrays)
        found._rows.check()
        require(len(found._rows) == len(found._hashes), "drawn.hashes", "expected one for each row")
        return found


class Grouping(NamedTuple):
    """The features of a model by column, namespace, or product of these."""

    names: list[bytes]
    """of the groups: `UNNAMED`, then the columns of a table in their order, then others as they were met"""
    keys: U64
    """``(features,)``, ascending: those whose group is known"""
    numbers: Any
    """``(features,)`` their groups"""

    @classmethod
    def of(cls, model: Any) -> Grouping:
        """That of a model, as far as it has names."""
        layout = model.layout or SettledLayout()
        names = [b"", *(name.encode("utf-8", "surrogateescape") for name in layout.kind_of)]
        mine = {name: number for number, name in enumerate(layout.columns, 1)}
        found = {key: mine[name] for key, name in numeric_keys(layout).items()}
        known, columns = {name: number for number, name in enumerate(names) if number}, bool(layout.kind_of)

        def column(name: bytes) -> bytes:
            """The column of a feature, whose name may contain equals signs; its namespace; empty if none."""
            space, equals, _ = name.partition(b"=")
            while columns and space not in known and len(space) < len(name):
                space += b"=" + name[len(space) + 1 :].partition(b"=")[0]
            return space if columns or equals else b""

        if model.names is not None:
            for key, name in model.names.stored_bytes().items():
                group = _BETWEEN.join(map(column, name.split(_BETWEEN)))
                if group not in known:
                    known[group] = len(names)
                    names.append(group)
                found[key] = known[group]
        keys = np.array(sorted(found), np.uint64)
        return cls(names, keys, np.array([found[key] for key in keys.tolist()], np.int64))

    def of_keys(self, keys: U64) -> Any:
        """The group ``(n,)`` of each of these features."""
        places = np.searchsorted(self.keys, keys)
        known = np.append(self.keys, np.uint64(0))[places] == keys
        known &= places < len(self.keys)
        return np.where(known, np.append(self.numbers, UNNAMED)[places], UNNAMED)

    def called(self, number: int) -> str | None:
        """The name of a group; None for the features without a name."""
        return None if number == UNNAMED else self.names[number].decode("utf-8", "backslashreplace")


def effects_of(model: Any, drawn: DrawnRows) -> Effects:
    """Groups and their effects that are not 0, the largest first, of a model that is no ensemble.

    Empty if no feature has a name, or if fewer than two rows were drawn.
    """
    groups = Grouping.of(model)
    if not len(groups.keys):
        return ()
    rows = drawn.rows
    rows = rows.rows(0, rows.end_within(0, _WEIGHTS // model.head.count))
    n = len(rows)
    if n < 2:
        return ()
    found = model.terms(rows)
    row = np.repeat(np.arange(n), np.diff(found.rows.indptr))
    places = groups.of_keys(found.rows.keys) * n + row
    order = np.argsort(places, kind="stable")
    (begins,) = np.nonzero(np.diff(places[order], prepend=-1))
    if not len(begins):
        return ()
    sums: F64 = np.add.reduceat(found.parts.reshape(len(places), -1)[order], begins)  # of a group in a row
    own = places[order[begins]] // n
    (firsts,) = np.nonzero(np.diff(own, prepend=-1))
    counts = np.diff(firsts, append=len(own))
    means = np.add.reduceat(sums, firsts) / n
    squares = np.add.reduceat((sums - np.repeat(means, counts, axis=0)) ** 2, firsts)
    variances = (squares + (n - counts)[:, np.newaxis] * means**2) / n
    effects = np.sqrt(variances.mean(axis=1))
    order = np.lexsort((own[firsts], -effects))
    return tuple((groups.called(own[firsts[k]]), float(effects[k])) for k in order.tolist() if effects[k] > 0)


def keep_effects(model: Any) -> None:
    """Note the effects of the columns of a model in its record, if there is one, and rows were drawn."""
    if model.record is not None and model.drawn is not None:
        model.record = replace(model.record, effects=effects_of(model, model.drawn))
