"""Independent pieces of work on all processors, with the results of doing them one after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numba

T = TypeVar("T")
R = TypeVar("R")

WORTH = 1 << 15
"""Least number of stored values for which threads are worth starting."""
_config: Any = numba.config  # its settings are defined at run time
_here = threading.local()


def processors() -> int:
    """How many threads to use: one per processor of this process, or `NUMBA_NUM_THREADS`."""
    return int(_config.NUMBA_NUM_THREADS)


def each(function: Callable[[T], R], items: Sequence[T], values: int) -> list[R]:
    """The results of `function` for all items, which must not share state; `values` are learned in each.

    The threads end with the call, because a process with threads cannot be forked to compile ahead. If
    `function` raises, the error of the first item that fails is raised when all have ended.
    """
    threads = min(processors(), len(items))
    if threads < 2 or values < WORTH or getattr(_here, "inside", False):
        return [function(item) for item in items]
    with ThreadPoolExecutor(threads, "thresher-learner", _enter) as pool:
        return list(pool.map(function, items))


def _enter() -> None:
    """In a thread of `each`, nested work is done one after the other."""
    _here.inside = True
