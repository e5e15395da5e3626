"""Record: how a model came to be, as far as its recipe does not say."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from thresher.data.report import Report
from thresher.learning.shares import Every, of_plain, plain

_COUNTS = ("lines", "examples", "blank", "skipped", "merged")


@dataclass(frozen=True)
class Record:
    """How a model was trained, and on how much. It is kept in the model file.

    Nothing in it depends on time, speed, the names of files, or on whether the training was stopped and
    resumed: the same training leaves the same record. Early stopping is not in it, since it leaves the model
    of so many `passes`; nor is a hold-out file, which changes no weight.

    >>> Record.of(Report(lines=9, examples=8, skipped=1), order="once").as_dict()["skipped"]
    1
    """

    passes: int = 1
    """passes that the weights come from"""
    order: str = "as-is"
    holdout_every: Every = 0
    """every N-th example was not learned from; 0: all were"""
    where: str = ""
    """which rows of the data were read; empty: all"""
    lines: int = 0
    """of the data, in one pass; each is an example, blank or skipped"""
    examples: int = 0
    blank: int = 0
    skipped: int = 0
    merged: int = 0
    """examples with repeated or unsorted ids"""
    warnings: tuple[str, ...] = ()
    """what is wrong with the data"""

    @classmethod
    def of(
        cls, report: Report, passes: int = 1, order: str = "as-is", holdout_every: Every = 0, where: str = "",
        warnings: tuple[str, ...] = (),
    ) -> Record:  # fmt: skip
        """The record of a training, given what became of the lines in its last pass."""
        counts = {name: getattr(report, name) for name in _COUNTS}
        return cls(passes, order, holdout_every, where, **counts, warnings=warnings)

    def as_dict(self) -> dict[str, Any]:
        """What a header holds."""
        return asdict(self) | {"warnings": list(self.warnings), "holdout_every": plain(self.holdout_every)}

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Record:
        """The inverse, of what `header.check_record` has passed."""
        read = {"warnings": tuple(given["warnings"]), "holdout_every": of_plain(given["holdout_every"])}
        return cls(**{**given, **read})
