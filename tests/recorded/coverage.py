"""What the recorded calls leave out: options of commands, keywords of functions, warnings."""

from __future__ import annotations

import ast
import inspect
import re
import typing
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import thresher
import thresher.sklearn
from tests.recorded.sessions import Session, line_of, sessions
from thresher.cli import app

WARNINGS = Path(__file__).parents[2] / "docs" / "warnings.md"


def uncovered(recordings: Path | None = None) -> list[str]:
    """A line for each; warnings are looked for in the recordings."""
    given = [one for one in sessions() if not one.name.startswith("message-")]
    left = [*_options(given), *_keywords(given)]
    return left if recordings is None else [*left, *_warnings(recordings)]


def _options(given: list[Session]) -> Iterator[str]:
    """Options of each command, of pairs such as --header/--no-header either; each name somewhere."""
    used, known = defaultdict[str, set[str]](set), {name: app.command_of(name) for name in app.NAMES}
    for session in given:
        for line in () if session.python else map(line_of, session.steps):
            words = line.words or [""]
            used[words[0]] |= {one.partition("=")[0] for one in words[1:] if one.startswith("-")}
    for name, command in known.items():
        if "--help" not in used[name]:
            yield f"thresher {name} --help"
        for option in command.params:
            names = {*option.opts, *option.secondary_opts}
            if option.param_type_name == "option" and not names & used[name]:
                yield f"thresher {name} {' / '.join(sorted(names))}"
    everywhere = set[str]().union(*used.values())
    every = {one for command in known.values() for option in command.params for one in _names(option)}
    yield from (f"{one} of any command" for one in sorted(every - everywhere))


def _names(option: Any) -> list[str]:
    return [*option.opts, *option.secondary_opts] if option.param_type_name == "option" else []


def _keywords(given: list[Session]) -> Iterator[str]:
    """Keywords of each public function, and parameters of each estimator."""
    used = defaultdict[str, set[str]](set)
    for session in given:
        for call in _calls("\n".join(session.steps)) if session.python else ():
            function, given_names = _given(call)
            used[function] |= given_names
    for place, module in (("thresher", thresher), ("sk", thresher.sklearn)):
        for name in module.__all__:
            function = f"{place}.{name}"
            if callable(getattr(module, name)):
                called = function in used
                left = [one for one in _of(getattr(module, name)) if one not in used[function]]
                yield from [] if called else [f"{function}()"]
                yield from (f"{function}({one}=)" for one in left)


def _calls(code: str) -> Iterator[ast.Call]:
    yield from (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call))


def _given(call: ast.Call) -> tuple[str, set[str]]:
    """The function called, and the arguments given to it: by ``each(function, {name: value, ...})`` too."""
    function, names = ast.unparse(call.func), {one.arg for one in call.keywords if one.arg}
    if function == "each" and isinstance(call.args[1], ast.Dict):
        return ast.unparse(call.args[0]), {ast.literal_eval(key) for key in call.args[1].keys if key}
    place, _, name = function.partition(".")
    module = {"thresher": thresher, "sk": thresher.sklearn}.get(place)
    if module is not None and name in module.__all__ and name != "TroubleWarning":
        names |= {*[*inspect.signature(getattr(module, name)).parameters][: len(call.args)]}
    return function, names


def _of(function: Any) -> Iterator[str]:
    """The keywords that a function takes: those of its ``**options``, too."""
    try:
        taken = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return
    for one in taken:
        if one.kind == one.KEYWORD_ONLY or (
            one.kind == one.POSITIONAL_OR_KEYWORD and one.default is not one.empty
        ):
            yield one.name
        if one.kind == one.VAR_KEYWORD and not inspect.isclass(function):
            for kind in typing.get_args(typing.get_type_hints(function).get(one.name)):
                yield from kind.__annotations__


def _warnings(recordings: Path) -> Iterator[str]:
    text = "".join(path.read_text(encoding="utf-8") for path in recordings.glob("*.txt"))
    names = re.findall(r"^\| `([a-z-]+)` \|", WARNINGS.read_text(encoding="utf-8"), re.MULTILINE)
    yield from (f"warning {one}" for one in names if not re.search(rf'"name": "{one}"|\({one}\)', text))
