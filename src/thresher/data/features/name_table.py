"""Collecting the names of selected features while rows are read."""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.text.words import byte
from thresher.engine.compile.jit import kernel, scalar
from thresher.engine.lookup import place

KEY, FACTORS, A, B, C, FIELDS = 0, 1, 2, 3, 4, 5
"""Columns of an entry, a row of uint64. After the key: for a name 0, its space, where it begins in `letters`
and its size; for a product the number of factors and their keys."""
ENTRIES, LETTERS, KEYS, LEFT_OUT, COUNTERS = 0, 1, 2, 3, 4
NOWHERE = 2**64 - 1
"""The space of a name that includes its namespace."""
_NOWHERE, _BETWEEN, _MINUS, _QUOTE = np.uint64(NOWHERE), ord("="), ord("-"), ord('"')


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
    none = np.zeros(1, np.uint64)
    letters, counters = np.zeros(1, np.uint8), np.zeros(COUNTERS, np.int64)
    tables = np.zeros(1, np.uint32), none, np.zeros(1, np.bool_), none.reshape(1, 1)
    return Naming(*tables, letters, counters, np.uint64(0), on=False)


@scalar
def names_any(naming):
    """Whether any name is wanted."""
    return naming is not None and naming.on


@scalar
def _row(naming, key):
    return naming.slots[place(naming.slots, naming.keys, key)]


@scalar
def _want(naming, key):
    """Add a key whose name is wanted, if there is room."""
    slot, row = place(naming.slots, naming.keys, key), naming.state[KEYS] + 1
    if naming.slots[slot] == 0 and row < naming.keys.size:
        naming.slots[slot], naming.keys[row], naming.wanted[row] = row, key, True
        naming.state[KEYS] = row


@kernel
def want_all(naming, keys):
    """Add `keys` as keys whose names are wanted."""
    for k in range(keys.size):
        _want(naming, keys[k])


@scalar
def _note(naming, row, factors, a, b, c):
    entry = naming.entries[naming.state[ENTRIES]]
    entry[KEY], entry[FACTORS], entry[A], entry[B], entry[C] = naming.keys[row], factors, a, b, c
    naming.state[ENTRIES] += 1
    naming.wanted[row] = False


@scalar
def _wanted(naming, row, size):
    """Whether the key of a row needs a name, and there is room for one of `size` letters."""
    if not naming.wanted[row]:
        return False
    full = naming.state[ENTRIES] == len(naming.entries) or naming.state[LETTERS] + size > naming.letters.size
    naming.state[LEFT_OUT] += full
    return not full


@scalar
def _write(naming, text, at, size):
    for k in range(size):
        naming.letters[naming.state[LETTERS] + k] = byte(text, at + k)
    naming.state[LETTERS] += size


@scalar
def offer(naming, key, text, at, size, space):
    """Enter ``text[at : at + size]``, in the namespace or column number `space`, as the name of `key`."""
    if naming is not None and naming.on:
        row, used = _row(naming, key & naming.mask), naming.state[LETTERS]
        if _wanted(naming, row, size):
            _write(naming, text, at, size)
            _note(naming, row, 0, np.uint64(space), np.uint64(used), np.uint64(size))


@scalar
def offer_quoted(naming, key, text, at, size, space):
    """`offer` with quotes round the name."""
    if naming is not None and naming.on:
        row, used = _row(naming, key & naming.mask), naming.state[LETTERS]
        if _wanted(naming, row, size + 2):
            naming.letters[used] = naming.letters[used + size + 1] = _QUOTE
            naming.state[LETTERS] += 1
            _write(naming, text, at, size)
            naming.state[LETTERS] += 1
            _note(naming, row, 0, np.uint64(space), np.uint64(used), np.uint64(size + 2))


@scalar
def offer_whole(naming, key, number, space):
    """Enter a whole number of at most 7 digits, in the column number `space`, as the name of `key`."""
    if naming is not None and naming.on:
        row, used, size = _row(naming, key & naming.mask), naming.state[LETTERS], np.int64(1)
        rest = abs(number)
        while rest >= 10:
            size, rest = size + 1, rest // 10
        size += number < 0
        if _wanted(naming, row, size):
            rest = abs(number)
            for k in range(size - 1, -1, -1):
                naming.letters[used + k] = 48 + rest % 10
                rest //= 10
            if number < 0:
                naming.letters[used] = _MINUS
            naming.state[LETTERS] += size
            _note(naming, row, 0, np.uint64(space), np.uint64(used), np.uint64(size))


@scalar
def offer_with(naming, key, text, at, size, before, before_size):
    """Enter a name in the namespace ``text[before : before + before_size]`` as the name of `key`."""
    if naming is not None and naming.on:
        row, used = _row(naming, key), naming.state[LETTERS]
        whole = size + before_size + (before_size > 0)
        if _wanted(naming, row, whole):
            _write(naming, text, before, before_size)
            if before_size > 0:
                naming.letters[naming.state[LETTERS]] = _BETWEEN
                naming.state[LETTERS] += 1
            _write(naming, text, at, size)
            _note(naming, row, 0, _NOWHERE, np.uint64(used), np.uint64(whole))


@scalar
def offer_product(naming, key, a, b, c, factors):
    """Enter `key` as the product of two or three features, whose names are then wanted too."""
    if naming is not None and naming.on:
        row = _row(naming, key)
        if _wanted(naming, row, 0):
            _note(naming, row, factors, a, b, c)
            _want(naming, a)
            _want(naming, b)
            _want(naming, c)
