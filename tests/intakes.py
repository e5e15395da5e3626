"""Tables with columns of very different scales, and how often features were met."""

from collections import Counter

import numpy as np

from tests.streams import Stream, stream
from thresher.data.chunk import Chunk
from thresher.data.features.murmur import hash_bytes
from thresher.data.layout import SettledLayout

ROWS, FEATURES, BITS = 150, 48, 9  # keys are small, so that the direct store holds them
_NAMED = {hash_bytes(f"column {k}".encode()) & (1 << BITS) - 1: f"column {k}" for k in range(70)}
KEYS = np.sort(np.array(list(_NAMED), np.uint64)[:FEATURES])
NUMERIC = np.arange(FEATURES) % 3 != 1
KINDS = tuple("numeric" if numeric else "categorical" for numeric in NUMERIC)
_COLUMNS = tuple(_NAMED[int(key)] for key in KEYS)
LAYOUT = SettledLayout("csv", bits=BITS, columns=_COLUMNS, kinds=KINDS, spelling=("",) * len(_COLUMNS))


def table(seed: int = 31, rows: int = ROWS) -> Stream:
    """Columns of very different scales, all of them with missing values."""
    data = stream(seed, rows, FEATURES, density=0.05, keys=KEYS)
    scales = np.repeat(10.0 ** np.linspace(-6, 6, FEATURES)[np.newaxis], rows, axis=0).astype(np.float32)
    column = np.searchsorted(KEYS, data.chunk.keys)
    values = data.chunk.values * scales[0, column]
    chunk = Chunk(data.chunk.indptr, data.chunk.keys, values, data.chunk.labels, data.chunk.weights)
    X = np.zeros((rows, FEATURES))
    X[np.repeat(np.arange(rows), np.diff(chunk.indptr)), column] = values
    return Stream(chunk, X, data.y, data.importance)


def sightings(chunk: Chunk) -> list[int]:
    """How often each stored number's key was met up to it, itself included."""
    counts: Counter[int] = Counter()
    found = []
    for key in chunk.keys.tolist():
        counts[key] += 1
        found.append(counts[key])
    return found
