"""Options of the program, each declared once, as a field of a TypedDict that both faces take.

``passes: Annotated[int | str, Option(PASSES, "N|auto"), "Passes over the data."]`` makes the option of the
command line, the keyword of Python with its type, and the checks and messages of both.

So do the help, the command that repeats a run, and the types that mypy and editors see (`Unpack`). `settle`
gives a run all its options and remembers which of them the user gave: that is what `--resume` compares and
what the printed command says.
"""

from __future__ import annotations

import functools
import os
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar, get_type_hints

from thresher.data.errors import DataError, shorten
from thresher.options.kinds import Flag, Kind, WrongValueError
from thresher.options.messages import flag_of

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
_NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
BOTH, SHELL, PYTHON = "both", "shell", "python"
DEFAULT_RULE = "ft-ftrl"
_LONGEST = 80
"""Characters of a wrong value in a message"""


@dataclass(frozen=True)
class Option:
    """What the program says about an option. Its name and its type stand in the TypedDict."""

    kind: Kind
    metavar: str = ""
    default: Any = None
    """the value if it is not given; None: the program decides"""
    unset: str = ""
    """what that is, in words, where the default does not say it"""
    short: str = ""
    """a letter with a dash"""
    required: bool = False
    face: str = BOTH
    """who takes it: both faces, the shell, or Python"""
    help: str = ""
    """what stands beside it in the TypedDict"""
    name: str = ""
    hint: Any = None
    """its type in Python"""

    @property
    def flag(self) -> str:
        """Its name on the command line."""
        return flag_of(self.name)

    @property
    def negated(self) -> str:
        """Its name on the command line that means False; empty if there is none."""
        return "" if not isinstance(self.kind, Flag) or self.kind.one_way else f"--no-{self.flag[2:]}"

    def words(self, value: object) -> list[str]:
        """The option with a value as words of the command line."""
        if self.kind.switch:
            return [self.flag if value else self.negated]
        return [word for text in self.kind.words(value) for word in (self.flag, text)]

    def take(self, value: object) -> Any:
        """The value that Python gives, checked. ValueError with the name of the option."""
        try:
            return self.kind.take(value)
        except WrongValueError as error:
            found = shorten(" ".join(repr(value).split()), _LONGEST)
            raise UsageError(f"{self.name} must be {error.wanted}, not {found}{error.near}") from None

    def read(self, text: str) -> Any:
        """The value of a word of the command line. ValueError without the name of the option."""
        try:
            return self.kind.read(text)
        except WrongValueError as error:
            raise ValueError(f"expected {error.wanted}, not '{text}'{error.near}") from None


SWITCH = Option(Flag(one_way=True), default=False)
"""The option that turns something on"""
SHELL_SWITCH = replace(SWITCH, face=SHELL)


@functools.cache
def options_of(options: Options) -> dict[str, Option]:
    """The options of a TypedDict by name, those of its bases first."""
    found = dict[str, Option]()
    for name, hint in get_type_hints(options, include_extras=True).items():
        option, *words = hint.__metadata__
        found[name] = replace(option, help="".join(words), name=name, hint=hint.__origin__)
    return found


class Options(dict[str, Any]):
    """All options of a TypedDict: those given, and the defaults of all others."""

    def __init__(self, options: type, given: Mapping[str, Any]) -> None:
        known = options_of(options)
        super().__init__({name: given.get(name, one.default) for name, one in known.items()})
        self.options, self.given = options, {name: given[name] for name in known if name in given}
        """`given`: those that the user gave"""

    def load_modules(self) -> None:
        """Execute the files that define parts. SpecError."""
        if self.get("modules"):
            from thresher.parts import load_files

            load_files(self["modules"])

    def but(self, **changes: Any) -> Options:
        """These options with other values; None takes one away."""
        found = Options(self.options, {k: v for k, v in self.given.items() if changes.get(k, v) is not None})
        found.update(self | changes)
        return found


ELSEWHERE = {
    "models": "use thresher.ensemble(..., models=VALUE)",
    "model": "the result has the model, whose method save writes it",
    "ensemble": "use thresher.ensemble(..., models=VALUE)",
    "by": "use thresher.ensemble(..., models='by:VALUE')",
    "choose": "use thresher.load(path).choose('VALUE'), or .models or .of('VALUE') of several",
    "detail": "here the result has the figures",
    "output_file": "the result is returned",
    "report": "here the result has the figures",
    "quiet": "nothing is printed here",
    "json": "here the result has the figures",
    "weights_only": "use model.save(path, state=False)",
    "state": "use frontier.save(path, state=True)",
    "table": "here the result has the method table",
    "curve": "model.curve has the points",
    "strict": "warnings.simplefilter('error', thresher.TroubleWarning) makes warnings errors",
}
"""What Python has in another form, such as options of the command line; VALUE is what was given"""


def settle(
    options: type, given: Mapping[str, object], function: Callable[..., object] | None = None
) -> Options:
    """All options, of which Python gives some, that are checked. None means not given. ValueError.

    TypeError for a name that the `function` does not know, with the closest known one.
    """
    kind: Any = options
    known = options_of(kind)
    if function is not None:
        check_names(function, given, [name for name, one in known.items() if one.face != SHELL])
    said = {name: value for name, value in given.items() if value is not None}
    made = Options(kind, {name: known[name].take(value) for name, value in said.items()})
    made.load_modules()
    return made


def check_names(function: Callable[..., object], given: Collection[str], known: Iterable[str]) -> None:
    """TypeError for a name that the `function` does not know, with the closest known one."""
    if not given:
        return  # what follows takes a tenth of the time of learning one row
    from thresher.options.synonyms import did_you_mean
    from thresher.parts import lacking

    own = [one.name for one in signature(function).parameters.values() if one.kind in _NAMED]
    names = [*dict.fromkeys([*own, *known])]
    for name in given:
        if name in names:
            continue
        if name in ELSEWHERE and f"{name}s" not in names:
            value = given[name] if isinstance(given, Mapping) else "VALUE"
            instead = ELSEWHERE[name].replace("VALUE", shorten(str(value), _LONGEST))
            raise TypeError(f"{function.__name__} has no option {name}; {instead}")
        rule = (given.get("rule") if isinstance(given, Mapping) else None) or DEFAULT_RULE
        hint = did_you_mean(name, [one for one in names if one not in lacking(rule, names)])
        hint = hint or f"; it has {', '.join(names)}"
        raise TypeError(f"{function.__name__} has no option {name}{hint}")


def given_options(options: Options, of: type | None = None) -> dict[str, Any]:
    """The options that the user gave; only those `of` a TypedDict, if there is one."""
    given: dict[str, Any] = options.given
    return given if of is None else {name: given[name] for name in options_of(of) if name in given}


def words_of(options: type, values: Mapping[str, Any]) -> list[str]:
    """Values as words of the command line, in the order of declaration; None means not given."""
    known = options_of(options)
    return [
        word
        for name, one in known.items()
        if values.get(name) is not None
        for word in one.words(values[name])
    ]


def command(name: str, arguments: Iterable[str], words: Iterable[str]) -> str:
    """A command line for any shell, all of whose characters can be printed."""
    found = []
    for word in ("thresher", name, *arguments, *words):
        plain = (
            c if c.isprintable() and c not in "'%-\\" else "".join(f"\\{b:03o}" for b in os.fsencode(c))
            for c in word
        )
        found.append(shlex.quote(word) if word.isprintable() else f"\"$(printf '{''.join(plain)}')\"")
    return " ".join(found)


def takes(options: type) -> Callable[[F], F]:
    """Decorate a function with ``**options: Unpack[options]``: show the options in its signature."""

    def decorate(function: F) -> F:
        own = [
            one for one in signature(function).parameters.values() if one.kind is not Parameter.VAR_KEYWORD
        ]
        named = {one.name for one in own}
        more = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=one.default, annotation=one.hint)
            for name, one in options_of(options).items()
            if one.face != SHELL and name not in named
        ]
        function.__signature__ = Signature([*own, *more])  # type: ignore[attr-defined]
        return function

    return decorate


class UsageError(DataError):
    """Options that are wrong, alone or together, or do not fit the data or the model."""
