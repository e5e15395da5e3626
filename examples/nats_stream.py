"""Streams of NATS JetStream as data, nats://HOST:PORT/STREAM/SUBJECT: a source of your own, for --module.

The messages of a stream whose subject matches, by the numbers that the stream gives them; without a SUBJECT,
all. Nothing is kept at the server. Needs the package nats-py, 2.14 or newer. Its client works with
coroutines, whose loop runs only while something is asked or read. See docs/own.md.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

try:
    import nats
except ImportError as error:
    raise ImportError(f"{error}: pip install nats-py") from error
from nats.errors import Error
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from nats.js.errors import NotFoundError

from thresher.data import DataError, Messages, Topic, Url

ONLY = "0"
"""The partition"""
ANSWER, AGAIN, PATIENCE = 5.0, 0.2, 60.0
"""Seconds to wait for an answer, until a server is asked again, and without a message until reading fails"""
MOST = 1000
"""Messages to ask for at a time"""
T = TypeVar("T")
logging.getLogger("nats").addHandler(logging.NullHandler())


class Nats(Topic, scheme="nats"):
    """A stream of JetStream."""

    form = "nats://HOST:PORT/STREAM/SUBJECT"
    options = ("creds",)
    place = "sequence {1}"

    def __init__(self, url: Url) -> None:
        self._loop, self._why = asyncio.new_event_loop(), ""
        self._stream, _, subject = url.path.partition("/")
        self._subject, self._host = subject or ">", url.host
        self._server = f"nats://{url.user}@{url.host}" if url.user else f"nats://{url.host}"
        self._settings: dict[str, Any] = {"connect_timeout": 2, "max_reconnect_attempts": 1}
        if "creds" in url.options:
            self._settings["user_credentials"] = url.options["creds"]
        try:
            self._connect()
        except DataError:
            self._loop.close()
            raise

    def _connect(self) -> None:
        more = {"reconnect_time_wait": AGAIN, "error_cb": self._failed, **self._settings}
        self._client = self._done(nats.connect(self._server, **more))
        self._jetstream = self._client.jetstream(timeout=ANSWER)

    async def _failed(self, error: Exception) -> None:
        self._why = str(error) or type(error).__name__

    def _done(self, work: Coroutine[Any, Any, T]) -> T:
        """What a coroutine returns. `DataError`."""
        try:
            return self._loop.run_until_complete(work)
        except NotFoundError as error:
            raise DataError(f"there is no stream '{self._stream}'") from error
        except (Error, OSError, ValueError) as error:
            raise DataError(f"no answer from {self._host}: {self._why or error}") from error

    def identity(self) -> str:
        """When the stream was made, and which of its messages these are."""
        found = self._done(self._jetstream.stream_info(self._stream))
        return f"{found.created or ''} {self._stream} {self._subject}"

    def partitions(self) -> Mapping[str, tuple[int, int]]:
        """The first and the next number."""
        state = self._done(self._jetstream.stream_info(self._stream)).state
        return {ONLY: (max(state.first_seq, 1), state.last_seq + 1)}

    def since(self, time: datetime) -> Mapping[str, int]:
        """The number of the first message of a time or later."""
        start = {"deliver_policy": DeliverPolicy.BY_START_TIME, "opt_start_time": time.astimezone(UTC)}
        found = self._some(self._consumer(**start), 1)
        return {ONLY: found[0].metadata.sequence.stream if found else self.partitions()[ONLY][1]}

    def read(self, begin: Mapping[str, int], end: Mapping[str, int]) -> Mapping[str, Iterator[Messages]]:
        """A thousand messages at a time."""
        return {one: self._read(at, end[one]) for one, at in begin.items()}

    def _read(self, at: int, end: int) -> Iterator[Messages]:
        consumer, taken, last = None, 0, time.monotonic()
        while at < end and not self.stopped:
            try:
                if self._client.is_closed:
                    self._connect()
                if consumer is None:
                    start = {"deliver_policy": DeliverPolicy.BY_START_SEQUENCE, "opt_start_seq": at}
                    consumer, taken = self._consumer(**start), 0
                    if not self._done(consumer.consumer_info()).num_pending:
                        return
                found = self._some(consumer, MOST)
            except DataError:
                if time.monotonic() - last > PATIENCE:
                    raise
                self._done(self._client.close())
                consumer = None  # a server that was started anew does not know it
                time.sleep(AGAIN)
                continue
            known = [one.metadata for one in found]
            whole = sum(one.sequence.consumer == k for k, one in enumerate(known, taken + 1))
            if not found or whole < len(found):  # what was on its way is lost, and does not come again
                if time.monotonic() - last > PATIENCE:
                    raise DataError(f"no message from {self._host} for {PATIENCE:.0f} seconds")
                consumer = None
                continue
            last, taken = time.monotonic(), taken + whole
            numbers = [one.sequence.stream for one in known]
            if count := sum(one < end for one in numbers):
                yield Messages(numbers[:count], [one.data for one in found[:count]])
            at = numbers[-1] + 1 if known[-1].num_pending else end

    def _consumer(self, **start: Any) -> Any:
        config = ConsumerConfig(ack_policy=AckPolicy.NONE, inactive_threshold=300.0, **start)
        return self._done(self._jetstream.pull_subscribe(self._subject, stream=self._stream, config=config))

    def _some(self, consumer: Any, most: int) -> list[Any]:
        async def fetched() -> list[Any]:
            try:
                return [*await consumer.fetch(most, timeout=0.5)]
            except nats.errors.TimeoutError:
                return []

        return self._done(fetched())

    def close(self) -> None:
        """Disconnect."""
        self._loop.run_until_complete(self._client.close())
        self._loop.close()
