"""The examples of an incomplete batch, as arrays of a model's state."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk
from thresher.data.labels import check_labels
from thresher.engine.sound import Tensors, given, offsets, require
from thresher.learning.head import Head

_PREFIX = "pending."
_ARRAYS = ("indptr", "keys", "values", "labels", "weights")


def state_of(waiting: Chunk) -> dict[str, NDArray[Any]]:
    """The chunk as arrays."""
    held = {name: getattr(waiting, name) for name in _ARRAYS}
    held["targets"] = np.zeros((0, 0), np.float32) if waiting.targets is None else waiting.targets
    return {_PREFIX + name: array for name, array in held.items()}


def restored(state: Tensors) -> Chunk:
    """The chunk in a state that `check` has accepted."""
    held: dict[str, Any] = {name: state[_PREFIX + name].copy() for name in _ARRAYS}
    targets = state[_PREFIX + "targets"].copy()
    return Chunk(**held, targets=targets if targets.size else None)


def check(state: Tensors, batch: int, head: Head) -> None:
    """StateError or DataError unless `state` holds the examples of an incomplete batch."""
    rows = len(given(state, _PREFIX + "labels", (None,), np.float32))
    keys = given(state, _PREFIX + "keys", (None,), np.uint64)
    ends = given(state, _PREFIX + "indptr", (rows + 1,), np.int64)
    require(ends[0] == 0 and offsets(ends, len(keys)), _PREFIX + "indptr", "rows must be consecutive")
    rising = np.ones(len(keys) + 1, bool)
    rising[1:-1] = keys[1:] > keys[:-1]
    rising[ends] = True
    require(rising.all(), _PREFIX + "keys", "the keys of a row must ascend")
    given(state, _PREFIX + "values", (len(keys),), np.float32)
    weights = given(state, _PREFIX + "weights", (rows,), np.float32)
    require((weights >= 0).all(), _PREFIX + "weights", "importances must not be negative")
    require(rows < batch, _PREFIX + "labels", f"fewer than {batch} examples must be waiting")
    listed = head.outputs.kind in ("labels", "values") and rows > 0
    shape = (rows, head.count) if listed else (0, None)
    targets = given(state, _PREFIX + "targets", shape, np.float32)
    if rows:
        check_labels(state[_PREFIX + "labels"], head.domain, targets if listed else None)
