"""Labelled rows of small bodies that arrive together: parsed at once, synced at once, answered together.

Bodies without a key become one record of the log, so that 64 clients cost the log and the learner as much as
one does.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import msgspec

from thresher.data.chunk import Chunk, concat
from thresher.serving.batching import Answer, Later, refusal
from thresher.serving.bodies import BadRow, Rows
from thresher.serving.errors import RefusedError
from thresher.serving.openapi import JSON, RowsLearned, WrongRow
from thresher.serving.requests import Ack

_ERRORS = 10
"""bad rows that an answer names"""


def check_some(rows: Rows) -> Rows:
    """The rows of a body, of which at least one is good. `RefusedError`."""
    if not rows.good:
        raise RefusedError(400, _first_of(rows.bad))
    return rows


def _first_of(bad: Sequence[BadRow]) -> str:
    """Why no row was taken."""
    return f"line {bad[0].line}, column {bad[0].column}: {bad[0].error}" if bad else "the body has no rows"


def acknowledgement(rows: Rows, ack: Ack) -> RowsLearned:
    """The answer to rows that are on disk."""
    errors = [WrongRow(*one) for one in rows.bad[:_ERRORS]]
    learned = 0 if ack.repeated else rows.good
    return RowsLearned(ack.first, ack.last, learned, len(rows.bad), errors, ack.repeated)


def taken(service: Any, bodies: Sequence[Rows | Exception], keys: Sequence[str]) -> Later:
    """Let a service learn the rows of bodies that could be read, each with its key, if any."""
    plain = [one for one, key in zip(bodies, keys, strict=True) if isinstance(one, Rows) and not key]
    shared = _asked(service, _together(plain), "") if plain else None
    asked, at = list[tuple[Future[Ack], int] | None](), 0
    for one, key in zip(bodies, keys, strict=True):
        if isinstance(one, Exception):
            asked.append(None)
        elif key or shared is None:
            asked.append((_asked(service, one.chunk, key), -1))
        else:
            asked.append((shared, at))
            at += one.good
    futures = [one[0] for one in asked if one is not None]
    return Later(futures, lambda: [*map(_answer, bodies, asked)])


def _together(some: list[Rows]) -> Chunk:
    """The rows of several bodies, in order."""
    whole = some[0].whole
    if all(one.whole is whole for one in some) and sum(one.good for one in some) == len(whole):
        return whole
    return concat([one.chunk for one in some])


def _asked(service: Any, chunk: Chunk, key: str) -> Future[Ack]:
    try:
        found: Future[Ack] = service.learn(chunk, key)
    except RefusedError as error:
        found = Future()
        found.set_exception(error)
    return found


def _answer(rows: Rows | Exception, asked: tuple[Future[Ack], int] | None) -> Answer:
    """The answer to one body; `asked` is where its rows begin among those of all, -1 if they are alone."""
    if isinstance(rows, Exception) or asked is None:
        return refusal(rows if isinstance(rows, Exception) else RefusedError(500, "nothing was asked"))
    future, at = asked
    try:
        ack = future.result()
    except Exception as error:  # noqa: BLE001  (each client gets an answer)
        return refusal(error)
    if at >= 0:
        ack = Ack(ack.first + at, ack.first + at + rows.good - 1)
    return Answer(200, msgspec.json.encode(acknowledgement(rows, ack)) + b"\n", JSON, rows=rows.all)
