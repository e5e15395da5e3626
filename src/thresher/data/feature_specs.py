"""Which products of features and which n-grams of a text are features, as a layout names them.

Lists of names are one text, separated by commas; a name with a comma is in double quotes, as in CSV.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from thresher.data.errors import DataError

_PIECE = re.compile(r'"(?:[^"]|"")*"(?=,|\Z)|[^,]*')
_QUOTED = re.compile(r'"(?:[^"]|"")*"')


def pieces_in(text: str) -> list[str]:
    """The pieces of a list as they are written, empty ones too.

    >>> pieces_in('a,"price, net",,"b')
    ['a', '"price, net"', '', '"b']
    """
    found, at = list[str](), 0
    while at <= len(text):
        found.append(_PIECE.match(text, at)[0])  # type: ignore[index]  # it matches an empty piece too
        at += len(found[-1]) + 1
    return found


def unquote(piece: str) -> str:
    """The name that a piece of a list writes.

    >>> unquote('"5"" disk"'), unquote('5" disk')
    ('5" disk', '5" disk')
    """
    return piece[1:-1].replace('""', '"') if _QUOTED.fullmatch(piece) else piece


def names_in(text: str) -> tuple[str, ...]:
    """The names in a list; an empty name is only one in quotes.

    >>> names_in('a,"price, net",,b')
    ('a', 'price, net', 'b')
    """
    return tuple(unquote(piece) for piece in pieces_in(text) if piece)


def in_list(name: str) -> str:
    """A name as it is written in a list."""
    plain = name and "," not in name and not name.startswith('"')
    return name if plain else '"' + name.replace('"', '""') + '"'


def as_list(names: Iterable[str]) -> str:
    '''The inverse of `names_in`.

    >>> as_list(["a", "price, net", '"b', "c"])
    'a,"price, net","""b",c'
    '''
    return ",".join(map(in_list, names))


ANY = "*"
"""A factor that stands for every namespace."""
_MOST = 62


class Terms(NamedTuple):
    """Products of two or three factors."""

    factors: list[str]
    """the distinct factors: namespaces, or columns and patterns of columns"""
    terms: list[tuple[int, ...]]
    """the factors of each product, as indices into `factors`"""


def terms_of(interact: Sequence[str]) -> Terms:
    """Parse any number of ``A,B`` and ``A,B,C``; raises `DataError` for anything else.

    >>> terms_of(["user,ad", "user,user"])
    Terms(factors=['user', 'ad'], terms=[(0, 1), (0, 0)])
    """
    factors, terms = list[str](), list[tuple[int, ...]]()
    for spec in interact:
        pieces = [*map(unquote, pieces_in(spec))]
        if len(pieces) not in (2, 3):
            raise DataError(f"an interaction has two or three factors, A,B or A,B,C, not '{spec}'")
        for piece in pieces:
            if piece not in factors:
                factors.append(piece)
        terms.append(tuple(factors.index(piece) for piece in pieces))
    if len(factors) > _MOST:
        raise DataError(
            f"interactions with {len(factors)} different factors; at most {_MOST} (a pattern counts once)"
        )
    return Terms(factors, terms)


COUNT, BINARY, LOG = 0, 1, 2
WORDS, LETTERS, BLANKS = "words", "letters", "blanks"
TOKENS = (WORDS, LETTERS, BLANKS)
_SCALES = {"count": COUNT, "binary": BINARY, "log": LOG}
_SWITCHES = {"norm": {"norm": True}, "case": {"lowercase": False}}
_LONGEST = 64


class Grams(NamedTuple):
    """Which n-grams are counted in a text, and how."""

    words: tuple[int, int] = (1, 1)
    """shortest and longest word n-gram; (0, 0) for none"""
    chars: tuple[int, int] = (0, 0)
    """shortest and longest character n-gram, across words with one space between; (0, 0) for none"""
    lowercase: bool = True
    shortest: int = 2
    """minimum length of a word, in characters"""
    scale: str = "count"
    """the value of an n-gram that occurs c times: ``count`` c, ``binary`` 1, ``log`` 1 + log c"""
    norm: bool = False
    """divide the values of a text by their Euclidean norm"""
    tokens: str = WORDS
    """characters of a word: ``words`` letters, digits and underscores; ``letters`` letters; ``blanks``
    anything but white space"""

    def code(self) -> tuple[Any, ...]:
        """These settings as a tuple of numbers for compiled code."""
        return (*self.words, *self.chars, self.lowercase, self.shortest, _SCALES[self.scale], self.norm)


@lru_cache(64)  # every layout that is made parses it
def grams_of(spec: str) -> Grams:
    """Parse ``words=1-2,chars=3-5,case,shortest=1,scale=log,norm``; raises `DataError` for anything else.

    Every part is optional; ``case`` keeps capital letters.

    >>> grams_of("words=1-2,norm").norm
    True
    """
    made = Grams()
    given: dict[str, Any]
    for piece in filter(None, spec.split(",")):
        name, equals, value = piece.partition("=")
        if name in ("words", "chars") and equals:
            sizes = re.fullmatch(r"(\d+)(?:-(\d*))?", value, re.ASCII)
            span = (int(sizes[1]), int(sizes[2] or sizes[1])) if sizes else (1, 0)
            if span != (0, 0) and not 1 <= span[0] <= span[1] <= _LONGEST:
                raise DataError(
                    f"'{piece}': give LO-HI, from 1 to {_LONGEST}, such as {name}=1-2, or 0 for none"
                )
            given = {name: span}
        elif (name == "tokens" and value in TOKENS) or (name == "scale" and value in _SCALES):
            given = {name: value}
        elif name == "shortest" and re.fullmatch("[1-9][0-9]?", value):
            given = {name: int(value)}
        elif piece in _SWITCHES:
            given = _SWITCHES[piece]
        else:
            raise DataError(
                f"n-grams are given as words=LO-HI, chars=LO-HI, case, tokens=words|letters|blanks,"
                f" shortest=N, scale=count|binary|log and norm, separated by commas; not '{piece}'"
            )
        made = made._replace(**given)
    if made.words == made.chars == (0, 0):
        raise DataError("text has no features without words or chars")
    return made
