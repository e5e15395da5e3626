"""Reading data: bytes to Chunks. Nothing here depends on a model."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thresher.data.cache import CacheSource as CacheSource
    from thresher.data.cache import CacheWriter as CacheWriter
    from thresher.data.cache import open_cache as open_cache
    from thresher.data.chunk import Chunk as Chunk
    from thresher.data.chunk import StreamPosition as StreamPosition
    from thresher.data.chunk import concat as concat
    from thresher.data.errors import BadLine as BadLine
    from thresher.data.errors import DataError as DataError
    from thresher.data.files.topics import Messages as Messages
    from thresher.data.files.topics import Topic as Topic
    from thresher.data.files.topics import Url as Url
    from thresher.data.opening import open_source as open_source
    from thresher.data.opening import table_source as table_source
    from thresher.data.report import Report as Report
    from thresher.data.source import MemorySource as MemorySource
    from thresher.data.source import Source as Source

_NAMES = {
    "cache": ("CacheSource", "CacheWriter", "open_cache"),
    "chunk": ("Chunk", "StreamPosition", "concat"),
    "errors": ("BadLine", "DataError"),
    "files.topics": ("Messages", "Topic", "Url"),
    "opening": ("open_source", "table_source"),
    "report": ("Report",),
    "source": ("MemorySource", "Source"),
}
"""What other parts of the package, and users, take from each module; a module is imported on use"""
_HOME = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'thresher.data' has no attribute '{name}'")
    return getattr(import_module(f"thresher.data.{_HOME[name]}"), name)
