"""What a state must be before compiled code sees it, which trusts every index that it is given.

Whatever is restored from tensors checks them first: all are there, of the right shape and dtype and
finite, and numbers that point somewhere point into their table. Rules have the verb `sound` for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tensors = Mapping[str, NDArray[Any]]
MOST_STEPS = 1 << 53
"""Steps that float64 can count."""


class StateError(ValueError):
    """Tensors that no training leaves behind. One line, which names the tensor."""


def given(
    tensors: Tensors, name: str, shape: tuple[int | None, ...], *kinds: Any, finite: bool = True
) -> NDArray[Any]:
    """The tensor of a name, if it has this shape (None: any length) and one of these dtypes.

    With `finite`, numbers must be.
    """
    array = tensors.get(name)
    if array is None:
        raise StateError(f"{name} is missing")
    if array.dtype not in [np.dtype(kind) for kind in kinds]:
        wanted = " or ".join(str(np.dtype(kind)) for kind in kinds)
        raise StateError(f"{name} is an array of {array.dtype}, expected {wanted}")
    fits = [have if want is None else want for have, want in zip(array.shape, shape, strict=False)]
    if array.ndim != len(shape) or array.shape != tuple(fits):
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise StateError(f"{name} has the shape {list(array.shape)}, expected [{wanted}]")
    if finite and array.dtype.kind == "f" and not np.isfinite(array).all():
        raise StateError(f"{name} holds a number that is not finite")
    return array


def require(holds: Any, name: str, wanted: str) -> None:
    """StateError unless it holds: `wanted` of the tensor of this name."""
    if not holds:
        raise StateError(f"{name}: {wanted}")


def ascending(keys: NDArray[np.uint64]) -> bool:
    """Whether every key is larger than the one before."""
    return bool((keys[1:] > keys[:-1]).all())


def offsets(ends: NDArray[np.int64], total: int) -> bool:
    """Whether `ends` never fall, lie in 0..total, and end there; `total` is 0 where there are none."""
    if not len(ends):
        return total == 0
    return bool(ends[0] >= 0 and (ends[1:] >= ends[:-1]).all() and ends[-1] == total)
