"""Interactions: products of the features of a row, two or three at a time, behind its own.

A row is a list of *spans*, the features of one namespace or column, each with the places of the terms that
it may stand in, as bits. The readers note spans while they read; `cross` then goes through the terms.
"""

# Compiled code carries no types of its own: Numba finds them.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.features.murmur import finish
from thresher.data.features.wanted import offer_product
from thresher.engine.jit import scalar

BITS, START, STOP, APART = 0, 1, 2, 3
"""A span as a row of int64: places in terms; its entries; 1 if none of its features is squared."""
MOST_SPANS = 1 << 12
"""Namespaces of a row that are crossed."""
MOST_FEATURES = 1 << 24
"""Features of a row with its products."""
EXPECTED = "interactions, at most 2^24 features in all, of values with products finite in float32"
"""What a row should have whose interactions are too much."""
DONE, NO_ROOM, TOO_MUCH = 0, 1, 2
"""What came of `cross`: all products, no room for them yet, or something that no row may have."""

_FNV = np.uint64(16777619)
_PAIR, _TRIPLE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)
_ONE = np.int64(1)


class Crosses(NamedTuple):
    """The terms of a layout, and room for the spans of a row."""

    terms: NDArray[np.int64]
    """(terms, 3) places of the bits of factors; -1 for no third"""
    bits: NDArray[np.int64]
    """(places,) of columns, in their order in a file; empty for namespaces"""
    apart: NDArray[np.int64]
    """(columns,) 1 where every value is 1, so that squares are the features themselves"""
    seeds: NDArray[np.uint64]
    """of namespaces that factors name, one for each place"""
    wild: np.int64
    """bits of the factors that any namespace may be"""
    mask: np.uint64
    """of the bits of a key"""
    vw: bool
    """whether products have the indices of Vowpal Wabbit"""
    spans: NDArray[np.int64]
    """(MOST_SPANS + 1, 4) those of a row; the first entry is how many there are"""


@scalar
def clear_spans(crosses):
    """Begin a row."""
    if crosses is not None:
        crosses.spans[0, 0] = 0


@scalar
def note_span(crosses, bits, apart, start, stop):
    """Enter the features [start, stop) as a span."""
    if crosses is not None:
        spans = crosses.spans
        if bits != 0 and stop > start:
            spans[0, 0] += 1
            place = min(spans[0, 0], MOST_SPANS)
            spans[place, BITS], spans[place, APART] = bits, apart
            spans[place, START], spans[place, STOP] = start, stop


@scalar
def note_column(crosses, column, start, stop):
    """Enter the features [start, stop) of a column."""
    if crosses is not None:
        note_span(crosses, crosses.bits[column], crosses.apart[column], start, stop)


@scalar
def note_namespace(crosses, seed, start, stop):
    """Enter the features [start, stop) of the namespace with a seed."""
    if crosses is not None:
        bits = crosses.wild
        for place in range(crosses.seeds.size):
            if crosses.seeds[place] == seed:
                bits |= _ONE << place
        note_span(crosses, bits, 0, start, stop)


@scalar
def _product_key(crosses, a, b):
    """The key of the product of two features; that of three is of a product and a feature by the hash vw."""
    if crosses.vw:
        return ((a * _FNV) ^ b) & crosses.mask
    return finish(finish(a) + finish(b) + _PAIR) & crosses.mask


@scalar
def _triple_key(crosses, a, b, c):
    if crosses.vw:
        return ((((a * _FNV) ^ b) * _FNV) ^ c) & crosses.mask
    return finish(finish(a) + finish(b) + finish(c) + _TRIPLE) & crosses.mask


@scalar
def _may(spans, span, place):
    """Whether a span may stand at a place."""
    return (spans[span, BITS] >> place) & 1 == 1


@scalar
def _fits(spans, term, s, t, u):
    return _may(spans, s, term[0]) and _may(spans, t, term[1]) and _may(spans, u, term[2])


@scalar
def _is_first(spans, term, s, t, u):
    """Whether no smaller order of these spans fits the term: each product is made once."""
    for a, b, c in ((s, u, t), (t, s, u), (t, u, s), (u, s, t), (u, t, s)):
        less = a < s or (a == s and (b < t or (b == t and c < u)))
        if less and _fits(spans, term, a, b, c):
            return False
    return True


@scalar
def _size(spans, span):
    return spans[span, STOP] - spans[span, START]


@scalar
def _has_room(keys, start, stop, more):
    """`DONE` if so many more entries fit, with as much room behind them to sort in."""
    size = stop + more - start
    if size > MOST_FEATURES:
        return TOO_MUCH
    return DONE if start + 2 * size <= keys.size else NO_ROOM


@scalar
def _pairs(crosses, keys, values, s, t, stop, naming):
    """The products of the spans `s` and `t`, stored from `stop` on; the new `stop`."""
    spans = crosses.spans
    for i in range(spans[s, START], spans[s, STOP]):
        first = i + spans[s, APART] if s == t else spans[t, START]
        for j in range(first, spans[t, STOP]):
            key = _product_key(crosses, keys[i], keys[j])
            keys[stop], values[stop] = key, values[i] * values[j]
            stop += 1
            offer_product(naming, key, keys[i], keys[j], keys[j], 2)
    return stop


@scalar
def _triples(crosses, keys, values, s, t, u, stop, naming):
    """The products of three spans, stored from `stop` on; the new `stop`."""
    spans = crosses.spans
    for i in range(spans[s, START], spans[s, STOP]):
        first = i + spans[s, APART] if s == t else spans[t, START]
        for j in range(first, spans[t, STOP]):
            last = spans[u, START]
            if u == t:
                last = j + spans[t, APART]
            elif u == s:
                last = i + spans[s, APART]
            value = values[i] * values[j]
            for k in range(last, spans[u, STOP]):
                key = _triple_key(crosses, keys[i], keys[j], keys[k])
                keys[stop], values[stop] = key, value * values[k]
                stop += 1
                offer_product(naming, key, keys[i], keys[j], keys[k], 3)
    return stop


@scalar
def _cross_pair(crosses, term, keys, values, start, stop, naming):
    """The products of a term of two: ``(new stop, what came of it)``."""
    spans, count = crosses.spans, crosses.spans[0, 0]
    for s in range(1, count + 1):
        if not _may(spans, s, term[0]):
            continue
        for t in range(1, count + 1):
            doubled = t < s and _may(spans, t, term[0]) and _may(spans, s, term[1])
            if doubled or not _may(spans, t, term[1]):
                continue
            room = _has_room(keys, start, stop, _size(spans, s) * _size(spans, t))
            if room != DONE:
                return stop, room
            stop = _pairs(crosses, keys, values, s, t, stop, naming)
    return stop, DONE


@scalar
def _cross_triple(crosses, term, keys, values, start, stop, naming):
    """The products of a term of three: ``(new stop, what came of it)``."""
    spans, count = crosses.spans, crosses.spans[0, 0]
    for s in range(1, count + 1):
        for t in range(1, count + 1):
            if not (_may(spans, s, term[0]) and _may(spans, t, term[1])):
                continue
            for u in range(1, count + 1):
                if not (_may(spans, u, term[2]) and _is_first(spans, term, s, t, u)):
                    continue
                room = _has_room(keys, start, stop, _size(spans, s) * _size(spans, t) * _size(spans, u))
                if room != DONE:
                    return stop, room
                stop = _triples(crosses, keys, values, s, t, u, stop, naming)
    return stop, DONE


@scalar
def cross(crosses, keys, values, start, stop, naming):
    """Enter the products of the row [start, stop) behind it: ``(new stop, what came of it)``.

    Keys are those that the features have in the end. For features with keys a, b (and c) the key is
    ``finish(finish(a) + finish(b) + constant)``, whatever their order, `finish` being the last step of
    MurmurHash3; by the hash vw it is Vowpal Wabbit's ``(16777619 a) xor b``. Values are multiplied in
    float32.
    """
    if crosses is None:
        return stop, DONE
    if crosses.spans[0, 0] > MOST_SPANS:
        return stop, TOO_MUCH
    end, result = stop, DONE
    for k in range(len(crosses.terms)):
        term = crosses.terms[k]
        if term[2] < 0:
            end, result = _cross_pair(crosses, term, keys, values, start, end, naming)
        else:
            end, result = _cross_triple(crosses, term, keys, values, start, end, naming)
        if result != DONE:
            return stop, result
    for k in range(stop, end):
        if not np.isfinite(values[k]):
            return stop, TOO_MUCH
    return end, DONE
