"""Law 10, machines change nothing: other processes give the chunks of this one, whatever happens to them."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cluster.fake_ray import FakeRay, readers_of
from tests.data.reference import same
from tests.data.samples import PACKERS, Sample
from tests.data.test_laws_of_sources import ALL, Pass, alike, opened, read, written
from thresher.cluster import reader
from thresher.cluster import readers as driving
from thresher.cluster.packing import Packed, unpack
from thresher.data import Chunk, DataError, Report
from thresher.data.chunk import StreamPosition
from thresher.data.formats.tables import arrow_files
from thresher.data.sources import reader as reading

SAMPLED = pytest.mark.parametrize("name", ALL)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch, as_commands_say: None) -> None:
    """The small files of these tests are cut into many pieces, sent in many batches."""
    monkeypatch.setattr(arrow_files, "BATCH", 29)
    monkeypatch.setattr(reading, "PIECE_BYTES", 2000)
    monkeypatch.setattr(reading, "PIECE_ROWS", 60)
    monkeypatch.setattr(reader, "BATCH_BYTES", 1)
    monkeypatch.setattr(driving, "POLL", 0.01)
    monkeypatch.setattr(driving, "REPORTED", 1000)


def elsewhere(sample: Sample, data: Any, ray: FakeRay, on_error: str = "skip", count: int = 2) -> Any:
    source = opened(sample, data, on_error, threads=1)
    source.readers = readers_of(ray, count)
    return source


@SAMPLED
def test_readers_give_the_chunks_and_reports_of_one_process(tmp_path: Path, name: str) -> None:
    sample = ALL[name]
    paths = [written(sample, tmp_path / f"{k}{sample.ending}", sample.mixed(50, 20, k)[0]) for k in range(2)]
    if sample.packed:
        paths[1].write_bytes(PACKERS["gzip"](paths[1].read_bytes()))
    here, there = tmp_path / "here", tmp_path / "there"
    plain = read(opened(sample, paths, f"quarantine={here}", threads=1))
    ray = FakeRay()
    source = elsewhere(sample, paths, ray, f"quarantine={there}")
    assert alike(read(source), plain)
    assert there.read_bytes() == here.read_bytes()
    assert source.position_bytes == source.total_bytes == sum(map(os.path.getsize, paths))
    assert alike(read(source), plain), "a second pass, by the same readers"
    assert len(ray.actors) == 2


@pytest.mark.parametrize("far", [True, False])
def test_dictionaries_are_sent_to_other_machines_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, far: bool
) -> None:
    sample = ALL["csv"]
    path = written(sample, tmp_path / f"a{sample.ending}", sample.good(300, 1))
    if far:
        monkeypatch.setattr(driving, "machine", lambda: "another")
    found = list[Packed]()

    def unpacked(packed: Packed, arenas: Any) -> Any:
        found.append(packed)
        return unpack(packed, arenas)

    monkeypatch.setattr(driving, "unpack", unpacked)
    assert alike(read(elsewhere(sample, path, FakeRay())), read(opened(sample, path, threads=1)))
    hashed = [one for one in found if one.keys.dtype == np.uint64 or len(one.cuts)]
    assert hashed
    assert any(len(one.cuts) for one in hashed) == far


@SAMPLED
def test_any_chunk_can_be_continued_from(tmp_path: Path, name: str) -> None:
    sample = ALL[name]
    paths = [written(sample, tmp_path / f"{k}{sample.ending}", sample.mixed(40, 9, k)[0]) for k in range(2)]
    whole = read(opened(sample, paths, threads=1))
    for k in range(0, len(whole.chunks), 4):
        again = elsewhere(sample, paths, FakeRay())
        again.report = Report.from_dict(whole.reports[k])
        rest = read(again, whole.chunks[k].after)
        assert alike(rest, Pass(whole.chunks[k + 1 :], whole.reports[k + 1 :]))


@pytest.mark.parametrize("name", ["svmlight", "csv", "parquet", "arrow file"])
@pytest.mark.parametrize("fault", ["dies in a batch", "dies at once", "batch lost", "all die"])
def test_what_is_lost_is_read_again(tmp_path: Path, name: str, fault: str) -> None:
    sample, calls = ALL[name], dict[int, int]()

    def dies(number: int, call: str) -> bool:
        calls[number] = calls.get(number, 0) + 1
        if fault == "all die":
            return call == "next"
        when = {"dies in a batch": 6, "dies at once": 2}.get(fault)
        return number in (0, 1) and calls[number] == when

    paths = [written(sample, tmp_path / f"{k}{sample.ending}", sample.mixed(150, 30, k)[0]) for k in range(2)]
    plain = read(opened(sample, paths, threads=1))
    ray = FakeRay(dies, lambda number: fault == "batch lost" and number % 3 == 0)
    said = list[str]()
    source = opened(sample, paths, threads=1)
    source.readers = readers_of(ray, said=said)
    assert alike(read(source), plain)
    assert len(ray.actors) > 2 or fault == "batch lost"
    assert said
    assert all(line.endswith("was lost; this process reads the rest of its piece") for line in said)


def test_the_learner_reads_alone_while_no_reader_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driving, "PATIENCE", 0.1)
    sample = ALL["svmlight"]
    paths = [written(sample, tmp_path / f"{k}.svm", sample.good(150, k)) for k in range(4)]
    plain = read(opened(sample, paths, threads=1))
    full, said = True, list[str]()
    ray = FakeRay(hangs=lambda number: full)
    source = opened(sample, paths, threads=1)
    source.readers = readers = readers_of(ray, said=said)
    readers.prepare()
    assert alike(read(source), plain)
    assert alike(read(source), plain), "a second pass"
    assert said == ["no worker takes the next piece; this process reads until one does"]
    full = False
    assert alike(read(source), plain)
    assert not readers.alone


def test_a_reader_never_replaced_holds_nothing_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driving, "PATIENCE", 0.1)
    sample = ALL["svmlight"]
    paths = [written(sample, tmp_path / f"{k}.svm", sample.good(150, k)) for k in range(4)]
    ray = FakeRay(lambda number, call: number == 1 and call == "next", hangs=lambda number: number > 1)
    source, said = opened(sample, paths, threads=1), list[str]()
    source.readers = readers_of(ray, said=said)
    assert alike(read(source), read(opened(sample, paths, threads=1)))
    assert len(said) == 1


@SAMPLED
def test_a_bad_line_ends_the_run_at_its_place(tmp_path: Path, name: str) -> None:
    sample = ALL[name]
    (what, bad), *_ = sample.bad.items()
    records = [*sample.good(150, 1), bad, *sample.good(30, 2)]
    path = written(sample, tmp_path / f"bad{sample.ending}", records)
    messages = []
    for source in (opened(sample, path, "fail", threads=1), elsewhere(sample, path, FakeRay(), "fail")):
        taken = list[Chunk]()
        with pytest.raises(DataError) as caught:
            taken.extend(source.chunks())
        messages.append((str(caught.value), len(taken), source.report.as_dict()))
    assert messages[0] == messages[1], what


def test_a_file_that_goes_or_changes_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = ALL["svmlight"]
    monkeypatch.chdir(tmp_path)
    paths = [written(sample, tmp_path / f"{k}.svm", sample.good(200, k)) for k in range(3)]
    names = [path.name for path in paths]
    for change, message in (
        (paths[2].unlink, "2.svm: cannot be (found on|read)"),
        (lambda: paths[2].write_bytes(paths[0].read_bytes()), "2.svm: changed while it was read"),
    ):
        source = elsewhere(sample, names, FakeRay(), count=1)
        chunks = source.chunks()
        next(chunks)
        change()
        with pytest.raises(DataError, match="^" + message):
            list(chunks)
        written(sample, paths[2], sample.good(200, 2))


def test_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = ALL["svmlight"]
    path = written(sample, tmp_path / "a.svm", sample.good(20, 1))
    found = reader.versions()
    monkeypatch.setattr(driving, "versions", lambda: {**found, "numpy": "1.26.0"})
    with pytest.raises(DataError, match=r"^a worker on .* has numpy .*, the learner has 1.26.0: install"):
        list(elsewhere(sample, path, FakeRay()).chunks())


def test_an_abandoned_pass_stops_its_readers(tmp_path: Path) -> None:
    sample, ray = ALL["svmlight"], FakeRay()
    path = written(sample, tmp_path / "a.svm", sample.good(3000, 1))
    chunks = elsewhere(sample, path, ray).chunks()
    first = next(chunks)
    chunks.close()
    assert all(actor.dead for actor in ray.actors)
    assert same(first, next(opened(sample, path).chunks()))


@pytest.mark.parametrize("name", ["svmlight", "parquet"])
def test_the_content_of_files_is_known_to_checkpoints(tmp_path: Path, name: str) -> None:
    sample = ALL[name]
    paths = [written(sample, tmp_path / f"{k}{sample.ending}", sample.good(200, k)) for k in range(2)]
    here, there = opened(sample, paths, threads=1), elsewhere(sample, paths, FakeRay())
    here.keep_hash = there.keep_hash = True
    partly = [source.content for source in (here,) for _ in [next(source.chunks())]]
    assert len(read(there).chunks) == len(read(here).chunks)
    assert there.content == here.content
    assert there.fingerprint() == here.fingerprint()
    again = elsewhere(sample, paths, FakeRay())
    again.expect(partly[0], whole=False)
    assert len(read(again).chunks) == len(read(here).chunks), "resumed from what one process had read"
    written(sample, paths[0], sample.good(200, 7))
    again.expect(partly[0], whole=False)
    with pytest.raises(DataError, match=r"0.*: changed since it was first read"):
        read(again)


def test_pieces_cover_a_file_without_gaps(tmp_path: Path) -> None:
    sample = ALL["svmlight"]
    path = written(sample, tmp_path / "a.svm", sample.good(400, 1))
    source = opened(sample, path)
    found = [*reading.pieces_of(source, StreamPosition(0, 0, 0))]
    assert len(found) > 3
    assert [one.start for one in found[1:]] == [one.stop for one in found[:-1]]
    assert found[0].start == 0
    assert found[-1].stop is None
    path.write_bytes(PACKERS["gzip"](path.read_bytes()))
    assert [*reading.pieces_of(opened(sample, path), StreamPosition(0, 0, 0))] == [reading.Piece(0, 0, None)]
