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


# no bytecode: an edit within one second of the file's last must be seen


def start_code(code: str, cache: Path, *places: Path) -> subprocess.Popen[str]:
    """A process that runs `code`, which finds modules in `places` too."""
    own = {**os.environ, "THRESHER_CACHE_DIR": str(cache)}
    found = f"import sys\nsys.dont_write_bytecode = True\nsys.path[:0] = {[*map(str, places)]}\n"
    return forked([], found + code, cwd=ROOT, env=own, stdin=subprocess.DEVNULL, **PIPES)


def printed(process: subprocess.Popen[str]) -> Any:
    """What the process prints as JSON in its last line, once it has ended well."""
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return json.loads(out.splitlines()[-1])


def run(code: str, cache: Path, *places: Path) -> Any:
    """What `code` prints."""
    return printed(start_code(code, cache, *places))


def run_file(script: Path, cache: Path) -> Any:
    """What a script prints that Python itself runs."""
    own = {"PYTHONPATH": str(ROOT / "src"), "THRESHER_CACHE_DIR": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
    return printed(subprocess.Popen([sys.executable, str(script)], env={**os.environ, **own}, **PIPES))
