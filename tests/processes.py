"""Python code in processes of its own, with a cache folder of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.forks import forked

ROOT = Path(__file__).parent.parent
PIPES: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


def start(arguments: list[str], cache: Path, *places: Path) -> subprocess.Popen[str]:
    """A process of Python that finds modules in `places`."""
    path = os.pathsep.join(str(place) for place in (ROOT / "src", *places))
    # no bytecode: an edit within one second of the file's last must be seen
    own = {"PYTHONPATH": path, "THRESHER_CACHE_DIR": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.Popen([sys.executable, *arguments], env={**os.environ, **own}, **PIPES)


def start_code(code: str, cache: Path) -> subprocess.Popen[str]:
    """A process that runs `code` with all that it may import."""
    own = {**os.environ, "THRESHER_CACHE_DIR": str(cache)}
    return forked([], code, cwd=ROOT, env=own, stdin=subprocess.DEVNULL, **PIPES)


def printed(process: subprocess.Popen[str]) -> Any:
    """What the process prints as JSON in its last line, once it has ended well."""
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return json.loads(out.splitlines()[-1])


def run(code: str, cache: Path, *places: Path) -> Any:
    """What `code` prints."""
    return printed(start(["-c", code], cache, *places) if places else start_code(code, cache))


def run_file(script: Path, cache: Path) -> Any:
    """What a script prints."""
    return printed(start([str(script)], cache))
