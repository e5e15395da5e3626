"""Topics that a service learns from: a thread for each writes to the log what its messages bring.

A record of the log says how far its topic was read, so rows and places are on disk together. Labels and rows
that wait for them are known again by their ids, so their place is a record of its own, after them.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_left
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import closing
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from thresher.data.bodies import Rows
from thresher.data.chunk import Chunk, concat
from thresher.data.errors import DataError
from thresher.data.files import topic_lines, topics
from thresher.data.files.topic_lines import lines_of
from thresher.data.sources.parsed import Quarantine
from thresher.options.option import UsageError
from thresher.serving.bodies import Bodies
from thresher.serving.errors import RefusedError
from thresher.serving.openapi import JSON

if TYPE_CHECKING:
    from thresher.serving.service import LearningService

T = TypeVar("T")
IDS, AS, LABELS = "ids", "as", "labels"
"""What may follow the ? of the URL of a source: the column of ids of rows that wait, and what messages are"""
AHEAD = 50_000
"""Rows on disk that are not learned yet, from which on reading waits"""
_MOST_ROWS = 1_000_000
"""Of one message"""
_SOON, _IDLE, _AGAIN = 0.02, 0.2, 1.0
"""Seconds until other threads are asked again, between two looks at a topic, and until what has failed is
tried again"""
LONG = 10.0
"""Seconds of reading after which more than before is a warning"""


class SourceReader:
    """Reads a topic, from where the log has it on."""

    def __init__(
        self,
        service: LearningService,
        url: topics.Url,
        bodies: Bodies,
        on_error: str,
        say: Callable[[str], None],
    ) -> None:
        self.name, self.ids, self.labels = url.name, url.options.get(IDS, ""), AS in url.options
        self.trouble = ""
        """why it is not read at the moment; empty: it is"""
        self.rows = {"read": 0, "refused": 0, "unknown": 0}
        """how many were good, bad, and labels of rows that do not wait"""
        self.complete = 0.0
        """all has been read that was there at this time, by `time.monotonic`"""
        self._service, self._bodies, self._say = service, bodies, say
        what, _, path = on_error.partition("=")
        self._fails, self._quarantine = what == "fail", None
        if path:
            size = os.path.getsize(path) if os.path.exists(path) else None
            self._quarantine = Quarantine(Path(path), size)
        layout = service.model.layout
        in_lines = layout is None or not layout.columns or (layout.delimited_by and not layout.header)
        self._media = "" if in_lines else JSON
        if in_lines and topics.WITH in url.options:
            raise UsageError(f"{url.name}: ?{topics.WITH}= is for models of tables, whose rows are JSON")
        known, record = service.read_so_far, service.model.record
        self._known = known.get(self.name)
        self._topic = topic_lines.LiveTopic(url, [*known.values(), *(record.topics if record else ())])
        self._begun, self._before = False, 0
        """`_before`: how much was to be read at the last look"""
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="thresher-source", daemon=True)
        try:
            self._topic.look()
        except DataError as error:
            if self._known is None or isinstance(error, topics.LostPlaceError):
                raise  # but a server that goes on predicts though a broker is away
            self._tell(f"{error}; trying again")

    @property
    def lag(self) -> dict[str, int]:
        """By partition, how many offsets are still to be read, as far as is known."""
        return self._topic.lag

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def close(self) -> None:
        """End."""
        self._closing.set()
        self._topic.stop()
        if self._thread.is_alive():
            self._thread.join()
        self._topic.close()
        if self._quarantine is not None:
            self._quarantine.close()

    def _tell(self, trouble: str) -> None:
        if trouble and trouble != self.trouble:
            self._say(trouble)
        self.trouble = trouble

    def _work(self) -> None:
        try:
            while not self._closing.is_set():
                try:
                    self._follow()
                    self._tell("")
                except topics.LostPlaceError:
                    raise
                except (DataError, OSError) as error:
                    self._tell(f"{error}; trying again")
                self._closing.wait(_AGAIN if self.trouble else _IDLE)
        except Exception as error:  # noqa: BLE001  whatever it is, the service goes on and the operator is told
            if not self._closing.is_set():
                why = str(error).removeprefix(self.name).lstrip(",: ")
                self._tell(f"{self.name} is not read any more: {why}")

    def _follow(self) -> None:
        """Read what is there. `DataError`, OSError, `RefusedError`."""
        place = self._topic.look()
        if not self._begun:
            if self._known is None or (self._known.id, self._known.end) != (place.id, place.end):
                self._recorded(lambda: self._service.read_up_to(place))
            self._begun = True
        looked, left = self._topic.looked, sum(self.lag.values())
        took = looked - self.complete
        if self.complete and left > self._before and took > LONG:
            told = f"{left:,} to be read, and {self._before:,} at the last look, {took:.0f} seconds ago"
            self._say(f"{self.name} falls behind: {told}")
        self._before = left
        with closing(self._topic.parts()) as parts:
            for part in parts:
                while self._service.behind >= AHEAD and not self._closing.wait(_SOON):
                    pass
                if self._closing.is_set():
                    return
                self._take(part)
        self.complete = looked

    def _take(self, part: topic_lines.TopicPart) -> None:
        """Write to the log what some messages bring, and their places."""
        service, bad, values = self._service, self.rows["refused"], part.messages.values
        some = [(k, lines_of(one)) for k, one in enumerate(values) if one is not None and one.strip()]
        several = self._read(part, some)
        chunk = concat([one.chunk for one in several])
        ids = [one for rows in several for one in rows.good_ids]
        learns = len(chunk) > 0 and not (self.labels or self.ids)
        if learns:  # places are written with the rows
            self._recorded(lambda: service.learn(chunk, source=part.extent))
        elif self.labels:
            self._label(ids, chunk)
            if self._closing.is_set():
                return
        elif len(chunk):
            self._recorded(lambda: service.keep(ids, chunk))
        brought = len(chunk) > 0 or self.rows["refused"] > bad
        if brought and not learns:  # what brought nothing may be read again
            self._recorded(lambda: service.read_up_to(part.extent))
        self.rows["read"] += len(chunk)

    def _label(self, ids: Sequence[str], chunk: Chunk) -> None:
        """Learn rows with their labels, once all rows are kept that were in their topics before these."""
        left, complete, rows = np.arange(len(ids)), False, [one for one in self._service.sources if one.ids]
        while len(left) and not complete:
            complete = all(one.complete >= self._topic.looked for one in rows)
            some = [ids[k] for k in left.tolist()]
            labels, importances = chunk.labels[left], chunk.weights[left]
            found = self._recorded(lambda: self._service.label(some, labels, importances))  # noqa: B023
            left = left[np.isin(some, found.unknown)]
            if len(left) and not complete and self._closing.wait(_SOON):
                return
        self.rows["unknown"] += len(left)

    def _recorded(self, work: Callable[[], Future[T]]) -> T:
        """What is answered once it is on disk. `RefusedError`; if it can be tried again, only at the end."""
        while True:
            try:
                return work().result()
            except RefusedError as error:
                if "Retry-After" not in error.headers or self._closing.wait(_AGAIN):
                    raise
                self._tell(f"{self.name} waits: {error.message}")

    def _read(self, part: topic_lines.TopicPart, some: Sequence[tuple[int, bytes]]) -> list[Rows]:
        """The rows of messages of a part, each with its number; what cannot be read with others, alone."""
        if not some:
            return []
        text = b"".join(one if one.endswith(b"\n") else one + b"\n" for _, one in some)
        try:
            if self.labels:
                rows = self._bodies.read_labels(text)
            else:
                rows = self._bodies.read(text, self._media, labelled=not self.ids, ids=self.ids)
        except RefusedError as error:
            if len(some) > 1:
                half = len(some) // 2
                return self._read(part, some[:half]) + self._read(part, some[half:])
            self._refuse(part, some[0][0], "", text, error.message)
            return []
        if rows.bad:
            ends = [*accumulate(one.rstrip(b"\n").count(b"\n") + 1 for _, one in some)]
            lines = text.split(b"\n")
            for one in rows.bad:
                at = min(bisect_left(ends, one.line), len(some) - 1)
                line = one.line - (ends[at - 1] if at else 0)
                self._refuse(
                    part, some[at][0], f":{line}:{one.column}", lines[one.line - 1] + b"\n", one.error
                )
        return [rows]

    def _refuse(self, part: topic_lines.TopicPart, number: int, where: str, text: bytes, error: str) -> None:
        """Count a bad row of a message, and put it aside. `RefusedError` if it is to end reading."""
        partitions = part.partitions
        partition = partitions if isinstance(partitions, str) else partitions[number]
        place = self._topic.place.format(partition, f"{part.messages.offsets[number]:,}")
        told = f"{self.name}, {place}{where}: {error}"
        if self._fails:
            raise RefusedError(400, told)
        if self._quarantine is not None:
            self._quarantine.write(text)
        before, self.rows["refused"] = self.rows["refused"], self.rows["refused"] + 1
        if self.rows["refused"].bit_length() > before.bit_length():
            self._say(f"bad rows: {before + 1:,}; {told}")


def readers_of(
    service: LearningService, names: Sequence[str], on_error: str, say: Callable[[str], None]
) -> list[SourceReader]:
    """Readers of topics, none of which has begun. `UsageError`, `DataError`."""
    if not names:
        return []
    urls, outputs = list[topics.Url](), service.model.head.outputs.kind
    for name in names:
        if not topics.is_topic(name):
            raise UsageError(f"--source {name}: expected a topic, such as kafka://HOST:PORT/TOPIC")
        url = topics.url_of(name, (IDS, AS))
        waits = IDS in url.options or AS in url.options
        if url.options.get(AS, LABELS) != LABELS or {IDS, AS} <= url.options.keys():
            raise UsageError(f"{url.name}: expected ?{IDS}=COLUMN, ?{AS}={LABELS} or neither")
        if waits and outputs in ("labels", "values"):
            raise UsageError(
                f"{url.name}: labels can come late only if a row has one, and here it has several"
            )
        if url.name in [one.name for one in urls]:
            raise UsageError(f"{url.name} is named twice")
        urls.append(url)
    bodies = Bodies(service.model, _MOST_ROWS, service.words)
    return [SourceReader(service, url, bodies, on_error, say) for url in urls]
