"""The content of a model, and the differences between two."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from thresher.lanes import folder
from thresher.learning.files import model_file
from thresher.learning.files.folder import ENSEMBLE
from thresher.learning.inspection.describe import anatomy
from thresher.learning.inspection.diff import compare
from thresher.learning.inspection.formatting import shown
from thresher.learning.model.ensemble import files_of, table_of
from thresher.runs.repeat import remaking

_WIDTH = 22


class InfoDict(dict[str, Any]):
    """A dictionary whose repr has one line per figure; nested figures are indented, rows are counted."""

    def __repr__(self) -> str:
        """One line per known figure."""
        return "\n".join(_lines(self, ""))


def _lines(found: dict[str, Any], indent: str) -> Iterator[str]:
    for name, value in found.items():
        label = indent + name.replace("_", " ")
        if isinstance(value, dict) and value:
            yield label
            yield from _lines(value, indent + "  ")
        elif isinstance(value, list | tuple) and any(isinstance(one, dict) for one in value):
            yield f"{label:<{_WIDTH}} {len(value):,} rows"
        elif isinstance(value, list | tuple) and value:
            yield f"{label:<{_WIDTH}} {', '.join(map(shown, value))}"
        elif value not in (None, "", [], {}, ()):
            yield f"{label:<{_WIDTH}} {shown(value)}"


def describe(path: Path) -> dict[str, Any]:
    """The content of ``thresher info --json``. Raises `ModelFileError`."""
    if folder.is_frontier(path):
        return InfoDict(_of_folder(path))
    if ENSEMBLE.is_at(path):
        return InfoDict(_of_ensemble(path))
    header, tensors = model_file.read(path, lanes=True)
    with model_file.naming_file(path):
        found = anatomy(path, header, tensors)
        return InfoDict({**found, "command": remaking(path, header, found)})


def difference(first: Path, second: Path, top: int) -> dict[str, Any]:
    """The content of ``thresher diff --json``. `ModelFileError`; `DataError` for models of other features."""
    (a, before), (b, after) = map(model_file.load_readout, (first, second))
    return InfoDict(compare(a, b, (before, after), top))


def _of_folder(path: Path) -> dict[str, Any]:
    found = folder.load(path)
    files = [path / folder.file_of(k) for k in range(len(found.points))]
    names = [str(file) if file.is_file() else None for file in files]
    return {"model": str(path), "kind": "frontier", **found.as_dict(), "files": names}


def _of_ensemble(path: Path) -> dict[str, Any]:
    table, each = table_of(path), list[dict[str, Any]]()
    for file in files_of(path, table):
        header, _ = model_file.read(file)
        counts = {name: header.get(name) for name in ("examples", "progressive_loss", "features_seen")}
        each.append({"file": str(file), **counts, "nonzero": header["nonzero"]})
    recipe = {name: value for name, value in header["recipe"].items() if name != "layout"}
    own = {"kind": "ensemble", "models": table["models"], "rows": table["rows"], "record": table["record"]}
    return {"model": str(path), **own, **recipe, "each": each}
