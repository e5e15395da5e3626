"""The beginning of a line of VW text, before the features: ``[label [importance [base]]] [tag]|``."""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import numpy as np

from thresher.data.formats.lines.line_rows import (
    ends_line,
    head_number,
    read_labels,
    read_weight,
    skip_blanks,
)
from thresher.data.formats.outcomes import AFTER_LABEL, AFTER_VALUE, BLANK, EXAMPLE, NO_LABEL, OWN
from thresher.data.labels import LISTED
from thresher.data.text.numbers import FINE
from thresher.data.text.words import byte
from thresher.engine.jit import scalar

# Reasons for bad lines specific to VW text
BAR, AFTER_TAG, FIELDS, BASE = range(OWN, OWN + 4)
LAST = BASE

_NUL, _TAB, _SPACE, _QUOTE, _BAR = 0, 9, 32, 39, 124


@scalar
def breaks(text, at):
    """Whether there is a blank, a bar or the end of the line at `at`."""
    code = byte(text, at)
    return code == _SPACE or code == _TAB or code == _BAR or ends_line(text, at)


@scalar
def _word_end(text, at):
    while byte(text, at) != _NUL and not breaks(text, at):
        at += 1
    return at


@scalar
def _field(text, at, end, place, domain, exact, targets, row):
    """Read field `place` of the label, the word [at, end): ``(position of the error, number, outcome)``."""
    if place == 0:
        stop, number, outcome = read_labels(text, at, domain, exact, targets, row, False)
        return (stop, number, AFTER_LABEL) if outcome == EXAMPLE and stop != end else (stop, number, outcome)
    if place == 1:
        stop, number, outcome = read_weight(text, at, exact)
        return (stop, number, AFTER_VALUE) if outcome == EXAMPLE and stop != end else (stop, number, outcome)
    stop, number, status = head_number(text, at, exact)
    if place > 2:
        return at, number, FIELDS
    zero = status == FINE and number == np.float32(0) and stop == end
    return at, number, EXAMPLE if zero else BASE


@scalar
def _unlabelled(text, at, domain, exact, targets, row):
    """The label of an example without a label field: ``(label, outcome)``."""
    if domain.kind == LISTED:
        _, label, outcome = read_labels(text, at, domain, exact, targets, row, True)
        return label, outcome
    return np.float32(0), EXAMPLE if domain.open else NO_LABEL


@scalar
def read_head(text, at, domain, exact, targets, row):
    """Read everything before the first bar: ``(position of the bar or error, label, weight, outcome)``."""
    label, weight, fields = np.float32(0), np.float32(1), 0
    at = first = skip_blanks(text, at)
    if ends_line(text, at):
        return at, label, weight, BLANK
    while byte(text, at) != _BAR:
        if ends_line(text, at):
            return at, label, weight, BAR
        end = _word_end(text, at)
        if byte(text, at) == _QUOTE or byte(text, end) == _BAR:
            at = skip_blanks(text, end)
            if byte(text, at) != _BAR:
                return at, label, weight, AFTER_TAG
            break
        stop, number, outcome = _field(text, at, end, fields, domain, exact, targets, row)
        if outcome != EXAMPLE:
            return stop, label, weight, outcome
        if fields == 0:
            label = number
        elif fields == 1:
            weight = number
        fields += 1
        at = skip_blanks(text, end)
    if fields == 0:
        label, outcome = _unlabelled(text, first, domain, exact, targets, row)
        return at if outcome == EXAMPLE else first, label, weight, outcome
    return at, label, weight, EXAMPLE
