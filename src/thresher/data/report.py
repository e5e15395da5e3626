"""Report: how many lines of a source were read, skipped or blank."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from thresher.data.errors import BadLine

FIRST_BAD = 10
"""How many bad lines are kept for display."""

_COUNTS = ("lines", "examples", "blank", "skipped", "merged", "quarantined_bytes")


@dataclass(slots=True)
class Report:
    """Counts of the lines a source has yielded so far in this pass.

    Every line is an example, blank or skipped: ``lines = examples + blank + skipped``. `merged` counts
    examples with repeated features or with ids out of order. `first_bad` holds the first ten bad lines.
    """

    lines: int = 0
    examples: int = 0
    blank: int = 0
    """lines with only white space or a comment"""
    skipped: int = 0
    merged: int = 0
    quarantined_bytes: int = 0
    """length of the quarantine file so far"""
    first_bad: list[BadLine] = field(default_factory=list)

    def add(
        self, lines: int, examples: int, blank: int, skipped: int, merged: int, bad: list[BadLine]
    ) -> None:
        """Add the counts of one block."""
        self.lines += lines
        self.examples += examples
        self.blank += blank
        self.skipped += skipped
        self.merged += merged
        self.first_bad += bad[: FIRST_BAD - len(self.first_bad)]

    def as_dict(self) -> dict[str, Any]:
        """The report as a dictionary that can be written as JSON."""
        counts: dict[str, Any] = {name: getattr(self, name) for name in _COUNTS}
        counts["first_bad"] = [
            {**bad._asdict(), "raw": base64.b64encode(bad.raw).decode()} for bad in self.first_bad
        ]
        return counts

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Report:
        """The inverse of `as_dict`."""
        bad = [BadLine(**{**one, "raw": base64.b64decode(one["raw"])}) for one in given["first_bad"]]
        return cls(**{name: int(given[name]) for name in _COUNTS}, first_bad=bad)
