"""Shared by compiled line parsers: numbers, labels and weights, the loop over lines.

A format is a NamedTuple, its *grammar*: the class selects the code of `read_line`, and its fields are the
layout options that the code needs. Every grammar has a field `ordered`: whether unsorted rows are counted in
the report.

So a grammar is to the loop over lines what a part is to the kernels, and one loop (`parse_lines`) counts
lines, sorts rows and keeps the table of bad lines for all formats.
"""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import numpy as np

from thresher.data.features import crossing
from thresher.data.formats import line_status
from thresher.data.formats.line_status import EXAMPLE
from thresher.data.labels import LISTED, VALUES
from thresher.data.text.numbers import FINE, NOT_A_NUMBER, read_number
from thresher.data.text.sorting import ascending
from thresher.data.text.words import address, among, byte, byte_set
from thresher.engine.compile.jit import compiled_apart, declare, kernel, scalar

_NUL, _NEWLINE, _RETURN, _COLON, _COMMA = 0, 10, 13, 58, 44
_ENDS_TOKEN = byte_set(b" \t\n#")


def read_line(self, text, at, columns, nnz, domain, targets, row, extra):
    """Read one line with grammar `self`. Stores features from `nnz` on, several labels in ``targets[row]``.

    `columns` are the addresses of keys, values and offsets, and ``(keys, values)`` as arrays.
    ``extra = (crosses, naming)`` receives spans and names, if not None. Returns ``(position of the line end
    or of the error, nnz, whether keys ascend, label, weight, outcome)``.
    """
    return self.read_line(text, at, columns, nnz, domain, targets, row, extra)


declare(
    read_line,
    "scalar",
    lambda self, *args: getattr(getattr(self, "instance_class", None), "read_line", None),
)


@scalar
def number_at(text, at, no_number, too_large):
    """Read the number at `at`: ``(end or, if there is an error, at; float32; outcome)``.

    The outcome is `no_number` if there is none, and `too_large` if it is not finite in float32.
    """
    end, value, status = read_number(text, at)
    if status == FINE:
        return end, value, EXAMPLE
    return at, value, no_number if status == NOT_A_NUMBER else too_large


@compiled_apart
def head_number(text, at, no_number, too_large):
    """`number_at`, not inlined, for the few numbers before the features."""
    return number_at(text, at, no_number, too_large)


@scalar
def ends_token(text, at):
    """Whether there is a blank, a comment or the end of the line at `at`."""
    code = byte(text, at)
    return among(code, _ENDS_TOKEN) or (code == _RETURN and byte(text, at + 1) == _NEWLINE)


@scalar
def ends_line(text, at):
    """Whether the line ends at `at`."""
    return byte(text, at) == _NEWLINE or (byte(text, at) == _RETURN and byte(text, at + 1) == _NEWLINE)


@compiled_apart
def _word(text, at, domain):
    """`_label` if labels are words, which end at a blank, a comment or a colon."""
    end = at
    while not (ends_token(text, end) or byte(text, end) == _COLON or byte(text, end) == _NUL):
        end += 1
    label = line_status.word_label(text, at, end, domain)
    outcome = line_status.check_label(label, domain)
    return end if outcome == EXAMPLE else at, label, outcome


@scalar
def _label(text, at, domain, listed):
    """Read the label at `at`, `listed` or single: ``(end or error position, label, outcome)``."""
    if domain.words != 0:
        return _word(text, at, domain)
    end, label, outcome = head_number(text, at, line_status.LABEL_NUMBER, line_status.LABEL_RANGE)
    if outcome != EXAMPLE:
        return end, label, outcome
    if not (ends_token(text, end) or byte(text, end) == _COLON or (listed and byte(text, end) == _COMMA)):
        return end, label, line_status.AFTER_LABEL
    outcome = line_status.check_written(text, at, end, label, domain)
    return end if outcome == EXAMPLE else at, label, outcome


@scalar
def _list(text, at, domain, target, empty):
    """Read the list of labels at `at`, which may be `empty`: ``(end or error position, first, outcome)``.

    Stores them in `target` (outputs,), unless it has length 0.
    """
    kind = domain.kind
    first, count, wanted = np.float32(0), np.int64(0), target.size
    if kind == LISTED:
        target[:] = np.float32(-1)  # no class
    more = kind == VALUES or not (empty or byte(text, at) == _COLON)
    while more:
        end, label, outcome = _label(text, at, domain, True)
        if outcome == EXAMPLE and wanted > 0:
            if kind == LISTED:
                outcome = line_status.enter_class(target, label, domain)
            elif count == wanted:
                outcome = line_status.LABEL_COUNT
            else:
                target[count] = label
            end = end if outcome == EXAMPLE else at - (outcome == line_status.LABEL_COUNT)
        if outcome != EXAMPLE:
            return end, label, outcome
        first = label if count == 0 else first
        count += 1
        more = byte(text, end) == _COMMA
        at = end + more
    if wanted > 0:
        first = target[0]
    return at, first, line_status.LABEL_COUNT if kind == VALUES and count < wanted else EXAMPLE


@scalar
def read_labels(text, at, domain, targets, row, empty):
    """Read the label field: one label, or a list stored in ``targets[row]``. Returns what `_label` does."""
    if targets is None:
        return _label(text, at, domain, False)
    return _list(text, at, domain, targets[row], empty)


@scalar
def read_weight(text, at):
    """Read the importance weight at `at`: ``(end or error position, weight, outcome)``."""
    end, weight, outcome = head_number(text, at, line_status.WEIGHT_NUMBER, line_status.WEIGHT_SIGN)
    if outcome == EXAMPLE and weight < np.float32(0):
        return at, weight, line_status.WEIGHT_SIGN
    if outcome == EXAMPLE and not ends_token(text, end):
        return end, weight, line_status.AFTER_VALUE
    return end, weight, outcome


@scalar
def note(bad, state, row, start, at, outcome):
    """Add a bad line, after `row` examples, to the table; `TABLE_FULL` if that fills it, else `DONE`."""
    entry = bad[state[line_status.BAD]]
    entry[0], entry[1], entry[2], entry[3], entry[4] = start, at, outcome, state[line_status.LINES], row
    state[line_status.BAD] += 1
    return line_status.TABLE_FULL if state[line_status.BAD] == len(bad) else line_status.DONE


@scalar
def complete(keys, values, start, own, ascend, extra, rooms):
    """Add the interactions of the row [start, own) and sort it: ``(stop, whether keys repeat, outcome)``.

    `rooms` is the scratch space of `ascending`, unless keys `ascend`.
    """
    stop, status = crossing.cross(extra[0], keys, values, start, own, extra[1])
    if status != crossing.DONE:
        return stop, False, line_status.CRAMPED if status == crossing.NO_ROOM else line_status.PRODUCTS
    if ascend and stop == own:
        return stop, False, EXAMPLE
    last, finite = ascending(keys, values, start, stop, *rooms)
    return last, last < stop, EXAMPLE if finite else line_status.SUM_RANGE


@kernel
def parse_lines(grammar, text_bytes, size, columns, domain, state, bad, extra, rooms):
    """Parse the whole lines ``text_bytes[:size]`` from ``state[AT]`` on.

    Args:
        grammar: The format.
        text_bytes: uint8, with 64 spare bytes after `size`.
        size: Bytes of text.
        columns: ``(indptr, keys, values, labels, weights, offsets, targets)``, with room for all rows, twice
            the features, and one more row of `targets` (None if a line has one label).
        domain: A `labels.Range`.
        state: int64 (COUNTERS,), kept between calls.
        bad: int64 table that gets one row per bad line: start, position of the error, outcome, lines and
            examples before.
        extra: ``(crosses, naming)``; each may be None.
        rooms: Scratch space for `ascending`.

    Returns `DONE` or `TABLE_FULL`, or says what the line at ``state[AT]`` needs: `NEEDS_ROOM` for its
    products, or `NEEDS_CARE` if it is unusual.
    """
    at, row, nnz = state[line_status.AT], state[line_status.ROWS], state[line_status.NNZ]
    result = line_status.DONE
    indptr, keys, values, labels, weights, offsets, targets = columns
    text = address(text_bytes)
    features = address(keys), address(values), address(offsets), (keys, values)
    indptr[row] = nnz
    while at < size and result == line_status.DONE:
        start = at
        crossing.clear_spans(extra[0])
        at, own, ascend, label, weight, outcome = read_line(
            grammar, text, start, features, nnz, domain, targets, row, extra
        )
        stop, merges = own, False
        if outcome == EXAMPLE:
            stop, merges, outcome = complete(keys, values, nnz, own, ascend, extra, rooms)
        if line_status.CRAMPED <= outcome <= line_status.UNUSUAL:
            at, result = start, outcome
            break
        if outcome == EXAMPLE:
            labels[row], weights[row] = label, weight
            row, nnz = row + 1, stop
            indptr[row] = nnz
            state[line_status.MERGED] += merges or (grammar.ordered and not ascend)
        elif outcome == line_status.BLANK:
            state[line_status.BLANKS] += 1
        else:
            result = note(bad, state, row, start, at, outcome)
        state[line_status.LINES] += 1
        while byte(text, at) != _NEWLINE:
            at += 1
        at += 1
    state[line_status.AT], state[line_status.ROWS], state[line_status.NNZ] = at, row, nnz
    return result
