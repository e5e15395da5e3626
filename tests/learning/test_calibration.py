"""`--calibrate`: what probability a margin means, learned from margins before their examples are learned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher
from tests.plain import not_compiled
from tests.streams import cut, fingerprint
from thresher.data.chunk import Chunk
from thresher.engine.calibrating import INTERCEPT, PRIOR, SLOPE
from thresher.lanes.lanes import Lanes
from thresher.learning.files import model_file
from thresher.learning.model.calibration import FittedSigmoid
from thresher.learning.model.model import Model
from thresher.learning.model.recipe import Recipe
from thresher.learning.model.weights import Readout
from thresher.runs.inspecting import describe
from thresher.sklearn import SparseOnlineClassifier

ROWS = 400
pytestmark = pytest.mark.usefixtures("as_commands_say")


def rows(count: int = ROWS, seed: int = 0) -> Chunk:
    chance = np.random.default_rng(seed)
    keys = np.sort(np.array([chance.choice(20, 3, replace=False) for _ in range(count)]))
    labels = chance.random(count) < 1 / (1 + np.exp(2 - (keys < 8).sum(1)))
    weights = chance.choice([0.5, 1.0, 2.0], count)
    return Chunk.from_csr(np.arange(count + 1) * 3, keys.ravel(), np.ones(3 * count), labels, weights)


def sigmoid(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


CASES: dict[str, dict[str, Any]] = {
    "logistic": {"rule": "ftrl:l1=0.01", "calibrate": True},
    "hinge": {"rule": "pa-i", "loss": "hinge", "calibrate": True},
    "sampled": {"rule": "sgd", "sample": "0=0.6,correct", "calibrate": True},
    "exponential": {"rule": "sgd", "rate": "constant:0.01", "loss": "exponential", "calibrate": True},
}
cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def test_the_numbers_are_those_of_newtons_method_on_a_sum_that_fades() -> None:
    chunk, theta, H, losses = rows(), np.array([1.0, 0.0]), np.zeros((2, 2)), np.zeros(2)
    with not_compiled():
        model = Model("ftrl", "hinge", calibrate=True)
        for t in range(ROWS):
            model.learn(chunk, t, t + 1)
            z, y, w = np.array([model.last_margin, 1.0]), chunk.labels[t], float(chunk.weights[t])
            p = sigmoid(theta @ z)
            keep = (t + 1) / (t + 2)
            H = keep * H + w * max(p * (1 - p), (p - y) ** 2) * np.outer(z, z)
            losses[1] = keep * losses[1] - w * np.log(p if y else 1 - p)
            theta = theta - np.linalg.solve(H + PRIOR * np.eye(2), w * (p - y) * z)
    found = model.loop.calibration
    assert found is not None
    assert [1 + found[SLOPE], found[INTERCEPT]] == pytest.approx(theta.tolist())
    assert found[-1] == pytest.approx(losses[1])
    assert abs(theta - [1, 0]).min() > 0.05
    margins = model.margins(chunk)
    assert model.predict(chunk, "probability") == pytest.approx(sigmoid(theta[0] * margins + theta[1]))
    assert model.predict(chunk).tolist() == margins.tolist(), "margins stay as they are"


@cases
def test_the_model_is_the_same(case: dict[str, Any]) -> None:
    """Weights, clocks and sums of losses."""
    with not_compiled():
        plain, calibrated = Model(**{**case, "calibrate": False}), Model(**case)
        for model in (plain, calibrated):
            model.learn(rows())
    state, other = fingerprint(calibrated), fingerprint(plain)
    assert {name: state[name] for name in other} == other
    assert state.keys() - other.keys() == {"calibration"}


@cases
def test_cutting_looking_and_stopping_change_nothing(case: dict[str, Any], tmp_path: Path) -> None:
    chunk, place = rows(), tmp_path / "model"
    with not_compiled():
        whole, ranges, ones = (Model(**case) for _ in range(3))
        whole.learn(chunk)
        for lo, hi in ((0, 1), (1, 200), (200, 201), (201, ROWS)):
            ranges.learn(chunk, lo, hi)
            ranges.predict(chunk, "label")
            model_file.save(ranges, place)
            ranges, _ = model_file.load(place)
        for piece in cut(chunk, list(range(1, ROWS))):
            ones.learn(piece)
        whole.learn(chunk, again=True)
        ones.learn(chunk, again=True)
        ranges.learn(chunk, again=True)
    assert fingerprint(ranges) == fingerprint(ones) == fingerprint(whole)
    model_file.save(whole, place)
    expected = whole.predict_proba(chunk).tobytes()
    assert thresher.load(place).predict_proba(chunk).tobytes() == expected
    assert whole.readout().predict_proba(chunk).tobytes() == expected
    model_file.save(whole, place, state=False)
    thresher.load(place).save(place)
    assert thresher.load(place).predict_proba(chunk).tobytes() == expected


def test_rows_that_come_again_teach_no_calibration() -> None:
    with not_compiled():
        model = Model("sgd", calibrate=True)
        model.learn(rows())
        before = np.array(model.loop.calibration)
        model.learn(rows(), again=True)
        assert model.loop.calibration == pytest.approx(before, abs=0)
        model.learn(rows(seed=1))
        assert (model.loop.calibration != before).any()


def test_lanes_are_runs() -> None:
    recipes = [Recipe("sgd", rate=f"constant:{rate}", calibrate=True) for rate in (0.1, 1.0, 2.0, 4.0, 8.0)]
    with not_compiled():
        lanes = Lanes(recipes)
        lanes.learn(rows())
        for lane, recipe in zip(lanes.models, recipes, strict=True):
            alone = Model(recipe)
            alone.learn(rows())
            assert lane.predict_proba(rows()).tobytes() == alone.predict_proba(rows()).tobytes()
            assert repr(alone.loop.calibration) == repr(lane.loop.calibration)


def test_it_is_applied_where_it_helps() -> None:
    """Too long steps make margins too large; good ones are left as they are."""
    learned, new = rows(3000), rows(2000, seed=5)
    bold, good = (Model("sgd", rate=f"constant:{r}", calibrate=True) for r in (2.0, 0.03))
    for model in (bold, good):
        model.learn(learned)
    raw, found = thresher.evaluate(bold.readout(), new), bold.head.calibrated()
    assert found is not None
    assert found.slope < 0.7
    assert raw["calibration_error"] < raw["uncalibrated_calibration_error"] / 2
    assert raw["log_loss"] < 0.9 * raw["uncalibrated_log_loss"]
    assert raw["loss"] == pytest.approx(raw["uncalibrated_log_loss"], rel=1e-6)
    assert good.head.calibrated() is None
    assert "uncalibrated_log_loss" not in thresher.evaluate(good, new)
    assert good.predict(new, "probability") == pytest.approx(sigmoid(good.predict(new)))


def test_labels_follow_the_probability() -> None:
    """Wherever they are predicted or evaluated, though many margins have the other sign."""
    learned, new = rows(2000), rows(1000, seed=5)
    with not_compiled():
        model = Model("ftrl", "logistic:positive=20", calibrate=True)
        model.learn(learned)
        likely, margins = model.predict(new, "probability") > 0.5, model.predict(new)
        assert ((margins > 0) != likely).sum() > 100
        assert ((model.predict(new, "label") > 0) == likely).all()
        found, told = (thresher.evaluate(model, new, threshold=one) for one in (None, 0.5))
    wrong = float(new.weights @ (likely != (new.labels > 0)) / new.weights.sum())
    assert found["error"] == pytest.approx(wrong)
    assert {**found, "error": told["error"], "threshold": 0.5} == told
    assert told["error"] == pytest.approx(wrong)


def test_info_shows_the_numbers_or_that_there_are_none(tmp_path: Path) -> None:
    place = tmp_path / "model"
    for rate, kept in ((2.0, False), (0.03, True)):
        with not_compiled():
            model = Model("sgd", rate=f"constant:{rate}", calibrate=True)
            model.learn(rows(3000))
        for state in (True, False):
            model_file.save(model, place, state=state)
            info, found = describe(place), model.head.calibrated()
            if state or not kept:
                assert info["calibration"] == (found and found._asdict())
            if found is not None:
                written = f"{found.intercept:+.6g}"
                formula = f"1 / (1 + exp(-({found.slope:.6g} m {written[0]} {written[1:]}))) for a margin m"
                assert formula in repr(info)
            elif state:
                assert "that of the loss, as calibration lowered" in repr(info)
    model_file.save(Model("sgd"), place)
    assert "calibration" not in describe(place)


def test_a_correction_of_a_sample_comes_before_it() -> None:
    """Margins of the sample are calibrated, then moved to all rows, by log(share)."""
    chunk = rows(2000)
    model = Model("sgd", rate="constant:2", sample="0=0.5,correct", calibrate=True)
    model.learn(chunk)
    own, found = model.loop.calibration, model.head.calibrated()
    assert own is not None
    assert found is not None
    inner = FittedSigmoid.learned(own, True)
    assert inner is not None
    z = inner.slope * (model.predict(chunk) - np.log(0.5)) + inner.intercept + np.log(0.5)
    assert model.predict(chunk, "probability") == pytest.approx(sigmoid(z))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"loss": "squared"}, "--calibrate is for models of two classes"),
        ({"loss": "softmax", "outputs": "classes:1-3"}, "--calibrate is for models of two classes"),
        ({"batch": 4}, "needs the margin of each example: leave --batch out"),
        ({"average": True}, "leave --average out"),
        ({"calibrate": 3}, "calibrate must be True or False"),
    ],
)
def test_what_cannot_be_is_said_at_once(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Recipe(**{"rule": "sgd", "calibrate": True, **options})


def test_runs_that_cannot_be(tmp_path: Path) -> None:
    data = tmp_path / "d.svm"
    data.write_text("1 1:1\n-1 2:1\n" * 20)
    with not_compiled():
        with pytest.raises(ValueError, match="from the margins of rows that are new: use --passes 1"):
            thresher.train(str(data), rule="sgd", calibrate=True, passes=2)
        with pytest.raises(ValueError, match="the mean of several margins has no calibration"):
            thresher.ensemble(str(data), models=2, rule="sgd", calibrate=True)
        assert thresher.train(str(data), calibrate=True).head.calibrated() is None or True
        found = thresher.cv(str(data), rule="sgd", loss="hinge", calibrate=True, folds=2, refit=True)
        assert isinstance(found.model_.readout(), Readout)


def test_estimators() -> None:
    chunk = rows()
    X = np.zeros((ROWS, 20), np.float32)
    X[np.repeat(np.arange(ROWS), 3), chunk.keys.astype(int)] = 1
    with not_compiled():
        model = SparseOnlineClassifier("ftrl", "hinge", calibrate=True, random_state=0).fit(X, chunk.labels)
        assert model.predict_proba(X)[:, 1].mean() == pytest.approx(chunk.labels.mean(), abs=0.05)
        assert model.n_iter_ == 1
        shifted = SparseOnlineClassifier("ftrl", "logistic:positive=20", calibrate=True).fit(X, chunk.labels)
        assert (shifted.predict(X) == (shifted.predict_proba(X)[:, 1] > 0.5)).all()
        assert ((shifted.decision_function(X) > 0) != shifted.predict(X)).any()
        with pytest.raises(ValueError, match="use passes=1"):
            SparseOnlineClassifier("ftrl", calibrate=True, passes=3).fit(X, chunk.labels)
        with pytest.raises(AttributeError, match="predict_proba"):
            SparseOnlineClassifier("ftrl", "hinge", passes=1).fit(X, chunk.labels).predict_proba(X)
