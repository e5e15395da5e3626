from __future__ import annotations

import mmh3
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.data.features.murmur import PADDED, SHORT, VW, WIDE, hash_bytes, hash_each, seed_of


@given(st.binary(max_size=80), st.integers(0, 2**32 - 1))
def test_the_reference_says_the_same(name: bytes, seed: int) -> None:
    assert hash_bytes(name, seed) == mmh3.hash64(name, seed, signed=False)[0]
    assert hash_bytes(name, seed, SHORT) == mmh3.hash(name, seed, signed=False)


@pytest.mark.parametrize("size", [*range(20), 31, 32, 33])
def test_what_stands_around_a_name_is_not_read(size: int) -> None:
    name = np.random.default_rng(size).bytes(size)
    for around in (b"\x00", b"7", b"\xff"):
        text = np.frombuffer(around * 16 + name + around * 16, np.uint8)
        for kind, same in ((WIDE, WIDE), (PADDED, WIDE), (SHORT, SHORT), (VW, VW)):
            out = np.zeros(1, np.uint64)
            hash_each(text, np.full(1, 16), np.full(1, size), np.uint64(5), kind, out)
            assert out[0] == hash_bytes(name, 5, same)


@given(st.binary(max_size=20) | st.from_regex(rb"[0-9]{1,25}", fullmatch=True), st.integers(0, 2**32 - 1))
def test_vowpal_wabbits_hash_adds_numbers_to_the_seed(name: bytes, seed: int) -> None:
    inner = name.strip(bytes(range(33)))
    number = seed if not inner else seed + int(inner) if inner.isdigit() else None
    wanted = mmh3.hash(inner, seed, signed=False) if number is None else number % 2**64
    assert hash_bytes(name, seed, VW) == wanted


def test_seeds_of_namespaces() -> None:
    assert seed_of("", 7) == 7
    assert seed_of("user") == hash_bytes(b"user")
    assert len({seed_of("user"), seed_of("ad"), seed_of("user", 1)}) == 3
