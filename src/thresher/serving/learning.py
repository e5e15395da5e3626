"""The thread that learns: an ordinary training run whose data are the log, for as long as it grows.

So what it learns is what ``thresher train --continue MODEL LOGDIR`` learns, and a server that was killed goes
on like a training that was: from a checkpoint, with the rest of the log.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from thresher.data.chunk import Chunk, StreamPosition
from thresher.data.errors import reason_of
from thresher.data.log import segments
from thresher.data.log.source import LiveLog, NoExamplesError
from thresher.learning.evaluation.curves import dot
from thresher.learning.files import model_file
from thresher.learning.model.model import Model
from thresher.learning.training import progress
from thresher.learning.training.ahead import learn_anything
from thresher.options.option import settle
from thresher.options.serving import Quantity
from thresher.options.training import TrainCommand
from thresher.plans.run import Plan

_PATIENCE = 0.005
"""Seconds that learning waits for readers, of whom others may come all the time"""
MODEL = "model"
"""The file of the newest whole model, in the folder of the log"""
_CHECKPOINT = "state"
"""The checkpoint to go on from, there too"""
_AT_ONCE = 1 << 15
"""Values that are learned or predicted in one turn, for one output, which take about a millisecond"""
_LOOKED_AT = 64
"""Rows of a piece, drawn at random, that are predicted before it is learned, to measure calibration"""
_WINDOW = 10_000
"""Rows over which the progressive loss and the calibration are told"""
MOST_ROWS = 1_000_000
"""Rows after which a snapshot is written, so that a restart takes seconds"""


@dataclass(eq=False)
class Gate:
    """Lets one thread at a time read or change a model.

    A plain lock would be taken again by the thread that learns before any reader wakes up. Here that thread
    waits until the readers that stand in line have been let in, or its `patience` is over.
    """

    patience: float = _PATIENCE
    _turn: threading.Condition = field(default_factory=threading.Condition)
    _waiting: deque[None] = field(default_factory=deque)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Within this context nothing is learned."""
        self._waiting.append(None)
        with self._turn:
            self._waiting.pop()
            if not self._waiting:
                self._turn.notify()
            yield

    def pause(self) -> None:
        """While learning: let the readers in that stand in line."""
        if self._waiting:
            self._turn.wait_for(lambda: not self._waiting, self.patience)

    @contextmanager
    def learning(self) -> Iterator[None]:
        """Within this context nothing is read."""
        with self._turn:
            self.pause()
            yield


class _Unheard(progress.Ui):
    """The process, whose signals are not for the training: the service ends it."""

    hears = False


class Learning:
    """Learns what is in the log, in a thread of its own; `model` may be read within ``gate.reading()``."""

    def __init__(
        self,
        model: Path,
        folder: Path,
        wait: Callable[[segments.LogPosition], segments.LogPosition | None],
        every: Quantity,
        fault: Callable[[str], None],
        say: Callable[[str], None],
    ) -> None:
        """`model` is the file to go on with, unless `folder` has a checkpoint; `wait` as in `LiveLog`.

        A snapshot is written `every` so many rows or seconds, if anything is new. `fault` is called if
        learning ends with an error, with what it is.
        """
        self.gate, self.trouble, self._say = Gate(), "", say
        """`trouble`: why the last snapshot was not written; empty: it was"""
        self._every = {"rows": MOST_ROWS, "seconds": math.inf} | {every.of: every.amount}
        self._tell, self.file = fault, folder / MODEL
        """`file`: the newest whole model"""
        source, state = LiveLog(folder, wait, self._turn), folder / _CHECKPOINT
        again = state.exists()
        if source.begin.row and not again:
            raise segments.LogError(
                f"{folder}: begins with row {source.begin.row + 1:,}, and {state.name}, which has learned"
                " those before, is missing"
            )
        given = {"continue_from": model, "passes": 1, "checkpoint": state, "resume": again}
        try:
            self._run = Plan(settle(TrainCommand, given)).prepare(source, _Unheard())
        except model_file.ModelFileError as error:
            if not again or state.name not in str(error):
                raise
            remedy = (
                "put back one from a backup"
                if source.begin.row
                else "remove it, and the log is learned again"
            )
            raise segments.LogError(f"{error}: {remedy}") from error
        self.model: Any = self._run.trainer.model
        """the model that learns"""
        source.domain = self.model.head.domain
        trainer = self._run.trainer
        self.at_once = trainer.at_once = max(1, _AT_ONCE // self.model.head.count)
        """values that are learned or predicted in one turn"""
        trainer.pause = self.gate.pause
        recent = trainer.state.recent
        self._lock, self._recent, self._rows = threading.Lock(), deque([recent]), recent.rows
        """sums over the last rows in parts, beginning with those of an earlier run"""
        self.learned = self.saved = self._place.line
        """the rows of the log that are learned, and those of the newest snapshot"""
        self.skipped = trainer.state.position.report.skipped
        """rows that would have made the model not finite, and were not learned"""
        self.saved_offset = self._place.offset
        """where the log is read from after a restart"""
        self.nonzero = self.model.nonzero
        """weights that are not zero, in the newest snapshot"""
        self._when, self._draw = time.monotonic(), np.random.default_rng(0)
        self.thread = threading.Thread(target=self._work, name="thresher-learning", daemon=True)

    @property
    def _place(self) -> StreamPosition:
        return self._run.trainer.state.position.place or StreamPosition(0, 0, 0)

    def note_learned(self, at: segments.LogPosition) -> None:
        """All before a place is learned: records without rows need not be read again, and may be removed."""
        state = self._run.trainer.state
        if at.offset > self._place.offset:
            state.position = replace(state.position, place=StreamPosition(0, at.offset, at.row))

    def lately(self) -> progress.Recent:
        """Sums over the last rows."""
        with self._lock:
            rows, tallies, *others = zip(*self._recent, strict=True)
        return progress.Recent(sum(rows), progress.total(tallies), *map(sum, others))

    def start(self) -> None:
        """Compile what is not compiled yet, then begin to learn."""
        learn_anything(Model(self.model.recipe))
        self.thread.start()

    @contextmanager
    def _turn(self, chunk: Chunk) -> Iterator[None]:
        """Learn a chunk, some rows of which are predicted before; they stand for all."""
        with self.gate.learning():
            before, head, some = self.model.tally, self.model.head, chunk
            if len(chunk) > _LOOKED_AT:
                some = chunk.take(self._draw.choice(len(chunk), _LOOKED_AT, replace=False))
            seen, predicted, labels, looked = float(some.weights.sum(dtype=np.float64)), 0.0, 0.0, 0.0
            if head.count == 1 and seen:
                output = "probability" if head.has_probabilities else "label"
                found = np.asarray(self.model.respond(self.model.margins(some), output), np.float64)
                each = chunk.weights.astype(np.float64)
                looked = float(each.sum())
                predicted = dot(found, some.weights) * looked / seen
                labels = dot(each, chunk.labels > 0 if head.has_probabilities else chunk.labels)
            yield
        report, skipped = self._run.trainer.state.position.report, self.skipped
        self.learned, self.skipped = self._place.line, report.skipped
        if self.skipped.bit_length() > skipped.bit_length():
            last = report.first_bad[-1]
            self._say(f"rows that were not learned: {self.skipped:,}; row {last.line:,}: {last.found}")
        with self._lock:
            self._recent.append(
                progress.Recent(len(chunk), self.model.tally.since(before), predicted, labels, looked)
            )
            self._rows += len(chunk)
            while self._rows - self._recent[0].rows >= _WINDOW:
                self._rows -= self._recent.popleft().rows
        self.save_if_due()

    def save_if_due(self) -> None:
        """Write a snapshot if it is time, between two pieces."""
        rows, waited = self.learned - self.saved, time.monotonic() - self._when
        due = rows >= self._every["rows"] or waited >= self._every["seconds"]
        if due and self._place.offset > self.saved_offset:
            self.save()

    def save(self, *, checkpoint: bool = True) -> None:
        """Write a checkpoint, and the model as it would be if the log ended here; say once what is wrong."""
        trainer, trouble, self._when = self._run.trainer, "", time.monotonic()
        try:
            if checkpoint:
                trainer.state.recent = self.lately()
                trainer.save_checkpoint()
            ended = trainer.as_if_ended()
            ended.save(self.file)
            self.nonzero = ended.nonzero
            self.saved, self.saved_offset = self.learned, self._place.offset
        except OSError as error:  # such as a full disk: the log has all that a later snapshot needs
            trouble = f"no snapshot was written: {reason_of(error)}"
        if trouble and trouble != self.trouble:
            self._say(trouble)
        self.trouble = trouble

    def _work(self) -> None:
        try:
            if self.saved:  # the process before may have been killed between the two files
                self.save(checkpoint=False)
            self._run.trainer.run()  # `wait` has saved what it leaves
        except NoExamplesError:
            return
        except Exception as error:  # noqa: BLE001  whatever it is, predictions go on and the operator is told
            self._tell(str(error) or type(error).__name__)
