"""Commands and functions that work elsewhere, with a Ray in this process."""

from pathlib import Path

import pytest

import thresher
from tests.cluster.fake_ray import FakeConnection, FakeRay
from thresher.batch import shards
from thresher.cli.main import status_of
from thresher.cluster import connection
from thresher.data import DataError


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    """The Ray that is found at any address."""
    found = FakeRay()
    monkeypatch.setattr(connection, "Connection", lambda address, readers: FakeConnection(found))
    return found


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("a.svm").write_text("".join(f"{k % 2} {1 + k % 5}:1 {7 + k % 3}:0.5\n" for k in range(40)))
    return "a.svm"


def test_predictions_and_boosting_are_those_of_one_process(fake: FakeRay, data: str) -> None:
    thresher.train(data).save("model")
    assert status_of(["predict", "model", data, "-o", "here"]) == 0
    assert not fake.actors
    assert status_of(["predict", "model", data, "-o", "there", "--workers", "1"]) == 0
    assert [type(one._inner).__name__ for one in fake.actors] == ["Reader"]
    assert Path("there").read_bytes() == Path("here").read_bytes() != b""
    thresher.boost(data, order="parallel", l1=0.5).save("here")
    thresher.boost(data, order="parallel", l1=0.5, workers=2).save("there")
    assert Path("there").read_bytes() == Path("here").read_bytes()
    assert sum(type(one._inner) is shards.Worker for one in fake.actors) == 2


def test_boosting_refuses_other_versions(fake: FakeRay, data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "versions", lambda: {"numpy": "1.26.0"})
    with pytest.raises(DataError, match=r"^a worker on .* has numpy .*, the learner has 1\.26\.0: install"):
        thresher.boost(data, order="parallel", workers=1)
    assert [one.dead for one in fake.actors if type(one._inner) is shards.Worker] == [True]
