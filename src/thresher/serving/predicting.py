"""From bodies of rows to answers: reading, predicting, writing; small bodies that arrive together at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple, TypeVar

from thresher.data.bodies import Rows
from thresher.data.chunk import concat
from thresher.data.errors import DataError
from thresher.learning.inspection.explanation import explain
from thresher.learning.model.prediction import BasePredictor
from thresher.serving.answers import Answers, lines_of
from thresher.serving.appending import Ack
from thresher.serving.bodies import Bodies
from thresher.serving.errors import Answer, RefusedError, json_answer, refusal
from thresher.serving.metrics import Metrics
from thresher.serving.openapi import ARROW, EXPLAIN, LINES, RowsLearned
from thresher.serving.reading import Asked
from thresher.serving.service import Service

T = TypeVar("T")
_ERRORS = 10
"""bad rows that an answer names"""


class BatchKind(NamedTuple):
    """What the requests of a batch have in common."""

    path: str
    media: str
    """the media type of their bodies"""
    output: str = ""
    ids: str = ""
    """the column of the ids by which rows are kept"""
    top: str = ""
    """how many features an explanation names"""
    arrow: bool = False
    """whether the answer is an Arrow stream"""
    alone: bool = False
    """whether each is done by itself"""

    @classmethod
    def of(cls, asked: Asked) -> BatchKind:
        """What a request asks for."""
        output, ids, top = (asked.query.get(name, "") for name in ("output", "ids", "top"))
        found = cls(asked.path, asked.media, output, ids, top, ARROW in asked.header(b"accept"))
        unusual = found.top or found.arrow or found.output == EXPLAIN or asked.header(b"content-encoding")
        return found._replace(alone=bool(unusual))


class Later(NamedTuple):
    """Answers that can be given once some work is done."""

    work: Sequence[Future[Any]]
    answers: Callable[[], list[Answer] | Later]


class _Serving(NamedTuple):
    """A model that serves, and what reads rows and writes answers for it."""

    model: BasePredictor
    bodies: Bodies
    answers: Answers


@dataclass(eq=False)
class Predictions:
    """Predicts the rows of bodies; threads may use it at once."""

    service: Service
    most_rows: int
    metrics: Metrics
    _own: _Serving | None = field(default=None, init=False)

    @property
    def now(self) -> _Serving:
        """The model that serves, which another may have replaced: each request takes it from here once."""
        own, model = self._own, self.service.model
        if own is None or own.model is not model:
            bodies = Bodies(model, self.most_rows, self.service.words)
            self._own = own = _Serving(model, bodies, Answers(model))
        return own

    def predict(self, body: bytes, kind: BatchKind) -> tuple[Answer, Future[Ack] | Answer]:
        """The answer to a body of rows, perhaps as an Arrow stream, and what it waits for. `RefusedError`."""
        model, bodies, answers = self.now
        answers.check(kind.output, kind.top)
        if kind.output == EXPLAIN and kind.arrow:
            raise RefusedError(406, "explanations are lines of JSON, not an Arrow stream")
        rows = bodies.read(body, kind.media, labelled=False, ids=kind.ids)
        self._count(rows, "predicted")
        if kind.output != EXPLAIN:
            written = answers.write(rows, self.service.margins(rows.chunk, model), kind.output, kind.arrow)
        else:
            names = bodies.names(body, kind.media, rows.chunk.keys)
            with self.service.reading():
                found = explain(model, rows.chunk, names)
            written = lines_of(rows, found.told(int(kind.top) if kind.top else None))
        answer = _answer_rows(rows, written, ARROW if kind.arrow else LINES)
        return answer, self.service.keep(rows.good_ids, rows.chunk) if kind.ids else answer

    def labelled(self, body: bytes, media: str) -> Rows:
        """The rows of a body, with labels; at least one is good. `RefusedError`."""
        rows = self.now.bodies.read(body, media, labelled=True)
        self._count(rows, "labelled")
        if not rows.good:
            where = (f"line {one.line}, column {one.column}: {one.error}" for one in rows.bad)
            raise RefusedError(400, next(where, "the body has no rows"))
        return rows

    def warm(self) -> None:
        """Load or compile the code for small bodies, so that the first clients need not wait."""
        for body, media in self.now.bodies.examples():
            for times in (1, 2):
                self.work([body] * times, [""] * times, BatchKind("/predict", media))
            with suppress(DataError, RefusedError):
                self.predict(body, BatchKind("/predict", media, EXPLAIN))
                if self.service.learns:
                    self.now.bodies.read(body, media, labelled=True)
        self.metrics.rows.clear()

    def kind_of(self, asked: Asked) -> BatchKind | None:
        """What a request asks for, if its body can be answered together with others; None if not."""
        kind, bodies = asked.kind, self.now.bodies
        return None if kind is None or kind.alone or not bodies.is_loaded(kind.media) else kind

    def work(self, bodies: Sequence[bytes], keys: Sequence[str], kind: BatchKind) -> list[Answer] | Later:
        """The answers to several bodies; to rows that are kept, and to labels, once they are on disk."""
        if kind.path == "/learn":
            return self._learn(bodies, keys, kind.media)
        if kind.path == "/label":
            return self._label(bodies)
        return self._predict(bodies, kind)

    def _learn(self, bodies: Sequence[bytes], keys: Sequence[str], media: str) -> list[Answer] | Later:
        """Let the service learn the rows of several bodies, each with its key, if any.

        Bodies without a key become one record of the log, so that 64 clients cost the log and the learner as
        much as one does.
        """
        if not self.service.learns:
            return [_attempt(self.service.learn)] * len(bodies)
        several = self.now.bodies.read_together(bodies, media, labelled=True) if len(bodies) > 1 else None
        read: Sequence[Rows | Answer]
        if several is not None and all(rows.good for rows in several):
            self._count(several[0]._replace(last=len(several[0].whole), first=0), "labelled")
            self.metrics.rows.labels("refused").inc(sum(len(rows.bad) for rows in several[1:]))
            read = several
        else:
            read = [_attempt(self.labelled, body, media) for body in bodies]
        pairs = [*zip(read, keys, strict=True)]
        plain = [one for one, key in pairs if isinstance(one, Rows) and not key]
        if plain:
            whole = plain[0].whole
            alike = all(one.whole is whole for one in plain) and sum(one.good for one in plain) == len(whole)
            shared = _attempt(self.service.learn, whole if alike else concat([one.chunk for one in plain]))
        # the record of each, or why there is none; and where the rows begin in it
        acks, begins, at = list[Future[Ack] | Answer](), list[int](), 0
        for one, key in pairs:
            begins.append(0 if key else at)
            if isinstance(one, Answer):
                acks.append(one)
            elif key:
                acks.append(_attempt(self.service.learn, one.chunk, key))
            else:
                acks.append(shared)
                at += one.good

        def answer(one: tuple[Rows, int], ack: Ack) -> Answer:
            rows, first = one[0], ack.first + one[1]
            count, errors = 0 if ack.repeated else rows.good, rows.bad[:_ERRORS]
            last = first + rows.good - 1
            return json_answer(RowsLearned(first, last, count, len(rows.bad), errors, ack.repeated))

        return _later([*zip(read, begins, strict=True)], acks, answer)

    def _predict(self, bodies: Sequence[bytes], kind: BatchKind) -> list[Answer] | Later:
        """Predict the rows of several bodies; with ids, keep them until their labels come, in one record."""
        model, reader, answers = self.now
        several = reader.read_together(bodies, kind.media, ids=kind.ids) if len(bodies) > 1 else None
        if several is None:
            return self._predict_each(bodies, kind)
        answers.check(kind.output)
        whole = several[0].whole
        margins = self.service.margins(whole, model)
        ids = [one for rows in several for one in rows.good_ids] if kind.ids else []
        kept = _attempt(self.service.keep, ids, whole) if kind.ids else None
        written = [*map(_answer_rows, several, answers.together(several, margins, kind.output))]

        def json_answer() -> list[Answer] | Later:
            if isinstance(kept, Answer) or (kept and isinstance(_attempt(kept.result), Answer)):
                return self._predict_each(bodies, kind)  # some may be taken
            self.metrics.rows.labels("predicted").inc(len(whole))
            return written

        return Later([kept], json_answer) if isinstance(kept, Future) else json_answer()

    def _predict_each(self, bodies: Sequence[bytes], kind: BatchKind) -> list[Answer] | Later:
        """The answers to bodies, whatever is wrong with them."""
        found = [_attempt(self.predict, body, kind) for body in bodies]
        pairs = [(one, one) if isinstance(one, Answer) else one for one in found]
        answers, work = zip(*pairs, strict=True)
        return _later(answers, work, lambda answer, _: answer)

    def _label(self, bodies: Sequence[bytes]) -> list[Answer] | Later:
        """Let the service learn kept rows with the labels of several bodies, in one record."""
        reader = self.now.bodies
        several = reader.read_labels_together(bodies) if len(bodies) > 1 else None
        read: Sequence[Rows | Answer]
        read = several or [_attempt(reader.read_labels, one) for one in bodies]
        good = [one for one in read if isinstance(one, Rows)]
        if not good:
            return [one for one in read if isinstance(one, Answer)]
        whole, place = several[0].whole if several else concat([one.chunk for one in good]), count()
        done = _attempt(self.service.label, [one.ids for one in good], whole.labels, whole.weights)
        work = [one if isinstance(one, Answer) else done for one in read]
        return _later(read, work, lambda _, found: json_answer(found[next(place)]))

    def _count(self, rows: Rows, fate: str) -> None:
        self.metrics.rows.labels(fate).inc(len(rows.chunk))
        self.metrics.rows.labels("refused").inc(len(rows.bad))
        self.metrics.ignored.inc(len(rows.unknown))


def _attempt(work: Callable[..., T], *given: object) -> T | Answer:
    """What some work gives, or the answer that tells why there is nothing."""
    try:
        return work(*given)
    except Exception as error:  # noqa: BLE001  (each client gets an answer)
        return refusal(error)


def _later(
    found: Sequence[object], work: Sequence[Future[Any] | Answer], answer: Callable[[Any, Any], Answer]
) -> list[Answer] | Later:
    """An `answer` to each of what was found, given the result of its work, unless that is refused."""
    waited = {one: None for one in work if not isinstance(one, Answer)}

    def answers() -> list[Answer]:
        done = {one: _attempt(one.result) for one in waited}
        ends = [one if isinstance(one, Answer) else done[one] for one in work]
        pairs = zip(found, ends, strict=True)
        return [end if isinstance(end, Answer) else answer(one, end) for one, end in pairs]

    return Later([*waited], answers) if waited else answers()


def _answer_rows(rows: Rows, body: bytes, media: str = LINES) -> Answer:
    """The answer to rows, with the status of an error if none of them is good."""
    return Answer(200 if rows.good or not rows.bad else 400, body, media)
