"""The progressive curve: loss and size at each power of two of examples, however the model was trained."""

from pathlib import Path
from typing import Any

import pytest

from tests.streams import cut, stream
from thresher.data.source import MemorySource
from thresher.learning.files import checkpoint, model_file
from thresher.learning.files.model_file import ModelFileError
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.training import progress
from thresher.learning.training.interruption import Interrupted
from thresher.learning.training.progress import MOST, Curve, CurvePoint
from thresher.learning.training.trainer import Trainer, TrainingPlan

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
    assert whole[-1].average == trained().tally.average


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
    passes = sum(map(progress.keeps_end, range(1, 10**4))) + 64 - 14
    assert passes + 64 <= MOST


def test_of_the_best_pass_nothing_behind_it_is_kept() -> None:
    best = trained(**EARLY)
    assert best.examples < 9 * 68
    passes = best.examples // 68
    assert best.curve == trained(**{**EARLY, "passes": passes, "patience": 0}).curve
    assert best.curve[-1].examples == best.examples


def test_a_stopped_training_goes_on_with_its_curve(tmp_path: Path) -> None:
    path, plan = tmp_path / "c", TrainingPlan(2, checkpoint=tmp_path / "c", checkpoint_every=50)
    trainer = Trainer(Model("ftrl:l1=0.3,alpha=9"), MemorySource([DATA]), plan)
    saved = trainer.save_checkpoint

    def once() -> None:
        saved()
        raise Interrupted(path, 50)

    trainer.save_checkpoint = once  # type: ignore[method-assign]
    with pytest.raises(Interrupted):
        trainer.run()
    models, training_state = checkpoint.load(path)
    assert [point.examples for point in models.lead.curve] == [1, 2, 4, 8, 16, 32]
    again = Trainer(models, MemorySource([DATA]), plan)
    again.continue_from(training_state)
    again.run()
    assert again.model.curve == trained(passes=2).curve


def test_weights_are_not_counted_in_a_large_empty_table(monkeypatch: pytest.MonkeyPatch) -> None:
    small = trained(8, store="hashed:9").curve
    assert None not in [point.nonzero for point in small]
    monkeypatch.setattr(progress, "ALWAYS_COUNTED", 100)
    assert trained(8, store="hashed:9").curve == tuple(one._replace(nonzero=None) for one in small)


def test_lanes_have_the_curves_of_models_alone() -> None:
    recipes = [Model(f"ftrl:l1={l1},alpha=9").recipe for l1 in (0.3, 2)]
    lanes = ModelSet(recipes)
    Trainer(lanes, MemorySource([DATA]), TrainingPlan()).run()
    for recipe, lane in zip(recipes, lanes.models, strict=True):
        alone = Model(recipe)
        Trainer(alone, MemorySource([DATA]), TrainingPlan()).run()
        assert lane.curve == alone.curve
    assert lanes.alone(1).curve == lanes.models[1].curve != lanes.models[0].curve


def test_a_file_keeps_it(tmp_path: Path) -> None:
    model = trained()
    model_file.save(model, tmp_path / "m", state=False)
    assert model_file.curve_in(model_file.read(tmp_path / "m")[0]) == model.curve
    model_file.save(model, tmp_path / "m")
    assert Model.load(tmp_path / "m").curve == model.curve
    model_file.save(Model("ftrl"), tmp_path / "none")
    assert model_file.curve_in(model_file.read(tmp_path / "none")[0]) == ()


GOOD: Curve = (CurvePoint(1, 0.5, 1.0, 1, 2), CurvePoint(2, 0.75, 2.0, 1, 2))
BAD: dict[str, Any] = {
    "an object": {},
    "not points": [1],
    "a point too short": [[1, 0.5, 1.0, 1]],
    "not ascending": [list(GOOD[1]), list(GOOD[0])],
    "twice the same": [list(GOOD[0])] * 2,
    "not finite": [[1, float("nan"), 1.0, 1, 2]],
    "a text": [[1, 0.5, 1.0, "1", 2]],
    "no count": [[1, 0.5, 1.0, -1, 2]],
    "a large number": [[10**30, 0.5, 1.0, 1, 2]],
    "too long": [[k, 0.5, 1.0, 1, 2] for k in range(MOST + 1)],
}


@pytest.mark.parametrize("given", BAD.values(), ids=BAD)
def test_a_curve_that_cannot_be_is_refused(given: Any, tmp_path: Path) -> None:
    model = trained(4)
    header, tensors = model_file.header_of(model), model_file.tensors_of(model)
    model_file.write(tmp_path / "m", {**header, "curve": [list(point) for point in GOOD]}, tensors)
    assert Model.load(tmp_path / "m").curve == GOOD
    model_file.write(tmp_path / "m", {**header, "curve": given}, tensors)
    with pytest.raises(ModelFileError, match="curve must be points of a curve"):
        model_file.load_readout(tmp_path / "m")
