"""Counting the names in a text of JSON, before a reader makes a column for each of them."""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import numpy as np

from thresher.data.class_words import BASIS, PRIME
from thresher.engine.compile.jit import kernel

_QUOTE, _COLON, _ESCAPE, _NEWLINE, _BLANK = 34, 58, 92, 10, 32


def names_in(text: bytes, most: int) -> int:
    """How many different names there are in lines of JSON, nested ones too; `most` + 1 if there are more."""
    table = np.zeros(1 << (2 * most).bit_length(), np.uint64)
    return int(_distinct(np.frombuffer(text, np.uint8), table, most))


@kernel
def _distinct(text, table, most):
    """Count the strings before a colon by their hashes (FNV-1a), which `table`, of zeros, receives."""
    count, code, inside, ended, at = 0, np.uint64(BASIS), False, False, 0
    while at < text.size and count <= most:
        letter = text[at]
        if inside and letter != _QUOTE and letter != _NEWLINE:
            code = (code ^ np.uint64(letter)) * np.uint64(PRIME)
            at += letter == _ESCAPE
        elif inside:
            inside, ended = False, letter == _QUOTE
        elif letter == _QUOTE:
            inside, code = True, np.uint64(BASIS)
        elif letter == _COLON and ended:
            slot = np.int64(code >> np.uint64(20)) & (table.size - 1)
            while table[slot] != 0 and table[slot] != code:
                slot = (slot + 1) & (table.size - 1)
            count += table[slot] == 0
            table[slot], ended = code, False
        elif letter > _BLANK:
            ended = False
        at += 1
    return count
