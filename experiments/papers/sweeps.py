"""Sweeps: parameters chosen on training rows, and the figures of the choice on test rows."""

from __future__ import annotations

import warnings
from itertools import product

from benchmarks import learners
from benchmarks.choice import filled, ladders
from benchmarks.learners import Figures, mean
from benchmarks.tasks import EVERY, Split, Task, split_rows
from experiments.papers.sets import Parts
from thresher import TroubleWarning

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
