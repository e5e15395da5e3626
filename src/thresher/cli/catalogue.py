"""``thresher rules``, ``losses`` and ``rates``: every part with its parameters and defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import click

from thresher.options.arguments import Argument
from thresher.options.model import ModulesOption

_NAME = Argument("NAME", "Show everything about this one.", required=False)


class Lister(NamedTuple):
    """A command that lists all parts of a kind or describes one of them."""

    short: str
    command: Callable[..., None]
    ARGUMENTS: tuple[Argument, ...] = (_NAME,)
    OPTIONS: type = ModulesOption


def _lister(kind: str, plural: str) -> Lister:
    def command(name: str | None, options: ModulesOption) -> None:
        from thresher import parts

        if name is None:
            found = [parts.describe(kind, known).summary for known in parts.names(kind)]
        else:
            found = [parts.describe(kind, name).page]
        click.echo("\n".join(found))

    command.__doc__ = f"List the {plural}: parameters with defaults, what each does, its reference."
    return Lister(f"List the {plural} and their parameters.", command)


COMMANDS = {
    plural: _lister(kind, plural)
    for kind, plural in (("rule", "rules"), ("loss", "losses"), ("rate", "rates"))
}
"""By name"""
