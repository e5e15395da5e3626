"""What fitting prints with `verbose`."""

from __future__ import annotations

from typing import Any

from thresher.learning.progress import PassEnd, Silent


class PassPrinter(Silent):
    """A line after each pass."""

    def __init__(self, model: Any, verbose: int) -> None:
        self._model, self._verbose = model, verbose

    def passed(self, end: PassEnd) -> None:
        """Examples so far, progressive loss, weights that are not zero, loss on what was held out."""
        if not self._verbose:
            return
        held = "" if end.holdout is None else f", held-out loss {end.holdout['loss']:.6g}"
        print(
            f"pass {end.number}: examples {end.examples:,}, progressive loss {self._model.tally.average:.6g},"
            f" non-zero {self._model.nonzero:,}{held}"
        )

    def say(self, message: str) -> None:
        """A line."""
        if self._verbose:
            print(message)
