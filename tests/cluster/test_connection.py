"""A Ray that is started here, and addresses at which there is none."""

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import thresher
from thresher.cluster import connection
from thresher.cluster.connection import Connection, NoRayError
from thresher.data import DataError


class Ray:
    """Notes how it is started; `error` is raised by `init`."""

    exceptions = SimpleNamespace(RayError=RuntimeError)

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.given, self.stopped = error, dict[str, Any](), False

    def is_initialized(self) -> bool:
        return False

    def init(self, **given: Any) -> None:
        self.given = given
        assert os.path.isdir(given["_temp_dir"])
        if self.error is not None:
            raise self.error

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(get_node_id=lambda: "here", gcs_address="127.0.0.1:1")

    def nodes(self) -> list[dict[str, str]]:
        return [{"NodeID": node, "RayletSocketName": f"/none/{node}"} for node in ("there", "here")]

    def shutdown(self) -> None:
        self.stopped = True


def test_a_ray_that_does_not_start_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = Ray(Exception("The node timed out\n  during startup."))  # as Ray raises it
    monkeypatch.setattr(connection, "import_ray", lambda: ray)
    expected = r"^Ray could not be started on this machine: The node timed out during startup\.$"
    with pytest.raises(NoRayError, match=expected):
        Connection(None, 2)
    assert ray.stopped
    assert not os.path.exists(ray.given["_temp_dir"])


@pytest.mark.parametrize("fits", [True, False])
def test_sockets_have_room_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fits: bool) -> None:
    folder = tempfile.mkdtemp(dir="/tmp", prefix="t") if fits else str(tmp_path / ("x" * 90))
    Path(folder).mkdir(exist_ok=True)
    monkeypatch.setattr(tempfile, "tempdir", folder)
    monkeypatch.setattr(connection, "LONGEST_SOCKET", 150 if fits else 103)
    ray = Ray()
    monkeypatch.setattr(connection, "import_ray", lambda: ray)
    Connection(None, 1).close()
    assert os.path.dirname(ray.given["_temp_dir"]) == (folder if fits else "/tmp")
    assert os.listdir(folder) == []
    os.rmdir(folder)


@pytest.mark.parametrize("noted", ["the environment", "the last cluster's file"])
def test_auto_is_an_address_to_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noted: str) -> None:
    monkeypatch.setattr(connection, "import_ray", lambda: Ray(AssertionError("Ray is asked")))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    if noted == "the environment":
        monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    else:
        (tmp_path / "ray").mkdir()
        (tmp_path / "ray" / "ray_current_cluster").write_text("127.0.0.1:1\n")
    with pytest.raises(NoRayError, match=r"^no Ray cluster at 127\.0\.0\.1:1, which 'auto' stands for: "):
        Connection("auto", None)


def test_one_thread_at_a_time_uses_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "import_ray", Ray)
    first = Connection(None, 1)
    with ThreadPoolExecutor(1) as other:
        with pytest.raises(NoRayError, match=r"^another thread of this process reads with workers= or ray="):
            other.submit(Connection, None, 1).result()
        Connection(None, 1).close()  # the same thread may
        first.close()
        other.submit(lambda: Connection(None, 1).close()).result()


def test_another_cluster_than_that_of_the_session_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = Ray()
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(connection, "import_ray", lambda: ray)
    monkeypatch.setattr(connection, "check_answers", lambda address: None)
    for address in (None, "auto", "127.0.0.1:1", "localhost:1"):
        Connection(address, 1).close()
    expected = r"^this process is connected to the Ray cluster at 127\.0\.0\.1:1, not to 127\.0\.0\.1:2$"
    with pytest.raises(NoRayError, match=expected):
        Connection("127.0.0.1:2", 1)
    assert not ray.stopped


@pytest.mark.parametrize("address", ["", "local"])
def test_an_address_that_would_start_a_ray_is_refused(address: str) -> None:
    with pytest.raises(NoRayError, match=f"^'{address}' is not the address of a Ray cluster: give HOST:PORT"):
        thresher.train("nothing.svm", ray=address)


def test_numbers_of_numpy_are_numbers_of_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n-1 2:1\n")
    ray = Ray(Exception("asked"))
    monkeypatch.setattr(connection, "import_ray", lambda: ray)
    with pytest.raises(NoRayError, match=r"asked$"):
        thresher.train(str(path), workers=np.int64(3))  # type: ignore[arg-type]
    assert ray.given["num_cpus"] == 3


@pytest.mark.parametrize("given", ["data", "holdout"])
def test_standard_input_is_refused_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n-1 2:1\n")
    monkeypatch.setattr(connection, "import_ray", lambda: pytest.fail("Ray is started"))
    names = {"data": str(path), "holdout": str(path), given: "-"}
    with pytest.raises(DataError, match=r"^standard input: other processes cannot read standard input"):
        thresher.train(names["data"], holdout=names["holdout"], workers=1)
