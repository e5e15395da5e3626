"""Logs of rows, as a server writes them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from thresher.data.chunk import Chunk
from thresher.data.layout import SettledLayout
from thresher.data.log import records
from thresher.data.log.origin import LogOrigin
from thresher.data.log.records import NOTHING, ROWS, PackedEntry
from thresher.data.log.writer import LogWriter


class LogEntry(NamedTuple):
    """What a record is made of."""

    kind: int
    chunk: Chunk = NOTHING
    note: Mapping[str, Any] = {}
    time: int = 0


def packed(entry: LogEntry) -> PackedEntry:
    return records.pack(*entry)


NOON = 1_772_366_400_000_000
"""2026-03-01, in microseconds since 1970"""


def pieces(chunk: Chunk, seed: int = 0, most: int = 5) -> Iterator[Chunk]:
    draw, at = np.random.default_rng(seed), 0
    while at < len(chunk):
        size = int(draw.integers(1, most + 1))
        yield chunk.rows(at, at + size)
        at += size


def write_log(
    folder: Path,
    entries: Sequence[LogEntry | Chunk],
    layout: SettledLayout | None = None,
    domain: str = "binary",
    segment_bytes: int = 1 << 20,
) -> Path:
    origin = LogOrigin(layout, domain, "c0ffee")
    with closing(LogWriter(folder, origin, segment_bytes=segment_bytes)) as writer:
        for k, one in enumerate(entries):
            writer.append([packed(one if isinstance(one, LogEntry) else LogEntry(ROWS, one, {}, NOON + k))])
    return folder
