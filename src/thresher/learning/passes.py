"""The source of each pass: the data in the first, then a binary cache if there may be one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from thresher.data.byrows import identified
from thresher.data.cache import CacheWriter, open_cache
from thresher.data.chunk import Chunk, Place
from thresher.data.errors import DataError
from thresher.data.files.paths import STDIN
from thresher.data.source import MemorySource, Through


class Passes:
    """The sources of the first pass and of later passes.

    With `cached`, the first pass reads the cache of an earlier run over the same content, or writes a cache
    if more passes follow. If the cache cannot be written, only time is lost, except for standard input, which
    cannot be read twice without one. Rows with interactions are not cached: computing them is faster than
    reading them. Later passes that read the data again raise `DataError` if the content has changed.
    """

    def __init__(self, source: Any, passes: int, *, cached: bool) -> None:
        lasting = isinstance(source, MemorySource)
        source = identified(source)
        if passes > 1 and not lasting:
            source.keep_hash = True
        cacheable = hasattr(source, "identity")
        cached = cached and not (source.layout and source.layout.interact)
        found = open_cache(source) if cached else None
        self.first = found or (Recorded(source) if cached and passes > 1 else source)
        if passes > 1 and not cached and not source.rereadable:
            once = "standard input" if STDIN in source.names else ", ".join(source.names)
            remedy = "later passes need the cache" if cacheable else "make a list or a table of it first"
            raise DataError(f"{once} can be read only once: {remedy}")

    def later(self) -> Any:
        """The source of each pass after the first."""
        if not isinstance(self.first, Recorded):
            return self.first
        self.first.ahead = not (self.first.rereadable or self.first.finished)
        return self.first.cache or self.first


class Recorded(Through):
    """A source that writes its cache the first time it is read from beginning to end."""

    cache: Any = None
    ahead = False
    """whether to record everything before yielding, to resume a later pass over data piped in again"""
    _failed = False
    """whether the cache could not be written; then it is neither tried nor reported again"""

    def chunks(self, start: Place | None = None) -> Iterator[Chunk]:
        """One pass. A pass from the beginning leaves a cache; so does every pass over read-once data."""
        if self.ahead:
            self._record()
        known = self.ahead or self._failed or self.cache is not None
        if known or (start is not None and self._source.rereadable):
            yield from self._source.chunks(start)
            return
        writer = CacheWriter(self._source)
        try:
            for chunk in self._source.chunks():
                writer.write(chunk)
                if start is None or (chunk.place is not None and chunk.place >= start):
                    yield chunk
            self.cache = writer.commit()
            self._failed = self.cache is None
        finally:
            writer.abandon()

    def _record(self) -> None:
        """Read everything into the cache and use that as the source."""
        self.ahead, report = False, self.report
        for _ in self.chunks():
            pass
        self.ahead, self._source, self.report = True, self.cache or self._source, report
