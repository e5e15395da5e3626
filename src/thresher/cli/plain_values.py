"""Convert option values without pydantic: texts, paths, numbers and choices, with messages of our own.

typer has pydantic build a validator for every option of a command, given or not; importing pydantic and
building validators takes 0.1 s.
"""

from __future__ import annotations

import os
from enum import Enum
from functools import partial
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

ARGUMENTS = "thresher.arguments"
"""Key in the context of typer for the arguments of the command."""


class Bounds(NamedTuple):
    """The range of a whole number; stands beside `typer.Option` in an `Annotated` type."""

    low: int
    high: int | None = None

    def __str__(self) -> str:
        return f"of at least {self.low:,}" if self.high is None else f"from {self.low:,} to {self.high:,}"


class Command(TyperCommand):
    """A command that leaves only values that are not plain to typer, and shows no types of Python."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The options, then the arguments as the help names them."""
        return ["[OPTIONS]", *(_usage_of(one) for one in self.get_params(ctx) if _is_argument(one))]

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters; the help of an argument is its name and its text."""
        found: list[Any] = super().get_params(ctx)
        for one in filter(_is_argument, found):
            one.get_help_record = partial(_record_of, one)
        return found

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the arguments that are left over."""
        ctx.meta[ARGUMENTS] = tuple(args)
        _spare(self, ctx)
        _check_once(self.get_params(ctx), args, ctx)
        left: list[str] = super().parse_args(ctx, args)
        return left


class Commands(TyperGroup):
    """The same for the options before the command name."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the arguments that are left over."""
        _spare(self, ctx)
        left: list[str] = super().parse_args(ctx, args)
        return left


def _check_once(parameters: list[Any], args: list[str], ctx: Any) -> None:
    """BadParameter for columns that are given twice: the last would replace the others, not join them."""
    single = [one for one in parameters if not (_is_argument(one) or one.multiple or one.is_flag)]
    columns = {one.name for one in single if str(one.metavar).startswith("COL")}
    named, seen = {name: one for one in single for name in one.opts}, set[str]()
    rest = iter(args)
    for arg in rest:
        if arg == "--":
            return
        name, equals, _ = arg.partition("=")
        if (one := named.get(name)) is None:
            continue
        if one.name in seen & columns:
            several = ": separate several by commas" if ",..." in str(one.metavar) else ""
            raise typer.BadParameter(f"given twice{several}", ctx, one)
        seen.add(one.name)
        if not equals:
            next(rest, None)


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _usage_of(argument: Any) -> str:
    shown = str(argument.metavar)
    return shown if argument.required else f"[{shown}]"


def _record_of(argument: Any, ctx: Any) -> tuple[str, str]:
    return str(argument.metavar), str(argument.help)


def _spare(command: Any, ctx: Any) -> None:
    hints = get_type_hints(command.callback, include_extras=True)
    for parameter in command.get_params(ctx):
        hint, bounds = _parted(hints.get(parameter.name))
        process = partial(type(parameter).process_value, parameter)
        parameter.process_value = partial(_process, parameter, hint, bounds, process)


def _parted(hint: Any) -> tuple[Any, Bounds | None]:
    """The type of an option without None, and its bounds."""
    bounds = None
    if get_origin(hint) is Annotated:
        bounds = next((one for one in hint.__metadata__ if isinstance(one, Bounds)), None)
        hint = hint.__origin__
    if get_origin(hint) is UnionType:
        hint = next(one for one in get_args(hint) if one is not type(None))
    return hint, bounds


def _process(parameter: Any, hint: Any, bounds: Bounds | None, process: Any, ctx: Any, value: Any) -> Any:
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
    elif hint in (int, float) and value is not None:
        made = _number(parameter, hint, bounds, ctx, value)
    elif isinstance(hint, type) and issubclass(hint, Enum) and value is not None:
        made = _choice(parameter, hint, ctx, value)
    else:
        return process(ctx, value)
    return made if parameter.callback is None else parameter.callback(ctx, parameter, made)


def _number(parameter: Any, kind: type, bounds: Bounds | None, ctx: Any, value: Any) -> int | float:
    wanted = "a number" if kind is float else f"a whole number{f' {bounds}' if bounds else ''}"
    try:
        number: int | float = kind(value)
    except (ValueError, OverflowError):
        number, found = 0, False
    else:
        found = not bounds or (number >= bounds.low and (bounds.high is None or number <= bounds.high))
    if not found:
        raise typer.BadParameter(f"expected {wanted}, not '{value}'", ctx, parameter)
    return number


def _choice(parameter: Any, kind: type[Enum], ctx: Any, value: Any) -> Enum:
    known = [str(one.value) for one in kind]
    plain = str(value.value if isinstance(value, Enum) else value)
    if plain in known:
        return kind(plain)
    from thresher.data.formats.listing import listed
    from thresher.data.hints import did_you_mean

    near = did_you_mean(parameter.name, plain, known)
    raise typer.BadParameter(f"expected {listed(known, 'or')}, not '{value}'{near}", ctx, parameter)


def _may_be_taken(path: str) -> bool:
    """Whether the path is readable or does not exist; typer reports any other."""
    return "\0" not in path and (os.access(path, os.R_OK) or not os.path.exists(path))
