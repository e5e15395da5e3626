"""`--sample`: some rows of common classes are left out, and figures stay those of all rows."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import thresher
from tests.plain import not_compiled
from tests.streams import fingerprint
from thresher.data.chunk import Chunk
from thresher.data.errors import DataError
from thresher.learning.model.model import Model
from thresher.learning.model.recipe import Recipe
from thresher.learning.model.sampling import Sample
from thresher.learning.training.shares import SAMPLE, bits_of, unit
from thresher.sklearn import SparseOnlineClassifier

ROWS = 600
pytestmark = pytest.mark.usefixtures("as_commands_say")


def clicks(rows: int = ROWS, seed: int = 0, classes: int = 2) -> Chunk:
    """Rows of three features of 20, labels 0 seven times of eight, or 0 more often than other classes."""
    chance = np.random.default_rng(seed)
    keys = np.sort(np.array([chance.choice(20, 3, replace=False) for _ in range(rows)]))
    odds = np.where(keys[:, 0] < 3, 0.3, 0.1)
    labels = np.where(chance.random(rows) < odds, chance.integers(1, classes, rows), 0)
    return Chunk.from_csr(np.arange(rows + 1) * 3, keys.ravel(), np.ones(3 * rows), labels)


def drawn(chunk: Chunk, share: float, seed: int, first: int = 0) -> Any:
    numbers = np.arange(first, first + len(chunk), dtype=np.uint64)
    return (chunk.labels != 0) | (unit(bits_of(numbers, seed, SAMPLE)) < share)


CASES: dict[str, dict[str, Any]] = {
    "importances": {"rule": "ftrl:l1=0.1", "sample": "0=0.2"},
    "corrected": {"rule": "ft-ftrl", "sample": "0=0.2,correct"},
    "batch": {"rule": "sgd", "batch": 4, "sample": "0=0.2"},
    "average": {"rule": "fobos:l1=0.01", "average": True, "sample": "0=0.2,correct"},
    "classes": {"rule": "ftrl", "loss": "softmax", "outputs": "classes:0-2", "sample": "0=0.2,correct"},
    "scaled": {"rule": "sgd", "scale": "max-abs", "admit": 2, "sample": "0=0.2"},
}
cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def rows_for(case: dict[str, Any]) -> Chunk:
    return clicks(classes=3 if "outputs" in case else 2)


@cases
def test_the_state_is_that_of_the_rows_drawn(case: dict[str, Any]) -> None:
    """Learned with importances 1 / share, or as they are."""
    chunk = rows_for(case)
    kept = drawn(chunk, 0.2, 7)
    rows = chunk.take(kept)
    if "correct" not in case["sample"]:
        rows = replace(rows, weights=np.where(rows.labels == 0, np.float32(1 / 0.2), np.float32(1)))
    with not_compiled():
        sampled, plain = Model(**case, seed=7), Model(**{**case, "sample": None}, seed=7)
        sampled.learn(chunk)
        plain.learn(rows)
    state, other = fingerprint(sampled), fingerprint(plain)
    assert {name: state[name] for name in other} == other
    assert (sampled.examples, sampled.left_out) == (ROWS, int((~kept).sum()))
    assert 0 < len(rows) < ROWS / 2


def test_a_later_pass_draws_other_rows() -> None:
    chunk = clicks()
    with not_compiled():
        model = Model("sgd", sample="0=0.2")
        model.learn(chunk)
        first = model.left_out
        model.learn(chunk, again=True)
    both = [int((~drawn(chunk, 0.2, 0, begin)).sum()) for begin in (0, ROWS)]
    assert [first, model.left_out - first] == both
    assert (drawn(chunk, 0.2, 0) != drawn(chunk, 0.2, 0, ROWS)).any()


@pytest.mark.parametrize(
    ("loss", "sample"),
    [("logistic", "0=0.1"), ("logistic", "0=0.1,1=0.5,correct"), ("softmax", "0=0.1,correct")],
)
def test_probabilities_are_those_of_all_rows(sample: str, loss: str) -> None:
    chunk = clicks(8_000)
    classes = {} if loss == "logistic" else {"outputs": "classes:0-1"}
    options = {"rule": "ft-ftrl", "loss": loss, **classes}
    wholly, model = Model(**options), Model(**options, sample=sample)
    for one in (wholly, model):
        one.learn(chunk)
    base = chunk.labels.mean()
    found, alike = (one.predict_proba(chunk)[:, 1] for one in (model, wholly))
    assert found.mean() == pytest.approx(base, rel=0.3)
    assert np.abs(found - alike).mean() < 0.1
    if "correct" not in sample:  # an unbiased estimate, of a mean over a tenth of the negatives
        assert model.tally.weight == pytest.approx(len(chunk), rel=0.06)
        assert model.tally.average == pytest.approx(wholly.tally.average, rel=0.15)


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_data_that_were_sampled_before(loss: str) -> None:
    """All are learned, and the model is that of the same sample drawn while learning."""
    chunk = clicks()
    options: dict[str, Any] = {"rule": "ftrl:l1=0.1", "loss": loss, "seed": 7}
    options |= {} if loss == "logistic" else {"outputs": "classes:0-1"}
    kept = chunk.take(drawn(chunk, 0.2, 7))
    with not_compiled():
        drawing, before = (Model(**options, sample=f"0=20%,{how}") for how in ("correct", "before"))
        drawing.learn(chunk)
        before.learn(kept)
    assert before.recipe.sample == "0=0.2,before"
    assert (before.examples, before.left_out) == (len(kept), 0)
    assert np.array_equal(before.margins(chunk), drawing.margins(chunk))
    assert before.last_label(kept) == kept.labels[-1]


def test_the_correction_is_no_state() -> None:
    """It is added where intercepts are read."""
    chunk = clicks()
    with not_compiled():
        model = Model("ftrl", sample="0=0.2,correct")
        model.learn(chunk)
        bias = model.loop.bias()
    assert model.intercept == pytest.approx(float(bias[0]) + np.log(0.2))
    assert model.predictor().intercept == model.intercept
    assert model.margins(chunk)[0] == pytest.approx(
        model.terms(chunk.rows(0, 1)).parts.sum() + model.intercept
    )
    started = Model("ftrl", sample="0=0.5,correct")
    from thresher.learning.model.warm_start import start_from

    start_from(started, model.predictor())
    assert started.predict(chunk) == pytest.approx(model.predict(chunk), abs=1e-6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sample": "0:0.1"}, "such as 0=0.1, or 0=0.1,correct or 0=0.1,before, not '0:0.1'"),
        ({"sample": "0=0.1,before,correct"}, "must be LABEL=SHARE"),
        (
            {"sample": "0=0.1,before", "loss": "hinge"},
            "log odds.*: give importances of 1/SHARE, --weight, ",
        ),
        ({"sample": "x" * 1_000_000}, "must be LABEL=SHARE"),  # in time that grows with the length
        ({"sample": {}}, "must be LABEL=SHARE"),
        ({"sample": "0=1.5"}, "give each label once, with a share in"),
        ({"sample": "0=0.1,-1=0.2"}, "the label -1 is a class given twice"),
        ({"sample": "4=0.1", "loss": "softmax", "outputs": "classes:1-3"}, "the label 4 is none of .*1-3"),
        ({"sample": "1=0.1", "loss": "squared"}, "is for classes, not for the loss squared"),
        ({"sample": "1=0.1", "outputs": "labels:3"}, "not for the loss logistic with outputs labels"),
        (
            {"sample": "1=0.1,correct", "outputs": "classes:1-3"},
            "logistic with outputs classes .* no log odds",
        ),
    ],
)
def test_what_cannot_be_is_said_at_once(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Recipe(**options)


@pytest.mark.parametrize("given", ["a,b=10%,c=0.5", {"a,b": 0.1, "c": 0.5}])
def test_a_label_may_be_any_text(given: Any) -> None:
    assert Sample.of(given) == Sample({"a,b": 0.1, "c": 0.5})
    assert Sample.of(Sample.of(given).spec) == Sample.of(given)


def table(tmp_path: Path, words: tuple[str, ...]) -> str:
    rows = clicks(300, classes=len(words))
    path = tmp_path / "clicks.csv"
    lines = (f"{words[int(y)]},s{int(k)}\n" for y, k in zip(rows.labels, rows.keys[::3], strict=True))
    path.write_text("label,site\n" + "".join(lines))
    return str(path)


@pytest.mark.parametrize("words", [("no", "yes"), ("no", "once", "often")])
def test_labels_may_be_words(words: tuple[str, ...], tmp_path: Path) -> None:
    data = table(tmp_path, words)
    with not_compiled():
        model = thresher.train(data, sample="no=0.2,correct", passes=1)
        assert 150 < model.left_out < 260
        assert model.recipe.sample == "no=0.2,correct"
        with pytest.raises(DataError, match=r"--sample: the label maybe is none of the classes \(no, "):
            thresher.train(data, sample="maybe=0.2", passes=1)
        for label in ("3", "0.5"):
            with pytest.raises(DataError, match=f"the label {label} is none of .* .0 or -1, and 1"):
                Model(sample=f"{label}=0.2").learn(clicks())
        with pytest.raises(DataError, match="the label no is a word, those of the data are numbers"):
            Model(sample="no=0.2").learn(clicks())


def test_held_out_rows_are_all_rows(tmp_path: Path) -> None:
    data = table(tmp_path, ("0", "1"))
    options: Any = {"passes": 1, "holdout": 0.2, "seed": 5}
    with not_compiled():
        plain, model = thresher.train(data, **options), thresher.train(data, sample="0=0.2", **options)
    assert plain.holdout is not None
    assert model.holdout is not None
    assert model.holdout["examples"] == plain.holdout["examples"] == 60
    assert model.examples == plain.examples == 240
    assert model.left_out > 100


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (SparseOnlineClassifier, None),
        (SparseOnlineClassifier, (3, 7, 9)),
        (SparseOnlineClassifier, ("no", "yes")),
    ],
)
def test_estimators(estimator: Any, words: Any) -> None:
    chunk = clicks(200, classes=len(words or (0, 1)))
    X = np.zeros((200, 20), np.float32)
    X[np.repeat(np.arange(200), 3), chunk.keys.astype(int)] = 1
    y = chunk.labels if words is None else np.array(words)[chunk.labels.astype(int)]
    common = 0.0 if words is None else words[0]
    loss = "logistic" if len(words or (0, 1)) == 2 else "softmax"
    order = np.random.default_rng(1).permutation(200)
    with not_compiled():
        for sample in ({common: 0.3}, f"{0 if words is None else common}=0.3,correct"):
            made = estimator(loss=loss, sample=sample, passes=1, random_state=0)
            one, other = made.fit(X, y), clone(made).fit(X[order], y[order])
            assert one.intercept_.tobytes() == other.intercept_.tobytes()
            base = np.mean(y == common)
            assert one.predict_proba(X)[:, 0].mean() == pytest.approx(base, abs=0.15)
        with pytest.raises(ValueError, match="sample has labels that are not classes: 5"):
            estimator(loss=loss, sample={5: 0.3}).fit(X, y)
