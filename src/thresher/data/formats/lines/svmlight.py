"""svmlight (libsvm) text.

    label [qid:n] id:value id:value ... # comment
    label,label,... [qid:n] id:value id:value ... # comment

Numbers may be signed and scientific. Ids are whole numbers up to 2**64 - 1, from 0 or 1 on, in any order; the
values of repeated ids are added up. Blank and comment lines are ignored. A label alone is an example without
features. ``qid`` is no feature; the layout's `group` may name it. With several outputs, labels are a list: a
number for each output, or a set of classes. If the set is empty, the line begins with a blank.

If the layout has `label_weights`, ``:weight`` may follow the labels. Otherwise a colon in the first field
means that the line begins with a feature and has no label: a bad line, unless the domain is open.

``3:1 7:1`` may be a label, its weight and a feature, or two features. Nothing in the text decides, people
predict on rows without labels, and a wrong guess would be silent: so `label_weights` is an option, stored in
the layout.

One loop over the features does nearly all of the work. It computes a mask of the non-digits of 64 bytes, and
so knows the ends of all runs of digits before it reads any of them: see `line_rows`.
"""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from thresher.data.errors import DataError
from thresher.data.feature_specs import ANY
from thresher.data.features.crossing import note_namespace, of_namespaces
from thresher.data.formats import line_status
from thresher.data.formats.line_status import EXAMPLE, OWN
from thresher.data.formats.lines.line_rows import (
    ends_token,
    is_qid,
    line_ends,
    quick_feature,
    read_feature,
    read_head,
    skip_blanks,
)
from thresher.data.formats.lines.parse_loop import OF_IDS, LineParser, Wording
from thresher.data.layout import AnyLayout
from thresher.data.sources.reader import Reading
from thresher.data.text.numbers import NOT_A_NUMBER, read_number
from thresher.data.text.words import byte, load_word, marks, store_float, store_word
from thresher.engine.compile.jit import scalar
from thresher.options.messages import mention

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


_EXPECTED = OF_IDS | {
    line_status.WEIGHT_NUMBER: "a number as importance weight after ':'",
    QID: "a number after 'qid:'",
}
_EXPECTED_WEIGHTED = _EXPECTED | {
    line_status.AFTER_LABEL: "a space or ':' after the label",
    line_status.NO_LABEL: "a label at the start of the line",
}
_QID = re.compile(rb"[ \t]*(?:[^ \t#]+[ \t]+)?qid:([^ \t\r#]+)")
_LISTED_WEIGHTED = "',', ':' or a space after the label"


def parser(layout: AnyLayout, reading: Reading) -> LineParser:
    """The parser of blocks of svmlight text."""

    def advice(outcome: int, line: bytes, place: int) -> str:
        wanted = outcome == line_status.NO_LABEL
        return f"; if the field is label:weight, use {mention(label_weights=True)}" if wanted else ""

    wording = Wording(_EXPECTED, advice=advice, tag=_qid)
    if layout.label_weights:
        wording = Wording(_EXPECTED_WEIGHTED, _LISTED_WEIGHTED, tag=_qid)
    grammar = Svmlight(layout.label_weights)
    return LineParser(grammar, wording, reading, of_namespaces(layout, _only_space))


def _qid(line: bytes) -> str | None:
    """The number after ``qid:``, as it is written; empty if there is none. None for a comment."""
    if line.lstrip(b" \t").startswith(b"#"):
        return None
    found = _QID.match(line)
    return found[1].decode("ascii", "backslashreplace") if found else ""


def _only_space(name: str) -> int:
    if name not in ("", ANY):
        raise DataError(f"svmlight has no namespaces: use {mention(interact='*,*')}, not '{name}'")
    return 0
