"""Topics of Kafka, through librdkafka: only what is committed, without a group of consumers.

The messages of all partitions come in one queue. What belongs to a partition whose turn is later is kept, and
the partition is paused if that becomes much.
"""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from thresher.data.errors import DataError, NoPackageError, first_few
from thresher.data.files import topics
from thresher.options.synonyms import did_you_mean

_ANSWER, _REFUSED = 10.0, 2.0
"""Seconds to wait for an answer, and for one of a broker that cannot be reached"""
MOST, _MOMENT = 10_000, 0.1
"""Messages to take at a time, and seconds to wait for so many"""
PATIENCE = 60.0
"""Seconds without a message, while there must be some, after which reading fails"""
KEPT = 64 << 20
"""Bytes kept for later turns, of all partitions"""
_PASSING = {
    *("LEADER_NOT_AVAILABLE", "NOT_LEADER_FOR_PARTITION", "REPLICA_NOT_AVAILABLE", "BROKER_NOT_AVAILABLE"),
    *("FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "OFFSET_NOT_AVAILABLE", "KAFKA_STORAGE_ERROR"),
    *("REQUEST_TIMED_OUT", "NETWORK_EXCEPTION", "UNKNOWN", "UNKNOWN_TOPIC_OR_PART", "UNKNOWN_TOPIC_ID"),
    *("_ALL_BROKERS_DOWN", "_TRANSPORT"),
}
"""Errors that end by themselves, as while a broker is restarted or another one takes over its partitions"""
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"


class Kafka(topics.Topic, scheme="kafka"):
    """A topic of Kafka."""

    form = "kafka://HOST:PORT/TOPIC"
    options = ("config", topics.WITH)

    def __init__(self, url: topics.Url) -> None:
        try:
            import confluent_kafka
        except ImportError as error:
            raise NoPackageError("a topic of Kafka", "confluent-kafka") from error
        if url.user:
            raise DataError("write user and password into a file of properties of librdkafka: ?config=FILE")
        self._kafka, self._topic, self._host = confluent_kafka, url.path, url.host
        self._columns = [one for one in url.options.get(topics.WITH, "").split(",") if one]
        if wrong := [one for one in self._columns if len(one) < 2 or not one.startswith("_")]:
            allowed = f"{topics.KEY}, {topics.TIMESTAMP} and _NAME for a header"
            raise DataError(f"{topics.WITH} takes {allowed}, not '{wrong[0]}'")
        properties = list[tuple[str, str, str]]()
        if (path := url.options.get("config")) is not None:
            try:
                lines = [one.strip() for one in Path(path).read_text().splitlines()]
            except (OSError, ValueError) as error:
                raise DataError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
            properties = [one.partition("=") for one in lines if one and not one.startswith("#")]
        quiet = logging.getLogger("thresher.kafka")
        quiet.setLevel(logging.CRITICAL + 1)  # errors are told by us
        self._settings: dict[str, Any] = {
            "reconnect.backoff.max.ms": 1000,  # a minute is all it has
            **{name.strip(): value.strip() for name, _, value in properties},
            "bootstrap.servers": url.host,
            "error_cb": self._failed,
            "logger": quiet,
        }
        self._why = ""
        self._admin: Any = None
        self._consumer: Any = None
        self._kept = defaultdict[str, deque[topics.Messages]](deque)
        self._size, self._ends, self._paused = defaultdict[str, int](int), dict[str, int](), set[str]()

    def _failed(self, error: Any) -> None:
        """Note why a broker cannot be reached."""
        if error.code() != error._ALL_BROKERS_DOWN:
            text = error.str().partition(" (after ")[0]
            self._why = text.partition("/bootstrap: ")[2] or text

    def _asked(self, request: Any) -> list[object]:
        """The answers to a request, made again while leaders change. `DataError` if none comes soon."""
        if self._admin is None:
            from confluent_kafka.admin import AdminClient

            try:
                self._admin = AdminClient({**self._settings, "socket.connection.setup.timeout.ms": 5000})
            except self._kafka.KafkaException as error:
                raise DataError(error.args[0].str()) from error
        begun = time.monotonic()
        while True:
            answers = [*request(self._admin).values()]
            while not all(one.done() for one in answers):
                waited = time.monotonic() - begun
                if waited > (_REFUSED if self._why else _ANSWER):
                    raise self._silence_error("answer")
                self._admin.poll(0.001 if waited < 0.1 else 0.02)  # calls `_failed`
            try:
                return [one.result() for one in answers]
            except self._kafka.KafkaException as error:
                found = error.args[0]
                if found.code() == found.UNKNOWN_TOPIC_OR_PART:
                    there = self._admin.list_topics(timeout=_ANSWER).topics
                    if self._topic not in there:
                        names = sorted(one for one in there if not one.startswith("__"))
                        known = f"; there are {first_few(names) or 'none'}"
                        instead = did_you_mean(self._topic, names) or known
                        raise DataError(f"there is no topic '{self._topic}'{instead}") from error
                if found.name() not in _PASSING or time.monotonic() - begun > _ANSWER:
                    raise DataError(found.str()) from error
            self._admin.poll(_MOMENT)

    def _silence_error(self, what: str) -> DataError:
        """The error if the broker does not give what it should."""
        return DataError(f"no {what} from {self._host}" + (f": {self._why}" if self._why else ""))

    @cached_property
    def _description(self) -> Any:
        named = self._kafka.TopicCollection([self._topic])
        return self._asked(lambda admin: admin.describe_topics(named, request_timeout=_ANSWER))[0]

    def identity(self) -> str:
        """The id of the topic; none in clusters of versions before 2.8."""
        return "" if (found := str(self._description.topic_id)) == _NO_ID else found

    def partitions(self) -> Mapping[str, tuple[int, int]]:
        """The first offset of each partition, and that after the last which is committed."""
        first, end = self._listed("earliest"), self._listed("latest")
        return {one: (first[one].offset, end[one].offset) for one in first}

    def since(self, time: datetime) -> Mapping[str, int]:
        """The offsets at a time, or the end."""
        found = self._listed("for_timestamp", int(time.timestamp() * 1000))
        ends = self.partitions()  # -1 is the time if a partition has no such message
        return {one: ends[one][1] if at.timestamp < 0 else at.offset for one, at in found.items()}

    def _listed(self, spec: str, *given: int) -> dict[str, Any]:
        """An offset of each partition, as this method of OffsetSpec describes it."""
        from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

        names = [str(one) for one in sorted(one.id for one in self._description.partitions)]
        asked = {self._place(one): getattr(OffsetSpec, spec)(*given) for one in names}
        committed = self._kafka.IsolationLevel.READ_COMMITTED
        answers = self._asked(
            lambda admin: admin.list_offsets(asked, isolation_level=committed, request_timeout=_ANSWER)
        )
        return dict(zip(names, answers, strict=True))

    def read(
        self, begin: Mapping[str, int], end: Mapping[str, int]
    ) -> Mapping[str, Iterator[topics.Messages]]:
        """The messages of each partition, while those of others are kept."""
        self._consumer = self._kafka.Consumer(
            {
                "isolation.level": "read_committed",
                **self._settings,
                "group.id": "thresher",  # required, though no group is joined and nothing committed
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "max.poll.interval.ms": 86_400_000,  # learning may be slower than the broker
            }
        )
        self._consumer.assign([self._place(one, at) for one, at in begin.items()])
        return {one: self._read(one, at, end[one]) for one, at in begin.items()}

    def _place(self, partition: str, offset: int = 0) -> Any:
        return self._kafka.TopicPartition(self._topic, int(partition), offset)

    def _read(self, partition: str, at: int, end: int) -> Iterator[topics.Messages]:
        kept, last = self._kept[partition], time.monotonic()
        while at < end and not self.stopped:
            if kept:
                some, last = kept.popleft(), time.monotonic()
                self._size[partition] -= _size_of(some)
                at = some.offsets[-1] + 1
                if count := bisect_left(some.offsets, end):
                    yield topics.Messages(some.offsets[:count], some.values[:count])
            elif partition in self._ends:
                if self._ends[partition] < end:
                    raise DataError(
                        f"partition {partition} ends at offset {self._ends[partition]:,}, no more at {end:,}"
                    )
                break  # the rest are no messages: marks of transactions, or what was compacted
            else:
                if partition in self._paused:
                    self._paused.remove(partition)
                    self._consumer.resume([self._place(partition)])
                if not self._poll(min(MOST, end - at), partition) and time.monotonic() - last > PATIENCE:
                    raise self._silence_error(f"message for {PATIENCE:.0f} seconds")
        self._consumer.incremental_unassign([self._place(partition)])

    def _poll(self, most: int, wanted: str) -> bool:
        """Keep what comes of all partitions; whether anything did."""
        message, found = self._kafka.Message, self._consumer.consume(most, _MOMENT)
        if any(map(message.error, found)):
            found = [one for one in found if one.error() is None or self._ended(one)]
        by_partition = defaultdict[Any, list[Any]](list)
        for number, one in zip(map(message.partition, found), found, strict=True):
            by_partition[number].append(one)
        for number, some in by_partition.items():
            offsets: list[Any] = [*map(message.offset, some)]
            values: list[Any] = [*map(message.value, some)]
            if self._columns:
                values = [*map(topics.with_columns, values, map(self._envelope, some))]
            new = topics.Messages(offsets, values)
            self._kept[str(number)].append(new)
            self._size[str(number)] += _size_of(new)
        much = KEPT // max(len(self._kept), 1)
        for one, size in self._size.items():
            if size > much and one != wanted and one not in self._paused:
                self._paused.add(one)
                self._consumer.pause([self._place(one)])
        return bool(found)

    def _envelope(self, message: Any) -> dict[str, Any]:
        """The columns that a message has besides those of its value."""
        kind, milliseconds = message.timestamp()
        time = milliseconds / 1000 if kind else None
        found = {f"_{name}": one for name, one in message.headers() or ()} | {
            topics.KEY: message.key(),
            topics.TIMESTAMP: time,
        }
        return {name: found.get(name) for name in self._columns}

    def _ended(self, event: Any) -> bool:
        """Take in what is no message. `DataError` if it ends reading."""
        error = event.error()
        if error.code() == error._PARTITION_EOF:
            self._ends[str(event.partition())] = event.offset()
        elif error.name() in _PASSING:
            self._why = error.str()
        else:
            raise DataError(f"partition {event.partition()}: {error.str()}")
        return False

    def close(self) -> None:
        """Disconnect."""
        if self._consumer is not None:
            self._consumer.close()


def _size_of(messages: topics.Messages) -> int:
    return sum(len(one) for one in messages.values if one is not None)
