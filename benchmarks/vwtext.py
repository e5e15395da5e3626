"""Parsing VW text without learning: ids, names and words, compared with a pass of Vowpal Wabbit.

Vowpal Wabbit has no command that only parses. Its parser is represented by the CPU time of a pass, in this
process, that tests a model without weights: parsing plus a lookup and a sum, without start-up or learning.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks import loads, peers, report
from benchmarks.measure import Sample, timed
from benchmarks.parsing import parser_alone, source_pass
from benchmarks.report import Goal
from benchmarks.setting import Setting
from thresher.data.layout import Layout

ALONE, INDICES, ONE, TWO = (
    *("thresher, parser only", "the same, --hash vw --bits 18"),
    *("thresher, whole source, 1 thread", "thresher, whole source, 2 threads"),
)
VW = "Vowpal Wabbit, test only"
SHAPES = {"ids": b" | ", "names in a namespace": b" |f ", "words": b" |f w"}


def run(setting: Setting) -> list[Goal]:
    """Measure each shape, print and check the goals."""
    return [reach for shape, bar in SHAPES.items() for reach in _shape(setting, shape, bar)]


def _shape(setting: Setting, shape: str, bar: bytes) -> list[Goal]:
    path = loads.vw_text(setting.rcv1like.train, bar=bar)
    size = path.stat().st_size / 1e6
    contenders: dict[str, Callable[[], Sample]] = {
        ALONE: partial(parser_alone, path, Layout("vw")),
        INDICES: partial(parser_alone, path, Layout("vw", hash="vw", bits=18)),
        ONE: lambda: timed(lambda: source_pass(path, 1)),
        TWO: lambda: timed(lambda: source_pass(path, 2)),
    }
    if peers.installed("vowpalwabbit"):
        contenders[VW] = lambda: timed(lambda: peers.vw_here(f"-t -d {path}"))
    found = setting.in_turn(contenders, warm=(ALONE, INDICES, TWO))
    report.times(f"parsing {size:.0f} MB of VW text: {shape}", found, ALONE, {"MB/s": size})
    if VW not in found:
        return []
    ours, own = found[ALONE].cpu, found[VW].cpu
    times = own / ours
    measured = f"{times:.1f} ({size / ours:.0f} and {size / own:.0f} MB/s)"
    return [Goal(f"VW text parser, {shape} : Vowpal Wabbit's", ">= 4", measured, times >= 4)]
