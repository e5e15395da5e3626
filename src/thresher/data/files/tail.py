"""Files that other programs append lines to, and rotate.

A file is recognised by the bytes that were read of it, at its beginning and just before where reading ended:
so too after it was renamed, copied or moved. What was appended to it before it was rotated is read first,
then the files that were rotated after it, then that of its name. A line counts once its newline is there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path

import xxhash

from thresher.data.errors import DataError
from thresher.data.files.blocks import last_line_end
from thresher.data.files.topics import EARLIEST, FROM, LATEST, Extent, Messages, Topic, Url
from thresher.options.messages import warn_user

_KNOWN = 4096
"""Bytes at the beginning, and before the end, by which a file is recognised"""
_PIECE = 1 << 20
_ROTATED = re.compile(r"\.(\d{1,3})|[.\-_]\d{4}[.\-_]?\d\d[\d.\-_:T]*")
"""What rotation adds to a name, before or after its ending: a dot and a small number, or a date"""
_PACKED = re.compile(r"(.+)\.(?:gz|bz2|xz|zst|zstd|lz4|lzma|zip|Z)")


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
        known = known or next((one for one in runs if _read_last(one) and self._since(one)[0]), None)
        lost = known.lost if known else 0
        if known is None or (read := _read_last(known)) is None:
            return self._make_extent(name, self._starts(start or EARLIEST, {last: 0}, end), end, lost)
        (same, files), at, trouble = self._since(known), known.end[read], ""
        if not same:
            trouble = f"it is another file than the one learned from up to byte {at:,}, and no rotated copy"
            trouble += " of that is in the folder"
        elif len(same) > 1:
            trouble = f"{same[0].name} and {same[1].name} both begin with what was learned up to byte {at:,}:"
            trouble += f" if {same[0].name} is a copy, remove it"
        elif self._lacks(files):
            trouble = f"a file that was rotated after {same[0].name} is packed or gone: unpack it"
        if trouble and not start:
            raise DataError(f"{trouble}; ?{FROM}={EARLIEST} goes on with what is there")
        if trouble:
            warn_user(f"{name}: {trouble}; goes on from {start}", UserWarning)
            begin = self._starts(start, {last: 0}, end)
            if start == LATEST or not files:
                return self._make_extent(name, begin, end, lost)
        ends = {one.name: one.stat().st_size for one in files[:-1]} | end
        return self._make_extent(name, dict.fromkeys(ends, 0) | {files[0].name: at}, ends, lost)

    def _since(self, known: Extent) -> tuple[list[Path], list[Path]]:
        """The files that begin with what an earlier run read last, usually one; and all from the first on.

        The oldest come first. Both are empty if what was read is gone.
        """
        rotated = [
            one
            for one in self._path.parent.iterdir()
            if self._rotation(one.name) and one.is_file() and not one.samefile(self._path)
        ]
        rotated.sort(key=lambda one: (one.stat().st_mtime_ns, one.name))
        files, at = [*rotated, self._path], known.end[_read_last(known) or ""]
        same = [one for one in files if at <= one.stat().st_size and _identity(one, at) == known.id]
        return same, files[files.index(same[0]) :] if same else []

    def _lacks(self, files: Sequence[Path]) -> bool:
        """Whether, by the names, another file that is packed or gone was rotated after the first of these."""
        first, *later = (self._rotation(one.name) for one in files)
        if first is None:
            return False
        if first[1]:
            there = {int(one[1]) for one in later if one and one[1]}
            number, most = int(first[1]), max(there, default=0)  # some count up
            return not there.issuperset(range(number + 1, most) if most > number else range(1, number))
        names = [one.name for one in self._path.parent.iterdir()]
        unpacked = {one[1] for one in map(_PACKED.fullmatch, names) if one}.difference(names)
        packed = map(self._rotation, unpacked)
        return any(one and not one[1] and one[0] > first[0] for one in packed)

    def _make_extent(self, name: str, begin: dict[str, int], end: dict[str, int], lost: int) -> Extent:
        """The extent with these ends, in the order of time."""
        made = Extent(name, "", begin, end, lost, tuple(end))
        read = _read_last(made)
        return made if read is None else made._replace(id=_identity(self._path.with_name(read), end[read]))

    def _rotation(self, name: str) -> re.Match[str] | None:
        """What rotation has added to this name, if it has."""
        for head, tail in ((self._path.name, ""), (self._path.stem, self._path.suffix)):
            rest = name.removeprefix(head).removesuffix(tail)
            if name == head + rest + tail and (found := _ROTATED.fullmatch(rest)):
                return found
        return None

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
        size = file.seek(0, os.SEEK_END)
        return last_line_end(0, size, lambda at, to: os.pread(file.fileno(), to - at, at))
