"""What whoever faces the user may want to say while it happens."""

from __future__ import annotations

from collections.abc import Callable

COMPILING = "compiling for this machine: some seconds, once"
_tell: list[Callable[[], None]] = []


def when_compiling(tell: Callable[[], None] | None) -> None:
    """Call `tell` (None: nothing) once, when this process first compiles something that no cache holds.

    It may be called from any thread.
    """
    _tell[:] = [] if tell is None else [tell]


def compiling() -> None:
    """Something is about to be compiled."""
    if _tell:
        _tell.pop()()
