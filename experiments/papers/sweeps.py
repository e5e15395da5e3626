"""Sweeps: parameters chosen on training rows, and the figures of the choice on test rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from benchmarks import learners
from benchmarks.choice import filled, ladders
from benchmarks.learners import UNKNOWN, Figures, figures, mean
from benchmarks.tasks import EVERY, Split, Task, split_rows
from experiments.papers.sets import Parts
from thresher import Model, TroubleWarning
from thresher.data import Chunk
from thresher.learning.evaluation.evaluate import score
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe
from thresher.plans.folds import Folds, FoldScores

_TASK = Task("one of two classes", "")


def commands(template: str) -> list[str]:
    """All commands of a template such as ``--rule fobos:l1=1e-6|1e-5 --rate inverse-sqrt:1|10``."""
    return [filled(template, place) for place in product(*(range(len(rungs)) for rungs in ladders(template)))]


def scored(command: str, parts: Parts, passes: int = 1) -> Figures:
    """Error, non-zeros and AUC on the test rows after training with these options of ``thresher train``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TroubleWarning)  # a sweep tries bad settings, too
        return learners.thresher(Split(_TASK, parts.train, parts.test), command, passes)


def held_out(command: str, parts: Parts, passes: int = 1, folds: int = 1) -> Figures:
    """The same on held-out training rows: means over the first `folds` of five ways to hold out a fifth."""
    assert 1 <= folds <= EVERY
    splits = [Parts(*split_rows(parts.train, fold)) for fold in range(folds)]
    return mean([scored(command, split, passes) for split in splits])


def chosen(template: str, parts: Parts, passes: int = 1, folds: int = 1) -> str:
    """The command of a template with the fewest errors on held-out training rows; of equals, the sparsest."""
    return min(
        commands(template),
        key=lambda command: (
            (found := held_out(command, parts, passes, folds)).error,
            found.nonzero,
        ),
    )


def side_by_side(recipes: Sequence[Recipe], parts: Parts, passes: int = 1) -> list[Figures]:
    """Figures of each recipe on the test rows; all learn from one reading, in file order."""
    lanes = ModelSet(recipes)
    _taught(lanes, parts.train, passes)
    return [
        figures(parts.test, model.recipe.outputs, model.predict(parts.test), model.nonzero, False)
        for model in lanes.models
    ]


def errors_of_folds(recipes: Sequence[Recipe], rows: Chunk, folds: int, passes: int = 1) -> list[float]:
    """Mean error of each recipe over the folds of `rows`, from one reading."""
    sets = ModelSet(recipes, share := Folds(folds))
    _taught(sets, rows, passes)
    judged = FoldScores(sets, share, [rows]).figures
    return [float(np.mean([one["error"] for one in found])) for found in judged]


def _taught(learner: ModelSet, rows: Chunk, passes: int) -> None:
    for number in range(1, passes + 1):
        learner.begin_pass(number)
        learner.learn(rows, again=number > 1)
    learner.finish()


class Tried(NamedTuple):
    """A recipe after some passes."""

    recipe: Recipe
    passes: int
    error: float
    """mean over the folds of the training rows; of real targets, the mean squared error"""
    nonzero: float
    """mean over the models of the folds"""
    auc: float
    """mean over the folds; NaN unless there are two classes"""
    test: Figures
    """of the model of all training rows, on the test rows; `Figures.error` as above"""


def cross_validated(
    recipes: Sequence[Recipe], parts: Parts, passes: Sequence[int], folds: int = 10
) -> list[Tried]:
    """All recipes after each of the numbers of `passes`, ascending. Those that diverge are left out."""
    share, found = Folds(folds, whole=True), []
    learning = ModelSet(recipes, share)
    *outside, whole = learning.parts
    for number in range(1, passes[-1] + 1):
        learning.begin_pass(number)
        learning.learn(parts.train, again=number > 1)
        if number not in passes:
            continue
        for k, judged in enumerate(FoldScores(learning, share, [parts.train]).figures):
            if len(judged) == folds:
                error, area = (float(np.mean([of(one) for one in judged])) for of in (_error, _auc))
                left = float(np.mean([part.models[k].nonzero for part in outside]))
                test = _tested(whole.models[k], parts)
                found.append(Tried(recipes[k], number, error, left, area, test))
    return found


def _error(figures: Mapping[str, Any]) -> float:
    return float(figures.get("error", figures["loss"]))


def _auc(figures: Mapping[str, Any]) -> float:
    return float(figures.get("auc") or UNKNOWN)


def _tested(model: Model, parts: Parts) -> Figures:
    figures = score(model, [parts.test]).figures()
    return Figures(_error(figures), model.nonzero, _auc(figures))
