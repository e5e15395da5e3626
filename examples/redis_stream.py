"""Streams of Redis as data, redis://HOST:PORT/STREAM: a source of your own, for --module (docs/own.md).

An entry holds a line in its field `row`, as from ``XADD clicks * row '{"label": 1, "size": 3}'``. Its id, a
time in milliseconds and a number, is its offset. Needs the package redis, and Redis 7.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

from thresher.data import DataError, Messages, Topic, Url

ONLY = "0"
"""The partition"""
NUMBERS = 20
"""Bits for the number of an entry within its millisecond"""


class RedisStream(Topic, scheme="redis"):
    """A stream of Redis."""

    form = "redis://HOST:PORT/STREAM"
    place = "entry {1}"

    def __init__(self, url: Url) -> None:
        import redis

        self._errors, self._name = redis.RedisError, url.path
        login = f"{url.user}@" if url.user else ""
        self._redis = redis.Redis.from_url(f"redis://{login}{url.host}", socket_timeout=10)

    def identity(self) -> str:
        """Redis does not tell a stream that was made anew from the old one."""
        return ""

    def partitions(self) -> Mapping[str, tuple[int, int]]:
        """From the first entry on, if there were some before it, to the last."""
        with self._told():
            found = self._redis.xinfo_stream(self._name)
        end, first = offset_of(found["last-generated-id"]) + 1, found["first-entry"]
        if found["entries-added"] == found["length"]:
            return {ONLY: (0, end)}
        return {ONLY: (offset_of(first[0]) if first else end, end)}

    def since(self, time: datetime) -> Mapping[str, int]:
        """Ids begin with times."""
        first, last = self.partitions()[ONLY]
        return {ONLY: min(max(first, int(time.timestamp() * 1000) << NUMBERS), last)}

    def read(self, begin: Mapping[str, int], end: Mapping[str, int]) -> Mapping[str, Iterator[Messages]]:
        """A thousand entries at a time."""
        return {one: self._read(at, end[one]) for one, at in begin.items()}

    def _read(self, at: int, end: int) -> Iterator[Messages]:
        while at < end:
            with self._told():
                found = self._redis.xrange(self._name, id_of(at), id_of(end - 1), 1000)
            if not found:
                break
            offsets = [offset_of(one) for one, _ in found]
            yield Messages(offsets, [fields.get(b"row") for _, fields in found])
            at = offsets[-1] + 1

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            raise DataError(str(error)) from error

    def close(self) -> None:
        """Disconnect."""
        self._redis.close()


def offset_of(id: bytes) -> int:
    """An id as one number."""
    time, _, number = id.decode().partition("-")
    return (int(time) << NUMBERS) + int(number)


def id_of(offset: int) -> str:
    """The inverse."""
    return f"{offset >> NUMBERS}-{offset & ((1 << NUMBERS) - 1)}"
