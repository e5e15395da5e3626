"""Plain C references: the same work in C on this machine, as a yardstick for thresher's speed.

`parse`   svmlight text in memory to numbers        FILE [REPS]
`sgd`     one pass of truncated gradient in memory  TRAIN TEST ETA0 L1 [REPS]
`hash`    lines to 64-bit hashes, in memory         FILE [REPS]
`stream`  from the file to weights, one core        TRAIN ETA0 L1
`tsv`     clicks in memory to hashed keys           FILE [REPS]
`jsonl`   the same from JSON lines                  FILE [REPS]
`ftrl`    one pass of FTRL over clicks in memory,   FILE ALPHA L1 PART [REPS]
          in a growing table of hashed keys; PART is `look-up`, `learn` or `both`
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SOURCES = Path(__file__).parent
CACHE_DIR = SOURCES.parent.parent / "build" / "limits"
PROGRAMS = ("parse", "sgd", "hash", "stream", "tsv", "jsonl", "ftrl")


def build(cache_dir: Path = CACHE_DIR) -> dict[str, Path] | None:
    """Compile every reference that is older than its sources; return the programs by name.

    The compiler is the first of $CC, gcc and cc that exists; without one, return None.
    """
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CC", ""), "gcc", "cc"))), None)
    if compiler is None:
        return None
    cache_dir.mkdir(parents=True, exist_ok=True)
    newest = max(path.stat().st_mtime for path in SOURCES.glob("*.[ch]"))
    programs = {name: cache_dir / name for name in PROGRAMS}
    for name, program in programs.items():
        if not program.exists() or program.stat().st_mtime < newest:
            source = SOURCES / f"{name}.c"
            subprocess.run(
                [compiler, "-O3", "-march=native", "-o", str(program), str(source), "-lm"], check=True
            )
    return programs


def run(name: str, *args: str | Path | float, cache_dir: Path = CACHE_DIR) -> dict[str, float]:
    """Run a reference and return the figures that it prints, by name; `wall_s` is always among them.

    Raises:
        RuntimeError: There is no C compiler.
        subprocess.CalledProcessError: The program failed, for instance because its file is missing.
    """
    programs = build(cache_dir)
    if programs is None:
        raise RuntimeError("no C compiler found: install gcc, or name one in CC")
    command = [str(programs[name]), *map(str, args)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    pairs = (word.split("=", 1) for word in done.stdout.split()[1:])
    return {key: float(value) for key, value in pairs}


def sum_of(keys: NDArray[np.uint64]) -> int:
    """Return the sum of the highest 20 bits of all keys, which the references print."""
    return int((keys >> np.uint64(44)).sum())


def check(name: str, found: Mapping[str, float], **expected: float) -> None:
    """Compare figures of a reference with thresher's: both must have done the same work.

    Raises:
        RuntimeError: A figure differs by more than 1e-6.
    """
    for key, value in expected.items():
        if not abs(found[key] - value) <= 1e-6:
            raise RuntimeError(f"plain C ({name}) has {key} {found[key]:.15g}, thresher {value:.15g}")
