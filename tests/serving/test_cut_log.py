"""A log that was cut, and the service whose snapshot is newer."""

from pathlib import Path

from tests.serving.test_service import check_law, learned, model, plain, rows, serving, until
from thresher.data.chunk import Chunk
from thresher.data.log.cutting import cut_after
from thresher.runs.log import contents_of

__all__ = ["model", "plain", "rows"]


def test_a_service_whose_snapshot_is_newer_than_the_log_does_not_learn(
    model: Path, rows: Chunk, tmp_path: Path
) -> None:
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
