"""Topics that are followed: whatever comes is read, in parts of which each has its place."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable
from typing import NamedTuple

from thresher.data.files.topic_lines import in_turns
from thresher.data.files.topics import FROM, Extent, Messages, Topic, Url, kind_of, naming


class TopicPart(NamedTuple):
    """Some messages that follow those before."""

    partitions: str | list[str]
    """of each message, or of all"""
    messages: Messages
    extent: Extent
    """their places"""


class LiveTopic:
    """A topic that is read as it grows, after an `earlier` run."""

    def __init__(self, url: Url, earlier: Iterable[Extent]) -> None:
        self.url, self.place = url, kind_of(url).place
        self.lag = dict[str, int]()
        """by partition, how many offsets are still to be read, as far as is known"""
        self.looked = 0.0
        """when the end was asked for up to which is read, by `time.monotonic`"""
        self._earlier, self._start = [*earlier], url.options.get(FROM, "")
        self._topic: Topic | None = None
        self._extent: Extent | None = None
        """what is to be read next"""
        self._stopped = False

    def look(self) -> Extent:
        """Where reading goes on; its end is where the topic ends now. `DataError`, OSError.

        `LostPlaceError` if what comes next is not there.
        """
        if self._extent is None:
            self.looked = time.monotonic()
            try:
                with naming(self.url.name):
                    if self._topic is None:
                        self._topic = kind_of(self.url)(self.url)
                    found = self._topic.extent(self.url.name, self._earlier, self._start)
                    begin = self._topic.part(found, found.begin, found.begin)
            except BaseException:
                self.close()
                raise
            self._extent, self._start, self._earlier = found, "", [begin]
            self.lag = {one: end - found.begin[one] for one, end in found.end.items()}
        return self._earlier[0]

    def parts(self) -> Generator[TopicPart]:
        """What comes next up to the end that was found; the next call of `look` finds another one.

        A part was read once the next is asked for. `DataError`, OSError.
        """
        self.look()
        topic, extent = self._topic, self._extent
        assert topic is not None
        assert extent is not None
        self._extent, at = None, dict(extent.begin)
        topic.stopped = self._stopped
        try:
            with naming(self.url.name):
                for partitions, messages in () if extent.is_empty else in_turns(topic, extent):
                    each = [partitions] if isinstance(partitions, str) else partitions
                    offsets, values = messages
                    if len(each) == 1:
                        offsets, values = offsets[-1:], values[-1:]
                    last = dict(zip(each, zip(offsets, values, strict=True), strict=True))
                    end = {one: topic.after(*message) for one, message in last.items()}
                    place = topic.part(extent, {one: at[one] for one in end}, end)
                    yield TopicPart(partitions, messages, place)
                    self._earlier, at = [self._earlier[0].then(place)], at | end
                    self.lag |= {one: max(extent.end[one] - end[one], 0) for one in end}
        except BaseException:
            self.close()
            raise
        if not self._stopped:
            self._earlier, self.lag = [extent], dict.fromkeys(extent.end, 0)

    def stop(self) -> None:
        """Let a read that waits for messages end; called in another thread."""
        self._stopped = True
        if (topic := self._topic) is not None:
            topic.stopped = True

    def close(self) -> None:
        """Disconnect; the next call connects again."""
        topic, self._topic, self._extent = self._topic, None, None
        if topic is not None:
            topic.close()
