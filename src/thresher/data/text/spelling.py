"""One spelling for each value of a categorical column, whatever the format and type that hold it.

Booleans are ``true`` and ``false``. Numbers are decimal without needless zeros, as JavaScript writes them:
``1``, ``0.5``, ``1e-7``. Everything else, dates among it, stays as it is written.
"""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import numpy as np

from thresher.data.text.numbers import POWERS, ZERO
from thresher.data.text.words import address, byte, store_byte
from thresher.engine.compile.jit import compiled_apart, kernel, scalar

ROOM = 128
"""Bytes of scratch space for a spelling"""
GROWTH = 20
"""Maximum number of bytes by which a spelling is longer than what was written"""
_DIGITS, _MOST = 64, 40
"""Where digits are kept in the scratch space, and how many at most; longer numbers stay as they are."""
_WHOLE, _SMALL = 21, -6
"""Numbers from 10**21 on, and below 10**-6, have an exponent."""


@scalar
def _digits(cell, at, end):
    """Where the digits at `at` end."""
    while at < end and 48 <= byte(cell, at) <= 57:
        at += 1
    return at


_TRUE, _FALSE, _NAN, _INF, _MINUS_INF = (
    np.uint64(int.from_bytes(word, "little")) for word in (b"true", b"false", b"nan", b"inf", b"-inf")
)


@scalar
def _lower(cell, at, size):
    """Up to eight bytes in lower case, as a uint64."""
    word = np.uint64(0)
    for k in range(size):
        word |= np.uint64(byte(cell, at + k) | 32) << np.uint64(8 * k)
    return word


@compiled_apart
def truth(cell, at, end):
    """1 for ``true``, 0 for ``false``, in any case and stripped of blanks; -1 for anything else."""
    while at < end and byte(cell, at) == 32:
        at += 1
    while at < end and byte(cell, end - 1) == 32:
        end -= 1
    word = _lower(cell, at, end - at) if 4 <= end - at <= 5 else np.uint64(0)
    return 1 if word == _TRUE else 0 if word == _FALSE else -1


@scalar
def is_finite(cell, at, end):
    """Whether what was spelled is not NaN or infinity."""
    word = _lower(cell, at, end - at) if 3 <= end - at <= 4 else np.uint64(0)
    return word not in (_NAN, _INF, _MINUS_INF)


@scalar
def _round_digits(room, count, exponent):
    """Replace the digits of a large whole number by all those of the nearest float64.

    A float64 is written with the fewest digits that tell it from others, so 2**60 as 1.152921504606847e18.
    """
    mantissa = np.uint64(0)
    for k in range(count):
        mantissa = mantissa * np.uint64(10) + np.uint64(byte(room, _DIGITS + k) - 48)
    size = np.float64(mantissa) * POWERS[ZERO + exponent]
    if size < 9007199254740992.0 or size > 1.84e19:
        return count, exponent
    for _ in range(exponent):
        mantissa *= np.uint64(10)
    whole, count = np.uint64(np.float64(mantissa)), np.int64(0)
    rest = whole
    while rest > 0:
        count, rest = count + 1, rest // np.uint64(10)
    for k in range(count - 1, -1, -1):
        store_byte(room, _DIGITS + k, np.int64(whole % np.uint64(10)) + 48)
        whole //= np.uint64(10)
    return count, np.int64(0)


@scalar
def _write(room, at, count, before):
    """Write the digits, `before` of them before the point; returns the position after the number."""
    point = before if _SMALL < before <= _WHOLE else np.int64(1)
    for p in range(min(point - 1, 0), point):
        store_byte(room, at, byte(room, _DIGITS + p) if 0 <= p < count else 48)
        at += 1
    if count > point:
        store_byte(room, at, 46)
        for p in range(point, count):
            store_byte(room, at + 1 + p - point, byte(room, _DIGITS + p) if p >= 0 else 48)
        at += 1 + count - point
    if point == before:
        return at
    power, scale = before - 1, np.int64(1)
    store_byte(room, at, 101)
    store_byte(room, at + 1, 45)
    at += 2 if power < 0 else 1
    power = abs(power)
    while scale * 10 <= power:
        scale *= 10
    while scale > 0:
        store_byte(room, at, 48 + power // scale % 10)
        at, scale = at + 1, scale // 10
    return at


@scalar
def _number(cell, at, end, room):
    """Write the number in ``cell[at:end]`` to `room`: its size, 0 if it is none."""
    negative = byte(cell, at) == 45
    at += negative or byte(cell, at) == 43
    stop = point = _digits(cell, at, end)
    if point < end and byte(cell, point) == 46:
        stop = _digits(cell, point + 1, end)
    count, fraction, exponent, ends = np.int64(0), max(stop - point - 1, 0), np.int64(0), stop == end
    for k in range(at, stop):
        code = byte(cell, k)
        if code != 46 and (count > 0 or code != 48) and count <= _MOST:
            store_byte(room, _DIGITS + count, code)
            count += 1
    if not ends and byte(cell, stop) | 32 == 101:
        first = stop + 1
        minus = first < end and byte(cell, first) == 45
        first += minus or (first < end and byte(cell, first) == 43)
        last = _digits(cell, first, end)
        for k in range(first, min(last, first + 6)):
            exponent = exponent * 10 + byte(cell, k) - 48
        exponent, ends = -exponent if minus else exponent, last == end and first < last <= first + 6
    if (point == at and fraction == 0) or not ends or count > _MOST:
        return np.int64(0)
    exponent -= fraction
    while count > 0 and byte(room, _DIGITS + count - 1) == 48:
        count, exponent = count - 1, exponent + 1
    if count == 0:
        return _write(room, np.int64(0), count, np.int64(1))
    if point < end and count < 20 and 0 <= exponent < 20:
        count, exponent = _round_digits(room, count, exponent)
    store_byte(room, 0, 45)
    return _write(room, np.int64(negative), count, count + exponent)


@compiled_apart
def spell(cell, at, end, room):
    """The spelling of the value ``cell[at:end]``: ``(address of its text, begin and end there)``.

    `room` is the address of `ROOM` bytes.
    """
    given, after, size = at, end, np.int64(0)
    while at < end and byte(cell, at) == 32:
        at += 1
    while at < end and byte(cell, end - 1) == 32:
        end -= 1
    if at == end:
        return cell, given, after
    first, stop = byte(cell, at), _digits(cell, at, end)
    if stop == end and end - at <= _WHOLE and (first != 48 or end - at == 1):
        return cell, at, end
    if 48 <= first <= 57 or (first in (43, 45, 46) and end - at > 1):
        size = _number(cell, at, end, room)
    if size == 0 and 3 <= end - at <= 5:
        if _lower(cell, at, end - at) in (_TRUE, _FALSE, _NAN, _INF, _MINUS_INF):
            size = end - at
            for k in range(size):
                store_byte(room, k, byte(cell, at + k) | (0 if byte(cell, at + k) == 45 else 32))
    return (room, np.int64(0), size) if size > 0 else (cell, given, after)


@kernel
def spell_all(text, places, out, ends):
    """Write the spellings of the texts ``[places[k], places[k + 1])`` at address `text`, one after the other.

    Args:
        text: int64 address.
        places: int64 (texts + 1,).
        out: uint8, with room for all texts and `GROWTH` bytes more for each.
        ends: int64 (texts + 1,), gets where the spellings begin and end in `out`.
    """
    scratch, written = np.empty(ROOM, np.uint8), address(out)
    size = np.int64(0)
    for k in range(places.size - 1):
        ends[k] = size
        cell, at, end = spell(text, places[k], places[k + 1], address(scratch))
        for i in range(at, end):
            store_byte(written, size + i - at, byte(cell, i))
        size += end - at
    ends[places.size - 1] = size


def respell(text: str) -> str:
    """The spelling of one text, in Python.

    >>> [respell(text) for text in ("True", "17.0", "Ulm")]
    ['true', '17', 'Ulm']
    """
    written = text.encode("utf-8", "surrogatepass")
    cell = np.frombuffer(written + bytes(ROOM), np.uint8)
    out, ends, places = np.empty(len(cell), np.uint8), np.empty(2, np.int64), np.array([0, len(written)])
    places.setflags(write=False)
    spell_all(np.int64(cell.ctypes.data), places, out, ends)
    return out[: ends[1]].tobytes().decode("utf-8", "surrogatepass")
