"""Python code in separate processes with their own cache folder."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.forks import forked

ROOT = Path(__file__).parent.parent
PIPES: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


# no bytecode: an edit within a second of the last one must be noticed


def start_code(code: str, cache: Path, *places: Path) -> subprocess.Popen[str]:
    """Start a process that runs `code`, with `places` in its module path."""
    own = {**os.environ, "THRESHER_CACHE_DIR": str(cache)}
    found = f"import sys\nsys.dont_write_bytecode = True\nsys.path[:0] = {[*map(str, places)]}\n"
    return forked([], found + code, cwd=ROOT, env=own, stdin=subprocess.DEVNULL, **PIPES)


def printed(process: subprocess.Popen[str]) -> Any:
    """The JSON in the last line of output of a process that ended successfully."""
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return json.loads(out.splitlines()[-1])


def run(code: str, cache: Path, *places: Path) -> Any:
    return printed(start_code(code, cache, *places))
