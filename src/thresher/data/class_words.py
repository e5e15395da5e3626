"""Labels that are words: the table in which readers look them up, or to which they add them.

The readers get the address of the table, so the same machine code reads words and numbers. When the words are
not yet known, a first reading starts with an empty table and the readers add to it; the label they return is
the number of the word, so in every format the classes are those of the valid rows. This takes one thread and
one reading of the label and the numeric columns, and happens only if one of the first labels is not a number.
In the CSV reader the lookup must be inlined: as a separate function it doubled the time for narrow rows with
numeric labels (46 to 98 ns per row).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from thresher.data.errors import DataError

MOST_CLASSES = 1 << 16
"""Maximum number of classes, words or numbers."""
COUNT, USED, ROOM, MOST, ENTRIES = range(5)
"""Positions in the int64 table: number of words; bytes of letters in use; bytes available; how many words
readers may add; first entry. An entry has `FIELDS` numbers: where the letters of the word begin, their
length (0: empty entry), and the number of the word."""
FIELDS = 3
OUTSIDE = float(1 << 30)
"""A label outside every domain: the value of a word that is not a class."""
BASIS, PRIME = 0xCBF29CE484222325, 0x100000001B3
"""Constants of the FNV-1a hash."""
_LETTERS = 1 << 24
_SHOWN = 8
_FEW = 1_000
"""Classes that may have a row each"""
_WHOLE = re.compile("-?[0-9]+", re.ASCII)


class WordTable:
    """A hash table from words to numbers, which compiled readers use by address.

    Given `words`, word k has the number ``first + k * step``, and readers add no others. Without `words`,
    readers add each new word, numbered from 0 on. Any other word has the value `otherwise`.
    """

    def __init__(
        self, words: Sequence[str] = (), first: int = 0, step: int = 1, otherwise: float = OUTSIDE
    ) -> None:
        self._otherwise, self.adds = otherwise, not words
        most = MOST_CLASSES if self.adds else len(words)
        numbered = {word.encode(): k for k, word in enumerate(words)}
        for word in words:
            for other in _also_written(word):
                numbered.setdefault(other.encode(), numbered[word.encode()])
        room = _LETTERS if self.adds else sum(map(len, numbered))
        self._slots = (1 << (2 * max(most, len(numbered))).bit_length()) - 1
        self._table = np.zeros(ENTRIES + FIELDS * (self._slots + 1), np.int64)
        self._table[[ROOM, MOST]] = room, most if self.adds else 0
        self._letters = np.zeros(room, np.uint8)
        self._known: dict[bytes, int] = {}
        for letters, k in numbered.items():
            self._enter(letters, first + k * step)

    def code(self) -> tuple[int, int, int]:
        """Addresses of the table and of the letters, and the number of slots less 1. Keep the table alive."""
        return self._table.ctypes.data, self._letters.ctypes.data, self._slots

    def number_of(self, word: bytes) -> float:
        """The number of a word, which is added if this table takes new words; otherwise `otherwise`."""
        found = self._known.get(word)
        count, used = int(self._table[COUNT]), int(self._table[USED])
        if found is None and word and count < self._table[MOST] and used + len(word) <= self._table[ROOM]:
            found = count
            self._enter(word, found)
        return self._otherwise if found is None else found

    def _enter(self, word: bytes, number: int) -> None:
        """Add a word, as the compiled `line_status.word_label` does."""
        code, begin = BASIS, int(self._table[USED])
        for byte in word:
            code = ((code ^ byte) * PRIME) & (1 << 64) - 1
        slot = (code ^ code >> 32) & self._slots
        while self._table[ENTRIES + FIELDS * slot + 1]:
            slot = (slot + 1) & self._slots
        entry = ENTRIES + FIELDS * slot
        self._table[entry : entry + FIELDS] = begin, len(word), number
        self._letters[begin : begin + len(word)] = np.frombuffer(word, np.uint8)
        self._table[USED] += len(word)
        self._table[COUNT] += 1
        self._known[word] = number

    @property
    def are_numbers(self) -> bool:
        """Whether all words are whole numbers."""
        return all(_WHOLE.fullmatch(word.decode().removesuffix(".0")) for word in self._known)

    def words(self) -> dict[int, bytes]:
        """The words that readers added, by number."""
        entries, letters = self._table[ENTRIES:].reshape(-1, FIELDS), self._letters.data
        used = entries[entries[:, 1] > 0].tolist()
        return {number: bytes(letters[begin : begin + size]) for begin, size, number in used}


def is_boolean(word: str) -> bool:
    """Whether a word is true or false, in any case."""
    return word.lower() in ("true", "false")


def _also_written(word: str) -> list[str]:
    """Other ways to write a word that is a boolean or a whole number."""
    if is_boolean(word):
        return [word.lower(), word.upper(), word.capitalize()]
    whole = word.removesuffix(".0")
    return [whole, f"{whole}.0"] if _WHOLE.fullmatch(whole) else []


def check_words(words: Sequence[str]) -> None:
    """Raise `DataError` unless `words` can be the names of classes."""
    if len(words) == 1 or len(words) > MOST_CLASSES:
        raise DataError(f"expected 2 to {MOST_CLASSES:,} classes, found {len(words):,}")
    for word in words:
        if not word or word != word.strip(" ") or any(c in word for c in "\n\r\0"):
            rule = "may not be empty, begin or end with a blank, or contain a line break or a NUL"
            raise DataError(f"{word!r} cannot be a label: the name of a class {rule}")
    if len(set(words)) < len(words):
        raise DataError(f"two classes have the same name: {listed_words(words)}")


def check_repeated(classes: int, rows: int, name: str) -> None:
    """Raise `DataError` for many labels most of which occur once: each row takes time for every class."""
    if classes > _FEW and 2 * classes > rows:
        raise DataError(
            f"{name}: {classes:,} different labels in {rows:,} rows, most of them in only one, which teaches"
            " nothing: take another column as the label, or give all rare labels one name"
        )


def listed_words(words: Sequence[str]) -> str:
    """The first of the words, and how many more there are, for a message."""
    more = f" and {len(words) - _SHOWN:,} more" if len(words) > _SHOWN else ""
    return ", ".join(words[:_SHOWN]) + more
