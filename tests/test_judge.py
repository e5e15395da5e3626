"""Figures that judge models in place of the loss, against scikit-learn's."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher
from tests.plain import not_compiled
from thresher.learning.files.choice import LOSS, Point, check_judge, choose, criterion_of
from thresher.learning.training.scores import Scores

pytestmark = pytest.mark.filterwarnings("ignore::thresher.TroubleWarning")
metrics = pytest.importorskip("sklearn.metrics")
RNG = np.random.default_rng(5)
X = np.round(RNG.normal(size=(400, 6)) + 5)  # many margins are equal
CLICKS = (RNG.random(400) < 1 / (1 + np.exp(7 - X[:, 0]))).astype(int)
AMOUNTS = np.exp(RNG.normal(size=400) / 9 + (X[:, 0] - 5) / 3)
W = RNG.choice([0.0, 0.5, 1.0, 3.0], 400)
HELD = slice(250, 400)
LEARNED: Any = {"passes": 1, "sample_weight": W[:250], "l1": [0.3, 3.0, 30.0]}


@pytest.fixture(autouse=True)
def plainly() -> Iterator[None]:
    with not_compiled():
        yield


def frontier(y: Any, judge: str, **more: Any) -> Any:
    held = (X[HELD], y[HELD], W[HELD])
    return thresher.path(X[:250], y[:250], judge=judge, holdout=held, **LEARNED, **more)


def precision_of_the_first(part: float, y: Any, margins: Any, sample_weight: Any) -> float:
    """Mean over all orders of examples with equal margins, in closed form."""
    order = np.argsort(-margins)
    sums, ends = np.zeros((2, 1)), np.flatnonzero(np.append(np.diff(margins[order]) != 0, True))
    weights = np.stack([sample_weight, sample_weight * y])[:, order]
    sums = np.insert(np.cumsum(weights, axis=1)[:, ends], 0, 0.0, axis=1)
    most = part * sums[0, -1]
    return float(np.interp(most, *sums) / most)


OF_TWO = {
    "average_precision": metrics.average_precision_score,
    "auc": metrics.roc_auc_score,
    "precision@10%": lambda *given, **more: precision_of_the_first(0.1, *given, **more),
}


@pytest.mark.parametrize("judge", OF_TWO)
def test_the_best_of_a_frontier(judge: str, tmp_path: Path) -> None:
    found = frontier(CLICKS, judge)
    w = W[HELD]
    margins = [thresher.predict(model, X[HELD], output="margin")[w > 0] for model in found.models]
    expected = [OF_TWO[judge](CLICKS[HELD][w > 0], one, sample_weight=w[w > 0]) for one in margins]
    assert [one.holdout[judge] for one in found.points] == pytest.approx(expected, abs=1e-12)
    assert found.number("best") == int(np.argmax(expected))
    found.save(tmp_path / "m")
    assert thresher.load(tmp_path / "m").number("best") == found.number("best")
    assert f"judge {judge}" in " ".join(str(thresher.info(tmp_path / "m")).split())
    drawn = found.points[0].as_dict("l1")
    assert drawn[f"holdout_{judge}"] == found.points[0].figure
    assert "judge" not in drawn


def test_deviance_is_the_best_if_it_is_low_and_d2_if_it_is_high() -> None:
    by = {judge: frontier(AMOUNTS, judge, loss="gamma") for judge in ("deviance", "d2")}
    assert by["d2"].number() == by["deviance"].number()
    w = W[HELD]
    for judge, score in (("deviance", metrics.mean_gamma_deviance), ("d2", None)):
        for point, model in zip(by[judge].points, by[judge].models, strict=True):
            of = AMOUNTS[HELD].astype(np.float32), np.exp(thresher.predict(model, X[HELD]))
            if score is None:
                expected = metrics.d2_tweedie_score(*of, power=2, sample_weight=w)
            else:
                expected = score(*of, sample_weight=w)
            assert point.holdout is not None
            assert point.holdout[judge] == pytest.approx(expected, rel=1e-9)


def test_the_pass_that_is_kept_is_the_best_by_the_judge() -> None:
    rule: Any = {"rule": "sgd", "rate": "constant:9", "loss": "hinge", "scale": "standard"}
    data, held = (X[:250], CLICKS[:250]), (X[HELD], CLICKS[HELD])
    models = [thresher.train(*data, passes=passes, holdout=held, **rule) for passes in range(1, 7)]
    aucs, losses = ([(one.holdout or {})[name] for one in models] for name in ("auc", "loss"))
    best = 1 + int(np.argmax(np.array(aucs)))
    assert best != 1 + int(np.argmin(np.array(losses)))
    kept: Any = thresher.train(*data, passes=6, holdout=held, judge="auc", early_stop=6, **rule)
    assert (kept.record.passes, kept.holdout["auc"]) == (best, aucs[best - 1])


def test_folds_are_judged_too() -> None:
    found = thresher.cv(X, CLICKS, judge="average-precision", folds=3, l1=[0.3, 30.0], passes=1)
    means = [np.mean([fold["average_precision"] for fold in one.folds]) for one in found.points]
    assert found.number() == int(np.argmax(means))
    assert [one.figures["average_precision"] for one in found.points] == pytest.approx(means)
    best = found.number()
    gaps = np.array([one["average_precision"] for one in found.points[1 - best].folds])
    gaps -= [one["average_precision"] for one in found.points[best].folds]
    assert found.points[1 - best].paired_error == pytest.approx(gaps.std(ddof=1) / math.sqrt(3))


def test_choices_by_a_figure_that_should_be_high() -> None:
    points = [
        Point(1.0, "", size, 0.5, {"loss": size / 99, "auc": auc}, None, judge="auc")
        for size, auc in ((9, 0.7), (5, 0.9), (3, 0.895), (1, None))
    ]
    assert [choose(points, which) for which in ("best", "within:1%", "nnz:4")] == [1, 2, 2]
    with pytest.raises(ValueError, match='standard errors of losses: leave judge="auc" out, or use choose='):
        choose(points, "1se")
    assert points[3].criterion == math.inf
    assert criterion_of("auc", {"auc": math.nan}) == math.inf


def test_what_cannot_judge() -> None:
    assert check_judge("lift@1%") == "lift@1%"
    for wrong in ("lift", "lift@0", "loss@3", "auc@1%", "coverage", 3):
        with pytest.raises(ValueError, match="one of loss"):
            check_judge(wrong)
    for wrong, near in (("accuracy", "error"), ("aucc", "auc")):
        with pytest.raises(
            ValueError, match=rf"^judge must be one of .*, not '{wrong}'; did you mean {near}\?"
        ):
            frontier(AMOUNTS, wrong, loss="squared")
    for judge in ("d2", "lift@2"):
        with pytest.raises(ValueError, match=f"{judge} is no figure of this model, which has loss, "):
            frontier(AMOUNTS, judge, loss="squared")
    with pytest.raises(ValueError, match='judge="auc" needs holdout'):
        thresher.train(X, CLICKS, judge="auc")
    with pytest.raises(ValueError, match="1se needs the standard errors of losses"):
        frontier(CLICKS, "auc", choose="1se")
    model = thresher.train(X, CLICKS, passes=1)
    assert Scores({0: model}, [], "auc").error_of_difference(0, 0) is None
    assert Scores({0: model}, [], LOSS).examples == 0
