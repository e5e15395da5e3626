"""What a message tells users to do works on the data that provoked it, on the command line and in Python.

To add a remedy, add a case to remedies.toml: its literal as in the source, with ``{}`` for what is filled in,
small files, and a command that provokes it. The options and shell commands to try are taken from the message.
"""

import ast
import re
import shlex
import subprocess
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import thresher as package
from tests.cli.conftest import Ran, Thresher
from tests.cli.remedies import CASES, ELSEWHERE, NAMES, Case, csv
from thresher.cli.app import NAMES as COMMANDS
from thresher.cli.app import command_of
from thresher.data.formats.listing import FORMATS
from thresher.learning.files.choice import JUDGES
from thresher.learning.model.scaling import SCALES
from thresher.options import messages
from thresher.options.judging import OUTPUTS, TARGETS
from thresher.options.option import options_of
from thresher.options.synonyms import SYNONYMS
from thresher.options.training import TrainCommand
from thresher.parts.registry import REGISTRY

SOURCE = Path(package.__file__).parent
OPTION = re.compile(
    r"(?<![\w`-])--([a-z][a-z0-9-]*)(?:[ =](?!-)('[^']*'|[^\s();]*(?:,\.\.\.|[^\s();:,.?])))?"
)
SHELL = re.compile(r"\b(?:sed|jq|awk|tr|iconv) (?:'[^']*'|[^'()])*")
VERB = (
    r"(?:use|try|give|take|name|add|read|leave|let|judge|choose|run|replace|skip|put|remove|convert|lower"
    r"|shuffle|did you mean)"
)
SPELLED = re.compile(
    rf"\b{VERB}\b.*(?<![\w`-])--[a-z]|\([^()]*(?<![\w-])--(?!where)[a-z][^()]*\)|{SHELL.pattern}"
)
"""A literal that tells users to use an option or a shell command"""
IN_WORDS = re.compile(
    r"(?:^|: |, or )(?:add|check|leave|let|remove|replace|shuffle|store|such lines|take|try|turn|use|write) "
)
"""A literal of a warning that tells users to do something"""
WARNINGS = ("learning/diagnostics/", "learning/training/holdout.py:")
FLAGS = {
    *("no-header", "label-weights", "names", "quoting", "no-quoting"),
    *("resume", "no-intercept"),
}
PROSE = ["alone", "and", "at", "for", "if", "is", "or", "out", "to", "where", "in"]


def words_of(chosen: re.Match[str], fill: Mapping[str, str]) -> list[str]:
    name, value = chosen[1], chosen[2]
    if name in FLAGS or value is None or value in PROSE:
        return [f"--{name}"]
    return [f"--{name}", fill.get(value, value.strip("'"))]


def alternatives(remedy: str, fill: Mapping[str, str]) -> list[list[str]]:
    """The options of a remedy: what stands on both sides of *or* is tried apart."""
    found, end = list[list[str]](), 0
    for one in OPTION.finditer(SHELL.sub("", remedy)):
        between, end = SHELL.sub("", remedy)[end : one.start()], one.end()
        if one[1] not in FLAGS and (one[2] is None or one[2] in PROSE):
            continue
        words = words_of(one, fill)
        if found and not re.search(r"\bor\b|;", between):
            found[-1] += words
        else:
            found.append(words)
        if other := re.match(r" or ([a-z]+)\b", SHELL.sub("", remedy)[end:]):
            found.append([words[0], other[1]])
    return found


def replaced(command: list[str], options: list[str]) -> list[str]:
    left, skip = list[str](), False
    for word, following in zip(command, [*command[1:], "--"], strict=True):
        if not skip and not (word.startswith("--") and word in options):
            left.append(word)
        skip = word in options and not following.startswith("--")
    return left + options


def pattern(literal: str) -> str:
    """A regular expression of the text that a literal becomes."""
    text = "(.*?)".join(map(re.escape, literal.removeprefix("{}").split("{}")))
    ends = r"(?=$| \[| \(see|, or )" if literal.endswith("{}") else ""
    return text.replace('="(.*?)"', '="?(.*?)"?') + ends


def line_with(remedy: str, text: str, *, exactly: bool = False) -> re.Match[str]:
    found = re.search(remedy if exactly else pattern(remedy), text, re.MULTILINE)
    assert found, f"expected {remedy!r}\nin {text}"
    return found


@pytest.fixture(autouse=True)
def small(folder: Path, plainly: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models learn in plain Python."""


def prepare(case: Case, folder: Path, thresher: Thresher) -> None:
    for name, text in case.files.items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    for command in case.before:
        thresher.ok(*shlex.split(command))


def mend(case: Case, folder: Path, said: str) -> None:
    """Change the files as the message says: by its shell command, or by hand."""
    for name, text in case.mended.items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    if shell := SHELL.search(said):
        name = next(iter(case.files))
        subprocess.run(
            f"{shell[0]} < {name} > mended && mv mended {name}", shell=True, check=True, cwd=folder
        )


def tried(case: Case, said: str) -> list[list[str]]:
    command = shlex.split(case.command)
    if case.then:
        return [shlex.split(case.then)]
    options = alternatives(said, case.fill)
    return [replaced(command, one) for one in options] or [command]


def fed(thresher: Thresher, monkeypatch: pytest.MonkeyPatch, words: list[str], case: Case) -> Ran:
    if "-" not in words:
        return thresher(*words)
    with open(next(iter(case.files))) as file:
        monkeypatch.setattr("sys.stdin", file)
        return thresher(*words)


def is_training(words: list[str]) -> bool:
    return words[0] == "train" and "--help" not in words


@pytest.mark.parametrize("case", CASES, ids=[case.remedy[:50] for case in CASES])
def test_remedies_work(case: Case, folder: Path, thresher: Thresher, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(case, folder, thresher)
    ran = fed(thresher, monkeypatch, shlex.split(case.command), case)
    said = line_with(case.remedy, ran.err)[0]
    mend(case, folder, said)
    for words in tried(case, said):
        again = fed(thresher, monkeypatch, [*words, *(["--json"] if is_training(words) else [])], case)
        assert again.status == 0, f"{shlex.join(words)}: {again.err}"
        assert not re.search(pattern(case.remedy), again.err), again.err
        if is_training(words):
            assert again.json["examples"] > 0
    if case.python and case.command.startswith("train ") and not case.then:
        prepare(case, folder, thresher)
        check_in_python(case)


def keywords(text: str) -> dict[str, Any]:
    """Keyword arguments as a message in Python writes them."""
    call = ast.parse(f"train({text})", mode="eval").body
    assert isinstance(call, ast.Call)
    return {one.arg: ast.literal_eval(one.value) for one in call.keywords if one.arg}


def as_keywords(words: list[str]) -> dict[str, Any]:
    known = options_of(TrainCommand)
    switches = {flag: name for name, one in known.items() for flag in (one.flag, one.negated)}
    given, rest = dict[str, Any](), iter(words)
    for flag in rest:
        name = switches[flag]
        if known[name].kind.switch:
            given[name] = flag == known[name].flag
        else:
            text = next(rest)
            given[name] = ast.literal_eval(text) if re.fullmatch(r"\d+(\.\d+)?", text) else text
    return given


def said_in_python(data: str, given: dict[str, Any]) -> str:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            package.train(data, **given)
        except (ValueError, TypeError) as error:
            return str(error)
    return "\n".join(str(one.message) for one in caught)


def check_in_python(case: Case) -> None:
    """The same is said in Python, with its names of options."""
    data, *options = shlex.split(case.command)[1:]
    del options[options.index("-m") : options.index("-m") + 2]
    found = line_with(in_python()[case.remedy], said_in_python(data, as_keywords(options)))[0]
    assert not re.search(r"(?<!`)--(?!resume|help)[a-z]", found), "options have other names in Python"


@pytest.mark.parametrize("name", NAMES)
def test_a_column_can_be_named_as_the_message_does(name: str, folder: Path, thresher: Thresher) -> None:
    quoted = name.replace('"', '""')
    (folder / "d.csv").write_text(csv(f'label,a,"{quoted}"', "{y},s{a},u{k}", 120))
    command = ["train", "d.csv", "-m", "m", "-q"]
    remedy = r"leave out columns that only identify rows with (.*?)(?: \[|$)"
    option = line_with(remedy, thresher(*command).err, exactly=True)[1]
    status, _, err = thresher(*command, *shlex.split(option))
    assert (status, err) == (0, "")
    assert (
        said_in_python("d.csv", keywords(line_with(remedy, said_in_python("d.csv", {}), exactly=True)[1]))
        == ""
    )


def test_synonyms_lead_to_names_that_there_are() -> None:
    flags = {flag.lstrip("-") for name in COMMANDS for one in command_of(name).params for flag in one.opts}
    parts = {name for kind in REGISTRY.values() for name in kind}
    known = {*flags, *COMMANDS, *parts, *FORMATS, *SCALES, *OUTPUTS, *JUDGES, *TARGETS, "once", "skip"}
    assert {name for names in SYNONYMS.values() for name in names.split()} <= known


@cache
def marked() -> list[tuple[str, str]]:
    """The place and the text of each string in the source except docstrings."""
    paths = sorted(SOURCE.rglob("*.py"))
    return [
        (f"{path.relative_to(SOURCE)}:{line}", text)
        for path in paths
        for line, text in texts_in(with_constants(ast.parse(path.read_text())))
    ]


def with_constants(module: ast.Module) -> ast.Module:
    """The module with its constants of two spellings written where messages use them."""
    found = {
        node.targets[0].id: node.value
        for node in module.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == "shell_or_python"
    }
    for node in ast.walk(module):
        if isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Name):
            node.value = found.get(node.value.id, node.value)
    return module


def literals() -> list[tuple[str, str]]:
    """The same, as the command line says it."""
    return [(place, messages.as_stored(text)) for place, text in marked()]


@cache
def in_python() -> dict[str, str]:
    """How Python says what the command line says."""
    return {messages.as_stored(text): messages.as_shown(text) for _, text in marked()}


def text_of(node: ast.AST) -> str | None:
    """A string with ``{}`` in place of what is filled in, and with the marks of mentions."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(one.value) if isinstance(one, ast.Constant) else mentioned(one) for one in node.values
        )
    return None


def mentioned(node: ast.AST) -> str:
    """What is filled in, if it is a mention; otherwise ``{}``."""
    call = node.value if isinstance(node, ast.FormattedValue) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return "{}"
    if call.func.id not in ("mention", "mention_command", "shell_or_python"):
        return "{}"
    names = [one.value if isinstance(one, ast.Constant) else "FILLED" for one in call.args]
    values = {
        one.arg or "FILLED": one.value.value if isinstance(one.value, ast.Constant) else "FILLED"
        for one in call.keywords
    }
    return str(getattr(messages, call.func.id)(*names, **values)).replace("FILLED", "{}")


def texts_in(node: ast.AST) -> Iterator[tuple[int, str]]:
    if (text := text_of(node)) is not None:
        yield getattr(node, "lineno", 0), text
        return
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)):
            yield from texts_in(child)


HELP = {
    "cli/app.py",
    *(f"options/{name}.py" for name in ("data", "judging", "lanes", "model", "training")),
    "reporting/html.py",
    "drawing/svg.py",
}


def tells(place: str, text: str) -> bool:
    in_words = place.startswith(WARNINGS) and IN_WORDS.search(text)
    return bool(SPELLED.search(text) or in_words)


def test_every_remedy_has_a_case() -> None:
    known = {case.remedy for case in CASES} | ELSEWHERE.keys()
    found = {
        text: place
        for place, text in literals()
        if SPELLED.search(text) and not text.isspace() and "[default:" not in text
    }
    for text in [text for text, place in found.items() if place.split(":")[0] in HELP]:
        del found[text]
    missing = [f"{place}: {text!r}" for text, place in found.items() if text not in known]
    assert not missing, "add a case to tests/cli/remedies.toml for\n" + "\n".join(missing)


def test_no_case_is_left_over() -> None:
    every = {text for _, text in literals()}
    left = [case.remedy for case in CASES if case.remedy not in every] + [
        one for one in ELSEWHERE if one not in every
    ]
    assert not left, f"no longer in the source: {left}"
