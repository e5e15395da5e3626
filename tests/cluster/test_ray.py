"""A real Ray: two nodes on this machine, readers and nodes that are killed, and the command line."""

import gzip
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import thresher
from tests.forks import forked
from thresher.cluster import packing, readers
from thresher.cluster.connection import Connection
from thresher.cluster.packing import Packed
from thresher.cluster.readers import RayReaders
from thresher.cluster.remote_readers import reading_elsewhere
from thresher.data.files import blocks
from thresher.data.sources import reader as reading
from thresher.data.sources.reader import Arenas, Parsed, current_readers

OPTIONS: dict[str, Any] = {"format": "tsv", "header": False, "label": "1", "bins": "2-4"}
FLAGS = ["--format", "tsv", "--no-header", "--label", "1", "--bins", "2-4"]
ROWS, FILES, PASSES = 4000, 4, 40


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder, random, names = tmp_path_factory.mktemp("data"), np.random.default_rng(3), []
    for k in range(FILES):
        numbers = random.integers(0, 50, (ROWS, 8))
        clicked = (numbers[:, 0] + numbers[:, 5] + random.integers(0, 60, ROWS) > 80).astype(int)
        lines = ["\t".join(map(str, (c, *row))) for c, row in zip(clicked, numbers, strict=True)]
        path = folder / f"{k}.tsv"
        text = "\n".join(lines).encode() + b"\n"
        path.write_bytes(gzip.compress(text) if k % 2 else text)
        names.append(str(path))
    return names


@pytest.fixture(scope="module")
def plain(data: list[str], tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The model that one process learns."""
    return trained(data, tmp_path_factory.mktemp("plain") / "model")


def trained(data: list[str], path: Path, **options: Any) -> bytes:
    thresher.train(data, **OPTIONS, **options).save(path)
    return path.read_bytes()


class Nodes:
    """Two nodes on this machine, to the first of which this process is connected."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        of_each: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 100 << 20}
        alone = {"no_monitor": True, "include_log_monitor": False}  # two processes that nothing here needs
        self._of_each = of_each
        self.cluster: Any = Cluster(initialize_head=True, head_node_args={**of_each, **alone})
        self.second = self.cluster.add_node(**of_each)
        self.connection = Connection(self.cluster.address, None)

    def lose_second(self) -> None:
        self.cluster.remove_node(self.second, allow_graceful=False)

    def add_second(self) -> None:
        self.second = self.cluster.add_node(**self._of_each)

    def close(self) -> None:
        self.connection.close()
        self.cluster.shutdown()


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    found = Nodes()
    yield found
    found.close()


@contextmanager
def disturbed(by: Callable[[], None], after: int) -> Iterator[None]:
    """Within the block, `by` is called once, when the learner has been given `after` blocks."""
    given = iter(range(after))

    def unpack(packed: Packed, arenas: Arenas) -> Parsed:
        if next(given, None) == after - 1:
            by()
        return packing.unpack(packed, arenas)

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(readers, "unpack", unpack)
        yield
    assert next(given, None) is None, "it was called"


def processes(kind: str = "Reader") -> list[psutil.Process]:
    found = psutil.process_iter(["cmdline"])
    return [one for one in found if f"ray::{kind}" in " ".join(one.info["cmdline"] or ())]


def kill_one() -> None:
    processes()[0].kill()


def start_both(ray: Any) -> None:
    """Wait until two readers run: or one could read a short file before the other has begun."""
    readers = current_readers.get()
    assert isinstance(readers, RayReaders)
    readers.start()
    readers.start_readers()
    ray.get([answer for _, answer in readers.starting])


def pause_one() -> None:
    """Stop a reader for two seconds, in which the others read hundreds of blocks."""
    one = processes()[0]
    one.suspend()
    threading.Timer(2.0, one.resume).start()


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this process decides: how files are divided."""
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 8192)
    monkeypatch.setattr(reading, "PIECE_BYTES", 1 << 15)


def test_two_nodes_give_the_same_models(nodes: Nodes, data: list[str], plain: bytes, tmp_path: Path) -> None:
    """All by the same two readers, until one is killed: to start them takes longest."""
    assert nodes.connection.ray.cluster_resources()["CPU"] == 2
    bad, wanted = with_a_bad_line(data[0], tmp_path / "bad.tsv"), tmp_path / "wanted"
    without = trained([bad], wanted, on_error="skip")
    with reading_elsewhere(2, None):
        start_both(nodes.connection.ray)
        assert trained(data, tmp_path / "model") == plain
        assert trained([bad], tmp_path / "model", on_error="skip") == without
        check_that_bad_lines_are_kept(bad, without, tmp_path)
        with disturbed(kill_one, after=3):
            assert trained(data, tmp_path / "model") == plain, "a reader was killed"
        with pytest.raises(thresher.data.DataError, match=rf"^{bad}:2501:"):
            thresher.train(bad, **OPTIONS)


def with_a_bad_line(name: str, path: Path) -> str:
    lines = Path(name).read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2500], b"1\tx\n", *lines[2500:]]))
    return str(path)


def check_that_bad_lines_are_kept(bad: str, wanted: bytes, folder: Path) -> None:
    found = trained([bad], folder / "model", on_error=f"quarantine={folder / 'kept'}")
    assert found == wanted
    assert (folder / "kept").read_bytes() == b"1\tx\n"


@pytest.mark.hostile
def test_a_slow_reader_changes_nothing(nodes: Nodes, data: list[str], plain: bytes, tmp_path: Path) -> None:
    with disturbed(pause_one, after=2):
        assert trained(data, tmp_path / "model", workers=2) == plain


@pytest.mark.hostile
def test_a_learner_that_is_killed_is_resumed(nodes: Nodes, data: list[str], tmp_path: Path) -> None:
    own = [str(shutil.copy(name, tmp_path)) for name in data]  # whose cache no other test finds
    wanted = trained(own, tmp_path / "wanted", passes=PASSES, cache=False)
    given = [sys.executable, "-m", "thresher", "train", *own, "-m", "model", *FLAGS, "-q"]
    given += ["--passes", str(PASSES), "--ray", nodes.cluster.address, "--checkpoint-every", "1000"]
    with subprocess.Popen(given, cwd=tmp_path) as process:
        kept = tmp_path / "model.checkpoint"
        while not kept.exists() and process.poll() is None:
            time.sleep(0.01)
        process.kill()
    assert process.returncode < 0
    assert kept.exists()
    assert not (tmp_path / "model").exists()
    done = command(*given[3:], "--resume", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "model").read_bytes() == wanted


@pytest.mark.hostile
def test_a_full_object_store_changes_nothing(
    nodes: Nodes, data: list[str], plain: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PIECE_BYTES", 1 << 30)  # batches too large to be sent without the store
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1 << 20)
    sizes = [4 << 20] * 24 + [1 << 18] * 14
    ray = nodes.connection.ray
    held = [ray.get(ray.put(np.ones(size, np.uint8))) for size in sizes]  # in use, so they stay there
    assert trained(data, tmp_path / "model", workers=2) == plain
    assert all(one.all() for one in held)


@pytest.mark.hostile
def test_a_node_that_is_lost_and_another_that_comes_change_nothing(
    nodes: Nodes, data: list[str], plain: bytes, tmp_path: Path
) -> None:
    with disturbed(nodes.lose_second, after=2):
        assert trained(data, tmp_path / "model", workers=2) == plain
    nodes.add_second()
    assert trained(data, tmp_path / "model", workers=2) == plain


def command(*options: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    pipes: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with forked([*options], cwd=cwd, env=env or dict(os.environ), text=True, **pipes) as process:
        out, err = process.communicate(timeout=120)
    return subprocess.CompletedProcess(options, process.returncode, out, err)


def left_over() -> set[str]:
    return {path.name for path in Path(tempfile.gettempdir()).glob("thresher-ray-*")}


def test_the_command_starts_and_stops_its_own_ray(data: list[str], plain: bytes, tmp_path: Path) -> None:
    before, another = left_over(), {**os.environ, "RAY_ADDRESS": "127.0.0.1:1"}
    done = command("train", *data, "-m", "model", *FLAGS, "--workers", "1", cwd=tmp_path, env=another)
    assert done.returncode == 0, done.stderr
    assert "starting Ray on this machine" in done.stderr
    assert (tmp_path / "model").read_bytes() == plain
    assert left_over() == before


@pytest.mark.hostile
def test_the_command_ends_with_its_ray_and_is_resumed(data: list[str], tmp_path: Path) -> None:
    before, given = left_over(), [*data, *FLAGS, "--passes", "100", "--no-cache"]
    assert command("train", *given, "-m", "model", cwd=tmp_path).returncode == 0
    model = (tmp_path / "model").read_bytes()
    options = ["train", *given, "-m", "again", "--workers", "2", "--checkpoint-every", "1000"]
    start = [sys.executable, "-m", "thresher", *options]
    with subprocess.Popen(start, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path) as process:
        while not (tmp_path / "again.checkpoint").exists() and process.poll() is None:
            time.sleep(0.01)
        for one in psutil.Process(process.pid).children():
            if one.name() == "raylet":
                one.kill()
        printed, said = process.communicate(timeout=120)
    assert process.returncode == 1, said
    assert b"thresher: the connection to Ray is lost: " in said
    assert b"with --resume" in said
    assert b"raylet" not in printed + said
    assert left_over() == before
    assert not (tmp_path / "again").exists()
    done = command(*options, "--resume", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again").read_bytes() == model


@pytest.mark.hostile
def test_no_cluster_at_the_address(data: list[str], tmp_path: Path) -> None:
    done = command("train", data[0], "-m", "model", *FLAGS, "--ray", "127.0.0.1:1", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("thresher: no Ray cluster at '127.0.0.1:1'")
    assert not (tmp_path / "model").exists()
