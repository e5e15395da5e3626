"""Ctrl-C, or what another process does, at a chosen moment."""

import sys
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self


class Meanwhile:
    """A block during which something is done before the `moment`-th line run in `files`.

    Attributes:
        came: Whether the block had as many lines.
    """

    def __init__(self, moment: int, act: Callable[[], object], *files: str) -> None:
        self._left, self._act, self._files, self.came = moment, act, files, False

    def __enter__(self) -> Self:
        self._before = sys.gettrace()  # that of coverage
        sys.settrace(self._entered)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        sys.settrace(self._before)
        return None

    def _entered(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._ran if frame.f_code.co_filename in self._files else None

    def _ran(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line" and not self.came:
            self.came = self._left == 0
            self._left -= 1
            if self.came:
                sys.settrace(None)
                self._act()
        return self._ran


class Interrupted(Meanwhile):
    """A block in which the `moment`-th line run in `files` is interrupted; it ends the block in silence."""

    def __init__(self, moment: int, *files: str) -> None:
        super().__init__(moment, self._interrupt, *files)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        super().__exit__(kind, error, trace)
        return kind is KeyboardInterrupt

    @staticmethod
    def _interrupt() -> None:
        raise KeyboardInterrupt
