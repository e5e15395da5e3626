"""The messages of a topic as one file of lines, and where its lines come from.

Partitions take turns: the order is that of offsets, counted from where each partition begins, and of
partitions among messages with the same. So it depends on nothing but the messages.
"""

from __future__ import annotations

import io
from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, compress
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from thresher.data.files import topics

ARROW = b"\xff\xff\xff\xff"
"""How Arrow streams begin, and no text"""
_RECENT = 96 << 20
"""Bytes of lines whose places are known: more than all blocks that are read ahead"""
_encoder = msgspec.json.Encoder()


def lines_of(value: bytes) -> bytes:
    """The rows of an Arrow stream as lines of JSON. Any other value is as it is; so is a broken stream."""
    if not value.startswith(ARROW):
        return value
    try:
        with pa.ipc.open_stream(value) as stream:
            return _encoder.encode_lines(stream.read_all().to_pylist())
    except (pa.ArrowException, OSError, ValueError, TypeError):
        return value


class _Batch(NamedTuple):
    """Messages, as lines."""

    first: int
    """the number of the first line, from 1"""
    size: int
    """in bytes"""
    counts: Sequence[int]
    """lines of each message; empty if each is one"""
    partitions: str | list[str]
    """of each message, or of all"""
    offsets: array[int]


@dataclass
class Places:
    """Where the lines read last come from."""

    form: str
    size: int = 0
    """in bytes"""
    next: int = 1
    """the number of the line after them"""
    known: deque[_Batch] = field(default_factory=deque)

    def add(self, offsets: Sequence[int], size: int, counts: Sequence[int], partitions: Any) -> None:
        """Messages with these offsets were made `size` bytes of lines."""
        self.known.append(_Batch(self.next, size, counts, partitions, array("q", offsets)))
        self.next += sum(counts) if counts else len(offsets)
        self.size += size
        while self.size - self.known[0].size > _RECENT:
            self.size -= self.known.popleft().size

    def of(self, line: int) -> tuple[str, int]:
        """The place of the message with this line, as a text, and the number of the line in it, from 1.

        A line that was read long ago has an empty place.
        """
        for some in reversed(self.known.copy()):
            if some.first <= line:
                ends = [*accumulate(some.counts)] or range(1, len(some.offsets) + 1)
                at = bisect_right(ends, line - some.first)
                where = some.partitions if isinstance(some.partitions, str) else some.partitions[at]
                before = ends[at - 1] if at else 0
                return self.form.format(where, f"{some.offsets[at]:,}"), line - some.first - before + 1
        return "", line


class TopicFile(io.RawIOBase):
    """The lines of a topic, from the begin to the end of its extent."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = topics.settle_topic(name)
        kind = topics.kind_of(self._name.url)
        with topics.naming(self._name):
            self._topic = kind(self._name.url)
        self.places = Places(kind.place)
        self._pieces, self._left = self._read(), memoryview(b"")

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into the beginning of `buffer`; returns 0 at the end. Raises `DataError`."""
        with topics.naming(self._name):
            while not self._left:
                if (piece := next(self._pieces, None)) is None:
                    return 0
                self._left = memoryview(piece)
        view = memoryview(buffer).cast("B")
        count = min(len(view), len(self._left))
        view[:count], self._left = self._left[:count], self._left[count:]
        return count

    def stop(self) -> None:
        """Let a read that waits for messages end; called in another thread."""
        self._topic.stopped = True

    def close(self) -> None:
        """Disconnect."""
        if not self.closed:
            self._pieces.close()
            self._topic.close()
        super().close()

    def _read(self) -> Generator[bytes]:
        for partitions, (offsets, given) in in_turns(self._topic, self._name.extent):
            values: Sequence[Any] = given
            try:
                text = b"\n".join(values)
            except TypeError:  # some have no value
                there = [one is not None for one in values]
                partitions = partitions if isinstance(partitions, str) else [*compress(partitions, there)]
                offsets, values = [*compress(offsets, there)], [*compress(values, there)]
                text = b"\n".join(values)
            if not values:
                continue
            if ARROW in text:
                values = [*map(lines_of, values)]
                text = b"\n".join(values)
            counts = list[int]()
            if text.count(b"\n") >= len(values):  # some are several lines, or end a line
                values = [one if one.endswith(b"\n") else one + b"\n" for one in values]
                text, counts = b"".join(values), [one.count(b"\n") for one in values]
            else:
                text += b"\n"
            self.places.add(offsets, len(text), counts, partitions)
            yield text


def in_turns(topic: topics.Topic, extent: topics.Extent) -> Iterator[tuple[str | list[str], topics.Messages]]:
    """The messages of an extent in order, many at a time, with the partition of each, or of all."""
    begin, end = extent.begin, extent.end
    names = extent.order or sorted(begin, key=lambda one: (len(one), one))  # 10 after 9
    unread = {one: begin[one] for one in names if begin[one] < end[one]}
    open_ = dict(topic.read(unread, end))
    if not topic.takes_turns or len(open_) == 1:
        for one in unread:
            for some in open_[one]:
                yield one, some
        return
    held = {one: topics.Messages([], []) for one in open_}
    while open_:
        for one in [*open_]:
            while one in open_ and not held[one].offsets:
                if (more := next(open_[one], None)) is None:
                    del open_[one]
                else:
                    held[one] = more
        # what comes next is known up to the first end of what is held
        safe = min((held[one].offsets[-1] - begin[one] for one in open_), default=None)
        turns, partitions, offsets, values = list[int](), list[str](), list[int](), list[Any]()
        for one, (at, of) in held.items():
            count = len(at) if safe is None else bisect_right(at, safe + begin[one])
            turns += [offset - begin[one] for offset in at[:count]]
            partitions += [one] * count
            offsets += at[:count]
            values += of[:count]
            held[one] = topics.Messages(at[count:], of[count:])
        order = sorted(range(len(turns)), key=turns.__getitem__)
        yield (
            [partitions[k] for k in order],
            topics.Messages([offsets[k] for k in order], [values[k] for k in order]),
        )
