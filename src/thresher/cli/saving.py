"""Write the model after training, even if a signal arrives or the output pipe is closed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thresher.cli import signals
from thresher.cli.errors import StoppedAfterSaving

if TYPE_CHECKING:
    from thresher.learning.stopping import Interrupted, Stopper
    from thresher.learning.training import Trainer


def make_stopper() -> Stopper:
    """A Stopper that prints a line on standard error if it cannot stop at once."""
    from thresher.learning.stopping import Stopper

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
    """The same for a command that has not handled signals so far."""
    stopper = make_stopper().listen()
    try:
        with signals_wait(path, stopper):
            yield
    finally:
        stopper.close()


def kept(stopped: Interrupted, trainer: Trainer[Any], save: Callable[[], object], said: str) -> Interrupted:
    """The same, with the result saved, as `said`, if it was stopped in a replay: it has learned all rows."""
    from thresher.learning.finite import DivergedError
    from thresher.learning.stopping import Interrupted

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
