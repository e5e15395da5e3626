"""Parsing svmlight text without learning: thresher on one and two threads, plain C."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import measure, report
from benchmarks.measure import Sample, timed
from benchmarks.report import Goal
from benchmarks.setting import Setting
from thresher.data import open_source
from thresher.data.files.blocks import BLOCK_BYTES, BlockReader, TextBuffer
from thresher.data.formats.choosing import module_of
from thresher.data.labels import DOMAINS
from thresher.data.layout import Layout
from thresher.data.sources.reader import Arenas, Reading

C_PARSER, ALONE = "C parser, text in memory", "thresher, parser only"
ONE, TWO = "thresher, whole source, 1 thread", "thresher, whole source, 2 threads"


def source_pass(path: Path, threads: int, layout: Layout | None = None) -> None:
    """Read and parse a file as in training, but drop every chunk."""
    for _ in open_source(path, threads=threads, layout=layout).chunks():
        pass


def parser_alone(path: Path, layout: Layout) -> Sample:
    """Time the parser only, excluding reading."""
    parser = module_of(layout.format).parser(layout, Reading(DOMAINS["binary"], "fail", Arenas(4)))
    blocks = BlockReader([str(path)])
    buffer, wall, cpu = TextBuffer(BLOCK_BYTES), 0.0, 0.0
    while (block := blocks.fill(buffer)) is not None:
        started = time.perf_counter(), time.process_time()
        parser.parse(block)
        wall, cpu = wall + time.perf_counter() - started[0], cpu + time.process_time() - started[1]
    blocks.close()
    return Sample(wall, cpu)


def run(setting: Setting) -> list[Goal]:
    """Measure, print and check the goals. A first, unmeasured pass brings the text into the page cache."""
    path, size = setting.rcv1like.train, setting.rcv1like.megabytes
    contenders: dict[str, Callable[[], Sample]] = {}
    if setting.compiler:
        contenders[C_PARSER] = lambda: measure.reference("parse", path, 3)
    contenders[ALONE] = lambda: parser_alone(path, Layout("svmlight"))
    contenders[ONE] = lambda: timed(lambda: source_pass(path, 1))
    contenders[TWO] = lambda: timed(lambda: source_pass(path, 2))
    found = setting.in_turn(contenders, warm=(ALONE, TWO))
    report.times(f"parsing {size:.0f} MB of svmlight text", found, C_PARSER, {"MB/s": size})
    alone, alone_text = report.ratio(found, C_PARSER, ALONE)
    source, source_text = report.ratio(found, C_PARSER, ONE)
    twice, twice_text = report.ratio(found, ONE, TWO)
    return [
        Goal(
            "parser only, one thread : C parser",
            ">= 0.8",
            alone_text,
            alone >= 0.8 if alone == alone else None,
        ),
        Goal(
            "whole source, one thread : C parser",
            ">= 0.8",
            source_text,
            source >= 0.8 if source == source else None,
        ),
        Goal("whole source, two threads : one", ">= 1.7", twice_text, twice >= 1.7),
    ]
