"""Figures and their intervals as docs/evaluate.md defines them, from predictions alone."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import thresher

Z = 1.959963984540054


def frame(rows: int, numbers: bool) -> pd.DataFrame:
    rng = np.random.default_rng(8)
    x = rng.normal(size=rows).astype(np.float32)
    y = x + rng.normal(size=rows)
    weights = rng.choice([0.5, 1.0, 3.0], rows)
    label = y.astype(np.float32) if numbers else (y > 0).astype(int)
    return pd.DataFrame({"x": x, "site": rng.choice(["a", "b"], rows), "n": weights, "label": label})


def of_mean(losses: Any, w: Any) -> tuple[float, float, float]:
    """A mean, and the ends of its interval."""
    mean, k = (w @ losses) / w.sum(), len(losses)
    error = math.sqrt((w**2 @ (losses - mean) ** 2) * k / (k - 1)) / w.sum()
    return mean, mean - Z * error, mean + Z * error


def wilson(share: float, n: float) -> tuple[float, float, float]:
    middle, half = share + Z**2 / (2 * n), Z * math.sqrt(share * (1 - share) / n + Z**2 / (4 * n * n))
    return share, (middle - half) / (1 + Z**2 / n), (middle + half) / (1 + Z**2 / n)


def found_in(row: dict[str, Any], name: str) -> list[float]:
    return [row[name], row[f"{name}_low"], row[f"{name}_high"]]


@pytest.mark.parametrize("numbers", [False, True])
def test_slices(numbers: bool, plainly: None) -> None:
    data = frame(300, numbers)
    options: dict[str, Any] = {"weight": "n", "loss": "squared" if numbers else "logistic", "centre": False}
    model = thresher.train(data, rule="sgd", rate="constant:0.01", ignore="site", passes=1, **options)
    rows = thresher.evaluate(model, data, slices=["site"])["slices"]["site"]
    margins = model.predict(data, "margin")
    for row in rows:
        there = (data["site"] == row["value"]).to_numpy()
        m, w = margins[there], data["n"].to_numpy()[there]
        y = data["label"].to_numpy().astype(float)[there]
        n = w.sum() ** 2 / (w @ w)
        if numbers:
            squares = of_mean((m - y) ** 2, w)
            assert found_in(row, "loss") == pytest.approx(squares, rel=1e-6)
            assert found_in(row, "rmse") == pytest.approx(np.sqrt(squares), rel=1e-6)
            predicted, observed = m, y
        else:
            losses = np.log1p(np.exp(-(2 * y - 1) * m))
            assert found_in(row, "loss") == pytest.approx(of_mean(losses, w), rel=1e-6)
            wrong = ((m > 0) != (y > 0)) @ w / w.sum()
            assert found_in(row, "error") == pytest.approx(wilson(wrong, n), rel=1e-6)
            assert found_in(row, "observed") == pytest.approx(wilson(y @ w / w.sum(), n), rel=1e-6)
            predicted, observed = 1 / (1 + np.exp(-m)), y
        assert row["predicted"] == pytest.approx(predicted @ w / w.sum(), rel=1e-6)
        assert row["ratio"] == pytest.approx((predicted @ w) / (observed @ w), rel=1e-5)
    assert [row["value"] for row in rows] == ["b", "a"] or [row["value"] for row in rows] == ["a", "b"]


def test_probabilities(plainly: None) -> None:
    """The calibration error over ten bins of equal weight, the Brier score and the normalised entropy."""
    data = frame(400, False)
    model = thresher.train(data, rule="sgd", ignore=["site", "n"], passes=1, centre=False)
    found = thresher.evaluate(model, data)
    p, y = model.predict(data, "probability"), data["label"].to_numpy().astype(float)
    bins = np.argsort(p, kind="stable").reshape(10, 40)
    error = np.mean([abs(p[one].mean() - y[one].mean()) for one in bins])
    assert found["calibration_error"] == pytest.approx(error, abs=2e-3)
    log_loss, rate = -np.log(np.where(y > 0, p, 1 - p)).mean(), y.mean()
    base = -rate * math.log(rate) - (1 - rate) * math.log(1 - rate)
    assert found["brier"] == pytest.approx(((p - y) ** 2).mean(), rel=1e-9)
    assert [found["log_loss"], found["base_log_loss"]] == pytest.approx([log_loss, base], rel=1e-9)
    assert found["normalised_entropy"] == pytest.approx(log_loss / base, rel=1e-9)
    assert found["nonzero"] == 1
