"""Reading data: bytes to Chunks. Nothing here depends on a model."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thresher.data.cache import CacheSource, CacheWriter, cache_entries, clear_cache, open_cache
    from thresher.data.chunk import Chunk, StreamPosition, concat
    from thresher.data.errors import BadLine, DataError
    from thresher.data.opening import open_source, table_source
    from thresher.data.report import Report
    from thresher.data.source import MemorySource, Source

_HOME = {
    "BadLine": "errors",
    "CacheSource": "cache",
    "CacheWriter": "cache",
    "Chunk": "chunk",
    "DataError": "errors",
    "MemorySource": "source",
    "StreamPosition": "chunk",
    "Report": "report",
    "Source": "source",
    "cache_entries": "cache",
    "clear_cache": "cache",
    "concat": "chunk",
    "open_cache": "cache",
    "open_source": "opening",
    "table_source": "opening",
}

__all__ = [
    "BadLine",
    "CacheSource",
    "CacheWriter",
    "Chunk",
    "DataError",
    "MemorySource",
    "Report",
    "Source",
    "StreamPosition",
    "cache_entries",
    "clear_cache",
    "concat",
    "open_cache",
    "open_source",
    "table_source",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'thresher.data' has no attribute '{name}'")
    return getattr(import_module(f"thresher.data.{_HOME[name]}"), name)
