"""Options of ``thresher serve``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict

from thresher.options.kinds import FILE, TEXT, Kind, Text, Whole, WrongValueError, one_of
from thresher.options.model import ModulesOption
from thresher.options.option import SWITCH, Option

UNLABELLED = NEGATIVE, DROP = "negative", "drop"
"""What becomes of rows whose label never comes"""


class Quantity(NamedTuple):
    """An amount, and what it is an amount of."""

    of: str
    amount: float


TIMES = {"s": ("seconds", 1.0), "m": ("seconds", 60.0), "h": ("seconds", 3600.0), "d": ("seconds", 86400.0)}
"""Units of time"""
SIZES = {"KB": ("bytes", 1e3), "MB": ("bytes", 1e6), "GB": ("bytes", 1e9), "TB": ("bytes", 1e12)}
"""Units of size"""
_AMOUNT = re.compile(r"([0-9]+(?:[.][0-9]+)?) ?([A-Za-z]*)")
_VAST = 1e15


@dataclass(frozen=True)
class Amount(Kind):
    """A number above 0 with a unit, such as ``90s`` or ``10GB``.

    >>> Amount(TIMES | SIZES, "").read("1.5h"), Amount(SIZES, "").words(Quantity("bytes", 2e9))
    (Quantity(of='seconds', amount=5400.0), ['2GB'])
    """

    units: Mapping[str, tuple[str, float]]
    """what each measures, and its size"""
    wanted: str

    def read(self, text: str) -> Quantity:
        """The amount."""
        found = _AMOUNT.fullmatch(text.strip())
        unit = next((unit for unit in self.units if found and unit.upper() == found[2].upper()), None)
        if found is None or unit is None or not 0 < float(found[1]) < _VAST:
            raise WrongValueError(self.wanted)
        of, size = self.units[unit]
        return Quantity(of, float(found[1]) * size)

    def words(self, value: Any) -> list[str]:
        """The amount in the largest unit of which it is a whole number."""
        known = sorted((size, unit) for unit, (of, size) in self.units.items() if of == value.of)
        size, unit = next((one for one in reversed(known) if not value.amount % one[0]), known[0])
        return [f"{value.amount / size:g}{unit}"]


class LearningOptions(TypedDict, total=False):
    """How a server learns."""

    learn: Annotated[bool, SWITCH, "Learn from the rows that /learn and /label bring."]
    log: Annotated[
        Path | None,
        Option(FILE, "DIR"),
        "The folder of the log, in which rows are before they are learned.",
    ]
    snapshot_every: Annotated[
        Quantity,
        Option(
            Amount(TIMES | {"": ("rows", 1.0)}, "a time such as 60s or 5m, or a number of rows"),
            "TIME|N",
            default=Quantity("seconds", 60.0),
        ),
        "Write a checkpoint and the model to DIR after this time or so many rows, if anything is new.",
    ]
    keep: Annotated[
        Quantity | None,
        Option(
            Amount(TIMES | SIZES, "a time such as 30d, or a size such as 100GB"),
            "TIME|SIZE",
            unset="all of it",
        ),
        "Remove files of the log that are older, or beyond this size, once they are learned and saved.",
    ]
    wait: Annotated[
        Quantity,
        Option(Amount(TIMES, "a time such as 30m, 1h or 7d"), "TIME", default=Quantity("seconds", 3600.0)),
        "How long the label of a row is waited for that was predicted with ?ids=.",
    ]
    unlabelled: Annotated[
        str,
        Option(Text(partial(one_of, UNLABELLED)), "|".join(UNLABELLED), default=DROP),
        "What becomes of a row whose label has not come: it is learned as negative, or not learned.",
    ]


class ServeCommand(LearningOptions, ModulesOption, total=False):
    """The options of ``thresher serve``."""

    host: Annotated[
        str,
        Option(TEXT, "HOST", default="127.0.0.1"),
        "The address to listen at; 0.0.0.0 for all of this machine.",
    ]
    port: Annotated[int, Option(Whole(0, 65535), "N", default=8000), "The port; 0 for any that is free."]
    token: Annotated[
        Path | None, Option(FILE, "FILE", unset="none"), "The file with the token that clients must have."
    ]
    most_body: Annotated[
        Quantity,
        Option(Amount(SIZES, "a size such as 64MB"), "SIZE", default=Quantity("bytes", 64e6)),
        "Largest body, also once unpacked.",
    ]
    most_pending: Annotated[
        int, Option(Whole(1), "N", default=1_000_000), "Most rows that wait for their label."
    ]
