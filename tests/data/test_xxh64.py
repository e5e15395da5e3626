from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thresher.data.files.xxh64 import Hash64


@pytest.mark.parametrize(
    ("text", "digest"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_published_values(text: bytes, digest: int) -> None:
    total = Hash64()
    total.update(text)
    assert total.digest() == digest


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=100), max_size=10))
def test_pieces_do_not_matter(pieces: list[bytes]) -> None:
    whole, parts = Hash64(), Hash64()
    whole.update(b"".join(pieces))
    for piece in pieces:
        parts.update(piece)
    assert whole.digest() == parts.digest()
    assert whole.size == parts.size
