"""`--calibrate`: what probability a margin means, learned from margins before their examples are learned."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import thresher
from tests.plain import not_compiled
from tests.streams import fingerprint
from thresher.data.chunk import Chunk
from thresher.engine.calibrating import INTERCEPT, OWN_LOSS, PRIOR, RAW_LOSS, SIZE, SLOPE, calibrate_outputs
from thresher.learning.files import model_file
from thresher.learning.model.model import Model
from thresher.learning.model.objective import FittedLink
from thresher.parts import make
from thresher.runs.files import describe
from thresher.sklearn import SparseOnlineClassifier

ROWS = 400
pytestmark = pytest.mark.usefixtures("as_commands_say")


def rows(count: int = ROWS, seed: int = 0) -> Chunk:
    chance = np.random.default_rng(seed)
    keys = np.sort(np.array([chance.choice(20, 3, replace=False) for _ in range(count)]))
    labels = chance.random(count) < 1 / (1 + np.exp(2 - (keys < 8).sum(1)))
    weights = chance.choice([0.5, 1.0, 2.0], count)
    return Chunk.from_csr(np.arange(count + 1) * 3, keys.ravel(), np.ones(3 * count), labels, weights)


def several(count: int = ROWS, seed: int = 0) -> Chunk:
    chance = np.random.default_rng(seed)
    keys = np.sort(np.array([chance.choice(20, 3, replace=False) for _ in range(count)]))
    truth = np.random.default_rng(99).normal(0, 1.2, (20, 4))[keys].sum(1)
    labels, weights = np.argmax(truth + chance.gumbel(size=truth.shape), 1), chance.choice([0.5, 1, 2], count)
    return Chunk.from_csr(np.arange(count + 1) * 3, keys.ravel(), np.ones(3 * count), labels, weights)


def sigmoid(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


CASES: dict[str, dict[str, Any]] = {
    "logistic": {"rule": "ftrl:l1=0.01", "calibrate": True},
    "hinge": {"rule": "pa-i", "loss": "hinge", "calibrate": True},
    "sampled": {"rule": "sgd", "sample": "0=0.6,correct", "calibrate": True},
    "exponential": {"rule": "sgd", "rate": "constant:0.01", "loss": "exponential", "calibrate": True},
}
OF_SEVERAL: dict[str, dict[str, Any]] = {
    "shared clock": {"rule": "sgd", "loss": "softmax", "rate": "constant:2"},
    "own clocks": {"rule": "pa-i", "loss": "hinge"},
    "one against rest": {"rule": "sgd", "loss": "logistic", "rate": "constant:2"},
    "batches of several": {"rule": "ftrl", "loss": "crammer-singer", "batch": 3},
}
OF_SEVERAL = {k: {**case, "outputs": "classes:0-3", "calibrate": True} for k, case in OF_SEVERAL.items()}
CASES |= {**OF_SEVERAL, "batches": {"rule": "ft-ftrl", "batch": 3, "calibrate": True}}


def rows_for(case: dict[str, Any], **more: Any) -> Chunk:
    return several(**more) if "outputs" in case else rows(**more)


cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def test_the_numbers_are_those_of_newtons_method_on_a_sum_that_fades() -> None:
    chunk, theta, H, losses = rows(), np.array([1.0, 0.0]), np.zeros((2, 2)), np.zeros(2)
    with not_compiled():
        model = Model("ftrl", "hinge", calibrate=True)
        for t in range(ROWS):
            model.learn(chunk, t, t + 1)
            z, y, w = np.array([model.loop.last_margins()[0], 1.0]), chunk.labels[t], float(chunk.weights[t])
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


@pytest.mark.parametrize("case", OF_SEVERAL.values(), ids=OF_SEVERAL)
def test_the_temperature_is_that_of_newtons_method(case: dict[str, Any]) -> None:
    """On the log loss of softmax(a m), a = 1 / T, with margins of examples that are new."""
    chunk, a, H, losses, taught = several(), 1.0, 0.0, np.zeros(2), 0
    size = case.get("batch", 1)
    with not_compiled():
        model = Model(**case)
        for begin in range(0, ROWS, size):
            margins = model.predict(chunk.rows(begin, min(begin + size, ROWS)))
            given = model.head.with_calibration(None)
            for t, m in enumerate(margins, begin):
                y, w = int(chunk.labels[t]), float(chunk.weights[t])
                met = sorted({*chunk.labels[: t + 1].astype(int).tolist()})
                if len(met) < 2:  # one class alone teaches nothing
                    continue
                taught, keep = taught + 1, ((taught + 1) / (taught + 2)) ** 4
                m, y = np.maximum(m, -1e30 * (m > -np.inf))[met], met.index(y)  # a new one has a margin of 0
                p = np.exp(a * (m - m.max())) / np.exp(a * (m - m.max())).sum()
                pull = p @ m - m[y]
                H = keep * H + w * max(p @ m**2 - (p @ m) ** 2, pull**2)
                losses = keep * losses - w * np.log([1.0, p[y]])
                if given.has_probabilities:
                    own = given.probabilities(m[np.newaxis])[0, y]
                    losses[0] -= w * np.log(max(own, np.finfo(float).eps))
                a -= min(w * pull / (H + PRIOR), a / 2)
            model.learn(chunk, begin, min(begin + size, ROWS))
        model.finish()
    found = model.loop.calibration
    assert found is not None
    assert 1 + found[SLOPE] == pytest.approx(a, rel=1e-4)
    assert abs(np.log(a)) > 0.05
    assert found[OWN_LOSS] == pytest.approx(losses[1], rel=1e-3)
    if losses[0]:
        assert found[RAW_LOSS] == pytest.approx(losses[0], rel=1e-3)
    margins, z = model.predict(chunk), a * model.predict(chunk)
    expected = np.exp(z - z.max(1, keepdims=True))
    expected /= expected.sum(1, keepdims=True)
    assert model.predict(chunk, "probability") == pytest.approx(expected, rel=1e-2)
    assert model.predict_proba(chunk) == pytest.approx(expected, rel=1e-2)
    assert model.predict(chunk, "label").tolist() == margins.argmax(1).tolist()


def test_a_temperature_stays_positive() -> None:
    """After heavy examples that contradict the margins, which a step of Newton's method would not mind."""
    state, margins = np.zeros(SIZE), np.array([0.2, 0.1, -0.1])
    with not_compiled():
        for _ in range(3):
            room = state, state.copy(), np.zeros(3)
            calibrate_outputs(make("loss", "softmax"), room, margins, 1e6, np.array([2.0]))
    assert 1.0 + state[SLOPE] == 0.125


@pytest.mark.filterwarnings("ignore:the log loss is:thresher.TroubleWarning")
def test_the_temperature_is_applied_where_it_helps(tmp_path: Path) -> None:
    learned, new, place = several(3000), several(2000, seed=5), tmp_path / "model"
    for rule, helps in (({}, True), ({"rule": "ft-ftrl", "rate": None}, False)):
        case = OF_SEVERAL["shared clock"] | rule
        with not_compiled():
            model, plain = Model(**case), Model(**{**case, "calibrate": False})
            for one in (model, plain):
                one.learn(learned)
        model_file.save(model, place)
        found, before = thresher.evaluate(thresher.load(place), new), thresher.evaluate(plain, new)
        info = describe(place)
        assert found["error"] == before["error"]
        assert found["confusion"] == before["confusion"]
        if helps:
            for name in ("log_loss", "brier", "calibration_error"):
                assert found[f"uncalibrated_{name}"] == before[name]
                assert found[name] < before[name]
            assert found["calibration_error"] < before["calibration_error"] / 2
            fitted = model.head.calibrated()
            assert info["calibration"] == {"temperature": 1 / fitted.slope}
            assert f"softmax(m / {1 / fitted.slope:.6g}) for the margins m of the classes" in repr(info)
        else:
            assert found["log_loss"] == before["log_loss"]
            assert "uncalibrated_log_loss" not in found
            assert info["calibration"] is None


def test_a_batch_that_is_not_learned_teaches_no_calibration() -> None:
    large = Chunk.of_rows([(1.0, {1: 1.0}), (-1.0, {1: 3e38}), (1.0, {1: 1.0})])
    model = Model("sgd", "exponential", rate="constant:0.01", batch=3, calibrate=True)
    model.learn(rows(300))
    before = fingerprint(model)["calibration"]
    with pytest.raises(thresher.DivergedError):
        model.learn(large)
    assert fingerprint(model)["calibration"] == before


@cases
def test_the_model_is_the_same(case: dict[str, Any]) -> None:
    with not_compiled():
        plain, calibrated = Model(**{**case, "calibrate": False}), Model(**case)
        for model in (plain, calibrated):
            model.learn(rows_for(case))
    state, other = fingerprint(calibrated), fingerprint(plain)
    assert {name: state[name] for name in other} == other
    assert state.keys() - other.keys() == {"calibration"}


def test_rows_that_come_again_teach_no_calibration() -> None:
    with not_compiled():
        model = Model("sgd", calibrate=True)
        model.learn(rows())
        before = np.array(model.loop.calibration)
        model.learn(rows(), again=True)
        assert model.loop.calibration == pytest.approx(before, abs=0)
        model.learn(rows(seed=1))
        assert (model.loop.calibration != before).any()


def test_it_is_applied_where_it_helps() -> None:
    """Too long steps make margins too large; good ones are left as they are."""
    learned, new = rows(3000), rows(2000, seed=5)
    bold, good = (Model("sgd", rate=f"constant:{r}", calibrate=True) for r in (2.0, 0.03))
    for model in (bold, good):
        model.learn(learned)
    raw, found = thresher.evaluate(bold.predictor(), new), bold.head.calibrated()
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
                assert "that of the loss, as calibration hardly lowered" in repr(info)
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
    inner = FittedLink.learned(own, model.head)
    z = inner.slope * (model.predict(chunk) - np.log(0.5)) + inner.intercept + np.log(0.5)
    assert model.predict(chunk, "probability") == pytest.approx(sigmoid(z))


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
        many, of_many = several(), SparseOnlineClassifier("pa-i", "hinge", calibrate=True, passes=1)
        X_of_many = csr_matrix((many.values, many.keys.astype(int), many.indptr), (ROWS, 20))
        likely = of_many.fit(X_of_many, many.labels).predict_proba(X_of_many)
        assert likely.sum(1) == pytest.approx(np.ones(ROWS))
        assert (of_many.predict(X_of_many) == likely.argmax(1)).all()
        assert of_many._model.head.calibrated() is not None
        with pytest.raises(ValueError, match="use passes=1"):
            SparseOnlineClassifier("ftrl", calibrate=True, passes=3).fit(X, chunk.labels)
        with pytest.raises(AttributeError, match="predict_proba"):
            SparseOnlineClassifier("ftrl", "hinge", passes=1).fit(X, chunk.labels).predict_proba(X)
