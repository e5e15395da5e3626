"""A reader: the process that reads and parses pieces of the data, and packs them for the learner."""

from __future__ import annotations

import functools
import platform
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from thresher.cluster.packing import Packed, Packer
from thresher.data.errors import DataError
from thresher.data.opening import open_source
from thresher.data.sources.reader import Piece, read_piece, stamp_of

BATCH_BYTES = 1 << 22
"""Least size of what is sent at once, packed, unless a piece ends earlier."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_MATTERS = ("thresher", "numpy", "numba", "pyarrow")


class Setting(NamedTuple):
    """How to read; everything but the file."""

    read: dict[str, Any]
    """what `open_source` takes"""
    sliced: tuple[str, ...]
    versions: dict[str, str]
    """of the learner"""
    machine: str
    """of the learner"""


class Task(NamedTuple):
    """A piece of a file."""

    path: str
    name: str
    """what messages call it"""
    start: int
    stop: int | None
    stamp: tuple[int, int] | None
    """size and time of change when the pass began; None if unknown"""


class Note(NamedTuple):
    """What comes with a batch of packed blocks."""

    spans: tuple[tuple[int, int, int], ...]
    """offset, end, and bytes as stored that had been read, of each block"""
    ended: bool
    """whether the piece ends with this batch"""
    error: str = ""
    """why the rest cannot be read"""


@functools.cache
def versions() -> dict[str, str]:
    """The versions of all that decides what is read from the same bytes."""
    return {"Python": platform.python_version()} | {name: version(name) for name in _MATTERS}


def machine() -> str:
    """A name for this machine; containers on it have the same where there is a boot id."""
    try:
        return _BOOT.read_text()
    except OSError:
        return platform.node()


@dataclass(eq=False)
class Reader:
    """Reads one piece after the other; created in a process of its own."""

    _packer: Packer = field(default_factory=Packer)
    _batches: Iterator[tuple[Note, list[Packed]]] = field(default_factory=lambda: iter(()))

    def ready(self) -> bool:
        """True, as soon as the process runs."""
        return True

    def begin(self, setting: Setting, task: Task) -> None:
        """Begin a piece."""
        self._batches = self._read(setting, task)

    def next(self) -> tuple[Note, list[Packed]]:
        """The next blocks of the piece; no blocks after its end."""
        return next(self._batches, (Note((), ended=True), []))

    def _read(self, setting: Setting, task: Task) -> Iterator[tuple[Note, list[Packed]]]:
        try:
            _check(setting, task)
            source = open_source(task.path, threads=1, **setting.read)
            source.sliced = setting.sliced
            spans, batch, size = list[tuple[int, int, int]](), list[Packed](), 0
            far = machine() != setting.machine
            for block, parsed in read_piece(source, Piece(0, task.start, task.stop)):
                batch.append(self._packer.pack(parsed, far))
                spans.append((block.offset, block.end, block.raw_position))
                size += batch[-1].nbytes
                if size >= BATCH_BYTES:
                    yield Note(tuple(spans), ended=False), batch
                    spans, batch, size = [], [], 0
            if batch:
                yield Note(tuple(spans), ended=False), batch
            _check(setting, task)
        except DataError as error:
            yield Note((), True, str(error).replace(task.path, task.name)), []


def _check(setting: Setting, task: Task) -> None:
    """`DataError` if the file has changed, or if another version would read it."""
    for name, here in versions().items():
        if here != (wanted := setting.versions.get(name, here)):
            has = f"a worker on {platform.node()} has {name} {here}, the learner has {wanted}"
            raise DataError(f"{has}: install the same versions on all machines")
    if task.stamp is not None and (now := stamp_of(task.path)) != task.stamp:
        how = f"cannot be found on {platform.node()}" if now is None else "changed while it was read"
        raise DataError(f"{task.path}: {how}")
