"""Code that comes with thresher is used where it fits, needs no compiler, and computes the same bits."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from thresher.engine.atomic import cache_folder
from thresher.engine.compile import machine

SHIPPED = """
import json, os, sys
from functools import partial
from pathlib import Path
from thresher.engine.compile import codecache, machine

codecache.SHIPPED = Path("shipped")
codecache.SHIPPED.mkdir(exist_ok=True)
if sys.argv[1] == "ship":
    codecache.keep = partial(codecache.keep, shipped=True)
exec(sys.argv[2])
"""
LEARN = """
import numpy as np
from thresher import Model

rows = np.random.default_rng(0).normal(size=(300, 15)).astype(np.float32)
model = Model()
model.learn(rows, np.arange(300) % 2)
print(json.dumps([model.predict(rows).tobytes().hex(), "numba" in sys.modules]))
"""
RESPOND = """
import numpy as np
from thresher import parts
from thresher.engine import kernels
kernels.respond(parts.make("loss", "logistic"), np.ones(1), np.empty(1))
print("null")
"""
FOUND = """
from unittest.mock import patch

import numpy as np
from thresher import parts
from thresher.engine import kernels

codecache.usable_folder = lambda: None
codecache.compiler = None  # any fits
loss = parts.make("loss", "logistic")
kind = machine.kind_of((loss, np.ones(1), np.ones(1)))

def is_found():
    for cached in (codecache.making, machine.processor):
        cached.cache_clear()
    return codecache.find(kernels.respond.function, kind) is not None

found = [is_found()]
settings = {"BOUNDSCHECK": "1", "OPT": "1", "CPU_NAME": "generic", "CPU_FEATURES": "+avx"}
for edit in (
    patch.object(type(loss), "link", lambda self, margin: margin),
    patch.object(sys.implementation, "cache_tag", "cpython-399"),
    patch.object(sys, "abiflags", "t"),
    patch.object(codecache, "SHIPPED", Path()),
    *(patch.dict(os.environ, {f"NUMBA_{name}": value}) for name, value in settings.items()),
):
    with edit:
        found.append(is_found())
(path,) = codecache.SHIPPED.iterdir()
path.chmod(0o666)  # who can write there can write to the sources beside it
found.append(is_found())
path.write_bytes(path.read_bytes()[:-9] + b"!" * 9)
print(json.dumps([*found, is_found()]))
"""
pytestmark = pytest.mark.skipif(not machine.runs_portable(), reason="the code is for other processors")
PORTABLE = {"NUMBA_CPU_NAME": machine.PORTABLE, "NUMBA_CPU_FEATURES": machine.ABILITIES}


def run(folder: Path, code: str, way: str = "", cache: str = "cache", **variables: str) -> Any:
    known = {**os.environ, "THRESHER_CACHE_DIR": str(folder / cache), **variables}
    words = [sys.executable, "-c", SHIPPED, way, code]
    done = subprocess.run(words, cwd=folder, env=known, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_what_is_shipped_computes_the_bits_of_code_compiled_here_without_the_compiler(tmp_path: Path) -> None:
    run(tmp_path, LEARN, "ship", "other", **PORTABLE)
    found, compiler = run(tmp_path, LEARN)
    assert not compiler
    assert not (tmp_path / "cache").exists(), "nothing was looked for or kept"
    (tmp_path / "shipped").rename(tmp_path / "gone")
    assert run(tmp_path, LEARN, THRESHER_CACHE_DIR=str(cache_folder()))[0] == found


def test_what_is_shipped_is_used_only_for_what_it_was_made_from(tmp_path: Path) -> None:
    run(tmp_path, RESPOND, "ship", **PORTABLE)
    assert run(tmp_path, FOUND) == [True, *[False] * 8, True, False]
