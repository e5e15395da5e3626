"""Outcomes of lines and rows, results of compiled parsers, and the counters they keep between calls."""

from __future__ import annotations

EXAMPLE, BLANK = 0, 1
UNDECIDED, CRAMPED, UNSORTED, UNUSUAL = 2, 3, 4, 5
"""A line that cannot be parsed yet: it needs an exact number, room for products, sorting, or more care."""

# Reasons why a line or row is bad
NO_LABEL, LABEL_NUMBER, LABEL_RANGE, LABEL_DOMAIN, LABEL_COUNT, LABEL_REPEATED, AFTER_LABEL = range(10, 17)
NO_WEIGHT, WEIGHT_NUMBER, WEIGHT_SIGN = range(17, 20)
KEY, KEY_RANGE, COLON, VALUE, VALUE_RANGE, AFTER_VALUE = range(20, 26)
NUMBER, NUMBER_RANGE, TOO_FEW, TOO_MANY, UNCLOSED, AFTER_QUOTE, NUL = range(26, 33)
SUM_RANGE, PRODUCTS = 33, 34
NO_OFFSET, OFFSET_NUMBER = 35, 36
OWN = 40
"""Line formats define their own reasons from here on."""
OUTCOMES = 64
"""A bad row of a table is recorded as ``outcome + OUTCOMES * column``."""

DONE, TABLE_FULL, NEEDS_EXACT, NEEDS_ROOM, NEEDS_SORTING, NEEDS_CARE = 0, 1, 2, 3, 4, 5
"""Results of a call: a line that cannot be parsed yet ends it, with the outcome as result."""
AT, ROWS, NNZ, LINES, BLANKS, MERGED, BAD, COUNTERS = range(8)
"""The counters in the `state` of calls, and their number."""
