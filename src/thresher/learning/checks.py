"""Checks of arguments: the error says which one, what it must be and what it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from thresher.data.chunk import Chunk

_MOST_IN_A_BATCH = 1 << 31


def check_whole(name: str, value: Any, least: int, most: int | None = None) -> None:
    """ValueError unless `value` is a whole number, from `least` on and no more than `most`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number, {least} or more, not {value!r}")
    if most is not None and value > most:
        raise ValueError(f"{name} must be at most {most}, not {value!r}")


def check_flag(name: str, value: Any) -> None:
    """ValueError unless `value` is True or False (or 1 or 0)."""
    if not isinstance(value, bool | int | np.bool_ | np.integer) or value not in (0, 1):
        raise ValueError(f"{name} must be True or False, not {value!r}")


def check_chunk(given: Any) -> None:
    """TypeError unless `given` is a Chunk."""
    if not isinstance(given, Chunk):
        raise TypeError(
            f"expected a Chunk, not {type(given).__name__}: thresher.data.arrays.chunk_of makes one"
        )


def check_options(batch: int, average: bool, store: str, intercept: bool, dtype: str, seed: int) -> None:
    """ValueError for options of a Model that no model can have."""
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype must be float32 or float64, not {dtype!r}")
    if not isinstance(store, str):
        raise ValueError(f"store must be text such as growing, direct or hashed:20, not {store!r}")
    check_whole("batch", batch, 1, _MOST_IN_A_BATCH)
    check_whole("seed", seed, 0)
    check_flag("average", average)
    check_flag("intercept", intercept)
