"""Convert plain option values without pydantic.

typer has pydantic build a validator for every option of a command, given or not; importing pydantic and
building validators takes 0.1 s. Most options are not given, and most values that are given are plain text.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from typer.core import TyperCommand, TyperGroup


class Command(TyperCommand):
    """A command that leaves only values that are not plain to typer."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the arguments that are left over."""
        _spare(self, ctx)
        left: list[str] = super().parse_args(ctx, args)
        return left


class Commands(TyperGroup):
    """The same for the options before the command name."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the arguments that are left over."""
        _spare(self, ctx)
        left: list[str] = super().parse_args(ctx, args)
        return left


def _spare(command: Any, ctx: Any) -> None:
    hints = get_type_hints(command.callback)
    for parameter in command.get_params(ctx):
        hint = _without_none(hints.get(parameter.name))
        parameter.process_value = partial(_process, parameter, hint, parameter.process_value)


def _without_none(hint: Any) -> Any:
    if get_origin(hint) is UnionType:
        return next(one for one in get_args(hint) if one is not type(None))
    return hint


def _process(parameter: Any, hint: Any, process: Any, ctx: Any, value: Any) -> Any:
    """The value of a parameter: converted here if plain, else by typer's `process`."""
    made: Any = None
    if value is None and not parameter.required:
        made = () if parameter.multiple or parameter.nargs == -1 else None
    elif hint is str and type(value) is str:
        made = value
    elif hint is Path and type(value) is str and _may_be_taken(value):
        made = Path(value)
    elif hint == list[str] and value and all(type(one) is str for one in value):
        made = list(value)
    else:
        return process(ctx, value)
    return made if parameter.callback is None else parameter.callback(ctx, parameter, made)


def _may_be_taken(path: str) -> bool:
    """Whether the path is readable or does not exist; typer reports any other."""
    return "\0" not in path and (os.access(path, os.R_OK) or not os.path.exists(path))
