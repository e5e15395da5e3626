"""What is packed has the same bits; who waits for whom; commands and functions that work elsewhere."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher
from tests.cluster.fake_ray import FakeConnection, FakeRay
from thresher.cli.main import status_of
from thresher.cluster import packing
from thresher.cluster.packing import Packer, unpack
from thresher.data import Chunk
from thresher.data.errors import BadLine
from thresher.data.sources.reader import Arenas, LineTally, Parsed

ROWS, EACH = 300, 20
RANDOM = np.random.default_rng(5)


def of(keys: Any, values: Any, **more: Any) -> Parsed:
    labels = RANDOM.choice([-1.0, 1.0], ROWS).astype(np.float32)
    starts = np.arange(ROWS + 1) * EACH
    ordered = np.sort(np.asarray(keys, np.uint64).reshape(ROWS, EACH), axis=1).ravel()
    weights = np.ones(ROWS, np.float32)
    chunk = Chunk(starts, ordered, np.asarray(values, np.float32), labels, weights, **more)
    bad = [BadLine("", 3, 1, "a", "b", b"c")]
    return Parsed(
        chunk, LineTally(301, ROWS, 0, 1, 0), bad, b"c\n", 2, gaps=[2], ids=[str(k) for k in range(301)]
    )


def keys(below: int, distinct: int | None = None) -> Any:
    found = RANDOM.integers(0, below, ROWS * EACH, np.uint64)
    return found if distinct is None else RANDOM.choice(found[:distinct], ROWS * EACH)


ONES = np.ones(ROWS * EACH)
MOSTLY_ONES = np.where(RANDOM.random(ROWS * EACH) < 0.7, 1.0, RANDOM.normal(size=ROWS * EACH))
LARGEST = 2**64 - 1
CASES = {
    "short ids": (of(keys(1 << 16), RANDOM.normal(size=ROWS * EACH)), 6),
    "long ids": (of(keys(1 << 32), ONES), 4),
    "hashed": (of(keys(LARGEST, 900), ONES), 2 + 8 * 900 / (ROWS * EACH)),
    "hashed, hardly repeated": (of(keys(LARGEST), ONES), 8),
    "mostly ones": (of(keys(1 << 16), MOSTLY_ONES), 2 + 1 / 8 + 0.31 * 4),
    "zeros": (of(keys(1 << 16), -0.0 * ONES), 2),
    "targets": (of(keys(9), ONES, targets=np.ones((ROWS, 3), np.float32)), 2 + 12 / EACH),
}


@pytest.mark.parametrize("most", [1 << 16, 100])
@pytest.mark.parametrize("name", CASES)
def test_a_block_is_the_same_after_packing(name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MOST_CODES", most)
    parsed, size = CASES[name]
    packer, arenas = Packer(), Arenas(2)
    for _ in range(2):
        packed = packer.pack(parsed)
        found = unpack(packed, arenas)
        for part in ("indptr", "keys", "values", "labels", "weights", "targets"):
            one, other = getattr(found.chunk, part), getattr(parsed.chunk, part)
            assert (one is None and other is None) or one.tobytes() == other.tobytes(), part
            assert one is None or one.dtype == other.dtype
        assert found[1:] == parsed[1:]
    assert packed.nbytes <= ROWS * (EACH * size + 3) + 64 or most == 100


def test_blocks_without_dictionary_or_rows() -> None:
    parsed, _ = CASES["hashed"]
    packed = Packer().pack(parsed, far=False)
    assert np.shares_memory(packed.keys, parsed.chunk.keys)
    assert packed.nbytes <= ROWS * (EACH * 8 + 3) + 64
    assert unpack(packed, Arenas(2)).chunk.keys.tobytes() == parsed.chunk.keys.tobytes()
    nothing = Chunk.from_csr([0], [], [], [])
    found = unpack(Packer().pack(Parsed(nothing, LineTally(), [], b"")), Arenas(2))
    assert len(found.chunk) == found.chunk.nnz == 0


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    """The Ray that is found at any address."""
    found = FakeRay()
    monkeypatch.setattr("thresher.cluster.readers.Connection", lambda address, readers: FakeConnection(found))
    return found


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("a.svm").write_text("".join(f"{k % 2} {1 + k % 5}:1 {7 + k % 3}:0.5\n" for k in range(40)))
    return "a.svm"


def test_predictions_are_those_of_one_process(fake: FakeRay, data: str) -> None:
    thresher.train(data).save("model")
    assert status_of(["predict", "model", data, "-o", "here"]) == 0
    assert not fake.actors
    assert status_of(["predict", "model", data, "-o", "there", "--workers", "1"]) == 0
    assert [type(one._inner).__name__ for one in fake.actors] == ["Reader"]
    assert Path("there").read_bytes() == Path("here").read_bytes() != b""
