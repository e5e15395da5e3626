"""`passes="auto"` where many models learn: all make the passes that a model alone would make."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher
from tests.learning.test_replay import during
from tests.stopping import checkpoints_kept
from tests.streams import stream
from thresher.data.errors import DataError
from thresher.data.source import MemorySource
from thresher.learning.files import checkpoint
from thresher.learning.model.bags import make_bags, share_of
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe
from thresher.learning.modelbytes import as_bytes
from thresher.learning.training.passes import REPLAY, bytes_of
from thresher.learning.training.trainer import Trainer, TrainingPlan
from thresher.parts.rules.ft_ftrl import FtFtrl
from thresher.sklearn import SparseOnlineClassifier

pytestmark = [
    pytest.mark.usefixtures("plainly", "automatic"),
    pytest.mark.filterwarnings("ignore::thresher.TroubleWarning"),
]
MADE = 3
"""Passes over rows that fit"""
ROWS = 80
DATA = stream(seed=2, rows=ROWS, features=9).chunk
L1S = [0.1, 1.0, 8.0]
X = np.random.default_rng(4).normal(size=(60, 5))
Y = (X @ [1, -2, 0, 0, 1] > 0).astype(int)


@pytest.fixture
def automatic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FtFtrl, "AUTOMATIC", True)
    for module in ("learning.training.passes", "plans.tune"):
        monkeypatch.setattr(f"thresher.{module}.passes_for", lambda size: MADE)
    monkeypatch.setattr("thresher.learning.training.passes.passes_for", lambda size: MADE if size.rows else 1)


def passes_of(model: Model) -> int:
    return model.record.passes


@pytest.mark.parametrize("options", [{"holdout": "none"}, {"order": "every"}])
def test_lanes_of_a_path_are_runs(options: dict[str, Any]) -> None:
    found = thresher.path(DATA, l1=L1S, **options)
    held = {"holdout": "every-10th", **options}
    if held["holdout"] == "none":
        del held["holdout"]
    for point, model in zip(found.points, found.models, strict=True):
        for passes in (MADE, "auto"):
            alone = thresher.train(DATA, rule=point.spec, passes=passes, **held)
            assert passes_of(alone) == MADE
            assert as_bytes(alone) == as_bytes(model)
    assert thresher.path(DATA, l1=L1S, passes=MADE, **options).points == found.points
    assert found.points[0].progressive_loss == (
        thresher.path(DATA, l1=L1S, passes=1, **options).points[0].progressive_loss
    )


def test_lanes_that_stop_early_are_runs() -> None:
    found = thresher.path(DATA, l1=L1S, early_stop=1)
    made = []
    for point, model in zip(found.points, found.models, strict=True):
        alone = thresher.train(DATA, rule=point.spec, holdout="every-10th", early_stop=1)
        made.append(passes_of(alone))
        assert as_bytes(alone) == as_bytes(model)
    assert min(made) < MADE


def test_folds_make_the_passes_of_all_rows() -> None:
    found, other = (
        thresher.cv(DATA, l1=L1S, folds=3, refit=True, passes=passes) for passes in ("auto", MADE)
    )
    assert found.points == other.points
    assert found.points != thresher.cv(DATA, l1=L1S, folds=3, refit=True, passes=1).points
    chosen = found.choose()
    assert as_bytes(chosen) == as_bytes(thresher.train(DATA, rule=found.points[found.number()].spec))
    assert passes_of(chosen) == MADE


def test_rows_in_another_order_and_ensembles() -> None:
    found = thresher.cv(DATA, l1=L1S, folds=3, refit=True, order="every")
    assert passes_of(found.choose()) == 1
    with pytest.raises(ValueError, match="would be in a different fold"):
        thresher.cv(DATA, l1=L1S, folds=3, order="every", passes=MADE)
    one, other = (thresher.ensemble(DATA, models=2, passes=passes) for passes in ("auto", MADE))
    assert [*map(as_bytes, one.models)] == [*map(as_bytes, other.models)]
    assert one.record.passes == MADE


TUNED: dict[str, Any] = {"rules": ["ft-ftrl"], "budget": 4}


@pytest.mark.parametrize(
    ("options", "passes"),
    [
        *(({"order": "every"}, MADE), ({"holdout": 0.2}, MADE), ({"replay": "1KB"}, 1)),
        ({"rules": ["sgd"], "budget": 2, "passes": 2}, 2),
    ],
)
def test_the_best_setting_is_trained_in_all_passes(options: dict[str, Any], passes: int) -> None:
    found = thresher.tune(DATA, **{**TUNED, **options})
    once = thresher.tune(DATA, **{**TUNED, **options, "passes": 1, "replay": "64MB"})
    assert passes_of(found.model) == passes
    assert found.trials == once.trials, "settings race in the first pass"
    trial = found.trials[found.chosen]
    same = {name: value for name, value in options.items() if name in ("order", "holdout", "batch")}
    alone = thresher.train(DATA, rule=trial.rule, rate=trial.rate, passes=passes, **same)
    assert as_bytes(found.model) == as_bytes(alone)
    if "holdout" not in options:
        assert found.report == once.report
        assert found.report["examples"] == ROWS // 10
    else:
        assert found.report["loss"] == alone.holdout["loss"]  # type: ignore[index]


def test_rules_that_are_tuned_together_are_centred_together() -> None:
    found = thresher.tune(DATA, rules=["sgd", "ft-ftrl"], budget=2, passes=2)
    assert found.model.recipe.centre
    trial = found.trials[found.chosen]
    alone = thresher.train(DATA, rule=trial.rule, rate=trial.rate, centre=True, passes=2)
    assert as_bytes(found.model) == as_bytes(alone)
    plain = thresher.tune(DATA, rules=["ft-ftrl"], budget=2, centre=False)
    assert not plain.model.recipe.centre


def test_tuning_reads_rows_that_can_be_read_once() -> None:
    """The first round keeps them, for the winner too."""
    rows = [({"a": float(a), "b": float(b)}, int(y)) for (a, b, *_), y in zip(X, Y, strict=True)]
    options: dict[str, Any] = {"rules": ["ft-ftrl"], "budget": 2, "holdout": 0.2}
    found = thresher.tune(iter(rows), **options)
    assert passes_of(found.model) == MADE
    assert as_bytes(found.model) == as_bytes(thresher.tune(rows, **options).model)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ModelSet([Recipe("ft-ftrl", l1=l1, batch=4) for l1 in L1S]),
        lambda: make_bags(Recipe("ft-ftrl", l1=0.1), share_of("poisson:2")),
    ],
    ids=["lanes", "ensemble"],
)
def test_they_go_on_from_any_checkpoint(make: Any, tmp_path: Path) -> None:
    """Also from one of a replay."""
    path = tmp_path / "c"
    plan = TrainingPlan(replay=10**6, checkpoint=path, checkpoint_every=7)
    whole = Trainer(make(), MemorySource([DATA]), plan)
    with checkpoints_kept() as saved:
        whole.run()
    assert len(saved) > 2 * ROWS / 7
    for content in [*saved[:1], *saved[10:13], *saved[18::6]]:
        path.write_bytes(content)
        models, state = checkpoint.load(path)
        again = Trainer(models, MemorySource([DATA]), plan)
        again.continue_from(state)
        assert again.run().figures["passes"] == MADE
        assert [as_bytes(one) for one in models.models] == [as_bytes(one) for one in whole.models.models]


def test_all_rules_must_be_automatic() -> None:
    lanes = ModelSet([Recipe(rule, centre=True) for rule in ("ft-ftrl", "ft-fobos")])
    assert (
        Trainer(lanes, MemorySource([DATA]), TrainingPlan(replay=bytes_of(REPLAY))).run().figures["passes"]
        == 1
    )


UNUSED = "with {}, passes=.auto. is one pass, which keeps no rows: leave replay out, or use passes=5"


@pytest.mark.parametrize(
    ("call", "options", "cause"),
    [
        (thresher.train, {"rule": "sgd"}, "this rule"),
        (thresher.path, {"rule": "ftrl", "l1": L1S}, "this rule"),
        (thresher.tune, {"rules": ["sgd"], "budget": 2}, "these rules"),
        (thresher.ensemble, {"models": 2, "order": "every"}, "this order"),
        (thresher.cv, {"l1": L1S, "order": "every"}, "this order"),
    ],
)
def test_memory_that_would_not_be_used_is_refused(call: Any, options: dict[str, Any], cause: str) -> None:
    with pytest.raises(DataError, match=UNUSED.format(cause)):
        call(DATA, replay="1MB", **options)


def test_ctrl_c_in_a_replay_keeps_what_was_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    during(monkeypatch, 2)
    found: Any = None
    for call in (
        lambda: thresher.path(DATA, l1=L1S),
        lambda: thresher.cv(DATA, l1=L1S, folds=2, refit=True),
        lambda: thresher.ensemble(DATA, models=2),
        lambda: thresher.tune(DATA, **TUNED),
    ):
        with pytest.warns(thresher.TroubleWarning, match="interrupted in"):
            found = call()
        assert "ended-early" in [one.name for one in found.warnings]
        assert np.isfinite(thresher.evaluate(getattr(found, "model_", found), DATA)["loss"])
    assert as_bytes(found.model) == as_bytes(thresher.tune(DATA, passes=1, **TUNED).model)


def test_estimators_and_train_make_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the function of rows and non-zeros: an example of weight 2 is two rows."""
    sizes = [(0, 0, 0)]

    def noted(size: Any) -> int:
        sizes[-1] = size.rows, size.nonzeros, size.features
        return MADE if size.features < 6 else 2

    monkeypatch.setattr("thresher.learning.training.passes.passes_for", noted)
    wide = np.column_stack([X, np.arange(60) == 59])
    thresher.train((X, Y))
    for fit in (
        lambda: SparseOnlineClassifier(shuffle=False).fit(X, Y),
        lambda: SparseOnlineClassifier().fit(X[:30], Y[:30], np.full(30, 2.0)),
        lambda: SparseOnlineClassifier().fit(wide, Y, np.arange(60) < 59),
        lambda: thresher.train((wide, Y, np.arange(60) < 59)),
    ):
        sizes.append((0, 0, 0))
        fit()
    assert sizes == [(60, 300, 5)] * 3 + [(59, 295, 5)] * 2
