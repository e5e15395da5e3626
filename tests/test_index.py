"""Indexes: which features they count, free, refuse or merge; and several tables on one."""

import gc
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import thresher
from tests.plain import not_compiled
from tests.streams import fingerprint, model_of, read_weights, stream
from thresher.data.chunk import Chunk, read_only
from thresher.engine import index as indexes
from thresher.engine import lookup
from thresher.engine.index import GrowingIndex, Resolved, make_index, store_spec
from thresher.learning.model.margins import finder_in
from thresher.learning.model.model import Model, make_loop
from thresher.learning.model.recipe import Recipe
from thresher.learning.model.rule_state import ManyState, OneState

Keys = NDArray[np.uint64]


def singles(keys: Keys, per_row: int = 1) -> Chunk:
    """Rows of `per_row` keys each, with value 1 and labels that alternate."""
    rows = len(keys) // per_row
    labels = np.where(np.arange(rows) % 2, 1.0, -1.0)
    return Chunk.from_csr(np.arange(rows + 1) * per_row, keys, np.ones(len(keys)), labels)


def spread_keys(seed: int, count: int) -> Keys:
    keys = np.unique(np.random.default_rng(seed).integers(0, 2**64, count, np.uint64))
    return np.random.default_rng(seed + 1).permutation(keys)


def test_features_are_counted_exactly_until_one_is_freed() -> None:
    keys = spread_keys(3, 50_000)
    model = Model("fobos:l1=10", intercept=False)
    model.learn(singles(keys[:30_000]))
    model.learn(singles(keys[:30_000]))
    assert model.features_seen == 30_000
    model.learn(singles(keys[30_000:]))
    assert model.features_seen == len(keys)


def test_features_that_were_freed_are_not_counted_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexes, "ALWAYS_KEPT", 1 << 12)
    keys = spread_keys(4, 20_000)
    model = Model("fobos:l1=10", intercept=False)
    model.learn(singles(keys[:4_000]))
    assert (model.features_seen, model.features_freed) == (4_000, False)
    for _ in range(3):
        model.learn(singles(keys))
        model.learn(singles(keys))
        assert 4_000 <= model.features_seen <= len(keys)
    seen, freed, _ = model.state()["counts"]
    assert freed > 40_000
    assert model.features_freed
    assert model.features_seen == seen
    model.save(tmp_path / "m")
    again = Model.load(tmp_path / "m")
    assert (again.features_seen, again.features_freed) == (seen, True)
    assert thresher.info(tmp_path / "m")["features_freed"]
    assert f"features seen          at least {seen:,}\n" in str(thresher.info(tmp_path / "m"))


def test_rows_are_those_of_a_dictionary_in_an_index_beyond_the_cache() -> None:
    rng = np.random.default_rng(11)
    keys = np.concatenate([spread_keys(12, 90_000), np.arange(1, 60_000, dtype=np.uint64)])
    keys = rng.choice(keys, 400_000)
    arrays = read_only(keys), read_only(np.arange(0, len(keys) + 1, 8))
    slots, known = lookup.empty_index(160_000), np.zeros(160_000, np.uint64)
    rows, count = np.empty(len(keys), np.uint32), 1
    assert slots.size > lookup.FITS
    for lo in range(0, len(keys) // 8, 10_000):
        ends = lo, min(lo + 10_000, len(keys) // 8)
        done, count = lookup.find_or_add(slots, known, count, 160_000, *arrays, *ends, rows)
        assert done == ends[1]
    numbers = dict[int, int]()
    wanted = [numbers.setdefault(key, len(numbers) + 1) for key in keys.tolist()]
    assert rows.tolist() == wanted
    asked = np.concatenate([keys[:1_000], spread_keys(13, 1_000), np.zeros(1, np.uint64)])
    found = np.empty(len(asked), np.uint32)
    lookup.find(slots, known, read_only(asked), found)
    assert found.tolist() == [numbers.get(key, 0) for key in asked.tolist()]


def test_memory_follows_the_live_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Features that occur once and die, 600,000, and 10,000 that live, in tables of matching size."""
    monkeypatch.setattr(indexes, "ALWAYS_KEPT", 1 << 10)
    rng = np.random.default_rng(5)
    model = Model("fobos:l1=2.5e-5", rate="constant:0.2", intercept=False)
    peak = 0.0
    for part in range(60):
        passing = np.arange(10_000, dtype=np.uint64) + np.uint64(10**6 + 10_000 * part)
        keys = np.column_stack([rng.integers(0, 10_000, 10_000, np.uint64), passing])
        labels = np.where(keys[:, 0] % 2, 1.0, -1.0)
        values = np.tile([1.0, 0.01], 10_000)
        model.learn(Chunk.from_csr(np.arange(10_001) * 2, keys.ravel(), values, labels))
        peak = max(peak, model.nbytes / model.nonzero)
    assert model.features_freed
    assert 10_000 < model.features_seen < 610_000
    assert 2_000 < model.nonzero < 20_000
    assert peak <= 64


@pytest.mark.usefixtures("plainly")
def test_the_direct_store_refuses_ids_that_are_too_large_and_says_what_to_do() -> None:
    model = model_of("sgd", store="direct")
    with pytest.raises(OverflowError, match=r"id 18446744073709551615 .* use the growing store"):
        model.learn(Chunk.of_rows([(1.0, {3: 1.0, 2**64 - 1: 1.0})]))
    assert model.examples == 0
    assert model.nonzero == 0


@pytest.mark.parametrize("options", [{}, {"batch": 2}], ids=["alone", "batch"])
def test_how_far_a_direct_table_grows_depends_on_the_largest_id_alone(options: dict[str, Any]) -> None:
    with not_compiled():
        whole, pieces = (model_of("sgd", store="direct", **options) for _ in range(2))
        chunk = singles(np.array([5_000, 6_000, 9_000, 10], np.uint64))
        whole.learn(chunk)
        pieces.learn(chunk, 0, 2)
        pieces.learn(chunk, 2, 4)
    assert fingerprint(pieces) == fingerprint(whole)


@pytest.mark.usefixtures("plainly")
def test_predicting_adds_no_features() -> None:
    for spec in ("growing", "direct", "hashed:12", "hashed:12,signed"):
        model = model_of("sgd", store=spec)
        model.learn(Chunk.of_rows([(1.0, {1: 1.0})]))
        assert model.predict(Chunk.of_rows([(0.0, {10**6: 1.0}), (0.0, {})])) == pytest.approx(
            model.intercept
        )
        assert model.features_seen == 1


@pytest.mark.usefixtures("plainly")
def test_rows_that_were_found_before_are_used_only_where_they_belong() -> None:
    one, other = model_of("sgd"), model_of("sgd")
    chunk = stream(50, 20, features=9).chunk
    one.learn(chunk)
    other.learn(chunk.take(np.arange(len(chunk))[::-1]))
    finder = finder_in(one.index)
    assert finder is not None
    found = finder(chunk)
    assert found.found[2].rows.any()
    changed = replace(found, keys=found.keys + np.uint64(1))
    for model in (one, other):
        for rows, plain in (
            (found, chunk),
            (changed, replace(changed, found=None)),
            (found.rows(3, 9), chunk.rows(3, 9)),
        ):
            assert model.margins(rows).tobytes() == model.margins(plain).tobytes()
    index, keys, there = found.found
    wrong = replace(found, found=(index, keys, there._replace(rows=np.zeros_like(there.rows))))
    assert one.margins(wrong).tobytes() != one.margins(chunk).tobytes()
    assert finder_in(make_index("hashed:9")) is None


@pytest.mark.usefixtures("plainly")
def test_a_hashed_store_merges_keys_that_meet_in_one_example() -> None:
    """With two rows only, the model must be that of the two sums of features."""
    data = stream(51, 80, features=9)
    model = model_of("fobos:l1=0.01", store="hashed:1", seed=9)
    model.learn(data.chunk)
    seed = lookup.mix(np.array([9], np.uint64))
    mixed = [int(bit) for bit in lookup.mix(np.arange(9, dtype=np.uint64) ^ seed) >> np.uint64(63)]
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


@pytest.mark.parametrize("spec", ["ftrl:alpha=0.2,l1=0.1", "pa", "adagrad-rda:eta=0.2,l1=0.02", "l1-ball"])
def test_signs_without_collisions_change_nothing_but_the_signs_of_weights(spec: str) -> None:
    """Law 4: a weight and its values change sign together."""
    data = stream(52, 150, features=9)
    with not_compiled():
        plain, signed = (model_of(spec, store=store) for store in ("growing", "hashed:16,signed"))
        for model in (plain, signed):
            model.learn(data.chunk)
        assert signed.tally == plain.tally
        assert signed.predict(data.chunk).tobytes() == plain.predict(data.chunk).tobytes()
        assert sorted(abs(signed.weights()[1])) == sorted(abs(plain.weights()[1]))
        assert sorted(signed.weights()[1]) != sorted(plain.weights()[1])


def test_features_of_opposite_sign_that_meet_are_subtracted() -> None:
    keys = np.arange(64, dtype=np.uint64)
    alone = [make_index("hashed:1,signed", 4) for _ in range(2)]
    signs, rows = np.empty(64), np.empty(64, int)
    for k in range(64):
        _, _, row, value = alone[0].find(keys[k : k + 1], np.array([0, 1]), np.ones(1, np.float32))
        signs[k], rows[k] = value[0], row[0]
    assert set(signs) == {-1.0, 1.0}
    assert set(rows) == {0, 1}
    values = np.arange(1, 65, dtype=np.float32)
    _, ends, row, merged = alone[1].find(keys, np.array([0, 64]), values)
    assert ends.tolist() == [0, 2]
    assert dict(zip(row[:2], merged[:2], strict=True)) == {
        r: (signs * values)[rows == r].sum() for r in (0, 1)
    }


@pytest.mark.parametrize(
    "spec", ["hashed:9,7", "hashed:9,7,signed", "hashed:20,3,signed", "direct", "growing"]
)
def test_the_spec_of_a_store_makes_it_again(spec: str) -> None:
    assert store_spec(spec, 5) == spec


def test_a_hashed_store_has_defaults_and_limits() -> None:
    assert store_spec("hashed", 5) == "hashed:20,5"
    assert store_spec("hashed:signed", 5) == "hashed:20,5,signed"
    assert store_spec("hashed:9,signed", 5) == "hashed:9,5,signed"
    with pytest.raises(ValueError, match=r"simplex: its weights do not start at zero.* signed"):
        model_of("simplex:features=9", store="hashed:9,signed")


@pytest.mark.parametrize("spec", ["grow", "growing:3", "hashed:²", "hashed:1,2,3", "", "hashed:signed,8"])
def test_unknown_stores_are_answered_with_the_known(spec: str) -> None:
    with pytest.raises(ValueError, match="known: growing, direct, hashed:BITS"):
        make_index(spec)


@pytest.mark.parametrize("bits", [0, 32, 99])
def test_a_hashed_store_of_impossible_size(bits: int) -> None:
    with pytest.raises(ValueError, match=r"BITS must lie in 1\.\.31"):
        make_index(f"hashed:{bits}")


def loop_on(index: GrowingIndex, spec: str, **options: Any) -> OneState | ManyState:
    recipe = Recipe(spec, **options)
    return make_loop(recipe, recipe.objective, recipe.rule_part, index)


def learn_side_by_side(index: GrowingIndex, loops: list[OneState | ManyState], chunk: Chunk) -> None:
    """Each loop learns the resolved examples, one after the other, until all are learned."""
    rows, done = np.empty(chunk.nnz, np.uint32), 0
    arrays = read_only(chunk.keys), read_only(chunk.indptr), read_only(chunk.values)
    while done < len(chunk):
        found: Resolved = index.resolve(*arrays, done, len(chunk), rows)
        for loop in loops:
            stop = loop.learn(found, done, loop.targets(chunk), chunk.weights, None, chunk.nnz)
            assert stop == found.hi
        done = found.hi
        if done < len(chunk):
            index.make_room(int(chunk.indptr[done + 1] - chunk.indptr[done]))


def weights_of(index: GrowingIndex, loop: OneState | ManyState) -> dict[int, bytes]:
    rows = zip(index.features(), loop.settled_weights(), strict=True)
    return {int(key): np.asarray(weight).tobytes() for key, weight in rows if np.any(weight != 0)}


SIDE_BY_SIDE: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "two that truncate": [("fobos:l1=0.2", {}), ("truncated-gradient:gravity=0.2", {"dtype": "float64"})],
    "one that keeps all": [("fobos:l1=0.2", {}), ("sgd", {})],
    "one that points to rows": [("l1-ball:radius=0.3", {}), ("fobos:l1=0.2", {})],
    "an average": [("fobos:l1=0.2", {"average": True}), ("fobos:l1=0.1", {})],
    "many outputs": [
        ("fobos:l1=0.2", {"batch": 1, "outputs": "values:1"}),
        ("fobos:l1=0.1", {"average": True}),
    ],
}


@pytest.mark.parametrize("members", SIDE_BY_SIDE.values(), ids=SIDE_BY_SIDE)
def test_tables_that_share_an_index_are_as_if_alone(members: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes, "FIRST_SIZE", 8)
    monkeypatch.setattr(indexes, "ALWAYS_KEPT", 8)
    chunk = stream(61, 200, features=60).chunk
    chunk = replace(chunk, targets=chunk.labels[:, np.newaxis])
    with not_compiled():
        index = GrowingIndex()
        loops = [loop_on(index, spec, **options) for spec, options in members]
        learn_side_by_side(index, loops, chunk)
        alone = []
        for spec, options in members:
            own = GrowingIndex()
            loop = loop_on(own, spec, **options)
            learn_side_by_side(own, [loop], chunk)
            alone.append((own, loop))
        for loop, (own, single) in zip(loops, alone, strict=True):
            assert weights_of(index, loop) == weights_of(own, single)
            assert weights_of(index, loop)
            assert loop.clock.tobytes() == single.clock.tobytes()
            assert loop.S.shape[0] == index.size
    assert index.tensors()["counts"][1] <= min(own.tensors()["counts"][1] for own, _ in alone)


def test_a_row_is_freed_when_it_is_idle_in_every_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes, "ALWAYS_KEPT", 8)
    keys, freed = spread_keys(9, 6_000), []
    for specs in (["fobos:l1=10"] * 2, ["fobos:l1=10", "sgd"]):
        with not_compiled():
            index = GrowingIndex()
            loops = [loop_on(index, spec, intercept=False) for spec in specs]
            learn_side_by_side(index, loops, singles(keys))
        freed.append(int(index.tensors()["counts"][1]))
    assert freed[0] > 3_000
    assert freed[1] == 0


def test_nothing_keeps_a_model_that_nobody_holds() -> None:
    """Its memory is freed at once, not by the cyclic garbage collector."""
    with not_compiled():
        model = model_of("l1-ball", outputs="values:2")
        model.learn(
            replace((chunk := stream(62, 20).chunk), targets=np.repeat(chunk.labels[:, None], 2, axis=1))
        )
        model.predictor().predict(chunk)
    gc.collect()
    gc.disable()
    try:
        kept: list[Any] = [weakref.ref(model), weakref.ref(model.loop), weakref.ref(model.feed.index)]
        del model
        assert [one() for one in kept] == [None, None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize("size", [0, 1, 1000, 100_000])
def test_a_table_begins_with_a_line_of_the_cache(size: int) -> None:
    grown = lookup.resize(np.ones((3, 2), np.float32), size)
    assert grown.shape == (size, 2)
    assert grown.dtype == np.float32
    assert grown.ctypes.data % 64 == 0 or not size
    assert grown[:3].all()
    assert not grown[3:].any()
