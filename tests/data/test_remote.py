"""Remote files yield the same examples as local ones, whatever happens to the connection."""

import gzip
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.data.faraway import Faraway, faraway
from tests.data.forms import some_lines, some_text
from tests.data.reference import rows_of
from tests.data.tables import WRITERS
from tests.data.test_tables import LAYOUT, some_rows
from thresher.data import DataError, open_source
from thresher.data.cache import CacheWriter, open_cache
from thresher.data.files import remote
from thresher.data.layout import Layout

TEXTS = {
    "data.svm": some_text(300),
    "data.svm.gz": gzip.compress(some_text(300)),
    "data.svm.zst": pa.compress(some_text(300), "zstd", asbytes=True),
    "data.vw": some_lines("vw", 300, 0),
}
NAMES = (*TEXTS, *WRITERS)
EVERY = pytest.mark.parametrize("name", NAMES)
Far = tuple[Faraway, list[float]]


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Far:
    return faraway(tmp_path, monkeypatch)


def written(folder: Path, name: str) -> Path:
    if name in TEXTS:
        (folder / name).write_bytes(TEXTS[name])
    else:
        WRITERS[name](some_rows(300), folder / name)
    return folder / name


def read(name: str, **options: Any) -> tuple[list[Any], Any]:
    layout = Layout() if ".svm" in name or ".vw" in name else LAYOUT
    source = open_source(name, layout=layout, on_error="skip", **options)
    found = [(chunk.place, chunk.after, rows_of(chunk)) for chunk in source.chunks()]
    counts = source.report.as_dict()
    noticed = [(what, where.rpartition("/")[2], rest) for what, _, where, rest in counts.get("noticed", ())]
    counts["noticed"] = noticed
    return found, (counts.pop("first_bad") and counts, source.total_bytes, source.position_bytes)


@EVERY
def test_the_same_examples_through_a_bad_connection(tmp_path: Path, far: Far, name: str) -> None:
    system, slept = far
    here = read(str(written(tmp_path, name)))
    assert here[0]
    assert read(f"far://host/{name}") == here
    assert slept == []
    system.fails, system.most = lambda k: k % 3 != 2, 700
    assert read(f"far://host/{name}", threads=2) == here
    assert set(slept) == {0.25, 0.5}
    assert len(slept) >= 4


@EVERY
def test_a_connection_that_stays_down(tmp_path: Path, far: Far, name: str) -> None:
    system, slept = far
    written(tmp_path, name)
    system.fails = lambda k: k >= 3
    system.most = 500
    with pytest.raises(DataError) as raised:
        read(f"far://host/{name}")
    assert str(raised.value).startswith(f"far://host/{name}: cannot be read")
    assert "failed 6 times, last with: connection reset by peer" in str(raised.value)
    assert slept[:5] == [0.25, 0.5, 1.0, 2.0, 4.0]


@EVERY
def test_fewer_bytes_than_the_file_has_are_an_error(tmp_path: Path, far: Far, name: str) -> None:
    system, _ = far
    written(tmp_path, name)
    system.lacks = 10
    with pytest.raises(DataError, match=rf"^far://host/{name}: .*ends at byte \d+ of \d+"):
        read(f"far://host/{name}")


@pytest.mark.parametrize("name", ["data.svm.gz", "data.svm.zst", "data.parquet", "data.arrow", "data.arrows"])
def test_a_file_that_was_cut_off_is_an_error(tmp_path: Path, far: Far, name: str) -> None:
    path = written(tmp_path, name)
    whole = path.read_bytes()
    for lost in (1, 30, len(whole) // 2):
        path.write_bytes(whole[: len(whole) - lost])
        with pytest.raises(DataError, match=rf"^far://host/{name}: "):
            read(f"far://host/{name}")


def test_a_file_that_changes_while_it_is_read(tmp_path: Path, far: Far) -> None:
    system, _ = far
    written(tmp_path, "data.svm")
    system.fails, system.most = lambda k: k == 4, 500

    def change() -> None:
        system.modified = 1_800_000_000_000_000_000

    system.after_failing = change
    with pytest.raises(DataError, match=r"far://host/data.svm: changed while it was read"):
        read("far://host/data.svm")


def test_patterns(tmp_path: Path, far: Far) -> None:
    for name in ("b/2.svm", "b/1.svm", "b/c/3.svm", "b/.4.svm", "b/5.vw", "b/6 x.svm"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1 1:1\n")

    def names(*patterns: str) -> list[str]:
        return [name.removeprefix("far://host/") for name in open_source(patterns).names]

    assert names("far://host/b/*.svm") == ["b/1.svm", "b/2.svm", "b/6 x.svm"]
    assert names("far://host/b/[13].svm", "far://host/b/2.svm") == ["b/1.svm", "b/2.svm"]
    assert names("far://host/**/*.svm") == ["b/1.svm", "b/2.svm", "b/6 x.svm", "b/c/3.svm"]
    assert names("far://host/*/c/*") == ["b/c/3.svm"]
    assert names("far://host/b/*.svm?region=x") == [f"b/{k}.svm?region=x" for k in ("1", "2", "6 x")]
    assert sum(len(chunk) for chunk in open_source("far://host/b/*.svm").chunks()) == 3
    for wrong, reason in {
        "far://host/b/9*": "no file matches",
        "far://host/b/9.svm": "no such file",
        "far://host/b": "a directory; give its files, for example far://host/b/\\*",
        "far://*/b": "cannot be a pattern",
    }.items():
        with pytest.raises(DataError, match=reason):
            open_source(wrong)
    (tmp_path / "b/1.svm").write_text("")
    with pytest.raises(DataError, match=r"far://host/b/1.svm: the file is empty"):
        open_source("far://host/b/*")


def test_urls_of_local_files(tmp_path: Path) -> None:
    (tmp_path / "a b.svm").write_text("1 1:1\n")
    source = open_source(f"file://{tmp_path}/a%20b.svm")
    assert source.names == [str(tmp_path / "a b.svm")]
    assert sum(len(chunk) for chunk in source.chunks()) == 1


class _Serving(BaseHTTPRequestHandler):
    """Serves the files of the folder `root`, whole or in ranges; every fourth request for bytes fails."""

    root: Path
    asked = 0

    def do_HEAD(self) -> None:
        self._answer(False)

    def do_GET(self) -> None:
        type(self).asked += 1
        if self.asked % 4 == 0:
            self.send_error(503)
        else:
            self._answer(True)

    def _answer(self, with_body: bool) -> None:
        path = self.root / self.path.lstrip("/").partition("?")[0]
        if not path.exists():
            self.send_error(404)
            return
        content = path.read_bytes()
        first, last = 0, len(content) - 1
        if wanted := self.headers.get("Range"):
            begin, _, end = wanted.removeprefix("bytes=").partition("-")
            first, last = int(begin), min(int(end or last), last)
        self.send_response(206 if wanted else 200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
        self.send_header("Content-Length", str(last - first + 1))
        self.end_headers()
        if with_body:
            self.wfile.write(content[first : last + 1])

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    serving = ThreadingHTTPServer(("127.0.0.1", 0), type("Here", (_Serving,), {"root": tmp_path}))
    thread = threading.Thread(target=serving.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{serving.server_address[1]}"
    serving.shutdown()
    thread.join()
    serving.server_close()


def test_http(tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "DELAY", 0.001)
    for name in ("data.svm.gz", "data.parquet"):
        here, _ = read(str(written(tmp_path, name)))
        for _ in range(2):
            assert read(f"{server}/{name}")[0] == here
    with pytest.raises(DataError, match=r"none.svm: no such file"):
        open_source(f"{server}/none.svm")


@pytest.mark.parametrize("there", [True, False], ids=["fsspec", "without"])
def test_a_scheme_that_nobody_knows(there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not there:
        monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(DataError, match=r"nowhere://host/a.svm: .*for a stream, .*module"):
        open_source("nowhere://host/a.svm")


def test_content_is_known_by_size_and_time(tmp_path: Path, far: Far, monkeypatch: pytest.MonkeyPatch) -> None:
    system, _ = far
    monkeypatch.setenv("THRESHER_CACHE_DIR", str(tmp_path / "cache"))
    written(tmp_path, "data.svm")

    def source() -> Any:
        return open_source("far://host/data.svm", on_error="skip")

    first = source()
    first.keep_hash = True
    writer = CacheWriter(first)
    for chunk in first.chunks():
        writer.write(chunk)
    assert writer.commit() is not None
    before = system.reads
    assert first.fingerprint() == source().fingerprint()
    cached = open_cache(source())
    assert [rows_of(c) for c in cached.chunks()] == [rows_of(c) for c in source().chunks()]
    assert system.reads > before
    before = system.reads
    system.modified = 1_600_000_000_000_000_000
    assert open_cache(source()) is None
    assert source().fingerprint() != first.fingerprint()
    assert system.reads == before  # no read was needed
    system.modified = None
    assert source().fingerprint() == open_source(tmp_path / "data.svm").fingerprint()


def test_delays_double() -> None:
    assert [remote.DELAY * 2**k for k in range(remote.TRIES - 1)] == [0.25, 0.5, 1, 2, 4]
