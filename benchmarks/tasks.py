"""Real data sets in memory: a training part, and a test part that no parameter is chosen on."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from thresher.data import Chunk, concat, open_source

EVERY = 5
"""One row in five is held out: of the training part to choose parameters, of a single file to test."""


class Task(NamedTuple):
    """The files of a data set, relative to the data folder; without `test`, rows of `train` are held out."""

    name: str
    train: str
    test: str = ""
    outputs: str = "one"
    judge: str = "error"
    """the figure by which parameters are chosen: ``error`` or ``auc``"""
    folds: int = 1
    """number of folds of the training rows used for choosing; small sets need more than one"""

    def exists(self, folder: Path) -> bool:
        return (folder / self.train).exists() and (folder / (self.test or self.train)).exists()

    def split(self, folder: Path) -> Split:
        """Read each file once; return training part and test part."""
        train = self._read(folder / self.train)
        if not self.test:
            return Split(self, *split_rows(train))
        return Split(self, train, self._read(folder / self.test))

    def _read(self, path: Path) -> Chunk:
        domain = "binary" if self.outputs == "one" else self.outputs
        return concat([concat([chunk]) for chunk in open_source(path, domain=domain).chunks()])


class Split:
    """A training part and a test part."""

    def __init__(self, task: Task, train: Chunk, test: Chunk) -> None:
        self.task, self.train, self.test = task, train, test

    @cached_property
    def folds(self) -> list[Split]:
        """The training part split in each way: to choose parameters without the test part."""
        return [Split(self.task, *split_rows(self.train, fold)) for fold in range(EVERY)]

    @property
    def inner(self) -> list[Split]:
        """The first `Task.folds` of them."""
        return self.folds[: self.task.folds]


def split_rows(chunk: Chunk, fold: int = 0) -> tuple[Chunk, Chunk]:
    """Return all rows except every `EVERY`-th, and those; `fold` (below `EVERY`) is the offset."""
    held = np.arange(len(chunk)) % EVERY == EVERY - 1 - fold
    return chunk.take(~held), chunk.take(held)


def _reviews(name: str) -> Task:
    train, test = (f"amazon-reviews/bow5000/{name}_{part}.svmlight.gz" for part in ("train", "test"))
    return Task(name, train, test, folds=EVERY)


TASKS = (
    Task("RCV1-CCAT", "rcv1/rcv1_ccat_train.svm.gz", "rcv1/rcv1_ccat_test.svm.gz"),
    Task("news20", "news20-libsvm/news20.gz", outputs="classes:1-20"),
    _reviews("books"),
    _reviews("dvd"),
    Task(
        "Criteo",
        "criteo/criteo_hashed20_0-19999.svm.gz",
        "criteo/criteo_hashed20_20000-39999.svm.gz",
        judge="auc",
    ),
)
