"""Ensembles: each model equals one trained alone on its rows, byte for byte; together they predict."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher
from tests.models import one_of
from tests.test_lanes import DENSE, recipe_of
from tests.test_laws_of_state import ROWS
from tests.test_shares import taught
from thresher.data.chunk import Chunk
from thresher.learning.files import model_file
from thresher.learning.files.model_file import Contents, ModelFileError
from thresher.learning.model.bags import Bagged, Bags, draw_rows
from thresher.learning.model.ensemble import Ensemble
from thresher.learning.model.model import Model
from thresher.learning.model.recipe import Recipe
from thresher.learning.modelbytes import as_bytes

SAMPLE = "examples/data/rcv1_train2000.dat.gz"


def ensemble_of(recipe: Recipe, bags: Bags, chunk: Chunk) -> Ensemble[Model]:
    found = taught([recipe], Bagged(bags), chunk).lead
    assert isinstance(found, Ensemble)
    return found


@pytest.mark.parametrize("spec", ["", "1", 1, 0, True, 2.5, "bags:4", "disjoint:", "1000", "poisson:1", -3])
def test_what_is_not_an_ensemble(spec: Any) -> None:
    with pytest.raises(ValueError, match="ensemble"):
        Bags.of(spec)


def test_weights_of_drawn_rows() -> None:
    chunk = Chunk.of_rows([(1.0, {k: 1.0}) for k in range(4)], [2.0, 0.5, 1.0, 4.0])
    found = draw_rows(chunk, np.array([0, 3, 1, 2], np.uint8))
    assert (found.keys.tolist(), found.weights.tolist()) == ([1, 2, 3], [1.5, 1.0, 8.0])


@pytest.mark.usefixtures("plainly")
def test_predictions_are_those_of_the_mean_margin() -> None:
    ensemble = ensemble_of(recipe_of("ftrl:l1=0.05"), Bags.of(5), DENSE)
    each = np.array([model.predict(DENSE) for model in ensemble.models])
    margin = each.mean(axis=0)
    assert ensemble.predict(DENSE) == pytest.approx(margin, rel=1e-12)
    assert ensemble.predict(DENSE, "probability") == pytest.approx(1 / (1 + np.exp(-margin)), rel=1e-12)
    assert ensemble.predict(DENSE, "label").tolist() == np.where(margin > 0, 1.0, -1.0).tolist()
    assert ensemble.predict_proba(DENSE)[:, 1] == pytest.approx(1 / (1 + np.exp(-margin)), rel=1e-12)
    spread = (1 / (1 + np.exp(-each))).std(axis=0, ddof=1)
    assert ensemble.spread(DENSE) == pytest.approx(spread, rel=1e-9)
    assert spread.min() < 0.9 * spread.max()
    rows = [ensemble.spread(DENSE.rows(k, k + 1))[0] for k in range(ROWS)]
    assert np.array(rows).tobytes() == ensemble.spread(DENSE).tobytes()
    figures = thresher.evaluate(ensemble, DENSE)
    wrong, losses = (margin > 0) != (DENSE.labels > 0), np.log1p(np.exp(-margin * DENSE.labels))
    assert figures["error"] == pytest.approx(np.average(wrong, weights=DENSE.weights))
    assert figures["loss"] == pytest.approx(np.average(losses, weights=DENSE.weights))


@pytest.mark.usefixtures("plainly")
def test_the_spread_of_margins_and_of_many_outputs() -> None:
    hinge = ensemble_of(recipe_of("fobos:l1=0.01", loss="hinge"), Bags.of(3), DENSE)
    each = np.array([model.predict(DENSE) for model in hinge.models])
    assert hinge.spread(DENSE) == pytest.approx(each.std(axis=0, ddof=1), rel=1e-9)
    chunk = replace(DENSE, labels=(np.arange(ROWS) % 3).astype(np.float32))
    recipe = recipe_of("fobos:l1=0.01", loss="softmax", outputs="classes:0-2")
    classes = ensemble_of(recipe, Bags.of(3), chunk)
    every = np.array([model.predict(chunk, "probability") for model in classes.models])
    assert classes.spread(chunk) == pytest.approx(every.std(axis=0, ddof=1), rel=1e-9)
    assert classes.predict(chunk, "label").tolist() == classes.predict(chunk).argmax(axis=1).tolist()


def test_the_file(tmp_path: Path) -> None:
    found = thresher.ensemble(SAMPLE, models=3, rule="ftrl", l1=0.1, passes=2, order="once", holdout=0.2)
    found.save(tmp_path / "e")
    loaded = thresher.load(tmp_path / "e")
    assert isinstance(loaded, Ensemble)
    assert (len(loaded.models), loaded.rows, loaded.record) == (3, "poisson", found.record)
    assert (loaded.record.passes, loaded.record.order) == (2, "once")
    for output in ("margin", "probability", "label"):
        expected = found.predict(SAMPLE, output).tobytes()
        assert loaded.predict(SAMPLE, output).tobytes() == expected
        assert thresher.predict(tmp_path / "e", SAMPLE, output).tobytes() == expected
    assert loaded.spread(SAMPLE).tobytes() == found.spread(SAMPLE).tobytes()
    assert thresher.evaluate(tmp_path / "e", SAMPLE) == thresher.evaluate(found, SAMPLE)
    loaded.save(tmp_path / "again")
    assert thresher.predict(tmp_path / "again", SAMPLE).tobytes() == found.predict(SAMPLE).tobytes()
    assert one_of(tmp_path / "e", 1) == as_bytes(found.models[1])
    with pytest.raises(ModelFileError, match="an ensemble, not one model"):
        Model.load(tmp_path / "e")
    for function in (thresher.info, repr):
        assert "poisson" in str(function(tmp_path / "e" if function is thresher.info else loaded))
    with pytest.raises(TypeError, match="look at those of its models"):
        loaded.weights_frame()
    with pytest.raises(TypeError, match="expected a model"):
        thresher.save(loaded, tmp_path / "m")


@pytest.mark.usefixtures("plainly")
def test_a_damaged_file(tmp_path: Path) -> None:
    rows, labels = [{"a": 1.0}, {"b": 1.0}] * 20, [1, -1] * 20
    thresher.ensemble(rows, labels, models=2).save(tmp_path / "e")
    thresher.train(rows, labels, "hinge").save(tmp_path / "hinge")
    found = Contents.of(tmp_path / "e")
    run, models = found.run["ensemble"], [found.model(k) for k in range(2)]
    other = Contents.of(tmp_path / "hinge").model(0)
    for table, kept, said in (
        ({**run, "rows": 2}, models, "ensemble.rows: expected str, got int"),
        ({**run, "r": 2}, models, "unknown field r"),
        ({**run, "record": {}}, models, "record"),
        (run, models[:1], "several models"),
        (run, [models[0], other], "model 1 has another loss than the others"),
    ):
        own = [({n: v for n, v in header.items() if n != "ensemble"}, tensors) for header, tensors in kept]
        model_file.write_all(tmp_path / "e", own, {"ensemble": table})
        with pytest.raises(ModelFileError, match=said):
            Ensemble.load(tmp_path / "e")
    with pytest.raises(ModelFileError, match="hinge: not an ensemble"):
        Ensemble.load(tmp_path / "hinge")


def test_early_stopping_keeps_the_best_pass_of_the_whole() -> None:
    options: dict[str, Any] = {"rule": "ftrl:alpha=50", "holdout": 0.2}
    found = thresher.ensemble(SAMPLE, models=2, passes=6, early_stop=1, **options)
    assert found.record.passes < 5
    best = thresher.ensemble(SAMPLE, models=2, passes=found.record.passes, **options)
    assert [as_bytes(one) for one in found.models] == [as_bytes(one) for one in best.models]


@pytest.mark.parametrize("models", ["poisson:2", "disjoint:2"])
def test_examples_are_those_of_all_passes(models: str, tmp_path: Path) -> None:
    rows, path = ([{"a": 1.0}, {"b": 1.0}] * 30, [1, 0] * 30), tmp_path / "e"
    thresher.ensemble(*rows, models=models, passes=3).save(path)
    assert thresher.ensemble(*rows, continue_from=path, passes=2).examples == 5 * 60
    assert Ensemble.load(path).examples == 3 * 60


@pytest.mark.filterwarnings("ignore::thresher.TroubleWarning")
def test_halves_of_a_share_go_on_as_they_were(tmp_path: Path) -> None:
    rows, labels = [{"a": float(k % 7), "b": float(k % 3)} for k in range(120)], [k % 2 for k in range(120)]
    options: dict[str, Any] = {"models": "halves:4:0.25", "rule": "ftrl", "passes": 1}
    thresher.ensemble(rows[:60], labels[:60], **options).save(tmp_path / "e")
    found = thresher.ensemble(rows[60:], labels[60:], continue_from=tmp_path / "e", passes=1)
    assert found.rows == "halves:0.25"
    whole = thresher.ensemble(rows, labels, **options)
    assert [one.weights()[1].tolist() for one in found.models] == [
        one.weights()[1].tolist() for one in whole.models
    ]
    assert found.examples == whole.examples == 120
    for wrong in ("halves:4:.", "halves:4:0.0", "halves:4:0.9"):
        with pytest.raises(ValueError, match=r"ensemble|share"):
            Bags.of(wrong)
    assert Bags.of(Bags.of("halves:4:0.00001").spec).share == 1e-5
