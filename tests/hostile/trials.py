"""Helpers for tests under hostile conditions: data, process limits, what a failure must look like."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from tests import commands
from tests.commands import environment
from tests.forks import forked
from tests.served import run_here
from thresher.data import DataError, open_source

Limit = str | Callable[[], None]
"""Code that a process runs before the program; or a function, for a process that no server forks."""
# not ru_maxrss, which a process inherits from its parent
_PEAK = """
with open("/proc/self/status") as file:
    (peak,) = (line.split()[1] for line in file if line.startswith("VmHWM:"))
print("peak", int(peak) >> 10)
"""
_LEFT = "is left from an interrupted run"


def svmlight(path: Path, rows: int, features: int = 50, seed: int = 0) -> Path:
    """Rows of eight features, with labels determined by the first feature."""
    random = np.random.default_rng(seed)
    keys = np.sort(random.integers(1, features + 1, (rows, 8)), axis=1)
    lines = (
        f"{1 if row[0] % 2 else -1} " + " ".join(f"{key}:1" for key in dict.fromkeys(row)) + "\n"
        for row in keys.tolist()
    )
    path.write_text("".join(lines))
    return path


def file_size(most: int) -> Limit:
    """Limit the size of files: a write beyond it fails as on a full disk."""
    return f"""import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}))"""


def open_files(most: int) -> Limit:
    return f"import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, ({most}, {most}))"


def peak_memory(code: str, folder: Path, most: int) -> str:
    """The output of Python `code` in a process that must not use more than `most` megabytes."""
    code += _PEAK
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment(folder), capture_output=True, timeout=600
    )
    out, _, peak = ran.stdout.decode().rpartition("peak ")
    assert ran.returncode == 0, ran.stderr.decode()
    assert int(peak) < most
    return out


def thresher(
    *words: object,
    folder: Path,
    limit: Limit | None = None,
    prefix: Sequence[str] = (),
    unset: Sequence[str] = (),
    timeout: float = 300,
    stdout: Any = subprocess.PIPE,
    world: Mapping[str, str] | None = None,
    **variables: str,
) -> tuple[int, str, str]:
    """Status, standard output and standard error of the program, run with a `limit` or by another command."""
    if isinstance(limit or "", str) and not (prefix or unset or world or variables):
        streams: Any = {"stdin": subprocess.DEVNULL, "stdout": stdout, "stderr": subprocess.PIPE}
        code = f"{limit}\n{commands.RUN}" if limit else ""
        with forked([*map(str, words)], code, cwd=folder, env=environment(folder), **streams) as process:
            out, err = process.communicate(timeout=timeout)
        return process.returncode, (out or b"").decode(errors="replace"), said(err)
    known = {
        name: value
        for name, value in environment(folder, **variables, **(world or {})).items()
        if name not in unset
    }
    ran = subprocess.run(
        [*prefix, sys.executable, "-m", "thresher", *map(str, words)],
        cwd=folder,
        env=known,
        preexec_fn=partial(exec, limit, {}) if isinstance(limit, str) else limit,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=timeout,
    )
    return ran.returncode, (ran.stdout or b"").decode(errors="replace"), said(ran.stderr)


def here(*words: object, folder: Path) -> tuple[int, str, str]:
    """The same of the program in this process, where its process is not what is tested."""
    with open(os.devnull) as nothing, TemporaryFile() as out, TemporaryFile() as err:
        streams = [os.dup(file.fileno()) for file in (nothing, out, err)]
        status = run_here(streams, [*map(str, words)], str(folder), environment(folder))
        for stream in streams:
            os.close(stream)
        printed = [(file.seek(0), file.read())[1] for file in (out, err)]
    return status, printed[0].decode(errors="replace"), said(printed[1])


def said(err: bytes) -> str:
    """The output also without the messages of a run that finds a checkpoint."""
    return commands.said(err, _LEFT)


def failed(ran: tuple[int, str, str], *words: str, status: int = 1) -> None:
    """It must have failed with a one-line error that contains these words."""
    assert ran[0] == status, ran
    assert ran[2].startswith("thresher: "), ran
    assert ran[2].count("\n") == 1, ran
    for word in words:
        assert word in ran[2], ran


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "cache")


def outcome(path: Path, **options: Any) -> int | str:
    """Rows learned and skipped, or the error, which must be one line that names the file."""
    try:
        source = open_source(path, **{"on_error": "skip", "threads": 1, **options})
        rows = sum(len(chunk) for chunk in source.chunks())
    except DataError as error:
        told = str(error)
    else:
        return rows + source.report.skipped
    assert str(path) in told
    assert "\n" not in told
    return told
