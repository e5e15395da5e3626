"""Estimators for river: its own checks, its pipelines, frames of pandas and polars."""

import pickle
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from river import checks, compose, datasets, evaluate, metrics, preprocessing

from tests.pages import ROOT, blocks, session
from thresher import Model, river
from thresher.learning.modelbytes import as_bytes

MADE: dict[str, Any] = {
    "two classes": river.Classifier(),
    "hinge": river.Classifier("ftrl", "hinge", l1=0.01, centre=True),
    "classes": river.MulticlassClassifier(),
    "numbers": river.Regressor(),
}
CHECKS = [
    (name, check)
    for name, model in MADE.items()
    if name != "hinge"  # which is of the class of the first
    for check in checks.yield_checks(model)
]


@pytest.mark.parametrize(
    ("name", "check"), CHECKS, ids=[f"{name}-{k}-{c.__name__}" for k, (name, c) in enumerate(CHECKS)]
)
@pytest.mark.usefixtures("plainly")
def test_checks_of_river(name: str, check: Any) -> None:
    check(MADE[name].clone())


def rows_and_labels(kind: str) -> tuple[list[dict[str, Any]], list[Any]]:
    draw, words = np.random.default_rng(2), ["a", "b", "c"]
    rows: list[dict[str, Any]] = []
    labels: list[Any] = []
    for _ in range(60):
        x = float(draw.normal())
        rows.append(
            {"x": x, "there": None if draw.integers(3) == 0 else 1.5, "word": draw.choice(words).item()}
        )
        each = {"numbers": 3 * x + 1, "classes": words[int(np.clip(x + 1.5, 0, 2))]}
        labels.append(each.get(kind, bool(x > 0)))
    return rows, labels


def test_the_example_prints_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    ((command, shown),) = (step for block in blocks("docs/from-river", "console") for step in session(block))
    runpy.run_path(str(ROOT / command.split()[1]), run_name="__main__")
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize("frames", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("name", MADE)
@pytest.mark.usefixtures("plainly")
def test_frames_are_rows(name: str, frames: Any) -> None:
    rows, labels = rows_and_labels(name)
    one, other = MADE[name].clone(), MADE[name].clone()
    for row, label in zip(rows, labels, strict=True):
        one.learn_one(row, label)
    for part in (slice(0, 7), slice(7, 7), slice(7, 60)):
        other.learn_many(frames(rows[part]), labels[part])
    assert as_bytes(one.model) == as_bytes(other.model)
    found = other.predict_many(frames(rows))
    assert isinstance(found, pd.Series if frames is pd.DataFrame else pl.Series)
    assert found.to_list() == [one.predict_one(row) for row in rows]
    if name not in ("numbers", "hinge"):
        shares = other.predict_proba_many(frames(rows))
        each = [one.predict_proba_one(row) for row in rows]
        assert [*shares.columns] == [label if frames is pd.DataFrame else str(label) for label in each[0]]
        assert np.allclose(shares.to_numpy(), [[*one.values()] for one in each], rtol=1e-12)


@pytest.mark.usefixtures("plainly")
def test_importances_and_pipelines() -> None:
    rows, labels = rows_and_labels("two classes")
    one, other = river.Classifier(), river.Classifier()
    for row, label in zip(rows, labels, strict=True):
        one.learn_one(row, label, w=2.0)
    other.learn_many(pd.DataFrame(rows), labels, [2.0] * 60)
    assert as_bytes(one.model) == as_bytes(other.model)
    assert pickle.loads(pickle.dumps(one)).predict_one(rows[0]) == one.predict_one(rows[0])
    pipeline = compose.Select("x") | preprocessing.StandardScaler() | river.Classifier("ftrl", l1=0.01)
    metric = evaluate.progressive_val_score(zip(rows, labels, strict=True), pipeline, metrics.Accuracy())
    assert metric.get() > 0.8


@pytest.mark.usefixtures("plainly")
def test_a_loss_without_probabilities_says_so() -> None:
    with pytest.raises(NotImplementedError, match=r"hinge.* has no probabilities: calibrate"):
        MADE["hinge"].predict_proba_one({"x": 1.0})
    assert river.Classifier("ftrl", "hinge", calibrate=True).predict_one({"x": 1.0}) is False
    assert river.MulticlassClassifier().predict_one({"x": 1.0}) is None


@pytest.mark.usefixtures("plainly")
def test_phishing_is_learned() -> None:
    data = datasets.Phishing().take(600)
    assert evaluate.progressive_val_score(data, river.Classifier(), metrics.ROCAUC()).get() > 0.9


@pytest.mark.usefixtures("plainly")
def test_a_saved_model_goes_on(tmp_path: Path) -> None:
    for name in ("two classes", "hinge", "numbers", "classes"):
        rows, labels = rows_and_labels(name)
        one: Any = MADE[name].clone()
        one.learn_many(pd.DataFrame(rows), labels)
        one.model.save(tmp_path / "m.model")
        other = type(one).of(Model.load(tmp_path / "m.model"))
        assert other.predict_one(rows[0]) == one.predict_one(rows[0])
        for each in (one, other):
            each.learn_one(rows[1], labels[1])
        assert as_bytes(one.model) == as_bytes(other.model)
        assert as_bytes(other.clone().model) == as_bytes(one.clone().model)
    with pytest.raises(ValueError, match="Classifier cannot go on with"):
        river.Classifier.of(other.model)


@pytest.mark.parametrize("name", MADE)
@pytest.mark.usefixtures("plainly")
def test_what_is_wrong_is_said_and_changes_nothing(name: str) -> None:
    one: Any = MADE[name].clone()
    with pytest.raises(TypeError, match=rf"{type(one).__name__} has no option l3; it has rule"):
        type(one)(l3=2)
    for x in ([1.0], None, 1, pd.Series({"x": 1.0})):
        with pytest.raises(TypeError, match="expected a dictionary of features, not"):
            one.learn_one(x, 1)
    for X in (np.ones((2, 2)), [{"x": 1.0}], pd.Series([1.0]), None):
        with pytest.raises(TypeError, match="expected a frame of pandas or polars, not"):
            one.learn_many(X, [1, 0])
        with pytest.raises(TypeError, match="expected a frame of pandas or polars, not"):
            one.predict_many(X)
    if name in ("two classes", "hinge"):
        for label in ("spam", 2, None, [1]):
            with pytest.raises(ValueError, match=r"expected True or False as label, .*MulticlassClassifier"):
                one.learn_one({"x": 1.0}, label)
            with pytest.raises(ValueError, match=r"expected True or False as label, .*MulticlassClassifier"):
                one.learn_many(pd.DataFrame({"x": [1.0]}), [label])
    one.learn_one({"x": 1.0}, True)
