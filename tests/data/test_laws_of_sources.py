"""Laws 5 and 9 for every format: storage and way of reading do not matter; nothing is lost silently."""

import gc
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import thresher
from tests.data.reference import rows_of, same
from tests.data.samples import PACKERS, SAMPLES, VARIANTS, Sample
from thresher.data import Chunk, DataError, Report, open_source
from thresher.data.files.streams import RawFile
from thresher.data.formats.listing import FORMATS
from thresher.data.formats.tables import arrow_files
from thresher.data.sources.reader import Pipeline

ALL = {**SAMPLES, **VARIANTS}
SAMPLED = pytest.mark.parametrize("name", ALL)
BLOCK, ROWS = 900, 29


@pytest.fixture(autouse=True)
def short_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes tables that are read in batches have several batches in these files."""
    monkeypatch.setattr(arrow_files, "BATCH", ROWS)


def test_every_format_has_a_sample() -> None:
    assert {sample.format for sample in SAMPLES.values()} == set(FORMATS)


def opened(sample: Sample, data: Any, on_error: str = "skip", threads: int = 2, block: int = BLOCK) -> Any:
    return open_source(data, layout=sample.layout, on_error=on_error, threads=threads, block_bytes=block)


def written(sample: Sample, path: Path, records: Sequence[Any]) -> Path:
    sample.write([*sample.head, *records], path)
    return path


class Pass(NamedTuple):
    chunks: list[Chunk]
    reports: list[dict[str, Any]]
    """their state when each chunk was yielded"""

    @property
    def rows(self) -> list[Any]:
        return [row for chunk in self.chunks for row in rows_of(chunk)]


def read(source: Any, start: Any = None) -> Pass:
    """A whole pass. The chunks outlive it, so their memory must not be reused."""
    found = Pass([], [])
    for chunk in source.chunks(start):
        found.chunks.append(chunk)
        found.reports.append(source.report.as_dict())
    found.reports.append(source.report.as_dict())
    return found


def alike(a: Pass, b: Pass) -> bool:
    pairs = zip(a.chunks, b.chunks, strict=True)
    return a.reports == b.reports and all(same(x, y) for x, y in pairs)


@SAMPLED
def test_threads_compression_and_passes_change_nothing(tmp_path: Path, name: str) -> None:
    sample = ALL[name]
    path = written(sample, tmp_path / f"data{sample.ending}", sample.mixed(130, 30, 1)[0])
    plain, text = read(opened(sample, path, threads=1)), path.read_bytes()
    assert len(plain.chunks) >= 5
    for k, pack in enumerate(PACKERS.values() if sample.packed else [bytes]):
        path.write_bytes(pack(text))
        threads = 3 if (k + len(name)) % 2 or pack is bytes else 1  # in the next format the other way round
        source = opened(sample, path, threads=threads)
        assert alike(read(source), plain), (k, threads)
        assert source.position_bytes == source.total_bytes == os.path.getsize(path)
    assert alike(read(source), plain)


@SAMPLED
def test_reading_leaves_nothing_to_the_collector(tmp_path: Path, name: str) -> None:
    """Blocks held by a reference cycle would pile up: the command line rarely collects cycles."""
    sample = ALL[name]
    source = opened(
        sample, written(sample, tmp_path / f"data{sample.ending}", sample.mixed(120, 30, 3)[0]), threads=1
    )
    assert read(source).chunks, "what is made once is made"
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            read(source)
        assert gc.collect() == 0
    finally:
        gc.enable()


@SAMPLED
def test_block_sizes_change_no_row(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = ALL[name]
    records, bad = sample.mixed(60, 30, 2)
    path = written(sample, tmp_path / f"data{sample.ending}", records)
    counts, found = set(), set()
    for block, threads in ((1, 3), (50, 1), (333, 3), (1 << 20, 1)):
        monkeypatch.setattr(arrow_files, "BATCH", max(1, block // 50))
        result = read(opened(sample, path, threads=threads, block=block))
        counts.add(len(result.chunks))
        found.add(repr((result.rows, without_hints(result.reports[-1]))))
        assert result.reports[-1]["examples"] == len(result.rows) == 60
        assert result.reports[-1]["skipped"] == len(bad)
    assert len(found) == 1
    assert len(counts) > 1


def without_hints(report: dict[str, Any]) -> dict[str, Any]:
    """Without advice about bad rows, which depends on the rows beside them."""
    bad = [[*one[:4], one[4].partition("; ")[0], one[5]] for one in report["first_bad"]]
    return {**report, "first_bad": bad}


def plain(report: dict[str, Any]) -> dict[str, Any]:
    """Without advice and names of files."""
    bad = [one[1:] for one in without_hints(report)["first_bad"]]
    return {**report, "first_bad": bad, "noticed": len(report.get("noticed", ()))}


@SAMPLED
def test_pauses_of_a_stream_change_no_row(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = ALL[name]
    path = written(sample, tmp_path / f"data{sample.ending}", sample.mixed(40, 20, 5)[0])
    source, text = opened(sample, path), path.read_bytes()
    if FORMATS[sample.format].batches:
        return
    expected, pipe = read(source), tmp_path / "pipe"
    os.mkfifo(pipe)
    monkeypatch.setattr(RawFile, "is_ready", lambda *_: False)
    monkeypatch.setattr(Pipeline, "has_enough", lambda _: False)
    readinto = RawFile.readinto
    for k, pack in enumerate([bytes, *PACKERS.values()]):
        most = (1, 7, 60)[k % 3]
        monkeypatch.setattr(
            RawFile, "readinto", lambda raw, view, n=most: readinto(raw, memoryview(view)[:n])
        )
        feeder = threading.Thread(target=pipe.write_bytes, args=(pack(text),))
        feeder.start()
        live = open_source(pipe, layout=source.layout, on_error="skip", threads=1 + k % 2, live=True)
        found = read(live)
        feeder.join()
        assert found.rows == expected.rows, (k, most)
        assert plain(found.reports[-1]) == plain(expected.reports[-1])
        assert len(found.chunks) > 20 or pack is not bytes


@SAMPLED
def test_any_chunk_can_be_gone_on_from(tmp_path: Path, name: str) -> None:
    sample, rejects = ALL[name], tmp_path / "rejects"
    mixtures = [sample.mixed(good, 20, k)[0] for k, good in enumerate((60, 50, 3))]
    paths = [written(sample, tmp_path / f"{k}{sample.ending}", mixtures[k]) for k in range(3)]
    if sample.packed:
        paths[1].write_bytes(PACKERS["gzip"](paths[1].read_bytes()))
    quarantine = f"quarantine={rejects}"
    whole = read(opened(sample, paths, quarantine))
    bad = rejects.read_bytes()
    files, last = [chunk.place and chunk.place.file for chunk in whole.chunks], len(whole.chunks) - 1
    ends = {k for k in range(last) if files[k] != files[k + 1]}
    for k, chunk in enumerate(whole.chunks):
        assert same(next(opened(sample, paths, threads=1).chunks(chunk.place)), chunk)
        if k % 3 and k != last and not {k, k - 1} & ends:
            continue  # a third, and those at the ends of files, are enough
        again = opened(sample, paths, quarantine, threads=1 + k % 3)
        again.report = Report.from_dict(whole.reports[k])
        rest = read(again, chunk.after)
        assert alike(rest, Pass(whole.chunks[k + 1 :], whole.reports[k + 1 :]))
        assert rejects.read_bytes() == bad
    assert len({chunk.place for chunk in whole.chunks}) == len(whole.chunks) > 4
    assert opened(sample, paths).fingerprint() == opened(sample, paths).fingerprint()


def weights_of(sample: Sample, path: Path, **options: Any) -> tuple[bytes, ...]:
    model = thresher.train(path, rule="ftrl:alpha=0.5,l1=0.01", layout=sample.layout, cache=False, **options)
    return (*(array.tobytes() for array in model.weights()), np.float64(model.intercept).tobytes())


@SAMPLED
@pytest.mark.filterwarnings("ignore:the labels -1 and 0", "ignore:.*not UTF-8")
def test_every_record_is_learned_or_reported(tmp_path: Path, name: str) -> None:
    sample = ALL[name]
    records, wrong = sample.mixed(90, 60, 2)
    path = written(sample, tmp_path / f"data{sample.ending}", records)
    clean = written(sample, tmp_path / f"clean{sample.ending}", sample.good(1, 0))
    good = [record for k, record in enumerate(records) if k not in wrong]
    written(sample, clean, good)
    for threads, block in ((1, BLOCK), (3, 77)):
        source = opened(sample, path, f"quarantine={tmp_path / 'bad'}", threads, block)
        found, report = read(source), source.report
        assert report.lines == len(sample.head) + len(records)
        assert report.lines == report.examples + report.blank + report.skipped
        assert (report.examples, report.skipped) == (90, len(wrong))
        assert [one.line for one in report.first_bad] == [len(sample.head) + k + 1 for k in wrong[:10]]
        assert all(one.file == str(path) for one in report.first_bad)
        rejected = sample.rejected([records[k] for k in wrong])
        assert (tmp_path / "bad").read_bytes() == b"".join(rejected)
        assert [one.raw + b"\n" for one in report.first_bad] == rejected[:10]
        assert found.rows == read(opened(sample, clean)).rows
    assert weights_of(sample, path, on_error="skip", threads=3) == weights_of(sample, clean, threads=1)


@SAMPLED
def test_each_kind_of_bad_record_ends_the_run_at_its_line(tmp_path: Path, name: str) -> None:
    sample = ALL[name]
    for k, (what, record) in enumerate(sample.bad.items()):
        records = [*sample.good(7, k), record, *sample.good(3, 99)]
        path = written(sample, tmp_path / f"{k}{sample.ending}", records)
        source, taken = opened(sample, path, "fail", block=90), list[Chunk]()
        line = len(sample.head) + 8
        with pytest.raises(DataError, match=rf"{path}:{line}:\d+: expected .+, found ."):
            taken.extend(source.chunks())
        assert sum(map(len, taken)) <= 7, what
        assert source.report.examples == sum(map(len, taken)), what
