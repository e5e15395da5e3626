"""One data cache used by many processes; truncated cache files."""

from pathlib import Path

import pytest

from tests.commands import start
from tests.hostile.conftest import Tried
from tests.hostile.trials import here, said, svmlight

TRAIN = ["train", "d.svm", "-q", "--passes", "3", "-m"]


@pytest.fixture
def model(folder: Path) -> bytes:
    svmlight(folder / "d.svm", 6000, 6000)
    assert here(*TRAIN, "m", folder=folder)[0] == 0
    return (folder / "m").read_bytes()


def at_once(folder: Path, model: bytes, count: int) -> None:
    running = [start(*TRAIN, f"m{k}", folder=folder) for k in range(count)]
    for k, process in enumerate(running):
        _, err = process.communicate(timeout=300)
        assert (process.returncode, said(err)) == (0, "")
        assert (folder / f"m{k}").read_bytes() == model
    left = sorted(path.suffix for path in (folder / "cache" / "data").iterdir())
    assert [suffix for suffix in left if suffix not in (".json", ".rows")] == []
    assert left.count(".rows") == 1


def emptied(folder: Path) -> Path:
    data = folder / "cache" / "data"
    for path in data.iterdir():
        path.unlink()
    return data


def test_processes_that_share_a_cold_cache_of_data(folder: Path, model: bytes, tried: Tried) -> None:
    emptied(folder)
    tried(3)
    at_once(folder, model, 3)


@pytest.mark.hostile
@pytest.mark.parametrize("repeat", range(4))
def test_eight_processes_on_one_cache_of_data(folder: Path, model: bytes, repeat: int, tried: Tried) -> None:
    """With a cold cache, a warm cache, and while the cache is cleared."""
    data = emptied(folder)
    at_once(folder, model, 8)
    at_once(folder, model, 8)
    running = [start(*TRAIN, f"m{k}", folder=folder) for k in range(8)]
    while any(process.poll() is None for process in running):
        for path in data.glob("*.rows"):
            path.unlink(missing_ok=True)
    for k, process in enumerate(running):
        _, err = process.communicate()
        assert process.returncode == 0
        assert "Traceback" not in said(err)
        assert (folder / f"m{k}").read_bytes() == model
    tried(24)


def cut(folder: Path, model: bytes, step: int) -> int:
    """A truncated cache is rebuilt or ignored: the model is the same."""
    from thresher import train
    from thresher.learning.files.model_file import save

    (whole,) = (folder / "cache" / "data").glob("*.rows")
    content, tried = whole.read_bytes(), 0
    for size in range(0, len(content), step):
        for damaged in (content[:size], content[:size] + b"\0" * (len(content) - size)):
            whole.write_bytes(damaged)
            with pytest.warns(UserWarning, match="damaged cache"):
                save(train(folder / "d.svm", passes=3), folder / "n")
            assert (folder / "n").read_bytes() == model
            tried += 1
    return tried


def test_a_cache_cut_off_at_some_places(folder: Path, model: bytes, tried: Tried) -> None:
    tried(cut(folder, model, 100_003))


@pytest.mark.hostile
def test_a_cache_cut_off_at_every_kilobyte(folder: Path, model: bytes, tried: Tried) -> None:
    tried(cut(folder, model, 1024))


@pytest.mark.hostile
def test_predictions_of_data_cut_off_at_every_kilobyte(folder: Path, model: bytes, tried: Tried) -> None:
    """Whole lines before the cut give the same predictions; the cut line is an error or a shorter row."""
    from thresher.api import load
    from thresher.data import open_source

    predictor, data = load(folder / "m"), (folder / "d.svm").read_bytes()

    def predicted(path: Path) -> list[float]:
        chunks = open_source(path, threads=1, on_error="skip", unlabelled=True).chunks()
        return [float(value) for chunk in chunks for value in predictor.predict(chunk, "margin")]

    whole = predicted(folder / "d.svm")
    for size in range(1024, len(data), 1024):
        (folder / "cut.svm").write_bytes(data[:size])
        rows = data.count(b"\n", 0, size)
        found = predicted(folder / "cut.svm")
        assert found[:rows] == whole[:rows]
        assert len(found) <= rows + 1
        tried(1)
