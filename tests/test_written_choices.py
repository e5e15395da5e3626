"""What chooses features and settings, as docs/select.md, tune.md, weights.md and boost.md define it."""

import math
from typing import Any

import numpy as np
import pytest

import thresher
from tests.test_written_formulas import G, h, mix, scatter

ALL = 2**64 - 1


def rows_of(count: int, columns: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(count, columns))
    return X, (X[:, 0] - X[:, 1] + rng.normal(size=count) > 0).astype(int)


def halves(rows: int, pairs: int) -> list[Any]:
    """The rows of each model."""
    found: list[Any] = []
    for m in range(pairs):
        b = [scatter(mix((h(i // 2, 1, 0) + (m + 1) * G) & ALL)) >> 63 ^ i & 1 for i in range(rows)]
        found += [np.flatnonzero(np.array(b) == k) for k in (0, 1)]
    return found


def bound(share: float, q: float, p: int, B: int) -> float:
    if share <= 0.75:
        return q * q / p / (2 * (2 * share - 1 - 1 / (2 * B)))
    return 4 * (1 - share + 1 / (2 * B)) / (1 + 1 / B) * q * q / p


@pytest.mark.parametrize("false", [0.4, 2.0])
def test_the_selection(false: float, plainly: None) -> None:
    (X, y), B, p = rows_of(240, 12), 4, 12
    most = max(1, min(math.floor(math.sqrt(false * p)), math.floor(p / math.sqrt(3))))
    weights = np.zeros((2 * B, p))
    for one, half in zip(weights, halves(len(X), B), strict=True):
        keys, found = thresher.train(X[half], y[half], l1=2, passes=1).weights()
        one[keys.astype(int)] = found
    lives = np.zeros(weights.shape, bool)
    for one, sizes in zip(lives, abs(weights), strict=True):
        largest = np.argsort(-sizes, kind="stable")[:most]
        one[largest] = sizes[largest] > 0
    q, share = lives.sum(axis=1).mean(), lives.mean(axis=0)
    theta = q / p
    least = min(0.5 + theta**2, 0.5 + 1 / (2 * B) + 0.75 * theta**2)
    able = [k / (2 * B) for k in range(B + 2, 2 * B + 1)]
    threshold = next(pi for pi in able if pi > least and bound(pi, q, p, B) <= false)
    selected = thresher.select(X, y, bags=2 * B, false=false, passes=1)
    assert selected.selected == q
    assert selected.threshold == threshold
    assert selected.expected == pytest.approx(bound(threshold, q, p, B), rel=1e-12)
    own = selected.keys.astype(int)
    assert selected.share.tolist() == share[own].tolist()
    assert selected.mean == pytest.approx(weights[:, own].mean(axis=0), rel=1e-12)
    ends = np.quantile(weights[:, own], [0.05, 0.95], axis=0)
    assert [selected.low, selected.high] == pytest.approx(ends, rel=1e-12)
    assert set(own.tolist()) == {*np.flatnonzero(share).tolist()}
    assert 0 < selected.kept.sum() == np.count_nonzero(share >= threshold)


def progressive(X: Any, y: Any) -> Any:
    """The loss of each row before it is learned, of `sgd` as it is."""
    w, b, losses = np.zeros(X.shape[1]), 0.0, []
    for t, (x, sign) in enumerate(zip(X, 2 * y - 1, strict=True), 1):
        margin = sign * (w @ x + b)
        losses.append(math.log1p(math.exp(-margin)))
        pull = 0.5 / math.sqrt(t) * sign / (1 + math.exp(margin))
        w, b = w + pull * x, b + pull
    return np.array(losses)


@pytest.mark.parametrize(("rows", "begin", "judged"), [(401, 184, 360), (1400, 640, 1260)])
def test_settings_are_compared_over_the_last_half(rows: int, begin: int, judged: int, plainly: None) -> None:
    X, y = rows_of(rows, 2)
    found = thresher.tune(X, y, rules="sgd", budget=1, centre=False, dtype="float64", passes=1)
    losses = progressive(X.astype(np.float32).astype(float), y)
    (trial,) = found.trials
    assert trial.late_loss == pytest.approx(losses[begin:judged].mean(), rel=1e-12)
    assert found.report == {"examples": rows - judged, "loss": pytest.approx(losses[judged:].mean())}


@pytest.mark.parametrize("rule", ["ft-ftrl:l1=3", "ftrl:l1=2", "adagrad-rda:l1=0.1", "fobos:l1=0.1"])
def test_equal_columns_have_equal_weights(rule: str, plainly: None) -> None:
    X, y = rows_of(200, 2)
    weights = thresher.train(X[:, [0, 0, 1]], y, rule=rule, passes=3).weights()[1]
    assert weights[0] == weights[1] != 0


def test_the_certificate_of_boost() -> None:
    X, y = rows_of(120, 6)
    l1, l2 = 3.0, 0.5
    model = thresher.boost((X, y), loss="logistic", l1=l1, l2=l2)
    w, X = np.zeros(6), X.astype(np.float32).astype(float)
    w[model.keys.astype(int)] = model.weights
    signs, solution = 2 * y - 1, model.solution
    assert solution is not None
    z = signs * (X @ w + float(model.bias[0]))
    objective = np.log1p(np.exp(-z)).sum() + l1 * abs(w).sum() + l2 / 2 * (w @ w)
    assert solution.objective == pytest.approx(objective, rel=1e-12)
    slopes = -signs / (1 + np.exp(z))
    d = slopes @ X
    wrong = np.where(w == 0, abs(d) - l1, abs(d + l1 * np.sign(w) + l2 * w))
    share = y.mean()
    unit = max(abs((share - y) @ X))
    certificate = max(wrong.max(), abs(slopes.sum())) / unit
    assert solution.certificate == pytest.approx(certificate, rel=1e-3)
    assert np.count_nonzero(w) in range(1, 6)


def test_effects(plainly: None) -> None:
    X, y = rows_of(150, 3)
    model = thresher.train(X, y, rule="sgd", centre=False)
    keys, effects = model.effects(X)
    expected = model.weights()[1] * X.astype(np.float32).astype(float).std(axis=0)
    assert keys.tolist() == [0, 1, 2]
    assert effects == pytest.approx(expected, rel=1e-9)
