"""A test file system: local files behind ``far://`` URLs that fail, break off and change on purpose."""

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest
from pyarrow.fs import FileInfo, FileSelector, FileSystemHandler, FileType, LocalFileSystem, PyFileSystem

from thresher.data.files import remote


class Faraway(FileSystemHandler):
    """The files of a folder, with failures set by attributes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.local = LocalFileSystem()
        self.fails: Callable[[int], bool] = lambda read: False
        """whether a read fails, given its number from 0 on"""
        self.most = 1 << 30
        """maximum bytes per read"""
        self.lacks = 0
        """bytes missing at the end of each file"""
        self.reads = 0
        self.modified: int | None = 1_700_000_000_000_000_000
        self.asked = 0
        self.after_failing: Callable[[], None] = lambda: None

    def get_type_name(self) -> str:
        return "far"

    def normalize_path(self, path: str) -> str:
        return path

    def _info(self, path: str) -> FileInfo:
        self.asked += 1
        info = self.local.get_file_info(str(self.folder / path))
        size = info.size + self.lacks if info.type is FileType.File else None
        return FileInfo(path, info.type, size=size, mtime_ns=self.modified)

    def get_file_info(self, paths: list[str]) -> list[FileInfo]:
        return [self._info(path) for path in paths]

    def get_file_info_selector(self, selector: FileSelector) -> list[FileInfo]:
        wanted = FileSelector(str(self.folder / selector.base_dir), recursive=selector.recursive)
        found = self.local.get_file_info(wanted)
        return [self._info(os.path.relpath(info.path, self.folder)) for info in found]

    def open_input_file(self, path: str) -> Any:
        return pa.PythonFile(_Slow(self, self.folder / path), mode="r")

    open_input_stream = open_input_file

    def _never(self, *_: Any) -> NoReturn:
        raise NotImplementedError

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = _never
    move = copy_file = open_output_stream = open_append_stream = _never


class _Slow(io.FileIO):
    def __init__(self, system: Faraway, path: Path) -> None:
        super().__init__(path)
        self._system = system

    def read(self, size: int | None = -1) -> bytes:
        system = self._system
        system.reads += 1
        if system.fails(system.reads - 1):
            system.after_failing()
            raise OSError("connection reset by peer")
        most = system.most if size is None or size < 0 else min(size, system.most)
        return super().read(most) or b""


def faraway(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Faraway, list[float]]:
    """The files of a folder at ``far://host/``, and the list of delays between tries."""
    system, slept, systems = Faraway(folder), list[float](), dict[str, Any]()
    original = remote.system_of

    def system_of(url: str) -> tuple[Any, str]:
        if url in systems or not url.startswith("far://"):
            return original(url)
        return PyFileSystem(system), url.removeprefix("far://host").partition("?")[0].lstrip("/")

    monkeypatch.setattr(remote, "system_of", system_of)
    monkeypatch.setattr(remote, "SYSTEMS", systems)
    monkeypatch.setattr("time.sleep", slept.append)
    return system, slept
