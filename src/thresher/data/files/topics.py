"""Topics: streams of lines that somebody else keeps, read as files.

A run reads a topic from where the run before ended up to the end that it has when the run begins: its
*extent*, which models and checkpoints record. A topic with its extent is a file to the rest of the program:
the values of the messages, a line or more each, the same bytes however often they are read.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from typing import ClassVar, NamedTuple
from urllib.parse import unquote

import msgspec

from thresher.data.errors import DataError
from thresher.options.messages import warn_user

FROM, EARLIEST, LATEST = "from", "earliest", "latest"
WITH, KEY, TIMESTAMP = "with", "_key", "_timestamp"
"""The option that names columns from the envelopes of messages, and columns; `_NAME` is a header"""
_NAME = re.compile(r"([A-Za-z][A-Za-z0-9+-]*):(.*)", re.DOTALL)
_REST = re.compile(r"(?://(?:([^/?]*)@)?([^/?@]*)/?)?([^?]*)(?:\?(.*))?", re.DOTALL)
_OWN = ("kafka", "tail")
"""Schemes that have a module here"""
_SCHEMES: dict[str, type[Topic]] = {}


class Url(NamedTuple):
    """A topic as the user names it: ``kafka://USER@HOST:PORT/PATH?OPTION=VALUE`` or ``tail:PATH``."""

    scheme: str
    user: str
    """what is before the @, perhaps with a password"""
    host: str
    path: str
    options: Mapping[str, str]

    @property
    def name(self) -> str:
        """What identifies the topic in messages and models: without user and options."""
        return f"{self.scheme}:" + (f"//{self.host}/" if self.host else "") + self.path


class Messages(NamedTuple):
    """Messages of one partition, in order."""

    offsets: Sequence[int]
    values: Sequence[bytes | None]
    """None for a message without a value, such as one that deletes a key"""


class Extent(NamedTuple):
    """What a run reads of a topic."""

    name: str
    id: str
    """as `Topic.identity`"""
    begin: dict[str, int]
    """by partition, the offset of the first message"""
    end: dict[str, int]
    """the offset after the last, where the next run goes on"""
    lost: int = 0
    """messages that were gone before a run came to them, in all runs so far"""
    order: tuple[str, ...] = ()
    """the partitions, if they are read one after the other: headers keep no order of `begin`"""


class Topic(ABC):
    """A topic; a subclass with a ``scheme`` is found by it.

    Whatever it raises as `DataError` is shown after the name of the topic.
    """

    form: ClassVar[str]
    """how its URL is written"""
    options: ClassVar[Sequence[str]] = ()
    """what may follow the ? of its URL, besides ``from``"""
    place: ClassVar[str] = "partition {0}, offset {1}"
    """a place in messages"""
    takes_turns: ClassVar[bool] = True
    """whether partitions are read side by side, offset by offset; otherwise one after the other"""
    stopped = False
    """set by another thread: nothing more is wanted, so what waits for messages should end"""

    def __init_subclass__(cls, scheme: str, **more: object) -> None:
        super().__init_subclass__(**more)
        _SCHEMES[scheme] = cls

    @abstractmethod
    def __init__(self, url: Url) -> None:
        """Connect."""

    @abstractmethod
    def identity(self) -> str:
        """What it has in common with no other topic, even one of its name; empty if nothing is known."""

    @abstractmethod
    def partitions(self) -> Mapping[str, tuple[int, int]]:
        """For each partition, an offset from which on nothing is gone, and that after the last message."""

    @abstractmethod
    def read(self, begin: Mapping[str, int], end: Mapping[str, int]) -> Mapping[str, Iterator[Messages]]:
        """For each partition in `begin`, the messages from there on to below `end`, any number at a time.

        Iterators are used in one thread at a time, which need not be that of the other methods.
        """

    def since(self, time: datetime) -> Mapping[str, int]:
        """For each partition, the offset of the first message of this time or later."""
        raise DataError(f"it has no times: use ?{FROM}={EARLIEST} or ?{FROM}={LATEST}")

    def close(self) -> None:  # noqa: B027  (many have nothing to do)
        """Disconnect."""

    def extent(self, name: str, earlier: Iterable[Extent], start: str) -> Extent:
        """What a run reads now: from where `earlier` ones ended; if it was in none of them, from `start`.

        `DataError` if what comes next is not there, unless `start` says where to go on instead.
        """
        there, id = self.partitions(), self.identity()
        first, end = ({one: ends[k] for one, ends in there.items()} for k in (0, 1))
        same = [one for one in earlier if one.id == id and id] or [one for one in earlier if one.name == name]
        if not same:
            return Extent(name, id, self._starts(start or EARLIEST, first, end), end)
        known, anew = same[0], id != same[0].id
        begin = first if anew else {one: known.end.get(one, first[one]) for one in first}
        below = {one: first[one] - at for one, at in begin.items() if at < first[one]}
        beyond = {one: at for one, at in begin.items() if at > end[one]}
        if not (anew or below or beyond):
            return Extent(name, id, begin, end, known.lost)
        if anew:
            trouble = "it was made anew since the model learned from it"
            remedy = f"?{FROM}={EARLIEST} reads the new one"
        elif below:
            some = self.place.format(where := next(iter(below)), f"{first[where]:,}")
            trouble = f"up to {sum(below.values()):,} messages that come next are gone: it begins at {some}"
            remedy = f"?{FROM}={EARLIEST} goes on without them"
        else:
            some = self.place.format(where := next(iter(beyond)), f"{end[where]:,}")
            trouble = f"it ends at {some}, but the model has learned from it up to {beyond[where]:,}"
            remedy = f"?{FROM}={LATEST} goes on with what comes from now on"
        if not start:
            raise DataError(f"{trouble}; {remedy}")
        warn_user(f"{name}: {trouble}; goes on from {start}", UserWarning)
        fresh = self._starts(start, first, end)
        begin = {one: fresh[one] if anew or one in below or one in beyond else begin[one] for one in first}
        lost = sum(begin[one] - known.end[one] for one in below)
        return Extent(name, id, begin, end, known.lost + lost)

    def _starts(self, start: str, first: dict[str, int], end: dict[str, int]) -> dict[str, int]:
        if start in (EARLIEST, LATEST):
            return first if start == EARLIEST else end
        try:
            time = datetime.fromisoformat(start)
        except ValueError:
            known = f"{EARLIEST}, {LATEST} or a time such as 2026-11-01T00:00Z"
            raise DataError(f"{FROM} must be {known}, not '{start}'") from None
        return dict(self.since(time if time.tzinfo else time.replace(tzinfo=UTC)))


def with_columns(value: bytes | None, columns: Mapping[str, bytes | str | float | None]) -> bytes | None:
    """A value whose lines are JSON objects, each with more columns; None is a missing cell.

    >>> with_columns(b'{"a": 1}', {"_key": b"k", "_timestamp": 0.5, "_other": None})
    b'{"_key":"k","_timestamp":0.5, "a": 1}'
    """
    texts = {
        k: str(v, "utf-8", "backslashreplace") if isinstance(v, bytes) else v for k, v in columns.items()
    }
    cells = msgspec.json.encode({name: one for name, one in texts.items() if one is not None})[:-1]
    if value is None or len(cells) == 1:
        return value
    lines = value.split(b"\n")
    for k, line in enumerate(lines):
        before, brace, rest = line.partition(b"{")
        if brace and not before.strip():
            lines[k] = cells + (b"" if rest.lstrip().startswith(b"}") else b", ") + rest.lstrip()
    return b"\n".join(lines)


def is_topic(name: str) -> bool:
    """Whether a name is that of a topic, and not of a file.

    >>> is_topic("kafka://localhost:9092/clicks"), is_topic("tail:a.jsonl"), is_topic("s3://bucket/a")
    (True, True, False)
    """
    found = _NAME.match(name)
    return found is not None and (found[1] in _OWN or found[1] in _SCHEMES)


class TopicName(str):
    """The name of a topic, with what a run reads of it."""

    url: Url
    extent: Extent

    @classmethod
    def of(cls, url: Url, extent: Extent) -> TopicName:
        """The name of this extent."""
        found = cls(extent.name)
        found.url, found.extent = url, extent
        return found


def kind_of(url: Url) -> type[Topic]:
    """The class of a topic."""
    if url.scheme not in _SCHEMES:
        import_module(f"thresher.data.files.{url.scheme}")
    return _SCHEMES[url.scheme]


def url_of(name: str) -> Url:
    """The parts of the name of a topic. `DataError` if it is not written as one of its scheme."""
    scheme, _, rest = name.partition(":")
    found = _REST.fullmatch(rest)
    assert found is not None
    user, host, path, options = (part or "" for part in found.groups())
    pairs = [one.partition("=") for one in options.split("&") if one]
    url = Url(scheme, user, host, path, {name: unquote(value) for name, _, value in pairs})
    kind = kind_of(url)
    if not path or bool(host) != ("//" in kind.form):
        raise DataError(f"{url.name}: expected {kind.form}")
    known = (FROM, *kind.options)
    if unknown := [one for one in url.options if one not in known]:
        raise DataError(f"{url.name}: no option is called '{unknown[0]}'; known: {', '.join(known)}")
    given = [one for one, _, _ in pairs]
    if twice := next((one for one in given if given.count(one) > 1), None):
        raise DataError(f"{url.name}: the option '{twice}' is given twice")
    return url


@contextmanager
def naming(name: str) -> Iterator[None]:
    """In this context, a `DataError` is about this topic."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{name}: {error.args[0]}") from error


def settle_topic(name: str, earlier: Iterable[Extent] = ()) -> TopicName:
    """The name of a topic with what a run reads of it that begins now, after `earlier` ones. `DataError`."""
    if isinstance(name, TopicName):
        return name
    url = url_of(name)
    with naming(url.name):
        topic = kind_of(url)(url)
        try:
            return TopicName.of(url, topic.extent(url.name, earlier, url.options.get(FROM, "")))
        finally:
            topic.close()
