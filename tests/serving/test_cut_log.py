"""A log that was cut, and the service whose snapshot is newer."""

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.commands import run
from tests.serving.test_service import check_law, learned, model, rows, serving
from tests.waiting import until
from thresher.data.chunk import Chunk
from thresher.data.log.source import contents_of
from thresher.data.log.writer import cut_after
from thresher.serving.learning import Snapshots

__all__ = ["model", "rows"]
pytestmark = pytest.mark.usefixtures("plainly")
_SIZES = ("segments", "bytes")
"""Figures of a log that do not depend on its records alone"""


def test_a_service_newer_than_its_log_does_not_learn(model: Path, rows: Chunk, tmp_path: Path) -> None:
    folder = tmp_path / "log"
    with serving(model, folder) as service:
        for k in range(10, 20):
            service.learn(rows.rows(k, k + 1), key=f"key {k}").result()
        service.keep(["a", "b"], rows.rows(20, 22), service.margins(rows.rows(20, 22))).result()
    found = contents_of(folder, 2)
    assert (found["rows"], found["keys"], found["waiting_for_labels"], found["damage"]) == (10, 10, 2, None)
    check_law(model, folder, tmp_path / "expected")
    cut_after(folder, 7)
    with serving(model, folder) as service:
        until(lambda: bool(service.status().reason))
        assert "not the log that was read before, up to row 10" in service.status().reason
    for path in folder.iterdir():
        if path.is_file() and path.suffix != ".log":
            path.unlink()  # the snapshots
    with serving(model, folder) as service:
        service.learn(rows.rows(30, 33)).result()
        until(lambda: learned(service))
    check_law(model, folder, tmp_path / "expected")
    assert contents_of(folder)["rows"] == 10


@pytest.mark.parametrize("form", ["time", "row", "clock"])
def test_a_command_takes_log_and_models_back(model: Path, rows: Chunk, tmp_path: Path, form: str) -> None:
    folder, shadows = tmp_path / "log", {"other": "fobos"}
    with serving(model, folder, shadows=shadows) as service:
        service.learn(rows.rows(0, 7)).result()
        service.keep(["a"], rows.rows(7, 8), service.margins(rows.rows(7, 8))).result()
        moment = datetime.now(UTC)
        time.sleep(0.001)
        service.keep(["b"], rows.rows(8, 9), service.margins(rows.rows(8, 9))).result()
        service.learn(rows.rows(9, 20)).result()
    to = {"time": moment.isoformat(), "row": "7", "clock": moment.strftime("%H:%M:%S.%f")}[form]
    whole = contents_of(folder, 9)
    before = {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file()}
    status, said, _ = run("log", folder, "--cut", to, folder=tmp_path)
    assert (status, "rows                   7\n" in said) == (0, True)
    assert "rows cut off           11\n" in said
    assert ("cut at                 " in said) == (form != "row")
    for one in (folder / "cut-7").iterdir():  # it can be undone
        one.rename(folder / one.name)
    (folder / "cut-7").rmdir()
    assert contents_of(folder, 9) | dict.fromkeys(_SIZES) == whole | dict.fromkeys(_SIZES)
    assert {name: (folder / name).read_bytes() for name in before if not name.endswith(".log")} == {
        name: content for name, content in before.items() if not name.endswith(".log")
    }
    assert run("log", folder, "--cut", to, folder=tmp_path)[0] == 0
    aside = {one.name for one in (folder / "cut-7").iterdir()}
    assert {"state", "model", "other.state", "other.model"} < aside
    with serving(model, folder, shadows=shadows) as service:
        until(lambda: learned(service))
        assert [*service._memory.kept] == (["a", "b"] if form == "row" else ["a"])
        service.learn(rows.rows(30, 33)).result()
    check_law(model, folder, tmp_path / "expected")
    assert contents_of(folder)["rows"] == 10


def test_a_log_without_its_beginning_is_not_taken_back(model: Path, rows: Chunk, tmp_path: Path) -> None:
    folder = tmp_path / "log"
    with serving(model, folder, segment_bytes=1, keep_bytes=1, snapshots=Snapshots(rows=1)) as service:
        for k in range(10):
            service.learn(rows.rows(k, k + 1)).result()
        until(lambda: len([*folder.glob("*.log")]) == 1)
        service.learn(rows.rows(10, 15)).result()
        service.learn(rows.rows(15, 20)).result()
        before = contents_of(folder)["first_row"]
    names = sorted(one.name for one in folder.iterdir())
    status, _, said = run("log", folder, "--cut", str(before - 1), folder=tmp_path)
    assert (status, "so state, which has learned rows after" in said) == (1, True)
    assert sorted(one.name for one in folder.iterdir()) == names


def test_a_moment_after_the_end_cuts_nothing(model: Path, rows: Chunk, tmp_path: Path) -> None:
    folder = tmp_path / "log"
    with serving(model, folder) as service:
        service.learn(rows.rows(0, 7)).result()
    for to in ("2999-01-01", "7"):
        status, said, told = run("log", folder, "--cut", to, "--json", folder=tmp_path)
        assert (status, '"cut_off_bytes": 0' in said, '"rows_cut_off": 0' in said) == (0, True, True)
        assert "warning: nothing is cut off: the last record was written at 2" in told
    status, _, said = run("log", folder, "--cut", "noon", folder=tmp_path)
    assert (status, "the number of a row, or a time such as 12:00" in said) == (2, True)
