"""Check restored state before compiled code uses it: kernels do no bounds checks.

Everything restored from tensors is checked first: no tensor is missing, shapes and dtypes are right, numbers
are finite, and indices lie within their tables. Rules check their own state with the verb `sound`.

Compiled code trusts its indices, because testing each would slow every example.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tensors = Mapping[str, NDArray[Any]]
MOST_STEPS = 1 << 53
"""The number of steps that float64 can count exactly"""


class StateError(ValueError):
    """Tensors that training cannot have produced. The message is one line and names the tensor."""


def given(
    tensors: Tensors, name: str, shape: tuple[int | None, ...], *kinds: Any, finite: bool = True
) -> NDArray[Any]:
    """Return a tensor after checking its shape (None: any length) and dtype.

    With `finite`, NaN and infinity are errors too. StateError.
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
        raise StateError(f"{name} contains a number that is not finite")
    return array


def require(holds: Any, name: str, wanted: str) -> None:
    """StateError unless `holds`; `wanted` describes the condition on the tensor."""
    if not holds:
        raise StateError(f"{name}: {wanted}")


def under(tensors: Tensors, prefix: str) -> dict[str, NDArray[Any]]:
    """The tensors whose names begin with `prefix`, without it."""
    return {name.removeprefix(prefix): array for name, array in tensors.items() if name.startswith(prefix)}


def beneath(prefix: str, tensors: Tensors) -> dict[str, NDArray[Any]]:
    """The tensors with `prefix` before each name: the inverse of `under`."""
    return {prefix + name: array for name, array in tensors.items()}


def copied(tensors: Tensors) -> dict[str, NDArray[Any]]:
    """Copies that no later learning changes."""
    return {name: array.copy() for name, array in tensors.items()}


def ascending(keys: NDArray[np.uint64]) -> bool:
    """Whether the keys are strictly increasing."""
    return bool((keys[1:] > keys[:-1]).all())


def offsets(ends: NDArray[np.int64], total: int) -> bool:
    """Whether `ends` is non-decreasing, lies in 0..total and ends at `total`; `total` is 0 if it is empty."""
    if not len(ends):
        return total == 0
    return bool(ends[0] >= 0 and (ends[1:] >= ends[:-1]).all() and ends[-1] == total)
