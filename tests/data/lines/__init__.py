"""Line formats for the tests of all formats: each module of this package has its ``TESTED``."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import NamedTuple, Protocol

from tests.data.reference import Row
from thresher.data.formats.listing import LINES
from thresher.data.layout import Layout


class Variant(NamedTuple):
    layout: Layout
    good: Callable[[int, int], list[bytes]] | None = None
    """makes a given number of examples from a seed, where lines differ from the plain layout's"""
    but: Sequence[bytes] = ()
    """the bad lines of the plain layout that are good here"""


class Parse(Protocol):
    def __call__(self, line: bytes, domain: str, layout: Layout) -> Row | None:
        """The example on a line (without its newline), or None; raises `BadLineError`."""
        ...


class Tested(NamedTuple):
    good: Callable[[int, int], list[bytes]]
    """makes a given number of examples from a seed"""
    bad: Sequence[bytes]
    """bad lines, each for a different reason"""
    empty: Sequence[bytes]
    """lines that are neither examples nor bad"""
    parse: Parse
    tokens: Sequence[bytes]
    """fragments of lines"""
    variants: Mapping[str, Variant] = {}
    """further layouts for the tests of the laws of reading"""
    fuzzed: Mapping[str, Layout] = {}
    """further layouts that the reference parser supports"""


TESTED: dict[str, Tested] = {name: import_module(f"tests.data.lines.{name}").TESTED for name in LINES}
"""Line formats by name."""
