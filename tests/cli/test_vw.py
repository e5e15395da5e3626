"""VW text on the command line: the model stores how names are hashed, and predict needs no labels."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.conftest import Thresher
from thresher import load
from thresher.data.layout import SettledLayout


@pytest.fixture
def stories(folder: Path) -> Path:
    """``train.svm`` as ``train.vw``, and the same in a namespace; ``test.vw`` has tags and no labels."""
    for name in ("train", "test"):
        rows = (folder / f"{name}.svm").read_bytes().splitlines(keepends=True)
        (folder / f"{name}.vw").write_bytes(b"".join(row.replace(b" ", b" | ", 1) for row in rows))
        (folder / f"{name}-f.vw").write_bytes(b"".join(row.replace(b" ", b" |f ", 1) for row in rows))
    open_rows = [row.partition(b" ")[2] for row in (folder / "test.vw").read_bytes().splitlines()]
    text = b"\n".join(b"'t%d %s" % (k, row) for k, row in enumerate(open_rows))
    (folder / "open.vw").write_bytes(text)
    return folder


def numbers(text: str) -> list[float]:
    return [float(line) for line in text.splitlines()]


def test_the_format_changes_nothing(thresher: Thresher, stories: Path) -> None:
    said = [thresher(f"train train.{end} -m {end} --json -q").json for end in ("svm", "vw")]
    assert said[0]["progressive_loss"] == said[1]["progressive_loss"]
    assert thresher("weights svm").out == thresher("weights vw").out
    predicted = thresher("predict svm test.svm").out
    assert thresher("predict vw test.vw").out == thresher("predict vw open.vw").out == predicted
    assert thresher("predict svm open.vw --format vw").out == predicted
    assert thresher("evaluate vw test.vw").out == thresher("evaluate svm test.svm").out


def test_labels_may_be_missing_only_where_they_are_not_needed(thresher: Thresher, stories: Path) -> None:
    for command in ("train open.vw -m m -q", "evaluate m open.vw"):
        ran = thresher(command)
        assert ran.status == 1
        assert "open.vw:1:1: expected a label before '|'" in ran.err
        thresher("train train.vw -m m -q")
    ran = thresher("train open.vw train.vw -m m -q --on-error skip --json --passes 1")
    assert (ran.json["examples"], ran.json["skipped"]) == (400, 200)


def test_hashes_travel_in_the_model(thresher: Thresher, stories: Path) -> None:
    thresher("train train-f.vw -m m -q --hash vw --bits 18")
    readout = load("m")
    assert readout.layout is not None
    assert replace(readout.layout, gaps=False) == SettledLayout("vw", hash="vw", bits=18)
    assert readout.keys.max() < 2**18
    thresher("train train-f.vw -m wide -q")
    assert load("wide").keys.max() > 2**63
    # no two features collide, so only the order of the sum of a margin changes
    plain = numbers(thresher("predict wide test-f.vw").out)
    thresher("train train.vw -m ids -q")
    assert numbers(thresher("predict m test-f.vw").out) == pytest.approx(plain, rel=1e-3, abs=1e-5)
    assert numbers(thresher("predict ids test.vw").out) == pytest.approx(plain, rel=1e-3, abs=1e-5)


def test_a_hash_is_for_names(thresher: Thresher, stories: Path) -> None:
    ran = thresher("train train.svm -m m --bits 18")
    assert (ran.status, ran.out) == (1, "")
    assert "svmlight: bits and hash apply to names, not ids" in ran.err
    assert thresher("boost train-f.vw -m m -q --bits 18 --rounds 1").status == 0
    assert load("m").keys.max() < 2**18
