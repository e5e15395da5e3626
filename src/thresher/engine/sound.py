"""Check restored state before compiled code uses it: kernels do no bounds checks.

Everything restored from tensors is checked first: no tensor is missing, shapes and dtypes are right, numbers
are finite, and indices lie within their tables. Rules check their own state with the verb `sound`.

Compiled code trusts its indices, because testing each would slow every example.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
"""An array of any dtype"""
Tensors = Mapping[str, Array]
State = dict[str, Array]
"""Arrays of any dtypes, by name: what models and training are restored from"""
MOST_STEPS = 1 << 53
"""The number of steps that float64 can count exactly"""


class StateError(ValueError):
    """Tensors that training cannot have produced. The message is one line and names the tensor."""


def check_tensor(
    tensors: Tensors, name: str, shape: tuple[int | None, ...], *kinds: Any, finite: bool = True
) -> Array:
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


def under(tensors: Tensors, prefix: str) -> State:
    """The tensors whose names begin with `prefix`, without it."""
    return {name.removeprefix(prefix): array for name, array in tensors.items() if name.startswith(prefix)}


def beneath(prefix: str, tensors: Tensors) -> State:
    """The tensors with `prefix` before each name: the inverse of `under`."""
    return {prefix + name: array for name, array in tensors.items()}


def copy_state(tensors: Tensors) -> State:
    """Copies that no later learning changes."""
    return {name: array.copy() for name, array in tensors.items()}


def ascending(keys: NDArray[np.uint64]) -> bool:
    """Whether the keys are strictly increasing."""
    return bool((keys[1:] > keys[:-1]).all())


def check_keys(tensors: Tensors, name: str) -> NDArray[np.uint64]:
    """A tensor of keys, which must ascend. StateError."""
    keys = check_tensor(tensors, name, (None,), np.uint64)
    require(ascending(keys), name, "keys ascend")
    return keys


def are_ends(ends: NDArray[np.int64], total: int) -> bool:
    """Whether `ends` is non-decreasing, lies in 0..total and ends at `total`; `total` is 0 if it is empty."""
    if not len(ends):
        return total == 0
    return bool(ends[0] >= 0 and (ends[1:] >= ends[:-1]).all() and ends[-1] == total)


PACKED = ("each", "ends")
_EACH, _ENDS = (f"{name}." for name in PACKED)
_FEW = 100
"""Sets of tensors up to which each tensor stands for itself"""


def pack(sets: Sequence[Tensors]) -> State:
    """Sets of tensors as one: set k under ``k.``; of very many sets, those of a name one after the other.

    `PackedSets` is the inverse. A header has a line for each tensor, longer than the tensors of a small
    model. ``each.NAME`` has those of all sets, and ``ends.NAME`` (sets,) where each ends, or -1 without one.
    """
    if len(sets) <= _FEW:
        return {f"{k}.{name}": array for k, one in enumerate(sets) for name, array in one.items()}
    found, kinds = State(), dict[str, tuple[Any, ...]]()
    for one in sets:
        for name, array in one.items():
            kinds.setdefault(name, (array.dtype, array.shape[1:]) if array.ndim else ())
    for name, kind in kinds.items():
        arrays = [one.get(name) for one in sets]
        alike = [a if a is not None and a.ndim and (a.dtype, a.shape[1:]) == kind else None for a in arrays]
        if there := [a for a in alike if a is not None]:
            ends = np.cumsum([0 if a is None else len(a) for a in alike])
            found[_EACH + name] = np.concatenate(there)
            found[_ENDS + name] = np.where([a is None for a in alike], -1, ends)
        pairs = zip(arrays, alike, strict=True)
        found |= {f"{k}.{name}": a for k, (a, one) in enumerate(pairs) if a is not None and one is None}
    return found


class PackedSets:
    """Sets of tensors that `pack` has put together, of which `get` gives those with some names."""

    def __init__(self, names: Iterable[str], get: Callable[[str], Array]) -> None:
        self._get, self._names = get, dict[str, list[str]]()
        for name in names:
            self._names.setdefault(name.partition(".")[0], []).append(name)
        self._spans = dict[str, tuple[Array, NDArray[np.int64], NDArray[np.int64]]]()

    def of(self, number: int) -> State:
        """Set `number`, views where they are packed. StateError."""
        found, prefix = State(), f"{number}."
        for whole in self._names.get(PACKED[0], []):
            name = whole.removeprefix(_EACH)
            if name not in self._spans:
                array, of_ends = self._get(whole), _ENDS + name
                require(of_ends in self._names.get(PACKED[1], []), of_ends, "is missing")
                ends = check_tensor({of_ends: self._get(of_ends)}, of_ends, (None,), np.int64)
                sound = array.ndim > 0 and are_ends(ends[ends >= 0], len(array)) and (ends >= -1).all()
                require(sound, of_ends, "places in the tensor, in order")
                before = np.concatenate([np.zeros(1, np.int64), np.maximum.accumulate(ends)[:-1]])
                self._spans[name] = array, np.maximum(before, 0), ends
            array, begins, ends = self._spans[name]
            if number < len(ends) and ends[number] >= 0:
                found[name] = array[begins[number] : ends[number]]
        return found | {n.removeprefix(prefix): self._get(n) for n in self._names.get(prefix[:-1], [])}
