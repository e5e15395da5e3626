"""Folders of models: a table in JSON that describes them, and a file for each."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import NamedTuple

from thresher.data.files.paths import begins_a_model
from thresher.engine.atomic import check_replaceable, clear_abandoned, whole_folder

_HEAD = 1 << 12
MOST = 999
"""Maximum number of models that names with three digits can tell apart, from 1 or from 0"""


class FolderKind(NamedTuple):
    """The names of the files in such a folder."""

    table: str
    stem: str
    """how the names of model files begin"""
    picture: str | None = None
    text: str | None = None
    """a file of tab-separated values"""

    def model_file(self, number: int) -> str:
        """Name of the file of a model."""
        return f"{self.stem}-{number:03d}.model"

    def is_at(self, path: Path) -> bool:
        """Whether `path` is a folder of this kind."""
        return (path / self.table).is_file()

    def owns(self, name: str) -> bool:
        """Whether a file of this name belongs to the folder."""
        own = re.fullmatch(rf"{self.stem}-\d{{3}}\.model", name)
        return name in (self.table, self.picture, self.text) or own is not None

    def check(self, path: Path) -> None:
        """Raise OSError if `path` is something other than such a folder, or cannot be replaced.

        Folders left behind by killed runs are removed.
        """
        clear_abandoned(path, self.owns)
        check_replaceable(path, self.owns)
        with contextlib.suppress(FileNotFoundError):  # none, or removed meanwhile
            for file in sorted(path.iterdir()):
                if not self._is_content_ours(file):
                    reason = f"a folder with a file of another kind in it ({file.name})"
                    raise FileExistsError(17, reason, str(path))

    def _is_content_ours(self, file: Path) -> bool:
        """Whether a file whose name is ours begins as such a file does; it may be empty, cut off or gone."""
        try:
            with open(file, "rb") as opened:
                head = opened.read(_HEAD)
        except FileNotFoundError:
            return True
        if file.name == self.table:
            return head.lstrip().startswith(b"{") or not head
        if file.name == self.text:
            return b"\t" in head or not head
        return begins_a_model(head) if file.suffix == ".model" and head else b"<svg" in head or not head

    def written(self, path: Path) -> contextlib.AbstractContextManager[Path]:
        """A new temporary folder to write to; it replaces `path` if the block succeeds. Raises OSError."""
        return whole_folder(path, self.owns)


FRONTIER = FolderKind("frontier.json", "lane", "frontier.svg")
"""Written by ``thresher path``"""
ENSEMBLE = FolderKind("ensemble.json", "model")
"""Written by ``thresher train --ensemble``"""
SELECTION = FolderKind("selection.json", "half", "selection.svg", "features.tsv")
"""Written by ``thresher select``"""
