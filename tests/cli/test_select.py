"""``thresher select``: the file it writes, the model of the kept features, what it refuses."""

from pathlib import Path

import numpy as np
import pytest

import thresher as package
from tests.cli.conftest import ROWS, Thresher
from tests.stopping import in_pass, stopping
from thresher.learning.model.model import Model
from thresher.plans.stability import Selection

COMMAND = "select train.svm -m s --rule ftrl --l1 0.1 --bags 4 --nonzero 20 --passes 2 -q"


def test_it_writes_what_python_does(thresher: Thresher) -> None:
    ran = thresher.ok(f"{COMMAND} --json --order once --seed 4 --keep --table s.tsv --plot s.svg")
    options = {"rule": "ftrl", "l1": 0.1, "bags": 4, "nonzero": 20, "passes": 2, "order": "once", "seed": 4}
    found = package.select("train.svm", keep=True, **options)  # type: ignore[arg-type]
    found.save("python")
    assert Path("s").read_bytes() == Path("python").read_bytes()
    told = ran.json
    assert (told["halves"], told["selected_per_half"], told["model"]) == (4, 20.0, "s")
    assert told["kept"] == len(told["kept_features"]) == found.kept.sum() > 0
    assert told["kept_features"] == [one for one in found.rows() if one["kept"]]
    found.model_.save("other")
    assert thresher("choose s 0 -m k").status == 0
    assert Path("k").read_bytes() == Path("other").read_bytes()
    assert thresher("predict s test.svm").out == thresher("predict k test.svm").out
    kept = {*found.keys[found.kept].tolist()}
    assert {*Model.load("k").weights()[0].tolist()} <= kept
    assert "command" not in thresher("info k --json").json["record"], "no command lists the features"
    rows = [line.split("\t") for line in Path("s.tsv").read_text().splitlines()]
    assert rows[0] == ["feature", "name", "kept", "share", "mean", "low", "high", "sign_changes"]
    assert {int(row[0]) for row in rows[1:] if row[2] == "yes"} == kept
    assert sorted(path.name for path in Path().iterdir()) == sorted(
        ["cache", "k", "other", "python", "s", "s.svg", "s.tsv", "test.svm", "train.svm"]
    )


def test_a_half_is_a_run_on_its_rows(thresher: Thresher) -> None:
    """Law 7: shares counted from models that ``train`` makes of the rows of each half."""
    from thresher.learning.model.bags import Bags

    assert thresher(COMMAND).status == 0
    counts: dict[int, int] = {}
    for learned in Bags.of("halves:4").draw(0, 400):
        Path("half.svm").write_bytes(b"".join(np.array(ROWS[:400], object)[learned > 0]))
        assert thresher("train half.svm -m m --rule ftrl --l1 0.1 --passes 2 -q").status == 0
        keys, weights = Model.load("m").weights()
        for key in keys[np.argsort(-np.abs(weights), kind="stable")[:20]].tolist():
            counts[key] = counts.get(key, 0) + 1
    found = Selection.load("s")
    assert dict(zip(found.keys.tolist(), (found.share * 4).astype(int).tolist(), strict=True)) == counts


@pytest.mark.parametrize("more", ["", " --keep"])
def test_a_run_that_was_stopped_goes_on(more: str, thresher: Thresher) -> None:
    assert thresher(COMMAND.replace("-m s", "-m whole") + more).status == 0
    with stopping(in_pass(2)):
        ran = thresher(COMMAND + more)
    assert ran.status != 0
    assert Path("s.checkpoint").exists()
    assert not Path("s").exists()
    other = thresher(COMMAND.replace("--bags 4", "--bags 6") + " --resume")
    assert "the checkpoint was made with --bags 4; leave --bags out" in other.err
    thresher.ok(COMMAND + more + " --resume")
    assert Path("s").read_bytes() == Path("whole").read_bytes()
    assert not Path("s.checkpoint").exists()


def test_the_table(thresher: Thresher) -> None:
    ran = thresher(COMMAND.removesuffix(" -q"))
    head, *lines = ran.out.splitlines()
    assert head.split() == ["feature", "share", "mean", "low", "high", "sign", "changes"]
    found = Selection.load("s")
    starred = [line for line in lines if line.startswith("*")]
    assert len(starred) == min(found.kept.sum(), 20)
    kept = max(int(found.kept.sum()) - 20, 0)
    more = f"... and {kept} more that are kept, {len(found.keys) - 20 - kept} that are not"
    assert more in lines
    assert f"threshold              {found.threshold:g}" in lines
    assert thresher("select train.svm -m s --bags 4 --l1 1e9 -q").status == 0, "an older one is replaced"
    assert Selection.load("s").keys.tolist() == []


def test_names(thresher: Thresher) -> None:
    rows = [f"{k % 2},{'ab'[k % 2]},{k % 3}\n" for k in range(60)]
    Path("d.csv").write_text("label,letter,number\n" + "".join(rows))
    assert thresher("select d.csv -m s --bags 4 --names --nonzero 3 -q --rule ftrl").status == 0
    assert {"letter=a", "letter=b"} <= {*Selection.load("s").called.values()}
    ran = thresher.ok("info s")
    assert "kind                   selection" in ran.out


@pytest.mark.parametrize(
    ("words", "message"),
    [("--table train.svm", "train.svm: named twice"), ("--store hashed:9", "use --store growing")],
)
def test_what_it_refuses(words: str, message: str, thresher: Thresher) -> None:
    before = {path.name for path in Path().iterdir()}
    Path("train.svm").write_text("1 1:1\n0 bad\n")
    ran = thresher(f"select train.svm -m s {words} -q")
    assert ran.status != 0
    assert message in ran.err
    assert "bad" not in ran.err, "nothing was read"
    assert {path.name for path in Path().iterdir()} == before
