"""The calls that are recorded: sessions of commands and of Python, read from data files.

A session is a folder with some files, and steps that run there one after another. ``commands.toml`` has
lines of a shell: ``thresher ...`` runs in this process, or in one of its own if the session says
``process = true``; any other line is run by a shell. A line may begin with

* ``cat FILE |``, and the file comes through a pipe, or end with ``< FILE``;
* ``NAME=VALUE``, variables of the environment;
* ``SIGINT@EVENT:WORDS:N``: the process gets the signal just before the N-th (1 if it is left out) time that a
  file called WORDS is opened (``open``) or takes this name (``replace``), or text with WORDS is printed
  (``print``).

``calls.toml`` has pieces of Python; the value of a piece that ends with an expression is recorded.
"""

import re
import shlex
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from tests.cli.remedies import CASES

HERE = Path(__file__).parent
_SIGNAL = re.compile(r"(SIG[A-Z]+)@(open|replace|print):(.*?)(?::(\d+))?")
_VARIABLE = re.compile(r"([A-Z_]+)=(.*)")


class Stop(NamedTuple):
    """A signal, and before what it comes."""

    signal: str
    event: str
    words: str
    number: int


class Line(NamedTuple):
    """A line of a shell."""

    text: str
    words: list[str] | None = None
    """of a thresher command; None for any other"""
    stdin: str = ""
    piped: bool = False
    variables: dict[str, str] = {}  # noqa: RUF012
    stop: Stop | None = None


class Session(NamedTuple):
    """Steps in one folder."""

    name: str
    python: bool
    steps: list[str]
    files: list[str] = []  # noqa: RUF012
    texts: dict[str, str | bytes] = {}  # noqa: RUF012
    """files with other contents than in `inputs`"""
    keep: bool = False
    plain: bool = False
    """learned in plain Python: for parts that would be compiled only here"""
    process: bool = False


def sessions() -> list[Session]:
    found = [*_read("commands.toml"), *_read("calls.toml"), *_remedies()]
    names = [one.name for one in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise SystemExit(f"sessions of the same name: {', '.join(sorted(twice))}")
    return sorted(found)


def _read(file: str) -> list[Session]:
    python = file == "calls.toml"
    return [_session(name, python, said) for name, said in tomllib.loads((HERE / file).read_text()).items()]


def _session(name: str, python: bool, said: dict[str, Any]) -> Session:
    run = said.pop("run")
    steps = [run] if isinstance(run, str) and python else run
    lines = [line for line in steps.splitlines() if line] if isinstance(steps, str) else steps
    return Session(f"{'python' if python else 'command'}-{name}", python, lines, **said)


def _remedies() -> list[Session]:
    """The commands of tests/cli/remedies.toml: one for each message that names an option."""
    found, times = list[Session](), Counter[str]()
    for case in CASES:
        words = re.sub(r"[^a-z0-9]+", "-", f"{case.command} {case.remedy}".lower()).strip("-")[:80].strip("-")
        name = f"message-{words}"
        fed = f"cat {next(iter(case.files))} | " if " - " in case.command else ""
        as_json = " --json" if case.command.split()[0] in ("train", "path", "cv", "tune", "boost") else ""
        steps = [f"thresher {one}" for one in case.before] + [f"{fed}thresher {case.command}{as_json}"]
        times[name] += 1
        name = f"{name}-{times[name]}" if times[name] > 1 else name
        found.append(Session(name, False, steps, [], case.files, plain=True))
    return found


def line_of(text: str) -> Line:
    words = shlex.split(text, comments=False)
    piped = words[:1] == ["cat"] and words[2:3] == ["|"]
    stdin, rest = (words[1], words[3:]) if piped else ("", words)
    stop, variables = None, dict[str, str]()
    while rest and rest[0] != "thresher":
        word = rest.pop(0)
        if found := _SIGNAL.fullmatch(word):
            stop = Stop(found[1], found[2], found[3], int(found[4] or 1))
        elif found := _VARIABLE.fullmatch(word):
            variables[found[1]] = found[2]
        else:
            return Line(text)
    if rest[-2:-1] == ["<"]:
        stdin, rest = rest[-1], rest[:-2]
    return Line(text, rest[1:], stdin, piped, variables, stop) if rest else Line(text)
