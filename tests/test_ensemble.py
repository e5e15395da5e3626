"""Ensembles: each model equals one trained alone on its rows, byte for byte; together they predict."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher
from tests.models import one_of
from tests.streams import KINDS, RULES, cut, settings_of
from tests.test_averaging import ABLE
from tests.test_lanes import DENSE, FIRST, PLACES, UNBORN, WIDE, recipe_of
from tests.test_laws_of_state import ROWS, make_small
from thresher.data.chunk import Chunk
from thresher.data.errors import DataError
from thresher.engine.sound import StateError
from thresher.lanes.bags import Bagging, Bags, drawn
from thresher.learning.files import model_file
from thresher.learning.files.model_file import Contents, ModelFileError
from thresher.learning.model.ensemble import Ensemble
from thresher.learning.model.model import Model
from thresher.learning.model.recipe import Recipe
from thresher.learning.modelbytes import as_bytes

SPECS = ["poisson:3", "disjoint:3", "halves:3", "halves:3:0.3"]
HEAVY = replace(DENSE, weights=np.linspace(0.1, 3, ROWS, dtype=np.float32))
SAMPLE = "examples/data/rcv1_train2000.dat.gz"


@pytest.fixture
def small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)


def bagged(recipe: Recipe, bags: Bags, chunk: Chunk, passes: int = 1) -> Bagging:
    bagging = Bagging(recipe, bags)
    for number in range(1, passes + 1):
        bagging.begin_pass(number, passes)
        for piece in cut(chunk, PLACES):
            bagging.learn(piece, again=number > 1)
    bagging.finish()
    return bagging


def times_of(bags: Bags, rows: int) -> Any:
    """How often each model learns each row, drawn one row at a time."""
    return np.column_stack([bags.draw(row, 1) for row in range(rows)])


def alone(recipe: Recipe, chunk: Chunk, times: Any, passes: int = 1) -> Model:
    """A model of the rows with these multiples of their importances."""
    kept = np.flatnonzero(times).tolist()
    model = Model(recipe)
    for number in range(1, passes + 1):
        model.begin_pass(number, passes)
        for row in kept:
            one = chunk.rows(row, row + 1)
            weights = (float(one.weights[0]) * np.array([times[row]])).astype(np.float32)
            model.learn(replace(one, weights=weights, place=None, after=None), again=number > 1)
    model.finish()
    return model


def check(recipe: Recipe, spec: str, chunk: Chunk = HEAVY, passes: int = 1) -> None:
    bags = Bags.of(spec, seed=5)
    bagging, times = bagged(recipe, bags, chunk, passes), times_of(bags, len(chunk))
    assert (times == 0).any()
    for model, own in zip(bagging.models, times, strict=True):
        assert as_bytes(model) == as_bytes(alone(recipe, chunk, own, passes)), recipe
        assert model.examples == passes * np.count_nonzero(own)
    assert bagging.examples == passes * len(chunk)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.usefixtures("small_tables", "plainly")
def test_all_rules(spec: str) -> None:
    for name in RULES:
        check(recipe_of(settings_of(name)[0]), spec)


@pytest.mark.usefixtures("small_tables", "plainly")
def test_averages_and_stores() -> None:
    for name in ABLE[:3]:
        check(recipe_of(settings_of(name)[0], average=True, dtype="float64", store="hashed:6"), SPECS[0])


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.usefixtures("small_tables", "plainly")
def test_batches_many_outputs_and_passes(batch: int) -> None:
    rng = np.random.default_rng(5)
    chunk = replace(WIDE, targets=rng.choice([-1.0, 1.0], (ROWS, 3)).astype(np.float32))
    for spec in [*(settings_of(name)[0] for name in KINDS[:4]), "ft-ftrl:alpha=0.2,l1=0.3,relax=1"]:
        check(recipe_of(spec, outputs="labels:3", batch=batch), SPECS[0], chunk, passes=2)


@pytest.mark.usefixtures("small_tables", "plainly")
def test_scales_and_admission_count_the_rows_that_are_learned() -> None:
    spec = next(one for one in FIRST if one.split(":")[0] not in UNBORN)
    for bags in SPECS:
        check(recipe_of(spec, admit="3,bits=10", scale="max-abs"), bags, WIDE, passes=2)


def test_compiled() -> None:
    check(Recipe("ftrl", l1=0.05), SPECS[0], WIDE)


def test_draws_do_not_depend_on_the_cut() -> None:
    for spec in SPECS:
        whole = Bags.of(spec, 3).draw(0, 1000)
        parts = [Bags.of(spec, 3).draw(lo, hi - lo) for lo, hi in [(0, 1), (1, 7), (7, 7), (7, 1000)]]
        assert np.array_equal(whole, np.column_stack(parts))
        assert not np.array_equal(whole, Bags.of(spec, 4).draw(0, 1000))


def test_poisson_draws() -> None:
    """Counts have the probabilities of Poisson(1); rows, models and seeds are independent."""
    rows = 100_000
    draws = Bags.of(4).draw(10**12, rows)
    counts = np.bincount(draws.ravel(), minlength=5)
    expected = np.exp(-1.0) / np.array([1, 1, 2, 6]) * draws.size
    assert (np.abs(counts[:4] - expected) < 5 * np.sqrt(expected)).all()
    other = Bags.of(4, seed=1).draw(10**12, rows)
    columns = [*draws, draws[0, np.r_[1:rows, 0]], *other]
    off = np.corrcoef(columns)[~np.eye(len(columns), dtype=bool)]
    assert np.abs(off).max() < 5 / np.sqrt(rows)


def test_disjoint_draws() -> None:
    draws = Bags.of("disjoint:7").draw(5, 70_000)
    assert (draws.sum(axis=0) == 1).all()
    assert np.abs(draws.sum(axis=1, dtype=np.int64) - 10_000).max() < 5 * 100


@pytest.mark.parametrize("spec", ["", "1", 1, 0, True, 2.5, "bags:4", "disjoint:", "1000", "poisson:1", -3])
def test_what_is_not_an_ensemble(spec: Any) -> None:
    with pytest.raises(ValueError, match="ensemble"):
        Bags.of(spec)


def test_weights_of_drawn_rows() -> None:
    chunk = Chunk.of_rows([(1.0, {k: 1.0}) for k in range(4)], [2.0, 0.5, 1.0, 4.0])
    found = drawn(chunk, np.array([0, 3, 1, 2], np.uint8))
    assert (found.keys.tolist(), found.weights.tolist()) == ([1, 2, 3], [1.5, 1.0, 8.0])


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.usefixtures("plainly")
def test_it_continues_from_its_state(spec: str) -> None:
    """In the middle of the second pass, with incomplete batches."""
    recipe, bags = recipe_of("fobos:l1=0.01", batch=4), Bags.of(spec)
    first = Bagging(recipe, bags)
    first.begin_pass(1)
    first.learn(DENSE)
    first.begin_pass(2)
    first.learn(DENSE, 0, 50, again=True)
    second = Bagging(recipe, bags)
    second.restore({name: array.copy() for name, array in first.state().items()})
    second.begin_pass(2)
    for one in (first, second):
        one.learn(DENSE, 50, again=True)
        one.finish()
    assert [as_bytes(one) for one in second.models] == [as_bytes(one) for one in first.models]
    assert [as_bytes(one) for one in second.models] == [
        as_bytes(one) for one in bagged(recipe, bags, DENSE, passes=2).models
    ]
    assert (second.examples, second.tally) == (2 * ROWS, first.tally)
    assert second.last_prediction == first.last_prediction
    for damage in ({"counters": np.array([1, 1, 1, 3])}, {"counters": np.array([-1, 1, 1, 0])}):
        with pytest.raises(StateError, match="counters"):
            second.restore(first.state() | damage)
    with pytest.raises(StateError):
        second.restore({name: array for name, array in first.state().items() if name != "2.S"})


@pytest.mark.usefixtures("plainly")
def test_predictions_are_those_of_the_mean_margin() -> None:
    bagging = bagged(recipe_of("ftrl:l1=0.05"), Bags.of(5), DENSE)
    each = np.array([model.predict(DENSE) for model in bagging.models])
    margin = each.mean(axis=0)
    assert bagging.predict(DENSE) == pytest.approx(margin, rel=1e-12)
    assert bagging.predict(DENSE, "probability") == pytest.approx(1 / (1 + np.exp(-margin)), rel=1e-12)
    assert bagging.predict(DENSE, "label").tolist() == np.where(margin > 0, 1.0, -1.0).tolist()
    assert bagging.predict_proba(DENSE)[:, 1] == pytest.approx(1 / (1 + np.exp(-margin)), rel=1e-12)
    spread = (1 / (1 + np.exp(-each))).std(axis=0, ddof=1)
    assert bagging.spread(DENSE) == pytest.approx(spread, rel=1e-9)
    assert spread.min() < 0.9 * spread.max()
    rows = [bagging.spread(DENSE.rows(k, k + 1))[0] for k in range(ROWS)]
    assert np.array(rows).tobytes() == bagging.spread(DENSE).tobytes()
    figures = thresher.evaluate(bagging, DENSE)
    wrong, losses = (margin > 0) != (DENSE.labels > 0), np.log1p(np.exp(-margin * DENSE.labels))
    assert figures["error"] == pytest.approx(np.average(wrong, weights=DENSE.weights))
    assert figures["loss"] == pytest.approx(np.average(losses, weights=DENSE.weights))


@pytest.mark.usefixtures("plainly")
def test_the_spread_of_margins_and_of_many_outputs() -> None:
    hinge = bagged(recipe_of("fobos:l1=0.01", loss="hinge"), Bags.of(3), DENSE)
    each = np.array([model.predict(DENSE) for model in hinge.models])
    assert hinge.spread(DENSE) == pytest.approx(each.std(axis=0, ddof=1), rel=1e-9)
    chunk = replace(DENSE, labels=(np.arange(ROWS) % 3).astype(np.float32))
    recipe = recipe_of("fobos:l1=0.01", loss="softmax", outputs="classes:0-2")
    classes = bagged(recipe, Bags.of(3), chunk)
    every = np.array([model.predict(chunk, "probability") for model in classes.models])
    assert classes.spread(chunk) == pytest.approx(every.std(axis=0, ddof=1), rel=1e-9)
    assert classes.predict(chunk, "label").tolist() == classes.predict(chunk).argmax(axis=1).tolist()


@pytest.mark.usefixtures("plainly")
def test_models_that_agree_have_no_spread() -> None:
    model = alone(recipe_of("ftrl:l1=0.05"), DENSE, np.ones(ROWS, np.uint8))
    assert not Ensemble([model] * 4, "poisson").spread(DENSE).any()


def test_the_file(tmp_path: Path) -> None:
    found = thresher.ensemble(SAMPLE, models=3, rule="ftrl", l1=0.1, passes=2, order="once", holdout=0.2)
    found.save(tmp_path / "e")
    loaded = thresher.load(tmp_path / "e")
    assert isinstance(loaded, Ensemble)
    assert (len(loaded.models), loaded.rows, loaded.record) == (3, "poisson", found.record)
    assert loaded.record is not None
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


def test_a_row_is_known_by_its_place_in_the_stream() -> None:
    """Threads and caches change nothing, and neither does who asks."""
    one = thresher.ensemble(SAMPLE, models="disjoint:3", passes=2, threads=1, cache=False)
    other = thresher.ensemble(SAMPLE, models="disjoint:3", passes=2, threads=2)
    third = thresher.ensemble(SAMPLE, models="disjoint:3", passes=2, seed=1)
    bits = [[as_bytes(model) for model in found.models] for found in (one, other, third)]
    assert bits[0] == bits[1]
    assert not {*bits[0]} & {*bits[2]}
    assert one.record is not None
    assert sum(model.examples for model in one.models) == 2 * one.record.examples


@pytest.mark.usefixtures("plainly")
def test_a_damaged_file(tmp_path: Path) -> None:
    rows, labels = [{"a": 1.0}, {"b": 1.0}] * 20, [1, -1] * 20
    thresher.ensemble(rows, labels, models=2).save(tmp_path / "e")
    thresher.train(rows, labels, "hinge").save(tmp_path / "hinge")
    found = Contents.of(tmp_path / "e")
    run, models = found.run["ensemble"], [found.model(k) for k in range(2)]
    other = Contents.of(tmp_path / "hinge").model(0)
    for table, kept, said in (
        ({**run, "rows": 2}, models, "rows must be text"),
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


def test_wrong_arguments() -> None:
    rows: tuple[Any, Any] = [{"a": 1.0}] * 4, [1, -1] * 2
    with pytest.raises(
        ValueError, match="a row would go to different models in each pass: use once or as-is"
    ):
        thresher.ensemble(*rows, passes=2, order="every")
    with pytest.raises(ValueError, match="an ensemble has 2 to 999 models"):
        thresher.ensemble(*rows, models=1)
    with pytest.raises(ValueError, match="auto"):
        thresher.ensemble(*rows, rule="auto")
    with pytest.raises(TypeError, match="ensemble has no option model; did you mean models"):
        thresher.ensemble(*rows, model=3)  # type: ignore[call-arg]
    with pytest.raises(DataError, match="label"):
        thresher.ensemble([{"a": 1.0}] * 4, [1, 2, 3, 4])


def test_early_stopping_keeps_the_best_pass_of_the_whole() -> None:
    options: dict[str, Any] = {"rule": "ftrl:alpha=50", "holdout": 0.2}
    found = thresher.ensemble(SAMPLE, models=2, passes=6, patience=1, **options)
    assert found.record is not None
    assert found.record.passes < 5
    best = thresher.ensemble(SAMPLE, models=2, passes=found.record.passes, **options)
    assert [as_bytes(one) for one in found.models] == [as_bytes(one) for one in best.models]
