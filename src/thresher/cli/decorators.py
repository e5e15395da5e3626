"""Decorators of commands, which add options."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Annotated, Any, get_type_hints

import typer

from thresher.cli.options import MOST_THREADS
from thresher.cli.plain_values import Bounds

Workers = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Processes that read and parse the files, through Ray; they change no result."
        "  [default: none; with --ray, one per processor of the cluster]",
    ),
    Bounds(1, MOST_THREADS),
]
Ray = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="A Ray cluster whose machines read the files; auto: the one this machine is in.",
    ),
]


def takes(hidden: Sequence[str] = (), **groups: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a command: replace its named parameters by the fields of dataclasses, as options.

    A field that is also a parameter of the command keeps its default. Options named in `hidden` are left out
    of the help; they are accepted only so that the command can explain why it refuses them.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(command, include_extras=True)
        own = inspect.signature(command).parameters
        listed = {
            name: [one for one in _parameters(group, hidden) if one.name not in own]
            for name, group in groups.items()
        }

        @functools.wraps(command)
        def taking(*args: Any, **options: Any) -> None:
            made = {
                name: group(**{one.name: options.pop(one.name) for one in listed[name]})
                for name, group in groups.items()
            }
            command(*args, **made, **options)

        parameters = list[inspect.Parameter]()
        for given in own.values():
            more = [given.replace(annotation=hints[given.name], kind=inspect.Parameter.KEYWORD_ONLY)]
            parameters += listed.get(given.name, more)
        taking.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        taking.__annotations__ = {one.name: one.annotation for one in parameters}
        return taking

    return decorate


def reads_elsewhere(command: Callable[..., None]) -> Callable[..., None]:
    """Decorate a command that has an option for threads: add the options for other processes that read."""

    @functools.wraps(command)
    def reading(*args: Any, workers: int | None, ray: str | None, **options: Any) -> None:
        from thresher.cluster.elsewhere import reading_elsewhere

        quiet = options.get("quiet", False)
        with reading_elsewhere(workers, ray, lambda line: None if quiet else tell(line), tell):
            command(*args, **options)

    parameters = list[inspect.Parameter]()
    for one in inspect.signature(command).parameters.values():
        parameters.append(one)
        if one.name == "threads":
            parameters += [
                one.replace(name="workers", annotation=Workers),
                one.replace(name="ray", annotation=Ray),
            ]
    reading.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    reading.__annotations__ = {one.name: one.annotation for one in parameters}
    return reading


def tell(line: str) -> None:
    """Print a line about the run on standard error."""
    typer.echo(f"thresher: {line}", err=True)


def _parameters(group: Any, hidden: Sequence[str]) -> list[inspect.Parameter]:
    """The fields of a dataclass, as parameters of a command."""
    hints = get_type_hints(group, include_extras=True)
    hints |= {name: _hiding(hints[name]) for name in hidden if name in hints}
    return [
        inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name])
        for f in fields(group)
    ]


def _hiding(hint: Any) -> Any:
    """The type of an option that the help leaves out."""
    kind, option = hint.__origin__, copy.copy(hint.__metadata__[0])
    option.hidden = True
    return Annotated[kind, option]
