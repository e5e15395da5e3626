"""Signed hashing, scales and admission on the command line."""

from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Thresher
from thresher.learning.files import model_file

pytestmark = pytest.mark.usefixtures("plainly")

OPTIONS = "--scale standard --admit 3,bits=14 --store hashed:12,signed --loss hinge --passes 2 --seed 4"


def visits(count: int, seed: int) -> str:
    """A table with two columns of very different scales, and a category of which most values are rare."""
    rng = np.random.default_rng(seed)
    lines = ["label,price,share,shop"]
    for _ in range(count):
        price, share, shop = rng.normal(1e6, 2e5), rng.normal() / 1e4, rng.zipf(1.6)
        label = int(price / 1e6 + 1e4 * share + rng.normal() > 1)
        lines.append(f"{label},{price:.2f},{share:.3g},shop {shop}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def tables(folder: Path) -> None:
    for seed, name in enumerate(("train.csv", "test.csv")):
        (folder / name).write_text(visits(300, seed))


@pytest.mark.usefixtures("tables")
def test_from_training_to_evaluation(thresher: Thresher) -> None:
    ran = thresher(f"train train.csv -m m {OPTIONS} -q --json --holdout test.csv")
    assert ran.status == 0, ran.err
    shops = {line.rpartition(",")[2] for line in Path("train.csv").read_text().splitlines()[1:]}
    # two columns and the shops, but for those that share a row
    assert len(shops) <= ran.json["features_seen"] + ran.json["features_waiting"] <= len(shops) + 2
    assert ran.json["features_waiting"] > len(shops) / 2
    assert ran.json["holdout_error"] < 0.35
    unscaled = thresher(
        "train train.csv -m n --rule ftrl --loss hinge --passes 2 -q --json --holdout test.csv"
    ).json
    assert unscaled["holdout_loss"] > 2 * ran.json["holdout_loss"]
    assert "features_waiting" not in unscaled
    figures = thresher("evaluate m test.csv --json").json
    assert {name: figures[name] for name in ("loss", "error")} == {
        name: ran.json[f"holdout_{name}"] for name in ("loss", "error")
    }
    assert thresher(f"train train.csv -m light {OPTIONS} -q --weights-only").status == 0
    assert thresher("predict light test.csv").out == thresher("predict m test.csv").out
    assert Path("light").stat().st_size < Path("m").stat().st_size - (1 << 14)


@pytest.mark.usefixtures("tables")
def test_resume_keeps_them(thresher: Thresher, monkeypatch: pytest.MonkeyPatch) -> None:
    assert thresher(f"train train.csv -m whole {OPTIONS} -q").status == 0
    with monkeypatch.context() as patch:
        patch.setattr(model_file, "save", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "full")))
        assert thresher(f"train train.csv -m m {OPTIONS} -q --checkpoint-every 500").status == 1
    ran = thresher("train train.csv -m m --passes 2 --resume --store hashed:12")
    assert "made with --store hashed:12,signed; leave --store out" in ran.err
    assert thresher("train train.csv -m m --passes 2 --resume --scale standard -q").status == 0
    assert Path("m").read_bytes() == Path("whole").read_bytes()
