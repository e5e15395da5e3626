"""The command line in separate processes, for signals, streams and exit statuses."""

import os
import subprocess
from pathlib import Path
from typing import Any

import thresher
from tests.forks import forked, started
from thresher.engine.atomic import cache_folder
from thresher.engine.compile.notices import COMPILING

HERE = Path(thresher.__file__).parent.parent
OLDER_MODEL = bytes(8) + b'{"__metadata__":{"thresher":'
"""What a file begins with that a model may replace."""
SAMPLE = Path(__file__).parent.parent / "examples" / "data" / "rcv1_train2000.dat.gz"


RUN = "from thresher.cli.main import run\nrun()\n"
"""The last lines of `code` that runs the program."""


def own_cache(folder: Path) -> Path:
    """A cache folder without parsed data, but with the compiled code of other tests."""
    cache = folder / "cache"
    if not cache.exists():
        cache.mkdir(parents=True)
        code = cache_folder() / "code"
        code.mkdir(parents=True, exist_ok=True)
        (cache / "code").symlink_to(code.resolve())
    return cache


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Environment variables for a process that works in `folder`."""
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    ours = {"PYTHONPATH": os.pathsep.join(paths), "THRESHER_CACHE_DIR": str(own_cache(folder))}
    return {**os.environ, **ours, **more}


def start(
    *arguments: object,
    folder: Path,
    code: str = "",
    stdin: Any = subprocess.DEVNULL,
    stdout: Any = subprocess.PIPE,
    stderr: Any = subprocess.PIPE,
    **variables: str,
) -> subprocess.Popen[bytes]:
    """Start ``thresher ARGUMENTS`` in `folder`, or Python `code` that changes thresher and runs it.

    Through Python if it may read the given variables.
    """
    begin = forked if variables.keys() <= {"THRESHER_CACHE_DIR"} else started
    streams: Any = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
    return begin([*map(str, arguments)], code, cwd=folder, env=environment(folder, **variables), **streams)


def run(*arguments: object, folder: Path, **options: Any) -> tuple[int, str, str]:
    """Status, output and errors of ``thresher ARGUMENTS``, without the messages of a first run."""
    with start(*arguments, folder=folder, **options) as process:
        out, err = process.communicate(timeout=300)
    return process.returncode, (out or b"").decode(), said(err or b"")


def said(err: bytes, *known: str) -> str:
    """Standard error without the messages of a first run.

    The warning about several passes without a hold-out is left out too, and lines with `known` words.
    """
    lines = err.decode(errors="replace").splitlines(keepends=True)
    return "".join(line for line in lines if not any(words in line for words in (COMPILING, *known)))
