"""Refuse to overwrite a file of another kind."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from thresher.options.option import UsageError

if TYPE_CHECKING:
    from thresher.learning.modelfolder import FolderKind

_HEAD = 1 << 12
_CURVE = b"examples\t"
_NUMBERS = re.compile(
    rb"[-+]?(?:nan|inf|[\d.]+(?:e[-+]?\d+)?)(?:[\t,][-+]?(?:nan|inf|[\d.]+(?:e[-+]?\d+)?))*"
)


def check_model(path: Path | None, beside: Iterable[Path | None], inputs: Iterable[str | Path]) -> None:
    """Check that a model can be written to `path`, and other outputs `beside` it; OSError, UsageError.

    An existing file must be empty, a model or a checkpoint.
    """
    from thresher.data.files.magic import begins_a_model
    from thresher.runs.preparing import check_outputs

    check_outputs([path, *beside], inputs)
    _check(path, "a model", begins_a_model)


def check_folder(
    kind: FolderKind, path: Path, beside: Sequence[Path | None], inputs: Iterable[str | Path]
) -> None:
    """Check that a folder of this kind can be written, and other outputs outside it; OSError, UsageError."""
    from thresher.runs.preparing import check_outputs

    kind.check(path)
    check_outputs(beside, inputs)
    check_outside(path, beside)


def check_outside(folder: Path, others: Iterable[Path | None]) -> None:
    """UsageError if a file is inside the folder, which is only ever replaced as a whole."""
    for one in others:
        if one is not None and os.path.realpath(one.parent) == os.path.realpath(folder):
            raise UsageError(f"{one}: the whole folder {folder} is replaced: name a file outside it")


def check_curve(path: Path | None) -> None:
    """UsageError if `path` exists, is not empty, and is not a table written by --curve."""
    _check(path, "a curve", lambda head: head.startswith(_CURVE))


def check_picture(path: str | os.PathLike[str] | None) -> None:
    """UsageError if `path` exists, is not empty, and is not an SVG picture."""
    _check(None if path is None else Path(path), "an SVG picture", lambda head: b"<svg" in head)


def check_predictions(path: Path | None, words: Collection[str], identified: bool = False) -> None:
    """UsageError if the first line of `path` is not a prediction: numbers, or one of the class `words`.

    If `identified`, an id and a tab may come before it.
    """
    known = {word.encode() for word in words}

    def predicts(head: bytes) -> bool:
        line = head.partition(b"\n")[0]
        lines = [line, *line.split(b"\t", 1)[1:]] if identified else [line]
        return not line or any(one in known or _NUMBERS.fullmatch(one) is not None for one in lines)

    _check(path, "a file of predictions", predicts)


def _check(path: Path | None, kind: str, is_ours: Callable[[bytes], bool]) -> None:
    if path is None or not path.is_file():
        return
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except FileNotFoundError:  # removed meanwhile
        return
    if head and not is_ours(head):
        raise UsageError(f"{path} exists and is not {kind}: name another file, or remove it")


def check_model_first(model: Path, data: Sequence[str], command: str) -> None:
    """`UsageError` if the model and the data are swapped."""
    from thresher.learning.modelfile import looks_like_ours

    found = [one for one in data if one != "-" and looks_like_ours(Path(one))]
    if found and model.is_file() and not looks_like_ours(model):
        first = f"thresher {command} {found[0]} {model}"
        raise UsageError(f"{model} is not a model, {found[0]} is one: the model comes first ({first})")
