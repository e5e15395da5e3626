"""Hashing short names to 64-bit keys: thresher's MurmurHash3 and a loop in plain C."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import limits, measure, report
from benchmarks.measure import Sample, timed
from benchmarks.report import Goal
from benchmarks.setting import Setting
from thresher.data.features.murmur import murmur3_64, padded_murmur3_64
from thresher.data.text.words import address
from thresher.engine.compile.jit import kernel

LENGTHS = {"of 4 to 8 bytes": (4, 8), "of 1 to 24 bytes": (1, 24)}
NAMES, SEED = 1_000_000, 7
C_LOOP, ANYWHERE, IN_TEXT = "C loop", "thresher, name anywhere", "thresher, name in text"


@kernel
def _hash_each(text, starts, sizes, seed, padded, out):  # type: ignore[no-untyped-def]
    start = address(text)
    for i in range(out.size):
        if padded:
            out[i] = padded_murmur3_64(start, starts[i], sizes[i], seed)
        else:
            out[i] = murmur3_64(start, starts[i], sizes[i], seed)


def run(setting: Setting) -> list[Goal]:
    """Measure, print and check the goals."""
    return [reach for title, span in LENGTHS.items() for reach in _hashed(setting, title, *span)]


def _hashed(setting: Setting, title: str, shortest: int, longest: int) -> list[Goal]:
    rng = np.random.default_rng(3)
    sizes = rng.integers(shortest, longest + 1, NAMES)
    ends = np.cumsum(sizes + 1)
    text = rng.integers(ord("a"), ord("z") + 1, int(ends[-1]) + 64, dtype=np.uint8)
    text[ends - 1] = ord("\n")
    starts, out = ends - sizes - 1, np.zeros(NAMES, np.uint64)
    contenders: dict[str, Callable[[], Sample]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "names"
        text[: ends[-1]].tofile(path)
        if setting.compiler:
            contenders[C_LOOP] = lambda: measure.reference("hash", path, 5)
        for name in (ANYWHERE, IN_TEXT):
            given = text, starts, sizes, np.uint64(SEED), name == IN_TEXT, out
            contenders[name] = partial(timed, partial(_hash_each, *given))
        found = setting.in_turn(contenders, warm=(ANYWHERE, IN_TEXT))
        if setting.compiler:
            limits.check("hash", limits.run("hash", path, 1), sum=limits.sum_of(out))
    report.times(f"hashing {NAMES:,} names {title}", found, C_LOOP, {"ns/name": NAMES})
    goals = []
    for name in (ANYWHERE, IN_TEXT):
        slower, words = report.ratio(found, name, C_LOOP)
        good = slower <= 1.5 if slower == slower else None
        goals.append(Goal(f"hashing names {title}, {name.partition(', ')[2]} : C", "<= 1.5", words, good))
    return goals
