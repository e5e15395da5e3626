"""Training that is asked to stop at a chosen example, its checkpoints, and models that cannot be saved."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from thresher.learning.files import checkpoint, model_file
from thresher.learning.training.trainer import Trainer


@contextmanager
def stopping(when: Callable[[Trainer], bool] = lambda trainer: True) -> Iterator[None]:
    """Within the block, training stops at the first example where `when` holds and something is due.

    Due are points of the curve (at 1, 2, 4, 8 ... examples), rows of the table and checkpoints.
    """
    handle = Trainer.handle_due

    def watch(trainer: Trainer) -> None:
        if when(trainer):
            trainer.stopper.asked = True
        handle(trainer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "handle_due", watch)
        yield


def once_learned(examples: int) -> Callable[[Trainer], bool]:
    return lambda trainer: trainer.models.examples >= examples


def in_pass(number: int) -> Callable[[Trainer], bool]:
    return lambda trainer: trainer.state.position.number == number


@contextmanager
def checkpoints_kept() -> Iterator[list[bytes]]:
    """What each checkpoint that is written within the block contained."""
    save, kept = checkpoint.save, list[bytes]()

    def keep(path: Path, *rest: Any) -> None:
        save(path, *rest)
        kept.append(path.read_bytes())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "save", keep)
        yield kept


@contextmanager
def full_disk(owner: Any = model_file, name: str = "save") -> Iterator[None]:
    """Within the block, no model can be saved."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, Mock(side_effect=OSError(28, "full")))
        yield
