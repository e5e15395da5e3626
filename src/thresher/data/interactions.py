"""Interactions: the products of features that a layout names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from thresher.data.errors import DataError
from thresher.data.listed import pieces_in, unquoted

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
        pieces = [*map(unquoted, pieces_in(spec))]
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
