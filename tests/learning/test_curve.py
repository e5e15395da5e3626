"""Progressive figures and curves are those of the first pass, however the model was trained."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher
from tests.stopping import checkpoints_kept
from tests.streams import cut, stream
from thresher.data.chunk import Chunk
from thresher.data.source import MemorySource
from thresher.learning.files import checkpoint, model_file
from thresher.learning.files.model_file import ModelFileError
from thresher.learning.inspection.plots import stages_of_curve
from thresher.learning.model import model as model_module
from thresher.learning.model.bags import make_bags, share_of
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe
from thresher.learning.training.progress import Curve, CurvePoint, ProgressLines
from thresher.learning.training.trainer import Outcome, Trainer, TrainingPlan
from thresher.plans.folds import Folds

pytestmark = pytest.mark.usefixtures("plainly")
DATA = stream(seed=5, rows=90, features=40, density=0.1).chunk
EARLY: dict[str, Any] = {"rule": "ftrl:alpha=50", "passes": 9, "holdout_every": 4, "patience": 1}


def trained(rows: int = len(DATA), places: tuple[int, ...] = (), **plan: Any) -> Model:
    made = {name: plan.pop(name) for name in ("batch", "store") if name in plan}
    model = Model(plan.pop("rule", "ftrl:l1=0.3,alpha=9"), **made)
    source = MemorySource(cut(DATA.rows(0, rows), [place for place in places if place < rows]))
    Trainer(model, source, TrainingPlan(**plan)).run()
    return model


def test_a_point_is_what_a_model_of_so_many_examples_is() -> None:
    whole = trained().curve
    assert [point.examples for point in whole] == [1, 2, 4, 8, 16, 32, 64, 90]
    for point in whole:
        alone = trained(point.examples)
        assert point == (point.examples, *alone.tally, alone.nonzero, alone.features_seen)
        assert alone.curve[-1] == point
    assert 0 < (whole[-1].nonzero or 0) < whole[-1].features_seen
    assert whole[-1].tally.average == trained().tally.average


@pytest.mark.parametrize("options", [{"batch": 7}, {"passes": 3, "holdout_every": 4}, EARLY])
def test_it_does_not_depend_on_cuts_tables_and_checkpoints(options: dict[str, Any], tmp_path: Path) -> None:
    whole = trained(**options)
    for more in (
        {"report_every": None},
        {"report_every": 3, "places": (5, 6, 31, 77)},
        {"checkpoint": tmp_path / "c", "checkpoint_every": 11},
    ):
        assert trained(**options, **more).curve == whole.curve != ()


def test_the_end_of_each_pass_is_a_point_of_few_passes() -> None:
    ends = [point.examples for point in trained(10, passes=70).curve if not point.examples % 10]
    assert ends == [10 * number for number in (*range(1, 33), 64)]


def test_of_the_best_pass_nothing_behind_it_is_kept() -> None:
    best = trained(**EARLY)
    assert best.examples < 9 * 68
    passes = best.examples // 68
    assert best.curve == trained(**{**EARLY, "passes": passes, "patience": 0}).curve
    assert best.curve[-1].examples == best.examples


def test_a_stopped_training_goes_on_with_its_curve(tmp_path: Path) -> None:
    path, plan = tmp_path / "c", TrainingPlan(2, checkpoint=tmp_path / "c", checkpoint_every=50)
    with checkpoints_kept() as kept:
        Trainer(Model("ftrl:l1=0.3,alpha=9"), MemorySource([DATA]), plan).run()
    path.write_bytes(kept[0])
    models, training_state = checkpoint.load(path)
    assert [point.examples for point in models.lead.curve] == [1, 2, 4, 8, 16, 32]
    again = Trainer(models, MemorySource([DATA]), plan)
    again.continue_from(training_state)
    again.run()
    assert again.model.curve == trained(passes=2).curve


def test_weights_are_not_counted_in_a_large_empty_table(monkeypatch: pytest.MonkeyPatch) -> None:
    small = trained(8, store="hashed:9").curve
    assert None not in [point.nonzero for point in small]
    monkeypatch.setattr(model_module, "ALWAYS_COUNTED", 100)
    assert trained(8, store="hashed:9").curve == tuple(one._replace(nonzero=None) for one in small)


def test_a_file_keeps_it(tmp_path: Path) -> None:
    model = trained()
    model_file.save(model, tmp_path / "m", state=False)
    assert model_file.curve_in(model_file.read(tmp_path / "m")[0]) == model.curve
    model_file.save(model, tmp_path / "m")
    assert Model.load(tmp_path / "m").curve == model.curve
    model_file.save(Model("ftrl"), tmp_path / "none")
    assert model_file.curve_in(model_file.read(tmp_path / "none")[0]) == ()


GOOD: Curve = (CurvePoint(1, 0.5, 1.0, 1, 2), CurvePoint(2, 0.75, 2.0, 1, 2))
BAD: dict[str, tuple[Any, str]] = {
    "an object": ({}, r"model\.curve: expected array, got object"),
    "not points": ([1], r"curve\[0\]: expected array, got int"),
    "a point too short": ([[1, 0.5, 1.0, 1]], r"curve\[0\]: expected array of length 5, got 4"),
    "a text": ([[1, 0.5, 1.0, "1", 2]], r"curve\[0\]\[3\]: expected int"),
    "no count": ([[1, 0.5, 1.0, -1, 2]], "the header does not match its checksum"),
    "a large number": ([[10**30, 0.5, 1.0, 1, 2]], "the header does not match its checksum"),
}


@pytest.mark.parametrize(("given", "told"), BAD.values(), ids=BAD)
def test_a_curve_that_cannot_be_is_refused(given: Any, told: str, tmp_path: Path) -> None:
    model = trained(4)
    header, tensors = model_file.header_of(model), model_file.tensors_of(model)
    model_file.write(tmp_path / "m", {**header, "curve": [list(point) for point in GOOD]}, tensors)
    assert Model.load(tmp_path / "m").curve == GOOD
    model_file.write(tmp_path / "m", {**header, "curve": given}, tensors)
    with pytest.raises(ModelFileError, match=told):
        model_file.load_predictor(tmp_path / "m")


PASSED = stream(seed=9, rows=70, features=20, density=0.2).chunk
CLASSES = replace(PASSED, labels=(np.arange(len(PASSED)) % 3).astype(np.float32))
RULE = "ftrl:alpha=9,l1=0.1"


def run(model: Any, passes: int, chunk: Chunk = PASSED, ui: Any = None, **plan: Any) -> Outcome:
    source = MemorySource(cut(chunk, [3, 30, 31]))
    return Trainer(model, source, TrainingPlan(passes, **plan), ui=ui).run()


@pytest.mark.parametrize(
    ("options", "chunk"),
    [
        *(({}, PASSED), ({"average": True}, PASSED), ({"batch": 8}, PASSED), ({"batch": 100}, PASSED)),
        ({"batch": 8, "centre": True, "scale": "standard", "admit": "2"}, PASSED),
        *(({"rule": "scw", "batch": 16}, PASSED), ({"loss": "softmax", "outputs": "classes:0-2"}, CLASSES)),
        ({"loss": "softmax", "outputs": "classes:0-2", "batch": 9}, CLASSES),
    ],
)
def test_they_are_those_of_a_training_in_one_pass(options: dict[str, Any], chunk: Chunk) -> None:
    one, several = (Model(**{"rule": RULE, **options}) for _ in range(2))
    alone, outcome = run(one, 1, chunk), run(several, 4, chunk, holdout_every=0)
    assert several.tally == one.tally
    assert several.tally.weight == pytest.approx(float(PASSED.weights.sum()))
    assert outcome.figures["progressive_loss"] == alone.figures["progressive_loss"]
    assert several.repeated.weight == pytest.approx(3 * one.tally.weight)
    assert one.repeated == (0.0, 0.0)
    assert several.repeated.average != pytest.approx(several.tally.average)
    ends = [point.tally for point in several.curve if point.examples >= len(PASSED)]
    assert {end.average for end in ends} == {one.tally.average}


def test_rows_may_come_again_between_new_ones() -> None:
    model, other = Model(RULE), Model(RULE)
    model.learn(PASSED, 0, 40)
    model.learn(PASSED, 0, 40, again=True)
    first, again = model.tally, model.repeated
    assert first.weight == again.weight == pytest.approx(float(PASSED.weights[:40].sum()))
    model.learn(PASSED, 40, 70)
    for lo, hi in ((0, 40), (0, 40), (40, 70)):
        other.learn(PASSED, lo, hi)
    assert model.repeated == again
    assert model.tally.weight == pytest.approx(first.weight + float(PASSED.weights[40:].sum()))
    assert model.tally.loss + again.loss == pytest.approx(other.tally.loss)
    assert np.array_equal(model.weights()[1], other.weights()[1]), "what is counted changes no weight"


@pytest.mark.parametrize("batch", [1, 8])
def test_many_models_have_those_of_each_alone(batch: int) -> None:
    recipes = [Recipe(f"ftrl:alpha=9,l1={l1}", batch=batch) for l1 in (0.01, 0.1, 0.5, 1, 2)]
    lanes, folds = ModelSet(recipes), ModelSet(recipes, Folds(3, whole=True))
    bags = make_bags(recipes[0], share_of("disjoint:2"))
    for many in (lanes, folds, bags):
        run(many, 3)
    for recipe, *found in zip(recipes, lanes.models, folds.parts[-1].models, strict=True):
        model = Model(recipe)
        run(model, 3)
        for one in found:
            assert (one.tally, one.repeated, one.curve) == (model.tally, model.repeated, model.curve)
    assert lanes.lead is min(lanes.models, key=lambda one: one.tally.average)
    assert bags.lead.tally.weight == pytest.approx(float(PASSED.weights.sum()))
    assert bags.lead.repeated.weight == pytest.approx(2 * bags.lead.tally.weight)


def test_the_table_tells_from_where_on_rows_come_again() -> None:
    said: list[str] = []
    outcome = run(model := Model(RULE), 3, ui=ProgressLines(said.append))
    passes = [row.in_pass for row in outcome.table]
    assert passes == [1] * 8 + [2, 3]
    assert [row.examples for row in outcome.table][6:] == [64, 70, 128, 210]
    assert {row.average for row in outcome.table[7:]} == {model.tally.average}
    assert [line.split(";")[0] for line in said].index("pass 2") == 9, "after the heading and the first pass"
    assert sum("seen before" in line for line in said) == 1
    later = outcome.table[8:]
    weights = [float(PASSED.weights[:58].sum()), float(PASSED.weights[58:].sum() + PASSED.weights.sum())]
    lost = sum(row.loss_since * weight for row, weight in zip(later, weights, strict=True))
    assert lost == pytest.approx(model.repeated.loss)
    drawn = stages_of_curve(model.curve, model.nonzero)
    assert [stage.in_pass for stage in drawn] == [1 + (stage.examples > 70) for stage in drawn]


def test_penalties_are_compared_by_the_first_pass() -> None:
    """Without a hold-out, later passes would make the weakest penalty look best."""
    noise = stream(seed=3, rows=120, features=60, density=0.5).chunk
    noise = replace(noise, labels=np.where(np.sin(np.arange(120) * 2.7) > 0, 1, -1).astype(np.float32))
    found = [
        thresher.path(noise, rule="ftrl:alpha=9", l1=[0.01, 1, 4], holdout="none", passes=n) for n in (1, 9)
    ]
    losses = [[point.progressive_loss for point in one.points] for one in found]
    assert losses[0] == losses[1]
    assert found[0].number() == found[1].number() != 0
    weak = found[1].models[0]
    assert weak.repeated.average < 0.5 * weak.tally.average
