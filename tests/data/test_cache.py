"""The cache for later passes, with one process and with several."""

import gzip
import io
import os
import signal
import stat
import sys
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import BinaryIO

import pytest

from tests.commands import SAMPLE, own_cache, run, said
from tests.data.forms import some_text
from tests.data.reference import same, written
from thresher.cli.main import status_of
from thresher.data import (
    CacheWriter,
    Chunk,
    DataError,
    Report,
    open_cache,
    open_source,
)
from thresher.data.cache import CachedRows, CacheSource, CacheWarning, Note
from thresher.data.sources.parsed import TextSource
from thresher.data.sources.reader import Arenas


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("THRESHER_CACHE_DIR", str(own_cache(tmp_path / "home")))
    return tmp_path / "cache"


def source_of(path: object, on_error: str = "skip") -> TextSource:
    return open_source(path, on_error=on_error, block_bytes=700, threads=2)  # type: ignore[arg-type]


def filled(source: TextSource, folder: Path) -> tuple[CacheSource | None, list[Chunk]]:
    writer, chunks = CacheWriter(source, folder), []
    for chunk in source.chunks():
        writer.write(chunk)
        chunks.append(chunk)
    return writer.commit(), chunks


def read_once(source: TextSource, folder: Path) -> tuple[CacheSource | None, list[Chunk]]:
    found = open_cache(source, folder)
    return found, list((found or source).chunks())


def equal(a: list[Chunk], b: list[Chunk]) -> bool:
    return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("wide", [None, 0, 200])
def test_the_cache_gives_back_what_was_written(tmp_path: Path, folder: Path, wide: int | None) -> None:
    lines = some_text(400).split(b"\n")
    if wide is not None:
        lines[wide] = b"1 5:1 18446744073709551615:2"
    source = source_of(written(tmp_path, b"\n".join([*lines, b"# the end"])))
    cached, chunks = filled(source, folder)
    for _ in range(2):
        again, reports = [], []
        for chunk in cached.chunks():
            again.append(chunk)
            reports.append(cached.report.as_dict())
        assert equal(again, chunks)
        assert cached.report.as_dict() == source.report.as_dict()
    rows = CachedRows(cached.path, Arenas(1))
    kinds = [dict(one[:2] for one in rows.head(k)[0]["arrays"])["keys"] for k in range(rows.count)]
    assert kinds == ["<u4" if chunk.keys.max(initial=0) < 2**32 else "<u8" for chunk in chunks]
    assert ("<u8" in kinds) == (wide is not None)
    middle = len(chunks) // 2
    cached.report = Report.from_dict(reports[middle])
    assert equal(list(cached.chunks(chunks[middle].after)), chunks[middle + 1 :])
    assert cached.report.as_dict() == source.report.as_dict()
    assert [path.suffix for path in folder.iterdir()] == [".rows"]


def test_it_is_found_by_content_and_options(tmp_path: Path, folder: Path) -> None:
    text = some_text(100)
    source = source_of(written(tmp_path, text, "a"))
    assert open_cache(source, folder) is None
    cached, chunks = filled(source, folder)
    assert cached is not None
    found = open_cache(source_of(written(tmp_path, text, "renamed")), folder)
    assert equal(list(found.chunks()), chunks)
    other = written(tmp_path, text.replace(b"1", b"2", 1), "other")
    assert open_cache(source_of(other), folder) is None
    real = open_source(str(tmp_path / "a"), domain="real", on_error="skip", block_bytes=700)
    assert open_cache(real, folder) is None
    assert open_cache(source_of(str(tmp_path / "a"), "fail"), folder) is None
    assert open_cache(source_of([str(tmp_path / "a"), str(tmp_path / "a")]), folder) is None
    assert source.fingerprint() == source_of(str(tmp_path / "renamed")).fingerprint()
    assert source.fingerprint() != source_of(other).fingerprint()


def test_a_cache_is_one_file_in_the_cache_folder(tmp_path: Path) -> None:
    place = own_cache(tmp_path / "home") / "data"
    kept = [place / f"1-{'0a' * 8}.partial", place / "mine.partial"]
    left = place / f"2-{'0b' * 8}.partial"
    place.mkdir()
    place.chmod(0o700)
    for path in (*kept, left):
        path.touch()
    for path in (left, kept[1]):
        os.utime(path, (0, 0))
    source = source_of(written(tmp_path, some_text(50)))
    writer = CacheWriter(source)
    for chunk in source.chunks():
        writer.write(chunk)
    cached = writer.commit()
    assert cached is not None
    assert {*place.iterdir()} == {cached.path, *kept}, "what a killed process left is removed after a day"


@pytest.mark.parametrize("harm", ["flip", "count", "cut", "text", "empty"])
def test_a_damaged_cache_is_removed_and_the_text_read(tmp_path: Path, folder: Path, harm: str) -> None:
    path = written(tmp_path, some_text(400))
    cached, chunks = filled(source_of(path), folder)
    content = bytearray(cached.path.read_bytes())
    if harm == "flip":
        content[content.index(chunks[len(chunks) // 2].values.tobytes()) + 1] ^= 4
    elif harm == "count":
        content[content.rindex(b'"examples": ') + len('"examples": ')] ^= 1
    elif harm == "cut":
        del content[len(content) // 2 :]
    elif harm == "text":
        content[:] = b"no rows at all..." * 1000
    else:
        content.clear()
    os.replace(written(tmp_path, bytes(content), "damaged"), cached.path)
    source = source_of(path)
    with pytest.warns(CacheWarning, match="damaged"):
        found, got = read_once(source, folder)
    assert (found is not None) == (harm == "flip")
    assert equal(got, chunks)
    assert (found or source).report.as_dict() == cached.whole.as_dict()
    assert [*folder.iterdir()] == []
    assert equal(list((found or source).chunks()), chunks)


def test_a_full_disk_does_no_harm(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = CacheWriter.append

    def full(self: CacheWriter, file: BinaryIO, chunk: Chunk, note: Note) -> None:
        with open("/dev/full", "wb") as device:
            real(self, device, chunk, note)

    monkeypatch.setattr(CacheWriter, "append", full)
    with pytest.warns(CacheWarning, match="no cache was written") as caught:
        cached, chunks = filled(source_of(written(tmp_path, some_text(400))), folder)
    assert cached is None
    assert len(caught) == 1
    assert len(chunks) > 10
    assert [*folder.iterdir()] == []


def test_a_folder_that_cannot_be_made_does_no_harm(tmp_path: Path) -> None:
    written(tmp_path, b"a file", "file")
    with pytest.warns(CacheWarning, match="no cache was written"):
        cached, _ = filled(source_of(written(tmp_path, some_text(400))), tmp_path / "file" / "folder")
    assert cached is None


def test_an_abandoned_cache_leaves_nothing(tmp_path: Path, folder: Path) -> None:
    source = source_of(written(tmp_path, some_text(100)))
    writer = CacheWriter(source, folder)
    writer.write(next(source.chunks()))
    writer.abandon()
    assert list(folder.iterdir()) == []


def test_standard_input_can_be_cached(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = some_text(200)
    fake = io.TextIOWrapper(io.BufferedReader(io.BytesIO(text)))
    monkeypatch.setattr(sys, "stdin", fake)
    source = source_of("-")
    with pytest.raises(DataError, match="no fingerprint"):
        source.fingerprint()
    cached, chunks = filled(source, folder)
    assert equal(list(cached.chunks()), chunks)


def test_rejected_lines_of_an_earlier_process_are_written_again(tmp_path: Path, folder: Path) -> None:
    path, rejects = written(tmp_path, some_text(200)), tmp_path / "rejects"
    source = source_of(path, f"quarantine={rejects}")
    cached, _ = filled(source, folder)
    assert cached.whole.skipped > 0
    assert open_cache(source, folder) is not None
    assert open_cache(source_of(path, f"quarantine={rejects}"), folder) is None


def test_rejected_lines_of_an_earlier_run_do_not_stay(tmp_path: Path, folder: Path) -> None:
    bad, good, rejects = written(tmp_path, b"0 2:oops\n1 1:1\n"), tmp_path / "good", tmp_path / "rejects"
    good.write_text("1 1:1\n")
    [*source_of(bad, f"quarantine={rejects}").chunks()]
    assert rejects.read_text() == "0 2:oops\n"
    filled(source_of(good, f"quarantine={tmp_path / 'other'}"), folder)
    cached = open_cache(source_of(good, f"quarantine={rejects}"), folder)
    assert cached is not None
    assert rejects.read_text() == ""


def test_a_folder_that_others_can_write_to_is_neither_read_nor_written(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "train.svm"
    path.write_bytes(some_text(60))
    assert filled(source_of(path), folder)[0] is not None
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o777)
    before = sorted(folder.iterdir())
    assert open_cache(source_of(path), folder) is None
    with pytest.warns(CacheWarning, match="no cache was written: other users can write to"):
        assert filled(source_of(path), folder)[0] is None
    assert sorted(folder.iterdir()) == before
    folder.chmod(0o700)
    assert open_cache(source_of(path), folder) is not None


OPTIONS = ["--passes", "2", "--quiet"]
MOMENTS = {
    "a batch is half written": ("CacheWriter.append", 3),
    "the last batch is due": ("CacheWriter.commit", 1),
    "all is written and nothing synced": ("os.fsync", 1),
    "all is synced and not renamed": ("os.replace", 1),
}
KILLED = """
import os, signal, sys
from thresher.data.cache import CacheWriter

owner, name = sys.argv[1].split(".")
table = {"CacheWriter": CacheWriter, "os": os}[owner]
real, left = getattr(table, name), int(sys.argv[2])

def deadly(*given, **named):
    global left
    left -= os.path.isdir(os.path.join("cache", "data"))
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*given, **named)

setattr(table, name, deadly)
from thresher.cli.main import run
sys.argv[1:] = sys.argv[3:]
run()
"""
ROWS = gzip.decompress(SAMPLE.read_bytes()) * 3 + b"1 18446744073709551615:1\n"
"""Several blocks, with a late key that does not fit in 32 bits."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("whole")
    (folder / "rows.svm").write_bytes(ROWS)
    return trained(folder, "rows.svm", "--no-cache")


@pytest.fixture
def data(tmp_path: Path) -> str:
    (tmp_path / "rows.svm").write_bytes(ROWS)
    return "rows.svm"


def cached(folder: Path) -> list[str]:
    return sorted(path.suffix for path in (own_cache(folder) / "data").iterdir())


def trained(folder: Path, data: str, *options: str) -> bytes:
    with pytest.MonkeyPatch.context() as here, redirect_stderr(StringIO()) as err:
        here.setenv("THRESHER_CACHE_DIR", str(own_cache(folder)))
        here.chdir(folder)
        status = status_of(["train", data, "-m", "model", *OPTIONS, *options])
    assert (status, said(err.getvalue().encode())) == (0, "")
    return (folder / "model").read_bytes()


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_run_killed_while_it_writes_is_safe(moment: str, data: str, whole: bytes, tmp_path: Path) -> None:
    where, nth = MOMENTS[moment]
    words = [where, str(nth), "train", data, "-m", "killed", *OPTIONS]
    status, _, err = run(*words, folder=tmp_path, code=KILLED)
    assert status == -signal.SIGKILL, err
    assert not (tmp_path / "killed").exists()
    assert trained(tmp_path, data) == whole
    assert ".rows" in cached(tmp_path)
