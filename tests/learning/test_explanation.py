"""The terms of a margin add up to it."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import thresher
from tests.plain import compiled_if
from thresher.data import open_source
from thresher.learning.inspection.explanation import explain
from thresher.learning.model.prediction import BasePredictor
from thresher.sklearn import SparseOnlineClassifier, SparseOnlineRegressor

ROWS = 90
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {"centre": False},
    "centred": {"centre": True},
    "scaled": {"centre": False, "scale": "max-abs"},
    "both": {"centre": True, "scale": "standard"},
    "classes": {"centre": True, "loss": "softmax", "label": "kind"},
    "hashed": {"store": "hashed:20", "centre": False},
    "first-weights": {"rule": "eg", "centre": False, "scale": "max-abs"},
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(3)
    path = tmp_path_factory.mktemp("table") / "table.csv"
    lines = ["label,kind,size,price,colour"]
    for _ in range(ROWS):
        size, price = rng.normal(50, 3), rng.normal(0, 0.01)
        colour = rng.choice(["red", "blue", ""])
        kind = "abc"[int(size > 50) + int(colour == "red")]
        lines.append(f"{int(price > 0)},{kind},{size:.3f},{price:.5f},{colour}")
    path.write_text("\n".join(lines) + "\n")
    return path


def rows_of(model: Any, path: Path) -> Any:
    (chunk,) = open_source(path, layout=model.layout, unlabelled=True, domain="open").chunks()
    return chunk


@pytest.mark.parametrize("name", SETTINGS)
def test_terms_add_up(name: str, table: Path, tmp_path: Path) -> None:
    options = dict(SETTINGS[name])
    other = "kind" if options.get("label", "label") == "label" else "label"
    with compiled_if(name not in ("classes", "first-weights")):
        model: Any = thresher.train(table, ignore=other, **options)
    model.save(tmp_path / "m")
    each: list[BasePredictor] = [model, thresher.load(tmp_path / "m")]
    for one in each:
        chunk = rows_of(model, table)
        found = explain(one, chunk)
        np.testing.assert_array_equal(found.margins, one.margins(chunk))
        for row in range(len(chunk)):
            terms = found.terms(row)
            parts = np.array([term.contribution for term in terms]).reshape(len(terms), -1)
            intercepts = found.summed.intercepts
            scale = np.abs(parts).sum(axis=0) + np.abs(intercepts)
            assert np.all(np.abs(intercepts + parts.sum(axis=0) - found.margins[row]) <= 1e-12 * scale)
            sizes = np.abs(parts).max(axis=1)
            assert (np.diff(sizes) <= 0).all()
            assert (sizes > 0).all()
            for term, part in zip(terms, parts, strict=True):
                np.testing.assert_allclose(np.multiply(term.value, term.weight).reshape(-1), part, 1e-7)


def test_of_what_the_model_multiplies(table: Path) -> None:
    model: Any = thresher.train(table, ignore="kind", centre=True)
    chunk = rows_of(model, table).rows(0, 1)
    found = {term.feature: term for term in explain(model, chunk).terms(0)}
    means = dict(zip(model.predictor().means.keys.tolist(), model.predictor().means.means, strict=True))
    size = next(key for key, mean in means.items() if 40 < mean < 60)
    value = chunk.values[chunk.keys == size][0]
    assert found["size"].value == pytest.approx(value - means[size], rel=1e-6)
    weights = dict(zip(*model.weights(), strict=True))
    assert found["size"].weight == weights[size]
    assert model.intercept == pytest.approx(
        explain(model, chunk).summed.intercepts[0] - sum(means[key] * weights.get(key, 0.0) for key in means)
    )


def test_names(table: Path) -> None:
    model: Any = thresher.train(table, ignore="kind", names=True, centre=False, rule="ftrl", l1=0.0)
    chunk = rows_of(model, table).rows(0, 20)

    def features(**more: Any) -> set[str | int]:
        found = explain(model, chunk, **more)
        return {term.feature for row in range(20) for term in found.terms(row)}

    assert (
        {"price", "colour=red", "colour=blue"} <= features() <= {"price", "size", "colour=red", "colour=blue"}
    )
    model.names = None
    one, other = features() - {"price", "size"}
    assert isinstance(one, int)
    assert features() - features(names={one: "told", 5: "never"}) == {one}
    assert features(names={one: "told", 5: "never"}) - features() == {"told"}
    assert other in features(names={one: "told"})


def test_an_ensemble_is_explained_if_its_models_multiply_the_same(table: Path) -> None:
    plain: Any = thresher.ensemble(table, ignore="kind", models=2, centre=False)
    chunk = rows_of(plain, table).rows(0, 5)
    found = explain(plain, chunk)
    for row in range(5):
        total = found.summed.intercepts[0] + sum(term.contribution for term in found.terms(row))
        assert total == pytest.approx(found.margins[row], rel=1e-12)
    centred: Any = thresher.ensemble(table, ignore="kind", models=2, centre=True)
    with pytest.raises(ValueError, match="scale columns differently"):
        explain(centred, chunk)


def test_the_only_class_met_is_explained_alone(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("label,n\nred,1\nred,2\n")
    model = thresher.train(path, outputs="classes", rule="sgd", centre=False)
    (told, _) = model.explain(path)
    (term,) = told["features"]
    assert [*told["margin"]] == [*told["intercept"]] == [*term["contribution"]] == ["red"]
    assert told["intercept"]["red"] + term["contribution"]["red"] == pytest.approx(told["margin"]["red"])


@pytest.mark.parametrize("name", SETTINGS)
def test_what_is_left_out_is_the_rest(name: str, table: Path) -> None:
    options = dict(SETTINGS[name])
    other = "kind" if options.get("label", "label") == "label" else "label"
    model: Any = thresher.train(table, ignore=other, **options)
    whole, several = model.explain(table), model.classes if name == "classes" else None
    labels = model.predict(table, output="label").tolist()

    def by_output(value: Any) -> Any:
        return [value[one] for one in several] if several else [value]

    for top in (1, 2, 100):
        for row, (short, full) in enumerate(zip(model.explain(table, top=top), whole, strict=True)):
            assert short["features"] == full["features"][:top]
            assert short["label"] == labels[row]
            added = [by_output(term["contribution"]) for term in short["features"]]
            total = np.sum([by_output(short["intercept"]), *added, by_output(short["rest"])], axis=0)
            np.testing.assert_allclose(total, by_output(short["margin"]), 1e-9, 1e-9)
            left = [by_output(term["contribution"]) for term in full["features"][top:]]
            assert by_output(short["rest"]) == pytest.approx(sum(map(np.array, left), np.zeros(len(total))))
    assert not any(any(by_output(one["rest"])) for one in whole)
    probabilities = model.predict(table, output="probability")
    assert by_output(whole[7]["probability"]) == np.ravel(probabilities[7]).tolist()


def test_rows_that_are_skipped_keep_their_places(table: Path) -> None:
    model: Any = thresher.train(table, ignore="kind", centre=False)
    lines = table.read_text().splitlines()[:6]
    lines[3] = lines[3].replace(",", ",,,", 1)
    bad = table.with_name("bad.csv")
    bad.write_text("\n".join(lines) + "\n")
    found = model.explain(bad, on_error="skip")
    assert [one == {"error": "skipped"} for one in found] == [False, False, True, False, False]
    margins = model.predict(bad, on_error="skip")
    assert [one.get("margin") for one in found] == [None if np.isnan(m) else m for m in margins]
    with pytest.raises(ValueError, match="top must be a whole number of at least 1, not 0"):
        model.explain(bad, top=0)
    with pytest.raises(TypeError, match="explain has no option tops"):
        model.explain(bad, tops=1)


def test_no_rows(table: Path) -> None:
    model: Any = thresher.train(np.eye(4), [0, 1, 0, 1])
    assert model.explain(np.empty((0, 4))) == []
    (one,) = model.explain(np.eye(4)[:1])
    assert one["margin"] == model.predict(np.eye(4)[:1])[0]


def test_estimators(table: Path) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3))
    y = np.where(X[:, 0] > 0.5, "high", np.where(X[:, 0] < -0.5, "low", "middle"))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    classifier = SparseOnlineClassifier().fit(frame, y)
    one: Any = None
    for row, one in enumerate(classifier.explain(frame, top=1)):
        assert one["label"] == classifier.predict(frame)[row]
        assert one["margin"] == dict(
            zip(classifier.classes_, classifier.decision_function(frame)[row], strict=True)
        )
    assert one["features"][0]["feature"] == "a"
    numbers = SparseOnlineClassifier().fit(X, 10 * (X[:, 0] > 0) + 10)
    assert {one["label"] for one in numbers.explain(X)} == {10, 20}
    several = SparseOnlineClassifier().fit(X, np.digitize(X[:, 0], [-0.5, 0.5]) * 5)
    assert several.explain(X)[0]["margin"].keys() == {"0", "5", "10"}
    regressor = SparseOnlineRegressor().fit(X, X[:, 1])
    told = regressor.explain(X)[0]
    assert told["label"] == told["margin"] == regressor.predict(X)[0]
