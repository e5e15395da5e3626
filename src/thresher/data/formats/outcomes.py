"""What comes of a line or row, and of a call of a compiled parser; the counters that calls carry on."""

from __future__ import annotations

EXAMPLE, BLANK = 0, 1
UNDECIDED, CRAMPED, UNSORTED, UNUSUAL = 2, 3, 4, 5
"""A line that cannot be done yet: an exact number is wanted, room for products, sorting, or more care."""

# The reasons for which a line or row is bad.
NO_LABEL, LABEL_NUMBER, LABEL_RANGE, LABEL_DOMAIN, LABEL_COUNT, LABEL_REPEATED, AFTER_LABEL = range(10, 17)
NO_WEIGHT, WEIGHT_NUMBER, WEIGHT_SIGN = range(17, 20)
KEY, KEY_RANGE, COLON, VALUE, VALUE_RANGE, AFTER_VALUE = range(20, 26)
NUMBER, NUMBER_RANGE, TOO_FEW, TOO_MANY, UNCLOSED, AFTER_QUOTE, NUL = range(26, 33)
SUM_RANGE, PRODUCTS = 33, 34
OWN = 40
"""From here on a format of lines has reasons of its own."""
OUTCOMES = 64
"""A bad row of a table is noted as ``outcome + OUTCOMES * column``."""

DONE, TABLE_FULL, NEEDS_EXACT, NEEDS_ROOM, NEEDS_SORTING, NEEDS_CARE = 0, 1, 2, 3, 4, 5
"""What came of a call: a line that cannot be done yet ends it, by the number of its outcome."""
AT, ROWS, NNZ, LINES, BLANKS, MERGED, BAD, COUNTERS = range(8)
"""The counters in the `state` of calls, and how many there are."""
