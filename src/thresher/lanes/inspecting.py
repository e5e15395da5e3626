"""``thresher.info`` and ``thresher.diff``: the content of a model, and the differences between two."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from thresher.lanes import folder
from thresher.learning.files import model_file
from thresher.learning.files.folder import ENSEMBLE
from thresher.learning.inspection.describe import anatomy
from thresher.learning.inspection.diff import compare
from thresher.learning.inspection.formatting import shown
from thresher.learning.model.ensemble import files_of, table_of
from thresher.learning.model.prediction import ModelOrFile
from thresher.learning.model.recipe import Header
from thresher.learning.model.weights import Readout
from thresher.options.checks import check_whole

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


def info(model: ModelOrFile) -> dict[str, Any]:
    """Show what is in a model and how it was made: the figures of ``thresher info --json``.

    Printed, the result has one line per figure. See docs/reading.md. Unlike the command, it has no
    ``command``, which trains the model again.

    Args:
        model: a Model, a Readout, a fitted estimator, or a result of `thresher.path`, `thresher.cv` or
            `thresher.tune`: its best model; or the path of a model, of a checkpoint, of an ensemble, or of
            the folder that ``thresher path`` writes. For a model in memory, ``model`` is None and ``bytes``
            are those of the file that `save` writes.

    Raises `ModelFileError`; `DivergedError` for a model in memory whose weights are not finite; TypeError if
    `model` is not a model.

    >>> import thresher
    >>> found = info(thresher.train([{"size": 3.0}, {"size": -2.0}] * 50, [1, -1] * 50, passes=1))
    >>> found["kind"], found["examples"], found["weights"]["positive"]
    ('model', 100, 1)
    """
    in_memory = not isinstance(model, str | PathLike)
    with file_of(model) as path:
        if folder.is_frontier(path):
            return InfoDict(info_of_folder(path))
        if ENSEMBLE.is_at(path):
            return InfoDict(info_of_ensemble(path))
        header, tensors = model_file.read(path, lanes=True)
        with model_file.naming_file(path):
            return InfoDict(anatomy(path, header, tensors) | ({"model": None} if in_memory else {}))


def diff(a: ModelOrFile, b: ModelOrFile, *, top: int = 20) -> dict[str, Any]:
    """Show what changed from model `a` to model `b`: the figures of ``thresher diff --json``.

    ``equal`` tells whether both predict with the same weights. Printed, the result has one line per figure.
    See docs/reading.md.

    Args:
        a, b: a Model, a Readout, a fitted estimator, a result of `thresher.path`, `thresher.cv` or
            `thresher.tune`, or the path of a model or checkpoint. A Readout does not know the options it was
            trained with: give the Model or the file to compare them.
        top: maximum number of weights in ``moved``, those that changed most.

    Raises `ModelFileError`; `DataError` if the models cannot be compared; `DivergedError` for a model in
    memory whose weights are not finite; ValueError for a negative `top`; TypeError for what is not a model.

    >>> import thresher
    >>> rows = [{"size": 3.0}, {"size": -2.0}] * 50
    >>> first, second = (thresher.train(rows, [1, -1] * 50, passes=n) for n in (1, 2))
    >>> found = diff(first, second)
    >>> found["equal"], found["grew"], diff(first, first)["equal"]
    (False, 1, True)
    """
    check_whole("top", top, 0)
    (one, before), (other, after) = _loaded(a), _loaded(b)
    return InfoDict(compare(one, other, (before, after), top))


def _loaded(model: ModelOrFile) -> tuple[Readout, Header]:
    with file_of(model) as path:
        return model_file.load_readout(path)


@contextmanager
def file_of(given: Any, write: Callable[[Any, Path], None] = model_file.save) -> Iterator[Path]:
    """The given path, or a temporary file with the given model. Raises the errors of `write`."""
    if isinstance(given, str | PathLike):
        yield Path(given)
        return
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "model"
        write(given, path)
        yield path


def info_of_folder(path: Path) -> dict[str, Any]:
    """The content of ``thresher info --json`` for a folder of models. Raises `ModelFileError`."""
    found = folder.load(path)
    files = [path / folder.file_of(k) for k in range(len(found.points))]
    names = [str(file) if file.is_file() else None for file in files]
    return {"model": str(path), "kind": "frontier", **found.as_dict(), "files": names}


def info_of_ensemble(path: Path) -> dict[str, Any]:
    """The content of ``thresher info --json`` for an ensemble. Raises `ModelFileError`."""
    table, each = table_of(path), list[dict[str, Any]]()
    for file in files_of(path, table):
        header, _ = model_file.read(file)
        counts = {name: header.get(name) for name in ("examples", "progressive_loss", "features_seen")}
        each.append({"file": str(file), **counts, "nonzero": header["nonzero"]})
    recipe = {name: value for name, value in header["recipe"].items() if name != "layout"}
    own = {"kind": "ensemble", "models": table["models"], "rows": table["rows"], "record": table["record"]}
    return {"model": str(path), **own, **recipe, "each": each}
