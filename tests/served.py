"""``thresher`` in processes that begin at once: forked from one that has imported what they need.

For tests that run many commands, where nothing depends on how a process begins. A program of this name is
put into a folder, to be found there by a shell; it hands its arguments, folder, variables and standard
streams to the server and ends with the status that comes back.
"""

import gc
import importlib
import json
import os
import runpy
import shlex
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

PIPES: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
"""What the streams of most commands are"""
CLIENT = """import json, os, socket, sys

with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    said = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [len(said).to_bytes(8, "little")], [0, 1, 2])
    server.sendall(said)
    status = server.recv(1)
sys.exit(status[0] if status else "the server has ended")
"""


@contextmanager
def served() -> Iterator[Path]:
    """A folder with the program, as long as the server runs."""
    with tempfile.TemporaryDirectory() as folder:  # those of pytest are too long for the address of a socket
        place, address = Path(folder), f"{folder}/server"
        (place / "client.py").write_text(CLIENT.format(address=address))
        program(place / "thresher", "-IS", f"{folder}/client.py")
        with _server(address):
            yield place


def program(path: Path, *arguments: str) -> None:
    """A program that runs this Python, with these arguments before its own."""
    path.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, *arguments])} "$@"\n')
    path.chmod(0o755)


@contextmanager
def _server(address: str) -> Iterator[None]:
    with (
        socket.create_server(address, family=socket.AF_UNIX) as listening,
        subprocess.Popen(
            [sys.executable, "-m", "tests.served", str(listening.fileno())],
            pass_fds=[listening.fileno()],
            cwd=Path(__file__).parents[1],
            **PIPES,
        ) as server,
    ):
        yield
        server.terminate()


def main(listening: socket.socket) -> None:
    """Serve one command after the other."""
    import_all()
    while True:
        connection, _ = listening.accept()
        with connection:
            streams, said = receive(connection) or ([], [])
            process = os.fork()
            if process == 0:
                listening.close()
                become(streams, *said)
            for stream in streams:
                os.close(stream)
            status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            with suppress(BrokenPipeError):
                connection.sendall(bytes([status % 256]))


def import_all() -> None:
    """What commands need, and what Numba makes when it first compiles: its tables of types."""
    for module in ("scipy", "yaml"):  # as `thresher.cli.main` does
        sys.modules[module] = None  # type: ignore[assignment]
    import numba

    for name in ("thresher.cli.app", "thresher.learning.training"):
        importlib.import_module(name)
    numba.njit(lambda v: v)(1.0)
    gc.collect()
    gc.freeze()


def receive(connection: socket.socket) -> tuple[list[int], list[Any]] | None:
    """Standard streams, and what `become` is to be given besides; None: nobody is there any more."""
    size, streams, *_ = socket.recv_fds(connection, 8, 3)
    said = b""
    while len(said) < int.from_bytes(size, "little"):
        said += connection.recv(1 << 16)
    return (streams, json.loads(said)) if size else None


def become(
    streams: list[int], arguments: list[str], folder: str, variables: dict[str, str], code: str = ""
) -> NoReturn:
    """The command, with all that it was given; or code in its stead."""
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
    """A standard stream as Python begins with, kept open by a second name."""
    new = open(number, mode, buffering=1 if number == 2 else -1, errors=errors, closefd=False)  # noqa: SIM115
    setattr(sys, name, new)
    setattr(sys, f"__{name}__", new)


def _run(code: str) -> NoReturn:
    """As ``python -c`` does."""
    status = 1
    try:
        file = os.memfd_create("code")  # which a process that is killed leaves nowhere
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
