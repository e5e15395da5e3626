"""The user of a command: progress and messages on standard error, signals that stop training."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from thresher.cli.saving import make_stopper
from thresher.options.option import Options

if TYPE_CHECKING:
    from thresher.learning.model.objective import Objective
    from thresher.learning.training.interruption import Stopper


class Console:
    """Somebody who reads standard error."""

    report_every: int | None = 0
    forks = True

    def __init__(self, quiet: bool = False) -> None:
        from thresher.cli.watchers import watcher
        from thresher.engine.compile import notices

        self.quiet, self.watcher = quiet, watcher(quiet)
        notices.when_compiling(None if quiet else self.watcher.say)

    def say(self, line: str) -> None:
        """Print a line on what the run is doing, unless it is to be quiet."""
        if not self.quiet:
            self.watcher.say(line)

    def warn(self, line: str) -> None:
        """Print a line."""
        self.watcher.say(line)

    def show_classes(self, head: Objective, words: Sequence[str]) -> None:
        """Show classes by name from here on."""
        self.watcher.show_classes(head, words)

    def stopper(self, *, checkpoint: bool) -> Stopper:
        """Signals stop training between two examples once something is learned; the command ends it."""
        return make_stopper()


def tell(line: str) -> None:
    """Print a line about the run."""
    print(f"thresher: {line}", file=sys.stderr, flush=True)


def elsewhere(options: Options) -> Any:
    """Within this block, files are read as `workers` and `ray` say."""
    from thresher.cluster.remote_readers import reading_elsewhere

    quiet = options.get("quiet", False)
    return reading_elsewhere(
        options["workers"], options["ray"], lambda line: None if quiet else tell(line), tell
    )
