"""Choosing parameters: commands with alternatives, and a hill climb that needs few trials."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

Place = tuple[int, ...]
Value = TypeVar("Value", bound=tuple[float, ...])

_LADDER = re.compile(r"[^\s=:,|]+(?:\|[^\s=:,|]+)+")


def ladders(template: str) -> list[list[str]]:
    """Return the alternatives of each ``a|b|c`` in a command, in order.

    >>> ladders("--rule ftrl:alpha=0.1|1,l1=0|1|2 --rate constant:4")
    [['0.1', '1'], ['0', '1', '2']]
    """
    return [found.split("|") for found in _LADDER.findall(template)]


def filled(template: str, place: Place) -> str:
    """Return the command with one alternative of each.

    >>> filled("--rule ftrl:alpha=0.1|1,l1=0|1|2", (1, 0))
    '--rule ftrl:alpha=1,l1=0'
    """
    steps = iter(place)
    return _LADDER.sub(lambda found: found[0].split("|")[next(steps)], template)


def place_of(template: str, command: str) -> Place:
    """Return the indices of a command's alternatives; ValueError if the command does not match."""
    pattern = re.escape(template)
    for rungs in ladders(template):
        pattern = pattern.replace(re.escape("|".join(rungs)), f"({'|'.join(map(re.escape, rungs))})", 1)
    found = re.fullmatch(pattern, command)
    if found is None:
        raise ValueError(f"{command!r} is none of {template!r}")
    return tuple(rungs.index(value) for rungs, value in zip(ladders(template), found.groups(), strict=True))


def climb(lengths: Sequence[int], start: Place, value: Callable[[Place], Value]) -> Place:
    """Return a local minimum: no step of one rung on one ladder leads to a smaller value.

    Ladders are climbed in turn, each as long as the value falls. No place is tried twice.
    """
    known: dict[Place, Value] = {}

    def tried(place: Place) -> Value:
        if place not in known:
            known[place] = value(place)
        return known[place]

    here, before = start, None
    tried(start)
    while here != before:
        before = here
        for ladder in range(len(lengths)):
            for rungs in (range(here[ladder] + 1, lengths[ladder]), range(here[ladder] - 1, -1, -1)):
                for rung in rungs:
                    there = (*here[:ladder], rung, *here[ladder + 1 :])
                    if tried(there) >= tried(here):
                        break
                    here = there
    return here


def middle(lengths: Sequence[int]) -> Place:
    """Return the default start of a climb."""
    return tuple(length // 2 for length in lengths)
