"""``thresher`` for a shell, run by the process of the tests.

For tests that run many commands and do not depend on process start-up. A program of this name is put into a
folder, to be found there by a shell; it passes its arguments, folder, variables and standard streams to the
tests and exits with the status they return.
"""

import os
import shlex
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.forks import receive
from thresher.cli import main
from thresher.cli import signals as streams_of_commands

CLIENT = """import json, os, socket, sys

with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    said = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [len(said).to_bytes(8, "little")], [0, 1, 2])
    server.sendall(said)
    status = server.recv(1)
sys.exit(status[0] if status else "the server has ended")
"""


class Shell:
    """Bash, in which ``thresher`` is this process, so that compiled code is shared by all commands."""

    def __init__(self, folder: Path, listening: socket.socket) -> None:
        self.folder = folder
        """with the program"""
        self._listening = listening
        listening.settimeout(0.01)

    def run(self, command: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """The output of the command."""
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(["bash", "-c", command], **options) as bash, ThreadPoolExecutor(1) as pool:
            printed = pool.submit(bash.communicate)
            try:
                while not printed.done():
                    with suppress(TimeoutError):
                        self._serve()
            except BaseException:
                bash.kill()  # or the thread would wait for ever
                raise
            return subprocess.CompletedProcess(command, bash.returncode, *printed.result())

    def _serve(self) -> None:
        """Run the next command, if there is one."""
        connection, _ = self._listening.accept()
        with connection:
            connection.settimeout(None)
            streams, said = receive(connection) or ([], [])
            try:
                status = run_here(streams, *said)
            finally:
                for stream in streams:
                    os.close(stream)
            with suppress(BrokenPipeError):
                connection.sendall(bytes([status % 256]))


def run_here(streams: list[int], arguments: list[str], folder: str, variables: dict[str, str]) -> int:
    """Run the command in this process and restore its state; returns the status."""
    kept, before, environment = [os.dup(number) for number in range(3)], os.getcwd(), dict(os.environ)
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as here:
        try:
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
            for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
                here.setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115
            os.chdir(folder)
            _replace_environment(variables)
            warnings.simplefilter("default")
            warnings.showwarning = main._show_warning
            return main.status_of(arguments)
        finally:
            for file in (sys.stdout, sys.stderr):
                streams_of_commands.discard_unwritten(file)
            for number, old in enumerate(kept):
                os.dup2(old, number)
                os.close(old)
            os.chdir(before)
            _replace_environment(environment)


def _replace_environment(variables: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(variables)


@contextmanager
def served() -> Iterator[Shell]:
    """A shell with the program on its path."""
    with tempfile.TemporaryDirectory() as folder:  # those of pytest are too long for the address of a socket
        place, address = Path(folder), f"{folder}/server"
        (place / "client.py").write_text(CLIENT.format(address=address))
        program(place / "thresher", "-IS", f"{folder}/client.py")
        with socket.create_server(address, family=socket.AF_UNIX) as listening:
            yield Shell(place, listening)


def program(path: Path, *arguments: str) -> None:
    """A program that runs this Python, with these arguments before its own."""
    path.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, *arguments])} "$@"\n')
    path.chmod(0o755)
