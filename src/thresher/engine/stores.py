"""Stores: from the keys of a Chunk to rows of the state table, resolved before the hot loop.

All three give the same models bit for bit (law 4), as long as a hashed one meets no collision.
A store is resolved up to the first example that does not fit; the model learns what was resolved,
then makes room. So when rows are freed depends on the stream alone, never on how it is cut.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.engine.sound import StateError, Tensors, ascending, given, require
from thresher.engine.tables import (
    MOST_RANK,
    REGISTERS,
    empty_index,
    estimate,
    find,
    find_or_add,
    hash_and_merge,
    mix,
    reindex,
)

U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
F32 = NDArray[np.float32]
State = NDArray[Any]
Shape = tuple[int, ...]

_FIRST_LIMIT = 1 << 12
_MOST_ROWS = np.iinfo(np.uint32).max
_ALWAYS_KEPT = 1 << 17  # rows below which nothing is swept: the table just doubles


class Resolved(NamedTuple):
    """Rows of examples lo..hi-1 in the layout of the chunk (or of a merged copy of it)."""

    hi: int
    indptr: I64
    rows: U32 | U64
    values: F32


class GrowingStore:
    """Open addressing on 64-bit keys; memory follows the live weights (the default).

    Rows are born in the order their keys come, so frequent ones lie together. Before a large table
    outgrows its limit the model sweeps idle rows away; the new limit is half as large again as
    what is left, at a load of one half or less. A small one just doubles.
    """

    NAME: ClassVar[str] = "growing"

    def __init__(self, shape: Shape, dtype: Any) -> None:
        self.S: State = np.zeros((_FIRST_LIMIT, *shape), dtype)
        self._known = np.zeros(_FIRST_LIMIT, np.uint64)
        self._slots = empty_index(_FIRST_LIMIT)
        self._registers = np.zeros(REGISTERS, np.uint8)
        self._born = 0
        self._freed = 0
        self.seen = np.zeros(0, np.uint8)  # keys are counted when their rows are born
        self.count = 1  # the null row

    @property
    def spec(self) -> str:
        """How `make_store` is told to make this store."""
        return self.NAME

    @property
    def nbytes(self) -> int:
        """Bytes of state, keys and index."""
        return self.S.nbytes + self._known.nbytes + self._slots.nbytes

    @property
    def features_seen(self) -> int:
        """Distinct keys ever met: exact until a row is freed, then a HyperLogLog estimate (0.8 %)."""
        return self._born if not self._freed else max(self._born - self._freed, estimate(self._registers))

    def resolve(self, keys: U64, indptr: I64, values: F32, lo: int, hi: int, rows: U32) -> Resolved:
        """Rows of as many of the examples lo..hi-1 as fit, new keys added."""
        before = self.count
        stop, self.count = find_or_add(
            self._slots,
            self._known,
            self._registers,
            self.count,
            self.S.shape[0],
            keys,
            indptr,
            lo,
            hi,
            rows,
        )
        self._born += self.count - before
        return Resolved(stop, indptr, rows, values)

    def extend(self, keys: U64) -> bool:
        """Every resolved key has a row."""
        return False

    def make_room(self, needed: int, sweep: Any) -> None:
        """Free idle rows by `sweep(S, keys, first, count) -> count`, then fit `needed` more rows."""
        kept = self.count
        if kept + needed > _ALWAYS_KEPT:
            kept = sweep(self.S, self._known, 1, kept)
            self._freed += self.count - kept
            self.count = kept
        limit = max(min(2 * kept, _ALWAYS_KEPT), kept + kept // 2, kept + needed)
        if limit > _MOST_ROWS:
            raise MemoryError("more than 2^32 live features")
        if limit != self.S.shape[0]:
            self._slots = np.empty(0, np.uint32)  # free it before the new arrays are made
            self.S = _resized(self.S, limit)
            self._known = _resized(self._known, limit)
            self._slots = empty_index(limit)
        else:
            self._slots[:] = 0
        reindex(self._slots, self._known, kept)

    def find(self, keys: U64, indptr: I64, values: F32) -> Resolved:
        """Rows to read from; nothing is added."""
        rows = np.empty(keys.size, np.uint32)
        find(self._slots, self._known, keys, rows)
        return Resolved(indptr.size - 1, indptr, rows, values)

    def features(self) -> U64:
        """Key of each row of S in use; the null row comes first."""
        return self._known[: self.count]

    def fill(self, keys: U64, weights: NDArray[Any], unmet: NDArray[Any]) -> None:
        """Make a store of one column that holds these weights, and `unmet` for all other features."""
        null = np.zeros(1, np.uint64)
        state = np.concatenate([unmet[np.newaxis], weights])[:, np.newaxis]
        counts = np.array([len(keys), 0, len(keys) + 1])
        known = np.concatenate([null, keys])
        self.restore({"S": state, "keys": known, "registers": self._registers, "counts": counts})

    def tensors(self) -> dict[str, NDArray[Any]]:
        """All that `restore` needs."""
        counts = np.array([self._born, self._freed, self.S.shape[0]], np.int64)
        return {
            "S": self.S[: self.count],
            "keys": self._known[: self.count],
            "registers": self._registers,
            "counts": counts,
        }

    def check(self, tensors: Tensors, batch: int) -> None:
        """StateError for what no store has written that learned from `batch` examples at a time."""
        known = given(tensors, "keys", (None,), np.uint64)
        given(tensors, "S", (len(known), *self.S.shape[1:]), self.S.dtype)
        registers = given(tensors, "registers", (REGISTERS,), np.uint8)
        require((registers <= MOST_RANK).all(), "registers", f"none is larger than {MOST_RANK}")
        born, freed, limit = (int(v) for v in given(tensors, "counts", (3,), np.int64))
        count = len(known)
        require(0 <= freed == born - count + 1, "counts", "rows born less rows freed are those there are")
        most = min(max(_FIRST_LIMIT, _ALWAYS_KEPT, (1 + batch) * count), _MOST_ROWS)
        require(1 <= count <= limit <= most, "counts", f"room for {limit} rows is not what {count} rows take")
        distinct = ascending(np.sort(known[1:]))  # np.unique takes a hundred times as long
        require(distinct and known[0] == 0, "keys", "every key has one row, and the first row none")

    def restore(self, tensors: dict[str, NDArray[Any]]) -> None:
        """The store as it was when `tensors` were taken."""
        self._born, self._freed, limit = (int(v) for v in tensors["counts"])
        self.count = len(tensors["keys"])
        self.S = _resized(tensors["S"], limit)
        self._known = _resized(tensors["keys"], limit)
        self._registers = tensors["registers"].copy()
        self._slots = empty_index(limit)
        reindex(self._slots, self._known, self.count)


class DirectStore:
    """The key is the row: for ids that are small and dense. Grows to the largest id met."""

    NAME: ClassVar[str] = "direct"
    LARGEST: ClassVar[int] = 1 << 31

    def __init__(self, shape: Shape, dtype: Any) -> None:
        self.S: State = np.zeros((_FIRST_LIMIT, *shape), dtype)
        self.seen = np.zeros(_FIRST_LIMIT - 1, np.uint8)  # the last row of S is the null row

    @property
    def spec(self) -> str:
        """How `make_store` is told to make this store."""
        return self.NAME

    @property
    def nbytes(self) -> int:
        """Bytes of state and marks."""
        return self.S.nbytes + self.seen.nbytes

    @property
    def features_seen(self) -> int:
        """Distinct keys ever met."""
        return int(np.count_nonzero(self.seen))

    def resolve(self, keys: U64, indptr: I64, values: F32, lo: int, hi: int, rows: U32) -> Resolved:
        """Keys are rows; those without one are found when they are learned from."""
        return Resolved(hi, indptr, keys, values)

    def extend(self, keys: U64) -> bool:
        """Grow until every key has a row; False if they all had."""
        largest = int(keys.max(initial=0))
        if largest < self.seen.size:
            return False
        if largest >= self.LARGEST:
            raise OverflowError(
                f"feature id {largest} is too large for the direct store; use --store growing"
            )
        size = 1 << (largest + 1).bit_length()  # however many keys are looked at in one go
        self.S = _resized(self.S, size)
        self.seen = _resized(self.seen, size - 1)
        return True

    def make_room(self, needed: int, sweep: Any) -> None:
        """Never called: every example fits."""
        raise AssertionError("the direct store is never full")

    def find(self, keys: U64, indptr: I64, values: F32) -> Resolved:
        """Rows to read from; ids beyond the table read the null row."""
        rows = np.minimum(keys, np.uint64(self.S.shape[0] - 1))
        return Resolved(indptr.size - 1, indptr, rows, values)

    def features(self) -> U64:
        """Key of each row of S but the null row."""
        return np.arange(self.seen.size, dtype=np.uint64)

    def fill(self, keys: U64, weights: NDArray[Any], unmet: NDArray[Any]) -> None:
        """Make a store of one column that holds these weights, and `unmet` for all other features."""
        size = int(keys.max(initial=0)) + 1
        if size > self.LARGEST:
            raise StateError(f"feature id {size - 1} is too large for the direct store")
        self.S, self.seen = _rows_of(unmet, size + 1, weights.dtype), np.zeros(size, np.uint8)
        self.S[keys, 0], self.seen[keys] = weights, 1

    def tensors(self) -> dict[str, NDArray[Any]]:
        """All that `restore` needs."""
        return {"S": self.S[:-1], "seen": self.seen}

    def check(self, tensors: Tensors, batch: int) -> None:
        """StateError for what no store has written."""
        rows = len(given(tensors, "seen", (None,), np.uint8))
        require(1 <= rows < 2 * self.LARGEST, "seen", "there is a row at least")
        given(tensors, "S", (rows, *self.S.shape[1:]), self.S.dtype)

    def restore(self, tensors: dict[str, NDArray[Any]]) -> None:
        """The store as it was when `tensors` were taken."""
        self.S = _resized(tensors["S"], len(tensors["S"]) + 1)
        self.seen = tensors["seen"].copy()


class HashedStore:
    """2^bits rows for good; keys that meet share a row, and are reported under its number.

    An example x becomes phi(x)_r = sum of x_j over the keys j of row r. With `signed` each x_j is
    multiplied by a sign s_j = +-1, drawn by the hash as the row is: then E[<phi(x), phi(z)>] = <x, z>
    over the seeds, with variance sum_{i != j} (x_i^2 z_j^2 + x_i z_i x_j z_j) / 2^bits; without, the mean
    is off by sum_{i != j} x_i z_j / 2^bits. The weight of a row is that of s_j x_j.

    Reference: Weinberger et al. (ICML 2009), lemma 2; Daume, A Course in Machine Learning (2012),
    equations 12.10 to 12.14, for the sums without signs.
    """

    NAME: ClassVar[str] = "hashed"
    SIGNED: ClassVar[str] = "signed"

    def __init__(self, shape: Shape, dtype: Any, bits: int = 20, seed: int = 0, signed: bool = False) -> None:
        if not 1 <= bits <= 31:
            raise ValueError(f"hashed store: bits must lie in 1..31, not {bits}")
        if not 0 <= seed < 1 << 64:
            raise ValueError(f"hashed store: the seed must lie in 0..2^64 - 1, not {seed}")
        self.bits, self.seed, self.signed = bits, seed, signed
        self.S: State = np.zeros((1 << bits, *shape), dtype)
        self.seen = np.zeros(1 << bits, np.uint8)
        self._last = np.zeros(1 << bits, np.int64)

    @property
    def spec(self) -> str:
        """How `make_store` is told to make this store."""
        return _hashed_spec(self.bits, self.seed, self.signed)

    @property
    def nbytes(self) -> int:
        """Bytes of state and marks."""
        return self.S.nbytes + self.seen.nbytes + self._last.nbytes

    @property
    def features_seen(self) -> int:
        """Distinct rows ever met: keys that share one are counted once."""
        return int(np.count_nonzero(self.seen))

    def resolve(self, keys: U64, indptr: I64, values: F32, lo: int, hi: int, rows: U32) -> Resolved:
        """Rows of the examples lo..hi-1."""
        return self._merged(keys, indptr, values, lo, hi, rows)

    def _merged(self, keys: U64, indptr: I64, values: F32, lo: int, hi: int, rows: U32) -> Resolved:
        merged, ends = np.empty(keys.size, np.float32), np.empty(indptr.size, np.int64)
        shift, seed = np.uint64(64 - self.bits), mix(np.array([self.seed], np.uint64))[0]
        table = (self._last, rows, ends, merged)
        hash_and_merge(shift, seed, self.signed, keys, indptr, values, lo, hi, *table)
        return Resolved(hi, ends, rows, merged)

    def extend(self, keys: U64) -> bool:
        """Every key has a row."""
        return False

    def make_room(self, needed: int, sweep: Any) -> None:
        """Never called: every example fits."""
        raise AssertionError("the hashed store is never full")

    def find(self, keys: U64, indptr: I64, values: F32) -> Resolved:
        """Rows to read from."""
        rows = np.empty(keys.size, np.uint32)
        return self._merged(keys, indptr, values, 0, indptr.size - 1, rows)

    def features(self) -> U64:
        """Number of each row of S."""
        return np.arange(self.S.shape[0], dtype=np.uint64)

    def fill(self, keys: U64, weights: NDArray[Any], unmet: NDArray[Any]) -> None:
        """Make a store of one column that holds these weights, and `unmet` for all other features."""
        if len(keys) and int(keys.max()) >= len(self.S):
            raise StateError(f"{keys.max()} is no row of the store {self.spec}")
        self.S = _rows_of(unmet, len(self.S), weights.dtype)
        self.S[keys, 0] = weights

    def tensors(self) -> dict[str, NDArray[Any]]:
        """All that `restore` needs."""
        return {"S": self.S, "seen": self.seen}

    def check(self, tensors: Tensors, batch: int) -> None:
        """StateError for what no store has written."""
        given(tensors, "seen", self.seen.shape, np.uint8)
        given(tensors, "S", self.S.shape, self.S.dtype)

    def restore(self, tensors: dict[str, NDArray[Any]]) -> None:
        """The store as it was when `tensors` were taken."""
        self.S, self.seen = tensors["S"].copy(), tensors["seen"].copy()


Store = GrowingStore | DirectStore | HashedStore


def make_store(spec: str, shape: Shape, dtype: Any, seed: int = 0) -> Store:
    """A store with rows of `shape`, from ``growing``, ``direct`` or ``hashed``.

    ``hashed`` may say more, in this order: ``hashed:BITS,SEED,signed``; 20 bits and the given `seed` if not.
    """
    kind, options = _read_spec(spec, seed)
    return kind(shape, dtype, *options)


def store_spec(spec: str, seed: int = 0) -> str:
    """The same SPEC as a store says it; ValueError for one that names no store."""
    kind, options = _read_spec(spec, seed)
    return _hashed_spec(*options) if options else kind.NAME


def _read_spec(spec: str, seed: int) -> tuple[type[Store], tuple[int, int, bool] | tuple[()]]:
    """The class of a store, and what it is made with besides rows."""
    name, _, rest = spec.partition(":")
    for kind in (GrowingStore, DirectStore):
        if name == kind.NAME and not rest:
            return kind, ()
    numbers = rest.split(",") if rest else []
    signed = numbers[-1:] == [HashedStore.SIGNED]
    numbers = numbers[:-1] if signed else numbers
    if name == HashedStore.NAME and len(numbers) <= 2 and all(n.isdigit() for n in numbers):
        bits, own = [*(int(n) for n in numbers or ["20"]), seed][:2]
        return HashedStore, (bits, own, signed)
    raise ValueError(
        f"no store is called {spec!r}; known: growing, direct, hashed:BITS, hashed:BITS,{HashedStore.SIGNED}"
    )


def _hashed_spec(bits: int, seed: int, signed: bool) -> str:
    return f"{HashedStore.NAME}:{bits},{seed}" + (f",{HashedStore.SIGNED}" if signed else "")


def _rows_of(unmet: NDArray[Any], size: int, dtype: Any) -> State:
    """A table of one column: `unmet` in every row. Zeros take no memory before they are written."""
    table = np.zeros((size, 1, *unmet.shape), dtype)
    if unmet.any():
        table[:] = unmet
    return table


def _resized(array: NDArray[Any], size: int) -> NDArray[Any]:
    """A copy with `size` rows: cut, or filled up with zeros."""
    out = np.zeros((size, *array.shape[1:]), array.dtype)
    kept = min(size, len(array))
    out[:kept] = array[:kept]
    return out
