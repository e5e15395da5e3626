"""Numbered features: files that count ids from 1, and matrices, which count columns from 0."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import thresher
from tests.plain import not_compiled
from thresher.data.errors import DataError
from thresher.data.stored import read, said
from thresher.learning.diagnostics.stream_statistics import StreamStatistics
from thresher.learning.files import model_file

pytestmark = pytest.mark.filterwarnings("ignore:the log loss is:thresher.TroubleWarning")
"""Of rows whose ids are others"""

FILE = "ids.svm"
WIDTH = 5
X = sp.random(120, WIDTH, density=0.7, random_state=0, format="csr")
Y = np.where(X @ np.array([4.0, -3.0, 2.0, -1.0, -2.0]) > 0.5, 1, -1)


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    dump_svmlight_file(X, Y, FILE, zero_based=False)
    with not_compiled():
        yield


def _of_file(**options: Any) -> thresher.Model:
    return thresher.train(FILE, rule="sgd", **options)


def _of_matrix() -> thresher.Model:
    return thresher.train(X, Y, rule="sgd")


@pytest.mark.parametrize("store", ["growing", "hashed:10"])
def test_the_matrix_of_a_file_with_ids_from_1_is_refused_and_the_remedy_works(store: str) -> None:
    model = _of_file(store=store)
    assert model.numbering == (1, WIDTH, False)
    expected = model.predict(FILE)
    for data in (load_svmlight_file(FILE)[0], X.toarray()):
        with pytest.raises(DataError, match=r"n_features=6, zero_based=True"):
            model.predict(data)
        with pytest.raises(DataError, match="put an empty column in front"):
            thresher.evaluate(model, data, Y)
        with pytest.raises(DataError, match=r"columns of the matrix are 0 to 4, .* ids 1 to 5"):
            model.learn(data, Y)
    read = load_svmlight_file(FILE, n_features=WIDTH + 1, zero_based=True)[0]
    assert np.array_equal(model.predict(read), expected)
    assert np.array_equal(model.predict(np.insert(X.toarray(), 0, 0.0, axis=1)), expected)


def test_widths_and_first_columns() -> None:
    wide = sp.hstack([sp.csr_matrix((120, 1)), X, X], "csr")
    for model, count in ((_of_file(), WIDTH + 1), (_of_matrix(), WIDTH)):
        for data in (X[:, :3], wide, wide.toarray()):
            with pytest.raises(DataError, match=f"n_features={count}"):
                model.predict(data)
        assert len(model.predict(wide[:, :count])) == len(Y)
    shifted = load_svmlight_file(FILE, n_features=WIDTH + 1)[0]
    with pytest.warns(thresher.TroubleWarning, match=r"column 0 has values.*zero_based=True"):
        _of_file().predict(shifted)


def test_a_file_with_ids_from_1_warns_a_model_of_a_matrix() -> None:
    model = _of_matrix()
    for call in (model.predict, lambda file: thresher.evaluate(model, file), model.learn):
        with pytest.warns(thresher.TroubleWarning, match="have ids 1 to 5, ") as caught:
            call(FILE)
        others = [one for one in caught if "ids 1 to 5" not in str(one.message)]
        assert all("worse-than-constant" in str(one.message) for one in others), "of what is evaluated"
        assert len(caught) - len(others) == 1
    remedy = load_svmlight_file(FILE, n_features=WIDTH)[0]
    assert np.array_equal(_of_matrix().predict(remedy), _of_matrix().predict(X))


@pytest.mark.parametrize("zero_based", [False, True])
def test_files_that_count_from_different_ids(zero_based: bool) -> None:
    for name, start in (("same.svm", zero_based), ("other.svm", not zero_based)):
        dump_svmlight_file(X, Y, name, zero_based=start)
    model = thresher.train("same.svm", rule="sgd")
    first = 0 if zero_based else 1
    assert len(model.predict("same.svm")) == len(Y)
    with pytest.warns(thresher.TroubleWarning, match=f"training data had {first} to {WIDTH - 1 + first}"):
        model.predict("other.svm")
    with pytest.warns(thresher.TroubleWarning, match="shifted-ids"):
        thresher.evaluate(model, "other.svm")


def test_skipped_lines_and_ids_from_0() -> None:
    dump_svmlight_file(X, Y, FILE)
    with Path(FILE).open("a") as file:
        file.write("oops\n1 4:1\n")
    assert [*np.isnan(_of_matrix().predict(FILE, on_error="skip"))[-2:]] == [True, False]
    dump_svmlight_file(X, Y, FILE)
    model = _of_file()
    assert np.array_equal(model.predict(X), model.predict(FILE))
    assert np.array_equal(_of_matrix().predict(FILE), _of_matrix().predict(X))


@pytest.mark.parametrize(
    "make",
    [
        lambda: thresher.path(FILE, rule="fobos", l1=[0.01, 0.1], rate="constant:0.1"),
        lambda: thresher.ensemble(FILE, models=2, rule="sgd"),
        lambda: thresher.boost(FILE, l1=0.1),
    ],
    ids=["path", "ensemble", "boost"],
)
def test_every_way_to_train_remembers_the_ids(make: Callable[[], Any]) -> None:
    with pytest.raises(DataError, match="ids 1 to 5"):
        thresher.predict(make(), X)


def test_saved_models_copies_and_warm_starts_remember() -> None:
    model = _of_file()
    model.save("m.model")
    model.predictor().save("w.model")
    saved = [thresher.load("m.model"), thresher.load("w.model"), thresher.Model.load("m.model")]
    assert all(one.numbering == model.numbering for one in (*saved, model.__copy__()))
    with pytest.raises(DataError, match="ids 1 to 5"):
        thresher.train(X, Y, init="m.model", rule="sgd")
    _of_matrix().save("x.model")
    with pytest.warns(thresher.TroubleWarning, match="ids 1 to 5"):
        thresher.train(FILE, init="x.model", rule="sgd")


def test_models_saved_without_the_ids_predict_as_before() -> None:
    _of_file().save("m.model")
    header, tensors = model_file.read("m.model")
    del header["numbering"]
    model_file.write("old.model", header, tensors)
    assert len(thresher.predict("old.model", X)) == len(Y)


def test_a_resumed_training_remembers_the_ids_of_the_first_run() -> None:
    seen, chunk = StreamStatistics(), next(thresher.open_source(FILE).chunks())
    seen.add(chunk.rows(0, 60), None)
    saved = json.loads(json.dumps(said(seen)))
    again = read(StreamStatistics, saved, "seen")
    again.add(chunk.rows(60, 120), None)
    assert again.span == (1, WIDTH)
