"""Decimal numbers to float32, correctly rounded.

A number is read as ``mantissa * 10**exponent`` with up to 19 digits in a uint64. Most conversions are one
correctly rounded operation in float64 and one rounding to float32. The result is the float32 nearest to
the decimal, unless the float64 is the midpoint of two float32s: the first rounding may then have hidden on
which side the decimal was. Those cases, about one in 2**29, and longer numbers whose error interval
contains a midpoint are `HARD`: their digits are compared with the midpoint, as whole numbers of any length.
"""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import re

import numpy as np

from thresher.data.text.words import (
    ROOM,
    WINDOW,
    bits_of,
    byte,
    load_word,
    lowest_bit,
    marks,
    room_for_words,
    short_number,
    store_word,
)
from thresher.engine.compile.jit import compiled_apart, scalar

FINE, NOT_A_NUMBER, OUT_OF_RANGE, HARD = 0, 1, 2, 3
"""Results of reading a number. Only `scale_decimal` leaves it `HARD`."""

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
_TEN, _FIVE, _THREE, _TWO, _ONE, _ZERO_WORD = (np.uint64(k) for k in (10, 5, 3, 2, 1, 0))
_HALF, _LOW_HALF, _TWO_32 = np.uint64(32), np.uint64(2**32 - 1), 2.0**32
_SPLIT = 2.0**27 + 1.0
_LARGEST_EXACT = 22  # the largest k for which 10**k is a float64
_LARGEST_ID, _TENTH = np.uint64(2**64 - 1), np.uint64((2**64 - 1) // 10)
TENS = np.array([10**k for k in range(9)], np.uint64)
_MOST_DIGITS, _LIMBS = 128, ROOM // 2
"""Digits that tell a decimal from a midpoint of two float32s, which has at most 113; and words of 32 bits"""
_LARGEST_MIDDLE = 2.0**128 - 2.0**103
_FRACTION, _IMPLIED = np.uint64((1 << 52) - 1), np.uint64(1 << 52)
_EXPONENT_BITS, _EXPONENT_BIAS, _UNUSED_BITS = np.uint64(52), 1075, 27


@scalar
def _between(mantissa, exponent):
    """The float32s nearest to the ends of an interval that contains ``mantissa * 10**exponent``."""
    number = np.float64(mantissa) * POWERS[ZERO + min(max(exponent, _LOW), _HIGH)]
    return np.float32(number * (1.0 - _MARGIN)), np.float32(number * (1.0 + _MARGIN))


@scalar
def scale_decimal(mantissa, exponent):
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
    """`scale_decimal` for a mantissa below 2**53 and 0 to 22 decimals: ``(float32, is it certain)``."""
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
def _times(limbs, factor, carry):
    """Multiply the whole number at an address, in words of 32 bits, by a small one, and add another."""
    for k in range(_LIMBS):
        carry += load_word(limbs, 8 * k) * factor
        store_word(limbs, k, carry & _LOW_HALF)
        carry >>= _HALF


@scalar
def _digits_at(text, at, limbs):
    """The first digits of the decimal at `at`: ``(its power of ten, whether more follow that are not 0)``."""
    count, power, seen, more = 0, np.int64(0), False, False
    while 48 <= byte(text, at) <= 57 or (byte(text, at) == 46 and not seen):
        digit = byte(text, at) - 48
        seen |= digit < 0
        if digit >= 0 and count == _MOST_DIGITS:
            more |= digit > 0
            power += not seen
        elif digit >= 0:
            _times(limbs, _TEN, np.uint64(digit))
            count += count > 0 or digit > 0
            power -= seen
        at += 1
    if byte(text, at) | 32 == 101:
        _, exponent, status = read_power(text, at + 1)
        power += exponent if status == FINE else 0
    return power, more


@compiled_apart
def _nearest(text, at, mantissa, exponent):
    """The float32 nearest to the decimal without a sign at `at`, which is about ``mantissa * 10**exponent``.

    It is one of two neighbours: the decimal is D 10^p, their midpoint M 2^k, with whole D and M.
    """
    below, above = _between(mantissa, exponent)
    middle = (np.float64(below) + np.float64(above)) / 2.0 if np.isfinite(above) else _LARGEST_MIDDLE
    decimal = room_for_words()
    binary = decimal + 8 * _LIMBS
    for limb in range(2 * _LIMBS):
        store_word(decimal, limb, _ZERO_WORD)
    p, more = _digits_at(text, at, decimal)
    bits = bits_of(middle)
    k = np.int64(bits >> _EXPONENT_BITS) - _EXPONENT_BIAS + _UNUSED_BITS
    store_word(binary, 0, (bits & _FRACTION | _IMPLIED) >> np.uint64(_UNUSED_BITS))
    for _ in range(p):
        _times(decimal, _FIVE, _ZERO_WORD)
    for _ in range(-p):
        _times(binary, _FIVE, _ZERO_WORD)
    for _ in range(p - k):
        _times(decimal, _TWO, _ZERO_WORD)
    for _ in range(k - p):
        _times(binary, _TWO, _ZERO_WORD)
    side = 1.0 if more else 0.0
    for limb in range(_LIMBS):  # the highest that differs decides
        one, other = load_word(decimal, 8 * limb), load_word(binary, 8 * limb)
        if one != other:
            side = 1.0 if one > other else -1.0
    return np.float32(middle * (1.0 + side * _MARGIN))


@scalar
def read_number(text, at):
    """Read ``[+-]digits[.digits][e[+-]digits]`` at `at`.

    Returns ``(end, float32, FINE | NOT_A_NUMBER | OUT_OF_RANGE)``. `end` is the position after the number or,
    if it is not a number, of the missing digit.
    """
    end, negative, mantissa, exponent, status = _parts(text, at)
    if status != FINE:
        return end, np.float32(0.0), status
    value, status = scale_decimal(mantissa, exponent)
    if status == HARD:
        value = _nearest(text, at + (negative or byte(text, at) == 43), mantissa, exponent)
        status = FINE if np.isfinite(value) else OUT_OF_RANGE
    return end, -value if negative else value, status


@scalar
def _product(a, b):
    """A product of two float64s and the error of its rounding, by halves of their digits (Dekker 1971)."""
    product, wide, other = a * b, _SPLIT * a, _SPLIT * b
    high, top = wide - (wide - a), other - (other - b)
    low, rest = a - high, b - top
    return product, ((high * top - product) + high * rest + low * top) + low * rest


@scalar
def quick_value(here, number, stop, unlike):
    """Read a value ``ddd``, ``d.ddd`` or ``d.ddde-dd`` in [number, stop): ``(float32, whether it fits)``.

    `unlike` are those of the `stops` of address `here`. The value must end in the window.
    """
    sign = byte(here, number) == 45
    first = number + sign
    length = stop - first
    shape = (unlike >> np.uint64(first & 63)) & ((_ONE << np.uint64(length & 63)) - _ONE)
    value, sure = np.float32(0), False
    if shape == _TWO and 3 <= length <= 10 and byte(here, first + 1) == 46:
        mantissa = np.uint64(byte(here, first) - 48) * TENS[length - 2]
        value, sure = decimal(mantissa + short_number(here, first + 2, length - 2), length - 2)
    elif shape == _ZERO_WORD and 1 <= length <= 8:
        value, sure = np.float32(np.int64(short_number(here, first, length))), True
    elif 7 <= length <= 14 and shape == _TWO | _THREE << np.uint64(length - 4):
        decimals, letter = length - 6, first + length - 4
        mantissa = np.uint64(byte(here, first) - 48) * TENS[decimals]
        places = decimals + np.int64(short_number(here, letter + 2, 2))
        value, sure = decimal(mantissa + short_number(here, first + 2, decimals), min(places, 22))
        dotted = byte(here, first + 1) == 46 and byte(here, letter) | 32 == 101
        sure = sure and places <= 22 and dotted and byte(here, letter + 1) == 45
    return -value if sign else value, sure and stop < WINDOW


@compiled_apart
def read_double(text, at):
    """The number at `at` as the float64 nearest to it, if its size is from 1 to 10**22.

    Of digits after the nineteenth it ignores what they are.
    """
    _, negative, mantissa, exponent, _ = _parts(text, at)
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
    return -number if negative else number


NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""The syntax of a finite number."""
_MISSING = re.compile(rb"n/?a|#n/a|nan|null|nil|none|missing|unknown|undefined|[?.*-]+", re.IGNORECASE)
OVERFLOW = 2.0**128 - 2.0**103
"""Midpoint of the largest float32 and 2**128: numbers from here on round to infinity."""


def means_missing(cell: bytes) -> bool:
    """Whether a cell is a word for a missing value, such as ``NA`` or ``?``, or holds only white space."""
    word = str(cell, "utf-8", "replace").strip()
    return not word or _MISSING.fullmatch(word.encode()) is not None
