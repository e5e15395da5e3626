"""Ctrl-C at a chosen moment."""

from __future__ import annotations

import sys
from types import FrameType, TracebackType
from typing import Any, Self


class Interrupted:
    """A block in which the `moment`-th line run in `files` is interrupted; it ends the block in silence.

    Attributes:
        came: Whether the block had as many lines.
    """

    def __init__(self, moment: int, *files: str) -> None:
        self._left, self._files, self.came = moment, files, False

    def __enter__(self) -> Self:
        sys.settrace(self._entered)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        sys.settrace(None)
        return kind is KeyboardInterrupt

    def _entered(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._ran if frame.f_code.co_filename in self._files else None

    def _ran(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line" and not self.came:
            self.came = self._left == 0
            self._left -= 1
            if self.came:
                raise KeyboardInterrupt
        return self._ran
