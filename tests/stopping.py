"""Training that is asked to stop at a chosen example, as Ctrl-C does it at any."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from thresher.learning.training.trainer import Trainer


@contextmanager
def stopping(when: Callable[[Trainer], bool] = lambda trainer: True) -> Iterator[None]:
    """Within the block, training stops at the first example where `when` holds and something is due.

    Due are points of the curve (at 1, 2, 4, 8 ... examples), rows of the table and checkpoints.
    """
    handle = Trainer.handle_due

    def watch(trainer: Trainer) -> None:
        if when(trainer):
            trainer.stopper.ask()
        handle(trainer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "handle_due", watch)
        yield


def once_learned(examples: int) -> Callable[[Trainer], bool]:
    return lambda trainer: trainer.models.examples >= examples


def in_pass(number: int) -> Callable[[Trainer], bool]:
    return lambda trainer: trainer.position.number == number
