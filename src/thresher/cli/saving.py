"""Write the model after training, even if a signal arrives or the output pipe is closed.

Files of another kind are never overwritten.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thresher.cli import signals
from thresher.cli.errors import StoppedAfterSaving
from thresher.options.option import UsageError

if TYPE_CHECKING:
    from thresher.learning.files.folder import FolderKind
    from thresher.learning.training.interruption import Interrupted, Stopper
    from thresher.learning.training.trainer import Trainer


_HEAD = 1 << 12
_CURVE = b"examples\t"
_NUMBERS = re.compile(
    rb"[-+]?(?:nan|inf|[\d.]+(?:e[-+]?\d+)?)(?:[\t,][-+]?(?:nan|inf|[\d.]+(?:e[-+]?\d+)?))*"
)


def check_model(path: Path | None, beside: Iterable[Path | None], inputs: Iterable[str | Path]) -> None:
    """Check that a model can be written to `path`, and other outputs `beside` it; OSError, UsageError.

    An existing file must be empty, a model or a checkpoint.
    """
    from thresher.data.files.paths import begins_a_model
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
    from thresher.learning.files.model_file import looks_like_ours

    found = [one for one in data if one != "-" and looks_like_ours(Path(one))]
    if found and model.is_file() and not looks_like_ours(model):
        first = f"thresher {command} {found[0]} {model}"
        raise UsageError(f"{model} is not a model, {found[0]} is one: the model comes first ({first})")


def make_stopper() -> Stopper:
    """A Stopper that prints a line on standard error if it cannot stop at once."""
    from thresher.learning.training.interruption import Stopper

    return Stopper(signals.say_at_once)


@contextmanager
def signals_wait(path: Path, stopper: Stopper) -> Iterator[None]:
    """Defer signals while the block writes `path`.

    Raises `StoppedAfterSaving` afterwards if one arrived in the block or before it.
    """
    stopper.worth_keeping = True
    yield
    tell_interrupted(stopper.asked, path)


def tell_interrupted(came: bool, path: Path | None) -> None:
    """Raise `StoppedAfterSaving` if a signal came; the model is saved in `path`, if anywhere."""
    if came:
        raise StoppedAfterSaving(f"interrupted; the model is saved in {path}" if path else "interrupted")


@contextmanager
def saved_before(path: Path) -> Iterator[None]:
    """Within the block, an OSError is about another file: its message adds that the result is in `path`."""
    try:
        yield
    except OSError as error:
        error.add_note(f"the result is saved in {path}")
        raise


@contextmanager
def unbroken(path: Path) -> Iterator[None]:
    """Defer signals while the block writes `path`, in a command that has not handled signals so far.

    Raises `StoppedAfterSaving` afterwards if one arrived.
    """
    stopper = make_stopper().listen()
    try:
        with signals_wait(path, stopper):
            yield
    finally:
        stopper.close()


def kept(stopped: Interrupted, trainer: Trainer[Any], save: Callable[[], object], said: str) -> Interrupted:
    """The exception `stopped`; the result is saved first, as `said`, if a replay was stopped.

    It has learned all rows.
    """
    from thresher.learning.model.divergence import DivergedError
    from thresher.learning.training.interruption import Interrupted

    number, passes = trainer.position.number, trainer.repetition.passes
    if number == 1 or not trainer.repetition.keeps:
        return stopped
    try:
        trainer.keep_best()
        save()
    except DivergedError:
        return stopped
    except OSError as error:
        error.add_note(str(stopped))
        raise
    return Interrupted(stopped.checkpoint, stopped.examples, f", in pass {number} of {passes}; {said}")


def without_names(path: Path) -> str:
    """The message when reading the names was interrupted."""
    return f"the model is saved in {path} without the names of features; thresher name adds them"
