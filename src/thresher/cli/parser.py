"""The parser of the command line, made from the declarations of options."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, NamedTuple

import click

from thresher.data.formats.listing import EXAMPLES, FORMATS, list_titles
from thresher.options.kinds import Repeated
from thresher.options.option import PYTHON, Option, options_of

_EXTRA = re.compile(r"Got unexpected extra argument(?:s|\(s\))? \((.*)\)\.?")
_ARGUMENTS, _HEADING = "thresher.arguments", "thresher.heading"
"""Keys in a context for the words of the command line, and for what ``--help`` is to show"""
_ALL = "all"
Run = Callable[..., None]
HEADINGS = {
    "learning": (
        "What to learn",
        "rule loss rate alpha outputs batch average scale centre intercept calibrate sample nonnegative"
        " nonpositive seed dtype modules ensemble by",
    ),
    "sparsity": ("Sparsity", "l1 choose admit store"),
    "passes": ("Passes and hold-outs", "passes replay order holdout early_stop judge cache"),
    "reading": (
        "Reading files",
        "format header delimiter missing quoting where on_error threads workers ray",
    ),
    "columns": (
        "Columns and features",
        "label classes weight label_weights offset group ignore numeric bins categorical text ngrams"
        " interact bits hash",
    ),
    "going-on": ("Going on", "continue_from init checkpoint_every resume weights_only state"),
    "output": ("Output", "model names slices plot table curve report_every quiet strict json"),
}
"""Headings of the help by the word that ``--help`` takes: a title, and the names of options in their order"""
EVERY_DAY = (
    *("model", "label", "categorical", "text", "ignore", "loss", "rule", "l1", "choose", "passes", "order"),
    *("holdout", "names", "continue_from", "on_error", "quiet", "json"),
)
"""Options of the first page"""
MANY = 15
"""A command with more options than this shows those of the first page, unless it is asked for others."""


def under(word: str, names: Collection[str]) -> list[str]:
    """Those of an option's `names` that are under a heading; those of none of them are on the first page."""
    if word:
        return [name for name in HEADINGS[word][1].split() if name in names]
    listed = {name for _, under in HEADINGS.values() for name in under.split()}
    own = [name for name in names if name not in listed]
    first = [name for name in (EVERY_DAY if len(names) > MANY else names) if name in names and name in listed]
    leading = first[:1] if first[:1] == ["model"] else []
    return [*leading, *own, *first[len(leading) :]]


class Argument(NamedTuple):
    """An argument as the help shows it."""

    metavar: str
    help: str
    many: bool = False
    required: bool = True

    @property
    def name(self) -> str:
        """Its name in the parser, which differs from that of every option."""
        return f"argument {self.metavar.lower()}"


_TEXTS = list_titles([form.title for name, form in FORMATS.items() if name in EXAMPLES], "or")
_OTHERS = "; ".join(form.title for name, form in FORMATS.items() if name not in EXAMPLES)
DATA = Argument(
    "DATA...",
    f"Files, URLs, globs, or - for standard input: {_TEXTS}, plain or compressed by gzip, bz2, xz or zstd; "
    f"{_OTHERS}. Also what is new in kafka://HOST:PORT/TOPIC or tail:FILE.",
    many=True,
)
MODEL = Argument("MODEL", "A model written by thresher train.")


REGISTERED: dict[str, tuple[Run, type, tuple[Argument, ...], Collection[str]]] = {}
"""What the commands of the modules that were imported run and take: options, arguments, hidden options"""


def command(options: type, *arguments: Argument, hidden: Collection[str] = ()) -> Callable[[Run], Run]:
    """Decorate the function that runs the command of its name; `hidden` options are not in its help."""

    def register(run: Run) -> Run:
        REGISTERED[run.__name__.replace("_", "-")] = run, options, arguments, hidden
        return run

    return register


@dataclass(frozen=True)
class _Value(click.ParamType):  # type: ignore[type-arg]
    """The kind of an option as a type of click's."""

    one: Option
    name = "value"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value; BadParameter."""
        try:
            return self.one.read(value)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from error


def option_of(option: Option) -> click.Option:
    """An option of the command line; None means not given. Its help says what holds then."""
    plain = option.default is None or option.default is False or option.default in ("", ())
    unset = option.unset or ("" if plain else " ".join(option.kind.words(option.default)))
    default = f"  [default{'' if unset.startswith('of ') else ':'} {unset}]" if unset else ""
    shown: Any = {"help": option.help + default, "required": option.required}
    short = [option.short] if option.short else []
    if option.kind.switch:
        names = f"{option.flag}/{option.negated}" if option.negated else option.flag
        return click.Option([names, *short, option.name], is_flag=True, default=None, **shown)
    several = isinstance(option.kind, Repeated)
    shown |= {"metavar": option.metavar, "type": _Value(option), "multiple": several}
    return click.Option([*short, option.flag, option.name], **shown)


class Command(click.Command):
    """A command that takes the options of a TypedDict."""

    def __init__(
        self,
        name: str,
        options: type,
        arguments: Sequence[Argument],
        run: Run,
        *,
        hidden: Collection[str] = (),
        **shown: Any,
    ) -> None:
        self.arguments = arguments
        self.known = {one.name: one for one in options_of(options).values() if one.face != PYTHON}
        own = [option_of(one) for one in self.known.values()]
        for one in own:
            one.hidden = one.name in hidden
        named = [
            click.Argument(
                [one.name], nargs=-1 if one.many else 1, required=one.required, metavar=one.metavar
            )
            for one in arguments
        ]
        super().__init__(name, params=[*named, *own], callback=run, **shown)

    def collect_usage_pieces(self, ctx: object) -> list[str]:
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

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options: of many, those of the first page or of some headings."""
        word, first, few = ctx.meta.get(_HEADING, ""), under("", self.known), len(self.known) <= MANY
        options = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        told = {str(one.name): row for one in options if (row := one.get_help_record(ctx)) is not None}
        pages = {}
        if word in ("", _ALL):
            pages["Arguments"] = [(one.metavar, one.help) for one in self.arguments]
        if few or word in ("", _ALL):
            own = [*first, "help"] if few else [one for one in first if not word or one not in EVERY_DAY]
            pages["Options"] = [told[name] for name in own if name in told]
        for one in () if few else HEADINGS if word == _ALL else filter(None, [word]):
            pages[HEADINGS[one][0]] = [told[name] for name in under(one, told)]
        for title, rows in pages.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        if not (word or few):
            with formatter.section(f"More options: {ctx.command_path} --help HEADING, or --help all"):
                for one in HEADINGS:
                    flags = " ".join(self.known[name].flag for name in under(one, told) if name not in first)
                    lines = wrap(flags, formatter.width - 13, break_on_hyphens=False)
                    for number, line in enumerate(lines):
                        formatter.write(f"  {'' if number else one:<9}  {line}\n")

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the arguments left over. BadParameter for an option that is given twice: only one counts."""
        ctx.meta[_ARGUMENTS] = tuple(args)
        _, _, given = self.make_parser(ctx).parse_args([*args])
        for one, times in Counter(given).items():
            option = self.known.get(str(one.name))
            if option and times > 1 and not (option.kind.switch or isinstance(option.kind, Repeated)):
                listed = option.kind.columns and ",..." in option.metavar
                several = ": separate several by commas" if listed else ""
                raise click.BadParameter(f"given twice{several}", ctx, one)
        return super().parse_args(ctx, args)


def line_of(error: click.ClickException) -> str:
    """The message for an error of click's, with a pointer to the command's help."""
    context, parameter = getattr(error, "ctx", None), getattr(error, "param", None)
    is_argument, message = isinstance(parameter, click.Argument), str(error.format_message())
    name = "" if parameter is None else parameter.metavar if is_argument else max(parameter.opts, key=len)
    if isinstance(error, click.NoSuchOption) and context is not None:
        message = _unknown_option(error.option_name, context)
    elif isinstance(error, click.BadOptionUsage):
        wrong = "takes no" if "does not take" in error.message else "needs a"
        message = f"{error.option_name} {wrong} value"
    elif isinstance(error, click.MissingParameter) and parameter is not None:
        metavar = "" if is_argument else f" {parameter.metavar or 'VALUE'}"
        message = f"missing {parameter.param_type_name} {name}{metavar}"
    elif isinstance(error, click.BadParameter) and name:
        message = error.message if error.message.startswith(f"{name} ") else f"{name}: {error.message}"
    elif extra := _EXTRA.fullmatch(message):
        message = f"unexpected argument {extra[1]}"
    hint = f" (see {context.command_path} --help)" if context else ""
    return " ".join(message.split()).rstrip(".") + hint


_INSTEAD = {
    "-h": "did you mean --help?",
    "--choose": "thresher choose MODELS WHICH -m MODEL takes one of many models out, to be used alone",
}
"""What to do instead of giving an option that a command does not have"""


def _unknown_option(option: str, context: click.Context) -> str:
    """The message for an unknown option, with those that may be meant: of those that the rule has."""
    from thresher.options.option import DEFAULT_RULE
    from thresher.options.synonyms import meant
    from thresher.parts import lacking

    if option in _INSTEAD:
        return f"no such option: {option}; {_INSTEAD[option]}"
    if context.parent is None:
        return f"no such option: {option}; options come after the name of the command"
    if option[1:].isdigit():
        return f"no such option: {option}; a value that begins with a dash comes after --"
    arguments = context.meta.get(_ARGUMENTS, ())
    shown = [one for one in context.command.params if not getattr(one, "hidden", False)]
    names = [name for one in shown for name in (*one.opts, *one.secondary_opts) if name[:2] == "--"]
    flags = {name.lstrip("-"): name for name in names}
    if "rule" in flags:
        given = re.search(r"\0--rule[=\0]([^\0]+)", "\0" + "\0".join(arguments))
        without = lacking(given[1] if given else DEFAULT_RULE, flags)
        flags = {name: flag for name, flag in flags.items() if name not in without}
    if len(option) == 2:  # click reports -passes as -p
        whole = [one for one in arguments if one.startswith(option) and len(one) > 2]
        option = whole[0].partition("=")[0] if whole else option
    if option == "-m" and any("-o" in one.opts for one in shown):
        return "no such option: -m; did you mean -o?"
    near = [flags[name] for name in meant(option.lstrip("-"), flags)]
    return f"no such option: {option}" + (f"; did you mean {' or '.join(near)}?" if near else "")
