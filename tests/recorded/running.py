"""Run the steps of a session, and put down what they print, return and write."""

import ast
import contextlib
import io
import os
import runpy
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.commands import environment
from tests.forks import forked
from tests.plain import compiled_if
from tests.recorded import inputs, masks
from tests.recorded.objects import shown
from tests.recorded.sessions import Line, Session, Stop, line_of
from tests.served import run_here
from tests.telling import notices_to
from thresher.engine.compile.codecache import usable_folder

_SCREEN = {"COLUMNS": "80", "LINES": "24", "TERM": "dumb", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0"}
_WATCHED = """
import contextlib, sys
sys.path.insert(0, {root!r})
from tests.recorded.stops import stop_at
from tests.plain import compiled_if
from thresher.cli.main import run

with contextlib.ExitStack() as stack:
    stack.enter_context(compiled_if({compiled}))
    stop_at(*{stop!r})
    run()
"""


class Ran(NamedTuple):
    status: int | str
    out: str
    err: str


@contextmanager
def place() -> Iterator[Path]:
    """A folder for the folders of sessions, which share compiled code and a cache."""
    with tempfile.TemporaryDirectory() as made:
        yield Path(made).resolve()
    usable_folder.cache_clear()  # sessions in this process may have used the one that is gone


def recorded(session: Session, place: Path) -> str:
    with ExitStack() as stack:
        folder = place / session.name
        folder.mkdir()
        for name in session.files:
            for path, data in inputs.files_of(name):
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(data)
        for name, text in session.texts.items():
            (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        stack.enter_context(compiled_if(not session.plain))
        stack.enter_context(_quietly())
        run = _python if session.python else _commands
        return "".join(run(session, folder))


@contextmanager
def _quietly() -> Iterator[None]:
    """Without messages about compiling, and without waiting for the disk."""
    with notices_to(None), pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _changes(before: dict[str, bytes], folder: Path) -> str:
    """The files that were written or removed."""
    after = _files(folder)
    gone = [f"{name}: removed\n" for name in before.keys() - after.keys()]
    new = [masks.file(name, data, folder) for name, data in after.items() if before.get(name) != data]
    return "".join([*sorted(gone), *new])


def _put_down(step: str, ran: Ran, files: str) -> str:
    """A step as text; blanks at the ends of lines would not survive editors."""
    parts = [("out", ran.out), ("err", ran.err), ("files", files)]
    told = "".join(
        f"[{name}]\n{text}{'' if text.endswith(chr(10)) else chr(10)}" for name, text in parts if text
    )
    return f"$ {step}\n[status {ran.status}]\n{told}\n"


def _commands(session: Session, folder: Path) -> Iterator[str]:
    for text in session.steps:
        line, before = line_of(text), _files(folder)
        ran = _command(line, session, folder)
        shown_ran = Ran(ran.status, masks.output(ran.out, folder), masks.plain(ran.err, folder))
        yield _put_down(text, shown_ran, "" if line.words is None else _changes(before, folder))


def _variables(line: Line, folder: Path) -> dict[str, str]:
    return {**environment(folder.parent), **_SCREEN, **line.variables}


def _command(line: Line, session: Session, folder: Path) -> Ran:
    if line.words is None:
        variables = {**_variables(line, folder), "PYTHON": sys.executable}
        pipes: Any = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
        done = subprocess.run(["bash", "-c", line.text], cwd=folder, env=variables, check=False, **pipes)
        return Ran(done.returncode, done.stdout, done.stderr)
    if session.process or line.stop:
        return _apart(line, session, folder)
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(2)]
        streams = [stack.enter_context(_stdin(line, folder)), *(os.dup(file.fileno()) for file in files)]
        try:
            status: int | str = run_here(streams, line.words, str(folder), _variables(line, folder))
        except Exception as error:  # noqa: BLE001  (a crash is recorded, too)
            status = _crash(error)
        finally:
            for number in streams[1:]:
                os.close(number)
        out, err = (_text(file) for file in files)
        return Ran(status, out, err)


def _text(file: Any) -> str:
    file.seek(0)
    return str(file.read().decode(errors="backslashreplace"))


def _crash(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"CRASH in {Path(last.filename).name}, {last.name}: {type(error).__name__}: {error}"


@contextmanager
def _stdin(line: Line, folder: Path) -> Iterator[int]:
    """The file, a pipe it comes through, or nothing."""
    if not line.piped:
        with open(folder / line.stdin if line.stdin else os.devnull, "rb") as file:
            yield file.fileno()
        return
    reading, writing = os.pipe()
    feeder = threading.Thread(target=_feed, args=(writing, (folder / line.stdin).read_bytes()))
    feeder.start()
    try:
        yield reading
    finally:
        os.close(reading)
        feeder.join()


def _feed(number: int, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), open(number, "wb") as pipe:
        pipe.write(data)


def _apart(line: Line, session: Session, folder: Path) -> Ran:
    """In a process of its own, which a signal may stop."""
    root = str(Path(__file__).parents[2])
    stop = line.stop or Stop("SIGINT", "never", "", 0)
    code = _WATCHED.format(root=root, stop=tuple(stop), compiled=not session.plain)
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with (
        _stdin(line, folder) as stdin,
        forked(
            line.words or [], code, cwd=folder, env=_variables(line, folder), stdin=stdin, **pipes
        ) as process,
    ):
        out, err = process.communicate(timeout=300)
    return Ran(process.returncode, *(text.decode(errors="backslashreplace") for text in (out, err)))


def _python(session: Session, folder: Path) -> Iterator[str]:
    here, kept = os.getcwd(), dict(os.environ)
    space = inputs.namespace()
    os.environ.update(environment(folder.parent))
    os.chdir(folder)
    try:
        for step in session.steps:
            before = _files(folder)
            ran = _piece(step, folder.parent / f"{session.name}.py", space)
            yield _put_down(
                step.strip(),
                Ran(ran.status, masks.plain(ran.out, folder), masks.plain(ran.err, folder)),
                _changes(before, folder),
            )
    finally:
        os.chdir(here)
        os.environ.clear()
        os.environ.update(kept)


def _piece(code: str, file: Path, space: dict[str, Any]) -> Ran:
    """Run a piece of Python; `out` has what it printed, and its value; `err` its warnings and its error."""
    tree = ast.parse(code.strip())
    if isinstance(last := tree.body[-1], ast.Expr):
        tree.body[-1] = ast.Assign([ast.Name("_value", ast.Store())], last.value, lineno=last.lineno)
    file.write_text(ast.unparse(tree))
    printed, status, error = io.StringIO(), "done", ""
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(printed):
        warnings.simplefilter("always")
        try:
            space.update(runpy.run_path(str(file), {**space, "_value": None}))
            printed.write("" if space["_value"] is None else shown(space["_value"]) + "\n")
        except (Exception, KeyboardInterrupt) as raised:  # noqa: BLE001  (recorded)
            status, error = "raised", f"{type(raised).__name__}: {raised}\n"
    told = "".join(f"{_named(one, str(file))}: {one.message}\n" for one in caught)
    return Ran(status, printed.getvalue(), told + error)


def _named(warning: warnings.WarningMessage, name: str) -> str:
    """The class of a warning, and whether it points at the user's line."""
    place = f"line {warning.lineno}" if warning.filename == name else Path(warning.filename).name
    return f"{warning.category.__name__} at {place}"
