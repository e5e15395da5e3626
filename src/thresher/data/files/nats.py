"""Subjects of NATS JetStream, by the sequence numbers of their stream, without a durable consumer.

The client works with coroutines. Its loop runs only while something is asked or read.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from thresher.data.errors import DataError
from thresher.data.files import topics

_ANSWER, _AGAIN = 5.0, 0.2
"""Seconds to wait for an answer, and until a server is asked again that could not be reached"""
_MOST = 1000
"""Messages to ask for at a time"""
_ONLY = "0"
"""The partition"""

T = TypeVar("T")


class Nats(topics.Topic, scheme="nats"):
    """A stream of JetStream, or those of its messages whose subject matches."""

    form = "nats://HOST:PORT/STREAM/SUBJECT"
    options = ("creds", topics.WITH)
    place = "sequence {1}"

    def __init__(self, url: topics.Url) -> None:
        try:
            import nats
        except ImportError as error:
            raise DataError(f"needs the package nats-py: pip install 'thresher[nats]' ({error})") from error
        self._nats, self._loop, self._why = nats, asyncio.new_event_loop(), ""
        self._stream, _, subject = url.path.partition("/")
        self._subject, self._host, self._columns = subject or ">", url.host, topics.columns_of_envelopes(url)
        logging.getLogger("nats").addHandler(logging.NullHandler())
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
        more = {"reconnect_time_wait": _AGAIN, **self._settings}
        self._client = self._done(self._nats.connect(self._server, error_cb=self._failed, **more))
        self._jetstream = self._client.jetstream(timeout=_ANSWER)

    async def _failed(self, error: Exception) -> None:
        self._why = str(error) or type(error).__name__

    def _done(self, work: Coroutine[Any, Any, T]) -> T:
        """What a coroutine returns. `DataError`."""
        from nats import errors
        from nats.js.errors import APIError, NotFoundError, ServiceUnavailableError

        try:
            return self._loop.run_until_complete(work)
        except ImportError as error:
            raise DataError(
                f"?creds= needs a package more: pip install 'nats-py[nkeys]' ({error})"
            ) from error
        except NotFoundError as error:
            raise DataError(self._unknown()) from error
        except ServiceUnavailableError as error:
            raise DataError(f"{self._host} has no JetStream") from error
        except (errors.Error, APIError, OSError, TimeoutError, ValueError) as error:
            raise topics.silent(self._host, self._why or str(error)) from error

    def _unknown(self) -> str:
        names = [
            one.config.name or "" for one in self._loop.run_until_complete(self._jetstream.streams_info())
        ]
        return f"there is no stream '{self._stream}'; {topics.known_instead(self._stream, names, 0.6)}"

    def identity(self) -> str:
        """When the stream was made, and which of its messages these are."""
        found = self._done(self._jetstream.stream_info(self._stream))
        return f"{found.created or ''} {self._stream} {self._subject}"

    def partitions(self) -> Mapping[str, tuple[int, int]]:
        """The first and the next sequence number of the stream."""
        state = self._done(self._jetstream.stream_info(self._stream)).state
        return {_ONLY: (max(state.first_seq, 1), state.last_seq + 1)}

    def extent(self, name: str, earlier: Iterable[topics.Extent], start: str) -> topics.Extent:
        """As for any topic; empty if what has come is of other subjects."""
        found = super().extent(name, earlier, start)
        last = self._done(self._last())
        return found if found.begin[_ONLY] <= last else found._replace(end=found.begin)

    async def _last(self) -> int:
        """The sequence number of the last message; 0 if there is none."""
        from nats.js.errors import NotFoundError

        try:
            return (await self._jetstream.get_last_msg(self._stream, self._subject)).seq or 0
        except NotFoundError:
            return 0

    def since(self, time: datetime) -> Mapping[str, int]:
        """The sequence number at a time."""
        from nats.js.api import DeliverPolicy

        end = self.partitions()[_ONLY][1]
        consumer = self._consumer(
            deliver_policy=DeliverPolicy.BY_START_TIME, opt_start_time=time.astimezone(UTC)
        )
        found = self._some(consumer, 1)
        return {_ONLY: found[0].metadata.sequence.stream if found else end}

    def read(
        self, begin: Mapping[str, int], end: Mapping[str, int]
    ) -> Mapping[str, Iterator[topics.Messages]]:
        """The messages of the subject."""
        return {one: self._read(at, end[one]) for one, at in begin.items()}

    def _read(self, at: int, end: int) -> Iterator[topics.Messages]:
        from nats.js.api import DeliverPolicy

        consumer, taken, last = None, 0, time.monotonic()
        while at < end and not self.stopped:
            try:
                if self._client.is_closed:
                    self._connect()
                if consumer is None:
                    consumer = self._consumer(
                        deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=at
                    )
                    taken = 0
                    if not self._done(consumer.consumer_info()).num_pending:
                        return
                found = self._some(consumer, _MOST)
            except DataError:
                if time.monotonic() - last > topics.PATIENCE:
                    raise
                self._done(self._client.close())
                consumer = None  # a server that was started anew does not know it
                time.sleep(_AGAIN)
                continue
            known = [one.metadata for one in found]
            whole = sum(one.sequence.consumer == k for k, one in enumerate(known, taken + 1))
            if not found or whole < len(found):  # what was on its way is lost, and does not come again
                if time.monotonic() - last > topics.PATIENCE:
                    raise topics.silent(self._host, self._why, f"message for {topics.PATIENCE:.0f} seconds")
                consumer = None
                continue
            last, taken = time.monotonic(), taken + whole
            sequences = [one.sequence.stream for one in known]
            count = sum(one < end for one in sequences)
            if count:
                yield topics.Messages(sequences[:count], [*map(self._value, found[:count])])
            at = end if not known[-1].num_pending else sequences[-1] + 1

    def _value(self, message: Any) -> bytes | None:
        """The value of a message, with columns of its envelope; the key is the subject."""
        found = {f"_{name}": one for name, one in (message.headers or {}).items()}
        found |= {topics.KEY: message.subject, topics.TIMESTAMP: message.metadata.timestamp.timestamp()}
        return topics.with_columns(message.data, {name: found.get(name) for name in self._columns})

    def _consumer(self, **start: Any) -> Any:
        from nats.js.api import AckPolicy, ConsumerConfig

        config = ConsumerConfig(ack_policy=AckPolicy.NONE, inactive_threshold=300.0, **start)
        return self._done(self._jetstream.pull_subscribe(self._subject, stream=self._stream, config=config))

    def _some(self, consumer: Any, most: int) -> list[Any]:
        async def fetched() -> list[object]:
            try:
                return [*await consumer.fetch(most, timeout=0.5)]
            except self._nats.errors.TimeoutError:
                return []

        return self._done(fetched())

    def close(self) -> None:
        """Disconnect."""
        self._loop.run_until_complete(self._client.close())
        self._loop.close()
