"""Settings and data shared by all benchmarks of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks import limits, measure
from benchmarks.clicklog import Clicks, clicks
from benchmarks.loads import Rcv1Like, rcv1like
from benchmarks.measure import Sample, Summary


@dataclass(frozen=True)
class Setting:
    """Where the data are, how much of them to use, and how often to measure."""

    loads: Path
    data: Path | None
    scale: float
    repeat: int
    patience: float
    rules: tuple[str, ...] = ()
    """rules that are compared with soft thresholds"""

    @cached_property
    def rcv1like(self) -> Rcv1Like:
        """The main load at this scale, generated on first use."""
        return rcv1like(self.loads, self.scale)

    @cached_property
    def clicks(self) -> Clicks:
        """The click log at this scale, generated on first use."""
        return clicks(self.loads, self.scale)

    @cached_property
    def compiler(self) -> bool:
        """Whether the plain C references can be built."""
        return limits.build() is not None

    def c_program(self, name: str) -> Path:
        """Return a plain C reference; requires `compiler`."""
        programs = limits.build()
        assert programs is not None
        return programs[name]

    def in_turn(
        self, contenders: Mapping[str, Callable[[], Sample]], warm: Sequence[str] = (), repeat: int = 0
    ) -> dict[str, Summary]:
        """See `measure.in_turn`."""
        return measure.in_turn(contenders, repeat or self.repeat, self.patience, warm)

    @property
    def whole(self) -> bool:
        """Whether this is the full scale, which goals in seconds refer to."""
        return self.scale == 1.0

    def met(self, good: bool) -> bool | None:
        """Return whether a goal in seconds is met; None below the full scale."""
        return good if self.whole else None
