"""Weights that keep their sign: every rule that can keep one, against its projected dense recursion."""

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import thresher
from tests import laws, oracles, streams
from tests.covering import covering_for
from tests.oracle_base import Oracle, Vector
from tests.oracles import ORACLES
from tests.plain import not_compiled
from tests.test_lanes import check as check_lanes
from tests.test_lanes import recipe_of
from thresher import parts
from thresher.data.errors import DataError
from thresher.data.features.names import numeric_keys
from thresher.engine import index as indexes
from thresher.learning.model.eight_lanes import LaneState
from thresher.learning.model.model import Model
from thresher.learning.model.warm_start import start_from
from thresher.parts.clamped import LISTED, NONNEGATIVE, NONPOSITIVE, clamped_class

ABLE = [name for name in streams.RULES if parts.lookup("rule", name).CLAMPS is not None]
SIGNED = {"nonnegative": "0,2,5,7", "nonpositive": "1,3,11"}
ASKED: list[dict[str, Any]] = [SIGNED, {"nonnegative": "*"}, {"nonpositive": "*"}]
EXACT = 1e-10


@pytest.mark.parametrize("name", ABLE)
def test_code_of_rules_without_signs_stays_as_it_is(name: str) -> None:
    """What is declared of a method is part of its key in the cache: it would be compiled once more."""
    cls = parts.lookup("rule", name)
    for sign in (NONNEGATIVE, NONPOSITIVE, LISTED):
        clamped_class(cls, sign)
    assert not any(hasattr(getattr(cls, verb), "way") for verb in ("weight", *cls.CLAMPS))


def signs_of(asked: dict[str, Any], features: int) -> Vector:
    """The sign of each weight; 0 for any."""
    signs = np.zeros(features)
    for option, sign in (("nonnegative", 1.0), ("nonpositive", -1.0)):
        names = asked.get(option, "")
        signs[slice(None) if names == "*" else [int(one) for one in names.split(",") if one]] = sign
    return signs


class Projected(Oracle):
    """The recursion of another oracle, each of whose weights is projected after every step."""

    def __init__(self, inner: Oracle, signs: Vector) -> None:
        super().__init__(inner.rule, inner.mask)
        self.inner, self.signs = inner, np.append(signs, 0.0)[: len(inner.mask)]
        self.ORIGIN = inner.ORIGIN
        self.begin_pass, self.meet, self.look, self.begin = (  # type: ignore[method-assign]
            inner.begin_pass, inner.meet, inner.look, inner.begin,
        )  # fmt: skip

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        return self.read(self.inner.step(w, g, t, value))

    def read(self, w: Vector) -> Vector:
        return np.where(w * self.signs < 0, 0.0, w)


def check(
    spec: str, loss: str, data: streams.Stream, asked: dict[str, Any], monkeypatch: Any, **more: Any
) -> Any:
    """Learn `data`; weights and losses must be those of the projected recursion."""
    name, signs = spec.partition(":")[0], signs_of(asked, data.X.shape[1])
    plain = ORACLES[name]
    model = streams.model_of(spec, loss, **asked, **more)
    with monkeypatch.context() as patch:
        patch.setitem(ORACLES, name, lambda rule, mask: Projected(plain(rule, mask), signs))
        expected = oracles.run(
            name, model.rule, model.loss, data.X, data.y, data.importance, intercept=model.recipe.intercept
        )
    model.learn(data.chunk)
    found = streams.read_weights(model, data.X.shape[1])
    scale = max(1.0, np.abs(expected.weights).max(initial=0.0), abs(expected.intercept))
    assert (found * signs >= 0).all()
    assert np.abs(found - expected.weights).max(initial=0.0) <= EXACT * scale
    assert abs(model.intercept - expected.intercept) <= EXACT * scale
    assert model.tally.loss == pytest.approx(data.importance @ expected.losses, rel=1e-9)
    return model


@pytest.mark.parametrize("name", ABLE)
def test_lazy_is_projected(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for spec, loss, asked in covering_for(
        name, streams.settings_of(name), ("logistic", "squared", "hinge"), ASKED
    ):
        data = streams.stream(seed=1, rows=64, domain=streams.domain_of(loss))
        with streams.case(spec, loss, asked), not_compiled():
            check(spec, loss, data, asked, monkeypatch)


EACH = [
    f"{name}:{'' if name == 'sgd' else 'l1=0.002'}".rstrip(":")
    for name in ABLE
    if name != "truncated-gradient"
]
"""A setting of each rule"""


def learned(spec: str, chunk: Any, asked: dict[str, Any], **more: Any) -> Model:
    model = streams.model_of(spec, **asked, **more)
    model.learn(chunk)
    return model


@pytest.mark.parametrize("spec", EACH)
@pytest.mark.usefixtures("plainly")
def test_signs_matter_and_hold_wherever_a_stream_is_cut_or_stopped(spec: str) -> None:
    data = streams.stream(seed=3, rows=50, features=12)
    free = streams.read_weights(learned(spec, data.chunk, {}), 12)
    for asked in ASKED:
        assert (free * signs_of(asked, 12) < 0).any(), "the data need no constraint"
        make = partial(streams.model_of, spec, **asked)
        laws.cutting(make, data.chunk, [0, 1, 7, 7, 30])
        laws.stopping(make, data.chunk, [20])
        laws.stores(make, data.chunk, 12)


@pytest.mark.parametrize("spec", [spec for spec in EACH if parts.make("rule", spec).DRIFTS is not None])
@pytest.mark.usefixtures("plainly")
def test_a_mean_is_of_weights_with_their_signs(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data, name = streams.stream(seed=4, rows=60), spec.partition(":")[0]
    plain, signs = ORACLES[name], signs_of(SIGNED, 12)
    model = learned(spec, data.chunk, SIGNED, average=True)
    monkeypatch.setitem(ORACLES, name, lambda rule, mask: Projected(plain(rule, mask), signs))
    trace = oracles.run(
        name, model.rule, model.loss, data.X, data.y, data.importance, intercept=True, keep_path=True
    )
    assert trace.path is not None
    assert streams.read_weights(model, 12) == pytest.approx(trace.path[:-1, :12].mean(axis=0), abs=1e-9)


def test_rows_that_are_freed_and_scales_that_are_folded_lose_no_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes, "FIRST_SIZE", 16)
    monkeypatch.setattr(indexes, "ALWAYS_KEPT", 8)
    wide = streams.stream(seed=5, rows=150, features=60, density=0.1)
    with not_compiled():
        for spec in ("fobos:l1=0.2", "truncated-gradient:gravity=0.2"):
            model = check(spec, "logistic", wide, SIGNED, monkeypatch)
            assert model.loop.index.tensors()["counts"][1] > 0, "no row was freed"
        many = streams.stream(seed=6, rows=500)
        for batch in (1, 2):
            folded = learned("fobos:l1=0.001,l2=50", many.chunk, SIGNED, rate="constant:0.1", batch=batch)
            assert (folded.loop.S[:, -1] != 0).sum() == 7
        check("fobos:l1=0.001,l2=50", "logistic", many, SIGNED, monkeypatch, rate="constant:0.1")


@pytest.mark.usefixtures("plainly")
def test_lanes_keep_signs() -> None:
    data = streams.stream(seed=7, rows=80, features=30, density=0.1).chunk
    for asked in (SIGNED, {"nonnegative": "*"}):
        recipes = [recipe_of(f"fobos:l1={l1},l2=3", **asked) for l1 in (0.0, 0.01, 0.02, 0.05)]
        lanes = check_lanes(recipes, data)
        assert isinstance(lanes.models[0].loop, LaneState)
        for model in lanes.models:
            assert (streams.read_weights(model, 30) * signs_of(asked, 30) >= 0).all()


def test_initial_weights_of_the_wrong_sign_begin_at_zero() -> None:
    data = streams.stream(seed=9, rows=60).chunk
    with not_compiled():
        for spec in ("fobos:l1=0.01", "ft-ftrl:l1=0.1"):
            free = learned(spec, data, {})
            for asked in ASKED:
                model, own, signs = (
                    streams.model_of(spec, **asked),
                    streams.read_weights(free, 12),
                    signs_of(asked, 12),
                )
                start_from(model, free.predictor())
                assert (own * signs < 0).any()
                assert np.array_equal(streams.read_weights(model, 12), np.where(own * signs < 0, 0.0, own))
                model.learn(data)
                assert (streams.read_weights(model, 12) * signs >= 0).all()


def table(**columns: Any) -> Any:
    return pa.table({"label": [1, -1, 1, -1, 1, -1] * 5, **columns})


TABLE = table(
    age=[3.0, 1.0, 2.5, 0.5, 3.5, 1.5] * 5, pay=[1.0, 2.0, 0.5, 3.0, 1.0, 4.0] * 5, city=["a", "b", "c"] * 10
)


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"nonpositive": "age"}, {"age": -1}),
        ({"nonpositive": ["a*", "3"]}, {"age": -1, "pay": -1}),
        ({"nonnegative": "pay", "nonpositive": "age"}, {"age": -1, "pay": 1}),
        ({"nonpositive": "*"}, {"age": -1, "pay": -1, "city": -1}),
    ],
)
def test_columns_are_named_as_in_other_options(asked: dict[str, Any], expected: dict[str, int]) -> None:
    def wrong(**options: Any) -> int:
        model: Any = thresher.train(TABLE, rule="sgd", **options)
        names, (keys, weights) = numeric_keys(model.layout), model.weights()
        signs = [expected.get(names.get(key, "city"), 0) for key in keys.tolist()]
        return int((np.array(signs) * weights < 0).sum())

    assert wrong(**asked) == 0
    assert wrong() > 0, "the data need no constraint"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"nonnegative": "city"}, "'city' is categorical: only numeric columns have one weight"),
        ({"nonnegative": "age", "nonpositive": "a*"}, "'age' is listed in both"),
        ({"nonnegative": "*", "nonpositive": "age"}, "is all columns"),
        ({"nonnegative": "label"}, "'label' is the label"),
        ({"nonnegative": ""}, "must be names of columns"),
        ({"nonnegative": "age", "rule": "arow"}, "arow does not keep signs of weights; .* adagrad-fobos, "),
        ({"nonnegative": "age", "store": "hashed:9,signed"}, "a signed store flips half"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        thresher.train(TABLE, **options)


def test_a_group_of_several_outputs_is_refused() -> None:
    with pytest.raises(ValueError, match="group norm does not work with signs"):
        Model("fobos:group=l2", "softmax", outputs="classes:3", nonnegative="*")
    Model("fobos:group=l2", nonnegative="*")


def test_ids_and_names_in_dictionaries_have_signs() -> None:
    with not_compiled():
        rows = [({7: 1.0, "age": 1.0}, 1.0), ({7: 1.0, "age": 2.0}, 1.0)]
        model = Model("sgd", "squared", nonpositive=[7, "age"], intercept=False)
        model.learn(rows)
        assert not model.weights()[0].size
        free = Model("sgd", "squared", nonpositive=[8], intercept=False)
        free.learn(rows)
        assert free.weights()[0].size == 2


@pytest.mark.parametrize("name", ["0-2"])
@pytest.mark.parametrize("learn", [thresher.train, thresher.path, thresher.cv, thresher.tune])
def test_a_name_that_is_no_column_of_a_matrix_is_refused(learn: Any, name: Any) -> None:
    X, y = np.eye(4), np.array([1, -1, 1, -1])
    with pytest.raises(DataError, match=f"nonnegative: '{name}' is no column of the matrix: 0 to 3"):
        learn(X, y, nonnegative=name)
