"""Names of features: the strings that keys were hashed from, found by reading the data again.

Storing a name for every feature seen would use memory for features that do not survive, most of a sparse
model's, and a lookup for each feature. Instead, after training, the live keys go into a table, and the same
parsers, compiled once more with code that reports names, read until all are named. This reads part of the
data once more, works for old models too, and costs nothing during learning. A stream that can be read only
once cannot be named; the original plan (store a name, and drop it with its weight) could, at that price.
"""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk
from thresher.data.columns import NUMERIC
from thresher.data.features.murmur import hash_columns
from thresher.data.formats.listing import LINES
from thresher.data.layout import AnyLayout, has_columns
from thresher.data.source import Source
from thresher.data.text.words import byte
from thresher.engine.compile.jit import scalar
from thresher.engine.lookup import empty_index, home, place, reindex

KEY, FORM, A, B, C, FIELDS = 0, 1, 2, 3, 4, 5
"""Columns of an entry, a row of uint64: the key, the form of its name, and what that is made of"""
TEXT, QUOTED, PAIR, TRIPLE, WHOLE, WITHIN = range(6)
"""Forms of names: a text, with quotes round it or not (its space, where it begins in `letters`, its size); a
product of two or three features (their keys); a whole number (its space, its magnitude, whether it is
negative); a text in a namespace whose name is before it in `letters` (the size of that name, where it begins,
the size of both)."""
ENTRIES, LETTERS, KEYS, LEFT_OUT, COUNTERS = 0, 1, 2, 3, 4


class Naming(NamedTuple):
    """Keys whose names are wanted, and the names found since `Namer.take` was last called."""

    slots: NDArray[np.uint32]
    keys: NDArray[np.uint64]
    """an index as in `engine.lookup`, and the keys by row; row 0 stands for all others"""
    wanted: NDArray[np.bool_]
    """which rows need a name"""
    entries: NDArray[np.uint64]
    """(room, FIELDS)"""
    letters: NDArray[np.uint8]
    """the names, concatenated"""
    state: NDArray[np.int64]
    """(COUNTERS,) numbers of entries, letters and keys in use, and of names that did not fit"""
    mask: np.uint64
    """mask of the bits of a key that are kept"""
    on: bool = True
    """whether any name is wanted"""


@functools.cache
def no_names() -> Naming:
    """An empty table, for readers that make products but collect no names."""
    return Namer(np.zeros(0, np.uint64), AnyLayout()).table._replace(on=False)


@scalar
def _want(naming, key):
    """Add a key whose name is wanted, if there is room."""
    slot, row = place(naming.slots, naming.keys, key, home(naming.slots, key)), naming.state[KEYS] + 1
    if naming.slots[slot] == 0 and row < naming.keys.size:
        naming.slots[slot], naming.keys[row], naming.wanted[row] = row, key, True
        naming.state[KEYS] = row


@scalar
def _row_to_name(naming, key, size):
    """The row of a key that needs a name, if there is room for one of `size` letters; otherwise 0."""
    kept = key & naming.mask
    row = naming.slots[place(naming.slots, naming.keys, kept, home(naming.slots, kept))]
    if not naming.wanted[row]:
        return np.uint32(0)
    full = naming.state[ENTRIES] == len(naming.entries) or naming.state[LETTERS] + size > naming.letters.size
    naming.state[LEFT_OUT] += full
    return np.uint32(0) if full else row


@scalar
def _write(naming, text, at, size):
    for k in range(size):
        naming.letters[naming.state[LETTERS] + k] = byte(text, at + k)
    naming.state[LETTERS] += size


@scalar
def _note(naming, row, form, a, b, c):
    entry = naming.entries[naming.state[ENTRIES]]
    entry[KEY], entry[FORM], entry[A], entry[B], entry[C] = naming.keys[row], form, a, b, c
    naming.state[ENTRIES] += 1
    naming.wanted[row] = False


@scalar
def offer(naming, key, text, at, size, space, form):
    """Enter ``text[at : at + size]``, in the namespace or column number `space`, as the name of `key`.

    The `form` is `TEXT` or `QUOTED`.
    """
    if naming is not None and naming.on:
        row, begin = _row_to_name(naming, key, size), naming.state[LETTERS]
        if row > 0:
            _write(naming, text, at, size)
            _note(naming, row, form, np.uint64(space), np.uint64(begin), np.uint64(size))


@scalar
def offer_whole(naming, key, number, space):
    """Enter a whole number, in the column number `space`, as the name of `key`."""
    if naming is not None and naming.on:
        row = _row_to_name(naming, key, 0)
        if row > 0:
            _note(naming, row, WHOLE, np.uint64(space), np.uint64(abs(number)), np.uint64(number < 0))


@scalar
def offer_with(naming, key, text, at, size, before, before_size):
    """Enter a name in the namespace ``text[before : before + before_size]`` as the name of `key`."""
    if naming is not None and naming.on:
        row, begin = _row_to_name(naming, key, before_size + size), naming.state[LETTERS]
        if row > 0:
            _write(naming, text, before, before_size)
            _write(naming, text, at, size)
            whole = np.uint64(before_size + size)
            _note(naming, row, WITHIN, np.uint64(before_size), np.uint64(begin), whole)


@scalar
def offer_product(naming, key, a, b, c, factors):
    """Enter `key` as the product of two or three features, whose names are then wanted too."""
    if naming is not None and naming.on:
        row = _row_to_name(naming, key, 0)
        if row > 0:
            _note(naming, row, factors, a, b, c)
            _want(naming, a)
            _want(naming, b)
            _want(naming, c)


BETWEEN = " × "
"""Separates the factors in the name of a product."""
NAME_BYTES = 1 << 24
"""Room for the names found in one reading."""
_SHOWN = 4
"""Names in a `repr`"""
_ROOM = 4
"""Rows of the table per key: a product needs the names of up to three more keys."""


@dataclass(eq=False, repr=False)
class Names(Mapping[int, str]):
    """A mapping from feature keys, ascending, to names. Names are stored as bytes, mostly UTF-8."""

    features: NDArray[np.uint64]
    """(n,) keys, ascending"""
    ends: NDArray[np.int64]
    """(n,) where each name ends in `letters`"""
    letters: NDArray[np.uint8]
    """all names, concatenated"""

    @classmethod
    def of(cls, given: Mapping[int, bytes]) -> Names:
        """From a dictionary."""
        keys = np.array(sorted(given), np.uint64)
        names = [given[key] for key in keys.tolist()]
        ends = np.cumsum([len(name) for name in names], dtype=np.int64)
        return cls(keys, ends, np.frombuffer(b"".join(names), np.uint8))

    def __len__(self) -> int:
        return len(self.features)

    def __iter__(self) -> Iterator[int]:
        return iter(self.features.tolist())

    def __repr__(self) -> str:
        """The first few."""
        few = ", ".join(f"{key}: {self[key]!r}" for key in self.features[:_SHOWN].tolist())
        more = f", and {len(self) - _SHOWN:,} more" if len(self) > _SHOWN else ""
        return f"<{type(self).__name__} of {len(self):,} features: {{{few}{more}}}>"

    def __getitem__(self, key: int) -> str:
        """The name of a feature; raises KeyError if it has none."""
        if not 0 <= key < 1 << 64:
            raise KeyError(key)
        place = int(np.searchsorted(self.features, np.uint64(key)))
        if place == len(self.features) or int(self.features[place]) != key:
            raise KeyError(key)
        first = int(self.ends[place - 1]) if place else 0
        return self.letters[first : self.ends[place]].tobytes().decode("utf-8", "backslashreplace")

    def stored_bytes(self) -> dict[int, bytes]:
        """The names as they are stored."""
        letters, places = self.letters.tobytes(), pairwise([0, *self.ends.tolist()])
        return {key: letters[begin:end] for key, (begin, end) in zip(self, places, strict=True)}

    def union(self, other: Names) -> Names:
        """The names of both mappings, those of `other` for features in both."""
        return Names.of(self.stored_bytes() | other.stored_bytes())

    def distinct(self, keys: NDArray[np.uint64]) -> Names:
        """The names; the key is added to one that several have, or that is one of the `keys` without a name.

        So the names depend on the features alone, not on the order in which they were found.
        """
        written = self.stored_bytes().items()
        plain = {k: name.removesuffix(b" [%d]" % k) if b"]" in name else name for k, name in written}
        shown = {k: name.decode("utf-8", "backslashreplace") for k, name in plain.items()}
        taken = Counter(shown.values()) + Counter(map(str, np.setdiff1d(keys, self.features).tolist()))
        twice = {k for k, text in shown.items() if taken[text] > 1}
        return Names.of({k: name + b" [%d]" % k if k in twice else name for k, name in plain.items()})

    def only(self, keys: NDArray[np.uint64]) -> Names:
        """The names of the features in `keys`."""
        kept = np.isin(self.features, keys)
        sizes = np.diff(self.ends, prepend=0)
        return Names(self.features[kept], np.cumsum(sizes[kept]), self.letters[np.repeat(kept, sizes)])


class Namer:
    """Collects names of keys. Compiled readers enter names in `table`, and then call `take`."""

    def __init__(self, keys: NDArray[np.uint64], layout: AnyLayout) -> None:
        """`keys` are distinct; the `layout` says which bits of a key are kept."""
        room = _ROOM * len(keys) + 1
        self.table = Naming(
            empty_index(room),
            np.zeros(room, np.uint64),
            np.zeros(room, np.bool_),
            np.zeros((room, FIELDS), np.uint64),
            np.zeros(NAME_BYTES, np.uint8),
            np.zeros(COUNTERS, np.int64),
            np.uint64(layout.mask),
        )
        self._wanted = keys
        self._ids = layout.format in LINES and not LINES[layout.format].named
        """whether to call a factor without a name by its key"""
        self._names: dict[int, bytes] = {}
        self.products: dict[int, tuple[int, ...]] = {}
        """the factors of each key that is a product"""
        count = len(keys) + 1  # row 0 stands for all others
        self.table.keys[1:count], self.table.wanted[1:count] = keys, True
        self.table.state[KEYS] = len(keys)
        reindex(self.table.slots, self.table.keys, count)

    @property
    def left(self) -> int:
        """Number of keys, including those of factors, without a name or factors so far."""
        return int(self.table.state[KEYS]) - len(self._names) - len(self.products)

    def left_out(self) -> bool:
        """Whether the table had no room for some names since the last call."""
        count = int(self.table.state[LEFT_OUT])
        self.table.state[LEFT_OUT] = 0
        return count > 0

    def take(self, spaces: Sequence[str]) -> None:
        """Move new entries out of the table; `spaces` are the columns of the file being read."""
        state, letters = self.table.state, self.table.letters.data
        for key, form, a, b, c in self.table.entries[: state[ENTRIES]].tolist():
            if form in (PAIR, TRIPLE):
                self.products[key] = (a, b, c)[:form]
                continue
            text = b"-" * c + b"%d" % b if form == WHOLE else bytes(letters[b : b + c])
            text = b'"%b"' % text if form == QUOTED else text
            space, name = text[:a], text[a:]
            if form != WITHIN:
                space, name = spaces[a].encode("utf-8", "surrogateescape"), text
            self._names[key] = b"=".join(filter(None, (space, name)))
        state[[ENTRIES, LETTERS]] = 0

    def add(self, names: Mapping[int, bytes]) -> None:
        """Add the names of those keys that are wanted."""
        for key in np.intersect1d(self._wanted, np.array(list(names), np.uint64)).tolist():
            self._names.setdefault(key, names[key])

    def names(self, keys: NDArray[np.uint64]) -> Names:
        """The names found for `keys`; the name of a product consists of the names of its factors."""
        found = dict[int, bytes]()
        for key in keys.tolist():
            factors = self.products.get(key, ())
            ids = (str(one).encode() if self._ids else None for one in factors)
            names = [*map(self._names.get, factors, ids)] or [self._names.get(key)]
            if None not in names:
                found[key] = BETWEEN.encode().join(filter(None, names))
        return Names.of(found)


def numeric_keys(layout: AnyLayout | None) -> dict[int, str]:
    """The keys of a table's numeric columns, with the names of the columns."""
    if not has_columns(layout):
        return {}
    names = tuple(name for name, kind in layout.kind_of.items() if kind == NUMERIC)
    return dict(zip(_keys_of(names, layout.seed, layout.mask), names, strict=True))


@functools.lru_cache(16)
def _keys_of(columns: tuple[str, ...], seed: int, mask: int) -> list[int]:
    keys: list[int] = (hash_columns(columns, seed) & np.uint64(mask)).tolist()
    return keys


def find_names(
    source: Source, keys: NDArray[np.uint64], look: Callable[[Chunk, int], object] | None = None
) -> Names:
    """Names of the features `keys`, found in the data of a source that is `nameable`.

    The source is read until all keys have a name, or once as a whole to `look` at its rows. It is read again
    if it had products whose factors came earlier, or if the table had no room for all names at once.
    """
    source.namer = namer = Namer(keys, source.layout or AnyLayout())
    again, rows = True, 0
    while (namer.left or look is not None) and again:
        known = len(namer.products)
        with closing(source.chunks()) as chunks:
            for chunk in chunks:
                if look is not None:
                    look(chunk, rows)
                    rows += len(chunk)
                elif not namer.left:
                    break
        look = None
        again = (len(namer.products) > known or namer.left_out()) and source.rereadable
    return namer.names(keys)
