"""What a server does, without HTTP: predicts, and if asked learns from a log that it writes.

A model that only predicts is a `Service`; one that learns too is a `LearningService`.
"""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from thresher.data.chunk import Chunk
from thresher.data.labels import WordTable
from thresher.data.log import segments
from thresher.data.log import writer as writing
from thresher.data.log.origin import LogOrigin
from thresher.data.log.source import LiveLog
from thresher.data.stored import said
from thresher.engine.atomic import stamp
from thresher.learning.files import model_file
from thresher.learning.model import ensemble
from thresher.learning.model.prediction import BasePredictor
from thresher.options.option import Options, UsageError, settle
from thresher.options.serving import DROP, NEGATIVE, ServeCommand
from thresher.serving.appending import EXPIRED_AT_ONCE, MICRO, A, Ack, Appender, Draft, Memory, ticking
from thresher.serving.errors import RefusedError
from thresher.serving.learning import Learning
from thresher.serving.openapi import LabelsLearned

F64 = NDArray[np.float64]
NO_LEARNING = "this server does not learn: start it with --learn and --log DIR"
_LONG = 256 << 20
"""Bytes that take about a second to read"""
_TOGETHER = 0.02
"""Seconds for which rows are gathered that are learned in one turn, if they are few"""
_IDLE = 1.0
"""Seconds between two looks whether a snapshot is due, if nothing comes"""
_PARTS = 8
"""Files that the part of the log has which is kept"""
_SWEEP = 1.0
"""Seconds between two looks for rows that have waited long enough"""


class Status(NamedTuple):
    """The state of a service: figures, with what they mean, and why rows are not taken and learned."""

    ready: Annotated[bool, "whether the service can do its work"]
    learning: Annotated[bool, "whether rows are taken and learned"] = False
    reason: str = ""
    sequence: Annotated[int, "rows in the log that are on disk"] = 0
    learned: Annotated[int, "rows of the log that the model has learned"] = 0
    saved: Annotated[int, "rows of the log that the newest snapshot has learned"] = 0
    pending: Annotated[int, "rows that wait for their label"] = 0
    log_bytes: Annotated[int, "size of the log"] = 0
    sync_seconds: Annotated[float, "seconds that this took"] = 0.0
    syncs: Annotated[int, "times that the log was written to the disk"] = 0
    loss: Annotated[float, "mean loss of the last rows, each predicted before it was learned"] = math.nan
    predicted: Annotated[float, "mean prediction of the last rows, estimated from some of them"] = math.nan
    label: Annotated[
        float, "mean label of the last rows, which is the mean prediction of a calibrated model"
    ] = math.nan
    nonzero: Annotated[int, "weights of the model that are not zero"] = 0
    features_seen: Annotated[int, "features that the model has seen"] = 0
    skipped: Annotated[int, "rows that were not learned because the model would not have stayed finite"] = 0


@dataclass(frozen=True)
class Bounds:
    """How much a service that learns takes on, as far as no option says so."""

    requests: int = 10_000
    """in line"""
    behind: int = 1_000_000
    """rows on disk that are not learned yet"""
    keys: int = 1_000_000
    """requests that are known again by their key"""
    kept_bytes: int = 1 << 30
    """memory of rows whose label is still to come"""
    segment_bytes: int = writing.SEGMENT_BYTES
    """length at which a file of the log is followed by the next"""


DEFAULTS = settle(ServeCommand, {})


class Service:
    """A model that predicts; `start` lets it follow its file when that is replaced. `ModelFileError`."""

    learns = False
    reading: Callable[[], AbstractContextManager[None]] = staticmethod(nullcontext)
    """a context within which the model stays as it is"""
    words: WordTable | None = None
    """the classes, if what learns meets them on the way"""

    def __init__(self, path: Path, say: Callable[[str], None] = lambda line: None) -> None:
        self.path, self._say, self._closing = path, say, threading.Event()
        self._stamp, self._reason = stamp(path), ""
        self.model: Any = ensemble.load(path)

    def start(self) -> None:
        """Begin to look whether the file is replaced."""
        threading.Thread(target=self._follow, name="thresher-file", daemon=True).start()

    def _follow(self) -> None:
        while not self._closing.wait(_SWEEP):
            if (now := stamp(self.path)) == self._stamp:
                continue
            self._stamp = now
            try:
                found = ensemble.load(self.path)
            except (model_file.ModelFileError, OSError) as error:
                self._reason = f"not reloaded: {error}"
                self._say(self._reason)
                continue
            origins = [LogOrigin(one.layout, one.head.domain.name, "") for one in (self.model, found)]
            other = origins[0].unlike(origins[1])
            self.model, self._reason = found, ""
            self._say(f"reloaded {self.path}{other and f', a model of {other}'}")

    def margins(self, chunk: Chunk, model: BasePredictor | None = None) -> F64:
        """Margins of some rows, by `model`, which they were read for, or the one that serves."""
        found: F64 = (self.model if model is None else model).margins(chunk)
        return found

    def status(self) -> Status:
        """The state of the service."""
        return Status(ready=True, reason=self._reason, nonzero=self.model.nonzero)

    def snapshot(self) -> tuple[Path, int]:
        """The newest whole model file, and the row of the log that it goes up to."""
        return self.path, 0

    def learn(self, *args: Any) -> Any:
        """A service that does not learn refuses to. `RefusedError`."""
        raise RefusedError(404, NO_LEARNING)

    keep = label = learn

    def close(self) -> None:
        """End."""
        self._closing.set()


class LearningService(Service):
    """A model that learns from a log. `LogError`, `ModelFileError`, `UsageError`, OSError."""

    learns = True

    def __init__(
        self,
        path: Path,
        folder: Path,
        options: Options = DEFAULTS,
        say: Callable[[str], None] = lambda line: None,
        bounds: Bounds = Bounds(),
    ) -> None:
        """`options` are those of `ServeCommand`."""
        super().__init__(path, say)
        self.folder, self._bounds, self.unlabelled = folder, bounds, options["unlabelled"]
        self._patience, keep = int(options["wait"].amount * MICRO), options["keep"]
        """microseconds for which the label of a row is waited for"""
        self._keep = {"bytes": math.inf, "seconds": math.inf} | ({keep.of: keep.amount} if keep else {})
        """how much of the log is kept once it is learned and saved"""
        self._caught_up, self._untended = False, ""
        self._grown, self._complete = threading.Condition(), False
        head, what = self.model.head, self.unlabelled
        if isinstance(self.model, ensemble.Ensemble):
            raise UsageError(f"{path} holds several models, which can be served, but do not learn here")
        if what != DROP and head.domain.name != "binary":
            raise UsageError(f"--unlabelled {what} is for two classes, and this model has other labels")
        with open(path, "rb") as file:
            hashed = hashlib.file_digest(file, xxhash.xxh3_128).hexdigest()
        origin = LogOrigin(self.model.layout, head.domain.name, hashed)
        # files of an eighth of what is kept, so that removing whole ones keeps little more; but no less than
        # what a file begins with
        least = len(segments.header_bytes(segments.LogPosition(0, 0, 0), said(origin)))
        size = int(min(bounds.segment_bytes, max(self._keep["bytes"] / _PARTS, least)))
        self.writer = writing.LogWriter(folder, origin, size, self._keep["seconds"] / _PARTS)
        if self.writer.cut:
            say(f"{folder}: cut off {self.writer.cut:,} bytes of a write that was not completed")
        try:
            self._synced, self._begun = self.writer.end, (time.time(), ticking())
            if self.writer.end.offset > _LONG:
                say(f"reading {folder}, of {self.writer.end.offset >> 20:,} MB")
            if head.outputs.most:
                self.words = head.domain.of_words(self.model.classes).words
            kept = options["most_pending"], bounds.keys, bounds.kept_bytes
            self._memory = Memory(*kept, words=self.words, named=len(self.model.classes))
            self._memory.read(folder, self._patience)
            self._appender = Appender(self.writer, self._memory, bounds.requests, self._grow)
            self._learning = Learning(path, folder, self._wait, options["snapshot_every"], self._fault, say)
            self.model, self.reading = self._learning.model, self._learning.gate.reading
        except BaseException:
            self.writer.abandon()
            raise
        self._sweeper = threading.Thread(target=self._sweep, name="thresher-waiting", daemon=True)

    def start(self) -> None:
        """Begin to learn; ready once all that is in the log is learned."""
        self._learning.start()
        self._appender.thread.start()
        self._sweeper.start()

    def _grow(self, end: segments.LogPosition) -> None:
        with self._grown:
            self._synced = end
            self._grown.notify_all()

    def _wait(self, at: segments.LogPosition) -> segments.LogPosition | None:
        """The end of what is synced, once it is beyond a place; None when the service ends."""
        learning = self._learning
        while self._synced.offset <= at.offset:
            learning.note_learned(at)
            self._caught_up = True
            if self._complete:
                learning.save()
                return None
            with self._grown:
                self._grown.wait_for(lambda: self._synced.offset > at.offset or self._complete, _IDLE)
            learning.save_if_due()
        if self._synced.row - at.row < LiveLog.most_rows:  # a turn takes as long for one row as for a hundred
            self._closing.wait(_TOGETHER)
        return self._synced

    def _fault(self, reason: str) -> None:
        """The model learns no more, and predicts as in its newest snapshot."""
        self._caught_up = True
        self._say(f"learning has stopped: {reason}")
        with suppress(model_file.ModelFileError, OSError):
            # weights of the one that learned may not be finite
            self.model = ensemble.load(self.snapshot()[0])
        self._reason = reason

    def margins(self, chunk: Chunk, model: BasePredictor | None = None) -> F64:
        """Margins of some rows, each by the model as it is between two examples."""
        found = list[F64]()
        for piece in chunk.pieces(self._learning.at_once):
            with self.reading():
                found.append(self.model.margins(piece))
        return np.concatenate(found)

    def learn(self, chunk: Chunk, key: str = "") -> Future[Ack]:
        """Write rows to the log, which are then learned; answered once they are on disk. `RefusedError`."""
        rows = replace(chunk, labels=self._as_logged(chunk.labels))
        return self._submit(Draft.learn, rows, key)

    def _as_logged(self, labels: NDArray[np.float32]) -> NDArray[np.float32]:
        """Labels of two classes as the model's data had them, since the model answers as they were last."""
        if self.model.head.domain.name != "binary":
            return labels
        return np.where(labels > 0, labels, -1 if self.model.lowest_label < 0 else 0).astype(np.float32)

    def keep(self, ids: Sequence[str], chunk: Chunk) -> Future[Ack]:
        """Keep rows until their labels come; answered once they are on disk. `RefusedError`."""
        return self._submit(Draft.keep, ids, chunk)

    def label(
        self, several: Sequence[Sequence[str]], labels: NDArray[np.float32], importances: NDArray[np.float32]
    ) -> Future[list[LabelsLearned]]:
        """Learn rows that are kept with the labels of several requests; answered once they are on disk.

        With `NEGATIVE` they are learned once they have waited, with all that came before them: positives at
        once and negatives a wait later would be another share of positives, whenever the traffic changes.
        `RefusedError`.
        """
        later = self.unlabelled == NEGATIVE
        return self._submit(Draft.label, several, self._as_logged(labels), importances, later)

    def _submit(self, work: Callable[..., A], *given: object) -> Future[A]:
        """Put in line what is asked of a `Draft`, unless learning has stopped or is far behind."""
        if self._reason:
            raise RefusedError(503, f"learning has stopped: {self._reason}")
        if (behind := self._synced.row - self._learning.learned) >= self._bounds.behind:
            raise RefusedError(429, f"{behind:,} rows are still to be learned", 1.0)
        return self._appender.submit(work, *given)

    def _sweep(self) -> None:
        while not self._closing.wait(_SWEEP):
            self.tend(ticking() - self._patience)

    def tend(self, before: int) -> None:
        """Let go rows from before a time by `ticking`, and files of the log that are not wanted any more."""
        label = float(self._as_logged(np.zeros(1, np.float32))[0])
        negative = label if self.unlabelled == NEGATIVE else None
        try:
            while self._appender.submit(Draft.expire, before, negative).result() == EXPIRED_AT_ONCE:
                pass
            # remove the oldest segments if the log is larger than wanted, and nothing in them is needed
            paths = segments.segment_paths(self.folder)
            begun, ticked = self._begun  # a clock that is set forward must not make files old
            now = min(time.time(), begun + (ticking() - ticked) / MICRO)
            kept = [*self._memory.kept.values()]
            needed = min([self._learning.saved_offset, *(one.offset for one in kept)])
            size = sum(path.stat().st_size for path in paths)
            for path, after in pairwise(paths):
                found = path.stat()
                old = now - found.st_mtime > self._keep["seconds"]
                if not (old or size > self._keep["bytes"]) or int(after.stem) > needed:
                    break
                path.unlink()
                size -= found.st_size
                self._say(f"removed {path.name}, of {found.st_size:,} bytes, which is learned and saved")
            self._untended = ""
        except RefusedError:
            return
        except (OSError, segments.LogError) as error:
            if str(error) != self._untended:
                self._untended = str(error)
                self._say(self._untended)

    def status(self) -> Status:
        """The state of the service."""
        learning, appender = self._learning, self._appender
        lately = learning.lately()
        looked = lately.looked or math.nan
        reason = self._reason or appender.trouble
        return Status(
            ready=self._caught_up and not self._closing.is_set(),
            learning=not reason,
            reason=reason or learning.trouble or self._untended,
            sequence=self._synced.row,
            learned=learning.learned,
            saved=learning.saved,
            pending=len(self._memory.kept),
            log_bytes=self._synced.offset,
            sync_seconds=appender.sync_seconds,
            syncs=appender.syncs,
            loss=lately.tally.average,
            predicted=lately.predicted / looked,
            label=lately.labels / looked,
            nonzero=learning.nonzero,
            features_seen=learning.model.features_seen,
            skipped=learning.skipped,
        )

    def snapshot(self) -> tuple[Path, int]:
        """The newest whole model file, and the row of the log that it goes up to."""
        file = self._learning.file
        return (file, self._learning.saved) if file.exists() else (self.path, 0)

    def close(self) -> None:
        """Write what is in line, learn it, save the model, and end."""
        self._closing.set()
        self._sweeper.join()
        self._appender.close()
        with self._grown:
            self._complete = True
            self._grown.notify_all()
        self._learning.thread.join()  # once `_wait` has returned None
