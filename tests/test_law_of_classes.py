"""Law 14: a class known late is a class known early.

A model that is given its classes, and one that meets them on the way, are the same, bit for bit: of every
rule, with losses of all classes together and of one against the rest, in every store, in batches and
calibrated, however the stream is cut, stopped and continued.
"""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher
from tests.covering import covering_for
from tests.plain import not_compiled
from tests.streams import KINDS, RULES, case, kinds_of, model_of
from tests.test_laws_of_outputs import grouped
from thresher import Model
from thresher.data.chunk import Chunk
from thresher.data.errors import DataError
from thresher.data.labels import WordTable
from thresher.learning.model.prediction import body_reader

CLASSES = 5
LABELS = [2, 2, 2, 0, 2, 0, 0, 2, 4, 0, 2, 4, 4, 0, 1, 2, 0, 4, 1, 1, 4, 2]
"""One class alone at first; class 3 never comes"""
LOSSES = ["softmax", "softmax:smoothing=0.1", "crammer-singer", "logistic", "squared-hinge"]
STORES = ["growing", "direct", "hashed:6"]
Array = np.ndarray[Any, Any]


def stream() -> Chunk:
    rng = np.random.default_rng(3)
    labels = np.concatenate([LABELS, rng.choice([0, 1, 2, 4], 14)])
    stored = rng.random((len(labels), 12)) < 0.4
    X = np.where(stored, rng.normal(size=stored.shape), 0.0)
    row, column = np.nonzero(stored)
    indptr = np.concatenate([[0], np.cumsum(stored.sum(axis=1))])
    importance = rng.choice([0.5, 1.0, 1.0, 2.0], len(labels))
    return Chunk.from_csr(indptr, column, X[row, column], labels.astype(np.float64), importance)


@pytest.fixture(scope="module")
def rows() -> Chunk:
    return stream()


def learned(model: Model, rows: Chunk, cuts: tuple[int, ...] = (), place: Path | None = None) -> Model:
    """The model after all rows; stopped at each cut, saved and loaded, if there is a `place`."""
    for lo, hi in pairwise((0, *cuts, len(rows))):
        model.learn(rows, lo, hi)
        if place is not None:
            model.save(place)
            model = Model.load(place)
    model.finish()
    return model


def by_class(model: Model) -> dict[str, Array]:
    """What a model predicts and has learned, the classes in the order of their numbers."""
    keys, weights = model.weights()
    found = {"keys": keys, "weights": weights, "intercept": model.intercept}
    if model.head.has_probabilities:
        found["probability"] = model.predict(stream(), "probability")
    found |= {"margin": model.predict(stream()), "label": model.predict(stream(), "label")}
    return found | {"loss": np.array([*model.tally])}


def check_same(late: Model, early: Model) -> None:
    have, expected = by_class(late), by_class(early)
    for name, array in expected.items():
        assert np.array_equal(have[name], array), name
    own, other = late.state(), early.state()
    assert np.array_equal(own["classes"], other["classes"])
    known = len(own["classes"])
    for name, array in other.items():
        if name in ("S", "B"):
            assert np.array_equal(own[name][..., :known], array[..., :known]), name
        elif array.shape == own[name].shape:
            assert np.array_equal(own[name], array), name
        else:  # of each output
            assert np.array_equal(own[name][:known], array[:known]), name


def cases(name: str) -> list[tuple[Any, ...]]:
    """Each loss, store, batch and mean with each kind of state; of other rules two cases, which differ."""
    specs, first = [*kinds_of(name), *grouped(name)], RULES.index(name) % (len(LOSSES) - 1)
    if name in KINDS:
        return covering_for(name, specs, LOSSES, STORES, (1, 4), (False, True))
    return covering_for(name, specs[:2], LOSSES[first : first + 2], STORES[:1], (1, 4), (False, True))


@pytest.mark.parametrize("name", RULES)
def test_a_class_known_late_is_a_class_known_early(name: str, rows: Chunk, tmp_path: Path) -> None:
    with not_compiled():
        for spec, loss, store, batch, calibrate in cases(name):
            options: dict[str, Any] = {"store": store, "batch": batch, "calibrate": calibrate}
            with case(spec, loss, *options.values()):
                early = learned(model_of(spec, loss, outputs=f"classes:0-{CLASSES - 1}", **options), rows)
                late = model_of(spec, loss, outputs="classes:max=5", **options)
                check_same(learned(late, rows, (1, 9, 17), tmp_path / "m"), early)


@pytest.mark.parametrize("batch", [1, 4])
def test_cutting_and_the_limit_change_nothing(batch: int, rows: Chunk, tmp_path: Path) -> None:
    for spec, loss in (("ft-ftrl", "softmax"), ("arow", "logistic")):
        with not_compiled():
            whole, cut = (model_of(spec, loss, outputs=f"classes{n}", batch=batch) for n in ("", ":max=5"))
            check_same(learned(cut, rows, (1, 3, 8, 9, 14, 17), tmp_path / "m"), learned(whole, rows))


WORDS = ["ham", "spam", "ham", "spam", "ham", "eggs", "spam", "eggs", "ham", "late", "eggs", "late"]


def table(words: list[str], seed: int = 1) -> str:
    numbers = np.random.default_rng(seed).normal(size=(len(words), 2)).round(3)
    return "label,a,b\n" + "".join(f"{word},{a},{b}\n" for word, (a, b) in zip(words, numbers, strict=True))


def tensors(model: Any) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in model.state().items()}


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
def test_words_that_come_in_a_file_a_stream_or_another_run(loss: str, tmp_path: Path) -> None:
    both, first, second = (tmp_path / f"{name}.csv" for name in ("both", "first", "second"))
    both.write_text(table(WORDS))
    head, *lines = table(WORDS).splitlines(keepends=True)
    first.write_text(head + "".join(lines[:4]))
    second.write_text(head + "".join(lines[4:]))
    options: dict[str, Any] = {"loss": loss, "outputs": "classes", "rule": "ftrl", "centre": False}
    with not_compiled():
        whole = thresher.train(both, passes=1, **options)
        begun = thresher.train(first, passes=1, **options)
        assert begun.classes == ("ham", "spam")
        ended = thresher.train(second, continue_from=begun, passes=1)
        given = thresher.train(both, passes=1, **options | {"outputs": "classes:1-4"}, classes=whole.classes)
        one, rows = Model("ftrl", loss, outputs="classes"), [line.strip().split(",") for line in lines]
        for word, a, b in rows:
            one.learn_one({"a": float(a), "b": float(b)}, word)
        path = thresher.path(both, l1="0.01:1:3", passes=1, **options)
    assert tensors(ended) == tensors(whole)
    assert ended.classes == one.classes == given.classes == ("ham", "spam", "eggs", "late")
    assert np.array_equal(given.predict(both, "probability"), whole.predict(both, "probability"))
    assert np.array_equal(one.intercept, whole.intercept)
    assert {model.classes for model in path.models} == {whole.classes}


def test_a_class_that_was_only_held_out(tmp_path: Path) -> None:
    """It is predicted with probability 0, counts as wrong, and no export has it."""
    data, held = tmp_path / "d.csv", tmp_path / "h.csv"
    data.write_text(table([*WORDS[:8]] * 6))
    held.write_text(table(["ham", "never", "eggs"] * 2))
    with not_compiled():
        model = thresher.train(data, outputs="classes", loss="softmax", passes=2, holdout=held)
    assert sorted(model.classes) == ["eggs", "ham", "never", "spam"]
    k = model.classes.index("never")
    probabilities = model.predict(held, "probability")
    assert not probabilities[:, k].any()
    assert np.allclose(probabilities.sum(axis=1), 1)
    assert np.isneginf(model.intercept[k])
    figures = thresher.evaluate(model, held)
    assert figures["error"] >= 1 / 3
    assert figures["loss"] == pytest.approx(figures["log_loss"])
    assert figures["loss"] < 5
    model.save(tmp_path / "m")
    again = thresher.load(tmp_path / "m")
    assert np.array_equal(again.predict(held, "probability"), probabilities)
    assert set(json.loads(thresher.export(model, "json"))["labels"]) == {"ham", "spam", "eggs"}


def test_settings_that_drop_out_before_a_class_comes(tmp_path: Path) -> None:
    """The classes of a tuning are named, whichever reading has its best setting."""
    path = tmp_path / "d.csv"
    path.write_text(table(WORDS * 20))
    with not_compiled():
        found = thresher.tune(path, outputs="classes", loss="softmax", rules=["ftrl"], budget=6)
    assert found.model.classes == tuple(dict.fromkeys(WORDS))
    assert {*found.model.predict(path, "label")} <= {*WORDS}


def test_what_is_no_class(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    for words, outputs, found in (
        (["a", "b", "c"], "classes:max=2", "one of at most 2 different labels, .*classes:max=N.* found 'c'"),
        (["1", "2", '"3,17"'], "classes", "for lists: .*labels:LO-HI.* found '3,17'"),
        (["1", "", "2"], "classes", "found"),
    ):
        path.write_text(table(words))
        with not_compiled(), pytest.raises(DataError, match=found):
            thresher.train(path, outputs=outputs, passes=1)
    with not_compiled(), pytest.raises(DataError, match="found '3,17'"):
        thresher.train(([{"a": 1.0}] * 2, ["1", "3,17"]), outputs="classes", passes=1)
    path.write_text(table(["1", "2.0", "1.0", "2"]))
    with not_compiled():
        assert thresher.train(path, outputs="classes", passes=1).classes == ("1", "2")


@pytest.mark.parametrize("outputs", ["classes", "classes:max=9"])
def test_classes_that_are_given_are_all_there_are(outputs: str, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text(table(["a", "b", "a", "c"]))
    with not_compiled():
        model = thresher.train(path, outputs=outputs, classes="c,a,b", passes=1)
        assert model.classes == ("c", "a", "b")
        with pytest.raises(
            DataError, match=r"d\.csv:5:1: expected one of the classes a, b as label.*found 'c'"
        ):
            thresher.train(path, outputs=outputs, classes="a,b", passes=1)


@pytest.mark.parametrize(
    ("labels", "classes", "whole"),
    [
        (["2", "10", "0", "-3"], ["2", "10", "0", "-3"], True),
        (["1", "01", "1.0"], ["1", "01"], False),
        (["1", "x", "2.0"], ["1", "x", "2"], False),
        (["0", "-0", "1.5", "01.0"], ["0", "-0", "1.5", "01.0"], False),
    ],
)
def test_numbers_are_words_if_one_is_not_plain(
    labels: list[str], classes: list[str], whole: bool, tmp_path: Path
) -> None:
    """The same from a file, from memory and from what a server reads; 1.0 is 1, and 01 is another class."""
    path, given = tmp_path / "d.csv", [int(one) for one in classes] if whole else classes
    path.write_text("label,a\n" + "".join(f"{one},{k}\n" for k, one in enumerate(labels)))
    with not_compiled():
        model = thresher.train(path, outputs="classes", passes=1)
        assert model.classes == tuple(classes)
        assert set(model.predict([{"a": float(k)} for k in range(9)], "label").tolist()) <= {*given}
        rows = [{"a": 1.0}] * len(labels)
        assert thresher.train((rows, labels), outputs="classes", passes=1).classes == tuple(classes)
        if whole:
            for numbers in (given, np.array(given, float)):
                assert thresher.train((rows, numbers), outputs="classes", passes=1).classes == tuple(classes)
        words = WordTable(most=9)
        body = "\n".join(json.dumps({"label": one, "a": 1}) for one in labels).encode()
        found = body_reader(model, "jsonl", 99, words).read(body, labelled=True).chunk.labels
    assert words.names() == tuple(classes)
    assert [classes[int(k)] for k in found] == [
        one.removesuffix(".0") if one != "01.0" else one for one in labels
    ]


def test_labels_that_no_line_can_have(tmp_path: Path) -> None:
    with not_compiled():
        rows = [{"label": "ham", "a": 1.0}, {"label": "spam", "a": 1.0}]
        model = thresher.train(rows, label="label", outputs="classes", passes=1)
        reader = body_reader(model, "jsonl", 99, words := WordTable(model.classes, most=9))
        for word in ("a\nb", "a\rb", "a\0b", "3,17"):
            with pytest.raises(DataError, match=r"expected one of at most .* none with a line break"):
                model.learn_one({"a": 1.0}, word)
            read = reader.read(json.dumps({"label": word, "a": 1}).encode(), labelled=True)
            assert read.good == 0
            assert "one of at most" in read.bad[0].error
    assert words.names() == model.classes == ("ham", "spam")


def test_one_class_alone(tmp_path: Path) -> None:
    path, other = tmp_path / "one.csv", tmp_path / "two.csv"
    path.write_text(table(["ham"] * 5))
    other.write_text(table(["ham", "spam"]))
    for loss in ("softmax", "logistic"):
        with not_compiled():
            thresher.train(path, outputs="classes", loss=loss, passes=1).save(tmp_path / "m")
            for model in (thresher.load(tmp_path / "m"), Model.load(tmp_path / "m")):
                assert model.predict(path, "probability").shape == model.predict(path).shape == (5, 1)
                assert model.predict_one({"a": 1.0}).shape == (1,)
                assert model.predict_proba(path).tolist() == [[1.0]] * 5
                assert {*model.predict(path, "label")} == {"ham"}
            assert thresher.evaluate(tmp_path / "m", path)["error"] == 0
            with pytest.raises(DataError, match=r"which the model has met .*skip.* found 'spam'"):
                thresher.evaluate(tmp_path / "m", other)
            with pytest.raises(DataError, match="one class only"):
                thresher.export(tmp_path / "m", "onnx")
            with pytest.raises(DataError, match=r"the model has the classes ham; leave classes out"):
                thresher.train(other, continue_from=tmp_path / "m", classes="ham,spam")
            again = thresher.train(other, continue_from=tmp_path / "m")
        assert again.predict(path).shape == (5, 2)


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("loss", ["softmax", "crammer-singer"])
def test_many_classes_in_turn_do_not_diverge(loss: str, batch: int) -> None:
    """The loss of a new class is the largest margin of the others: a step as long makes the next longer."""
    n = 150
    noise = np.random.default_rng(0).standard_normal(n)
    rows = Chunk.from_csr(np.arange(n + 1), np.zeros(n, int), noise, np.arange(float(n)))
    with not_compiled():
        model = learned(model_of("ft-ftrl", loss, outputs=f"classes:0-{n - 1}", batch=batch), rows)
    assert model.tally.average < 30


def test_classes_that_one_model_of_several_has_not_met(tmp_path: Path) -> None:
    """A model for each value of a column: of a class that it has not met the margin is -inf, not a fault."""
    path, known = tmp_path / "d.csv", {"fr": ["ham", "late"], "uk": ["ham", "eggs"]}
    lines = [
        f"{known[g][k // 2 % 2]},{g},{k // 2 % 2 + k / 99}"
        for k in range(60)
        for g in ("fr", "uk")[k % 2 :][:1]
    ]
    path.write_text("label,g,a\n" + "".join(f"{line}\n" for line in lines))
    for loss in ("softmax", "logistic"):
        with not_compiled():
            models = thresher.ensemble(path, models="by:g", outputs="classes", loss=loss, passes=1)
            figures, found = thresher.evaluate(models, path), models.predict(path, "probability")
        assert figures["error"] < 0.5
        assert np.isfinite(figures["log_loss"])
        late = models.classes.index("late")
        assert not found[1::2, late].any()
        assert (found[::2, late] > 0).all()


def test_weights_to_start_from_bring_their_classes(tmp_path: Path) -> None:
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text(table(WORDS[:4]))
    second.write_text(table(WORDS))
    options: dict[str, Any] = {"rule": "ftrl", "loss": "softmax", "centre": False, "passes": 1}
    with not_compiled():
        thresher.train(first, outputs="classes", **options).save(tmp_path / "m")
        for outputs in (None, "classes"):
            model = thresher.train(second, init=tmp_path / "m", outputs=outputs, **options)
            assert model.classes == ("ham", "spam", "eggs", "late")
        with pytest.raises(ValueError, match="for outputs classes:max=1000, not classes:1-2"):
            thresher.train(first, init=tmp_path / "m", outputs="classes:1-2", **options)


def test_a_sample_of_classes_that_come_later(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text(table(WORDS * 20))
    for sample in ("late=0.5,ham=0.5", "eggs=0.25,correct"):
        options: dict[str, Any] = {"loss": "softmax", "passes": 1, "sample": sample}
        with not_compiled():
            late = thresher.train(path, outputs="classes", **options)
            early = thresher.train(path, outputs="classes:1-4", classes=late.classes, **options)
        assert np.array_equal(late.predict(path), early.predict(path))
        assert late.feed.left_out == early.feed.left_out > 10
