"""Lists of names in one text, separated by commas; a name with a comma is in double quotes, as in CSV."""

from __future__ import annotations

import re
from collections.abc import Iterable

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


def unquoted(piece: str) -> str:
    """The name that a piece of a list writes.

    >>> unquoted('"5"" disk"'), unquoted('5" disk')
    ('5" disk', '5" disk')
    """
    return piece[1:-1].replace('""', '"') if _QUOTED.fullmatch(piece) else piece


def names_in(text: str) -> tuple[str, ...]:
    """The names in a list; an empty name is only one in quotes.

    >>> names_in('a,"price, net",,b')
    ('a', 'price, net', 'b')
    """
    return tuple(unquoted(piece) for piece in pieces_in(text) if piece)


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
