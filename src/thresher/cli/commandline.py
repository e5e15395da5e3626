"""Build the command that trains a model found by another command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from thresher.cli.model_flags import OF_RULES, ModelFlags
from thresher.cli.options import Table

if TYPE_CHECKING:
    from thresher.learning.recipe import Recipe


def train_command(
    data: Sequence[str], model: Path | None, rule: str, flags: ModelFlags, table: Table, **more: Any
) -> str:
    """``thresher train`` with this rule and these options; `more` holds further options by name."""
    words = ["--rule", rule, *_words_of(flags, OF_RULES), *_words_of(table)]
    return _command("train", data, model, words, more)


def passes_said(passes: int, recipe: Recipe) -> int | None:
    """What `--passes` must say to make these passes; None if the command makes them unasked."""
    from thresher.learning.repeating import is_automatic

    return passes if passes > 1 or is_automatic(recipe) else None


def boost_command(data: Sequence[str], model: Path | None, table: Table, **more: Any) -> str:
    """``thresher boost`` with these options."""
    return _command("boost", data, model, _words_of(table), more)


def _command(
    verb: str, data: Sequence[str], model: Path | None, words: list[str], more: Mapping[str, Any]
) -> str:
    own = ["thresher", verb, *data, "-m", "MODEL" if model is None else str(model)]
    return shlex.join(
        [*own, *words, *(word for name, value in more.items() for word in _words(_flag(name), value))]
    )


def _words_of(group: Any, but: Sequence[str] = ()) -> list[str]:
    """The options in a dataclass that differ from their defaults, as command-line words."""
    hints, words = get_type_hints(type(group), include_extras=True), list[str]()
    for field in fields(group):
        value = getattr(group, field.name)
        if field.name not in but and value != field.default:
            option = hints[field.name].__metadata__[0]
            named = [one for one in (option.default, *option.param_decls) if isinstance(one, str)]
            words += _words([*named, _flag(field.name)][0], value)
    return words


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _words(flag: str, value: Any) -> list[str]:
    yes, _, no = flag.partition("/")
    if isinstance(value, bool):
        return [yes if value else no or f"--no-{yes[2:]}"]
    values = value if isinstance(value, list) else [] if value is None else [value]
    return [word for one in values for word in (yes, str(one))]
