"""The compiled svmlight parser: lines of ``labels[:weight] [qid:n] id:value ... # comment``.

A colon in the first field may belong to a weight or to the first feature, and only the user knows which: see
`Svmlight.weighted`.

One loop over the features does nearly all of the work. It computes a mask of the non-digits of 64 bytes, and
so knows the ends of all runs of digits before it reads any of them: see `id_rows`.
"""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thresher.data.features.crossing import note_namespace
from thresher.data.formats.line_status import EXAMPLE, OWN
from thresher.data.formats.lines.id_rows import is_qid, quick_feature, read_feature, read_head
from thresher.data.formats.lines.line_rows import ends_token, line_ends, skip_blanks
from thresher.data.text.numbers import NOT_A_NUMBER, read_number
from thresher.data.text.words import byte, load_word, marks, store_float, store_word
from thresher.engine.compile.jit import scalar

QID = OWN
"""The reason for bad lines specific to svmlight text."""
_NEWLINE, _SPACE = 10, 32
_LARGEST_KEY = np.uint64(2**64 - 1)
_NONE, _ONE = np.uint64(0), np.uint64(1)


@scalar
def _skip_qid(text, at):
    """Skip a ``qid:``, if there is one at `at`: ``(position after it or of the error, outcome)``."""
    if is_qid(text, at):
        at += 4
        end, _, status = read_number(text, at)
        if status == NOT_A_NUMBER or not ends_token(text, end):
            return at, QID
        at = end
    return at, EXAMPLE


@scalar
def _features(text, at, keys, values, nnz, exact):
    """Read the features from `at` on, and store them from entry `nnz` of `keys` and `values` (addresses) on.

    Returns ``(position of the line end or error, nnz, whether keys ascend, outcome)``.
    """
    start, floor, ascend = nnz, np.uint64(0), True
    while True:
        others, odd = marks(text, at)
        here, begin = text + at, np.int64(0)
        while True:
            end, others, key, value, quick = quick_feature(here, begin, others, odd)
            after = byte(here, end)
            if not quick or (after != _SPACE and after != _NEWLINE):
                break
            ascend &= key >= floor
            floor = key + _ONE
            store_word(keys, nnz, key)
            store_float(values, nnz, value)
            nnz += 1
            if after == _NEWLINE:
                return at + end, nnz, ascend, EXAMPLE
            begin = end + 1
        at += begin
        if begin > 0:
            continue  # the window may have ended: read a new one from here
        at = skip_blanks(text, at)
        if line_ends(text, at):
            return at, nnz, ascend, EXAMPLE
        at, key, value, outcome = read_feature(text, at, exact)
        if outcome != EXAMPLE:
            return at, nnz, ascend, outcome
        # no floor can exceed the largest key
        ascend &= key >= floor and (nnz == start or key != load_word(keys, 8 * (nnz - 1)))
        floor = key + _ONE if key != _LARGEST_KEY else key
        store_word(keys, nnz, key)
        store_float(values, nnz, value)
        nnz += 1


class Svmlight(NamedTuple):
    """The grammar of svmlight text."""

    weighted: bool
    """whether a colon in the first field belongs to ``label:weight``; otherwise it belongs to a feature"""
    ordered: bool = True

    def read_line(self, text, at, columns, nnz, domain, exact, targets, row, extra):
        """See `line_rows.read_line`."""
        at, label, weight, outcome = read_head(text, at, domain, exact, targets, row, self.weighted)
        if outcome == EXAMPLE:
            at, outcome = _skip_qid(text, at)
        ascend = True
        if outcome == EXAMPLE:
            keys, values = columns
            start = nnz
            at, nnz, ascend, outcome = _features(text, at, keys, values, nnz, exact)
            note_namespace(extra[0], _NONE, start, nnz)
        return at, nnz, ascend, label, weight, outcome
