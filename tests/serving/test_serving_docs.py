"""The commands of docs/serving.md do what the page shows, and the example of late clicks runs."""

import os
import re
import runpy
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from examples import serving
from tests.commands import environment
from tests.pages import DOCS, ROOT, blocks, printed, session, text_of
from tests.served import program
from thresher.engine.compile.notices import COMPILING

PAGE, PORT = "docs/serving", "8000"
KILLED = re.compile(r"\S*bash: line \d+: +\d+ (Killed|Terminated) .*")
COMMAND = """#!/bin/sh
[ "$1" = serve ] && set -- "$@" --port {port}
exec python -m thresher "$@"
"""
"""The program, with a port that is free"""


class Session:
    """One bash, in which what a command has put into the background goes on."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder, self._port, self._number = folder, str(port), 0
        program(folder / "bin" / "python")
        (folder / "bin" / "thresher").write_text(COMMAND.format(port=port))
        (folder / "bin" / "thresher").chmod(0o755)
        known = environment(folder)
        known["PATH"] = f"{folder / 'bin'}:{known['PATH']}"
        self.bash = subprocess.Popen(
            ["bash"], stdin=subprocess.PIPE, cwd=folder, env=known, text=True, start_new_session=True
        )

    def mine(self, text: str) -> str:
        """The page's text, with the port of this test."""
        return text.replace(PORT, self._port)

    def run(self, command: str) -> str:
        """What the command prints; for a server in the background, until it is ready."""
        self._number += 1
        said, done = self._folder / "said", self._folder / f"done.{self._number}"
        before = said.stat().st_size if said.exists() else 0
        assert self.bash.stdin is not None
        self.bash.stdin.write(f"{{ {self.mine(command)}\n}} >> {said} 2>&1; touch {done}\n")
        self.bash.stdin.flush()
        self._until(done.exists)
        if command.rstrip().endswith("&"):
            self._until(self._ready)
        lines = (
            said.read_bytes()[before:].decode().splitlines(keepends=True)
        )  # also of those in the background
        return "".join(one for one in lines if COMPILING not in one and not KILLED.match(one))

    def _until(self, done: object) -> None:
        end = time.monotonic() + 60
        while not done():  # type: ignore[operator]
            assert self.bash.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)

    def _ready(self) -> bool:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self._port}/health/ready", timeout=20).close()
        except OSError:  # of which a refusal by /health/ready is one
            return False
        return True

    def close(self) -> None:
        """End the shell, and the server if it still runs."""
        assert self.bash.stdin is not None
        self.bash.stdin.write('kill -9 "$!" 2> ended\n')
        self.bash.stdin.close()
        self.bash.wait(20)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Session]:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "bin").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    found = Session(tmp_path, port)
    yield found
    found.close()


def test_the_commands_of_the_page_do_what_it_says(shell: Session, tmp_path: Path) -> None:
    """Python blocks run before the server is stopped."""
    commands = [step for block in blocks(PAGE, "console") for step in session(block)]
    python = [*blocks(PAGE, "python")]
    for command, wanted in commands:
        while python and command.startswith("kill $!"):
            (tmp_path / "block.py").write_text(shell.mine(python.pop()))
            done = [sys.executable, "block.py"]
            subprocess.run(done, cwd=tmp_path, env=dict(os.environ), check=True, timeout=60)
        found = shell.run(command)
        assert printed(shell.mine(wanted), found), f"{command}{found}"
    assert not python


def test_five_commands_are_enough() -> None:
    first = [command for command, _ in session(blocks(PAGE, "console")[0])]
    assert len(first) == 5
    words = ("thresher train", "thresher serve", "/predict", "/learn", "kill -9")
    assert all(word in command for word, command in zip(words, first, strict=True))


def test_they_and_the_question_after_them_are_a_script(shell: Session, tmp_path: Path) -> None:
    """Also where each command follows the one before at once."""
    commands = [step for block in blocks(PAGE, "console")[:2] for step in session(block)]
    (tmp_path / "script").write_text(
        "\n".join(shell.mine(command) for command, _ in commands) + "\nkill -9 $!"
    )
    assert shell.run("bash script").splitlines().count('{"label":"sci.med"}') == 1


def test_it_prints_and_draws_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "serving.py"), run_name="__main__")
    (shown,) = re.findall(r"^\$ python examples/serving.py\n(.*?)^```$", text_of("docs/serving"), re.M | re.S)
    said = capsys.readouterr().out
    assert said == shown
    assert "byte for byte: True" in said
    still, learns, true = (
        float(one) for one in re.findall(r"(\S+)$", said.partition("\n\n")[2][:300], re.M)[1:4]
    )
    assert true < learns < still - 0.03
    drawn = ROOT / "build" / "serving.svg"
    assert drawn.read_text() == (DOCS / "pictures" / "serving.svg").read_text()


def test_ads_come_and_go_and_chances_are_true() -> None:
    stream = serving.views(seed=1)
    hours = [
        {one.asked["ad"] for one in stream[k : k + serving.VIEWS]}
        for k in range(0, len(stream), serving.VIEWS)
    ]
    assert len(hours) == serving.HOURS
    assert not hours[0] & hours[serving.ADS // serving.NEW]
    assert len(hours[0] & hours[1]) > serving.ADS / 2
    clicked, chances = np.array([(one.clicked, one.chance) for one in stream]).T
    assert abs(clicked.mean() - chances.mean()) < 3 * np.sqrt(chances.mean() / len(stream))
