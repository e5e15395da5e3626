"""Several quantiles of one number: models side by side that never cross."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import mean_pinball_loss

import thresher
from tests.cli.conftest import Thresher
from tests.plain import not_compiled
from thresher.learning.model.objective import Outputs
from thresher.learning.model.prediction import source_for

LEVELS = (0.1, 0.5, 0.9)
SPEC = "quantiles:0.1,0.5,0.9"


def rows_of(count: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Labels far from 0 whose spread depends on the row, and importances, some of which are 0."""
    chance = np.random.default_rng(seed)
    X = chance.normal(size=(count, 3))
    y = 1000 + X @ [1.0, -2.0, 0.5] + (0.5 + np.abs(X[:, 0])) * chance.standard_t(3, count)
    return X, y, chance.integers(0, 3, count).astype(float)


@pytest.mark.parametrize("rule", ["sgd", "ftrl", "adagrad-rda"])
def test_each_output_is_the_model_of_one_quantile(rule: str) -> None:
    X, y, weights = rows_of(150)
    options: dict[str, Any] = {"passes": 1}
    with not_compiled():
        model = thresher.train((X, y, weights), rule, loss="quantile", outputs=SPEC, **options)
        raw = model.margins(
            next(iter(source_for(model, X, model.head.open_domain, more={"unlabelled": True}).chunks()))
        )
        for k, level in enumerate(LEVELS):
            one = thresher.train((X, y, weights), rule, loss=f"quantile:tau={level}", **options)
            assert np.array_equal(raw[:, k], one.predict(X))
        assert np.array_equal(model.predict(X), np.sort(raw, axis=1))


def test_quantiles_never_cross(tmp_path: Path) -> None:
    """After a few rows and far from them they would."""
    X, y, _ = rows_of(12)
    with not_compiled():
        model = thresher.train(
            (X, y), "sgd", rate="constant:5", loss="quantile", outputs="quantiles:0.4,0.5,0.6", passes=1
        )
        away = 100 * rows_of(50, seed=1)[0]
        for output in ("margin", "label"):
            assert (np.diff(model.predict(away, output), axis=1) >= 0).all()
        thresher.save(model, tmp_path / "m")
        assert np.array_equal(thresher.load(tmp_path / "m").predict(away), model.predict(away))
        assert not np.array_equal(model.weights()[1][:, 0], model.weights()[1][:, 2])


def test_coverage_and_losses_are_those_of_scikit_learn() -> None:
    X, y, weights = rows_of(400)
    with not_compiled():
        model = thresher.train((X, y), "sgd", loss="quantile", outputs=SPEC)
        found = thresher.evaluate(model, (X, y, weights))
        predicted = model.predict(X)
    rows = found["quantiles"]
    assert [one["level"] for one in rows] == [*LEVELS]
    labels = y.astype(np.float32).astype(float)
    for k, one in enumerate(rows):
        expected = mean_pinball_loss(labels, predicted[:, k], sample_weight=weights, alpha=one["level"])
        assert one["loss"] == pytest.approx(expected, rel=1e-9)
        assert one["coverage"] == pytest.approx(np.average(labels <= predicted[:, k], weights=weights))
    assert found["loss"] == pytest.approx(sum(one["loss"] for one in rows))


@pytest.mark.parametrize("levels", ["", "0.5", "0.5,", "0.9,0.1", "0.5,0.5", "0,0.5", "0.5,1", "a", "nan"])
def test_levels_are_checked(levels: str) -> None:
    with pytest.raises(ValueError, match="two or more ascending levels in"):
        Outputs.of(f"quantiles:{levels}")


def test_what_does_not_fit_is_refused(thresher: Thresher) -> None:
    X, y, _ = rows_of(40)
    Path("d.csv").write_text(
        "y,a,b,c\n" + "".join(f"{b},{a[0]},{a[1]},{a[2]}\n" for a, b in zip(X, y, strict=True))
    )
    made = f"train d.csv -m m -q --label y --rule sgd --outputs {SPEC}"
    with not_compiled():
        assert thresher(f"{made} --loss quantile --calibrate").status == 2
        for loss in ("squared", "quantile:tau=0.9"):
            assert "say the levels: use --loss quantile" in thresher(f"{made} --loss {loss}").err
        assert thresher(f"{made} --loss quantile").status == 0
        lines = thresher("predict m d.csv").out.splitlines()
        assert len(lines) == 40
        assert all([*map(float, line.split("\t"))] == sorted(map(float, line.split("\t"))) for line in lines)
        assert "quantiles:0.1,0.5,0.9" in thresher("info m").out
        assert [line.split()[0] for line in thresher("evaluate m d.csv --detail").out.splitlines()[-3:]] == [
            "0.1",
            "0.5",
            "0.9",
        ]
        assert {line.split("\t")[2] for line in thresher("weights m").out.splitlines()} == {
            "0.1",
            "0.5",
            "0.9",
        }
        assert thresher("report m d.csv -o r.html").status == 0
        for form in ("c", "json"):
            assert "several quantiles are sorted when predicted" in thresher(f"export m --to {form}").err
