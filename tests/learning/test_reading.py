"""Margins are the same however weights are read: the whole table at once, or row by row, in any blocks."""

from typing import Any

import numpy as np
import pytest

from tests.plain import not_compiled
from thresher.data.chunk import Chunk
from thresher.learning.model import margins
from thresher.learning.model.model import Model

KINDS: list[dict[str, Any]] = [
    {},
    {"average": True},
    {"outputs": "classes:0-2", "loss": "softmax"},
    {"outputs": "classes:0-2", "loss": "softmax", "average": True},
]
STORES = ["growing", "direct", "hashed:6", "hashed:4"]  # the last merges features of a row


def rows(count: int, seed: int) -> Chunk:
    """Examples of 0 to 12 of 60 features; classes 0 to 2."""
    rng = np.random.default_rng(seed)
    features = [np.sort(rng.choice(60, rng.integers(0, 13), replace=False)) for _ in range(count)]
    examples = [(float(k % 3), {int(j): float(rng.normal()) for j in row}) for k, row in enumerate(features)]
    return Chunk.of_rows(examples)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_way_of_reading_gives_the_same_margins(
    kind: dict[str, Any], store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with not_compiled():
        model = Model("fobos:l1=0.01", **{"loss": "squared", **kind}, store=store)
        model.learn(rows(60, 1))
        data = rows(40, 2)  # some of its features never occurred
        expected = np.concatenate([model.predict(data.rows(i, i + 1)) for i in range(len(data))])
        assert len(np.unique(expected)) > 20
        for block in (1 << 16, 1, 7, 30):
            monkeypatch.setattr(margins, "BLOCK", block)
            assert model.predict(data).tobytes() == expected.tobytes()
            assert model.readout().predict(data).tobytes() == expected.tobytes()


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.usefixtures("plainly")
def test_a_long_chunk_is_its_rows(kind: dict[str, Any]) -> None:
    model = Model("fobos:l1=0.01", **{"loss": "squared", **kind})
    model.learn(rows(60, 1))
    data = rows(1500, 3)
    assert data.nnz > len(model.loop.S)
    alone = [model.predict(data.rows(i, i + 1)) for i in range(len(data))]
    assert model.predict(data).tobytes() == np.concatenate(alone).tobytes()


def test_an_example_may_be_longer_than_any_block() -> None:
    model = Model("sgd", "squared", store="hashed:20", intercept=False)
    keys = np.arange(1 << 17, dtype=np.uint64)
    values = np.linspace(-1.0, 1.0, keys.size).astype(np.float32)
    ends = np.arange(0, keys.size + 1, 1 << 12)
    whole = Chunk.from_csr(ends[[0, -1]], keys, values, np.ones(1, np.float32))
    model.learn(whole)
    assert margins.BLOCK < whole.nnz < len(model.loop.S)
    pieces = model.predict(Chunk.from_csr(ends, keys, values, np.ones(ends.size - 1, np.float32)))
    assert pieces.max() > 1
    assert model.predict(whole)[0] == pytest.approx(pieces.sum())
