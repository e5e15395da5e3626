"""VW text to numbers, nothing done with them: ids, names, words; beside a pass of Vowpal Wabbit.

Vowpal Wabbit has no command that only parses. What stands for its parser is the processor time of a pass in
this process that tests a model without weights: beside parsing a lookup and a sum, no start-up, no learning.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks import loads, peers, report
from benchmarks.measure import Sample, timed
from benchmarks.parsing import parser_alone, source_pass
from benchmarks.report import Reach
from benchmarks.setting import Setting
from thresher.data.layout import Layout

ALONE, INDICES, ONE, TWO = (
    *("thresher, parser alone", "the same, --hash vw --bits 18"),
    *("thresher, whole source, 1 thread", "thresher, whole source, 2 threads"),
)
VW = "Vowpal Wabbit, test only"
SHAPES = {"ids": b" | ", "names in a namespace": b" |f ", "words": b" |f w"}


def run(setting: Setting) -> list[Reach]:
    """Measure, print, judge each shape."""
    return [reach for shape, bar in SHAPES.items() for reach in _shape(setting, shape, bar)]


def _shape(setting: Setting, shape: str, bar: bytes) -> list[Reach]:
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
    return [Reach(f"VW text parser alone, {shape} : Vowpal Wabbit's", ">= 4", measured, times >= 4)]
