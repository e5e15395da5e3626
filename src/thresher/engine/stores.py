"""What `--store` says: SPECs of indexes.

``growing``, ``direct``, or ``hashed``, which may say more, in this order: ``hashed:BITS,SEED,signed``.
"""

from __future__ import annotations

import re

from thresher.engine.index import DirectIndex, GrowingIndex, HashedIndex, Index

_BITS = "20"


def make_index(spec: str, seed: int = 0) -> Index:
    """The index of a store; 20 bits and the given `seed` where a hashed one does not say. ValueError."""
    kind, options = _read(spec, seed)
    return kind(*options)


def store_spec(spec: str, seed: int = 0, *, full: bool = True) -> str:
    """The same SPEC with all that it leaves out; ValueError for one that names no store.

    Unless it is `full`, the given `seed` is left out.

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
    """The class of an index, and what it is made with."""
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
