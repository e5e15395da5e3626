"""Few rows of many columns are solved in memory: the border, the optimum, and the laws."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import thresher
from thresher.cli.main import status_of
from thresher.data import Chunk, MemorySource
from thresher.learning.files import checkpoint
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe
from thresher.learning.training.shares import folds_of
from thresher.learning.training.trainer import Trainer, TrainingPlan
from thresher.learning.training.wide import DEVIATIONS, LEAST_ROWS, can_solve, is_wide
from thresher.parts.rules.ft_ftrl import FtFtrl
from thresher.plans.folds import Folds

pytestmark = [
    pytest.mark.usefixtures("plainly"),
    pytest.mark.filterwarnings("ignore::thresher.TroubleWarning"),
]
F64 = NDArray[np.float64]
ROWS, COLUMNS, ENOUGH = 30, 45, 1 << 20


def columns(seed: int = 0, rows: int = ROWS, count: int = COLUMNS) -> F64:
    """Columns on nasty scales: far means, a constant, a duplicate, tiny and huge ones."""
    X = np.random.default_rng(seed).normal(size=(rows, count))
    X[:, 1] += 1000.0
    X[:, 2] = 7.0
    X[:, 3] = X[:, 0]
    X[:, 4] *= 1e-6
    X[:, 5] *= 1e5
    return X.astype(np.float32).astype(np.float64)


def labels(X: F64, loss: str, seed: int = 0) -> F64:
    """Labels that follow two columns."""
    chance = np.random.default_rng(seed)
    z = X[:, 0] - X[:, 6]
    if loss == "squared":
        return np.asarray(50.0 + 3.0 * z + chance.normal(size=len(X)), np.float64)
    if loss == "poisson":
        return np.asarray(chance.poisson(np.exp(0.5 * z)), np.float64)
    return np.asarray(z + chance.logistic(size=len(X)) > 0, np.float64)


def slopes(loss: str, z: F64, y: F64) -> F64:
    """Derivatives of the loss, written down again."""
    if loss == "squared":
        return 2.0 * (z - y)
    return np.exp(z) - y if loss == "poisson" else 1.0 / (1.0 + np.exp(-z)) - y


@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
@pytest.mark.parametrize("weighted", [False, True])
def test_weights_satisfy_the_conditions_of_optimality(loss: str, weighted: bool) -> None:
    X = columns()
    y = labels(X, loss)
    c = np.random.default_rng(1).choice([0.5, 1.0, 3.0], ROWS) if weighted else np.ones(ROWS)
    model = thresher.train(X, y, sample_weight=c, loss=loss, dtype="float64")
    keys, found = model.weights()
    w = np.zeros(COLUMNS)
    w[keys.astype(int)] = found
    assert model.record is not None
    assert model.record.solved is not None
    assert 0 < len(keys) < ROWS - 2
    # values are centred in float32 before they are learned
    x = np.float32(X - X.mean(0)).astype(np.float64)
    g = c * slopes(loss, X @ w + model.intercept, y)
    at = (c**2 @ x) / (c**2).sum()
    spread = np.sqrt(c**2 @ (x - at) ** 2)
    noise = np.sqrt((g**2).sum() / (c**2).sum() * ROWS / (ROWS - len(keys) - 1))
    bound = DEVIATIONS * noise * spread
    pull = x.T @ g
    assert abs(g.sum()) <= 1e-3 * np.abs(g).sum()
    tolerance = 1.0 / (ROWS - len(keys) - 1) + 1e-3  # how closely the noise stands
    assert (np.abs(pull) <= bound * (1 + tolerance) + 1e-9).all()
    alive = w != 0
    np.testing.assert_allclose(-pull[alive], np.sign(w[alive]) * bound[alive], rtol=tolerance)
    assert not alive[2]


def test_the_noise_is_not_that_of_rows_learned_by_heart() -> None:
    """Without the degrees of freedom, residuals shrink as weights enter, until nothing is left of them."""
    X = np.random.default_rng(0).normal(size=(40, 400))
    model = thresher.train(X, X[:, 0] + np.random.default_rng(1).normal(size=40), loss="squared")
    assert model.nonzero < 20


def rows_of(X: F64, y: F64 | None = None) -> Chunk:
    """As rows, without zeros."""
    own = (np.ones(len(X)) if y is None else y).tolist()
    cells = [{k: v for k, v in enumerate(row) if v} for row in X.tolist()]
    return Chunk.of_rows([*zip(own, cells, strict=True)])


def test_the_border_is_at_as_many_independent_columns_as_rows() -> None:
    X = np.random.default_rng(0).normal(size=(60, 120))
    assert is_wide(rows_of(X), gaps=False)
    assert is_wide(rows_of(X[:, :60]), gaps=False)
    assert not is_wide(rows_of(X[:, :59]), gaps=False)
    assert not is_wide(rows_of(X[: LEAST_ROWS - 1]), gaps=False)
    assert is_wide(rows_of(X * (np.random.default_rng(1).random(X.shape) < 0.7)), gaps=False)
    assert not is_wide(rows_of(X * (np.random.default_rng(1).random(X.shape) < 0.3)), gaps=False)
    few = X[:, :5] @ np.random.default_rng(2).normal(size=(5, 120)) + 0.3 * X
    assert not is_wide(rows_of(few), gaps=False)  # five directions
    rare = np.hstack([X, np.random.default_rng(3).random((60, 500)) < 0.05])
    assert is_wide(rows_of(rare), gaps=False)


def test_a_missing_number_counts_as_the_mean() -> None:
    X = 1000.0 + np.random.default_rng(0).normal(size=(40, 5)) @ np.ones((5, 80))
    missing = rows_of(X)
    values = missing.values.copy()
    values[np.random.default_rng(1).integers(len(values), size=300)] = 0.0
    missing = replace(missing, values=values)
    assert not is_wide(missing, gaps=True)
    assert is_wide(missing, gaps=False)  # as numbers, these zeros would be directions of their own


@pytest.mark.parametrize(
    "options",
    [
        {"rule": "ftrl"},
        {"rule": "ft-ftrl:alpha=1"},
        {"loss": "hinge"},
        {"batch": 2},
        {"average": True},
        {"calibrate": True},
        {"centre": False},
        {"store": "hashed:10"},
        {"nonnegative": "*"},
        {"admit": 2},
        {"l1": 0.0},
    ],
)
def test_whatever_is_chosen_besides_l1_is_learned_row_by_row(options: dict[str, Any]) -> None:
    assert not can_solve(Recipe(**options))
    assert can_solve(Recipe(l1=0.7))


def same(one: Model, other: Model) -> bool:
    """Whether the weights are equal."""
    return bool(one.weights_frame().equals(other.weights_frame()) and one.intercept == other.intercept)


def test_a_number_of_passes_and_rows_beyond_memory_are_learned_as_ever() -> None:
    X = columns()
    y = labels(X, "logistic")
    once = thresher.train(X, y, passes=1)
    assert once.record is not None
    assert once.record.solved is None
    assert same(thresher.train(X, y, replay=1000), once)
    assert thresher.train(X, y).nonzero < once.nonzero


def test_lanes_folds_and_stores_are_runs() -> None:
    X = columns()
    y = labels(X, "logistic")
    alone = thresher.train(X, y, l1=0.6, holdout=0.2)
    found = thresher.path(X, y, l1="0.6:1.2:2", holdout=0.2)
    assert same(found.models[0], alone)
    assert found.models[0].record.solved == alone.record.solved
    direct = thresher.train(X, y, l1=0.6, holdout=0.2, store="direct")
    np.testing.assert_array_equal(direct.weights()[1], alone.weights()[1])
    folds = ModelSet([Recipe()], Folds(3))
    rows = rows_of(X, y)
    Trainer(folds, MemorySource([rows]), TrainingPlan(replay=ENOUGH)).run()
    outside = folds_of(0, ROWS, 3, 0) != 1
    one = thresher.train(rows.take(outside))
    np.testing.assert_array_equal(folds.models[1].weights()[1], one.weights()[1])
    ensemble = thresher.ensemble(X, y, models=2)
    assert ensemble.record.solved is not None
    assert all(len(model.weights()[0]) < ROWS for model in ensemble.models)


def test_cuts_threads_and_stops_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X = columns()
    y = labels(X, "squared")
    table = "\n".join(["y," + ",".join(f"c{k}" for k in range(COLUMNS))] + [
        ",".join(f"{v:.9g}" for v in (label, *row)) for label, row in zip(y, X, strict=True)
    ])  # fmt: skip
    data = tmp_path / "wide.csv"
    data.write_text(table + "\n")
    asked: dict[str, Any] = {"label": "y", "loss": "squared"}
    whole = thresher.train(data, **asked)
    assert whole.record is not None
    assert whole.record.solved is not None
    monkeypatch.setenv("NUMBA_NUM_THREADS", "3")
    for threads in (3, 1):
        again = thresher.train(data, threads=threads, **asked)
        assert same(again, whole)
        assert again.record == whole.record


def test_a_run_that_stops_is_solved_when_it_goes_on(tmp_path: Path) -> None:
    X = columns()
    rows = rows_of(X, labels(X, "logistic"))
    plan = TrainingPlan(replay=ENOUGH, checkpoint=tmp_path / "checkpoint", checkpoint_every=13)
    whole = Trainer(Model(), MemorySource([rows]), plan)
    whole.run()
    models, state = checkpoint.load(tmp_path / "checkpoint", "train")
    assert models.examples == 26
    again = Trainer(models, MemorySource([rows]), plan)
    again.continue_from(state)
    again.run()
    assert again.model.record.solved is not None
    assert same(again.model, whole.model)
    assert again.model.record == whole.model.record


def test_a_solution_leaves_the_state_that_passes_would() -> None:
    """Scales, noise and gradients are those of the rows, and the rule reads the solved weights from them."""
    X = columns()
    y, c = labels(X, "logistic"), np.random.default_rng(1).choice([0.5, 1.0, 3.0], ROWS)
    model = thresher.train(X, y, sample_weight=c, l1=0.7, dtype="float64", store="direct")
    x = np.float32(X - X.mean(0)).astype(np.float64)
    w = np.zeros(COLUMNS)
    w[model.weights()[0].astype(int)] = model.weights()[1]
    g = c * slopes("logistic", X @ w + model.intercept, y)
    at = (c**2 @ x) / (c**2).sum()
    left = ROWS - np.count_nonzero(w) - 1
    noise = np.sqrt((g**2).sum() / (c**2).sum() * ROWS / left)
    state = model.state()
    _, z, root, a, inverse, _ = state["S"][:COLUMNS].T
    clock = dict(zip(FtFtrl.CLOCK, state["clock"], strict=True))
    there = np.arange(COLUMNS) != 2
    scale = np.abs(x).max(0)
    spread = np.sqrt(c**2 @ (x - at) ** 2)
    np.testing.assert_allclose(inverse[there], 1 / scale[there], rtol=1e-5)
    scale[2] = a[2] = 1.0
    wanted = DEVIATIONS * noise * spread / scale
    np.testing.assert_allclose(root[there], wanted[there], rtol=1 / left)
    np.testing.assert_allclose(a[there], (root * clock["per rho"])[there])
    held = clock["threshold"] * (root + np.sqrt(clock["slopes"] / clock["t"]))
    soft = np.sign(z) * np.maximum(np.abs(z) - held, 0.0)
    alive = w != 0
    assert 0 < np.count_nonzero(alive) < ROWS
    np.testing.assert_allclose(-(soft * inverse * clock["kappa"] / a)[alive], w[alive], rtol=1e-9)
    assert not soft[~alive & there].any()
    pull = (x.T @ g)[~alive & there] * inverse[~alive & there]
    np.testing.assert_allclose(z[~alive & there], pull, atol=1e-3 * held.max())


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_rows_that_follow_do_not_ruin_a_solution(loss: str) -> None:
    """Neither few nor many of them, learned in one pass, from a file or by the model in memory."""
    ratios = []
    for seed in range(2):
        X = np.random.default_rng(seed).normal(size=(4 * ROWS + 500, 2 * COLUMNS))
        y = labels(X / 3 if loss == "squared" else 3 * X, loss, seed)
        first, more, held = slice(2 * ROWS), slice(2 * ROWS, 4 * ROWS), slice(4 * ROWS, None)
        model = thresher.train(X[first], y[first], loss=loss)
        assert model.record.solved is not None
        before = thresher.evaluate(model, X[held], y[held])["loss"]
        few = thresher.train(X[more][:5], y[more][:5], continue_from=model)
        many = thresher.train(X[more], y[more], continue_from=model)
        ratios.append([thresher.evaluate(one, X[held], y[held])["loss"] / before for one in (few, many)])
        model.learn(X[more], y[more])
        np.testing.assert_allclose(model.predict(X[held]), many.predict(X[held]), rtol=1e-3, atol=1e-3)
    assert np.mean(ratios, axis=0).max() < 1.05


def test_what_goes_on_goes_on_row_by_row() -> None:
    """The exception to law 11: rows that were solved are not kept, so A, then B is not A and B."""
    X = columns(rows=2 * ROWS)
    y = labels(X, "logistic")
    first = thresher.train(X[:ROWS], y[:ROWS])
    both = thresher.train(X[ROWS:], y[ROWS:], continue_from=first)
    assert both.record is not None
    assert both.record.solved is None
    assert both.record.continued == 1
    assert both.record.passes == 1
    assert not same(both, thresher.train(X, y))
    assert both.examples == 2 * ROWS


def test_several_outputs_are_solved_one_by_one() -> None:
    X = columns()
    Y = np.column_stack([labels(X, "squared"), np.full(ROWS, 4.0), -labels(X, "squared")])
    model = thresher.train(X, Y, loss="squared", outputs="values:3", dtype="float64")
    weights = model.weights()[1]
    one = thresher.train(X, Y[:, 0], loss="squared", dtype="float64")
    np.testing.assert_allclose(weights[:, 0][weights[:, 0] != 0], one.weights()[1], rtol=1e-6)
    assert not weights[:, 1].any()
    np.testing.assert_allclose(weights[:, 2], -weights[:, 0], rtol=1e-3, atol=1e-6)


def test_figures_are_those_of_the_model_that_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What solved the chosen model, not that with the lowest progressive loss; what is of the first pass."""
    X = columns()
    lines = [",".join(f"{v:.9g}" for v in row) for row in np.column_stack([labels(X, "squared"), X])]
    data, found = tmp_path / "wide.csv", str(tmp_path / "found.model")
    data.write_text("\n".join(["y," + ",".join(f"column{k}" for k in range(COLUMNS)), *lines]) + "\n")
    asked = [str(data), "--label", "y", "--loss", "squared", "-q"]
    for more in (["path", "--holdout", "0.2"], ["cv", "--folds", "2"]):
        assert status_of([more[0], *asked, "-m", found, "--l1", "0.7:1.4:2", *more[1:]]) == 0
        out = capsys.readouterr().out
        (chosen,) = re.findall(r"^command .*,l1=(.+?),", out, re.MULTILINE)
        (told,) = re.findall(r"^solved .* with (\S+) standard", out, re.MULTILINE)
        assert float(told) == pytest.approx(2 * float(chosen))
    assert status_of(["train", *asked, "-m", found]) == 0
    assert re.search(r"progressive loss +\S+ \(first pass\)", capsys.readouterr().out)
    assert status_of(["info", found]) == 0
    out = capsys.readouterr().out
    assert re.search(r"progressive loss +\S+ \(first pass\)", out)
    assert re.search(r"blank or header +1\n", out)
    assert ",...,column44 (shortened; JSON has it all)" in out
