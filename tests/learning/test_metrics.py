"""The figures of ``evaluate`` compared with their definitions and with scikit-learn's."""

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thresher
from tests.plain import not_compiled
from thresher import Chunk
from thresher.data.chunk import StreamPosition
from thresher.data.errors import DataError
from thresher.data.source import Chunks, Source
from thresher.learning.evaluation import figures as evaluation
from thresher.learning.evaluation.curves import Binned, Ranking, wilson
from thresher.learning.evaluation.evaluate import Evaluation
from thresher.learning.model.objective import Objective, Output

EXAMPLES = st.lists(
    st.tuples(st.integers(-3, 3), st.booleans(), st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0])),
    min_size=1,
    max_size=30,
)


@given(EXAMPLES)
def test_auc_is_the_chance_that_a_positive_one_is_above(examples: list[tuple[int, bool, float]]) -> None:
    above = pairs = 0.0
    for up, positive, w in examples:
        for down, other, v in examples:
            if positive and not other:
                pairs += w * v
                above += w * v * (1.0 if up > down else 0.5 if up == down else 0.0)
    margins, labels, weights = (np.array(column) for column in zip(*examples, strict=True))
    found = Ranking(margins.astype(float), labels, weights).auc
    assert found is None if pairs == 0 else found == pytest.approx(above / pairs, abs=1e-12)


def chunk(labels: list[float], weights: list[float]) -> Chunk:
    return Chunk.of_rows([(label, {1: 1.0}) for label in labels], weights)


def test_figures_that_there_are_not() -> None:
    found = Evaluation(Objective("hinge"))
    assert found.figures()["auc"] is None
    assert found.figures()["loss"] != found.figures()["loss"]  # NaN
    found.add(chunk([1, 1], [1, 1]), np.array([0.5, -0.5]))
    assert found.figures()["auc"] is None
    assert found.figures()["error"] == 0.5
    with not_compiled():
        model = thresher.train([({"a": 1.0}, 1), ({"b": 1.0}, 0)] * 10)
        with pytest.raises(DataError, match="all importance weights are zero"):
            thresher.evaluate(model, [{"a": 1.0}], [1], sample_weight=[0.0])


metrics = pytest.importorskip("sklearn.metrics")
RNG = np.random.default_rng(7)
ROWS = 300
W = RNG.choice([0.0, 0.5, 1.0, 3.0], ROWS).astype(np.float32)


class Guesser:
    """A model whose margins are the values of features 0, 1, ... of a row."""

    classes = ()

    def __init__(self, loss: str, outputs: str = "one", lowest: float = 0.0) -> None:
        self.head, self.lowest_label = Objective(loss, outputs), lowest

    def predict(self, chunk: Chunk, output: Output = "margin") -> Any:
        assert output in get_args(Output)
        margins = chunk.values.reshape(len(chunk), self.head.count).astype(np.float64)
        return self.head.respond(margins[:, 0] if self.head.outputs.kind == "one" else margins, output, 0.0)


class Cut(Source):
    def __init__(self, chunk: Chunk, size: int) -> None:
        super().__init__()
        self.chunk, self.size = chunk, size

    def chunks(self, start: StreamPosition | None = None) -> Chunks:
        for lo in range(0, len(self.chunk), self.size):
            yield self.chunk.rows(lo, min(lo + self.size, len(self.chunk)))


def rows(margins: Any, labels: Any, targets: Any = None) -> Chunk:
    dense = [dict(enumerate(np.atleast_1d(one).tolist())) for one in margins]
    chunk = Chunk.of_rows(list(zip(np.asarray(labels, float).tolist(), dense, strict=True)), W[: len(dense)])
    return chunk if targets is None else replace(chunk, targets=np.asarray(targets, np.float32))


def assessed(model: Guesser, chunk: Chunk, threshold: float | None = None) -> dict[str, Any]:
    """The figures, which are the same however the rows are cut."""
    with not_compiled():
        whole = evaluation.assess(model, Cut(chunk, len(chunk)), threshold).figures()
        cut = evaluation.assess(model, Cut(chunk, 7), threshold).figures()
    assert flat(cut) == pytest.approx(flat(whole), nan_ok=True)
    return whole


def flat(figures: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in figures.items() if not isinstance(value, list)}


def probability(margins: Any, loss: str) -> Any:
    return 1 / (1 + np.exp(-(2 if loss == "exponential" else 1) * margins.astype(np.float64)))


MARGINS = RNG.normal(size=ROWS).astype(np.float32)
TRUTH = RNG.random(ROWS) < probability(MARGINS, "logistic")


def check_two(found: dict[str, Any], claimed: Any) -> None:
    table = metrics.confusion_matrix(TRUTH, claimed, sample_weight=W)
    assert np.array(found["confusion"]) == pytest.approx(table)
    scores = metrics.precision_recall_fscore_support(TRUTH, claimed, sample_weight=W)
    told = [[one[name] for one in found["by_class"]] for name in ("precision", "recall", "f1", "weight")]
    assert np.array(told) == pytest.approx(np.array(scores))
    assert [found[name] for name in ("precision", "recall", "f1")] == [one[1] for one in told[:3]]
    assert found["error"] == pytest.approx(1 - metrics.accuracy_score(TRUTH, claimed, sample_weight=W))
    assert found["auc"] == pytest.approx(metrics.roc_auc_score(TRUTH, MARGINS, sample_weight=W))


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
@pytest.mark.parametrize("threshold", [None, 0.2, 0.9])
def test_two_classes(loss: str, threshold: float | None) -> None:
    given = probability(MARGINS, loss)
    found = assessed(Guesser(loss, lowest=-1.0), rows(MARGINS, np.where(TRUTH, 1, -1)), threshold)
    check_two(found, given > (0.5 if threshold is None else threshold))
    assert found.get("threshold") == threshold
    assert [one["class"] for one in found["by_class"]] == ["-1", "1"]
    assert found["brier"] == pytest.approx(metrics.brier_score_loss(TRUTH, given, sample_weight=W))
    assert found["log_loss"] == pytest.approx(metrics.log_loss(TRUTH, given, sample_weight=W))
    rate = W @ TRUTH / W.sum()
    base = metrics.log_loss(TRUTH, np.full(ROWS, rate), sample_weight=W)
    assert found["base_log_loss"] == pytest.approx(base)
    assert found["normalised_entropy"] == pytest.approx(found["log_loss"] / base)
    assert (found["base_rate"], found["base_error"]) == pytest.approx((rate, min(rate, 1 - rate)))
    if loss == "logistic":
        assert found["log_loss"] == pytest.approx(found["loss"], rel=1e-6)


def test_margins_have_thresholds_and_no_likelihood() -> None:
    found = assessed(Guesser("hinge"), rows(MARGINS, TRUTH), 0.7)
    check_two(found, MARGINS > 0.7)
    assert not {"log_loss", "brier", "calibration", "normalised_entropy"} & found.keys()
    assert found["by_class"][0]["class"] == "0"


@pytest.mark.parametrize("loss", ["softmax", "logistic", "crammer-singer"])
def test_several_classes(loss: str) -> None:
    margins = RNG.normal(size=(ROWS, 4)).astype(np.float32)
    truth = RNG.integers(3, 6, ROWS)  # the last class is predicted but never occurs
    found = assessed(Guesser(loss, "classes:3-6"), rows(margins, truth))
    claimed = 3 + margins.argmax(axis=1)
    table = metrics.confusion_matrix(truth, claimed, labels=range(3, 7), sample_weight=W)
    assert np.array(found["confusion"]) == pytest.approx(table)
    weighed: Any = {"sample_weight": W, "zero_division": 0.0}
    macro = metrics.precision_recall_fscore_support(truth, claimed, average="macro", **weighed)[:3]
    assert [found[f"macro_{name}"] for name in ("precision", "recall", "f1")] == pytest.approx([*macro])
    assert [one["class"] for one in found["by_class"]] == ["3", "4", "5", "6"]
    assert found["by_class"][3]["recall"] is None
    shares = np.bincount(truth - 3, W, 4) / W.sum()
    assert found["base_error"] == pytest.approx(1 - shares.max())
    if loss == "crammer-singer":
        assert "log_loss" not in found
        return
    given = np.exp(margins) if loss == "softmax" else probability(margins, "logistic")
    given = given.astype(np.float64) / given.sum(axis=1, keepdims=True, dtype=np.float64)
    weighed = {"labels": range(3, 7), "sample_weight": W}
    assert found["log_loss"] == pytest.approx(metrics.log_loss(truth, given, **weighed), rel=1e-6)
    assert found["base_log_loss"] == pytest.approx(-sum(p * np.log(p) for p in shares if p))
    squares = ((given - np.eye(4)[truth - 3]) ** 2).sum(axis=1)
    assert found["brier"] == pytest.approx(W @ squares / W.sum(), rel=1e-6)
    held = Binned(probabilities=True)
    held.add(given.max(axis=1), claimed == truth, W.astype(np.float64))
    assert found["calibration_error"] == pytest.approx(held.calibration()["calibration_error"], abs=0.01)


@pytest.mark.parametrize("threshold", [None, 0.3])
def test_lists_of_classes(threshold: float | None) -> None:
    margins = RNG.normal(size=(ROWS, 3)).astype(np.float32)
    truth = RNG.random((ROWS, 3)) < [0.1, 0.5, 0.0]
    chunk = rows(margins, np.zeros(ROWS), np.where(truth, 1, -1))
    found = assessed(Guesser("logistic", "labels:1-3"), chunk, threshold)
    given = probability(margins, "logistic")
    claimed = given > (0.5 if threshold is None else threshold)
    for average in ("micro", "macro"):
        weighed: Any = {"sample_weight": W, "zero_division": 0.0, "average": average}
        scores = metrics.precision_recall_fscore_support(truth, claimed, **weighed)[:3]
        told = [found[f"{average}_{name}"] for name in ("precision", "recall", "f1")]
        assert told == pytest.approx([*scores])
    assert found["error"] == pytest.approx(W @ (claimed != truth).mean(axis=1) / W.sum())
    each = [
        metrics.log_loss(truth[:, k], given[:, k], sample_weight=W, labels=[False, True]) for k in range(3)
    ]
    assert found["log_loss"] == pytest.approx(np.mean(each))
    rates = W @ truth / W.sum()
    assert found["base_log_loss"] == pytest.approx(
        np.mean([-sum(p * np.log(p) for p in (rate, 1 - rate) if p) for rate in rates])
    )


@pytest.mark.parametrize("outputs", [1, 3])
def test_numbers(outputs: int) -> None:
    margins = RNG.normal(size=(ROWS, outputs)).astype(np.float32)
    truth = (100 + margins + RNG.normal(size=(ROWS, outputs))).astype(np.float32)
    spec = "one" if outputs == 1 else f"values:{outputs}"
    found = assessed(Guesser("squared", spec), rows(margins, truth[:, 0], None if outputs == 1 else truth))
    squared = metrics.mean_squared_error(truth, margins, sample_weight=W)
    assert found["rmse"] == pytest.approx(np.sqrt(squared), rel=1e-6)
    assert found["r2"] == pytest.approx(metrics.r2_score(truth, margins, sample_weight=W))
    assert found["mae"] == pytest.approx(metrics.mean_absolute_error(truth, margins, sample_weight=W))
    means = np.broadcast_to(np.average(truth.astype(float), axis=0, weights=W), truth.shape)
    squared = metrics.mean_squared_error(truth, means, sample_weight=W)
    assert found["base_rmse"] == pytest.approx(np.sqrt(squared))


def test_nothing_and_one_class_only() -> None:
    some = rows(MARGINS[:4], np.ones(4))
    found = assessed(Guesser("logistic"), some)
    assert (found["base_log_loss"], found["normalised_entropy"], found["precision"]) == (0.0, None, 1.0)
    for loss, outputs in (("logistic", "one"), ("softmax", "classes:1-2"), ("squared", "one")):
        with not_compiled():
            empty = evaluation.assess(Guesser(loss, outputs), Cut(some.rows(0, 0), 1)).figures()
        assert empty["examples"] == 0
    constant = assessed(Guesser("squared"), rows(MARGINS[:4], np.full(4, 2.0)))
    assert constant["r2"] is None


def test_bins_are_those_of_scikit_learn() -> None:
    curve = pytest.importorskip("sklearn.calibration").calibration_curve
    given = RNG.permutation(np.arange(1, 1001) / 1001)
    truth = RNG.random(1000) < given**2
    held = Binned(probabilities=True)
    for part in np.array_split(np.arange(1000), 13):
        held.add(given[part], truth[part], np.ones(len(part)))
    observed, predicted = curve(truth, given, n_bins=10, strategy="quantile")
    found = held.bins()
    assert [one["observed"] for one in found] == pytest.approx(observed)
    assert [one["predicted"] for one in found] == pytest.approx(predicted)
    assert held.calibration()["calibration_error"] == pytest.approx(np.abs(observed - predicted).mean())


def test_equal_predictions_share_a_bin_and_extremes_count() -> None:
    held = Binned(probabilities=True)
    given = np.repeat([0.0, 1e-12, 0.3, 1.0], [10, 10, 60, 20])
    held.add(given, given > 0.5, np.ones(100))
    assert [one["weight"] for one in held.bins()] == [10, 10, 60, 20]
    assert [one["predicted"] for one in held.bins()] == pytest.approx([0, 1e-12, 0.3, 1])
    assert held.calibration()["calibration_error"] == pytest.approx(0.6 * 0.3)
    assert Binned(probabilities=True).calibration() == {
        "brier": None,
        "calibration_error": None,
        "calibration": [],
    }


def test_intervals_are_those_of_scipy_and_wider() -> None:
    stats = pytest.importorskip("scipy.stats")
    for hits, count in ((0, 3), (3, 3), (17, 40), (1, 10_000)):
        found = stats.binomtest(hits, count).proportion_ci(method="wilson")
        assert wilson(hits / count, count) == pytest.approx((found.low, found.high), abs=1e-9)
    assert wilson(0.0, 0.0) == (0.0, 1.0)
    held = Binned(probabilities=True)
    held.add(np.full(4, 0.5), np.ones(4, bool), np.array([1.0, 1.0, 1.0, 5.0]))
    assert held.effective(8.0) == pytest.approx(64 / 28)
    assert Binned(probabilities=True).effective(0.0) == 0.0


def test_numbers_are_binned_by_prediction() -> None:
    guess, truth = RNG.normal(0, 1e3, 500), RNG.normal(0, 1, 500)
    held = Binned()
    for part in np.array_split(np.arange(500), 7):
        held.add(guess[part], truth[part], np.ones(len(part)))
    order = np.argsort(guess).reshape(10, 50)
    assert [one["predicted"] for one in held.bins()] == pytest.approx(guess[order].mean(axis=1))
    assert [one["observed"] for one in held.bins()] == pytest.approx(truth[order].mean(axis=1))
    density = held.density()
    assert sum(weight for _, _, weight in density) == 500
    assert (density[0][0], density[-1][1]) == pytest.approx((guess.min(), guess.max()))
    assert [low for low, _, _ in density[1:]] == [high for _, high, _ in density[:-1]]
    assert Binned().density() == []


def ranked(seed: int = 0, rows: int = 400) -> tuple[Any, Any, Any]:
    """Scores with many ties, rare positives and uneven importances."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=rows).round(1)
    return scores, rng.random(rows) < 0.1 + 0.1 * (scores > 1), rng.choice([0.5, 1.0, 3.0], rows)


@pytest.mark.parametrize("alike", [True, False], ids=["alike", "weighed"])
def test_the_average_precision_is_scikit_learns(alike: bool) -> None:
    scores, positive, weights = ranked()
    weights = np.ones(len(scores)) if alike else weights
    expected = metrics.average_precision_score(positive, scores, sample_weight=weights)
    found = Ranking(scores, positive, weights)
    assert found.average_precision == pytest.approx(expected, abs=1e-12)
    assert found.auc == pytest.approx(
        metrics.roc_auc_score(positive, scores, sample_weight=weights), abs=1e-12
    )


def test_figures_at_the_top_are_means_over_the_orders_of_equal_scores() -> None:
    scores, positive, _ = ranked(rows=60)
    count, means, rng = 7, np.zeros(2), np.random.default_rng(1)
    for _ in range(2000):
        shuffled = rng.permutation(len(scores))
        top = positive[shuffled[np.argsort(-scores[shuffled], kind="stable")[:count]]]
        means += [top.mean() / 2000, top.sum() / positive.sum() / 2000]
    found = Ranking(scores, positive, np.ones(60)).top(count / 60)
    assert [found["precision"], found["recall"]] == pytest.approx(means, abs=0.02)
    assert found["lift"] == pytest.approx((found["precision"] or 0.0) / positive.mean())
    whole = Ranking(scores, positive, np.ones(60)).top(1.0)
    assert [whole["recall"], whole["lift"]] == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("costs", [(10.0, 1.0), (1.0, 10.0), (0.0, 1.0), (1.0, 0.0)])
def test_the_threshold_of_the_lowest_cost_is_found(costs: tuple[float, float]) -> None:
    scores, positive, weights = ranked()
    found = Ranking(scores, positive, weights)

    def cost(at: float) -> Any:
        wrong = np.where(positive, costs[0] * (scores <= at), costs[1] * (scores > at))
        return np.average(wrong, weights=weights)

    at, told = found.cheapest(*costs)
    assert told["cost"] == pytest.approx(cost(at), abs=1e-12)
    tried = [-9.0, *scores, 9.0]
    assert told["cost"] == pytest.approx(min(map(cost, tried)), abs=1e-12)
    low, mean, high = (told[name] or 0.0 for name in ("cost_low", "cost", "cost_high"))
    assert low <= mean <= high


@pytest.mark.parametrize(("loss", "power"), [("poisson", 1.0), ("tweedie:power=1.3", 1.3), ("gamma", 2.0)])
@pytest.mark.parametrize("level", [-3.0, 9.0])
def test_deviances_of_amounts(loss: str, power: float, level: float) -> None:
    margins = (level + RNG.normal(size=(ROWS, 1))).astype(np.float32)
    truth = RNG.gamma(0.5, 2 * np.exp(level), ROWS).astype(np.float32)
    truth[: 0 if loss == "gamma" else 30] = 0.0
    found = assessed(Guesser(loss), rows(margins, truth))
    given: Any = {"power": power, "sample_weight": W}
    means = np.exp(margins[:, 0].astype(np.float64))
    assert found["deviance"] == pytest.approx(metrics.mean_tweedie_deviance(truth, means, **given), rel=1e-6)
    assert found["d2"] == pytest.approx(metrics.d2_tweedie_score(truth, means, **given), rel=1e-6)


@pytest.mark.parametrize(("loss", "level"), [("quantile:tau=0.9", 0.9), ("absolute", 0.5)])
def test_the_coverage_of_a_quantile(loss: str, level: float) -> None:
    truth = RNG.normal(size=ROWS).astype(np.float32)
    found = assessed(Guesser(loss), rows(MARGINS, truth))
    assert (found["level"], found["coverage"]) == (
        level,
        pytest.approx(W @ (truth <= MARGINS) / W.sum()),
    )


def test_predictions_that_are_not_finite_are_an_error_with_the_example() -> None:
    model = thresher.train(
        ([{1: 1.0, 2: 1.0}, {1: -1.0, 2: -1.0}] * 60, [1, -1] * 60), "sgd", rate="constant:10", loss="hinge"
    )
    huge = ([{1: 1.0}, {1: 3e38, 2: 3e38}], [1, -1])
    with pytest.raises(DataError, match="the prediction for example 2 is not finite: its values are too"):
        thresher.evaluate(model, huge)
