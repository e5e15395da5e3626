"""Hashes and draws as the pages write them down, programmed again in plain Python integers."""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from thresher.data import concat, open_source
from thresher.data.chunk import Chunk
from thresher.data.features.murmur import hash_bytes
from thresher.data.layout import Layout
from thresher.engine.index import HashedIndex
from thresher.lanes.bags import Bags
from thresher.learning.model.preparation import Intake

ALL, G = 2**64 - 1, 0x9E3779B97F4A7C15
SEEDS = [0, 7, 2**63 + 5]
KEYS = [0, 1, 17, 2**40 + 3, ALL]


def mix(k: int) -> int:
    return (k ^ k >> 32) * G & ALL


def scatter(m: int) -> int:
    n = (m ^ m >> 29) * 0xBF58476D1CE4E5B9 & ALL
    return n ^ n >> 32


def unit(h: int) -> float:
    return float(h >> 11) * 2.0**-53


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_rows_and_signs_of_the_hashed_store(seed: int, signed: bool) -> None:
    index = HashedIndex(12, seed, signed)
    for key in KEYS:
        found = index.find(np.array([key], np.uint64), np.array([0, 1]), np.array([3], np.float32))
        h = mix(key ^ mix(seed))
        h = scatter(h) if signed else h
        assert found.rows[0] == h >> 64 - 12
        assert found.values[0] == (3 if h & 1 or not signed else -3)


def draws(seed: int, i: int, models: int) -> Iterator[int]:
    below = [sum(math.exp(-1) / math.factorial(c) for c in range(j + 1)) for j in range(18)]
    r = scatter(mix((i * G + scatter(mix(seed + G & ALL))) & ALL))
    for k in range(models):
        u = unit(scatter(mix((r + (k + 1) * G) & ALL)))
        yield sum(p <= u for p in below)


@pytest.mark.parametrize("seed", SEEDS)
def test_draws_of_ensembles(seed: int) -> None:
    found, apart = Bags.of(3, seed).draw(10, 200), Bags.of("disjoint:3", seed).draw(10, 200)
    for i in range(200):
        assert found[:, i].tolist() == [*draws(seed, 10 + i, 3)]
        r = scatter(mix(((10 + i) * G + scatter(mix(seed + G & ALL))) & ALL))
        assert apart[:, i].tolist() == [int(k == math.floor(3 * unit(r))) for k in range(3)]
    assert {0, 1, 2, 3} <= {*found.ravel().tolist()}


@pytest.mark.parametrize("seed", SEEDS)
def test_draws_of_admission(seed: int) -> None:
    rows = 80
    keys = np.arange(100, 100 + rows, dtype=np.uint64)
    intake = Intake(None, "poisson:0.3,bits=14", seed)
    kept = intake.learned(
        Chunk.from_csr(np.arange(rows + 1), keys, np.ones(rows), np.ones(rows)), again=False
    )
    expected = []
    for number, key in enumerate(keys.tolist()):
        u = scatter(mix(scatter(mix(key ^ seed)) ^ scatter(mix(number + seed & ALL))))
        expected += [key] if u >> 11 < 0.3 * 2**53 else []
    assert kept.keys.tolist() == expected
    assert 10 < len(expected) < 40


def test_n_grams_of_characters_have_another_seed(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("label,t\n1,ab\n")
    layout = Layout("csv", label="label", text=("t",), ngrams="words=1,chars=2")
    (row,) = open_source(tmp_path / "a.csv", layout=layout, domain="real").chunks()
    seed = hash_bytes(b"t")
    assert {*row.keys.tolist()} == {hash_bytes(b"ab", seed), hash_bytes(b"ab", seed ^ 1)}


def test_products_are_formed_before_repeats_are_added(tmp_path: Path) -> None:
    for line, squared in (("1 1:2 1:3\n", 19.0), ("1 1:5\n", 25.0)):
        (tmp_path / "a.svm").write_text(line)
        read = open_source(tmp_path / "a.svm", layout=Layout("svmlight", interact=("*,*",)), domain="real")
        assert sorted(concat([*read.chunks()]).values.tolist()) == [5.0, squared]
