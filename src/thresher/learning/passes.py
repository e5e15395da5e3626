"""Which source each pass reads: the data first, then a binary cache of it where there may be one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from thresher.data.cache import CacheWriter, open_cache
from thresher.data.chunk import Chunk, Place
from thresher.data.errors import DataError
from thresher.data.source import Through
from thresher.data.sources.files import STDIN


class Passes:
    """The source of the first pass, and that of the later ones.

    With `cached`, the first pass reads the cache of an earlier run over the same content, or writes
    one when there are more passes to come. A cache that cannot be written costs nothing but time,
    except that standard input cannot be read twice without one. Rows with interactions are not cached: they
    are made faster than they are read.
    """

    def __init__(self, source: Any, passes: int, *, cached: bool) -> None:
        cached = cached and not (source.layout and source.layout.interact)
        found = open_cache(source) if cached else None
        self.first = found or (Recorded(source) if cached and passes > 1 else source)
        if passes > 1 and not cached and not source.rereadable:
            once = "standard input" if STDIN in source.names else ", ".join(source.names)
            raise DataError(f"{once} can be read once only: later passes need the cache")

    def later(self) -> Any:
        """The source of every pass after the first."""
        return self.first.cache or self.first if isinstance(self.first, Recorded) else self.first


class Recorded(Through):
    """A source that writes its cache while it is first read from beginning to end."""

    cache: Any = None

    def chunks(self, start: Place | None = None) -> Iterator[Chunk]:
        """One pass; a whole one leaves a cache."""
        if start is not None or self.cache is not None:
            yield from self._source.chunks(start)
            return
        writer = CacheWriter(self._source)
        try:
            for chunk in self._source.chunks():
                writer.write(chunk)
                yield chunk
            self.cache = writer.commit()
        finally:
            writer.abandon()
