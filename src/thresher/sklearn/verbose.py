"""What estimators print while they learn, if they are verbose."""

from __future__ import annotations

from typing import Any

from thresher.learning.training.progress import PassEnd, Unwatched
from thresher.options.messages import as_shown


class PassPrinter(Unwatched):
    """Prints a line after each pass."""

    def __init__(self, model: Any, verbose: int) -> None:
        self._model, self._verbose = model, verbose

    def passed(self, end: PassEnd) -> None:
        """Print examples so far, the loss of the pass, number of nonzero weights and hold-out loss."""
        if not self._verbose:
            return
        held = "" if end.holdout is None else f", held-out loss {end.holdout['loss']:.6g}"
        loss = "progressive loss" if end.number == 1 else "loss on rows seen before"
        print(
            f"pass {end.number}: examples {end.examples:,}, {loss} {end.loss:.6g},"
            f" non-zero {self._model.nonzero:,}{held}"
        )

    def say(self, message: str) -> None:
        """Print a line."""
        if self._verbose:
            print(as_shown(message))
