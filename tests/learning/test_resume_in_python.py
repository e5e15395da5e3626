"""Functions write checkpoints, and go on from them, as the commands do (law 3)."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher
from thresher.learning.files import checkpoint
from thresher.learning.training.interruption import Interrupted
from thresher.plans.stability import Selection

pytestmark = pytest.mark.usefixtures("plainly")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    chance = np.random.default_rng(3)
    rows = [f"{int(x > 0)} 1:{x:.3f} {2 + k % 5}:1\n" for k, x in enumerate(chance.normal(size=200))]
    (tmp_path / "d.svm").write_text("".join(rows))
    return tmp_path / "d.svm"


@pytest.fixture
def stopping(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From here on, the first checkpoint is followed by Ctrl-C."""

    def begin() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        left = [1]
        save = checkpoint.save

        def saved(*args: Any) -> None:
            save(*args)
            if left:
                left.pop()
                signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr(checkpoint, "save", saved)

    return begin


def weights_of(found: Any) -> list[Any]:
    if isinstance(found, Selection):
        return [one.tolist() for one in (found.keys, found.share, found.mean, found.low, found.high)]
    return [one.tolist() for model in getattr(found, "models", [found]) for one in model.weights()]


CALLS: dict[str, dict[str, Any]] = {
    "train": {"passes": 2},
    "path": {"l1": [0.5, 1.0], "passes": 2},
    "ensemble": {"models": 2, "passes": 2},
    "select": {"bags": 4, "passes": 2},
}


@pytest.mark.parametrize("name", CALLS)
def test_a_run_that_was_stopped_goes_on(name: str, data: Path, stopping: Any, tmp_path: Path) -> None:
    function, spare = getattr(thresher, name), tmp_path / "m.checkpoint"
    whole = weights_of(function(data, **CALLS[name]))
    stopping()
    more = {**CALLS[name], "checkpoint": spare}
    with pytest.raises(KeyboardInterrupt, match=r"; checkpoint in .*, continue with resume=True") as stopped:
        function(data, **more, checkpoint_every=130)
    assert isinstance(stopped.value, Interrupted)
    assert spare.exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert weights_of(function(data, **more, resume=True)) == whole
    assert not spare.exists()


def test_what_a_checkpoint_needs(data: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="resume needs the path of the checkpoint"):
        thresher.train(data, resume=True)
    with pytest.raises(ValueError, match="checkpoint_every needs the path of the checkpoint"):
        thresher.train(data, checkpoint_every=10)
    with pytest.raises(ValueError, match="no training to resume"):
        thresher.train(data, checkpoint=tmp_path / "none", resume=True)
    (tmp_path / "own").write_text("mine")
    with pytest.raises(ValueError, match="is not a checkpoint"):
        thresher.train(data, checkpoint=tmp_path / "own")
