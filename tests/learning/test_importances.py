"""Importances far from each other, or far above 1: when they are warned of, and that the remedy works."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from tests.streams import RULES
from thresher import Chunk, Model, TroubleWarning, evaluate, load, train
from thresher.data.errors import DataError
from thresher.parts import REGISTRY
from thresher.sklearn import SparseOnlineClassifier

pytestmark = pytest.mark.usefixtures("plainly", "as_commands_say")

CHANCE = np.random.default_rng(3)
N = 1200
SITE = CHANCE.integers(0, 6, N)
CLICKED = CHANCE.random(N) < 0.01 * (1 + SITE)
KEPT = CLICKED | (CHANCE.random(N) < 0.2)


def rows(labels: NDArray[Any], importances: Any, site: NDArray[Any] = SITE) -> Chunk:
    return Chunk.from_csr(range(len(labels) + 1), site + 1, np.ones(len(labels)), labels, importances)


def warned(data: Any, y: Any = None, **options: Any) -> dict[str, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TroubleWarning)
        return dict(train(data, y, **options).warnings)


def sampled(negatives: float, positives: float = 1.0) -> Chunk:
    labels = CLICKED[KEPT]
    return rows(labels, np.where(labels, positives, negatives), SITE[KEPT])


def test_sampled_negatives_are_warned_of_with_the_formula() -> None:
    found = warned(sampled(50.0))["importances"]
    assert "the importances of negatives are 50 times those of positives" in found
    assert found.endswith("learn without importances, and turn each probability p into p / (p + 50 (1 - p))")
    other = warned(sampled(1.0, 20.0))["importances"]
    assert "the importances of positives are 20 times those of negatives" in other
    assert "p / (p + 0.05 (1 - p))" in other


def test_the_formula_gives_probabilities_of_all_rows() -> None:
    """In the kept rows clicks are five times as frequent."""
    labels = CLICKED[KEPT]
    model = train(rows(labels, None, SITE[KEPT]), passes=5)
    p = model.predict(rows(CLICKED, None), "probability")
    assert p.mean() > 2 * CLICKED.mean()
    corrected = p / (p + 5 * (1 - p))
    assert corrected.mean() == pytest.approx(CLICKED.mean(), rel=0.25)
    predictor = model.predictor()
    predictor.bias += np.log(1 / 5)
    np.testing.assert_allclose(predictor.predict(rows(CLICKED, None), "probability"), corrected, rtol=1e-4)


@pytest.mark.parametrize("rule", ["ft-ftrl", "ftrl", "sgd", "adagrad-fobos"])
def test_ordinary_importances_are_not_warned_of(rule: str) -> None:
    for importances in (
        CHANCE.uniform(0.1, 5, N),
        np.where(CLICKED, 5.0, 1.0),
        np.where(CLICKED, 0.5, 4.0),
        np.full(N, 5.0),
        np.exp(CHANCE.normal(0, 1, N)),
    ):
        assert "importances" not in warned(rows(CLICKED, importances), rule=rule)
    assert "importances" not in warned(rows(CLICKED[:90], np.full(90, 1e3), SITE[:90]), rule=rule)


@pytest.mark.parametrize(
    ("rule", "rate", "named"),
    [("ftrl", None, True), ("sgd", "constant:0.001", True), ("ft-ftrl", None, False)],
)
def test_large_importances_that_lengthen_steps(rule: str, rate: str | None, named: bool) -> None:
    found = warned(rows(CLICKED, np.full(N, 40.0)), rule=rule, rate=rate)
    assert ("importances" in found) == named
    for loss in ("squared", "poisson"):
        counted = rows(CLICKED, np.full(N, 40.0))
        assert ("importances" in warned(counted, rule=rule, rate=rate, loss=loss)) == named
    if named:
        assert "the importances are 40 on average" in found["importances"]
        assert "importances" not in warned(rows(CLICKED, np.full(N, 40.0) / 40), rule=rule, rate=rate)


def test_several_classes_and_losses_without_probabilities() -> None:
    classes = np.arange(N) % 3
    found = warned(
        rows(classes, np.where(classes == 1, 30.0, 1.0), classes), loss="softmax", outputs="classes:0-2"
    )
    assert "the importances of class 1 are 30 times those of class " in found["importances"]
    assert "multiply the probability of each class by its importance" in found["importances"]
    assert warned(sampled(50.0), rule="pa-i", loss="hinge")["importances"].endswith(
        "learn without importances, and choose another threshold"
    )


def test_the_column_is_to_be_ignored() -> None:
    labels = CLICKED[KEPT]
    frame = pd.DataFrame(
        {"y": np.where(labels, "yes", "no"), "n": np.where(labels, 1, 50), "site": SITE[KEPT]}
    )
    found = warned(frame, label="y", weight="n", categorical="site")["importances"]
    assert "the importances of class no are 50 times those of class yes" in found
    assert "use --ignore n in place of --weight n" in found
    again = warned(frame, label="y", ignore="n", categorical="site")
    assert again == {}
    X = frame[["site"]]
    beside = warned(X, y=frame["y"], sample_weight=frame["n"], categorical="site")["importances"]
    assert "so that few rows decide: learn without importances, and" in beside
    assert warned(X, y=frame["y"], categorical="site") == {}


def test_cuts_change_nothing() -> None:
    whole = sampled(50.0)
    for size in (1, 7, 100):
        parts = [whole.rows(lo, min(lo + size, len(whole))) for lo in range(0, len(whole), size)]
        assert warned(parts, rule="sgd") == warned(whole, rule="sgd")


@pytest.mark.parametrize("rule", RULES)
def test_rules_say_whether_only_relative_importances_count(rule: str) -> None:
    """Those that say so learn the same, whatever all importances are multiplied by."""
    said = REGISTRY["rule"][rule].RELATIVE_IMPORTANCE  # type: ignore[attr-defined]
    found = set[bool]()
    for loss in ("logistic", "hinge"):
        found_by_scale = []
        for importance in (1.0, 4.0):
            model = Model(rule, loss, dtype="float64")
            with np.errstate(all="ignore"):
                model.learn(rows(CLICKED[:40], np.full(40, importance), SITE[:40]))
            found_by_scale.append(np.asarray(model.predict(rows(CLICKED[:40], None, SITE[:40]))))
        one, many = found_by_scale
        found.add(bool(np.allclose(one, many, rtol=1e-6, atol=1e-9 * np.abs(one).max())))
    assert said == (False not in found)


@pytest.mark.filterwarnings("ignore:the log loss is:thresher.TroubleWarning")
def test_evaluating_with_importances_that_were_not_learned(tmp_path: Any) -> None:
    labels = CLICKED[KEPT]
    frame = pd.DataFrame({"label": labels * 1, "n": np.where(labels, 1, 50), "site": SITE[KEPT]})
    model = train(frame, ignore="n", categorical="site")
    model.save(tmp_path / "m")
    X, y = frame[["site"]], frame["label"]
    expected = evaluate(model, X, y, sample_weight=frame["n"])
    for data in (frame, frame[["n", "label", "site"]]):
        assert evaluate(load(tmp_path / "m"), data, weight="n") == expected
    assert evaluate(model, frame) != expected
    without = train(frame.drop(columns="n"), categorical="site")
    assert evaluate(without, frame, weight="n")["loss"] == expected["loss"]
    weighted = train(frame.assign(k=1), weight="k", ignore="n", categorical="site")
    assert evaluate(weighted, frame, weight="n")["loss"] == expected["loss"]
    with pytest.raises(DataError, match="trained with 'site' as categorical; leave --weight out"):
        evaluate(model, frame, weight="site")


def test_fit_warns_of_sample_weight_but_not_of_class_weight() -> None:
    X, y = np.eye(6)[SITE[KEPT]], CLICKED[KEPT]
    with pytest.warns(TroubleWarning, match="class False are 50 times those of class True"):
        SparseOnlineClassifier(shuffle=False).fit(X, y, sample_weight=np.where(y, 1, 50))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SparseOnlineClassifier(shuffle=False, class_weight={0: 50, 1: 1}).fit(X, y)
