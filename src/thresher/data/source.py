"""Source: anything that yields Chunks, and what it can do besides; rows in groups.

Groups, such as queries or users, are hashes of their names: hold-outs and folds keep them whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thresher.data.chunk import Chunk, StreamPosition
from thresher.data.errors import DataError
from thresher.data.labels import Domain, WordTable, domain_of
from thresher.data.layout import SettledLayout
from thresher.data.report import Report
from thresher.data.sources.reader import Parsed as Parsed
from thresher.options.messages import mention

if TYPE_CHECKING:
    from thresher.data.features.names import Namer
    from thresher.data.files.content import Content
    from thresher.data.sources.parsed import TextSource

Chunks = Generator[Chunk, None, None]
"""Chunks in order; close it if no more are wanted"""


class Source:
    """Where data are read, pass after pass: a subclass defines `chunks` or `rows`, which give each other.

    The other defaults are those of Chunks in memory.
    """

    total_bytes: int | None = None
    """length of all files as stored; None if unknown"""
    position_bytes = 0
    """how much of that has been read for the chunks yielded so far"""
    rereadable = True
    """whether a second pass is possible"""
    layout: SettledLayout | None = None
    """how bytes become features; None if the source has no bytes"""
    where = ""
    """which rows of a table are read; empty: all"""
    marked = ""
    """a condition: the rows of a table that meet it are in a group; empty: none"""
    columns: int | None = None
    """the number of columns of a matrix; None for other data"""
    by_position = False
    """whether the data are a table with names that was made a matrix"""
    weighed_beside = False
    """whether importances were given beside a table in memory"""
    in_memory = False
    """whether reading again takes neither time nor memory"""
    nameable = False
    """whether features have names, for `namer`"""
    namer: Namer | None = None
    """receives the names of features"""
    is_log = False
    """whether rows come from a log: they were taken on, so one that cannot be learned is skipped"""
    keep_hash = False
    """whether to hash what is read, so that changes are noticed"""
    has_cells = False
    """whether the values of columns can be had beside the rows"""
    class_names: Sequence[str] = ()
    """names of the classes that labels number, if the layout has none"""
    words: WordTable | None = None
    """the words that labels are, to which more are added as they come; None: there come no others"""
    finder: Callable[[Chunk], Chunk] | None = None
    """gives chunks what was found of them, in threads that read, if these have time"""
    sliced: Sequence[str] = ()
    """columns whose values `Chunk.cells` holds in the passes that begin from here on"""

    def __init__(self, names: Sequence[str] = ("memory",)) -> None:
        self.names = [*names]
        """the files, for messages"""
        self.report = Report()
        """counts of the lines yielded so far in this pass; to continue one, set it before `chunks(start)`"""

    @property
    def content(self) -> Sequence[Content]:
        """What was read in the longest pass so far, as hashes; see `inputs.matrices.identify`."""
        return ()

    @property
    def origin(self) -> TextSource | None:
        """The files whose chunks these are, unchanged, so that a cache may stand for them."""
        return None

    def chunks(self, start: StreamPosition | None = None) -> Chunks:
        """One pass, from the beginning or from a chunk's `place` or `after` on."""
        return (rows.chunk for rows in self.rows(start) if len(rows.chunk))

    def rows(self, start: StreamPosition | None = None) -> Iterator[Parsed]:
        """The same, with the rows that are skipped."""
        for chunk in self.chunks(start):
            yield Parsed(chunk)

    def expect(self, content: Sequence[Content], whole: bool, now: bool = False) -> None:
        """Expect the `content` that an earlier run read: all (`whole`), or the beginning.

        Other data raise `DataError` when they are read, or with `now` at once, if they can be reread.
        """
        raise NotImplementedError

    def confirm(self) -> None:
        """During a pass, raise `DataError` unless all expected content is there."""


class MemorySource(Source):
    """Chunks in memory as a source. In a `StreamPosition`, `offset` counts chunks and `line` counts rows."""

    in_memory = True

    def __init__(
        self,
        chunks: Chunk | Iterable[Chunk],
        domain: str | Domain = "real",
        *,
        layout: SettledLayout | None = None,
        columns: int | None = None,
        by_position: bool = False,
        sound: bool = False,
        tell_names: Callable[[Namer], None] | None = None,
    ) -> None:
        """`sound`: whether the chunks have been checked; `tell_names` gives a namer the names of features."""
        super().__init__()
        self._chunks = [chunks] if isinstance(chunks, Chunk) else list(chunks)
        for chunk in () if sound else self._chunks:
            chunk.check()
        if not any(len(chunk) for chunk in self._chunks):
            raise DataError("no examples")
        allowed = domain_of(domain)
        for chunk in self._chunks:
            allowed.check(chunk.labels, chunk.targets)
        self.words = allowed.words if allowed.most else None
        self.layout, self.columns, self.by_position = layout, columns, by_position
        self._tell_names, self.nameable = tell_names, tell_names is not None
        self.total_bytes = sum(12 * c.nnz + 16 * len(c) for c in self._chunks)

    def chunks(self, start: StreamPosition | None = None) -> Chunks:
        """The chunks, each with its place."""
        if self.namer is not None and self._tell_names is not None:
            self._tell_names(self.namer)
        first = start.offset if start else 0
        if start is None:
            self.report = Report()
        rows = sum(len(chunk) for chunk in self._chunks[:first])
        self.position_bytes = sum(12 * c.nnz + 16 * len(c) for c in self._chunks[:first])
        for k, chunk in enumerate(self._chunks[first:], first):
            place, rows = StreamPosition(0, k, rows), rows + len(chunk)
            self.report.add(len(chunk), len(chunk))
            self.position_bytes += 12 * chunk.nnz + 16 * len(chunk)
            yield chunk.at(place, StreamPosition(0, k + 1, rows))


S = TypeVar("S", bound=Source)


def _of_source(name: str) -> Any:
    """An attribute that is that of the underlying source."""
    return property(
        lambda self: getattr(self._source, name), lambda self, value: setattr(self._source, name, value)
    )


class SourceWrapper(Source, Generic[S]):
    """A source that changes the chunks of another; all that does not depend on these is as in that source."""

    def __init__(self, source: S) -> None:
        self._source = source
        for name in _KNOWN_AT_ONCE:
            setattr(self, name, getattr(source, name))


_LATER = {
    *("position_bytes", "content", "report", "keep_hash", "sliced", "namer", "finder", "expect", "confirm")
}
"""What is set, or changes, while a source is read"""
for _name in _LATER:
    setattr(SourceWrapper, _name, _of_source(_name))
_OWN = {"chunks", "rows", "origin"}
_KNOWN_AT_ONCE = [name for name in vars(Source) if name[0] != "_" and name not in _LATER | _OWN] + ["names"]


class Watched(SourceWrapper[Source]):
    """A source whose rows are looked at on the way, alone or with those skipped among them.

    `watch` gives rows on as it gets them, and is told whether they are those of a whole pass.
    """

    origin = _of_source("origin")

    def __init__(self, source: Source, watch: Callable[[Iterator[Parsed], bool], Iterator[Parsed]]) -> None:
        super().__init__(source)
        self._watch = watch

    def rows(self, start: StreamPosition | None = None) -> Iterator[Parsed]:
        """The rows of the source."""
        return self._watch(self._source.rows(start), start is None)


NONE = 0
"""The hash of a row without a group"""
_MOST = 1 << 20
"""Names of groups whose hashes are remembered"""
_VALUE = re.compile(r"[-+.:\d TZeE]+|[Tt]\w{3}|[Ff]\w{4}")
"""Names that may be values"""
_WHOLE = re.compile(r"0|-?[1-9]\d*")
_NUMBER = re.compile(r"[+-]?(?:0|[1-9]\d{0,20})?(?:\.\d{0,20})?(?:[eE][+-]?\d{1,3})?")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d)?(?:\.(\d+))?(?:Z|\+00:?00)?)?")


def spell_alike(name: str) -> str:
    """One spelling for values that formats write differently; codes such as 007 stay as they are.

    >>> [spell_alike(name) for name in ("True", "17.0", "0.50", "1e3", "2024-05-01T08:30:00.000")]
    ['true', '17', '0.5', '1000', '2024-05-01 08:30:00']
    """
    if _WHOLE.fullmatch(name) or not _VALUE.fullmatch(name):
        return name
    if name.lower() in ("true", "false"):
        return name.lower()
    if _NUMBER.fullmatch(name) and any(map(str.isdigit, name)):
        number = Decimal(name)
        whole = abs(number) < 10**21 and number == number.to_integral_value()
        return str(int(number) if whole else number.normalize())
    if found := _TIME.fullmatch(name):
        day, clock, seconds, fraction = found.groups("")
        time = f"{clock}{seconds or ':00'}{('.' + fraction.rstrip('0')).rstrip('.')}"
        return day if not clock or time == "00:00:00" else f"{day} {time}"
    return name


class GroupHashes(dict[str, int]):
    """The hash of each name of a group, computed once; `NONE` for an empty name."""

    def __missing__(self, name: str) -> int:
        if len(self) >= _MOST:
            self.clear()
        bits = blake2b(spell_alike(name).encode("utf-8", "surrogatepass"), digest_size=8).digest()
        self[name] = found = int.from_bytes(bits, "little") or 1 if name else NONE
        return found


class BesideRows(SourceWrapper[Source]):
    """A source in memory, for each row of which there is one of an array of groups or offsets."""

    def __init__(self, source: Source, what: str, values: NDArray[Any]) -> None:
        """The chunks have the values as ``{what}s``. DataError for files, and if their layout names such."""
        super().__init__(source)
        layout = source.layout or SettledLayout()
        if layout.grouped_by if what == "group" else layout.has_offsets:
            raise DataError(f"{mention(what)} names a column of {what}s: leave that or {what}s= out")
        if source.origin is not None:
            raise DataError(f"{what}s are for data in memory; for files, name the column, {what}=")
        self._what, self._values = what, values

    def rows(self, start: StreamPosition | None = None) -> Iterator[Parsed]:
        """One pass, read from the beginning to count rows. DataError unless each row has one value."""
        done, values = 0, self._values
        for rows in self._source.rows():
            chunk = rows.chunk
            own, done = values[done : done + len(chunk)], done + len(chunk)
            if len(own) < len(chunk):
                break
            if start is None or chunk.place is None or chunk.place >= start:
                if getattr(chunk, f"{self._what}s") is not None:
                    raise DataError(f"the rows have {self._what}s already: leave {self._what}s= out")
                beside: Any = {f"{self._what}s": own}
                yield rows._replace(chunk=replace(chunk, **beside))
        if done != len(values):
            counted = f"{done:,} rows{' or more' * (done > len(values))}"
            raise DataError(
                f"{len(values):,} {self._what}s for {counted}: give one {self._what} for each row"
            )


def groups_of(values: ArrayLike) -> NDArray[np.uint64]:
    """The hashes of `values` (n,), one for each row. DataError unless they are one-dimensional."""
    given = np.asarray(values)
    if given.ndim != 1:
        raise DataError(
            f"groups must be one-dimensional, with a value for each row, not of shape {given.shape}"
        )
    if given.dtype.kind == "M":
        given = given.astype("datetime64[us]")  # nanoseconds become whole numbers
    known = GroupHashes()
    texts = ("" if value is None or value != value else str(value) for value in given.tolist())
    return np.array([known[text] for text in texts], np.uint64)
