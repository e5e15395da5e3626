"""Arguments of commands, which have no names."""

from __future__ import annotations

from typing import NamedTuple

from thresher.data.formats.listing import EXAMPLES, FORMATS, listed

_TEXTS = listed([form.title for name, form in FORMATS.items() if name in EXAMPLES], "or")
_OTHERS = "; ".join(form.title for name, form in FORMATS.items() if name not in EXAMPLES)


class Argument(NamedTuple):
    """An argument as the help shows it."""

    metavar: str
    help: str
    many: bool = False
    required: bool = True

    @property
    def name(self) -> str:
        """Its name in the parser, which differs from that of every option."""
        return f"argument {self.metavar.lower()}"


DATA = Argument(
    "DATA...",
    f"Files, URLs, globs, or - for standard input: {_TEXTS}, plain or compressed by gzip, bz2, xz or zstd; "
    f"{_OTHERS}.",
    many=True,
)
MODEL = Argument("MODEL", "A model written by thresher train.")
