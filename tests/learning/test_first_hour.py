"""Stumbles of newcomers: evaluating estimators, predicting texts, formats by name, hints, axes."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import thresher
from tests.plain import not_compiled
from thresher.data import DataError
from thresher.options.option import UsageError
from thresher.sklearn import SparseOnlineClassifier

ROWS = 90


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    random = np.random.default_rng(1)
    return pd.DataFrame({"a": random.normal(size=ROWS), "city": random.choice(["x", "y", "z"], ROWS)})


@pytest.mark.parametrize("labels", [("-", "+"), (0, 1), ("a", "b", "c"), (1, 2, 5)])
@pytest.mark.filterwarnings("ignore::thresher.TroubleWarning")
def test_an_estimator_is_evaluated_on_its_labels(frame: pd.DataFrame, labels: Any, tmp_path: Path) -> None:
    y = pd.Series(
        np.array(labels)[np.digitize(frame.a, np.linspace(-1, 1, len(labels) + 1)[1:-1])], name="class"
    )
    with not_compiled():
        for X in (frame, frame[["a"]].to_numpy()):
            fitted = SparseOnlineClassifier(random_state=0).fit(X, y)
            for given in (y, y.to_numpy(), list(y)):
                assert thresher.evaluate(fitted, X, given)["error"] == pytest.approx(1 - fitted.score(X, y))
            thresher.report(fitted, X, tmp_path / "r.html", y=y)
            with pytest.raises(DataError, match="'other' is not among the classes the estimator"):
                thresher.evaluate(fitted, X, ["other"] * ROWS)


@pytest.mark.filterwarnings("ignore::thresher.TroubleWarning")
def test_data_without_labels_cannot_be_evaluated(frame: pd.DataFrame) -> None:
    with not_compiled():
        fitted = SparseOnlineClassifier(random_state=0).fit(frame, frame.a > 0)
        for given in (frame, frame.assign(label=frame.a > 0)):
            with pytest.raises(DataError, match=r"no column holds labels, .*: give them as y, in Python"):
                thresher.evaluate(fitted, given)
        with pytest.raises(DataError, match="beside the table in training: give them as y, in Python"):
            thresher.evaluate(fitted, frame, label="a")
        assert thresher.evaluate(fitted, frame, frame.a > 0)["examples"] == len(frame)


@pytest.mark.filterwarnings("ignore::thresher.TroubleWarning")
def test_labels_of_a_model_of_rows_and_labels_may_have_a_column(frame: pd.DataFrame, tmp_path: Path) -> None:
    with not_compiled():
        for y in ((frame.a > 0).to_numpy(), np.where(frame.a > 0, "yes", "no"), frame.a.to_numpy() * 2):
            loss = "squared" if y.dtype == float else "logistic"
            model = thresher.train(frame, y, loss=loss, passes=1)
            expected = thresher.evaluate(model, frame, y)
            both = frame.assign(y=y)
            both.to_csv(tmp_path / "d.csv", index=False)
            for data in (both, tmp_path / "d.csv", both.to_dict("records")):
                found = thresher.evaluate(model, data, label="y")
                assert found["loss"] == pytest.approx(expected["loss"], rel=1e-5)
        with pytest.raises(UsageError, match="the model was trained with 'a' as numeric; leave label out"):
            thresher.evaluate(model, both, label="a")
        with pytest.raises(DataError, match=r"no column 'label' of labels: name theirs, label, to evaluate"):
            thresher.evaluate(model, both)


@pytest.mark.filterwarnings("ignore::thresher.TroubleWarning")
def test_a_model_of_texts_predicts_texts(tmp_path: Path) -> None:
    texts = ["good stuff", "bad thing", "good", "bad"] * 25
    with not_compiled():
        model = thresher.train(texts, ["p", "n"] * 50)
        for data in (["good", "bad"], ("good", "bad"), np.array(["good", "bad"], object)):
            assert model.predict(data, "label").tolist() == ["p", "n"]
        (tmp_path / "t.vw").write_text("1 | good\n")
        assert model.predict([str(tmp_path / "t.vw")]).shape == (1,), "a file, not a text"


def test_a_table_under_another_name(tmp_path: Path) -> None:
    path = tmp_path / "table.txt"
    path.write_text("label,a\n1,2\n0,1\n")
    with pytest.raises(DataError, match=r"table\.txt: this looks like CSV: try format=\"csv\""):
        thresher.train(path, label="label")
    with pytest.raises(DataError, match=r"only for csv, tsv, jsonl, parquet and arrow$"):
        thresher.train(path, label="label", format="svmlight")


@pytest.mark.filterwarnings("ignore::thresher.TroubleWarning")
def test_a_row_that_is_skipped_decides_no_kind(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("label,a,b\n" + "1,2,3\n0,,x,1\n0,1,5\n" * 5)
    with not_compiled():
        model = thresher.train(path, on_error="skip")
    assert dict(zip(model.layout.columns, model.layout.kinds, strict=True))["b"] == "numeric"


@pytest.mark.parametrize("name", ["x\ny", "x\r"])
def test_a_label_that_cannot_name_a_class(frame: pd.DataFrame, name: str) -> None:
    y = np.where(frame.a > 0, name, "other")
    with not_compiled(), pytest.raises(DataError, match=re.escape(f"{name!r} cannot be a label")):
        thresher.train(frame, y)
