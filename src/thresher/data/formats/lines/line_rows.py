"""Shared by compiled line parsers: numbers, ids, labels and weights, the loop over lines.

A format is a NamedTuple, its *grammar*: the class selects the code of `read_line`, and its fields are the
layout options that the code needs. Every grammar has a field `ordered`: whether unsorted rows are counted in
the report.

So a grammar is to the loop over lines what a part is to the kernels, and one loop (`parse_lines`) counts
lines, sorts rows and keeps the table of bad lines for all formats.

Formats with ids read ``id:value`` in two ways. The fast path reads the usual shapes, ``id:d.ddd`` and
``id:ddd``, eight digits at a time, given a mask of the non-digits in 64 bytes; it branches only on the shape
of the text. Everything else takes the careful path, which reports every error. Both yield the same numbers.
"""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import numpy as np
from numba.extending import overload

from thresher.data.features import crossing
from thresher.data.formats import line_status
from thresher.data.labels import LISTED, VALUES
from thresher.data.text.numbers import (
    FINE,
    HARD,
    NOT_A_NUMBER,
    OUT_OF_RANGE,
    TENS,
    decimal,
    looked_up,
    read_digits,
    read_id,
    read_number,
    scaled,
)
from thresher.data.text.sorting import merge_row
from thresher.data.text.words import (
    WINDOW,
    address,
    among,
    byte,
    byte_set,
    load_word,
    lowest_bit,
    short_number,
)
from thresher.engine.compile.jit import BORROWING, compiled_apart, kernel, scalar

_NUL, _TAB, _NEWLINE, _RETURN, _SPACE, _HASH, _COLON, _COMMA = 0, 9, 10, 13, 32, 35, 58, 44
_WAITING = byte_set(
    bytes([line_status.UNDECIDED, line_status.CRAMPED, line_status.UNSORTED, line_status.UNUSUAL])
)
_ENDS_TOKEN = byte_set(b" \t\n#")


def read_line(self, text, at, columns, nnz, domain, exact, targets, row, extra):
    """Read one line with grammar `self`. Stores features from `nnz` on, several labels in ``targets[row]``.

    ``extra = (crosses, naming)`` receives spans and names, if not None. Returns ``(position of the line end
    or of the error, nnz, whether keys ascend, label, weight, outcome)``.
    """
    return self.read_line(text, at, columns, nnz, domain, exact, targets, row, extra)


@overload(read_line, jit_options=BORROWING)
def _read_line(self, text, at, columns, nnz, domain, exact, targets, row, extra):
    return getattr(getattr(self, "instance_class", None), "read_line", None)


@scalar
def exact_number(text, at, exact):
    """`read_number`, looking up `HARD` numbers in ``exact = (positions, float32s, count)``."""
    end, value, status = read_number(text, at)
    if status == HARD:
        value, status = looked_up(at, exact)
    return end, value, status


@compiled_apart
def head_number(text, at, exact):
    """`exact_number`, not inlined, for the few numbers before the features."""
    return exact_number(text, at, exact)


@scalar
def ends_token(text, at):
    """Whether there is a blank, a comment or the end of the line at `at`."""
    code = byte(text, at)
    return among(code, _ENDS_TOKEN) or (code == _RETURN and byte(text, at + 1) == _NEWLINE)


@scalar
def skip_blanks(text, at):
    """The position of the first non-blank byte from `at` on."""
    while byte(text, at) == _SPACE or byte(text, at) == _TAB:
        at += 1
    return at


@scalar
def ends_line(text, at):
    """Whether the line ends at `at`."""
    return byte(text, at) == _NEWLINE or (byte(text, at) == _RETURN and byte(text, at + 1) == _NEWLINE)


@scalar
def next_line(text, at):
    """The position after the newline that ends the line of `at`."""
    while byte(text, at) != _NEWLINE:
        at += 1
    return at + 1


@scalar
def line_ends(text, at):
    """Whether at most a comment follows on the line."""
    code = byte(text, at)
    return code == _NEWLINE or code == _HASH or (code == _RETURN and byte(text, at + 1) == _NEWLINE)


@compiled_apart
def _word(text, at, domain):
    """`_label` if labels are words, which end at a blank, a comment or a colon."""
    end = at
    while not (ends_token(text, end) or byte(text, end) == _COLON or byte(text, end) == _NUL):
        end += 1
    label = line_status.word_label(text, at, end, domain)
    outcome = line_status.check_label(label, domain)
    return end if outcome == line_status.EXAMPLE else at, label, outcome


@scalar
def _label(text, at, domain, exact, listed):
    """Read the label at `at`, `listed` or single: ``(end or error position, label, outcome)``."""
    if domain.words != 0:
        return _word(text, at, domain)
    end, label, status = head_number(text, at, exact)
    if status == HARD:
        return at, label, line_status.UNDECIDED
    if status == NOT_A_NUMBER:
        return at, label, line_status.LABEL_NUMBER
    if status == OUT_OF_RANGE:
        return at, label, line_status.LABEL_RANGE
    if not (ends_token(text, end) or byte(text, end) == _COLON or (listed and byte(text, end) == _COMMA)):
        return end, label, line_status.AFTER_LABEL
    outcome = line_status.check_written(text, at, end, label, domain)
    return end if outcome == line_status.EXAMPLE else at, label, outcome


@scalar
def _list(text, at, domain, exact, target, empty):
    """Read the list of labels at `at`, which may be `empty`: ``(end or error position, first, outcome)``.

    Stores them in `target` (outputs,), unless it has length 0.
    """
    kind = domain.kind
    first, count, wanted = np.float32(0), np.int64(0), target.size
    if kind == LISTED:
        line_status.no_class(target)
    more = kind == VALUES or not (empty or byte(text, at) == _COLON)
    while more:
        end, label, outcome = _label(text, at, domain, exact, True)
        if outcome == line_status.EXAMPLE and wanted > 0:
            if domain.kind == VALUES:
                outcome = line_status.enter_value(target, count, label)
            else:
                outcome = line_status.enter_class(target, label, domain)
            end = end if outcome == line_status.EXAMPLE else at - (outcome == line_status.LABEL_COUNT)
        if outcome != line_status.EXAMPLE:
            return end, label, outcome
        first = label if count == 0 else first
        count += 1
        more = byte(text, end) == _COMMA
        at = end + more
    if wanted > 0:
        first = target[0]
    return at, first, line_status.LABEL_COUNT if kind == VALUES and count < wanted else line_status.EXAMPLE


@scalar
def read_labels(text, at, domain, exact, targets, row, empty):
    """Read the label field: one label, or a list stored in ``targets[row]``. Returns what `_label` does."""
    if targets is None:
        return _label(text, at, domain, exact, False)
    return _list(text, at, domain, exact, targets[row], empty)


@scalar
def read_weight(text, at, exact):
    """Read the importance weight at `at`: ``(end or error position, weight, outcome)``."""
    end, weight, status = head_number(text, at, exact)
    if status == HARD:
        return at, weight, line_status.UNDECIDED
    if status == NOT_A_NUMBER:
        return at, weight, line_status.WEIGHT_NUMBER
    if status == OUT_OF_RANGE or weight < np.float32(0):
        return at, weight, line_status.WEIGHT_SIGN
    if not ends_token(text, end):
        return end, weight, line_status.AFTER_VALUE
    return end, weight, line_status.EXAMPLE


@scalar
def note(bad, state, row, start, at, outcome):
    """Add a bad line, after `row` examples, to the table; `TABLE_FULL` if that fills it, else `DONE`."""
    entry = bad[state[line_status.BAD]]
    entry[0], entry[1], entry[2], entry[3], entry[4] = start, at, outcome, state[line_status.LINES], row
    state[line_status.BAD] += 1
    return line_status.TABLE_FULL if state[line_status.BAD] == len(bad) else line_status.DONE


@scalar
def _complete(keys, values, start, own, ascend, extra, counts):
    """Add the interactions of the row [start, own) and sort it: ``(stop, whether keys repeat, outcome)``."""
    stop, status = crossing.cross(extra[0], keys, values, start, own, extra[1])
    if status != crossing.DONE:
        return stop, False, line_status.CRAMPED if status == crossing.NO_ROOM else line_status.PRODUCTS
    if ascend and stop == own:
        return stop, False, line_status.EXAMPLE
    if counts is None:
        return stop, False, line_status.UNSORTED
    last, finite = merge_row(keys, values, start, stop, counts)
    return last, last < stop, line_status.EXAMPLE if finite else line_status.SUM_RANGE


@kernel
def parse_lines(grammar, text_bytes, size, columns, domain, state, bad, exact, extra, counts):
    """Parse the whole lines ``text_bytes[:size]`` from ``state[AT]`` on.

    Args:
        grammar: The format.
        text_bytes: uint8, with 64 spare bytes after `size`.
        size: Bytes of text.
        columns: ``(indptr, keys, values, labels, weights, targets)``, with room for all rows, twice the
            features, and one more row of `targets` (None if a line has one label).
        domain: A `labels.Range`.
        state: int64 (COUNTERS,), kept between calls.
        bad: int64 table that gets one row per bad line: start, position of the error, outcome, lines and
            examples before.
        exact: ``(positions, float32s)`` of `HARD` numbers.
        extra: ``(crosses, naming)``; each may be None.
        counts: Scratch space for `merge_row`, or None.

    Returns `DONE` or `TABLE_FULL`, or says what the line at ``state[AT]`` needs: `NEEDS_EXACT` for a number
    that is missing in `exact`, `NEEDS_ROOM` for its products, `NEEDS_SORTING` if it is unsorted and `counts`
    is None, or `NEEDS_CARE` if only a `careful` grammar can read it.
    """
    at, row, nnz, result = (
        state[line_status.AT],
        state[line_status.ROWS],
        state[line_status.NNZ],
        line_status.DONE,
    )
    indptr, keys, values, labels, weights, targets = columns
    text, features = address(text_bytes), (address(keys), address(values))
    known = (address(exact[0]), address(exact[1]), np.int64(len(exact[0])))
    indptr[row] = nnz
    while at < size and result == line_status.DONE:
        start = at
        crossing.clear_spans(extra[0])
        at, own, ascend, label, weight, outcome = read_line(
            grammar, text, start, features, nnz, domain, known, targets, row, extra
        )
        stop, merges = own, False
        if outcome == line_status.EXAMPLE:
            stop, merges, outcome = _complete(keys, values, nnz, own, ascend, extra, counts)
        if among(outcome, _WAITING):
            at, result = start, outcome
            break
        if outcome == line_status.EXAMPLE:
            labels[row], weights[row] = label, weight
            row, nnz = row + 1, stop
            indptr[row] = nnz
            state[line_status.MERGED] += merges or (grammar.ordered and not ascend)
        elif outcome == line_status.BLANK:
            state[line_status.BLANKS] += 1
        else:
            at = start if outcome == line_status.SUM_RANGE or outcome == line_status.PRODUCTS else at
            result = note(bad, state, row, start, at, outcome)
        state[line_status.LINES] += 1
        at = next_line(text, at)
    state[line_status.AT], state[line_status.ROWS], state[line_status.NNZ] = at, row, nnz
    return result


_PLUS, _MINUS, _DOT = 43, 45, 46
_NONE, _ONE = np.uint64(0), np.uint64(1)
_QID = np.uint64(int.from_bytes(b"qid:", "little"))
_FOUR_BYTES = np.uint64(2**32 - 1)


@scalar
def is_qid(text, at):
    """Whether there is a ``qid:`` at `at`."""
    return load_word(text, at) & _FOUR_BYTES == _QID


@scalar
def _begins_feature(text, at):
    begin = at + (byte(text, at) == _PLUS)
    end, _, _ = read_digits(text, begin, np.uint64(0))
    return end > begin and byte(text, end) == _COLON


@scalar
def _has_colon(text, at):
    while byte(text, at) != _COLON and not ends_token(text, at):
        at += 1
    return byte(text, at) == _COLON


@scalar
def _odd_head(text, start, first, at, label, outcome, domain, weighted, exact):
    """Read a first field that is not just a label: ``(end or error position, label, weight, outcome)``.

    The line begins at `start`, the field at `first`; `read_labels` returned ``(at, label, outcome)`` for it.
    """
    weight, weighted = np.float32(1), weighted and (first == start or at == first)
    if weighted and outcome == line_status.EXAMPLE:
        at, weight, outcome = read_weight(text, at + 1, exact)
        return at, label, weight, outcome
    if outcome == line_status.UNDECIDED:
        return at, label, weight, outcome
    unlabelled = is_qid(text, first) or (not weighted and _begins_feature(text, first))
    if unlabelled and domain.open:
        return first, np.float32(0), weight, line_status.EXAMPLE
    numbers = outcome in (
        line_status.EXAMPLE,
        line_status.LABEL_DOMAIN,
        line_status.LABEL_RANGE,
        line_status.LABEL_COUNT,
        line_status.LABEL_REPEATED,
    )
    if numbers and not weighted and _has_colon(text, first):
        return first, label, weight, line_status.NO_LABEL
    return at, label, weight, outcome


@scalar
def read_head(text, at, domain, exact, targets, row, weighted):
    """Read everything before the features: ``(at, label, weight, outcome)``."""
    weight, start = np.float32(1), at
    at = first = skip_blanks(text, at)
    if line_ends(text, at):
        return at, weight, weight, line_status.BLANK
    at, label, outcome = read_labels(text, at, domain, exact, targets, row, at > start)
    if outcome != line_status.EXAMPLE or byte(text, at) == _COLON:
        at, label, weight, outcome = _odd_head(
            text, start, first, at, label, outcome, domain, weighted, exact
        )
    if outcome != line_status.EXAMPLE:
        return at, label, weight, outcome
    return skip_blanks(text, at), label, weight, line_status.EXAMPLE


@scalar
def read_feature(text, at, exact):
    """Read any feature at `at`: ``(end or error position, key, value, outcome)``."""
    value = np.float32(0)
    begin = at + (byte(text, at) == _PLUS)
    end, key, fits = read_id(text, begin)
    if end == begin:
        return at, key, value, line_status.KEY
    if not fits:
        return at, key, value, line_status.KEY_RANGE
    if byte(text, end) != _COLON:
        return end, key, value, line_status.COLON
    at = end + 1
    end, value, status = exact_number(text, at, exact)
    if status == FINE:
        return end, key, value, line_status.EXAMPLE if ends_token(text, end) else line_status.AFTER_VALUE
    if status == HARD:
        return at, key, value, line_status.UNDECIDED
    return at, key, value, line_status.VALUE if status == NOT_A_NUMBER else line_status.VALUE_RANGE


@scalar
def _long(here, number, dot, decimals):
    """Read the value ``d.ddd`` at `number` with 9 to 18 decimals: ``(float32, whether it is certain)``."""
    mantissa, at, end = np.uint64(byte(here, number) - 48), dot + 1, dot + 1 + decimals
    while at < end:
        taken = min(end - at, 8)
        mantissa = mantissa * TENS[taken] + short_number(here, at, taken)
        at += taken
    value, status = scaled(mantissa, -decimals)
    return value, status == FINE


@scalar
def quick_feature(here, begin, others, odd):
    """Read a feature ``id:d.ddd`` or ``id:ddd`` at `begin`, given the `marks` of address `here`.

    Returns ``(end, remaining marks, key, value, whether it has this shape)``. It must end in the window. The
    character that ends it is not checked.
    """
    colon = lowest_bit(others)
    others &= others - _ONE
    end = lowest_bit(others)
    key, value, quick = np.uint64(0), np.float32(0), 0 < colon - begin <= 8
    if quick and byte(here, colon) == _COLON:
        key = short_number(here, begin, colon - begin)
        sign = byte(here, colon + 1) == _MINUS
        number, dot = colon + 1 + sign, end
        if byte(here, dot) == _DOT:
            others &= others - _ONE
            end = lowest_bit(others)
            decimals = end - dot - 1
            quick = dot == number + 1 and 0 < decimals <= 18
            if quick and decimals <= 8:
                mantissa = np.uint64(byte(here, number) - 48) * TENS[decimals]
                value, quick = decimal(mantissa + short_number(here, dot + 1, decimals), decimals)
            elif quick:
                value, quick = _long(here, number, dot, decimals)
        else:
            quick = 0 < end - number <= 8
            value = np.float32(np.int64(short_number(here, number, end - number)))
        quick = quick and end < WINDOW and odd << np.uint64(63 - end) == _NONE
        value = -value if sign else value
    else:
        quick = False
    return end, others & (others - _ONE), key, value, quick
