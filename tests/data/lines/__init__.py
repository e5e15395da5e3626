"""What the tests of all formats need of each format of lines: in the module of its name, as ``TESTED``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import NamedTuple, Protocol

from tests.data.reference import Row
from thresher.data.formats.listing import LINES
from thresher.data.layout import Layout


class Variant(NamedTuple):
    """The format by another layout."""

    layout: Layout
    good: Callable[[int, int], list[bytes]] | None = None
    """where the lines differ: so many examples, by a seed"""
    but: Sequence[bytes] = ()
    """of the bad lines those that are good"""


class Parse(Protocol):
    """A slow parser."""

    def __call__(self, line: bytes, domain: str, layout: Layout) -> Row | None:
        """The example on a line without its newline, or None; raises `BadLineError`."""
        ...


class Tested(NamedTuple):
    """Lines of a format, good and bad, and a slow parser of them."""

    good: Callable[[int, int], list[bytes]]
    """so many examples, by a seed"""
    bad: Sequence[bytes]
    """lines each of which is bad for a reason of its own"""
    empty: Sequence[bytes]
    """what is no example and not bad"""
    parse: Parse
    tokens: Sequence[bytes]
    """what lines are made of"""
    variants: Mapping[str, Variant] = {}
    """further layouts that the laws of reading are tested with"""
    fuzzed: Mapping[str, Layout] = {}
    """further layouts that the slow parser knows"""


TESTED: dict[str, Tested] = {name: import_module(f"tests.data.lines.{name}").TESTED for name in LINES}
"""By format."""
