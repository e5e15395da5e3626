"""One to three random changes to the header and the tensors of a model."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tensors = dict[str, NDArray[Any]]
Header = dict[str, Any]

REAL = (
    np.nan,
    np.inf,
    -np.inf,
    *(1e30, -1e30, 1e308, -1e308, 5e-324, 0.0, -0.0, -1.0, 1.0, 0.5),
    2.0**53,
    2.0**62,
)
WHOLE = (0, 1, -1, 2, 50, 255, 2**31, 2**32 - 1, 2**32, 2**40, 2**62, 2**63 - 1, -(2**63), 2**64 - 1)
KINDS = (np.bool_, np.uint8, np.int32, np.uint32, np.int64, np.uint64, np.float16, np.float32, np.float64)


def _deep(depth: int) -> Any:
    nested: Any = []
    for _ in range(depth):
        nested = [nested]
    return nested


VALUES: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2, 3, 2**31, 2**40, 2**64, 10**300, 1.5, 1e308, -1e308, float("nan")),
    *(float("inf"), "", "x", "two\nlines", "\ud800", "\0", [], {}, [[]], [None], {"a": 1}, _deep(200)),
    *(
        *("growing", "direct", "hashed:6", "hashed:31", "hashed:0", "hashed:x", "one", "classes:0-2"),
        "classes:9",
    ),
    *("classes:0-99999999999", "labels:0-2", "values:2", "values:65536", "values:0", "squared", "softmax"),
    *("hinge:threshold=nan", "float16", "float64", "l1-ball:radius=1e308", "ftrl:alpha=0", "sgd:", "each"),
    *(
        *("max-abs", "standard", "3,bits=34", "poisson:2", "poisson:1e-300,bits=10", "crammer-singer"),
        "constant:1",
    ),
)


def _some_tensor(chance: random.Random, tensors: Tensors) -> str:
    """A random tensor; those of the best pass and of the predictor are less likely."""
    names = sorted(tensors)
    state = [name for name in names if name.startswith("state.")]
    return chance.choice(state if state and chance.random() < 0.7 else names)


def _place(chance: random.Random, array: NDArray[Any]) -> tuple[int, ...]:
    return tuple(chance.randrange(size) for size in array.shape)


def _written(array: NDArray[Any], place: tuple[int, ...], value: Any) -> NDArray[Any]:
    out = array.copy()
    with np.errstate(all="ignore"):
        if array.dtype.kind in "ui":
            info = np.iinfo(array.dtype)
            value = min(max(int(value), int(info.min)), int(info.max))
        out[place] = value
    return out


def extreme(chance: random.Random, array: NDArray[Any]) -> NDArray[Any]:
    """Replace a number with one outside any table."""
    return _written(array, _place(chance, array), chance.choice(REAL if array.dtype.kind == "f" else WHOLE))


def small(chance: random.Random, array: NDArray[Any]) -> NDArray[Any]:
    """Replace a number with a position that is valid or just out of range."""
    return _written(array, _place(chance, array), chance.randrange(-2, len(array) + 3))


def moved(chance: random.Random, array: NDArray[Any]) -> NDArray[Any]:
    place = _place(chance, array)
    value = float(array[place])
    return _written(array, place, value + chance.choice((-1, 1)) if np.isfinite(value) else 0)


def exchanged(chance: random.Random, array: NDArray[Any]) -> NDArray[Any]:
    out, a, b = array.copy(), _place(chance, array), _place(chance, array)
    b = (b[0], *a[1:])  # in the same column
    out[a], out[b] = array[b], array[a]
    return out


def flipped(chance: random.Random, array: NDArray[Any]) -> NDArray[Any]:
    raw = bytearray(array.tobytes())
    raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
    if array.dtype.kind == "b":
        return ~array
    return np.frombuffer(bytes(raw), array.dtype).reshape(array.shape)


def shortened(chance: random.Random, array: NDArray[Any]) -> NDArray[Any]:
    return array[: chance.choice((0, 1, len(array) // 2, len(array) - 1))]


def lengthened(chance: random.Random, array: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([array, array[-1:] if chance.random() < 0.5 else array])


def reshaped(chance: random.Random, array: NDArray[Any]) -> NDArray[Any]:
    shapes = ((-1,), (1, *array.shape), (*array.shape, 1), array.shape[::-1], (-1, 1))
    return np.ascontiguousarray(array).reshape(chance.choice(shapes))


def cast(chance: random.Random, array: NDArray[Any]) -> NDArray[Any]:
    with np.errstate(all="ignore"):
        return array.astype(chance.choice(KINDS))


def zeroed(chance: random.Random, array: NDArray[Any]) -> NDArray[Any]:
    return np.zeros_like(array) if chance.random() < 0.5 else np.full_like(array, array.flat[0])


ARRAYS: tuple[Callable[[random.Random, NDArray[Any]], NDArray[Any]], ...] = (
    *(extreme, extreme, small, small, small, moved, moved, exchanged, exchanged),
    *(flipped, flipped, shortened, lengthened, reshaped, cast, zeroed),
)


def _change_tensor(chance: random.Random, header: Header, tensors: Tensors, others: Any) -> None:
    name, change = _some_tensor(chance, tensors), chance.choice(ARRAYS)
    if tensors[name].size:
        tensors[name] = change(chance, tensors[name])


def _change_rows(chance: random.Random, header: Header, tensors: Tensors, others: Any) -> None:
    """Shorten or lengthen all tensors with the same number of rows alike."""
    chosen = _some_tensor(chance, tensors)
    rows, change, seed = len(tensors[chosen]), chance.choice((shortened, lengthened)), chance.random()
    prefix = chosen.partition(".")[0]
    for name, array in tensors.items():
        if rows and name.startswith(prefix) and len(array) == rows:
            tensors[name] = change(random.Random(seed), array)


def _drop(chance: random.Random, header: Header, tensors: Tensors, others: Any) -> None:
    del tensors[_some_tensor(chance, tensors)]


def _swap(chance: random.Random, header: Header, tensors: Tensors, others: Any) -> None:
    a, b = _some_tensor(chance, tensors), _some_tensor(chance, tensors)
    tensors[a], tensors[b] = tensors[b], tensors[a]


def _borrow(chance: random.Random, header: Header, tensors: Tensors, others: Any) -> None:
    """Take a tensor, or the whole header, from another model."""
    other, theirs = chance.choice(others)
    if chance.random() < 0.2:
        header.clear()
        header.update(other)
    elif common := sorted(tensors.keys() & theirs.keys()):
        name = chance.choice(common)
        tensors[name] = theirs[name]


def _name(chance: random.Random, header: Header, tensors: Tensors, others: Any) -> None:
    """Replace a name by a valid or almost valid one."""
    keys = tensors.get("weights.keys", np.zeros(3, np.uint64)).reshape(-1)[:5].copy()
    tensors["names.keys"], ends = keys, np.arange(1, len(keys) + 1)
    tensors["names.ends"], tensors["names.letters"] = ends, np.full(len(keys), 97, np.uint8)
    if chance.random() < 0.8 and len(keys):
        name = chance.choice(("names.keys", "names.ends", "names.letters"))
        tensors[name] = chance.choice(ARRAYS)(chance, tensors[name])


def _holders(value: Any) -> list[Any]:
    """All nonempty objects and lists in a header, including the header."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return ([value] if inner else []) + [one for item in inner for one in _holders(item)]


def _change_header(chance: random.Random, header: Header, tensors: Tensors, others: Any) -> None:
    header.pop("crc32", None)
    at: Any = chance.choice(_holders(header)) if header and chance.random() < 0.5 else header
    if not at:
        return
    key = chance.choice(sorted(at)) if isinstance(at, dict) else chance.randrange(len(at))
    draw = chance.random()
    if draw < 0.1:
        del at[key]
    elif draw < 0.2 and isinstance(at, dict):
        at[chance.choice(("new", "", "a\nb"))] = chance.choice(VALUES)
    elif draw < 0.35 and isinstance(at[key], int | float):
        at[key] += chance.choice((-1, 1, 1000))
    else:
        at[key] = chance.choice(VALUES)


NUMBERS = (*[_change_tensor] * 6, _change_rows)
CHANGES = (*NUMBERS, *[_change_header] * 4, _drop, _swap, _borrow, _name)


def mutated(
    chance: random.Random,
    header: Header,
    tensors: Tensors,
    others: list[tuple[Header, Tensors]],
    numbers: bool = False,
) -> tuple[Header, Tensors]:
    """The model with one to three changes, only to `numbers` if a new header would need more compiling."""
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        if tensors:
            chance.choice(NUMBERS if numbers else CHANGES)(chance, header, tensors, others)
    return header, tensors
