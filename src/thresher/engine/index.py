"""Indexes: map the keys of a Chunk to rows before the main loop, and free rows that are idle.

A table is the state of one loop, with a row for each row of an index; several tables may share an index. They
grow with it, and a row is freed when it is idle in all of them.

All three indexes give bit-identical models (law 4), as long as a hashed one has no collision.
An index resolves examples up to the first that does not fit; those are learned, then room is made. So when
rows are freed depends on the stream alone, never on how it is chunked.

Each table returns a mask of its idle rows (with averaging, rows whose mean is zero too), the masks are
combined with `and`, and one loop compacts keys and tables alike, as rows of 32-bit words of any dtype.

Rows are freed at points that depend only on the stream, so the layout of the tables is the same however it is
split, and model files are equal byte for byte. Tables under 2^17 rows just double. The limit is one and a
half times what remains after a sweep, and the index is half full: with two float32 columns about 40 bytes per
live weight, 64 at the peak.

Small keys, up to 2^17 in a large table, index a table of the growing store directly: no hash and no
comparison, about 1 ns instead of 2.5 per non-zero of RCV1-like text, for a third of the slots.

A direct table grows to a power of two that depends only on its largest id. Before, the size was twice the old
one or the largest id, whichever was larger, and with many outputs or batches it depended on how many rows
were looked up at once.

`features_seen` is exact until the growing store frees its first row, and a lower bound after that: an exact
count would need memory for dead features.

SPECs of stores (`--store`).

``growing``, ``direct``, or ``hashed``, optionally with bits, seed and ``signed``, in this order:
``hashed:BITS,SEED,signed``.
"""

from __future__ import annotations

import math
import re
import weakref
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from thresher.engine import lookup
from thresher.engine.sound import Array, State, StateError, Tensors, ascending, check_tensor, require

Flags = NDArray[np.bool_]
U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
F32 = NDArray[np.float32]

FIRST_SIZE = 1 << 6
"""Rows of a table at first."""
_MOST_ROWS = np.iinfo(np.uint32).max
ALWAYS_KEPT = 1 << 17
"""Rows; smaller tables double without freeing any."""


class RowTable(Protocol):
    """State with a row for each row of an index. A row is zeros until its key has been learned."""

    S: Array
    """(rows, ...)"""

    def idle(self, count: int) -> Flags:
        """Which of the first `count` rows are equivalent to zeros: (count,)."""

    def moved(self, count: int) -> None:
        """Rebuild references to rows after rows have moved; `count` are left."""


class Resolved(NamedTuple):
    """Rows of examples lo..hi-1 in the layout of the chunk (or of a merged copy of it)."""

    hi: int
    indptr: I64
    rows: U32 | U64
    values: F32


class _Index:
    """The common part of all indexes. Rows are numbered below `size`, in order of first use or of key."""

    NAME: ClassVar[str]
    size: int
    """rows of each table"""
    seen: U8
    """Which rows were ever met, marked by the learning loop; empty if keys are counted otherwise."""
    freed = 0
    """how many rows were freed; if any, `features_seen` is a lower bound"""

    def __init__(self) -> None:
        self._tables = weakref.WeakSet[RowTable]()  # weak, because tables refer to their index

    def join(self, table: RowTable) -> None:
        """Make the table grow with this index, and shrink if no other table needs its rows."""
        self._tables.add(table)
        table.S = lookup.resize(table.S, self.size)

    def _resize(self, size: int) -> None:
        self.size = size
        for table in self._tables:
            table.S = lookup.resize(table.S, size)

    @property
    def used(self) -> int:
        """Number of rows in use: the first ones. All others are zeros."""
        return len(self.seen)

    @property
    def features_seen(self) -> int:
        """Number of distinct rows ever met: keys that share a row count once."""
        return int(np.count_nonzero(self.seen))

    @property
    def met(self) -> NDArray[np.bool_]:
        """Which of the rows in use were met (used,)."""
        return self.seen > 0

    @property
    def nbytes(self) -> int:
        """Bytes of keys, slots and marks."""
        return sum(own.nbytes for own in vars(self).values() if isinstance(own, np.ndarray))

    def features(self, most: int | None = None) -> U64:
        """Key of each row in use, or of the first `most`."""
        return np.arange(self.used if most is None else min(most, self.used), dtype=np.uint64)

    def extend(self, keys: U64) -> bool:
        """Grow until every key has a row; False if all had one."""
        return False

    def make_room(self, needed: int) -> None:
        """Free idle rows, then make room for `needed` more."""
        raise AssertionError("every example fits an index of this kind")

    def tensors(self) -> State:
        """Everything that `restore` needs."""
        return {"seen": self.seen}

    def check(self, tensors: Tensors, batch: int) -> int:
        """The number of rows of a table; StateError for a state impossible with batches of `batch`."""
        return len(check_tensor(tensors, "seen", self.seen.shape, np.uint8))

    def restore(self, tensors: State) -> None:
        """Restore the index from `tensors`."""
        self.seen = tensors["seen"].copy()


class GrowingIndex(_Index):
    """Open addressing on 64-bit keys; memory is proportional to the live weights (the default).

    Rows are created in order of first occurrence, so frequent keys are close together. Before a large table
    grows, its idle rows are freed; the new size is 1.5 times what is left, at a load of at most one half.
    Small tables just double.
    """

    NAME: ClassVar[str] = "growing"
    used = 1
    """Number of rows in use, including the null row, which comes first and is empty"""
    slots: U32
    known: U64
    """keys by row: with `slots`, what `lookup.find_or_add` finds rows in"""

    def __init__(self, tensors: State | None = None) -> None:
        super().__init__()
        self.seen = np.zeros(0, np.uint8)  # keys are counted when their rows are created
        self.restore(tensors or {"keys": np.zeros(1, np.uint64), "counts": np.array([0, 0, FIRST_SIZE])})

    def __reduce__(self) -> tuple[type[GrowingIndex], tuple[State]]:
        """Copies and pickles have no tables."""
        return GrowingIndex, (self.tensors(),)

    @property
    def features_seen(self) -> int:
        """Number of distinct keys met: exact until a row is freed, then the most that were in use at once."""
        return max(self._most, self.used - 1)

    @property
    def met(self) -> NDArray[np.bool_]:
        """Which of the rows in use were met (used,): all but the null row."""
        return np.arange(self.used) > 0

    def features(self, most: int | None = None) -> U64:
        """Key of each row in use, or of the first `most`; 0 for the null row."""
        return self.known[: self.used if most is None else min(most, self.used)]

    def resolve(self, keys: U64, indptr: I64, values: F32, lo: int, hi: int, rows: U32) -> Resolved:
        """Rows of as many of the examples lo..hi-1 as fit; new keys are added."""
        tables = self.slots, self.known, self.used, self.size
        hi, self.used = lookup.find_or_add(*tables, keys, indptr, lo, hi, rows)
        return Resolved(hi, indptr, rows, values)

    def make_room(self, needed: int) -> None:
        """Free rows that are idle in every table, then make room for `needed`; MemoryError beyond 2^32."""
        before = self.used
        if before + needed > ALWAYS_KEPT:
            self._most = self.features_seen
            idle = np.ones(before, np.bool_)
            for table in self._tables:
                idle &= table.idle(before)
            idle[0] = False  # the null row
            self.used = lookup.close_up(words_of(self.known), idle)
            self.freed += before - self.used
            for table in self._tables:
                lookup.close_up(words_of(table.S), idle)
                if self.used < before:
                    table.moved(self.used)
        kept = self.used
        size = max(min(2 * kept, ALWAYS_KEPT), kept + kept // 2, kept + needed)
        if size > _MOST_ROWS:
            raise MemoryError("more than 2^32 live features")
        if size == self.size:
            self.slots[:] = 0
        else:
            self.slots = np.empty(0, np.uint32)  # free it before allocating the new arrays
            self._resize(size)
            self.known = lookup.resize(self.known, size)
            self.slots = lookup.empty_index(size)
        lookup.reindex(self.slots, self.known, kept)

    def find(self, keys: U64, indptr: I64, values: F32) -> Resolved:
        """Rows to read from; adds nothing."""
        rows = np.empty(keys.size, np.uint32)
        lookup.find(self.slots, self.known, keys, rows)
        return Resolved(indptr.size - 1, indptr, rows, values)

    def enter(self, keys: U64) -> U64:
        """Replace all keys by these, which must be ascending; return their rows."""
        known = np.concatenate([np.zeros(1, np.uint64), keys])
        self.restore({"keys": known, "counts": np.array([len(keys), 0, len(known)])})
        return np.arange(1, len(known), dtype=np.uint64)

    def tensors(self) -> State:
        """Everything that `restore` needs."""
        counts = np.array([self.features_seen, self.freed, self.size], np.int64)
        return {"keys": self.features(), "counts": counts}

    def check(self, tensors: Tensors, batch: int) -> int:
        """The number of rows of a table; StateError for a state impossible with batches of `batch`."""
        known = check_tensor(tensors, "keys", (None,), np.uint64)
        seen, freed, size = (int(v) for v in check_tensor(tensors, "counts", (3,), np.int64))
        count = len(known)
        require(
            0 <= seen - count + 1 <= freed,
            "counts",
            "features seen must be those in use and at most those whose rows were freed",
        )
        most = min(max(FIRST_SIZE, ALWAYS_KEPT, (1 + batch) * count), _MOST_ROWS)
        require(1 <= count <= size <= most, "counts", f"room for {size} rows is not what {count} rows take")
        distinct = ascending(np.sort(known[1:]))  # np.unique is 100 times slower
        require(distinct and known[0] == 0, "keys", "every key needs one row, and row 0 has no key")
        return count

    def restore(self, tensors: State) -> None:
        """Restore the index from `tensors`."""
        self._most, self.freed, self.size = (int(v) for v in tensors["counts"])
        self.used = len(tensors["keys"])
        self.known = lookup.resize(tensors["keys"], self.size)
        self.slots = lookup.empty_index(self.size)
        if self.used > 1:
            lookup.reindex(self.slots, self.known, self.used)


class DirectIndex(_Index):
    """The key is the row: for small, dense ids. Grows to the largest id met. An empty null row comes last."""

    NAME: ClassVar[str] = "direct"
    LARGEST: ClassVar[int] = 1 << 31

    def __init__(self) -> None:
        super().__init__()
        self.restore({"seen": np.zeros(FIRST_SIZE - 1, np.uint8)})

    def resolve(self, keys: U64, indptr: I64, values: F32, lo: int, hi: int, rows: U32) -> Resolved:
        """Keys are rows; the learning loop reports those beyond the table."""
        return Resolved(hi, indptr, keys, values)

    def extend(self, keys: U64) -> bool:
        """Grow until every key has a row; False if all had one. OverflowError for ids beyond `LARGEST`."""
        largest = int(keys.max(initial=0))
        if largest < self.used:
            return False
        if largest >= self.LARGEST:
            raise OverflowError(f"id {largest} is too large for the direct store; use the growing store")
        self._resize(1 << (largest + 1).bit_length())  # the same, however many keys are given at once
        self.seen = lookup.resize(self.seen, self.size - 1)
        return True

    def find(self, keys: U64, indptr: I64, values: F32) -> Resolved:
        """Rows to read from; the null row for ids beyond the table."""
        rows = np.empty(keys.size, np.uint32)
        np.minimum(keys, np.uint64(self.used), out=rows, casting="unsafe")
        return Resolved(indptr.size - 1, indptr, rows, values)

    def enter(self, keys: U64) -> U64:
        """Make room for these keys, which must be ascending, and no larger ones; return their rows."""
        largest = int(keys.max(initial=0))
        if largest >= self.LARGEST:
            raise StateError(f"feature id {largest} is too large for the direct store")
        self.seen = np.zeros(largest + 1, np.uint8)  # no copy: pages that no key touches take no memory
        self.size = self.used + 1
        self.seen[keys] = 1
        return keys

    def check(self, tensors: Tensors, batch: int) -> int:
        """The number of rows of a table; StateError for an impossible state."""
        rows = len(check_tensor(tensors, "seen", (None,), np.uint8))
        require(1 <= rows < 2 * self.LARGEST, "seen", "there must be at least one row")
        return rows

    def restore(self, tensors: State) -> None:
        """Restore the index from `tensors`."""
        super().restore(tensors)
        self.size = self.used + 1


class HashedIndex(_Index):
    """2^bits rows, fixed; keys that collide share a row, whose number is reported in place of the key.

    An example x becomes phi(x)_r = sum of x_j over the keys j of row r. With `signed` each x_j is
    multiplied by a sign s_j = +-1, drawn by the hash like the row: then E[<phi(x), phi(z)>] = <x, z>
    over the seeds, with variance sum_{i != j} (x_i^2 z_j^2 + x_i z_i x_j z_j) / 2^bits; without signs, the
    mean is biased by sum_{i != j} x_i z_j / 2^bits. The weight of a row applies to s_j x_j.

    Reference: Weinberger et al. (ICML 2009), lemma 2; Daume, A Course in Machine Learning (2012),
    equations 12.10 to 12.14, for the sums without signs.
    """

    NAME: ClassVar[str] = "hashed"
    SIGNED: ClassVar[str] = "signed"

    def __init__(self, bits: int = 20, seed: int = 0, signed: bool = False) -> None:
        super().__init__()
        self.bits, self.seed, self.signed = bits, seed, signed
        self.size = 1 << bits
        self.seen = np.zeros(self.size, np.uint8)
        self._last = np.zeros(self.size, np.int64)

    def resolve(self, keys: U64, indptr: I64, values: F32, lo: int, hi: int, rows: U32) -> Resolved:
        """Rows of the examples lo..hi-1."""
        merged, ends = np.empty(keys.size, np.float32), np.empty(indptr.size, np.int64)
        shift, seed = np.uint64(64 - self.bits), lookup.mix(np.array([self.seed], np.uint64))[0]
        found = (self._last, rows, ends, merged)
        lookup.hash_and_merge(shift, seed, self.signed, keys, indptr, values, lo, hi, *found)
        return Resolved(hi, ends, rows, merged)

    def find(self, keys: U64, indptr: I64, values: F32) -> Resolved:
        """Rows to read from."""
        return self.resolve(keys, indptr, values, 0, indptr.size - 1, np.empty(keys.size, np.uint32))

    def enter(self, keys: U64) -> U64:
        """Check that `keys` are row numbers and return them."""
        if len(keys) and int(keys.max()) >= self.size:
            raise StateError(f"{keys.max()} is not a row of the store {self.NAME}:{self.bits}")
        return keys


Index = GrowingIndex | DirectIndex | HashedIndex


def words_of(table: Array) -> U32:
    """A view of a table as rows of 32-bit words."""
    return np.asarray(table).reshape(len(table), math.prod(table.shape[1:])).view(np.uint32)


def make_index(spec: str, seed: int = 0) -> Index:
    """The index for a SPEC. By default, a hashed one has 20 bits and this `seed`. ValueError."""
    kind, options = _read(spec, seed)
    return kind(*options)


def store_spec(spec: str, seed: int = 0, *, full: bool = True) -> str:
    """Complete a SPEC with its defaults; ValueError for an unknown store.

    With `full=False`, omit the seed if it equals `seed`.

    >>> store_spec("hashed:9,signed", 5), store_spec("hashed:9,5", 5, full=False)
    ('hashed:9,5,signed', 'hashed:9')
    """
    kind, options = _read(spec, seed)
    if not options:
        return kind.NAME
    bits, own, signed = options
    numbers = f"{bits},{own}" if full or own != seed else f"{bits}"
    return f"{kind.NAME}:{numbers}" + (f",{HashedIndex.SIGNED}" if signed else "")


def _read(spec: str, seed: int) -> tuple[type[Index], tuple[int, int, bool] | tuple[()]]:
    name, _, rest = spec.partition(":")
    for kind in (GrowingIndex, DirectIndex):
        if name == kind.NAME and not rest:
            return kind, ()
    numbers = rest.split(",") if rest else []
    signed = numbers[-1:] == [HashedIndex.SIGNED]
    numbers = numbers[:-1] if signed else numbers
    whole = len(numbers) <= 2 and all(re.fullmatch("[0-9]{1,20}", n) for n in numbers)
    if name != HashedIndex.NAME or not whole:
        known = f"growing, direct, hashed:BITS, hashed:BITS,{HashedIndex.SIGNED}"
        raise ValueError(f"no store is called {spec!r}; known: {known}")
    bits, own = [*map(int, numbers or ["20"]), seed][:2]
    if not 1 <= bits <= 31 or own >= 1 << 64:
        raise ValueError(f"store {spec}: BITS must lie in 1..31, and a seed in 0..2^64 - 1")
    return HashedIndex, (bits, own, signed)
