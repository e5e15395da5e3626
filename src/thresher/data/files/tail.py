"""Files that other programs append lines to, and rotate.

A file is recognised by the bytes that were read of it, at its beginning and just before where reading ended:
so too after it was renamed, copied or moved. What was appended to it before it was rotated is read first,
then the files that were rotated after it, then that of its name. A line counts once its newline is there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path

import xxhash

from thresher.data.errors import DataError
from thresher.data.files.topics import EARLIEST, FROM, Extent, LostPlaceError, Messages, Topic, Url
from thresher.options.messages import warn_user

_KNOWN = 4096
"""Bytes at the beginning, and before the end, by which a file is recognised"""
_PIECE = 1 << 20
_ROTATED = re.compile(r"\.\d{1,3}|[.\-_]\d{4}[.\-_]?\d\d[\d.\-_:T]*")
"""What rotation adds to a name, before or after its ending: a dot and a small number, or a date"""


class Tail(Topic, scheme="tail"):
    """A file that grows. Its partitions are files of its folder, in the order of time; offsets are bytes."""

    form = "tail:FILE"
    place = "{0}, byte {1}"
    takes_turns = False

    def __init__(self, url: Url) -> None:
        self._path = Path(url.path)
        if not self._path.is_file():
            raise DataError("a directory" if self._path.is_dir() else "no such file")

    def identity(self) -> str:
        """The bytes by which it is recognised."""
        return _identity(self._path, _lines_end(self._path))

    def partitions(self) -> Mapping[str, tuple[int, int]]:
        """The file, up to its last newline."""
        return {self._path.name: (0, _lines_end(self._path))}

    def extent(self, name: str, earlier: Iterable[Extent], start: str) -> Extent:
        """What comes after what an earlier run read; DataError if that is not there, and `start` is empty."""
        last, runs = self._path.name, [one for one in earlier if one.name.startswith("tail:")]
        end = {last: _lines_end(self._path)}
        known = next((one for one in runs if one.name == name), None)
        known = known or next((one for one in runs if _read_last(one) and self._since(one)), None)
        lost = known.lost if known else 0
        if known is None or (read := _read_last(known)) is None:
            return self._made(name, self._starts(start or EARLIEST, {last: 0}, end), end, lost)
        at = known.end[read]
        if files := self._since(known):
            ends = {one.name: one.stat().st_size for one in files[:-1]} | end
            return self._made(name, dict.fromkeys(ends, 0) | {files[0].name: at}, ends, lost)
        trouble = f"not what the model has learned from up to byte {at:,}, and that is not beside it either"
        if not start:
            raise LostPlaceError(f"{trouble}; ?{FROM}={EARLIEST} begins with what is there")
        warn_user(f"{name}: {trouble}; goes on from {start}", UserWarning)
        return self._made(name, self._starts(start, {last: 0}, end), end, lost)

    def after(self, offset: int, value: bytes | None) -> int:
        """The byte after a line."""
        return offset + len(value or b"") + 1

    def part(self, extent: Extent, begin: dict[str, int], end: dict[str, int]) -> Extent:
        """A part of an extent, recognised by the bytes before its end."""
        ends = {one: min(at, extent.end[one]) for one, at in end.items()}
        return self._made(extent.name, begin, ends, extent.lost)

    def _since(self, known: Extent) -> list[Path]:
        """The file that an earlier run read last, those rotated after it, and this one; empty: it is gone."""
        files = [self._path, *reversed(self._rotated())]
        at = known.end[_read_last(known) or ""]
        same = [
            k for k, one in enumerate(files) if at <= one.stat().st_size and _identity(one, at) == known.id
        ]
        return files[same[0] :: -1] if same else []

    def _made(self, name: str, begin: dict[str, int], end: dict[str, int], lost: int) -> Extent:
        """The extent with these ends, in the order of time."""
        made = Extent(name, "", begin, end, lost, tuple(end))
        read = _read_last(made)
        return made if read is None else made._replace(id=_identity(self._path.with_name(read), end[read]))

    def _rotated(self) -> list[Path]:
        """The files beside it that it was before, the oldest first."""
        stem, ending, found = self._path.stem, self._path.suffix, list[Path]()
        for one in self._path.parent.iterdir():
            for head, tail in ((self._path.name, ""), (stem, ending)):
                rest = one.name.removeprefix(head).removesuffix(tail)
                if one.name == head + rest + tail and _ROTATED.fullmatch(rest) and one.is_file():
                    found.append(one)
                    break
        return sorted(found, key=lambda one: (one.stat().st_mtime_ns, one.name))

    def read(self, begin: Mapping[str, int], end: Mapping[str, int]) -> Mapping[str, Iterator[Messages]]:
        """The lines of each file; a last one without a newline only where the file was rotated."""
        return {one: self._read(self._path.with_name(one), at, end[one]) for one, at in begin.items()}

    def _read(self, path: Path, at: int, end: int) -> Iterator[Messages]:
        with path.open("rb") as file:
            file.seek(at)
            rest = b""
            while at + len(rest) < end:
                if not (more := file.read(min(_PIECE, end - at - len(rest)))):
                    raise DataError(f"{path.name} was cut off at byte {at + len(rest):,} while it was read")
                *lines, rest = (rest + more).split(b"\n")
                if lines:
                    offsets = [*accumulate((len(one) + 1 for one in lines), initial=at)]
                    at = offsets.pop()
                    yield Messages(offsets, lines)
            if rest:
                yield Messages([at], [rest])


def _read_last(run: Extent) -> str | None:
    """The last file of which a run has read something: nothing tells an empty one from others. None: none."""
    return next((one for one in reversed(run.order) if run.end[one]), None)


def _identity(path: Path, end: int) -> str:
    """A hash of bytes before `end`."""
    with path.open("rb") as file:
        head = file.read(min(end, _KNOWN))
        file.seek(max(end - _KNOWN, 0))
        return f"{xxhash.xxh64_hexdigest(head + file.read(min(end, _KNOWN)))}-{end}"


def _lines_end(path: Path) -> int:
    """The byte after the last newline."""
    with path.open("rb") as file:
        at = file.seek(0, os.SEEK_END)
        while at:
            begin = max(at - _PIECE, 0)
            file.seek(begin)
            if found := file.read(at - begin).rfind(b"\n") + 1:
                return begin + found
            at = begin
    return 0
