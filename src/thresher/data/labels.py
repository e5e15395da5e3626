"""Label domains: which labels a loss and its outputs allow; the table of labels that are words.

Readers look words up in the table, or add them. They get its address, so the same machine code reads words
and numbers. When the words are not yet known, a first reading starts with an empty table and the readers add
to it; the label they return is the number of the word, so in every format the classes are those of the valid
rows. This takes one thread and one reading of the label and the numeric columns, and happens only if one of
the first labels is not a number. In the CSV reader the lookup must be inlined: as a separate function it
doubled the time for narrow rows with numeric labels (46 to 98 ns per row).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.errors import DataError
from thresher.options.messages import mention, mention_command

ONE, VALUES, LISTED = 0, 1, 2
"""What a label field holds: one number, a number for each output, or a list of classes."""
_NO_OTHERS = " (new classes need a new model: train it on all data)"


class Range(NamedTuple):
    """A domain, for compiled code."""

    low: float
    high: float
    whole: bool
    kind: int
    open: bool
    words: int
    """address of a `WordTable`; 0 if labels are numbers"""
    letters: int
    slots: int


@dataclass(frozen=True)
class Domain:
    """Which labels are allowed: numbers from `low` to `high`, or whole numbers in that range."""

    name: str
    """its name, which `domain_of` parses"""
    low: float
    high: float
    whole: bool
    meaning: str
    """what is expected, for messages"""
    kind: int = ONE
    """one label per example; `VALUES`: a number for each output; `LISTED`: a set of classes, as targets of 1
    (in the set) and -1"""
    width: int | None = None
    """targets per example; None for one label, 0 for lists of any length, which are ignored"""
    open: bool = False
    """whether labels are ignored and may be missing"""
    settled: bool = False
    """whether a model has learned these classes and goes on: there can be no others"""
    words: WordTable | None = field(default=None, compare=False, repr=False)
    """the words used as labels; None: labels are numbers"""
    most: int = 0
    """how many classes there may be, if they are met on the way; 0 if they are given"""

    def code(self) -> Range:
        """This domain for compiled code."""
        words = self.words.code() if self.words else (0, 0, 0)
        return Range(self.low, self.high, self.whole, self.kind, self.open, *words)

    @property
    def has_classes(self) -> bool:
        """Whether a label is one class, and so may be a word."""
        return self.kind == ONE and not self.open and (self.name == "binary" or ":" in self.name)

    def of_words(self, words: Sequence[str]) -> Domain:
        """This domain with `words` as labels; raises `DataError` unless there is one per class."""
        if self.most and not self.words:
            return replace(self, words=WordTable(words, most=self.most))
        if not words or self.kind != ONE or self.words:
            return self
        if self.open:
            return replace(self, words=WordTable(words, otherwise=0.0))
        self.check_words(words)
        step = int(self.high - self.low) // (len(words) - 1)
        meaning = f"one of the classes {list_words(words)} as label{_NO_OTHERS * self.settled}"
        return replace(self, meaning=meaning, words=WordTable(words, int(self.low), step))

    def closed(self, words: Sequence[str]) -> Domain:
        """This domain of a model that learns no more: of classes that were met on the way, these `words`."""
        if not self.most:
            return self
        meaning = (
            f"one of the classes {list_words(words)} as label, which the model has met (learn rows of"
            f" others with {mention_command('train')} {mention(continue_from='MODEL')}, or leave them out:"
            f" {mention(on_error='skip')})"
        )
        high = float(len(words) - 1)
        return replace(self, high=high, meaning=meaning, words=WordTable(words), most=0)

    def sharing(self, words: WordTable | None) -> Domain:
        """This domain with the classes that other data have met, and meet; this one if `words` is None."""
        return self if words is None else replace(self, words=words)

    def of_model(self) -> Domain:
        """This domain for the data of a model that goes on, and has its classes."""
        meaning = _TWO if self.name == "binary" else self.meaning
        meaning += _NO_OTHERS * (self.has_classes and not self.most)
        return replace(self, settled=True, meaning=meaning)

    def check_words(self, words: Sequence[str]) -> None:
        """Raise `DataError` unless there is a class for each word."""
        if self.most:
            return
        if not self.has_classes:
            raise DataError(f"labels are words ({list_words(words)}), but only classes can be words")
        count = 2 if self.name == "binary" else int(self.high - self.low) + 1
        if count != len(words):
            outputs = mention(outputs=f"classes:1-{len(words)}")
            reason = f"there are {count} classes, but {len(words)} words: {list_words(words)}"
            raise DataError(f"{reason}; for all these use {outputs}")

    def allows(self, labels: NDArray[Any]) -> NDArray[np.bool_]:
        """Mask of the `labels` that are in the domain, of the same shape."""
        fits: NDArray[np.bool_] = (labels >= self.low) & (labels <= self.high)
        return fits & (labels == np.floor(labels)) if self.whole else fits

    def check(self, labels: NDArray[Any], targets: NDArray[Any] | None = None) -> None:
        """Raise `DataError` for the first label outside the domain.

        Checks `labels` (n,), or `targets` (n, outputs) if an example has several labels.
        """
        if self.width is not None:
            found = 1 if targets is None else targets.shape[1]
            if targets is None and not self.width:
                return
            if targets is None or self.width not in (0, found):
                raise DataError(f"expected {self.width} labels for each example, found {found}")
            labels = targets
        each = DOMAINS["binary"] if self.kind == LISTED else self
        wrong = np.argwhere(~each.allows(labels))
        if len(wrong):
            place = tuple(wrong[0])
            one = str(labels[place]).removesuffix(".0")
            raise DataError(f"example {place[0] + 1}: expected {each.meaning}, found {one}")


_LARGEST = float(np.finfo(np.float32).max)
_SMALLEST = float(np.finfo(np.float32).smallest_subnormal)
_TWO = "a label -1, 0 or 1"
_BINARY = (
    "a label -1, 0 or 1"
    f" (for other classes: {mention(classes='A,B')}; for many: {mention(outputs='classes')};"
    f" for a number: {mention(loss='squared')})"
)
_KNOWN = (
    Domain("binary", -1.0, 1.0, True, _BINARY),
    Domain("real", -_LARGEST, _LARGEST, False, "a finite number as label"),
    Domain("nonnegative", 0.0, _LARGEST, False, "a label that is not negative"),
    Domain("positive", _SMALLEST, _LARGEST, False, "a label above 0"),
    Domain("whole", -(2.0**24), 2.0**24, True, "a whole number from -16777216 to 16777216 as label"),
    Domain("open", -_LARGEST, _LARGEST, False, "a finite number as label", open=True),
    Domain("values", -_LARGEST, _LARGEST, False, "finite numbers as labels", VALUES, 0, open=True),
    Domain("labels", -_LARGEST, _LARGEST, False, "finite numbers as labels", LISTED, 0, open=True),
)
DOMAINS = {domain.name: domain for domain in _KNOWN}
"""Domains without a size. In `binary`, 0 and -1 both mean the negative class. `open`, and the lists of any
length `values` and `labels`, are for labels that are ignored. `domain_of` makes the other domains.
"""
_WORD = re.compile(rb"[^\W\d][^:]*$|[^\w\s:.?]+$")
_MISSING = re.compile(rb"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_NUMBER = re.compile(
    rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|[+-]?(?:nan|inf|infinity)|n/?a|null|none|\?|",
    re.IGNORECASE,
)


def any_words() -> Domain:
    """A domain of any labels; each distinct one is added to `words`."""
    meaning = f"one of at most {MOST_CLASSES:,} different labels, and no list of numbers"
    return Domain("words", 0.0, float(MOST_CLASSES), True, meaning, words=WordTable(most=MOST_CLASSES))


NAME_WORDS = f"; to use words as labels, name them: {mention(classes='WORD,WORD,...')}"
"""A hint"""


def trained_on(domain: Domain) -> str:
    """The hint for a model in place of `NAME_WORDS`: the labels that it was trained on."""
    low, high = f"{domain.low:g}", f"{domain.high:g}"
    known = f"{low} and {high}" if domain.high - domain.low == 1 else f"from {low} to {high}"
    known = "1, and 0 or -1" if domain.name == "binary" else known
    return f"; the labels in training were {known}: write these in place of words"


def hint_of_words(found: bytes, domain: Domain) -> str:
    """A hint to add to the message about a label that is a word, or an empty string.

    Words such as ``none``, which may also mean that a label is missing, are among them; NaN is not.
    """
    if not domain.has_classes or domain.words or not _WORD.match(found) or _MISSING.fullmatch(found):
        return ""
    return NAME_WORDS


def is_number(label: bytes) -> bool:
    """Whether a label is a number, or a missing value such as ``NA`` or ``?``."""
    return _NUMBER.fullmatch(label.strip()) is not None


def domain_of(name: str | Domain) -> Domain:
    """The domain called `name`, or `name` itself if it is a domain.

    Besides `DOMAINS`, there are: one of the classes from LO to HI, ``classes:LO-HI``; any of them,
    ``labels:LO-HI``; at most N classes, ``classes:max=N``, numbered from 0 as they come; and K numbers, all
    of the domain NAME, ``values:K,NAME``. Raises `DataError` for a bad range, and if there is no such domain.
    """
    if isinstance(name, Domain):
        return name
    name = str(name)
    if found := re.fullmatch(r"(classes|labels):(-?\d+)-(-?\d+)", name):
        form, low, high = found[1], int(found[2]), int(found[3])
        if not 1 <= high - low < MOST_CLASSES or max(abs(low), abs(high)) > 1 << 24:
            raise DataError(f"{form} {low}-{high}: give 2 to {MOST_CLASSES} classes, from low to high")
        kind, width = (LISTED, high - low + 1) if form == "labels" else (ONE, None)
        meaning = f"a class from {low} to {high} as label"
        return Domain(f"{form}:{low}-{high}", float(low), float(high), True, meaning, kind, width)
    if found := re.fullmatch(r"classes:max=(\d+)", name):
        most = int(found[1])
        meaning = (
            f"one of at most {most:,} different labels, none with a line break"
            f" (for lists: {mention(outputs='labels:LO-HI')};"
            f" for more, unless they are ids: {mention(outputs='classes:max=N')})"
        )
        return Domain(f"classes:max={most}", 0.0, float(most - 1), True, meaning, most=most)
    if (found := re.fullmatch(r"values:(\d+),(\w+)", name)) and found[2] in DOMAINS:
        count, each = int(found[1]), DOMAINS[found[2]]
        return replace(each, name=f"values:{count},{found[2]}", kind=VALUES, width=count, open=False)
    if name not in DOMAINS:
        known = ", ".join(DOMAINS)
        raise DataError(
            f"no label domain '{name}': choose from {known}, classes:LO-HI, labels:LO-HI and values:K,NAME"
        )
    return DOMAINS[name]


MOST_CLASSES = 1 << 16
"""Maximum number of classes, words or numbers."""
MOST_MET = 1_000
"""Maximum number of classes that are met on the way, unless the user gives another"""
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
_WHOLE, _NO_CLASS = re.compile(rb"0|-?[1-9][0-9]*"), re.compile(rb"[-0-9]*,[-0-9,]*|.*[\n\r\0].*", re.DOTALL)
"""A whole number in its plain form; a list of numbers and what breaks lines, which are no names of classes"""


ADDING = Lock()
"""Held by threads that may add words to a table, or read those of others, at once"""


class WordTable:
    """A hash table from words to numbers, which compiled readers use by address.

    Word k has the number ``first + k * step``. Readers add new words until there are `most`. Any other word
    has the value `otherwise`. A whole number is the same word with ``.0``.
    """

    def __init__(
        self,
        words: Sequence[str] = (),
        first: int = 0,
        step: int = 1,
        otherwise: float = OUTSIDE,
        most: int = 0,
    ) -> None:
        self._otherwise, self.adds = otherwise, most > 0
        numbered = {_plain(word.encode()): k for k, word in enumerate(words)}
        for k, word in enumerate(() if self.adds else words):
            for other in (word.lower(), word.upper(), word.capitalize()) if is_boolean(word) else ():
                numbered.setdefault(other.encode(), k)
        room = _LETTERS if self.adds else sum(map(len, numbered))
        self._slots = (1 << (2 * max(most, len(numbered))).bit_length()) - 1
        self._table = np.zeros(ENTRIES + FIELDS * (self._slots + 1), np.int64)
        self._table[[ROOM, MOST]] = room, most
        self._letters = np.zeros(room, np.uint8)
        self._known: dict[bytes, int] = {}
        for letters, k in numbered.items():
            self._enter(letters, first + k * step)

    def code(self) -> tuple[int, int, int]:
        """Addresses of the table and of the letters, and the number of slots less 1. Keep the table alive."""
        return self._table.ctypes.data, self._letters.ctypes.data, self._slots

    def number_of(self, word: bytes) -> float:
        """The number of a word, which is added if this table takes new words; otherwise `otherwise`."""
        word = _plain(word)
        found = self._known.get(word)
        count, used = int(self._table[COUNT]), int(self._table[USED])
        if found is None and self.adds and count > len(self._known):  # compiled readers have added some
            self._known = {letters: number for number, letters in self.words().items()}
            found = self._known.get(word)
        fits = word and count < self._table[MOST] and used + len(word) <= self._table[ROOM]
        if found is None and fits and not _NO_CLASS.fullmatch(word):
            found = count
            self._enter(word, found)
        return self._otherwise if found is None else found

    def add(self, words: Sequence[str]) -> int:
        """Add those of the words that are not known; the number of the last one, -1 without any."""
        numbers = [self.number_of(word.encode()) for word in words]
        return int(numbers[-1]) if numbers else -1

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
    def count(self) -> int:
        """Number of words; of given ones, those spelled in several ways count as often."""
        return int(self._table[COUNT])

    def __getitem__(self, number: int) -> str:
        """The word with this number: the table on the screen names classes as they come."""
        return self.names()[number]

    def names(self) -> tuple[str, ...]:
        """The words in the order of their numbers, from 0 on. `DataError` for one that is not UTF-8."""
        with ADDING:
            found = self.words()
        try:
            return tuple(found[k].decode() for k in range(len(found)))
        except UnicodeDecodeError as error:
            raise DataError(f"the label {error.object!r} is not UTF-8") from error

    @property
    def are_numbers(self) -> bool:
        """Whether all words are whole numbers."""
        return all(map(_WHOLE.fullmatch, self.words().values()))

    def words(self) -> dict[int, bytes]:
        """The words that readers added, by number."""
        entries, letters = self._table[ENTRIES:].reshape(-1, FIELDS), self._letters.data
        used = entries[entries[:, 1] > 0].tolist()
        return {number: bytes(letters[begin : begin + size]) for begin, size, number in used}


def _plain(word: bytes) -> bytes:
    """A word as it is looked up: a whole number without ``.0``, as in `line_status`."""
    whole = word.removesuffix(b".0")
    return whole if _WHOLE.fullmatch(whole) else word


@lru_cache(maxsize=8)
def give_back(words: tuple[str, ...]) -> NDArray[Any]:
    """Classes that were met on the way as they are given back: numbers if all are whole, otherwise texts."""
    whole = all(_WHOLE.fullmatch(word.encode()) for word in words)
    return np.array([*map(int, words)]) if whole else np.array(words, object)


def is_boolean(word: str) -> bool:
    """Whether a word is true or false, in any case."""
    return word.lower() in ("true", "false")


def check_words(words: Sequence[str]) -> None:
    """Raise `DataError` unless `words` can be the names of classes."""
    if len(words) > MOST_CLASSES:
        raise DataError(f"expected 2 to {MOST_CLASSES:,} classes, found {len(words):,}")
    for word in words:
        if not word or word != word.strip(" ") or any(c in word for c in "\n\r\0"):
            rule = "may not be empty, begin or end with a blank, or contain a line break or a NUL"
            raise DataError(f"{word!r} cannot be a label: the name of a class {rule}")
    if len(set(words)) < len(words):
        raise DataError(f"two classes have the same name: {list_words(words)}")


def check_repeated(classes: int, rows: int, name: str) -> None:
    """Raise `DataError` for many labels most of which occur once: each row takes time for every class."""
    if classes > _FEW and 2 * classes > rows:
        raise DataError(
            f"{name}: {classes:,} different labels in {rows:,} rows, most of them in only one, which teaches"
            " nothing: take another column as the label, or give all rare labels one name"
        )


def list_words(words: Sequence[str]) -> str:
    """The first of the words, and how many more there are, for a message."""
    more = f" and {len(words) - _SHOWN:,} more" if len(words) > _SHOWN else ""
    return ", ".join(words[:_SHOWN]) + more
