"""Laws 5 and 9 from end to end: how data are stored changes nothing, and no line is lost in silence."""

from pathlib import Path

import pytest

from tests.cli.conftest import Thresher
from tests.models import without_record

BAD = [
    *(b"1 5\n", b"7 1:1\n", b"nan 1:1\n", b"1 1:inf\n", b"1 x:1\n", b"\xff\xfe\n", b"1 1:1 2:\n"),
    *(b"1 -3:1\n", b"1 1e400:1\n", b"one\n", b"1 99999999999999999999:1\n", b"-1 4:--2\n"),
]


def littered(text: bytes) -> bytes:
    """Every 30th line is followed by a bad one, every 50th by a blank or a comment."""
    lines = []
    for k, line in enumerate(text.splitlines(keepends=True)):
        lines.append(line)
        if k % 30 == 0:
            lines.append(BAD[k // 30 % len(BAD)])
        if k % 50 == 0:
            lines.append(b"\n" if k % 100 else b"# a comment\n")
    return b"".join(lines)


@pytest.mark.parametrize(("kind", "passes"), [("skip", 1), ("quarantine=bad.txt", 2)])
def test_nothing_is_learned_from_bad_lines(thresher: Thresher, folder: Path, kind: str, passes: int) -> None:
    """Law 9: lines = examples + blank + skipped, and the model is that of the good lines."""
    clean = (folder / "train.svm").read_bytes()
    Path("dirty.svm").write_bytes(littered(clean))
    ran = thresher.ok(f"train dirty.svm -m dirty -q --json --passes {passes} --on-error {kind}")
    assert thresher(f"train train.svm -m clean -q --passes {passes}").status == 0
    assert without_record("dirty") == without_record("clean")

    lines, blank, bad = littered(clean).count(b"\n"), 8, 14
    assert (ran.json["skipped"], ran.json["examples"]) == (bad, 400 * passes)
    assert lines == 400 + blank + bad
    told = ran.err.splitlines()
    assert told[0] == f"skipped 14 bad lines of {lines}:"
    assert [line.strip().split(":")[0] for line in told[1:11]] == ["dirty.svm"] * 10
    assert told[1].strip().startswith("dirty.svm:2:")
    assert told[11] == "  ... and 4 more"
    assert told[12:] == []
    if kind != "skip":
        assert Path("bad.txt").read_bytes() == b"".join(BAD[k % len(BAD)] for k in range(bad))


def test_the_same_at_prediction_and_evaluation(thresher: Thresher, folder: Path, model: Path) -> None:
    Path("dirty.svm").write_bytes(littered((folder / "test.svm").read_bytes()).replace(b"7 1:1\n", b"1 :\n"))
    for command in ("predict", "evaluate"):
        assert thresher(f"{command} {model} dirty.svm").status == 1
        clean, dirty = (thresher(command, model, f, "--on-error", "skip") for f in ("test.svm", "dirty.svm"))
        assert dirty.status == 0
        assert dirty.out.replace("nan\n", "") == clean.out
        assert dirty.out.count("nan\n") == 7 * (command == "predict")
        assert dirty.err.startswith("skipped 7 bad lines of 211:")


def test_bad_lines_of_a_hold_out_are_skipped_and_told_too(thresher: Thresher, folder: Path) -> None:
    Path("held.svm").write_bytes(b"oops\n" + (folder / "test.svm").read_bytes())
    assert thresher("train train.svm -m m -q --holdout held.svm").status == 1
    ran = thresher("train train.svm -m m -q --holdout held.svm --on-error skip --json")
    assert ran.json["holdout_examples"] == 200
    assert ran.json["skipped"] == 0  # of the data
    assert "held.svm:1:1" in ran.err


def test_repeated_and_unsorted_ids_are_merged_and_told(thresher: Thresher) -> None:
    Path("odd.svm").write_text("1 2:1 1:1\n-1 3:0.5 3:0.5\n1 1:1\n")
    Path("even.svm").write_text("1 1:1 2:1\n-1 3:1\n1 1:1\n")
    ran = thresher("train odd.svm -m odd -q")
    assert ran.err == "2 rows with repeated or unsorted ids: merged, sorted\n"
    assert thresher("train even.svm -m even -q").err == ""
    assert without_record("odd") == without_record("even")
