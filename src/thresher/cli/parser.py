"""The parser of the command line, made from the declarations of options."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import Any

import click

from thresher.options.arguments import Argument
from thresher.options.headings import EVERY_DAY, HEADINGS, MANY, under
from thresher.options.kinds import Repeated
from thresher.options.option import PYTHON, Declared, UsageError, declared

_EXTRA = re.compile(r"Got unexpected extra argument(?:s|\(s\))? \((.*)\)\.?")
_ARGUMENTS, _HEADING = "thresher.arguments", "thresher.heading"
"""Keys in a context for the words of the command line, and for what ``--help`` is to show"""
_ALL = "all"
Run = Callable[..., None]


class _Value(click.ParamType):  # type: ignore[type-arg]
    """The kind of an option as a type of click's."""

    name = "value"

    def __init__(self, one: Declared) -> None:
        self._one = one

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value; BadParameter."""
        try:
            return self._one.read(value)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from error


def option_of(one: Declared) -> click.Option:
    """An option of the command line; None means not given."""
    option = one.option
    shown: Any = {"help": _help_of(one), "required": option.required}
    if option.kind.switch:
        names = f"{one.flag}/{one.negated}" if one.negated else one.flag
        return click.Option([names, *_short(one), one.name], is_flag=True, default=None, **shown)
    several = isinstance(option.kind, Repeated)
    shown |= {"metavar": option.metavar, "type": _Value(one), "multiple": several}
    return click.Option([*_short(one), one.flag, one.name], **shown)


def _short(one: Declared) -> list[str]:
    return [one.option.short] if one.option.short else []


def _help_of(one: Declared) -> str:
    """The help, with what holds if the option is not given."""
    option = one.option
    plain = option.default is None or option.default is False or option.default in ("", ())
    unset = option.unset or ("" if plain else " ".join(option.kind.written(option.default)))
    if not unset:
        return option.help
    return f"{option.help}  [default{'' if unset.startswith('of ') else ':'} {unset}]"


class Command(click.Command):
    """A command that takes the options of a TypedDict."""

    def __init__(
        self,
        name: str,
        options: type,
        arguments: Sequence[Argument],
        run: Run,
        *,
        hidden: Sequence[str] = (),
        **shown: Any,
    ) -> None:
        self.arguments = arguments
        self.known = {one.name: one for one in declared(options).values() if one.option.face != PYTHON}
        own = [option_of(one) for one in self.known.values()]
        for one in own:
            one.hidden = one.name in hidden
        named = [_argument(one) for one in arguments]
        super().__init__(name, params=[*named, *own], callback=run, **shown)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The options, then the arguments as the help names them."""
        return ["[OPTIONS]", *(one.metavar if one.required else f"[{one.metavar}]" for one in self.arguments)]

    def get_help_option(self, ctx: Any) -> click.Option:
        """``--help``, which takes a heading, or ``all``."""

        def shown(ctx: Any, parameter: Any, word: str | None) -> None:
            if word is None or ctx.resilient_parsing:
                return
            if word and word != _ALL and word not in HEADINGS:
                raise click.BadParameter(f"no heading is called '{word}': {', '.join([*HEADINGS, _ALL])}")
            ctx.meta[_HEADING] = word
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()

        more = {"help": "Show this message and exit.", "metavar": "", "callback": shown}
        own: Any = {"is_flag": False, "flag_value": "", "expose_value": False, "is_eager": True, **more}
        return click.Option(["--help"], **own)

    @property
    def _has_many(self) -> bool:
        return len(self.known) > MANY

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options: of many, those of the first page or of some headings."""
        word = ctx.meta.get(_HEADING, "")
        if self.arguments and word in ("", _ALL):
            with formatter.section("Arguments"):
                formatter.write_dl([(one.metavar, one.help) for one in self.arguments])
        rows = {
            str(one.name): one.get_help_record(ctx)
            for one in self.get_params(ctx)
            if isinstance(one, click.Option)
        }
        told = {name: row for name, row in rows.items() if row is not None}
        if not self._has_many:
            with formatter.section("Options"):
                formatter.write_dl([*told.values()])
            return
        first = under("", self.known)
        wanted = {one: HEADINGS[one].title for one in (HEADINGS if word == _ALL else [word] if word else [])}
        pages = {title: under(one, told) for one, title in wanted.items()}
        if not word:
            pages = {"Options": [name for name in first if name in told]}
        elif word == _ALL and (own := [name for name in first if name in told and name not in EVERY_DAY]):
            pages = {"Options": own, **pages}
        for title, names in pages.items():
            if names:
                with formatter.section(title):
                    formatter.write_dl([told[name] for name in names])
        if not word:
            with formatter.section(f"More options: {ctx.command_path} --help HEADING, or --help all"):
                for one in HEADINGS:
                    flags = " ".join(self.known[name].flag for name in under(one, told) if name not in first)
                    lines = wrap(flags, formatter.width - 13, break_on_hyphens=False)
                    for number, line in enumerate(lines):
                        formatter.write(f"  {'' if number else one:<9}  {line}\n")

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the arguments that are left over."""
        ctx.meta[_ARGUMENTS] = tuple(args)
        self._check_once(args, ctx)
        return super().parse_args(ctx, args)

    def _check_once(self, args: list[str], ctx: Any) -> None:
        """BadParameter for an option that is given twice, since only the last would count."""
        single = [
            one for one in self.params if isinstance(one, click.Option) and not (one.multiple or one.is_flag)
        ]
        named, seen = {name: one for one in single for name in one.opts}, set[str]()
        rest = iter(args)
        for arg in rest:
            if arg == "--":
                return
            name, equals, _ = arg.partition("=")
            if (one := named.get(name)) is None or one.name is None:
                continue
            if one.name in seen:
                listed = self.known[one.name].option.kind.columns and ",..." in str(one.metavar)
                several = ": separate several by commas" if listed else ""
                raise click.BadParameter(f"given twice{several}", ctx, one)
            seen.add(one.name)
            if not equals:
                next(rest, None)


def _argument(one: Argument) -> click.Argument:
    return click.Argument(
        [one.name],
        nargs=-1 if one.many else 1,
        required=one.required,
        metavar=one.metavar,
    )


def line_of(error: click.ClickException) -> str:
    """The message for an error of click's, with a pointer to the command's help."""
    context = getattr(error, "ctx", None)
    hint = f" (see {context.command_path} --help)" if context else ""
    message = _message(error, context) or str(error.format_message())
    return " ".join(message.split()).rstrip(".") + hint


def _message(error: click.ClickException, context: Any) -> str:
    """The message for kinds of errors that we know; empty for others."""
    if isinstance(error, click.NoSuchOption) and context is not None:
        return _unknown_option(error.option_name, context)
    if isinstance(error, click.BadOptionUsage):
        wrong = "takes no" if "does not take" in error.message else "needs a"
        return f"{error.option_name} {wrong} value"
    parameter: Any = getattr(error, "param", None)
    if isinstance(error, click.MissingParameter) and parameter is not None:
        return f"missing {parameter.param_type_name} {_with_metavar(parameter)}"
    if isinstance(error, click.BadParameter) and parameter is not None:
        name = _name_of(parameter)
        return error.message if error.message.startswith(f"{name} ") else f"{name}: {error.message}"
    extra = _EXTRA.fullmatch(str(error.format_message()))
    return f"unexpected argument {extra[1]}" if extra else ""


def _name_of(parameter: click.Parameter) -> str:
    """The long name of an option, or the name of an argument as in the help."""
    if isinstance(parameter, click.Argument):
        return str(parameter.metavar)
    return str(max(parameter.opts, key=len))


def _with_metavar(parameter: click.Parameter) -> str:
    name = _name_of(parameter)
    return name if isinstance(parameter, click.Argument) else f"{name} {parameter.metavar or 'VALUE'}"


def _unknown_option(option: str, context: click.Context) -> str:
    from thresher.options.synonyms import meant

    if option == "-h":
        return "no such option: -h; did you mean --help?"
    if context.parent is None:
        return f"no such option: {option}; options come after the name of the command"
    arguments = context.meta.get(_ARGUMENTS, ())
    flags = _of_rule(_flags(context.command), arguments)
    if len(option) == 2:  # click reports -passes as -p
        whole = [one for one in arguments if one.startswith(option) and len(one) > 2]
        option = whole[0].partition("=")[0] if whole else option
    words = [option.lstrip("-"), *([option[1]] if option[1:2] != "-" else [])]
    near = next((found for word in words if (found := meant(word, flags))), [])
    return f"no such option: {option}" + (
        f"; did you mean {' or '.join(_typed(near, flags))}?" if near else ""
    )


def _flags(command: click.Command) -> dict[str, str]:
    """The long options by their names without dashes."""
    shown = [one for one in command.params if not getattr(one, "hidden", False)]
    return {
        flag.lstrip("-"): flag
        for one in shown
        for flag in (*one.opts, *one.secondary_opts)
        if flag[:2] == "--"
    }


def _of_rule(flags: dict[str, str], arguments: Sequence[str]) -> dict[str, str]:
    """The options without those for parameters that the rule does not have."""
    from thresher.options.option import DEFAULT_RULE
    from thresher.parts import lacking

    given = re.search(r"\0--rule[=\0]([^\0]+)", "\0" + "\0".join(arguments))
    without = lacking(given[1] if given else DEFAULT_RULE, flags) if "rule" in flags else set()
    return {name: flag for name, flag in flags.items() if name not in without}


def _typed(near: list[str], flags: dict[str, str]) -> list[str]:
    """Suggestions as the user would type them."""
    typed = list[str]()
    for one in near:
        name, _, value = one.partition("=")
        typed.append(f"{flags.get(name, name)} {value}".rstrip())
    return typed


def unknown_command(word: str, known: Sequence[str]) -> UsageError:
    """The error for an unknown command."""
    from thresher.options.synonyms import command_meant

    file = os.path.isfile(word)
    near = [f"thresher {one}" for one in ([f"train {word} -m MODEL"] if file else command_meant(word, known))]
    more = f"; did you mean {' or '.join(near)}?" if near else " (see thresher --help)"
    return UsageError(f"no command is called '{word}'{more}")
