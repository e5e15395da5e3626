"""Options that several commands share, and what can be said against them before any work is done."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thresher.cli.errors import UsageError

if TYPE_CHECKING:
    from thresher.data.layout import Layout

_QUARANTINE = "quarantine="


def _check_on_error(text: str) -> str:
    if text not in ("fail", "skip") and (not text.startswith(_QUARANTINE) or text == _QUARANTINE):
        raise typer.BadParameter(f"fail, skip or quarantine=FILE, not '{text}'")
    return text


Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        show_default=False,
        help="Files of svmlight or VW text, globs, or - for standard input; plain, gzip, bz2, xz or zstd.",
    ),
]
Model = Annotated[
    Path, typer.Argument(metavar="MODEL", show_default=False, help="A model written by thresher train.")
]
OnError = Annotated[
    str,
    typer.Option(
        metavar="WHAT",
        callback=_check_on_error,
        help="What to do about a bad line: fail, skip, or quarantine=FILE.",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, help="Threads that read and parse.  [default: one a processor, at most 4]"
    ),
]


def _check_format(text: str | None) -> str | None:
    from thresher.data.errors import DataError
    from thresher.data.sources.formats import check_format

    try:
        return text if text is None else check_format(text)
    except DataError as error:
        raise typer.BadParameter(str(error)) from error


Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        callback=_check_format,
        help="Format of DATA: svmlight or vw.  [default: the model's; for a new one, told by the names]",
    ),
]
Bits = Annotated[
    int | None,
    typer.Option(metavar="B", min=1, help="Bits of the keys that names are hashed to.  [default: all 64]"),
]
Hash = Annotated[
    str | None,
    typer.Option(
        "--hash",
        metavar="HASH",
        help="How names are hashed: 64, or vw (with --bits) for the indices of Vowpal Wabbit.  [default: 64]",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]


def layout_of(form: str | None, trained: Layout | None, **said: Any) -> Layout | None:
    """How to read DATA: as the data `trained` on, in the format `form` if one is said.

    `said` are fields of the layout, None where nothing was; UsageError if they are not those of `trained`.
    """
    from thresher.data.errors import DataError
    from thresher.data.layout import Layout

    said = {name: value for name, value in said.items() if value is not None}
    for name, value in said.items() if trained else ():
        if getattr(trained, name) != value:
            have = getattr(trained, name)
            raise UsageError(f"the model was trained with --{name} {have}; leave --{name} out")
    if form is None and not said:
        return trained
    try:
        return replace(trained, format=form or trained.format) if trained else Layout(form or "", **said)
    except DataError as error:
        raise UsageError(str(error)) from error


def quarantine_of(on_error: str) -> Path | None:
    """The file of ``quarantine=FILE``."""
    return Path(on_error.removeprefix(_QUARANTINE)) if on_error.startswith(_QUARANTINE) else None


def check_outputs(outputs: Iterable[Path | None], inputs: Iterable[str | Path]) -> None:
    """Every output can be written and overwrites no input and no other output; OSError, UsageError."""
    from thresher.learning.wholefile import check_writable

    taken = {Path(name).resolve() for name in inputs if name != "-"}
    for path in outputs:
        if path is None:
            continue
        check_writable(path)
        place = path.resolve()
        if place in taken and (place.is_file() or not place.exists()):
            raise UsageError(f"{path}: named twice; it would be overwritten")
        taken.add(place)
