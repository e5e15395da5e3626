"""Processes that begin at once: forked from one that has imported what they need.

They are this process's own children, with streams, folder and variables of their own, so signals and statuses
are those of any process. Whoever tests how Python begins, or what it reads then, starts Python.
"""

import ctypes
import json
import os
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from tests.served import become, import_all, receive

_ADOPT = 36
"""PR_SET_CHILD_SUBREAPER of <linux/prctl.h>: children whose parent has ended become this process's."""


class Forked(subprocess.Popen[Any]):
    """``thresher ARGUMENTS``, or Python CODE in their stead."""

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
    """``thresher WORDS``, or ``python -c CODE WORDS``, as soon as this system allows."""
    begin = Forked if sys.platform == "linux" else begun
    return begin(words, code, **options)


def begun(words: list[str], code: str = "", **options: Any) -> subprocess.Popen[Any]:
    """The same by Python, which begins anew."""
    return subprocess.Popen(
        [sys.executable, *(("-c", code) if code else ("-m", "thresher")), *words], **options
    )


def _fork(streams: list[int], *said: object) -> int:
    """The number of a new child of this process."""
    (server, _), text = _server(), json.dumps(said).encode()
    socket.send_fds(server, [len(text).to_bytes(8, "little")], streams)
    server.sendall(text)
    return int.from_bytes(server.recv(8), "little")


@cache
def _server() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """The connection to a server that ends when this process does: its connection is closed then."""
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
    """Fork as often as the client wants it."""
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
            os._exit(0)  # and its child is adopted
        os.waitpid(middle, 0)
        client.sendall(os.read(number, 8))
        for file in (*streams, number, told):
            os.close(file)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
