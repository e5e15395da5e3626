"""Timing: alternating contenders, medians and minima, whole processes with their peak memory."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from benchmarks import limits

LAUNCHER = Path(__file__).parent / "launcher.py"
UNKNOWN = float("nan")
BUSY, PAUSE = 0.15, 0.2


class Sample(NamedTuple):
    """One measurement."""

    wall: float
    """seconds"""
    cpu: float = UNKNOWN
    """seconds of all threads, user and system"""
    peak: float = UNKNOWN
    """MB of resident memory, of a process at its largest"""
    output: str = ""
    others: float = UNKNOWN
    """cores that other work kept busy"""


class Summary(NamedTuple):
    """A summary of the samples of one contender."""

    wall: float
    """median"""
    least: float
    cpu: float
    """median"""
    others: float
    """median"""
    peak: float
    """largest"""
    output: str
    """of the last sample"""


def timed(work: Callable[[], Any]) -> Sample:
    """Time `work` in this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Sample(time.perf_counter() - wall, time.process_time() - cpu)


def process(*command: str | Path | float) -> Sample:
    """Run a command and keep its standard output.

    A small launcher process starts it, since a process inherits the peak memory of its parent.

    Raises:
        RuntimeError: The command failed.
    """
    words = [sys.executable, "-S", "-E", str(LAUNCHER), *map(str, command)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words[4:])}: {done.stderr[-2000:]}")
    output, _, last = done.stdout.rstrip("\n").rpartition("\n")
    return Sample(**json.loads(last), output=output)


def python(*arguments: str | Path) -> Sample:
    """Run this interpreter as a `process`."""
    return process(sys.executable, *arguments)


def reference(name: str, *arguments: str | Path | float) -> Sample:
    """Run a plain C reference, which measures its own time."""
    found = limits.run(name, *arguments)
    return Sample(found["wall_s"], found.get("cpu_s", UNKNOWN))


class Clock:
    """CPU time of this process and its children, and of everything else, since the clock was created."""

    def __init__(self) -> None:
        self._start = self._now()

    @staticmethod
    def _now() -> tuple[float, float, float]:
        machine = psutil.cpu_times()
        # both clocks have a resolution of 10 ms, so short spans are only rough
        idle = machine.idle + getattr(machine, "iowait", 0.0)
        return time.perf_counter(), sum(os.times()[:4]), (os.cpu_count() or 1) * time.perf_counter() - idle

    def others(self) -> float:
        """Return the number of cores that other work has kept busy."""
        wall, own, busy = (b - a for a, b in zip(self._start, self._now(), strict=True))
        return max(0.0, (busy - own) / wall)


def in_turn(
    contenders: Mapping[str, Callable[[], Sample]],
    repeat: int,
    patience: float = 0.0,
    warm: Sequence[str] = (),
) -> dict[str, Summary]:
    """Run all contenders in turn, `repeat` times; those in `warm` run once before, unmeasured.

    A measurement is repeated if other work kept more than `BUSY` cores busy, until this call has spent
    `patience` seconds on repeating; after that, every measurement counts.
    """
    for name in warm:
        contenders[name]()
    samples: dict[str, list[Sample]] = {name: [] for name in contenders}
    for _ in range(repeat):
        for name, run in contenders.items():
            while True:
                started, clock = time.perf_counter(), Clock()
                sample = run()
                others = clock.others()
                if others <= BUSY or patience <= 0:
                    break
                time.sleep(PAUSE)
                patience -= time.perf_counter() - started
            samples[name].append(sample._replace(others=others))
    return {name: summary(taken) for name, taken in samples.items()}


def summary(samples: Sequence[Sample]) -> Summary:
    """Return medians and extremes."""
    walls = [sample.wall for sample in samples]
    cpu, others = (statistics.median(getattr(s, name) for s in samples) for name in ("cpu", "others"))
    peak = max(sample.peak for sample in samples)
    return Summary(statistics.median(walls), min(walls), cpu, others, peak, samples[-1].output)
