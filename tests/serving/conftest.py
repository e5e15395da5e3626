"""A small model of clicks."""

from pathlib import Path

import pytest

import thresher

ROWS = "".join(f"{k % 2},{k % 7},{'red' if k % 2 else 'blue'}\n" for k in range(60))


@pytest.fixture(scope="session")
def clicks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clicks")
    (folder / "clicks.csv").write_text(f"label,hour,colour\n{ROWS}")
    thresher.train(folder / "clicks.csv", passes=1).save(folder / "clicks.model")
    return folder / "clicks.model"
