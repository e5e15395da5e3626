"""Messages name options as on the command line or as in Python."""

import ast
import re
import shlex
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import fill
from typing import Any, is_typeddict

import pytest

import thresher
from thresher.data import DataError
from thresher.options import data, judging, lanes, messages, model, training
from thresher.options.messages import as_shown, as_stored, mention, on_the_command_line
from thresher.options.option import SHELL, Option, options_of

SOURCE = Path(thresher.__file__).parent
SAID = [
    (mention(passes=3), "--passes 3", "passes=3"),
    (mention(holdout=0.1), "--holdout 0.1", "holdout=0.1"),
    (mention(rule="ft-ftrl"), "--rule ft-ftrl", 'rule="ft-ftrl"'),
    (
        mention(format="csv", header=False, label="N"),
        "--format csv --no-header --label N",
        'format="csv", header=False, label="N"',
    ),
    (mention(order="buffer:N"), "--order buffer:N", 'order="buffer:N"'),
    (mention(delimiter=";"), "--delimiter ';'", 'delimiter=";"'),
    (mention(label="a,b,..."), "--label a,b,...", 'label="a,b,..."'),
    (mention("on_error"), "--on-error", "on_error"),
    (mention(resume=True), "--resume", "resume=True"),
    (mention("average", "l1"), "--average --l1", "average, l1"),
    (mention(slices="city"), "--slice city", 'slices="city"'),
    (messages.mention_command("name"), "thresher name", "thresher.name_features"),
    (mention(), "", ""),
]
COLUMNS = ["user id", "it's", 'q"q', "$x", "-x", "--x", "a\\b", "or", "x\ty", "\x7f", "größe", "*", "1=2", ""]
MARKS = "\ud8f0", "\ud8f1", "\ud8f2"


@pytest.mark.parametrize(("message", "shell", "python"), SAID, ids=[shell for _, shell, _ in SAID])
def test_an_option_is_spelled_for_its_reader(message: str, shell: str, python: str) -> None:
    assert as_shown(f"use {message}!") == f"use {python}!"
    with on_the_command_line():
        assert as_shown(f"use {message}!") == f"use {shell}!"
    assert as_stored(f"use {message}!") == f"use {shell}!"


@pytest.mark.parametrize("column", COLUMNS)
def test_any_text_is_a_value(column: str) -> None:
    message = mention(ignore=column, header=True)
    assert shlex.split(as_stored(message)) == ["--ignore", column, "--header"]
    call: Any = ast.parse(f"f({as_shown(message)})", mode="eval").body
    assert {one.arg: ast.literal_eval(one.value) for one in call.keywords} == {
        "ignore": column,
        "header": True,
    }


def test_a_message_survives_what_is_done_to_it() -> None:
    message = f"d.csv: use {mention(categorical='user id')}, or leave {mention('label')} out"
    for cut in range(len(message) + 1):
        for said in (as_shown(message[:cut]), as_stored(message[:cut]), as_shown(message[cut:])):
            assert not set(said) & {*MARKS}
        assert as_shown(message[:cut]).startswith("d.csv: use "[:cut])
    assert as_shown("; ".join([message] * 2)) == "; ".join([as_shown(message)] * 2)
    assert as_shown(fill(message, 60)).split() == as_shown(message).split()


def test_data_cannot_pass_for_a_mention() -> None:
    begin, between, end = MARKS
    hostile = f"{begin}a{between}b{end}"
    for said in (as_shown(mention(ignore=hostile)), as_stored(mention(ignore=hostile))):
        assert not set(said) & {*MARKS}
    for decoded in (hostile.encode("utf-8", "surrogatepass"), hostile.encode("utf-16", "surrogatepass")):
        assert not set(decoded.decode("utf-8", "surrogateescape")) & {*MARKS}
        assert not set(decoded.decode("utf-8", "replace")) & {*MARKS}


def test_python_is_told_as_python_speaks(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=re.escape('name the label column (label="COL")')):
        thresher.train(tmp_path / "a.csv")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        messages.warn_user(f"take {mention(rule='sgd')}", UserWarning)
    assert str(caught[0].message) == 'take rule="sgd"'
    assert caught[0].filename == __file__


@cache
def options() -> dict[str, list[Option]]:
    """The declarations of each option."""
    found = dict[str, list[Option]]()
    for module in (data, judging, lanes, model, training):
        for one in filter(is_typeddict, vars(module).values()):
            for name, declaration in options_of(one).items():
                found.setdefault(name, []).append(declaration)
    return found


def mentions() -> Iterator[tuple[str, ast.Call]]:
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "mention":
                yield f"{path.relative_to(SOURCE)}:{node.lineno}", node


def test_what_raises_a_message_with_options_spells_them() -> None:
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise) and re.search(r"\b(mention|shell_or_python)", ast.unparse(node)):
                assert re.match(r"raise (ValueError|TypeError)\b", ast.unparse(node)) is None, (
                    path,
                    node.lineno,
                )


PLACEHOLDER = re.compile(r"\b[A-Z]+\b|,\.\.\.")


def accepts(one: Option, value: Any) -> bool:
    """Whether both faces take the value."""
    kind = one.kind
    if kind.switch or isinstance(value, bool):
        return kind.switch and isinstance(value, bool) and (value or bool(one.negated))
    try:
        kind.read(str(value))
        kind.take(value)
    except ValueError:
        return False
    return True


def test_options_in_messages_are_declared_and_take_what_is_said() -> None:
    seen = 0
    for place, call in mentions():
        names = [str(one.value) for one in call.args if isinstance(one, ast.Constant)]
        values = {one.arg: one.value for one in call.keywords if one.arg}
        for name in [*names, *values]:
            assert name in options(), f"{place}: no option is called {name}"
            assert any(one.face != SHELL for one in options()[name]), f"{place}: {name}"
            seen += 1
        for name, value in values.items():
            if isinstance(value, ast.Constant) and not PLACEHOLDER.search(str(value.value)):
                assert any(accepts(one, value.value) for one in options()[name]), f"{place}: {name}"
    assert seen > 100


def test_both_faces_have_an_option_under_the_names_in_messages() -> None:
    for name, declarations in options().items():
        for one in declarations:
            assert as_shown(mention(name)) == name
            assert as_stored(mention(name)) == one.flag
            if one.kind.switch and one.negated:
                assert as_stored(mention(**{name: False})) == one.negated


FOLDERS = ("cli", "drawing", "options", "reporting", "serving")
"""Folders whose messages are read in the shell alone, or that have none"""
SHELL_ONLY = {
    "data/bodies.py",  # an option of curl
    "data/files/paths.py",  # a name of a file that begins with a dash, as typed on the command line
    "learning/files/choice.py",  # an option that has another form in Python
    "learning/files/model_file.py",  # a command line to run
    "learning/files/checkpoint.py",  # a command that is a function in Python
    "runs/using.py",  # likewise
    "learning/model/ensemble.py",  # likewise
}


def strings(node: ast.AST) -> Iterator[str]:
    """The literals, without docstrings."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)):
            yield from strings(child)


def test_no_message_spells_an_option_itself() -> None:
    for path in sorted(SOURCE.rglob("*.py")):
        place = str(path.relative_to(SOURCE))
        if place.split("/")[0] in FOLDERS or place in SHELL_ONLY:
            continue
        found = [text for text in strings(ast.parse(path.read_text())) if re.search(r"--[a-z]", text)]
        assert not found, f"{place}: use mention(): {found}"
