"""Interactions: products of two or three features of a row, appended to the row.

A row is a list of *spans*, each the features of one namespace or column. A span has a bit for every factor
of the layout's terms that it matches. Readers note spans as they read; `cross` then computes the terms.

Products are made while rows are read, before the row is sorted. So the threads that read share the work,
chunks stay the same, and no rule, store or cache is involved. Rows with products are not cached, because the
cache would be ten times as large as the data. The arrays of a chunk are mapped memory that is not touched in
advance, so room is doubled when a row does not fit, and blocks are a sixteenth as long. Keys of products are
sums of mixed keys, so the order of factors, which differs between formats, does not matter.
"""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.columns import BINS, CATEGORICAL, FEATURES, LIST, as_option_value, finder
from thresher.data.errors import DataError
from thresher.data.feature_specs import ANY, Terms, terms_of
from thresher.data.features.murmur import finish
from thresher.data.features.names import Naming, no_names, offer_product
from thresher.data.layout import AnyLayout, SettledLayout
from thresher.engine.compile.jit import scalar
from thresher.options.messages import mention

BITS, START, STOP, NO_SQUARES = 0, 1, 2, 3
"""Columns of a span, a row of int64: bits of its factors; first and end entry; 1 if no feature is squared."""
MET = 1
MOST_SPANS = 1 << 12
"""Maximum number of namespaces of a row that are crossed."""
MOST_FEATURES = 1 << 24
"""Maximum number of features of a row, including products."""
EXPECTED = "at most 2^24 features including interactions, and products finite in float32"
"""What is expected, in the message about a row that exceeds these limits."""
DONE, NO_ROOM, TOO_MUCH = 0, 1, 2
"""Results of `cross`: finished, the arrays are too small, or the row exceeds a limit."""

_FNV = np.uint64(16777619)
_PAIR, _TRIPLE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)
_ONE = np.int64(1)


class Crosses(NamedTuple):
    """The terms of a layout, and space for the spans of a row."""

    terms: NDArray[np.int64]
    """(terms, 3) the factors of each term, as bit positions; -1 for no third factor"""
    bits: NDArray[np.int64]
    """(columns,) bits of the factors that each column matches, in file order; empty for namespaces"""
    no_squares: NDArray[np.int64]
    """(columns,) 1 if every value is 1, so that the square of a feature is the feature itself"""
    seeds: NDArray[np.uint64]
    """(factors,) hash seeds of the namespaces that factors name"""
    wild: np.int64
    """bits of the factors that match every namespace"""
    mask: np.uint64
    """mask of the bits of a key that are kept"""
    vw: bool
    """whether products get the indices of Vowpal Wabbit"""
    spans: NDArray[np.int64]
    """(MOST_SPANS + 1, 4) spans of the current row; entry (0, 0) is their number, (0, MET) the bits of the
    factors that rows had features of"""


@scalar
def clear_spans(crosses):
    """Begin a row."""
    if crosses is not None:
        crosses.spans[0, 0] = 0


@scalar
def note_span(crosses, bits, no_squares, start, stop):
    """Add the features [start, stop) as a span."""
    if crosses is not None:
        spans = crosses.spans
        if bits != 0 and stop > start:
            spans[0, 0] += 1
            spans[0, MET] |= bits
            place = min(spans[0, 0], MOST_SPANS)
            spans[place, BITS], spans[place, NO_SQUARES] = bits, no_squares
            spans[place, START], spans[place, STOP] = start, stop


@scalar
def note_column(crosses, column, start, stop):
    """Add the features [start, stop) of a column as a span."""
    if crosses is not None:
        note_span(crosses, crosses.bits[column], crosses.no_squares[column], start, stop)


@scalar
def note_namespace(crosses, seed, start, stop):
    """Add the features [start, stop) of the namespace with this seed as a span."""
    if crosses is not None:
        bits = crosses.wild
        for place in range(crosses.seeds.size):
            if crosses.seeds[place] == seed:
                bits |= _ONE << place
        note_span(crosses, bits, 0, start, stop)


@scalar
def _matches(spans, span, place):
    return (spans[span, BITS] >> place) & 1 == 1


@scalar
def _size(spans, span):
    return spans[span, STOP] - spans[span, START]


@scalar
def _is_first(spans, term, s, t, u):
    """Whether this is the first order of the spans that matches the term, so that products are unique."""
    if u == 0:
        return not (t < s and _matches(spans, t, term[0]) and _matches(spans, s, term[1]))
    for a, b, c in ((s, u, t), (t, s, u), (t, u, s), (u, s, t), (u, t, s)):
        less = a < s or (a == s and (b < t or (b == t and c < u)))
        if (
            less
            and _matches(spans, a, term[0])
            and _matches(spans, b, term[1])
            and _matches(spans, c, term[2])
        ):
            return False
    return True


@scalar
def _products(crosses, keys, values, s, t, u, stop, naming):
    """Append the products of the spans `s`, `t` and, unless 0, `u` at `stop`; returns the new `stop`."""
    spans = crosses.spans
    for i in range(spans[s, START], spans[s, STOP]):
        for j in range(i + spans[s, NO_SQUARES] if s == t else spans[t, START], spans[t, STOP]):
            a, b, value = keys[i], keys[j], values[i] * values[j]
            if u == 0:
                key = ((a * _FNV) ^ b if crosses.vw else finish(finish(a) + finish(b) + _PAIR)) & crosses.mask
                keys[stop], values[stop] = key, value
                stop += 1
                offer_product(naming, key, a, b, b, 2)
                continue
            last = spans[u, START]
            if u == t:
                last = j + spans[t, NO_SQUARES]
            elif u == s:
                last = i + spans[s, NO_SQUARES]
            for k in range(last, spans[u, STOP]):
                c = keys[k]
                if crosses.vw:
                    key = (((a * _FNV) ^ b) * _FNV) ^ c
                else:
                    key = finish(finish(a) + finish(b) + finish(c) + _TRIPLE)
                key &= crosses.mask
                keys[stop], values[stop] = key, value * values[k]
                stop += 1
                offer_product(naming, key, a, b, c, 3)
    return stop


@scalar
def _cross_term(crosses, term, keys, values, start, stop, naming):
    """Append the products of a term of two or three factors: ``(new stop, DONE | NO_ROOM | TOO_MUCH)``."""
    spans, count = crosses.spans, crosses.spans[0, 0]
    for s in range(1, count + 1):
        for t in range(1, count + 1 if _matches(spans, s, term[0]) else 1):
            if not _matches(spans, t, term[1]):
                continue
            for u in range(1 if term[2] >= 0 else 0, count + 1 if term[2] >= 0 else 1):
                if (u > 0 and not _matches(spans, u, term[2])) or not _is_first(spans, term, s, t, u):
                    continue
                size = _size(spans, s) * _size(spans, t) * (_size(spans, u) if u > 0 else 1)
                size += stop - start
                if size > MOST_FEATURES:
                    return stop, TOO_MUCH
                if start + 2 * size > keys.size:  # with as much scratch space after them, for sorting
                    return stop, NO_ROOM
                stop = _products(crosses, keys, values, s, t, u, stop, naming)
    return stop, DONE


@scalar
def cross(crosses, keys, values, start, stop, naming):
    """Append the products of the row [start, stop) to it: ``(new stop, DONE | NO_ROOM | TOO_MUCH)``.

    Keys are the final keys of the features. For features with keys a, b (and c), the key of the product
    is ``finish(finish(a) + finish(b) + constant)`` (likewise with c) in any order, where `finish` is the
    last step of MurmurHash3; with the hash ``vw`` it is Vowpal Wabbit's ``(16777619 a) xor b``. Values are
    multiplied in float32.
    """
    if crosses is None:
        return stop, DONE
    if crosses.spans[0, 0] > MOST_SPANS:
        return stop, TOO_MUCH
    end, result = stop, DONE
    for k in range(len(crosses.terms)):
        end, result = _cross_term(crosses, crosses.terms[k], keys, values, start, end, naming)
        if result != DONE:
            return stop, result
    for k in range(stop, end):
        if not np.isfinite(values[k]):
            return stop, TOO_MUCH
    return end, DONE


def of_columns(
    layout: SettledLayout, names: Sequence[str], kinds: Sequence[str], file: str
) -> Crosses | None:
    """The terms over the columns `names` of a file, whose kinds are `kinds`; None if there are no terms.

    Raises `DataError` if a factor matches no feature column.
    """
    terms = terms_of(layout.interact)
    if not terms.terms:
        return None
    bits = dict.fromkeys(names, 0)
    find = finder(layout.columns)
    for place, factor in enumerate(terms.factors):
        matched = find(factor)
        found = [name for name in matched if layout.kind_of[name] in FEATURES]
        if not found:
            comes_late = matched or layout.format == "jsonl"
            value = as_option_value([factor], ())
            hint = f"; if its values come late, give its kind, such as {mention(categorical=value)}"
            where = f"{file}: {mention('interact')}: no feature column is called '{factor}'"
            raise DataError(f"{where}{hint if comes_late else ''}")
        for name in found:
            if name in bits:  # a file may lack it
                bits[name] |= 1 << place
    no_squares = [kind in (BINS, CATEGORICAL, LIST) for kind in kinds]
    arrays = (np.array(one, np.int64) for one in ([bits[name] for name in names], no_squares))
    return _crosses(terms, layout, *arrays)


def of_namespaces(layout: AnyLayout, seed: Callable[[str], int]) -> Crosses | None:
    """The terms over namespaces, which readers identify by their `seed`; None if there are no terms."""
    terms = terms_of(layout.interact)
    if not terms.terms:
        return None
    wild = sum(1 << place for place, factor in enumerate(terms.factors) if factor == ANY)
    seeds = np.array([seed(factor) for factor in terms.factors], np.uint64)
    return _crosses(terms, layout)._replace(seeds=seeds, wild=np.int64(wild))


def extra_of(
    crosses: Crosses | None, naming: Naming | None, columns: int = 0
) -> tuple[Crosses, Naming] | tuple[None, None]:
    """What compiled readers of `columns` columns take for interactions and names.

    One without the other is an empty one, so that there are two kinds of compiled code, not four.

    Naming the features of a model with products then compiles nothing more, and a reader that names nothing
    asks once per feature, which cannot be measured (345 and 347 ns a row of seven columns with three terms).
    """
    if crosses is None and naming is None:
        return None, None
    none = np.zeros(columns, np.int64)
    return crosses or _crosses(Terms([], []), AnyLayout(), none, none), naming or no_names()


_NONE = np.zeros(0, np.int64)


def _crosses(
    terms: Terms, layout: AnyLayout, bits: NDArray[np.int64] = _NONE, no_squares: NDArray[np.int64] = _NONE
) -> Crosses:
    factors = np.array([(*term, -1)[:3] for term in terms.terms], np.int64).reshape(-1, 3)
    seeds, mask = np.zeros(0, np.uint64), np.uint64(layout.mask)
    spans = np.zeros((MOST_SPANS + 1, 4), np.int64)
    return Crosses(factors, bits, no_squares, seeds, np.int64(0), mask, layout.hash == "vw", spans)
