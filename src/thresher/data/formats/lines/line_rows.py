"""What compiled parsers of lines share: numbers, labels and weights, the loop over lines, outcomes.

A format is a NamedTuple, its *grammar*: its class selects the code of `read_line`, its fields are what
that needs of the layout. `ordered` is in all of them: whether rows that are not sorted are worth a word.
"""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import numpy as np
from numba.extending import overload

from thresher.data.features import crossing
from thresher.data.formats.label_rows import (
    check_label,
    enter_class,
    enter_value,
    no_class,
    word_label,
)
from thresher.data.formats.outcomes import (
    AFTER_LABEL,
    AFTER_VALUE,
    AT,
    BAD,
    BLANK,
    BLANKS,
    CRAMPED,
    DONE,
    EXAMPLE,
    LABEL_COUNT,
    LABEL_NUMBER,
    LABEL_RANGE,
    LINES,
    MERGED,
    NNZ,
    PRODUCTS,
    ROWS,
    SUM_RANGE,
    TABLE_FULL,
    UNDECIDED,
    UNSORTED,
    UNUSUAL,
    WEIGHT_NUMBER,
    WEIGHT_SIGN,
)
from thresher.data.labels import LISTED, VALUES
from thresher.data.text.numbers import HARD, NOT_A_NUMBER, OUT_OF_RANGE, looked_up, read_number
from thresher.data.text.sorting import merge_row
from thresher.data.text.words import address, among, byte, byte_set
from thresher.engine.jit import BORROWING, apart, kernel, scalar

_NUL, _TAB, _NEWLINE, _RETURN, _SPACE, _HASH, _COLON, _COMMA = 0, 9, 10, 13, 32, 35, 58, 44
_WAITING = byte_set(bytes([UNDECIDED, CRAMPED, UNSORTED, UNUSUAL]))
_ENDS_TOKEN = byte_set(b" \t\n#")


def read_line(self, text, at, columns, nnz, domain, exact, targets, row, extra):
    """One line by grammar `self`, its features stored from `nnz` on, several labels in ``targets[row]``.

    ``extra = (crosses, naming)`` is told of spans and names, where it is not None.
    Returns ``(place of the line end or of the error, nnz, ascend, label, weight, outcome)``.
    """
    return self.read_line(text, at, columns, nnz, domain, exact, targets, row, extra)


@overload(read_line, jit_options=BORROWING)
def _read_line(self, text, at, columns, nnz, domain, exact, targets, row, extra):
    return getattr(getattr(self, "instance_class", None), "read_line", None)


@scalar
def exact_number(text, at, exact):
    """`read_number`, with the numbers it finds hard looked up in ``exact = (places, float32s, count)``."""
    end, value, status = read_number(text, at)
    if status == HARD:
        value, status = looked_up(at, exact)
    return end, value, status


@apart
def head_number(text, at, exact):
    """The same of a number before the features, of which there are few."""
    return exact_number(text, at, exact)


@scalar
def ends_token(text, at):
    """Whether a blank, a comment or the end of the line stands here."""
    code = byte(text, at)
    return among(code, _ENDS_TOKEN) or (code == _RETURN and byte(text, at + 1) == _NEWLINE)


@scalar
def skip_blanks(text, at):
    """The place of the first byte from `at` on that is no blank."""
    while byte(text, at) == _SPACE or byte(text, at) == _TAB:
        at += 1
    return at


@scalar
def ends_line(text, at):
    """Whether the line ends here."""
    return byte(text, at) == _NEWLINE or (byte(text, at) == _RETURN and byte(text, at + 1) == _NEWLINE)


@scalar
def next_line(text, at):
    """The place behind the newline that ends the line of `at`."""
    while byte(text, at) != _NEWLINE:
        at += 1
    return at + 1


@scalar
def line_ends(text, at):
    """Whether nothing but a comment follows on the line."""
    code = byte(text, at)
    return code == _NEWLINE or code == _HASH or (code == _RETURN and byte(text, at + 1) == _NEWLINE)


@apart
def _word(text, at, domain):
    """The same where labels are words, which end at a blank, a comment or a colon."""
    end = at
    while not (ends_token(text, end) or byte(text, end) == _COLON or byte(text, end) == _NUL):
        end += 1
    label = word_label(text, at, end, domain)
    outcome = check_label(label, domain)
    return end if outcome == EXAMPLE else at, label, outcome


@scalar
def _label(text, at, domain, exact, listed):
    """The label at `at`, perhaps one of a list: ``(end or place of the error, label, outcome)``."""
    if domain.words != 0:
        return _word(text, at, domain)
    end, label, status = head_number(text, at, exact)
    if status == HARD:
        return at, label, UNDECIDED
    if status == NOT_A_NUMBER:
        return at, label, LABEL_NUMBER
    if status == OUT_OF_RANGE:
        return at, label, LABEL_RANGE
    if not (ends_token(text, end) or byte(text, end) == _COLON or (listed and byte(text, end) == _COMMA)):
        return end, label, AFTER_LABEL
    outcome = check_label(label, domain)
    return end if outcome == EXAMPLE else at, label, outcome


@scalar
def _enter(target, count, label, domain):
    """Note label `count` of a list in `target`: its number, or its class; the outcome."""
    if domain.kind == VALUES:
        return enter_value(target, count, label)
    return enter_class(target, label, domain)


@scalar
def _list(text, at, domain, exact, target, empty):
    """The list of labels at `at`, which may be `empty`: ``(end or place of the error, first, outcome)``.

    It goes to `target` (outputs,), if that has room for any.
    """
    kind = domain.kind
    first, count, wanted = np.float32(0), np.int64(0), target.size
    if kind == LISTED:
        no_class(target)
    more = kind == VALUES or not (empty or byte(text, at) == _COLON)
    while more:
        end, label, outcome = _label(text, at, domain, exact, True)
        if outcome == EXAMPLE and wanted > 0:
            outcome = _enter(target, count, label, domain)
            end = end if outcome == EXAMPLE else at - (outcome == LABEL_COUNT)
        if outcome != EXAMPLE:
            return end, label, outcome
        first = label if count == 0 else first
        count += 1
        more = byte(text, end) == _COMMA
        at = end + more
    if wanted > 0:
        first = target[0]
    return at, first, LABEL_COUNT if kind == VALUES and count < wanted else EXAMPLE


@scalar
def read_labels(text, at, domain, exact, targets, row, empty):
    """The label field: a number, or a list of them for ``targets[row]``. What `_label` returns."""
    if targets is None:
        return _label(text, at, domain, exact, False)
    return _list(text, at, domain, exact, targets[row], empty)


@scalar
def read_weight(text, at, exact):
    """The importance at `at`: ``(end or place of the error, weight, outcome)``."""
    end, weight, status = head_number(text, at, exact)
    if status == HARD:
        return at, weight, UNDECIDED
    if status == NOT_A_NUMBER:
        return at, weight, WEIGHT_NUMBER
    if status == OUT_OF_RANGE or weight < np.float32(0):
        return at, weight, WEIGHT_SIGN
    if not ends_token(text, end):
        return end, weight, AFTER_VALUE
    return end, weight, EXAMPLE


@scalar
def note(bad, state, start, at, outcome):
    """Enter a bad line in the table; whether that is full now."""
    entry = bad[state[BAD]]
    entry[0], entry[1], entry[2], entry[3] = start, at, outcome, state[LINES]
    state[BAD] += 1
    return TABLE_FULL if state[BAD] == len(bad) else DONE


@scalar
def _complete(keys, values, start, own, ascend, extra, counts):
    """Cross and sort the row [start, own): ``(stop, whether keys were repeated, outcome)``."""
    stop, status = crossing.cross(extra[0], keys, values, start, own, extra[1])
    if status != crossing.DONE:
        return stop, False, CRAMPED if status == crossing.NO_ROOM else PRODUCTS
    if ascend and stop == own:
        return stop, False, EXAMPLE
    if counts is None:
        return stop, False, UNSORTED
    last, finite = merge_row(keys, values, start, stop, counts)
    return last, last < stop, EXAMPLE if finite else SUM_RANGE


@kernel
def parse_lines(grammar, text_bytes, size, columns, domain, state, bad, exact, extra, counts):
    """Parse the whole lines ``text_bytes[:size]`` from ``state[AT]`` on.

    `text_bytes` is uint8 with 64 spare bytes behind `size`; ``columns = (indptr, keys, values,
    labels, weights, targets)`` have room for every row and twice every feature, and for a row more of
    targets (None for one label a line); `state` (COUNTERS,) int64 carries on from call to call. A bad
    line leaves a row (its start, place of the error, outcome, lines before it) in the int64 table
    `bad`. Returns `DONE`, `TABLE_FULL`, `NEEDS_EXACT` when the line at ``state[AT]`` holds a number
    that must be looked up in ``exact = (places, float32s)``, `NEEDS_ROOM` when its products do not fit,
    `NEEDS_SORTING` when `counts`, room for `merge_row`, is None and it is not sorted, or `NEEDS_CARE` when it
    has a shape that the grammar reads with `careful` only. ``extra = (crosses,
    naming)``, each perhaps None.
    """
    at, row, nnz, result = state[AT], state[ROWS], state[NNZ], DONE
    indptr, keys, values, labels, weights, targets = columns
    text, features = address(text_bytes), (address(keys), address(values))
    known = (address(exact[0]), address(exact[1]), np.int64(len(exact[0])))
    indptr[row] = nnz
    while at < size and result == DONE:
        start = at
        crossing.clear_spans(extra[0])
        at, own, ascend, label, weight, outcome = read_line(
            grammar, text, start, features, nnz, domain, known, targets, row, extra
        )
        stop, merges = own, False
        if outcome == EXAMPLE:
            stop, merges, outcome = _complete(keys, values, nnz, own, ascend, extra, counts)
        if among(outcome, _WAITING):
            at, result = start, outcome
            break
        if outcome == EXAMPLE:
            labels[row], weights[row] = label, weight
            row, nnz = row + 1, stop
            indptr[row] = nnz
            state[MERGED] += merges or (grammar.ordered and not ascend)
        elif outcome == BLANK:
            state[BLANKS] += 1
        else:
            at = start if outcome == SUM_RANGE or outcome == PRODUCTS else at
            result = note(bad, state, start, at, outcome)
        state[LINES] += 1
        at = next_line(text, at)
    state[AT], state[ROWS], state[NNZ] = at, row, nnz
    return result
