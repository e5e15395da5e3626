"""What follows learning: the model is written, whatever signal comes and whoever has stopped reading."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from thresher.cli import signals
from thresher.cli.errors import StoppedAfterSaving

if TYPE_CHECKING:
    from thresher.learning.stopping import Stopper


def make_stopper() -> Stopper:
    """One that says on standard error when it was asked to stop and cannot at once."""
    from thresher.learning.stopping import Stopper

    return Stopper(signals.say_at_once)


@contextmanager
def signals_wait(path: Path, stopper: Stopper) -> Iterator[None]:
    """Write `path` in the block: a signal that comes meanwhile, or came before, is heeded afterwards.

    `StoppedAfterSaving` is then raised.
    """
    stopper.worth_keeping = True
    yield
    if stopper.asked:
        raise StoppedAfterSaving(f"interrupted; the model is saved in {path}")


@contextmanager
def unbroken(path: Path) -> Iterator[None]:
    """The same for a command that has not listened for signals so far."""
    stopper = make_stopper().listen()
    try:
        with signals_wait(path, stopper):
            yield
    finally:
        stopper.close()


def without_names(path: Path) -> str:
    """What there is when names could not be read to the end."""
    return f"the model is saved in {path} without the names of features; thresher name adds them"
