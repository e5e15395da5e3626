"""Decimal numbers to float32, correctly rounded.

A number is read as ``mantissa * 10**exponent`` with up to 19 digits in a uint64. Most conversions are one
correctly rounded operation in float64 and one rounding to float32. The result is the float32 nearest to
the decimal, unless the float64 is the midpoint of two float32s: the first rounding may then have hidden on
which side the decimal was. Those cases, about one in 2**29, and longer numbers whose error interval
contains a midpoint are `HARD`: compiled code gives up, and `nearest_float32` uses exact decimals.
"""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from thresher.data.text.words import (
    WINDOW,
    bits_of,
    byte,
    load_float,
    load_word,
    lowest_bit,
    marks,
    short_number,
)
from thresher.engine.compile.jit import scalar

FINE, NOT_A_NUMBER, OUT_OF_RANGE, HARD = 0, 1, 2, 3
"""Results of reading a number."""

_LOW, _HIGH = -100, 60
POWERS = np.array([float(f"1e{k}") for k in range(_LOW, _HIGH + 1)])
"""Correctly rounded powers of ten; ``POWERS[k - _LOW]`` is 10**k. Exact for 0 <= k <= 22."""

ZERO = -_LOW
"""Index of 10**0 in `POWERS`."""
_MARGIN = 2.0**-50  # exceeds the rounding errors of mantissa, power and product together (1.5 * 2**-52)
_EXACT = np.uint64(1 << 53)
_FULL = np.uint64(10**18)  # below this, one more digit fits in a uint64
_ROOMY = np.uint64(10**11)  # below this, eight more digits fit
_FAR = np.uint64(1 << 40)  # an exponent larger than any number of digits
_TIE = np.uint64(1 << 28)
_TAIL = np.uint64((1 << 29) - 1)
_TEN = np.uint64(10)
_HALF, _LOW_HALF, _TWO_32 = np.uint64(32), np.uint64(2**32 - 1), 2.0**32
_SPLIT = 2.0**27 + 1.0
_LARGEST_EXACT = 22  # the largest k for which 10**k is a float64
_LARGEST_ID, _TENTH = np.uint64(2**64 - 1), np.uint64((2**64 - 1) // 10)
TENS = np.array([10**k for k in range(9)], np.uint64)


@scalar
def _between(mantissa, exponent):
    """The float32s nearest to the ends of an interval that contains ``mantissa * 10**exponent``."""
    number = np.float64(mantissa) * POWERS[ZERO + min(max(exponent, _LOW), _HIGH)]
    return np.float32(number * (1.0 - _MARGIN)), np.float32(number * (1.0 + _MARGIN))


@scalar
def scaled(mantissa, exponent):
    """``(float32(mantissa * 10**exponent), FINE | OUT_OF_RANGE | HARD)``."""
    number = np.float64(mantissa)
    if mantissa < _EXACT and -22 <= exponent <= 22:
        if exponent == 0:
            return np.float32(number), FINE
        if exponent < 0:
            number /= POWERS[ZERO - exponent]
        else:
            number *= POWERS[ZERO + exponent]
        return np.float32(number), HARD if bits_of(number) & _TAIL == _TIE else FINE
    below, above = _between(mantissa, exponent)
    if below != above:
        return below, HARD
    return above, FINE if np.isfinite(above) else OUT_OF_RANGE


@scalar
def decimal(mantissa, decimals):
    """`scaled` for a mantissa below 2**53 and 0 to 22 decimals: ``(float32, whether it is certain)``."""
    number = np.float64(np.int64(mantissa)) / POWERS[ZERO + decimals]
    return np.float32(number), bits_of(number) & _TAIL != _TIE


@scalar
def read_digits(text, at, mantissa):
    """Append the digits at `at` to `mantissa`: ``(end, mantissa, number of digits that did not fit)``."""
    dropped = np.int64(0)
    while True:
        others, odd = marks(text, at)
        count = lowest_bit(others | odd)
        end = at + count
        while at < end:
            if mantissa < _ROOMY:
                taken = min(end - at, 8)
                mantissa = mantissa * TENS[taken] + short_number(text, at, taken)
                at += taken
            elif mantissa < _FULL:
                mantissa = mantissa * _TEN + np.uint64(byte(text, at) - 48)
                at += 1
            else:
                dropped += end - at
                at = end
        if count < WINDOW:
            return end, mantissa, dropped


@scalar
def read_id(text, at):
    """The digits at `at` as a whole number: ``(end, number, whether it is below 2**64)``."""
    end, number, dropped = read_digits(text, at, np.uint64(0))
    if dropped == 1:  # twenty digits may still fit
        digit = np.uint64(byte(text, end - 1) - 48)
        if number < _TENTH or (number == _TENTH and digit <= _LARGEST_ID - _TENTH * _TEN):
            return end, number * _TEN + digit, True
    return end, number, dropped == 0


@scalar
def read_power(text, at):
    """Read the exponent after the letter e: ``(end, exponent, FINE | NOT_A_NUMBER)``."""
    sign = np.int64(1)
    if byte(text, at) == 45 or byte(text, at) == 43:
        sign = 44 - byte(text, at)
        at += 1
    end, size, dropped = read_digits(text, at, np.uint64(0))
    if end == at:
        return at, np.int64(0), NOT_A_NUMBER
    return end, sign * np.int64(min(size, _FAR)) if dropped == 0 else sign * np.int64(_FAR), FINE


@scalar
def _parts(text, at):
    """Read a number: ``(end, whether it is negative, mantissa, exponent, FINE | NOT_A_NUMBER)``."""
    negative = byte(text, at) == 45
    if negative or byte(text, at) == 43:
        at += 1
    end, mantissa, exponent = read_digits(text, at, np.uint64(0))
    digits = end - at
    if byte(text, end) == 46:
        at = end + 1
        end, mantissa, dropped = read_digits(text, at, mantissa)
        digits += end - at
        exponent -= end - at - dropped
    if digits == 0:
        return end, negative, mantissa, exponent, NOT_A_NUMBER
    if byte(text, end) == 101 or byte(text, end) == 69:
        end, power, status = read_power(text, end + 1)
        return end, negative, mantissa, exponent + power, status
    return end, negative, mantissa, exponent, FINE


@scalar
def read_number(text, at):
    """Read ``[+-]digits[.digits][e[+-]digits]`` at `at`.

    Returns ``(end, float32, FINE | NOT_A_NUMBER | OUT_OF_RANGE | HARD)``. `end` is the position after the
    number or, if it is not a number, of the missing digit.
    """
    end, negative, mantissa, exponent, status = _parts(text, at)
    if status != FINE:
        return end, np.float32(0.0), status
    value, status = scaled(mantissa, exponent)
    return end, -value if negative else value, status


@scalar
def _halves(number):
    """A float64 as the sum of two that have half the digits each."""
    high = _SPLIT * number
    high -= high - number
    return high, number - high


@scalar
def _product(a, b):
    """A product of two float64s and the error of its rounding (Dekker 1971)."""
    product = a * b
    (a, c), (b, d) = _halves(a), _halves(b)
    return product, ((a * b - product) + a * d + c * b) + c * d


@scalar
def _double(mantissa, exponent):
    """The float64 nearest to ``mantissa * 10**exponent``, if the exponent is from -22 to 22."""
    top, low = float(mantissa >> _HALF) * _TWO_32, float(mantissa & _LOW_HALF)
    number = top + low
    left = low - (number - top)  # number + left is the mantissa
    power = POWERS[ZERO + min(abs(exponent), _LARGEST_EXACT)]
    if exponent < 0:
        quotient = number / power
        product, error = _product(quotient, power)
        number = quotient + ((number - product) - error + left) / power
    elif exponent > 0:
        number, error = _product(number, power)
        number += error + left * power
    return number


@scalar
def read_double(text, at):
    """The number at `at` as the float64 nearest to it, if its size is from 1 to 10**22.

    Of digits after the nineteenth it ignores what they are.
    """
    _, negative, mantissa, exponent, _ = _parts(text, at)
    number = _double(mantissa, exponent)
    return -number if negative else number


@scalar
def nearest_double(mantissa, exponent):
    """``(number, certain, nearest)``: the float64 nearest to ``mantissa * 10**exponent``.

    If it is not the `nearest`, it is still `certain` that it has the same float32, or `certain` is false.
    """
    number = np.float64(mantissa) * POWERS[ZERO + min(max(exponent, _LOW), _HIGH)]
    if -_LARGEST_EXACT <= exponent <= _LARGEST_EXACT:
        number = _double(mantissa, exponent)
        if mantissa < _FULL:
            return number, True, True
    below, above = _between(mantissa, exponent)
    return number, below == above and np.isfinite(above), False


@scalar
def looked_up(at, exact):
    """The hard number at `at` in ``exact = (places, float32s, count)``: ``(float32, status)``."""
    places, numbers, count = exact
    lo, hi = np.int64(0), count
    while lo < hi:
        middle = (lo + hi) >> 1
        if np.int64(load_word(places, 8 * middle)) < at:
            lo = middle + 1
        else:
            hi = middle
    if lo < count and np.int64(load_word(places, 8 * lo)) == at:
        value = load_float(numbers, lo)
        return value, FINE if np.isfinite(value) else OUT_OF_RANGE
    return np.float32(0), HARD


NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""The syntax of a finite number."""
_MISSING = re.compile(rb"n/?a|#n/a|nan|null|nil|none|missing|unknown|undefined|[?.*-]+", re.IGNORECASE)
OVERFLOW = 2.0**128 - 2.0**103
"""Midpoint of the largest float32 and 2**128: numbers from here on round to infinity."""


def means_missing(cell: bytes) -> bool:
    """Whether a cell is a word for a missing value, such as ``NA`` or ``?``, or holds only white space."""
    word = str(cell, "utf-8", "replace").strip()
    return not word or _MISSING.fullmatch(word.encode()) is not None


def nearest_float32(number: str) -> np.float32:
    """The float32 nearest to a decimal, ties to even; infinity beyond the range of float32."""
    exact, near = Decimal(number), np.float64(number)
    if exact != near and not near.view(np.int64) & 1:  # rounded to odd, so that it is rounded right once more
        near = np.nextafter(near, np.inf if exact > near else -np.inf)
    with np.errstate(all="ignore"):
        return np.float32(near)


def exact_numbers(line: bytes, start: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Positions (counted from `start`) and float32s of everything in `line` that looks like a number."""
    found = list(NUMBER.finditer(line))
    places = np.array([start + match.start() for match in found], np.int64)
    return places, np.array([nearest_float32(match[0].decode()) for match in found], np.float32)


def exact_number(line: bytes, start: int, place: int) -> np.float32:
    """The float32 of the first number at or after `place` in a line that begins at `start`."""
    found = NUMBER.search(line, place - start)
    assert found is not None
    return nearest_float32(found[0].decode())
