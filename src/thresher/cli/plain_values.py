"""Values of options that are what they are to be already.

typer has pydantic build a validator for every option of a command, given or not: importing that and building
them takes a tenth of a second. Nearly all options are not given, and most that are are texts and paths.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from typer.core import TyperCommand, TyperGroup


class Command(TyperCommand):
    """A command that leaves to typer only those values that are not plain."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """What is left of `args`."""
        _spare(self, ctx)
        left: list[str] = super().parse_args(ctx, args)
        return left


class Commands(TyperGroup):
    """The same of what stands before the name of a command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """What is left of `args`."""
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
    """The value of a parameter: as it is, if it is plain, else as typer would `process` it."""
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
    """Whether nothing stands there that cannot be read, on which typer has something to say."""
    return "\0" not in path and (os.access(path, os.R_OK) or not os.path.exists(path))
