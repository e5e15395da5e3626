"""One-line messages for the usage errors that typer finds."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

from thresher.cli.errors import UsageError
from thresher.cli.plain_values import ARGUMENTS

_EXTRA = re.compile(r"Got unexpected extra argument(?:s|\(s\))? \((.*)\)\.?")


def line_of(error: Any) -> str:
    """The message for a typer error, with a pointer to the command's help."""
    context = getattr(error, "ctx", None)
    hint = f" (see {context.command_path} --help)" if context else ""
    message = _message(error, context) or str(error.format_message())
    return " ".join(message.split()).rstrip(".") + hint


def _message(error: Any, context: Any) -> str:
    """The message for kinds of errors that we know; empty for others."""
    parameter = getattr(error, "param", None)
    if hasattr(error, "possibilities") and context is not None:
        return _unknown_option(str(error.option_name), context)
    if hasattr(error, "option_name"):
        wrong = "takes no" if "does not take" in error.message else "needs a"
        return f"{error.option_name} {wrong} value"
    if hasattr(error, "param_type") and parameter is not None:
        return f"missing {parameter.param_type_name} {_with_metavar(parameter)}"
    if hasattr(error, "param_hint") and parameter is not None:
        return f"{_name_of(parameter)}: {error.message}"
    extra = _EXTRA.fullmatch(str(error.format_message()))
    return f"unexpected argument {extra[1]}" if extra else ""


def _name_of(parameter: Any) -> str:
    """The long name of an option, or the name of an argument as in the help."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    return str(max(parameter.opts, key=len))


def _with_metavar(parameter: Any) -> str:
    name = _name_of(parameter)
    return name if parameter.param_type_name == "argument" else f"{name} {parameter.metavar or 'VALUE'}"


def _unknown_option(option: str, context: Any) -> str:
    from thresher.data.hints import meant

    if option == "-h":
        return "no such option: -h; did you mean --help?"
    if context.parent is None:
        return f"no such option: {option}; options come after the name of the command"
    shown = [one for one in context.command.params if not getattr(one, "hidden", False)]
    flags = {
        flag.lstrip("-"): flag
        for one in shown
        for flag in (*one.opts, *one.secondary_opts)
        if flag[:2] == "--"
    }
    arguments = context.meta.get(ARGUMENTS, ())
    flags = _of_rule(flags, arguments)
    if len(option) == 2:  # typer reports -passes as -p
        whole = [one for one in arguments if one.startswith(option) and len(one) > 2]
        option = whole[0].partition("=")[0] if whole else option
    words = [option.lstrip("-"), *([option[1]] if option[1:2] != "-" else [])]
    near = next((found for word in words if (found := meant(word, flags))), [])
    return f"no such option: {option}" + (
        f"; did you mean {' or '.join(_typed(near, flags))}?" if near else ""
    )


def _of_rule(flags: dict[str, str], arguments: Sequence[str]) -> dict[str, str]:
    """The options without those for parameters that the rule does not have."""
    from thresher.learning.recipe import Recipe
    from thresher.parts import lacking

    given = re.search(r"\0--rule[=\0]([^\0]+)", "\0" + "\0".join(arguments))
    without = lacking(given[1] if given else Recipe.rule, flags) if "rule" in flags else set()
    return {name: flag for name, flag in flags.items() if name not in without}


def _typed(near: list[str], flags: dict[str, str]) -> list[str]:
    """Suggestions as the user would type them."""
    typed = list[str]()
    for one in near:
        name, _, value = one.partition("=")
        typed.append(f"{flags.get(name, name)} {value}".rstrip())
    return typed


def unknown_command(word: str, known: list[str]) -> UsageError:
    """The error for an unknown command."""
    from thresher.data.hints import command_meant

    file = os.path.isfile(word)
    near = [f"thresher {one}" for one in ([f"train {word} -m MODEL"] if file else command_meant(word, known))]
    more = f"; did you mean {' or '.join(near)}?" if near else " (see thresher --help)"
    return UsageError(f"no command is called '{word}'{more}")
