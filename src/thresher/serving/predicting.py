"""From bodies of rows to answers: reading, predicting, writing; small bodies that arrive together at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from thresher.data.chunk import Chunk, concat
from thresher.serving.answers import Answers
from thresher.serving.appending import Ack
from thresher.serving.bodies import Bodies, Rows
from thresher.serving.errors import Answer, RefusedError, refusal
from thresher.serving.inference import Inference
from thresher.serving.metrics import Metrics
from thresher.serving.openapi import ARROW, EXPLAIN, LINES, RowsLearned, WrongRow
from thresher.serving.reading import Asked
from thresher.serving.service import Service

_ERRORS = 10
"""bad rows that an answer names"""
_REMEMBERED = 256
"""Kinds of requests, of which clients can make as many as they like"""


class BatchKind(NamedTuple):
    """What the requests of a batch have in common."""

    path: str
    media: str
    """the media type of their bodies"""
    output: str


class Later(NamedTuple):
    """Answers that can be given once some work is done."""

    work: Sequence[Future[Any]]
    answers: Callable[[], list[Answer]]


class Predicted(NamedTuple):
    """Rows with their margins."""

    rows: Rows
    margins: Any
    written: Callable[[bool], bytes]
    """the answer; whether as an Arrow stream. `RefusedError`"""


class _Serving(NamedTuple):
    """A model that serves, and what reads rows and writes answers for it."""

    model: Any
    bodies: Bodies
    answers: Answers
    kinds: dict[tuple[bytes, ...], BatchKind | None]


class Predictions:
    """Predicts the rows of bodies; threads may use it at once."""

    def __init__(self, service: Service, most_rows: int, metrics: Metrics) -> None:
        self._service, self._most, self._metrics = service, most_rows, metrics
        self._own: _Serving | None = None

    @property
    def _now(self) -> _Serving:
        """The model that serves, which another may have replaced: each request takes it from here once."""
        own, model = self._own, self._service.model
        if own is None or own.model is not model:
            self._own = own = _Serving(model, Bodies(model, self._most), Answers(model), {})
        return own

    def predict(self, body: bytes, media: str, output: str = "", ids: str = "", top: str = "") -> Predicted:
        """The rows of a body and their margins. `RefusedError`."""
        model, bodies, answers, _ = self._now
        answers.check(output, top)
        rows = bodies.read(body, media, labelled=False, ids=ids)
        self._count(rows, "predicted")
        if output != EXPLAIN:
            margins = self._service.margins(rows.chunk, model)

            def written(arrow: bool) -> bytes:
                return (answers.stream if arrow else answers.lines)(rows, margins, output)

            return Predicted(rows, margins, written)
        try:
            names = bodies.names(body, media, rows.chunk.keys)
            found = self._service.explain(rows.chunk, names, model)
        except ValueError as error:
            raise RefusedError(400, error.args[0]) from error

        def explained(arrow: bool) -> bytes:
            if arrow:
                raise RefusedError(406, "explanations are lines of JSON, not an Arrow stream")
            return answers.explained(rows, found, int(top) if top else None)

        return Predicted(rows, found.margins, explained)

    @property
    def inference(self) -> Inference:
        """The Open Inference Protocol for the model that serves."""
        model, bodies, answers, _ = self._now
        return Inference(model, self._service.name, bodies, answers)

    def infer(self, body: bytes) -> bytes:
        """The answer to a request of that protocol. `RefusedError`."""
        inference = self.inference
        request, rows = inference.read(body)
        self._count(rows, "predicted")
        return inference.answer(request, self._service.margins(rows.chunk, inference.model))

    def labelled(self, body: bytes, media: str) -> Rows:
        """The rows of a body, with labels. `RefusedError`."""
        rows = self._now.bodies.read(body, media, labelled=True)
        self._count(rows, "labelled")
        return rows

    def warm(self) -> None:
        """Load or compile the code for small bodies, so that the first clients need not wait."""
        for body, media in self._now.bodies.examples():
            for count in (1, 2):
                self.together([body] * count, BatchKind("/predict", media, ""))
            with suppress(RefusedError):
                self.predict(body, media, EXPLAIN).written(False)
                if self._service.learns:
                    self._now.bodies.read(body, media, labelled=True)
        self._metrics.rows.clear()

    def is_loaded(self, media: str) -> bool:
        """Whether small bodies of this kind are read in no time; the first may be long in compiling."""
        return self._now.bodies.is_loaded(media)

    def kind_of(self, asked: Asked) -> BatchKind | None:
        """What a request asks for, if its body can be answered together with others; None if not."""
        _, bodies, _, kinds = self._now
        if asked.alike in kinds:
            return kinds[asked.alike]
        if asked.name not in ("predict", "learn") or not bodies.is_loaded(asked.media):
            return None
        if len(kinds) >= _REMEMBERED:
            kinds.clear()
        usual, output = not asked.header(b"content-encoding"), asked.query.get("output", "")
        if asked.name == "learn":
            usual &= self._service.learns
        else:
            usual &= asked.query.keys() <= {"output"} and output != EXPLAIN
            usual &= ARROW not in asked.header(b"accept")
        kinds[asked.alike] = BatchKind(f"/{asked.name}", asked.media, output) if usual else None
        return kinds[asked.alike]

    def work(self, bodies: Sequence[bytes], keys: Sequence[str], kind: BatchKind) -> list[Answer] | Later:
        """The answers to several bodies; to labelled rows, once they are on disk."""
        if kind.path == "/predict":
            return self.together(bodies, kind)
        return take(self._service, self.labelled_together(bodies, kind.media), keys)

    def labelled_together(self, bodies: Sequence[bytes], media: str) -> list[Rows | Exception]:
        """The labelled rows of several bodies, or why there are none."""
        several = self._now.bodies.read_together(bodies, media, labelled=True) if len(bodies) > 1 else None
        if several is not None and all(rows.good for rows in several):
            self._count(several[0]._replace(last=len(several[0].whole), first=0), "labelled")
            self._metrics.rows.labels("refused").inc(sum(len(rows.bad) for rows in several[1:]))
            return [*several]
        found = list[Rows | Exception]()
        for body in bodies:
            try:
                found.append(check_some(self.labelled(body, media)))
            except Exception as error:  # noqa: BLE001  (each client gets an answer)
                found.append(error)
        return found

    def together(self, bodies: Sequence[bytes], kind: BatchKind) -> list[Answer]:
        """The answers to several bodies, whatever is wrong with them."""
        model, reader, answers, _ = self._now
        try:
            several = reader.read_together(bodies, kind.media) if len(bodies) > 1 else None
            if several is None:
                return [self._alone(body, kind) for body in bodies]
            answers.check(kind.output)
            whole = several[0].whole
            found = answers.together(several, self._service.margins(whole, model), kind.output)
            self._metrics.rows.labels("predicted").inc(len(whole))
        except Exception as error:  # noqa: BLE001  (each client gets an answer)
            return [refusal(error)] * len(bodies)
        return [
            Answer(status_of(rows), one, LINES, rows=rows.all)
            for rows, one in zip(several, found, strict=True)
        ]

    def _alone(self, body: bytes, kind: BatchKind) -> Answer:
        try:
            found = self.predict(body, kind.media, kind.output)
            return Answer(status_of(found.rows), found.written(False), LINES, rows=found.rows.all)
        except Exception as error:  # noqa: BLE001  (as before)
            return refusal(error)

    def _count(self, rows: Rows, fate: str) -> None:
        self._metrics.rows.labels(fate).inc(len(rows.chunk))
        self._metrics.rows.labels("refused").inc(len(rows.bad))
        self._metrics.ignored.inc(len(rows.unknown))


def status_of(rows: Rows) -> int:
    """The status of an answer to rows: that of an error if none of them is good."""
    return 200 if rows.good or not rows.bad else 400


def ids_of(rows: Rows) -> list[str]:
    """The ids of the good rows."""
    bad = {gap + k for k, gap in enumerate(rows.gaps)}
    return [one for k, one in enumerate(rows.ids or ()) if k not in bad]


def check_some(rows: Rows) -> Rows:
    """The rows of a body, of which at least one is good. `RefusedError`."""
    if not rows.good:
        where = (f"line {one.line}, column {one.column}: {one.error}" for one in rows.bad)
        raise RefusedError(400, next(where, "the body has no rows"))
    return rows


def acknowledgement(rows: Rows, ack: Ack) -> RowsLearned:
    """The answer to rows that are on disk."""
    errors = [WrongRow(*one) for one in rows.bad[:_ERRORS]]
    learned = 0 if ack.repeated else rows.good
    return RowsLearned(ack.first, ack.last, learned, len(rows.bad), errors, ack.repeated)


def take(service: Any, bodies: Sequence[Rows | Exception], keys: Sequence[str]) -> Later:
    """Let a service learn the rows of bodies that could be read, each with its key, if any.

    Bodies without a key become one record of the log, so that 64 clients cost the log and the learner as much
    as one does.
    """

    def learn(chunk: Chunk, key: str) -> Future[Ack]:
        try:
            found: Future[Ack] = service.learn(chunk, key)
        except RefusedError as error:
            return failed(error)
        return found

    def failed(error: Exception) -> Future[Ack]:
        found = Future[Ack]()
        found.set_exception(error)
        return found

    def answer(rows: Any, future: Future[Ack], at: int) -> Answer:
        try:
            ack = future.result()
        except Exception as error:  # noqa: BLE001  (each client gets an answer)
            return refusal(error)
        if at >= 0:
            ack = Ack(ack.first + at, ack.first + at + rows.good - 1)
        return Answer(200, msgspec.json.encode(acknowledgement(rows, ack)) + b"\n", rows=rows.all)

    pairs = [*zip(bodies, keys, strict=True)]
    plain = [one for one, key in pairs if isinstance(one, Rows) and not key]
    if plain:
        whole = plain[0].whole
        alike = all(one.whole is whole for one in plain) and sum(one.good for one in plain) == len(whole)
        shared = learn(whole if alike else concat([one.chunk for one in plain]), "")
    # each body, the future of its rows, and where they begin among those of all; -1 if they are alone
    asked, at = list[tuple[Any, Future[Ack], int]](), 0
    for one, key in pairs:
        if isinstance(one, Exception):
            asked.append((one, failed(one), -1))
        elif key:
            asked.append((one, learn(one.chunk, key), -1))
        else:
            asked.append((one, shared, at))
            at += one.good
    return Later([future for _, future, _ in asked], lambda: [answer(*each) for each in asked])


class Batcher:
    """Collects small requests until the loop has nothing else to do, and answers them together.

    Handing 64 requests to a kernel takes hardly longer than handing it one. What has arrived when the loop
    has read all sockets that are ready is one batch: no request waits for others, and the busier the server,
    the larger its batches.
    """

    def __init__(
        self,
        work: Callable[[list[bytes], list[str], BatchKind], list[Answer] | Later],
        answer: Callable[[Sequence[Any], Sequence[Answer]], None],
    ) -> None:
        """`work` is given bodies and keys; `answer` the requests of one kind and their answers."""
        self._work, self._answer = work, answer
        self._waiting: dict[BatchKind, list[Any]] = {}

    def add(self, kind: BatchKind, request: Any) -> None:
        """Answer a request, an `HttpRequest`, soon."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._flush)
        self._waiting.setdefault(kind, []).append(request)

    def _flush(self) -> None:
        """Answer all requests that wait, or begin the work that must be done before."""
        waiting, self._waiting = self._waiting, {}
        for kind, requests in waiting.items():
            try:
                found = self._work([one.body for one in requests], [one.asked.key for one in requests], kind)
            except Exception as error:  # noqa: BLE001  (each client gets an answer)
                found = [refusal(error)] * len(requests)
            if isinstance(found, Later):
                self._answer_after(found, requests)
            else:
                self._answer(requests, found)

    def _answer_after(self, later: Later, requests: list[Any]) -> None:
        loop, left = asyncio.get_running_loop(), len(later.work)

        def finish() -> None:
            try:
                found = later.answers()
            except Exception as error:  # noqa: BLE001  (each client gets an answer)
                found = [refusal(error)] * len(requests)
            self._answer(requests, found)

        def one_more_done(_: object = None) -> None:  # in the thread that does the work, or in this one
            nonlocal left
            left -= 1
            if left <= 0:
                loop.call_soon_threadsafe(finish)

        for one in later.work:
            one.add_done_callback(one_more_done)
        if not later.work:
            one_more_done()
