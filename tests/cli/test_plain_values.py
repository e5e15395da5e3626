"""Options have the values that typer would give them, whether parsed by it or not."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperCommand
from typer.main import get_command

from tests.cli.conftest import Thresher
from thresher.cli import evaluate, predict, train
from thresher.cli.app import command_of
from thresher.cli.plain_values import Command

LINES = [
    (train, "a.svm -m m"),
    (train, "a.svm b.svm --model m -q --passes 3 --l1 0.5 --order every --no-cache --header"),
    (train, "a.svm -m m --interact a,b --interact *,* --checkpoint-every 7 --on-error skip --curve c.tsv"),
    (train, "- -m m --resume --no-average --loss hinge --delimiter x --format csv --no-names"),
    (train, "a.svm"),
    (train, "-m m"),
    (train, "a.svm -m m --on-error never"),
    (train, "a.svm -m locked"),
    (predict, "m a.svm"),
    (predict, "m a.svm -o out --threads 2"),
    (evaluate, "m a.svm b.svm --json"),
]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    path.write_text("x")
    path.chmod(0)
    yield
    path.chmod(0o600)


def taken(command: Any, cls: type[TyperCommand], line: str) -> Any:
    """The arguments of the command with their types, or the error message."""
    app, got = typer.Typer(add_completion=False), dict[str, Any]()

    def call(**options: Any) -> None:
        got.update(options)

    call.__signature__ = inspect.signature(command.command)  # type: ignore[attr-defined]
    call.__annotations__ = command.command.__annotations__
    call.__globals__.update(vars(command))
    app.command("it", cls=cls)(call)
    try:
        get_command(app).main(line.split(), standalone_mode=False)
    except Exception as error:  # noqa: BLE001  (told, whatever it is)
        return type(error).__name__, str(error)
    return {name: (type(value), value) for name, value in got.items()}


@pytest.mark.parametrize(("command", "line"), LINES)
def test_values_are_those_of_typer(
    command: Any, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with locked(tmp_path / "locked"):
        assert taken(command, Command, line) == taken(command, TyperCommand, line)


def test_one_command_is_built_and_all_are_known(thresher: Thresher) -> None:
    assert thresher("rules").status == 0
    assert "no command is called 'trai'; did you mean thresher train?" in thresher("trai").err
    assert "evaluate" in thresher("--help").out


def test_a_command_can_run_many_times(thresher: Thresher) -> None:
    for _ in range(3):
        assert thresher("rules").status == 0
    command = command_of("rules")
    for one in (*command.params, *command.commands["rules"].params):
        *_, process = one.process_value.args
        assert process.func is type(one).process_value, (
            "values are not processed by one more function each time"
        )


def test_columns_given_twice(thresher: Thresher, narrow: None) -> None:
    for options, said in (
        ("--ignore a --ignore b", "--ignore: given twice: separate several by commas"),
        ("--numeric=a -m m --numeric=b", "--numeric: given twice: separate several by commas"),
        ("--label a --label b", "--label: given twice"),
    ):
        ran = thresher(f"train train.svm {options}")
        assert (ran.status, ran.err) == (2, f"thresher: {said} (see thresher train --help)\n")
    assert thresher("train train.svm -m m -q --rule ftrl --rule sgd").status == 0, "others replace the first"
    assert "--rule sgd" in thresher("info m --json").json["command"]
