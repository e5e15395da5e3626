"""Offsets: a number of each example that is added to its margin, and to nothing else. Plain Python."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import thresher
from tests import oracles, streams
from tests.covering import covering_for
from tests.plain import compiled_if, not_compiled
from tests.test_law_of_continuing import halves
from tests.test_laws import EXACT
from thresher import parts
from thresher.data.chunk import Chunk
from thresher.data.errors import DataError
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe

OPTIONS: list[dict[str, Any]] = [
    *({}, {"batch": 7}, {"average": True, "rule": "fobos:l1=0.02", "rate": "constant:0.1"}),
    *({"scale": "standard"}, {"admit": "2", "centre": True}, {"sample": "-1=0.5", "scale": "max-abs"}),
    {"store": "hashed:5", "dtype": "float64", "intercept": False},
]


@pytest.fixture(autouse=True)
def plain(request: pytest.FixtureRequest) -> Iterator[None]:
    with compiled_if("compiled" in request.node.name):
        yield


def shifts(rows: int, seed: int = 3) -> Any:
    return np.random.default_rng(seed).normal(size=rows).astype(np.float32)


def with_shifts(data: streams.Stream) -> tuple[streams.Stream, Any]:
    offsets = shifts(len(data.chunk))
    return data._replace(chunk=data.chunk.with_offsets(offsets)), offsets.astype(np.float64)


def recipe_of(options: dict[str, Any], loss: str = "logistic") -> Recipe:
    return Recipe(**{"rule": "ftrl:l1=0.02", "loss": loss, "offset": True, **options})


def learned(recipe: Recipe, *chunks: Chunk) -> Model:
    model = Model(recipe)
    for chunk in chunks:
        model.learn(chunk)
    model.finish()
    return model


@pytest.mark.parametrize("name", streams.RULES)
def test_lazy_is_eager(name: str) -> None:
    for spec, loss, intercept in covering_for(
        name, streams.settings_of(name), ("logistic", "squared"), (True, False)
    ):
        with streams.case(spec, loss, intercept):
            data, offsets = with_shifts(streams.stream(seed=1, rows=64, domain=streams.domain_of(loss)))
            model = streams.model_of(spec, loss, intercept=intercept, offset=True)
            found = (
                parts.part_name(type(model.rule)),
                *(model.rule, model.loss, data.X, data.y, data.importance),
            )
            expected = oracles.run(*found, intercept=intercept, offset=offsets)
            model.learn(data.chunk)
            scale = max(1.0, np.abs(expected.weights).max(), abs(expected.intercept))
            weights = streams.read_weights(model, data.X.shape[1])
            assert np.abs(weights - expected.weights).max() <= EXACT * scale
            assert abs(model.intercept - expected.intercept) <= EXACT * scale
            assert model.tally.loss == pytest.approx(data.importance @ expected.losses)
            assert model.predict(data.chunk) == pytest.approx(
                data.X @ weights + model.intercept + offsets, abs=1e-6 * scale
            )


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_offsets_of_zero_are_none(options: dict[str, Any]) -> None:
    chunk = streams.stream(seed=4).chunk
    model = learned(recipe_of(options), chunk.with_offsets(np.zeros(len(chunk))))
    plain = learned(recipe_of(options | {"offset": False}), chunk)
    found, expected = streams.fingerprint(model), streams.fingerprint(plain)
    waiting = {name for name in expected if "pending." in name}  # where each row has its offset
    assert [found[n] for n in expected if n not in waiting] == [
        expected[n] for n in expected if n not in waiting
    ]
    assert model.features_seen == plain.features_seen


def test_the_store_changes_nothing() -> None:
    chunk = with_shifts(streams.stream(seed=6))[0].chunk
    found = [learned(recipe_of({"store": store}), chunk) for store in ("growing", "direct", "hashed:8")]
    for model in found[1:]:
        assert np.array_equal(model.predict(chunk), found[0].predict(chunk))
        assert np.array_equal(np.sort(model.weights()[1]), np.sort(found[0].weights()[1]))


def test_what_is_saved_is_what_predicts(tmp_path: Any) -> None:
    chunk = with_shifts(streams.stream(seed=9))[0].chunk
    model = learned(recipe_of({"centre": True}), chunk)
    thresher.save(model, tmp_path / "whole")
    thresher.save(model, tmp_path / "weights", state=False)
    model.predictor().save(tmp_path / "predictor")
    for name in ("whole", "weights", "predictor"):
        loaded = thresher.load(tmp_path / name)
        assert np.array_equal(loaded.predict(chunk), model.predict(chunk))
        with pytest.raises(DataError, match="was trained with offsets, and these data have none"):
            loaded.predict(replace(chunk, offsets=None))
    assert thresher.info(tmp_path / "whole")["offset"] is True


@pytest.mark.filterwarnings("ignore:of the .* kept features")
def test_what_takes_rows_takes_offsets(tmp_path: Any) -> None:
    data = streams.stream(seed=10)
    chunk, offsets = data.chunk, shifts(len(data.chunk))
    both = thresher.ensemble(chunk, rule="ftrl", models=8, offsets=offsets, passes=1)
    explained = both.explain(chunk, offsets=offsets)
    assert [one["offset"] for one in explained] == offsets.tolist()
    assert [one["margin"] for one in explained] == both.predict(chunk, offsets=offsets).tolist()
    found = both.interval(chunk, offsets=offsets)
    assert found[:, 0] == pytest.approx(both.predict(chunk, "probability", offsets=offsets))
    assert both.spread(chunk, offsets=offsets).shape == offsets.shape
    with pytest.raises(DataError, match="these data have none"):
        both.interval(chunk)
    thresher.report(both.models[0], chunk, tmp_path / "page.html", offsets=offsets)
    within = thresher.select(chunk.with_offsets(offsets), rule=recipe_of({}), bags=4, passes=1)
    beside = thresher.select(chunk, rule=recipe_of({}), bags=4, passes=1, offsets=offsets)
    assert beside.share.tolist() == within.share.tolist()


KEYS = [1, 2, 3, 4, 5, 6]
LAST = [0, 3, 2**63 - 1, 2**63, 2**64 - 4, 2**64 - 1]
"""As many, in the same order: the largest, and complements of others"""


def rows_with(keys: list[int]) -> Chunk:
    rng = np.random.default_rng(13)
    there = rng.random((60, len(keys))) < [0.9, 0.7, 1, 0.8, 1, 0.9]
    X = rng.integers(100, 105, (60, len(keys))) * there * [2.0**-14, 1, 2.0**16, 2.0**-20, 1, 2.0**12]
    listed = there | (rng.random(there.shape) < 0.5)  # zeros may be stored
    rows = [
        {k: x for k, x, own in zip(keys, *both, strict=True) if own} for both in zip(X, listed, strict=True)
    ]
    return Chunk.of_rows([(float(there.sum() % 2), row) for there, row in zip(X > 102, rows, strict=True)])


@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("options", [*OPTIONS[:-1], {"centre": True}, {"dtype": "float64"}], ids=str)
def test_every_key_is_a_feature(options: dict[str, Any], shifted: bool, tmp_path: Any) -> None:
    found, kept = [], []
    for keys in (KEYS, LAST):
        chunk = rows_with(keys)
        chunk = chunk.with_offsets(shifts(len(chunk))) if shifted else chunk
        recipe = recipe_of(
            {**options, "offset": shifted, "seed": 0} | ({"admit": "2,bits=20"} if "admit" in options else {})
        )
        model = learned(recipe, chunk)
        first, *others = halves(chunk)
        continued = thresher.train(first, recipe, passes=1)
        continued.save(tmp_path / "half.model")
        for more in others:
            continued = thresher.train(more, continue_from=tmp_path / "half.model", passes=1)
        assert continued.weights()[1].tolist() == model.weights()[1].tolist()
        found.append((model.weights()[1].tolist(), model.intercept, model.predict(chunk).tolist()))
        kept.append(model.weights()[0].tolist())
        assert [one["margin"] for one in model.explain(chunk)] == model.predict(chunk).tolist()
    assert found[0] == found[1]
    assert set(kept[1]) <= {*LAST}
    assert 2**64 - 1 in kept[1]
    assert len(kept[0]) == len(kept[1])


def test_a_model_without_offsets_refuses_them() -> None:
    chunk = rows_with(KEYS)
    shifted = chunk.with_offsets(shifts(len(chunk)))
    shifted.check()
    with pytest.raises(DataError, match="trained without any"):
        learned(Recipe(rule="ftrl"), shifted)
    with pytest.raises(DataError, match="trained without any"):
        learned(Recipe(rule="ftrl"), chunk).predict(shifted)
    with pytest.raises(DataError, match="have offsets already"):
        shifted.with_offsets(shifts(len(chunk)))
    with pytest.raises(DataError, match="have offsets already"):
        thresher.train(shifted, recipe_of({}), offsets=shifts(len(chunk)))


@pytest.mark.parametrize(
    ("offsets", "said"),
    [
        *(([1.0], "1 offsets for 2 rows"), ([1.0, np.nan], "offset 2 is not finite")),
        *(([[1.0], [2.0]], "offsets must be one-dimensional"), (["a", "b"], "offset 1 is not a number")),
    ],
)
def test_wrong_offsets_are_refused(offsets: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        Chunk.of_rows([(1.0, {1: 1.0}), (1.0, {})]).with_offsets(offsets)


def test_lanes_add_them() -> None:
    chunk = with_shifts(streams.stream(seed=14))[0].chunk
    recipes = [recipe_of({"rule": f"ftrl:l1={l1}"}) for l1 in (0.01, 0.02, 0.05, 0.1, 0.2)]
    lanes = ModelSet(recipes)
    lanes.learn(chunk)
    for recipe, lane in zip(recipes, lanes.models, strict=True):
        assert [a.tolist() for a in lane.weights()] == [a.tolist() for a in learned(recipe, chunk).weights()]


def test_a_compiled_loop_does_the_same() -> None:
    chunk, recipe = with_shifts(streams.stream(seed=14))[0].chunk, recipe_of({})
    model = learned(recipe, chunk)
    with not_compiled():
        assert learned(recipe, chunk).predict(chunk) == pytest.approx(model.predict(chunk), abs=1e-5)
