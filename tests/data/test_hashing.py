from __future__ import annotations

import mmh3
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.data.hashing import hash_bytes, seed_of


@given(st.binary(max_size=80), st.integers(0, 2**32 - 1))
def test_the_reference_says_the_same(name: bytes, seed: int) -> None:
    assert hash_bytes(name, seed) == mmh3.hash64(name, seed, signed=False)[0]
    assert hash_bytes(name, seed, bits=32) == mmh3.hash(name, seed, signed=False)


@pytest.mark.parametrize("size", [*range(20), 31, 32, 33])
def test_what_stands_around_a_name_is_not_read(size: int) -> None:
    name = np.random.default_rng(size).bytes(size)
    from thresher.data import hashing

    for around in (b"\x00", b"\xff"):
        text = np.frombuffer(around * 16 + name + around * 16, np.uint8)
        for bits, short in ((64, False), (32, True)):
            out = np.zeros(1, np.uint64)
            hashing._hash_each(text, np.full(1, 16), np.full(1, size), np.uint64(5), short, out)
            assert out[0] == hash_bytes(name, 5, bits)


def test_seeds_of_namespaces() -> None:
    assert seed_of("", 7) == 7
    assert seed_of("user") == hash_bytes(b"user")
    assert len({seed_of("user"), seed_of("ad"), seed_of("user", 1)}) == 3
