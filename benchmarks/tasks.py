"""Real data sets in memory: a part to train on, and one to test on that nothing is chosen by."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from thresher.data import Chunk, concat, open_source

EVERY = 5
"""One row in five is held out: of the training part to choose by, of a lone file to test on."""


class Task(NamedTuple):
    """Files of a set, relative to the folder of all; without a `test` file, rows of `train` are held out."""

    name: str
    train: str
    test: str = ""
    outputs: str = "one"
    judge: str = "error"
    """what parameters are chosen by: ``error`` or ``auc``"""
    folds: int = 1
    """how many times a part of the training rows is held out to choose by: small sets need more than one"""

    def there(self, folder: Path) -> bool:
        return (folder / self.train).exists() and (folder / (self.test or self.train)).exists()

    def split(self, folder: Path) -> Split:
        """Training part and test part; every file is read once."""
        train = self._read(folder / self.train)
        if not self.test:
            return Split(self, *parted(train))
        return Split(self, train, self._read(folder / self.test))

    def _read(self, path: Path) -> Chunk:
        domain = "binary" if self.outputs == "one" else self.outputs
        return concat([concat([chunk]) for chunk in open_source(path, domain=domain).chunks()])


class Split:
    """What one learns from, and what it is then judged on."""

    def __init__(self, task: Task, train: Chunk, test: Chunk) -> None:
        self.task, self.train, self.test = task, train, test

    @cached_property
    def folds(self) -> list[Split]:
        """The training part alone, parted in each way: to choose parameters without the test part."""
        return [Split(self.task, *parted(self.train, fold)) for fold in range(EVERY)]

    @property
    def inner(self) -> list[Split]:
        """As many of them as the task asks for."""
        return self.folds[: self.task.folds]


def parted(chunk: Chunk, fold: int = 0) -> tuple[Chunk, Chunk]:
    """All rows but every `EVERY`-th, and those; `fold`, below `EVERY`, says which."""
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
