"""Progressive figures are those of the first pass, however many follow; what comes again is told apart."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher
from tests.streams import cut, stream
from thresher.data.chunk import Chunk
from thresher.data.source import MemorySource
from thresher.learning.files import checkpoint, model_file
from thresher.learning.inspection.plots import stages_of_curve, stages_of_table
from thresher.learning.model.bags import Bags, bagged
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe
from thresher.learning.training.progress import ProgressLines
from thresher.learning.training.trainer import Outcome, Trainer, TrainingPlan
from thresher.plans.folds import Folds

pytestmark = pytest.mark.usefixtures("plainly")
DATA = stream(seed=9, rows=70, features=20, density=0.2).chunk
CLASSES = replace(DATA, labels=(np.arange(len(DATA)) % 3).astype(np.float32))
RULE = "ftrl:alpha=9,l1=0.1"


def run(model: Any, passes: int, chunk: Chunk = DATA, watcher: Any = None, **plan: Any) -> Outcome:
    source = MemorySource(cut(chunk, [3, 30, 31]))
    return Trainer(model, source, TrainingPlan(passes, **plan), watcher=watcher).run()


@pytest.mark.parametrize(
    ("options", "chunk"),
    [
        ({}, DATA),
        ({"average": True}, DATA),
        ({"batch": 8}, DATA),
        ({"batch": 100}, DATA),
        ({"batch": 8, "centre": True, "scale": "standard", "admit": "2"}, DATA),
        ({"rule": "scw", "batch": 16}, DATA),
        ({"loss": "softmax", "outputs": "classes:0-2"}, CLASSES),
        ({"loss": "softmax", "outputs": "classes:0-2", "batch": 9}, CLASSES),
    ],
)
def test_they_are_those_of_a_training_in_one_pass(options: dict[str, Any], chunk: Chunk) -> None:
    one, several = (Model(**{"rule": RULE, **options}) for _ in range(2))
    alone, outcome = run(one, 1, chunk), run(several, 4, chunk, holdout_every=0)
    assert several.tally == one.tally
    assert several.tally.weight == pytest.approx(float(DATA.weights.sum()))
    assert outcome.progressive_loss == alone.progressive_loss
    assert several.repeated.weight == pytest.approx(3 * one.tally.weight)
    assert one.repeated == (0.0, 0.0)
    assert several.repeated.average != pytest.approx(several.tally.average)
    assert {point.average for point in several.curve if point.examples >= len(DATA)} == {one.tally.average}


def test_rows_may_come_again_between_new_ones() -> None:
    model, other = Model(RULE), Model(RULE)
    model.learn(DATA, 0, 40)
    model.learn(DATA, 0, 40, again=True)
    first, again = model.tally, model.repeated
    assert first.weight == again.weight == pytest.approx(float(DATA.weights[:40].sum()))
    model.learn(DATA, 40, 70)
    for lo, hi in ((0, 40), (0, 40), (40, 70)):
        other.learn(DATA, lo, hi)
    assert model.repeated == again
    assert model.tally.weight == pytest.approx(first.weight + float(DATA.weights[40:].sum()))
    assert model.tally.loss + again.loss == pytest.approx(other.tally.loss)
    assert np.array_equal(model.weights()[1], other.weights()[1]), "what is counted changes no weight"


@pytest.mark.parametrize("batch", [1, 8])
def test_many_models_have_those_of_each_alone(batch: int) -> None:
    recipes = [Recipe(f"ftrl:alpha=9,l1={l1}", batch=batch) for l1 in (0.01, 0.1, 0.5, 1, 2)]
    lanes, folds = ModelSet(recipes), ModelSet(recipes, Folds(3, whole=True))
    bags = bagged(recipes[0], Bags.of("disjoint:2"))
    for many in (lanes, folds, bags):
        run(many, 3)
    for recipe, *found in zip(recipes, lanes.models, folds.parts[-1].models, strict=True):
        model = Model(recipe)
        run(model, 3)
        for one in found:
            assert (one.tally, one.repeated, one.curve) == (model.tally, model.repeated, model.curve)
    assert lanes.lead is min(lanes.models, key=lambda one: one.tally.average)
    assert bags.lead.tally.weight == pytest.approx(float(DATA.weights.sum()))
    assert bags.lead.repeated.weight == pytest.approx(2 * bags.lead.tally.weight)


@pytest.mark.parametrize("options", [{}, {"batch": 8}])
def test_files_and_copies_keep_them(options: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Model(RULE, **options)
    run(whole, 3)
    path, plan = tmp_path / "c", TrainingPlan(3, checkpoint=tmp_path / "c", checkpoint_every=1)
    saved, save = list[bytes](), checkpoint.save

    def keep(*given: Any) -> None:
        save(*given)
        saved.append(path.read_bytes())

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save", keep)
        Trainer(Model(RULE, **options), MemorySource([DATA]), plan).run()
    assert len(saved) == 3 * len(DATA)
    for number in (68, 69, 70, 71, 150):
        path.write_bytes(saved[number])
        models, before = checkpoint.load(path)
        going_on = Trainer(models, MemorySource([DATA]), TrainingPlan(3))
        going_on.continue_from(before)
        going_on.run()
        model = models.lead
        assert (model.tally, model.repeated) == (whole.tally, whole.repeated), number
        model.record = whole.record
        assert model_file.as_bytes(model_file.header_of(model), model_file.tensors_of(model)) == (
            model_file.as_bytes(model_file.header_of(whole), model_file.tensors_of(whole))
        )
    whole.save(path)
    loaded = Model.load(path)
    assert (loaded.tally, loaded.repeated) == (whole.tally, whole.repeated)
    found = thresher.info(path)
    assert found["progressive_loss"] == whole.tally.average
    assert found["loss_of_later_passes"] == whole.repeated.average


def test_the_table_tells_from_where_on_rows_come_again() -> None:
    said: list[str] = []
    outcome = run(model := Model(RULE), 3, watcher=ProgressLines(said.append))
    passes = [row.in_pass for row in outcome.table]
    assert passes == [1] * 8 + [2, 3]
    assert [row.examples for row in outcome.table][6:] == [64, 70, 128, 210]
    assert {row.average for row in outcome.table[7:]} == {model.tally.average}
    assert [line.split(";")[0] for line in said].index("pass 2") == 9, "after the heading and the first pass"
    assert sum("seen before" in line for line in said) == 1
    later = outcome.table[8:]
    weights = [float(DATA.weights[:58].sum()), float(DATA.weights[58:].sum() + DATA.weights.sum())]
    lost = sum(row.loss_since * weight for row, weight in zip(later, weights, strict=True))
    assert lost == pytest.approx(model.repeated.loss)
    assert [stage.again for stage in stages_of_table(outcome.table)] == [False] * 8 + [True] * 2
    drawn = stages_of_curve(model.curve, model.nonzero)
    assert [stage.again for stage in drawn] == [stage.examples > 70 for stage in drawn]


def test_penalties_are_compared_by_the_first_pass() -> None:
    """Without a hold-out, later passes would make the weakest penalty look best."""
    noise = stream(seed=3, rows=120, features=60, density=0.5).chunk
    noise = replace(noise, labels=np.where(np.sin(np.arange(120) * 2.7) > 0, 1, -1).astype(np.float32))
    found = [
        thresher.path(noise, rule="ftrl:alpha=9", l1=[0.01, 1, 4], holdout_every=0, passes=n) for n in (1, 9)
    ]
    losses = [[point.progressive_loss for point in one.points] for one in found]
    assert losses[0] == losses[1]
    assert found[0].number() == found[1].number() != 0
    weak = found[1].models[0]
    assert weak.repeated.average < 0.5 * weak.tally.average
