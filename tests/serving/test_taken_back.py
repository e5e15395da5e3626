"""A log that is taken back with its model, as docs/log.md says; and a model that is newer than its log."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.pages import blocks
from tests.serving.test_service import check_law, learned, model, records_of, rows, serving
from tests.waiting import until
from thresher.data.chunk import Chunk
from thresher.data.log.segments import read_segment, segment_paths
from thresher.data.log.source import contents_of

__all__ = ["model", "rows"]
pytestmark = pytest.mark.usefixtures("plainly")
COPY, PUT_BACK, END = blocks("docs/log", "sh")[1:]


def done(commands: str, folder: Path) -> None:
    subprocess.run(["sh", "-ec", commands], cwd=folder, check=True)


def place_after(folder: Path, row: int) -> int:
    """The byte of the only file of a log at which the record ends that brings it to a row."""
    ends: list[int] = [one.end.offset for one in records_of(folder) if one.end.row == row]
    return ends[0] + read_segment(segment_paths(folder)[0]).header


def test_a_service_newer_than_its_log_does_not_learn(model: Path, rows: Chunk, tmp_path: Path) -> None:
    folder = tmp_path / "log"
    with serving(model, folder) as service:
        for k in range(10, 20):
            service.learn(rows.rows(k, k + 1), key=f"key {k}").result()
        service.keep(["a", "b"], rows.rows(20, 22)).result()
    found = contents_of(folder, 2)
    assert (found["rows"], found["keys"], found["waiting_for_labels"], found["damage"]) == (10, 10, 2, None)
    check_law(model, folder, tmp_path / "expected")
    os.truncate(segment_paths(folder)[0], place_after(folder, 7))
    with serving(model, folder) as service:
        until(lambda: bool(service.status().reason))
        reason = service.status().reason
        assert "not the log that was read before, up to row 10" in reason
        assert "remove the files *state and *model" in reason


@pytest.mark.parametrize(("running", "saved"), [(True, True), (True, False), (False, True)])
def test_a_copy_takes_log_and_models_back(
    model: Path, rows: Chunk, tmp_path: Path, running: bool, saved: bool
) -> None:
    folder = tmp_path / "clicks.log"
    with serving(model, folder) as service:
        service.learn(rows.rows(0, 7)).result()
        service.keep(["a"], rows.rows(7, 8)).result()
        until(lambda: learned(service))
        if saved:
            service._learning.save()
        if running:
            service.learn(rows.rows(7, 9)).result()  # the models of the copy lack these
            done(COPY, tmp_path)
    if not running:
        done(COPY, tmp_path)
    assert (tmp_path / "backup" / "state").exists() == saved
    taken = contents_of(tmp_path / "backup", 9) | {"log": ""}
    with serving(model, folder) as service:
        service.keep(["b"], rows.rows(8, 9)).result()
        service.learn(rows.rows(9, 20)).result()
    whole = {one.name: one.read_bytes() for one in folder.iterdir()}
    done(PUT_BACK, tmp_path)
    assert {one.name: one.read_bytes() for one in (tmp_path / "aside.log").iterdir()} == whole
    assert contents_of(folder, 9) | {"log": ""} == taken
    with serving(model, folder) as service:
        until(lambda: learned(service))
        assert [*service._memory.kept] == ["a"]
        service.learn(rows.rows(30, 33)).result()
    check_law(model, folder, tmp_path / "expected")
    assert contents_of(folder)["rows"] == 10 + 2 * running


@pytest.mark.parametrize(("beyond", "saved"), [(0, True), (100, True), (0, False)])
def test_a_log_is_ended_at_a_byte(model: Path, rows: Chunk, tmp_path: Path, beyond: int, saved: bool) -> None:
    folder = tmp_path / "clicks.log"
    with serving(model, folder) as service:
        service.learn(rows.rows(0, 7)).result()
        service.learn(rows.rows(9, 20)).result()
    for one in [] if saved else [*folder.glob("*state"), *folder.glob("*model")]:  # killed before a snapshot
        one.unlink()
    done(END.replace("4096", str(place_after(folder, 7) + beyond)), tmp_path)
    with serving(model, folder) as service:
        until(lambda: learned(service))
        service.learn(rows.rows(30, 33)).result()
    check_law(model, folder, tmp_path / "expected")
    assert contents_of(folder)["rows"] == 10
