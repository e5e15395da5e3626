"""Several tables on one index: each behaves as if alone, and none outlives its model."""

import gc
import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.plain import not_compiled
from tests.streams import model_of, stream
from tests.test_index import singles, spread_keys
from thresher.data.chunk import Chunk
from thresher.engine import index as indexes
from thresher.engine import lookup
from thresher.engine.index import GrowingIndex, Resolved
from thresher.learning.model.recipe import Recipe
from thresher.learning.model.rule_state import ManyState, OneState, make_loop


def loop_on(index: GrowingIndex, spec: str, **options: Any) -> OneState | ManyState:
    recipe = Recipe(spec, **options)
    return make_loop(recipe, recipe.head(), recipe.make_rule(), index)


def learn_side_by_side(index: GrowingIndex, loops: list[OneState | ManyState], chunk: Chunk) -> None:
    """Each loop learns the resolved examples, one after the other, until all are learned."""
    rows, done = np.empty(chunk.nnz, np.uint32), 0
    while done < len(chunk):
        found: Resolved = index.resolve(chunk.keys, chunk.indptr, chunk.values, done, len(chunk), rows)
        for loop in loops:
            stop = loop.learn(found, loop.targets(chunk, None), chunk.weights, None, done, chunk.nnz)
            assert stop == found.hi
        done = found.hi
        if done < len(chunk):
            index.make_room(int(chunk.indptr[done + 1] - chunk.indptr[done]))


def weights_of(index: GrowingIndex, loop: OneState | ManyState) -> dict[int, bytes]:
    rows = zip(index.features(), loop.settled(), strict=True)
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
def test_tables_that_share_an_index_are_as_if_alone(
    members: list[tuple[str, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
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
        model = model_of("l1-ball", outputs="values:2", average=False)
        model.learn(
            replace((chunk := stream(62, 20).chunk), targets=np.repeat(chunk.labels[:, None], 2, axis=1))
        )
        model.readout().predict(chunk)
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
    grown = lookup.resized(np.ones((3, 2), np.float32), size)
    assert grown.shape == (size, 2)
    assert grown.dtype == np.float32
    assert grown.ctypes.data % 64 == 0 or not size
    assert grown[:3].all()
    assert not grown[3:].any()
