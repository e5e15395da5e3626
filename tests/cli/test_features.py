"""Signed hashing, scales, admission and names of weights on the command line."""

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
    ran = thresher.ok(f"train train.csv -m m {OPTIONS} -q --json --holdout test.csv")
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


LINES = [f"{1 if k % 3 else -1} |user u{k % 7} |ad a{k % 3}:2\n" for k in range(60)]
TRAIN = "train clicks.vw --interact user,ad --rule ftrl:alpha=1,l1=1 -q --json -m"


@pytest.fixture
def clicks(folder: Path) -> Path:
    (folder / "clicks.vw").write_text("".join(LINES))
    return folder / "clicks.vw"


def named(out: str) -> dict[str, str]:
    rows = [line.split("\t") for line in out.splitlines()]
    return {key: name for key, name, _ in rows}


def test_names_are_kept_for_live_weights_only(thresher: Thresher, clicks: Path) -> None:
    ran = thresher.ok(f"{TRAIN} model --names")
    assert 0 < ran.json["named"] == ran.json["nonzero"] < ran.json["features_seen"]
    shown = named(thresher("weights model").out)
    assert shown.pop("intercept") == ""
    assert all(shown.values())
    assert any(name.startswith("user=u") and " × ad=a" in name for name in shown.values())
    assert model_file.load(clicks.parent / "model")[0].names is not None


def test_numeric_columns_have_names_without_names(thresher: Thresher, folder: Path) -> None:
    rows = [f"{k % 2},{k % 2 + 0.5},{'xyz'[k % 3]}" for k in range(60)]
    (folder / "t.csv").write_text("\n".join(["y,age,town", *rows, ""]))
    thresher("train t.csv -m m --label y -q --rule ftrl:l1=0")
    shown = thresher("weights m")
    assert {"age", ""} <= set(named(shown.out).values())
    assert "thresher name m DATA" in shown.err
    thresher("train t.csv -m n --label y -q --ignore town")
    thresher("train t.csv -m h --label y -q --store hashed:8")
    assert [thresher(f"weights {model}").err for model in "nh"] == ["", ""]


def test_a_model_is_named_afterwards(thresher: Thresher, clicks: Path) -> None:
    assert "named" not in thresher(f"{TRAIN} bare").json
    thresher(f"{TRAIN} model --names")
    shown = thresher("weights bare")
    assert set(named(shown.out).values()) == {""}
    assert shown.err == "some features have no names: thresher name bare DATA finds them\n"
    assert thresher("weights model").err == ""
    predicted = thresher("predict bare clicks.vw").out
    ran = thresher("name bare clicks.vw --json")
    assert ran.json["named"] == ran.json["features_live"]
    assert thresher("weights bare").out == thresher("weights model").out
    assert thresher("predict bare clicks.vw").out == predicted
    assert model_file.load(clicks.parent / "bare")[0].examples == 60


def test_names_with_tabs_are_escaped(thresher: Thresher, folder: Path) -> None:
    (folder / "a.csv").write_text('label,c\n1,"x\ty\\"\n0,z\n')
    thresher("train a.csv -m model --names --rule sgd -q")
    assert r"c=x\ty\\" in named(thresher("weights model").out).values()


@pytest.mark.usefixtures("narrow")
def test_what_has_no_names(thresher: Thresher, clicks: Path) -> None:
    ran = thresher("train clicks.vw --store hashed:8 --names -m model")
    assert (ran.status, ran.err) == (
        1,
        "thresher: weights of a hashed store have no names, as features may share one: use --store growing\n",
    )
    assert not (clicks.parent / "model").exists()
    thresher("train train.svm -m ids -q")
    assert thresher("name ids train.svm --json").json["named"] == 0
    assert thresher("name ids missing.svm").status == 1
