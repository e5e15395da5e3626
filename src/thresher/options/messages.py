"""Options in messages: ``--scale max-abs`` on the command line, ``scale="max-abs"`` in Python.

A message names an option by `mention(scale="max-abs")`. That is a text with both spellings, between marks;
whoever shows the message picks one with `as_shown`. The marks are halves of surrogate pairs, which text read
from files never contains: data cannot pass for a mention.
"""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from sys import _getframe
from typing import Any

_BEGIN, _NEXT, _END = "\ud8f0", "\ud8f1", "\ud8f2"
_MARKS = re.compile(f"[{_BEGIN}{_NEXT}{_END}]")
_TEXT = f"([^{_BEGIN}{_NEXT}{_END}]*)"
_SPELLINGS = re.compile(f"{_BEGIN}{_TEXT}(?:{_NEXT}{_TEXT})?(?:{_END}|$)")
_SHELL, _PYTHON = 1, 2
_FLAGS = {
    "slices": "slice",
    "modules": "module",
    "continue_from": "continue",
    "models": "ensemble",
    "output_class": "class",
}
"""Options whose name on the command line is not that in Python"""
_FUNCTIONS = {"name": "thresher.name_features", "weights": "Model.weights"}
"""Commands whose function has another name"""
_BARE = object()
_PACKAGE = str(Path(__file__).parents[1] / "_").removesuffix("_")
_reader = _PYTHON


@contextmanager
def on_the_command_line() -> Iterator[None]:
    """Within this block, messages show options as on the command line."""
    global _reader
    before, _reader = _reader, _SHELL
    try:
        yield
    finally:
        _reader = before


def as_shown(message: str, reader: int | None = None) -> str:
    """The message with the spellings of those to whom messages are shown here, or of a `reader`."""
    here = _reader if reader is None else reader
    return _MARKS.sub("", _SPELLINGS.sub(lambda found: found[here] or found[_SHELL], message))


def as_stored(message: str) -> str:
    """The message with the spellings of the command line."""
    return as_shown(message, _SHELL)


def mention(*names: str, **values: Any) -> str:
    """Options in a message, alone or with values; a text is a value as the command line takes it.

    A list is that of an option that is repeated on the command line.

    >>> message = f"use {mention(format='csv', header=False, label='user id')}; leave {mention('group')} out"
    >>> as_shown(message)
    'use format="csv", header=False, label="user id"; leave group out'
    >>> print(as_stored(message))
    use --format csv --no-header --label 'user id'; leave --group out
    """
    pairs = [*((name, _BARE) for name in names), *values.items()]
    shell = " ".join(_on_the_shell(*pair) for pair in pairs)
    python = []
    for name, value in pairs:
        plain = isinstance(value, str) and value.isprintable() and not set(value) & {'"', "\\"}
        shown = f'"{value}"' if plain else repr(value)
        python.append(name if value is _BARE else f"{name}={shown}")
    return shell_or_python(shell, ", ".join(python)) if pairs else ""


def shell_or_python(shell: str, python: str) -> str:
    """A part of a message on the command line and in Python."""
    return _BEGIN + _NEXT.join(_MARKS.sub("", one) for one in (shell, python)) + _END


def without_options(message: str) -> str:
    """The message without clauses and parentheses that name options, for those who cannot give any.

    >>> without_options(f"expected a number, found 'NA'; to skip such rows, use {mention(on_error='skip')}")
    "expected a number, found 'NA'"
    >>> without_options(f"two columns are called 'a': rename one, or use {mention(ignore='a')}")
    "two columns are called 'a': rename one"
    """
    first, *rest = re.sub(rf" \([^()]*{_BEGIN}.*?{_END}[^()]*\)", "", message).split("; ")
    parts = [one for one in re.split("(?=: |, or )", first) if not _MARKS.search(one)]
    clauses = ["".join(parts).removeprefix(": "), *(one for one in rest if not _MARKS.search(one))]
    return as_shown("; ".join(filter(None, clauses)) or message)


def mention_command(name: str) -> str:
    """A command in a message, which is a function in Python."""
    return shell_or_python(f"thresher {name}", function_of(name))


def function_of(command: str) -> str:
    """The function or method in Python that does the same as a command."""
    return _FUNCTIONS.get(command, f"thresher.{command}")


def flag_of(name: str) -> str:
    """The name of an option on the command line."""
    return f"--{_FLAGS.get(name, name).replace('_', '-')}"


def _on_the_shell(name: str, value: object) -> str:
    flag = flag_of(name)
    if value is False:
        return f"--no-{flag[2:]}"
    if isinstance(value, list):
        return " ".join(_on_the_shell(name, one) for one in value)
    return flag if value is True or value is _BARE else f"{flag} {shlex.quote(str(value))}"


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line of the caller's own code: the innermost frame outside this package."""
    level, frame = 1, _getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(as_shown(message), category, stacklevel=level)
