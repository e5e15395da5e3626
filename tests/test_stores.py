"""Stores: how many features they count, how much memory they hold, which ids they refuse or merge."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.streams import model_of, read_weights, stream
from thresher.data.chunk import Chunk
from thresher.engine import stores, tables
from thresher.engine.stores import GrowingStore, make_store
from thresher.learning.model import Model

Keys = NDArray[np.uint64]


def singles(keys: Keys, per_row: int = 1) -> Chunk:
    """Rows of `per_row` keys each, with value 1 and labels that alternate."""
    rows = len(keys) // per_row
    labels = np.where(np.arange(rows) % 2, 1.0, -1.0)
    return Chunk.from_csr(np.arange(rows + 1) * per_row, keys, np.ones(len(keys)), labels)


def spread_keys(seed: int, count: int) -> Keys:
    keys = np.unique(np.random.default_rng(seed).integers(0, 2**64, count, np.uint64))
    return np.random.default_rng(seed + 1).permutation(keys)


# Counting


@pytest.mark.parametrize("spread", [True, False], ids=["spread", "consecutive"])
@pytest.mark.parametrize("count", [100, 10_000, 1_000_000])
def test_the_estimate_of_distinct_keys_is_near(count: int, spread: bool) -> None:
    keys = spread_keys(1, count) if spread else np.arange(count, dtype=np.uint64)
    registers = np.zeros(tables.REGISTERS, np.uint8)
    indptr = np.array([0, len(keys)])
    rows = np.empty(len(keys), np.uint32)
    slots, known = tables.empty_index(count + 2), np.zeros(count + 2, np.uint64)
    tables.find_or_add(slots, known, registers, 1, count + 1, keys, indptr, 0, 1, rows)
    # a standard error is 1.04 / sqrt(registers) = 0.8 %
    assert abs(tables.estimate(registers) - len(keys)) <= 4 * 0.0081 * len(keys) + 1


def test_features_are_counted_exactly_until_one_is_freed() -> None:
    keys = spread_keys(3, 50_000)
    model = Model("fobos:l1=10", intercept=False)
    model.learn(singles(keys[:30_000]))
    model.learn(singles(keys[:30_000]))
    assert model.features_seen == 30_000
    model.learn(singles(keys[30_000:]))
    assert model.features_seen == len(keys)


def test_features_that_come_again_after_they_were_freed_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "_ALWAYS_KEPT", 1 << 12)
    keys = spread_keys(4, 20_000)
    model = Model("fobos:l1=10", intercept=False)
    for _ in range(3):
        model.learn(singles(keys))
    born, freed, _ = model.state()["counts"]
    assert freed > 40_000
    assert born > 40_000
    assert model.features_seen == pytest.approx(len(keys), rel=0.03)


# Memory


def test_memory_follows_the_live_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two million features, each met once and soon dead, around 10,000 that live, in tables to scale."""
    monkeypatch.setattr(stores, "_ALWAYS_KEPT", 1 << 10)
    rng = np.random.default_rng(5)
    model = Model("fobos:l1=2.5e-5", rate="constant:0.2", intercept=False)
    peak = 0.0
    for part in range(200):
        passing = np.arange(10_000, dtype=np.uint64) + np.uint64(10**6 + 10_000 * part)
        keys = np.column_stack([rng.integers(0, 10_000, 10_000, np.uint64), passing])
        labels = np.where(keys[:, 0] % 2, 1.0, -1.0)
        values = np.tile([1.0, 0.01], 10_000)
        model.learn(Chunk.from_csr(np.arange(10_001) * 2, keys.ravel(), values, labels))
        held = model.nbytes - 4 * int(tables.NEAR)  # the fixed part of the index: half a megabyte
        peak = max(peak, held / model.nonzero)
    assert model.features_seen == pytest.approx(2_010_000, rel=0.03)
    assert 2_000 < model.nonzero < 20_000
    assert peak <= 64


def test_a_table_without_idle_rows_holds_under_64_bytes_a_weight() -> None:
    model = Model("fobos:l1=0", intercept=False)
    worst = 0.0
    for keys in np.array_split(spread_keys(6, 1_000_000), 50):
        model.learn(singles(keys, per_row=1))
        if model.features_seen > 1 << 17:
            worst = max(worst, model.nbytes / model.nonzero)
    assert 0 < worst <= 64


def test_sweeping_shrinks_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "_ALWAYS_KEPT", 1 << 8)
    monkeypatch.setattr(stores, "_FIRST_LIMIT", 1 << 8)
    model = Model("fobos:l1=0.001", rate="constant:0.5", intercept=False)
    model.learn(singles(spread_keys(7, 20_000), per_row=10))
    fixed = 4 * int(tables.NEAR)
    before = model.nbytes - fixed
    strong = Model("fobos:l1=0.1", rate="constant:0.5", intercept=False)
    strong.restore(model.state())
    strong.learn(singles(spread_keys(8, 20_000), per_row=10))
    assert strong.nbytes - fixed < before / 5


# Ids


def test_the_direct_store_refuses_ids_that_are_too_large_and_says_what_to_do() -> None:
    model = model_of("sgd", store="direct")
    with pytest.raises(OverflowError, match=r"feature id 18446744073709551615 .* use --store growing"):
        model.learn(Chunk.of_rows([(1.0, {3: 1.0, 2**64 - 1: 1.0})]))
    assert model.examples == 0
    assert model.nonzero == 0


@given(st.lists(st.integers(0, 2**64 - 1), unique=True, max_size=60))
def test_any_key_has_a_row_of_its_own_in_a_growing_store(keys: list[int]) -> None:
    store = GrowingStore((1,), np.float64)
    names = np.array(keys, np.uint64)
    indptr = np.array([0, len(keys)])
    rows = np.empty(len(keys), np.uint32)
    store.resolve(names, indptr, np.ones(len(keys), np.float32), 0, 1, rows)
    assert len(set(rows.tolist())) == len(keys)
    assert 0 not in rows
    assert (store.features()[rows] == names).all()
    unknown = np.array([k for k in range(50) if k not in keys], np.uint64)
    assert not store.find(unknown, np.array([0, len(unknown)]), np.ones(len(unknown), np.float32)).rows.any()


def test_predicting_adds_no_features() -> None:
    for spec in ("growing", "direct", "hashed:12"):
        model = model_of("sgd", store=spec)
        model.learn(Chunk.of_rows([(1.0, {1: 1.0})]))
        assert model.predict(Chunk.of_rows([(0.0, {10**6: 1.0}), (0.0, {})])) == pytest.approx(
            model.intercept
        )
        assert model.features_seen == 1


def test_a_hashed_store_merges_keys_that_meet_in_one_example() -> None:
    """With two rows only, the model must be that of the two summed features."""
    data = stream(51, 80, features=9)
    model = model_of("fobos:l1=0.01", store="hashed:1", seed=9)
    model.learn(data.chunk)
    mixed = [
        int(tables.mix(np.uint64(j) ^ np.uint64(tables.mix(np.uint64(9)))) >> np.uint64(63)) for j in range(9)
    ]
    assert set(mixed) == {0, 1}
    rows = []
    for i, x in enumerate(data.X):
        stored = data.chunk.keys[data.chunk.indptr[i] : data.chunk.indptr[i + 1]].astype(int)
        sums: dict[int, float] = {}
        for j in stored:
            sums[mixed[j]] = float(np.float32(sums.get(mixed[j], 0.0)) + np.float32(x[j]))
        rows.append((float(data.y[i]), sums))
    summed = model_of("fobos:l1=0.01", store="direct")
    summed.learn(Chunk.of_rows(rows, data.importance))
    assert read_weights(model, 2) == pytest.approx(read_weights(summed, 2), abs=1e-12)
    assert model.predict(data.chunk) == pytest.approx(summed.predict(Chunk.of_rows(rows)), abs=1e-12)
    assert model.features_seen == 2


def test_the_seed_of_a_hashed_store_moves_the_keys() -> None:
    kept = []
    for seed in (0, 1):
        model = model_of("sgd", store="hashed:16", seed=seed)
        model.learn(Chunk.of_rows([(1.0, dict.fromkeys(range(20), 1.0))]))
        kept.append(model.weights()[0].tolist())
    assert kept[0] != kept[1]


@pytest.mark.parametrize("spec", ["grow", "growing:3", "hashed:x", "hashed:1,2,3", "", "direct:1"])
def test_unknown_stores_are_answered_with_the_known(spec: str) -> None:
    with pytest.raises(ValueError, match="known: growing, direct, hashed:BITS"):
        make_store(spec, (1,), np.float32)


@pytest.mark.parametrize("bits", [0, 32, 99])
def test_a_hashed_store_of_impossible_size(bits: int) -> None:
    with pytest.raises(ValueError, match=r"bits must lie in 1\.\.31"):
        make_store(f"hashed:{bits}", (1,), np.float32)
