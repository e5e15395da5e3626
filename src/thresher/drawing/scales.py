"""Axes: values to pixels, the positions of ticks, and their labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from thresher.drawing.svg import width_of

_LARGEST, _LEAST = 1e150, 1e-150
_PAD, _SIZE, _GAP = 0.04, 12.0, 10.0
_APART = 1.3 * _SIZE
_SUFFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True)
class Axis:
    """An axis. It covers at least `low` to `high`, and all data."""

    title: str = ""
    log: bool = False
    """negative values are then left out; zero, if there is one, has its own position"""
    low: float | None = None
    high: float | None = None
    percent: bool = False
    """ticks are percentages"""
    whole: bool = False
    """counts: ticks only at whole numbers"""


class Scale(NamedTuple):
    """An axis, mapped to pixels."""

    axis: Axis
    low: float
    high: float
    start: float
    end: float
    zero: float | None = None
    """the position of zero on a logarithmic axis, as a value, if zero is shown"""

    def place(self, value: float) -> float | None:
        """The pixel of a value; None if it cannot be shown."""
        if not drawable(value):
            return None
        if not self.axis.log:
            share = (value - self.low) / (self.high - self.low)
        else:
            value = self.zero if value == 0 and self.zero is not None else value
            if value < _LEAST:
                return None
            share = (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return self.start + share * (self.end - self.start)


class Tick(NamedTuple):
    """A value with its pixel and label."""

    value: float
    place: float
    text: str


def drawable(value: float) -> bool:
    """Whether a number is finite and small enough to compute with."""
    return abs(value) <= _LARGEST  # False for NaN too


def scale_of(axis: Axis, values: Iterable[float], start: float, end: float) -> Scale:
    """The scale that shows all drawable values, with a margin at ends that the axis does not set."""
    known = {float(value) for value in values if drawable(value)}
    zero = axis.log and 0.0 in known
    ends = [one for one in (axis.low, axis.high) if one is not None]
    shown = [value for value in (*known, *ends) if value >= _LEAST or not axis.log]
    low, high = (min(shown), max(shown)) if shown else ((1.0, 10.0) if axis.log else (0.0, 1.0))
    stand_in = low / 2 if zero else None
    low = stand_in or low
    largest = max(abs(low), abs(high))
    if high - low <= 1e-9 * largest or not (axis.log or high - low > _LEAST):  # almost equal
        room = 0.05 * largest if largest > _LEAST else 1.0
        low, high = (low / 2, high * 2) if axis.log else (low - room, high + room)
    room = (high / low) ** _PAD if axis.log else _PAD * (high - low)
    if axis.low is None or axis.low > low:
        low = low / room if axis.log else low - room
    if axis.high is None or axis.high < high:
        high = high * room if axis.log else high + room
    return Scale(axis, low, high, start, end, stand_in)


def ticks_across(scale: Scale) -> list[Tick]:
    """As many ticks as fit side by side."""
    for most in range(9, 0, -1):
        found = _ticks(scale, most)
        ends = [(t.place - width_of(t.text, _SIZE) / 2, t.place + width_of(t.text, _SIZE) / 2) for t in found]
        if all(right + _GAP <= left for (_, right), (left, _) in pairwise(ends)):
            return found
    return found[:1]


def ticks_upright(scale: Scale) -> list[Tick]:
    """As many ticks as fit above each other, from the lowest."""
    room = abs(scale.end - scale.start)
    for most in range(max(2, int(room / 34)), 0, -1):
        found = _ticks(scale, most)
        if scale.zero is not None:  # it stands apart from the powers, the lowest of which may be close to it
            found = [found[0], *(t for t in found[1:] if abs(t.place - found[0].place) >= _APART)]
        if all(abs(a.place - b.place) >= _APART for a, b in pairwise(found)):
            return found
    return found[:1]


def _ticks(scale: Scale, most: int) -> list[Tick]:
    low, high = scale.low, scale.high
    values = _decades(low, high, most) if scale.axis.log else steps(low, high, most, scale.axis.whole)
    if scale.zero is not None:
        values = [0.0, *(value for value in values if value >= 1.5 * scale.zero)]
    if scale.axis.log and scale.axis.whole:
        values = [value for value in values if value == int(value)]
    placed = [(value, place) for value in values if (place := scale.place(value)) is not None]
    texts = write_numbers([value for value, _ in placed], scale.axis.percent, alike=not scale.axis.log)
    return [Tick(value, place, text) for (value, place), text in zip(placed, texts, strict=True)]


def steps(low: float, high: float, most: int, whole: bool = False) -> list[float]:
    """At most about `most` round numbers in an interval: multiples of 1, 2 or 5 times a power of ten.

    >>> steps(0.0739, 0.3891, 7)
    [0.1, 0.15, 0.2, 0.25, 0.3, 0.35]
    """
    wide = (high - low) / most
    power = 10.0 ** math.floor(math.log10(wide))
    step = next(one * power for one in (1.0, 2.0, 5.0, 10.0) if one * power >= wide * 0.999)
    step = max(step, 1.0) if whole else step
    first, last = math.ceil(low / step), math.floor(high / step)
    return sorted({float(f"{k * step:.12g}") for k in range(first, min(last, first + 2 * most) + 1)})


def _decades(low: float, high: float, most: int) -> list[float]:
    """Powers of ten; with few of them, also numbers between them; with none, round numbers."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    powers = list(range(first, last + 1))
    if len(powers) >= 4 or len(powers) > most:
        return [float(f"1e{k}") for k in powers[:: math.ceil(len(powers) / most)]]
    for digits in ((1, 2, 5), (1, 3), (1,)):
        fine = [float(f"{one}e{k}") for k in range(first - 1, last + 1) for one in digits]
        fine = [value for value in fine if low <= value <= high]
        if max(len(digits), 2) <= len(fine) <= most:
            return fine
    found = [[value for value in steps(low, high, n) if value > 0] for n in (most // 2 + 1, most, 2 * most)]
    return next((values for values in found if len(values) >= 2), found[-1])


def write_numbers(values: Sequence[float], percent: bool = False, *, alike: bool = True) -> list[str]:
    """Labels of ticks: as few digits as distinguish them, thousands separated, 1M for a million.

    With `alike`, all have as many decimals.

    >>> [write_numbers(values) for values in ([0.1, 0.15], [0, 5000, 10000], [1e3, 1e6])]
    [['0.10', '0.15'], ['0', '5,000', '10,000'], ['1k', '1M']]
    >>> write_numbers([0.05, 0.1], True)
    ['5%', '10%']
    >>> write_numbers([0.5, 1, 10], alike=False)
    ['0.5', '1', '10']
    """
    if percent:
        shown = [float(f"{100 * value:.12g}") for value in values]
        return [f"{text}%" for text in write_numbers(shown, alike=alike)]
    largest = max(map(abs, values), default=0.0)
    spread = largest / min((abs(value) for value in values if value), default=1.0)
    found = list[str]()
    for value in values:
        alone = f"{value:,.4g}" if value and not 1e-4 <= abs(value) < 1e6 else f"{value:,.10g}"
        mantissa, e, exponent = alone.partition("e")
        found.append(f"{mantissa}e{int(exponent)}" if e else alone)
    if 1e6 <= largest < 1e15:
        sizes = [next((one for one in _SUFFIXES if abs(value) >= one[0]), (1.0, "")) for value in values]
        found = [f"{value / size:.4g}{of}" for value, (size, of) in zip(values, sizes, strict=True)]
    if alike and 1e-4 <= largest < 1e6 and spread < 1e3:
        for decimals in range(12):
            found = [f"{value:,.{decimals}f}" for value in values]
            if all(
                math.isclose(float(text.replace(",", "")), value, rel_tol=1e-9, abs_tol=1e-15)
                for text, value in zip(found, values, strict=True)
            ):
                break
    if len(set(found)) < len(set(values)):
        found = [f"{value:,.10g}" for value in values]
    return [f"−{text[1:]}" if text.startswith("-") else text for text in found]
