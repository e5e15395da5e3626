"""SPECs of stores (`--store`).

``growing``, ``direct``, or ``hashed``, optionally with bits, seed and ``signed``, in this order:
``hashed:BITS,SEED,signed``.
"""

from __future__ import annotations

import re

from thresher.engine.index import DirectIndex, GrowingIndex, HashedIndex, Index

_BITS = "20"


def make_index(spec: str, seed: int = 0) -> Index:
    """The index for a SPEC. By default, a hashed one has 20 bits and this `seed`. ValueError."""
    kind, options = _read(spec, seed)
    return kind(*options)


def store_spec(spec: str, seed: int = 0, *, full: bool = True) -> str:
    """Complete a SPEC with its defaults; ValueError for an unknown store.

    With `full=False`, omit the seed if it equals `seed`.

    >>> store_spec("hashed:9,signed", 5), store_spec("hashed:9,5", 5, full=False)
    ('hashed:9,5,signed', 'hashed:9')
    """
    kind, options = _read(spec, seed)
    if not options:
        return kind.NAME
    bits, own, signed = options
    HashedIndex.check_options(bits, own)
    numbers = f"{bits},{own}" if full or own != seed else f"{bits}"
    return f"{kind.NAME}:{numbers}" + (f",{HashedIndex.SIGNED}" if signed else "")


def _read(spec: str, seed: int) -> tuple[type[Index], tuple[int, int, bool] | tuple[()]]:
    """The class of an index, and its arguments."""
    name, _, rest = spec.partition(":")
    for kind in (GrowingIndex, DirectIndex):
        if name == kind.NAME and not rest:
            return kind, ()
    numbers = rest.split(",") if rest else []
    signed = numbers[-1:] == [HashedIndex.SIGNED]
    numbers = numbers[:-1] if signed else numbers
    if (
        name == HashedIndex.NAME
        and len(numbers) <= 2
        and all(re.fullmatch("[0-9]{1,20}", n) for n in numbers)
    ):
        bits, own = [*(int(n) for n in numbers or (_BITS,)), seed][:2]
        return HashedIndex, (bits, own, signed)
    raise ValueError(
        f"no store is called {spec!r}; known: growing, direct, hashed:BITS, hashed:BITS,{HashedIndex.SIGNED}"
    )
