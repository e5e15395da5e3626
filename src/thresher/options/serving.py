"""Options of ``thresher serve``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypedDict

from thresher.options.kinds import File, Number, Text, Whole, WrongValueError
from thresher.options.option import SHELL, Option, switch

_MEGABYTES = 1 << 20


class _Seconds(Number):
    """A number of seconds above 0."""

    def read(self, text: str) -> float:
        """The seconds."""
        seconds = super().read(text)
        if not 0 < seconds < float("inf"):
            raise WrongValueError("a number of seconds above 0")
        return seconds


class _Address(TypedDict, total=False):
    host: Annotated[
        str,
        Option(
            Text(str),
            "The address to listen at; 0.0.0.0 for all of this machine.",
            "HOST",
            default="127.0.0.1",
            face=SHELL,
        ),
    ]
    port: Annotated[
        int, Option(Whole(0, 65535), "The port; 0 for any that is free.", "N", default=8000, face=SHELL)
    ]
    name: Annotated[
        str,
        Option(
            Text(str),
            "The name of the model in paths.",
            "NAME",
            default="",
            unset="that of its file",
            face=SHELL,
        ),
    ]
    token: Annotated[
        Path | None,
        Option(
            File(),
            "Answer only requests with the token in this file, except for those of /health.",
            "FILE",
            face=SHELL,
        ),
    ]


class _Learning(TypedDict, total=False):
    learn: Annotated[bool, switch("Learn from the rows that /learn and /label bring.", face=SHELL)]
    log: Annotated[
        Path | None,
        Option(
            File(), "The folder of the log, in which rows are before they are learned.", "DIR", face=SHELL
        ),
    ]


class LimitOptions(TypedDict, total=False):
    """What is too much."""

    most_body: Annotated[
        int,
        Option(
            Whole(1024),
            "Largest body in bytes, also once unpacked.",
            "N",
            default=64 * _MEGABYTES,
            face=SHELL,
        ),
    ]
    most_rows: Annotated[int, Option(Whole(1), "Most rows in a body.", "N", default=100_000, face=SHELL)]
    most_connections: Annotated[
        int, Option(Whole(1), "Most connections that are open at one time.", "N", default=1000, face=SHELL)
    ]
    most_pending: Annotated[
        int,
        Option(Whole(1), "Most rows that wait for their label.", "N", default=1_000_000, face=SHELL),
    ]
    timeout: Annotated[
        float,
        Option(
            _Seconds(),
            "How long a request may take to arrive, a client to read, and a connection to be idle.",
            "SECONDS",
            default=30.0,
            face=SHELL,
        ),
    ]


class ServeCommand(_Learning, _Address, LimitOptions, total=False):
    """The options of ``thresher serve``."""
