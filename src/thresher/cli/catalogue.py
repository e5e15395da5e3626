"""``thresher rules``, ``losses`` and ``rates``: every part with its parameters and defaults."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypedDict

import click

from thresher.options.arguments import Argument

if TYPE_CHECKING:
    from thresher.parts import Description

_WIDTH = 100
_NAME = Argument("NAME", "Show everything about this one.", required=False)


class NoOptions(TypedDict):
    """None."""


class Lister(NamedTuple):
    """A command that lists all parts of a kind or describes one of them."""

    short: str
    command: Callable[..., None]
    ARGUMENTS: tuple[Argument, ...] = (_NAME,)
    OPTIONS: type = NoOptions


def _lister(kind: str, plural: str) -> Lister:
    def command(name: str | None, options: NoOptions) -> None:
        from thresher import parts

        if name is not None:
            click.echo(_page(kind, parts.describe(kind, name)))
            return
        for known in parts.names(kind):
            click.echo(_block(parts.describe(kind, known)))

    command.__doc__ = f"List the {plural}: parameters with defaults, what each does, its reference."
    return Lister(f"List the {plural} and their parameters.", command)


def _block(part: Description) -> str:
    """A summary of a part, in a few lines."""
    lines = [part.line, "step sizes: --rate" if part.rate else "", part.reference]
    return "\n".join([part.spec, *(_indented(" ".join(line.split())) for line in lines if line), ""])


def _page(kind: str, part: Description) -> str:
    """The full description of a part."""
    lazy = f"Lazy update: {part.lazy}" if part.lazy else ""
    texts = [part.name, *(text for text in (part.update, lazy, part.notes) if text)]
    if part.reference:
        texts.append(f"Reference: {part.reference}")
    rate = f" --rate {part.rate}" if part.rate else ""
    return "\n\n".join([*texts, _parameters(part), f"With all defaults: --{kind} {part.spec}{rate}"])


def _parameters(part: Description) -> str:
    rows = [("parameter", "default", "must be"), *part.parameters]
    if part.rate:
        rows.append(("--rate", part.rate, "see thresher rates"))
    widths = [max(len(row[k]) for row in rows) for k in (0, 1)]
    return "\n".join(f"  {a:<{widths[0]}}  {b:<{widths[1]}}  {c}".rstrip() for a, b, c in rows)


def _indented(text: str) -> str:
    return textwrap.fill(
        text, _WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False
    )


COMMANDS = {
    plural: _lister(kind, plural)
    for kind, plural in (("rule", "rules"), ("loss", "losses"), ("rate", "rates"))
}
"""By name"""
