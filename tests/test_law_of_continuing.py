"""Law 11: a stream continued is a stream. Training on A, then going on with B, is training on A and B."""

import copy
import signal
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher
from tests.covering import covering_for
from tests.data.tables import write_csv, write_jsonl, write_parquet
from tests.learning.test_resume_in_python import stopping as stopping
from tests.streams import KINDS, LOSSES, RULES, case, cut, domain_of, fingerprint, kinds_of, model_of, stream
from thresher import Model
from thresher.data.chunk import Chunk
from thresher.learning.files import model_file
from thresher.learning.model.recipe import Recipe

ROWS, PLACE = 60, 37
STORES = ["growing", "direct", "hashed:6"]


pytestmark = pytest.mark.usefixtures("plainly")


@pytest.fixture(scope="module")
def whole() -> Chunk:
    return stream(seed=21, rows=ROWS, features=20).chunk


def halves(chunk: Chunk) -> list[Chunk]:
    return [*cut(chunk, [PLACE])]


def bits(model: Model) -> dict[str, Any]:
    tensors = model_file.tensors_of(model)
    return {name: (a.dtype, a.shape, np.ascontiguousarray(a).tobytes()) for name, a in tensors.items()}


def check_same(found: Model, expected: Model) -> None:
    assert bits(found) == bits(expected)
    assert found.recipe == expected.recipe
    assert (found.record.examples, found.record.warnings) == (
        expected.record.examples,
        expected.record.warnings,
    )
    assert found.curve[-1] == expected.curve[-1]


def check(
    chunk: Chunk, recipe: Recipe, place: Path, forms: Sequence[Any] = (Model, Path), **training: Any
) -> None:
    """Go on from the model in memory, and from its file; neither changes."""
    first, second = halves(chunk)
    expected = thresher.train(chunk, recipe, passes=1, **training)
    before = thresher.train(first, recipe, passes=1, **training)
    kept = bits(before)
    before.save(place)
    for form in forms:
        given = before if form is Model else form(place)
        check_same(thresher.train(second, continue_from=given, passes=1, **training), expected)
    assert bits(before) == kept
    assert bits(Model.load(place)) == kept


@pytest.mark.parametrize("name", RULES)
def test_a_stream_continued_is_a_stream(name: str, whole: Chunk, tmp_path: Path) -> None:
    """In memory or from its file; of steps on many examples, the last may be incomplete."""
    stores = STORES if name in KINDS else STORES[:1]
    for spec, store, batch, form in covering_for(name, kinds_of(name), stores, (1, 7), (Model, Path, str)):
        with case(spec, store, batch, form):
            recipe = model_of(spec, store=store, dtype="float32", batch=batch).recipe
            check(whole, recipe, tmp_path / "m", [form])


@pytest.mark.parametrize("loss", LOSSES)
def test_with_every_loss(loss: str, tmp_path: Path) -> None:
    data = stream(seed=22, rows=ROWS, domain=domain_of(loss)).chunk
    check(data, model_of("fobos:l1=0.02", loss, rate="power:0.02,10,0.5").recipe, tmp_path / "m", [Path])
    check(data, model_of("ft-ftrl", loss, centre=True).recipe, tmp_path / "m", [Model])


def test_with_many_outputs(tmp_path: Path) -> None:
    data = stream(seed=23, rows=ROWS)
    classes = Chunk.from_csr(data.chunk.indptr, data.chunk.keys, data.chunk.values, np.arange(ROWS) * 7 % 3)
    for rule, batch in (("ft-ftrl", 1), ("fobos", 1), ("ftrl", 8)):
        for loss in ("softmax", "logistic"):
            recipe = Recipe(rule, loss=loss, outputs="classes:0-2", batch=batch)
            check(classes, recipe, tmp_path / "m", [Path])


@pytest.mark.parametrize("part", [0.2, Fraction(2, 5), "every-3rd"])
def test_the_same_rows_are_held_out(part: Any, whole: Chunk, tmp_path: Path) -> None:
    part = float(part) if isinstance(part, Fraction) else part
    check(whole, Recipe("ftrl", seed=3), tmp_path / "m", holdout=part)


def test_again_and_again(whole: Chunk) -> None:
    expected = thresher.train(whole, "ftrl", batch=4, passes=1)
    model: Any = None
    for piece in cut(whole, [1, 2, 9, 30, 31]):
        more: Any = {"rule": "ftrl", "batch": 4} if model is None else {}
        model = thresher.train(piece, continue_from=model, passes=1, **more)
    check_same(model, expected)
    assert model.record.continued == 5


def test_later_passes_are_over_the_rows_of_each_part(whole: Chunk) -> None:
    first, second = halves(whole)
    for batch in (1, 7):
        found = thresher.train(
            second, continue_from=thresher.train(first, passes=3, batch=batch, l1=0.2), passes=2
        )
        model = Model("ft-ftrl", l1=0.2, batch=batch)
        for part, passes in ((first, 3), (second, 2)):
            for number in range(1, passes + 1):
                model.begin_pass(number, passes)
                model.learn(part, again=number > 1)
            model.finish()
            model.end_passes()
        assert fingerprint(found) == fingerprint(model)


def test_unasked_the_new_rows_are_passed_over_as_if_they_were_all(whole: Chunk) -> None:
    first, second = halves(whole)
    before = thresher.train(first)
    assert before.record.passes > 1
    found = thresher.train(second, continue_from=before)
    alone = thresher.train(second).record
    assert found.record.passes == alone.passes
    assert bits(found) == bits(thresher.train(second, continue_from=before, passes=found.record.passes))


def test_learn_goes_on_as_well(whole: Chunk) -> None:
    first, second = halves(whole)
    for batch in (1, 7):
        model = thresher.train(first, "ftrl", batch=batch, passes=1)
        model.learn(second)
        model.finish()
        assert bits(model) == bits(thresher.train(whole, "ftrl", batch=batch, passes=1))


def rows_of(seed: int, rows: int) -> list[dict[str, Any]]:
    chance = np.random.default_rng(seed)
    found = []
    for size, city in zip(chance.normal(40, 9, rows).round(2), chance.integers(3, size=rows), strict=True):
        label = "yes" if size + 9 * (city == 0) + chance.normal(0, 4) > 43 else "no"
        found.append({"label": label, "size": float(size), "city": ["ulm", "bonn", "kiel"][city]})
    return found


TABLES = {"csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet}
LINES = {
    "svm": lambda row: f"{1 if row['label'] == 'yes' else -1} 1:{row['size']} {2 + len(row['city'])}:1\n",
    "vw": lambda row: f"{1 if row['label'] == 'yes' else -1} |a size:{row['size']} {row['city']}\n",
}


def write(rows: list[dict[str, Any]], path: Path) -> Path:
    kind = path.suffix[1:]
    if kind in LINES:
        path.write_text("".join(map(LINES[kind], rows)))
    else:
        TABLES[kind](rows, path)
    return path


@pytest.mark.parametrize("kind", [*TABLES, *LINES])
def test_in_every_format(kind: str, tmp_path: Path) -> None:
    first, second = rows_of(1, 80), rows_of(2, 50)
    a, b, ab = (
        write(rows, tmp_path / f"{name}.{kind}")
        for name, rows in (("a", first), ("b", second), ("ab", first + second))
    )
    named: dict[str, Any] = {"names": True}
    options: dict[str, Any] = {"rule": "fobos", "scale": "max-abs"} if kind == "csv" else {"l1": 0.5}
    before, expected = (thresher.train(path, passes=1, **named, **options) for path in (a, ab))
    found = thresher.train(b, continue_from=before, passes=1, **named)
    check_same(found, expected)
    assert found.names == expected.names
    assert found.layout == expected.layout


def test_frontiers_go_on_lane_by_lane(whole: Chunk, tmp_path: Path) -> None:
    first, second = halves(whole)
    for options in ({"l1": "0.2:2:5"}, {"l1": "0.05:0.5:3", "rule": "fobos", "batch": 4}):
        expected = thresher.path(whole, passes=1, **options)
        before = thresher.path(first, passes=1, **options)
        kept = [fingerprint(model) for model in before.models]
        before.save(tmp_path / "f", state=True)
        for given in (before, tmp_path / "f"):
            found = thresher.path(second, continue_from=given, passes=1)
            for one, other in zip(found.models, expected.models, strict=True):
                check_same(one, other)
        assert [fingerprint(model) for model in before.models] == kept


def test_ensembles_go_on_model_by_model(whole: Chunk, tmp_path: Path) -> None:
    first, second = halves(whole)
    for models in ("poisson:3", "disjoint:2"):
        options: dict[str, Any] = {"models": models, "passes": 1}
        expected = thresher.ensemble(whole, "ftrl", batch=3, **options)
        before = thresher.ensemble(first, "ftrl", batch=3, **options)
        before.save(tmp_path / "e")
        for given in (before, tmp_path / "e"):
            found = thresher.ensemble(second, continue_from=given, **options)
            assert [bits(model) for model in found.models] == [bits(model) for model in expected.models]
            assert found.record.examples == ROWS
        assert len(thresher.ensemble(second, continue_from=before).models) == len(before.models)
        with pytest.raises(ValueError, match=r"is an ensemble: go on with it in thresher\.ensemble"):
            thresher.train(second, continue_from=before)


def test_in_later_passes_each_model_of_an_ensemble_learns_the_same_new_rows(whole: Chunk) -> None:
    first, second = halves(whole)
    before = thresher.ensemble(first, "ftrl", models="disjoint:2", passes=2)
    found = thresher.ensemble(second, continue_from=before, models="disjoint:2", passes=2)
    counts = [
        after.examples - model.examples for model, after in zip(before.models, found.models, strict=True)
    ]
    assert sum(counts) == 2 * np.count_nonzero(second.weights)
    assert all(count % 2 == 0 for count in counts)


def test_findings_are_those_of_the_new_data() -> None:
    """The base rate and the loss that warnings compare are those of the rows that were learned now."""
    good, noise = stream(seed=31, rows=400).chunk, stream(seed=32, rows=400).chunk
    noise.labels[:] = np.random.default_rng(0).choice([-1.0, 1.0], len(noise))
    before = thresher.train(good, "sgd", rate="constant:2", passes=1)
    with pytest.warns(thresher.TroubleWarning, match="worse-than-constant") as told:
        found = thresher.train(noise, continue_from=before, passes=1)
    new = found.tally.since(before.tally)
    assert new.weight == pytest.approx(noise.weights.sum(dtype=float))
    assert f"the progressive loss is {new.average:.6g}, " in str(told[0].message)
    assert f"the progressive loss is {new.average:.6g}, " in found.record.warnings[0]


CALLS: dict[str, dict[str, Any]] = {
    "train": {"holdout": 0.2, "batch": 3},
    "path": {"l1": [0.5, 1.0], "holdout": "none"},
    "ensemble": {"models": 2},
}


@pytest.mark.parametrize("name", CALLS)
def test_what_goes_on_can_be_stopped_and_resumed(name: str, stopping: Any, tmp_path: Path) -> None:
    a, b = (write(rows_of(seed, 150), tmp_path / f"{seed}.svm") for seed in (1, 2))
    function, options = getattr(thresher, name), CALLS[name]
    before = function(a, passes=1, **options)
    more = {
        "continue_from": before,
        "passes": 2,
        **{k: v for k, v in options.items() if k in ("holdout", "models")},
    }
    whole = function(b, **more)
    stopping()
    more["checkpoint"] = tmp_path / "spare"
    with pytest.raises(KeyboardInterrupt):
        function(b, **more, checkpoint_every=100 if name == "train" else 70)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    found = function(b, **more, resume=True)
    for one, other in zip(getattr(found, "models", [found]), getattr(whole, "models", [whole]), strict=True):
        assert bits(one) == bits(other)
        assert one.record == other.record


def test_train_goes_on_with_an_estimator_as_its_partial_fit_does() -> None:
    from thresher.sklearn import SparseOnlineClassifier

    draw = np.random.default_rng(5)
    X = draw.normal(size=(ROWS, 4)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    estimator = SparseOnlineClassifier(rule="ftrl").partial_fit(X[:PLACE], y[:PLACE], classes=[0, 1])
    found = thresher.train(X[PLACE:], 2 * y[PLACE:] - 1, continue_from=estimator, passes=1)
    assert bits(found) == bits(estimator.partial_fit(X[PLACE:], y[PLACE:]).model_)


@pytest.mark.parametrize("passes", [1, 3])
def test_learn_goes_on_within_the_pass_and_train_begins_one(passes: int, whole: Chunk) -> None:
    first, then = halves(whole)
    before = thresher.train(first, passes=passes, report_every=None)
    continued = thresher.train(then, continue_from=before, passes=1, report_every=None)
    within, begun = copy.deepcopy(before), copy.deepcopy(before)
    within.learn(then)
    begun.begin_pass(1, 1)
    begun.learn(then)
    begun.end_passes()
    expected, here, there = (model.predict(whole) for model in (continued, begun, within))
    assert np.array_equal(here, expected)
    assert np.array_equal(there, expected) == (passes == 1)
