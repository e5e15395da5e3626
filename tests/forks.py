"""Fast processes: forked from a server that has imported what they need.

They are children of this process, with their own streams, folder and variables, so signals and statuses are
those of any process. Tests of Python's start-up itself start Python.
"""

import ctypes
import gc
import importlib
import json
import os
import runpy
import socket
import subprocess
import sys
import traceback
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

_ADOPT = 36
"""PR_SET_CHILD_SUBREAPER of <linux/prctl.h>: children whose parent has ended become this process's."""


class Forked(subprocess.Popen[Any]):
    """``thresher ARGUMENTS``, or Python CODE instead."""

    def __init__(self, arguments: list[str], code: str = "", **options: Any) -> None:
        self._code = code
        super().__init__(arguments, **options)

    def _execute_child(self, arguments: Any, _: Any, __: Any, ___: Any, ____: Any, *given: Any) -> None:
        folder, variables, *_others = given
        pipes = given[5:11]
        streams = [number if own == -1 else own for number, own in enumerate((pipes[0], pipes[3], pipes[5]))]
        self.pid = _fork(streams, arguments, os.fspath(folder), dict(variables), self._code)
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


def forked(words: list[str], code: str = "", **options: Any) -> subprocess.Popen[Any]:
    """Start ``thresher WORDS`` or ``python -c CODE WORDS`` by a fork."""
    begin = Forked if sys.platform == "linux" else started
    return begin(words, code, **options)


def started(words: list[str], code: str = "", **options: Any) -> subprocess.Popen[Any]:
    """The same in a new Python process."""
    return subprocess.Popen(
        [sys.executable, *(("-c", code) if code else ("-m", "thresher")), *words], **options
    )


def _fork(streams: list[int], *said: object) -> int:
    """The process id of a new child of this process."""
    (server, _), text = _server(), json.dumps(said).encode()
    socket.send_fds(server, [len(text).to_bytes(8, "little")], streams)
    server.sendall(text)
    return int.from_bytes(server.recv(8), "little")


@cache
def _server() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """The connection to a server that ends with this process, when the connection is closed."""
    ctypes.CDLL(None).prctl(_ADOPT, 1)
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.forks", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            cwd=Path(__file__).parents[1],
            stdin=subprocess.DEVNULL,
        )
    return ours, process


def main(client: socket.socket) -> None:
    """Fork on request of the client."""
    import_all()
    while (came := receive(client)) is not None:
        streams, said = came
        number, told = os.pipe()
        middle = os.fork()
        if middle == 0:
            process = os.fork()
            if process == 0:
                client.close()
                os.close(number)
                os.close(told)
                become(streams, *said)
            os.write(told, process.to_bytes(8, "little"))
            os._exit(0)  # so that its child is adopted
        os.waitpid(middle, 0)
        client.sendall(os.read(number, 8))
        for file in (*streams, number, told):
            os.close(file)


def import_all() -> None:
    """Import what commands need, and let Numba build its type tables."""
    for module in ("scipy", "yaml"):  # as `thresher.cli.main` does
        sys.modules[module] = None  # type: ignore[assignment]
    import numba

    for name in ("thresher.cli.app", "thresher.learning.training.trainer"):
        importlib.import_module(name)
    os.fsync = lambda file: None  # type: ignore[assignment]  # processes are killed here, not machines
    numba.njit(lambda v: v)(1.0)
    gc.collect()
    gc.freeze()


def receive(connection: socket.socket) -> tuple[list[int], list[Any]] | None:
    """Standard streams and further arguments of `become`; None if the client is gone."""
    size, streams, *_ = socket.recv_fds(connection, 8, 3)
    said = b""
    while len(said) < int.from_bytes(size, "little"):
        said += connection.recv(1 << 16)
    return (streams, json.loads(said)) if size else None


def become(
    streams: list[int], arguments: list[str], folder: str, variables: dict[str, str], code: str = ""
) -> NoReturn:
    """Run the command, or code instead."""
    from thresher.cli.main import run

    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for stream in streams:
        os.close(stream)
    _stream("stdin", 0, "r", "strict")
    _stream("stdout", 1, "w", "strict")
    _stream("stderr", 2, "w", "backslashreplace")
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.argv[1:] = arguments
    if code:
        _run(code)
    run()


def _stream(name: str, number: int, mode: str, errors: str) -> None:
    """A standard stream as Python creates it, kept open by a second reference."""
    new = open(number, mode, buffering=1 if number == 2 else -1, errors=errors, closefd=False)  # noqa: SIM115
    setattr(sys, name, new)
    setattr(sys, f"__{name}__", new)


def _run(code: str) -> NoReturn:
    """Run code as ``python -c`` does."""
    status = 1
    try:
        file = os.memfd_create("code")  # a killed process writes none
        os.write(file, code.encode())
        runpy.run_path(f"/proc/self/fd/{file}", run_name="__main__")
        status = 0
    except BaseException:  # noqa: BLE001  (of any test's code)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
