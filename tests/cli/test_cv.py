"""``thresher cv``: penalties judged by folds of the data."""

import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import NARROW, ROWS, Thresher
from tests.commands import start
from thresher.learning.files import model_file
from thresher.learning.training.shares import folds_of

CV = "cv train.svm --rule ft-ftrl --l1 0.05:2:3 --passes 1 --folds 4 -q"
TABLE = "label,a,b\n" + "".join(f"{n % 2},{n % 7 + n % 2}.5,{'xyz'[n % 3]}\n" for n in range(30))


def files_in(folder: Path) -> list[Path]:
    return sorted(one for one in folder.rglob("*") if one.is_file())


def same_files(before: list[str], *more: str) -> bool:
    return sorted(one.name for one in Path().iterdir()) == sorted([*before, *more])


def test_figures_are_those_of_runs_without_each_fold(thresher: Thresher) -> None:
    found = thresher(f"{CV} --json").json
    assert [one["l1"] for one in found["lanes"]] == pytest.approx(np.geomspace(0.05, 2, 3))
    folds = folds_of(0, 400, 4, 0)
    for one in found["lanes"]:
        runs: list[dict[str, Any]] = []
        for k in range(4):
            Path("rest.svm").write_bytes(b"".join(ROWS[n] for n in np.flatnonzero(folds != k)))
            Path("fold.svm").write_bytes(b"".join(ROWS[n] for n in np.flatnonzero(folds == k)))
            trained = thresher(f"train rest.svm -m m -q --json --passes 1 --rule {one['spec']}").json
            runs.append(trained | thresher("evaluate m fold.svm --json").json)
        for name in ("nonzero", "loss", "error", "auc"):
            values = np.array([run[name] for run in runs])
            assert one[name] == pytest.approx(values.mean())
            if name != "nonzero":
                assert one[f"{name}_se"] == pytest.approx(values.std(ddof=1) / 2)
    losses = [one["loss"] for one in found["lanes"]]
    assert found["chosen"] == int(np.argmin(losses))
    assert [one["paired_error"] == 0 for one in found["lanes"]].count(True) == 1
    assert {name: found[name] for name in ("folds", "examples", "passes", "choice", "penalty")} == {
        "folds": 4,
        "examples": 400,
        "passes": 1,
        "choice": "best",
        "penalty": "l1",
    }


def test_passes_and_the_second_reading_are_told(thresher: Thresher) -> None:
    told = thresher(f"{CV.replace(' -q', '').replace('--passes 1', '--passes 2')}").err.splitlines()
    assert [one for one in told if one.startswith(("pass ", "reading "))] == [
        "pass 1 done",
        "pass 2 done",
        "reading the data again to evaluate the folds",
    ]
    assert thresher(CV).err == ""


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize(
    "options",
    [
        "train.svm --rule ft-ftrl:alpha=0.3 --passes 3 --order once --seed 4",
        "train.svm --rule fobos --rate constant:0.5 --loss hinge --no-intercept --dtype float64",
        "train.svm --batch 7 --average --passes 2 --admit 2,bits=12 --store hashed:9 --alpha 2",
        "bad.svm --on-error skip --rule truncated-gradient --order buffer:50",
        "table --format csv --interact a,b --interact b,a --categorical b --delimiter , --missing x,y",
        "table --format csv --loss squared --label 2 --ignore 3 --no-header --scale standard",
        "table --format csv --quoted-newlines --order as-is --outputs classes:0-1 --loss softmax",
    ],
)
def test_the_command_trains_the_model(options: str, thresher: Thresher) -> None:
    """The printed command makes the file that -m wrote, byte for byte, whatever the options."""
    Path("bad.svm").write_bytes(b"no number\n" + b"".join(NARROW[:50]))
    Path("table").write_text(TABLE.partition("\n")[2] if "--no-header" in options else TABLE)
    ran = thresher(f"cv {options} --folds 3 --l1 0.001:0.1:2 -q --json -m m")
    assert ran.status == 0, ran.err
    words = shlex.split(ran.json["command"])
    assert words[:5] == ["thresher", "train", options.split()[0], "-m", "m"]
    content = Path("m").read_bytes()
    Path("m").unlink()
    assert thresher(*words[1:], "-q").status == 0
    assert Path("m").read_bytes() == content
    header, _ = model_file.read("m")
    assert header["recipe"]["rule"] == ran.json["lanes"][ran.json["chosen"]]["spec"]
    assert thresher("weights m").out.count("\n") >= ran.json["nonzero"]


def test_the_table(thresher: Thresher) -> None:
    before = [one.name for one in Path().iterdir()]
    ran = thresher(f"{CV.removesuffix(' -q')} --choose nnz:500")
    lines = ran.out.splitlines()
    heads = "l1 non-zero loss loss se ± paired error error se auc auc se"
    assert (ran.status, " ".join(lines[0].split())) == (0, heads)
    found = thresher(f"{CV} --choose nnz:500 --json").json
    ends = 1 + len(found["lanes"])
    assert [line.startswith("* ") for line in lines[1:ends]] == [
        k == found["chosen"] for k in range(ends - 1)
    ]
    assert [int(line.strip("* ").split()[1].replace(",", "")) for line in lines[1:ends]] == [
        round(one["nonzero"]) for one in found["lanes"]
    ]
    assert found["lanes"][found["chosen"]]["nonzero"] <= 500
    paired = [float(line.strip("* ").split()[4]) for line in lines[1:ends]]
    assert paired == pytest.approx([one["paired_error"] for one in found["lanes"]], rel=1e-5)
    told = dict(line.split("  ", 1) for line in lines[ends:])
    assert told["folds"].strip() == "4"
    assert told["command"].strip() == found["command"]
    assert " -m MODEL --rule ft-ftrl:" in found["command"]
    assert same_files(before)


@pytest.mark.usefixtures("narrow")
def test_a_rule_without_a_penalty_to_vary(thresher: Thresher) -> None:
    for rule in ("pa-i", "ft-ftrl:l1=0.5"):
        found = thresher(f"cv train.svm --rule {rule} --folds 2 --json -m m").json
        assert (len(found["lanes"]), found["chosen"], found["penalty"]) == (1, 0, None)
        assert thresher(*shlex.split(found["command"])[1:], "-q").status == 0
    found = thresher("cv train.svm --rule ft-ftrl:l1=3 --l1 1:2:2 --folds 2 --json").json
    assert [one["l1"] for one in found["lanes"]] == pytest.approx([1, 2])
    ran = thresher("cv train.svm --rule pa-i --folds 2")
    assert ran.out.split()[:2] == ["non-zero", "loss"]
    assert "of the range was chosen" not in ran.err


def test_a_stream_is_read_once_and_then_from_the_cache(
    thresher: Thresher, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = thresher(f"{CV} --json").json
    with open("train.svm") as stream:
        monkeypatch.setattr("sys.stdin", stream)
        ran = thresher(f"{CV} --json".replace("train.svm", "-"))
    assert ran.status == 0, ran.err
    assert ran.json["lanes"] == found["lanes"]


def test_a_cache_changes_nothing(thresher: Thresher) -> None:
    found = thresher(f"{CV} --json").json
    for again in ("", "--no-cache", "--no-cache --threads 1"):
        assert thresher(f"{CV} --json {again}").json["lanes"] == found["lanes"]


def test_bad_lines_are_told_of_once(thresher: Thresher) -> None:
    Path("bad.svm").write_bytes(b"no number\n" + b"".join(ROWS[:50]))
    command = f"{CV} --no-cache --on-error".replace("train", "bad")
    for how in ("skip", "quarantine=q.txt"):
        ran = thresher(f"{command} {how}")
        assert (ran.status, ran.err.count("skipped 1 bad line of 51")) == (0, 1)
    assert Path("q.txt").read_bytes() == b"no number\n"
    assert thresher(f"{command} fail").status == 1


def test_a_class_that_a_fold_does_not_have(thresher: Thresher) -> None:
    """Sorted labels are spread over the folds; a class of one row is in one fold, which alone has an AUC."""
    rows = sorted(ROWS[:60], key=lambda row: row.startswith(b"1"))
    Path("sorted.svm").write_bytes(b"".join(rows))
    lanes = thresher(CV.replace("train", "sorted") + " --json").json["lanes"]
    assert all(one["auc_se"] is not None for one in lanes)
    ones = [row for row in ROWS if row.startswith(b"1")]
    Path("one.svm").write_bytes(b"".join([*[row for row in ROWS[:60] if row not in ones], ones[0]]))
    lanes = thresher(CV.replace("train", "one") + " --json").json["lanes"]
    assert all(one["auc"] is not None and one["auc_se"] is None for one in lanes)
    Path("none.svm").write_bytes(b"".join(ones[:20]))
    lanes = thresher(CV.replace("train", "none") + " --json").json["lanes"]
    assert all(one["auc"] is None and one["error"] is not None for one in lanes)


WRONG: dict[str, tuple[str, int, str]] = {
    "one fold": ("cv train.svm --folds 1", 2, "folds"),
    "too many folds": ("cv train.svm --folds 1001", 2, "folds"),
    "too many models": ("cv train.svm --folds 1000 --l1 1:2:5", 2, "4,096 at most"),
    "more folds than rows": (
        "cv few.svm --folds 4 --l1 1:2:2",
        1,
        "4 folds need at least 4 rows; rows read: 3",
    ),
    "empty": ("cv empty.svm", 1, "empty.svm"),
    "all bad": ("cv all_bad.svm --on-error skip --l1 1:2:2", 1, "all_bad.svm"),
    "all bad, range to be found": ("cv all_bad.svm --on-error skip", 1, "no examples"),
    "bad line in the range": ("cv all_bad.svm", 1, "all_bad.svm:1:1: expected a number"),
    "rule without a penalty": ("cv train.svm --rule sgd --l1 1:2:2", 2, "sgd has no penalty"),
    "single penalty": ("cv train.svm --l1 3", 2, "a range of penalties must be LO:HI:N or auto:N"),
    "order": ("cv train.svm --passes 2 --order every", 2, "in a different fold in each pass"),
    "stream": ("cv -", 2, "read only once: give the range of penalties"),
    "stream without cache": ("cv - --l1 1:2:2 --no-cache", 1, "later passes need the cache"),
    "choice": ("cv train.svm --choose most", 2, "a choice must be best, 1se, within:P% or nnz:N"),
    "overwrites": ("cv train.svm -m train.svm", 2, "it would be overwritten"),
    "diverges": ("cv train.svm --rule sgd --loss squared --rate constant:1e30", 1, "is not finite"),
    "no importance": ("cv zero.svm --label-weights --l1 1:2:2 --folds 2", 1, "no model has a finite loss"),
    "no data": ("cv missing.svm -m m", 1, "missing.svm"),
}


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
@pytest.mark.parametrize("case", WRONG)
def test_wrong_usage(case: str, thresher: Thresher, request: pytest.FixtureRequest) -> None:
    command, status, words = WRONG[case]
    if case == "diverges":
        request.getfixturevalue("narrow")
    Path("few.svm").write_bytes(b"".join(ROWS[:3]))
    Path("empty.svm").write_bytes(b"")
    Path("all_bad.svm").write_bytes(b"no number\n")
    Path("zero.svm").write_bytes(b"1:0 1:1\n-1:0 2:1\n" * 5)
    before = [one.name for one in Path().iterdir()]
    ran = thresher(command)
    assert (ran.status, ran.out) == (status, ""), ran.err
    assert words in ran.err
    assert sum(line.startswith("thresher: ") for line in ran.err.splitlines()) == 1
    assert same_files(before)


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
@pytest.mark.usefixtures("narrow")
def test_a_penalty_that_diverges_in_any_fold_is_not_chosen(thresher: Thresher) -> None:
    options = "--loss squared --rate constant:1e30 --rule fobos --l1 1e-9:1e9:3 --no-intercept"
    ran = thresher(f"cv train.svm --folds 3 {options} --json -m m")
    assert ran.status == 0, ran.err
    dropped = [one["dropped"] is not None for one in ran.json["lanes"]]
    assert sum(dropped) in (1, 2)
    assert not dropped[ran.json["chosen"]]
    assert ran.err.count("the other models continue") == sum(dropped)
    assert all(
        one["dropped"] is None or "without fold 1, the " in one["dropped"] for one in ran.json["lanes"]
    )
    assert [one["nonzero"] is None for one in ran.json["lanes"]] == dropped


def test_no_weights_so_few(thresher: Thresher) -> None:
    ran = thresher(f"{CV} --choose nnz:0 --json")
    assert "no model has at most 0 weights" in ran.err
    assert ran.json["choice"] == f"nnz:{min(one['nonzero'] for one in ran.json['lanes']):.0f}"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_leaves_nothing(how: signal.Signals, folder: Path) -> None:
    files = files_in(folder)
    words = ("cv", "-", "--l1", "0.1:1:2", "--folds", "3", "-m", "m", "-q")
    with start(*words, folder=folder, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"1 1:1\n-1 2:1\n" * 500_000)  # more than a pipe holds, so the process is reading
        process.stdin.flush()
        process.send_signal(how)
        assert process.wait(20) == 130
        assert process.stderr.read().endswith(b"thresher: interrupted\n")
    assert files_in(folder) == files


def test_a_range_wins_over_the_penalty_of_a_rule(thresher: Thresher) -> None:
    told = [
        thresher(f"cv train.svm --rule ft-ftrl:{l1} --l1 1:2:2 --json").json for l1 in ("l1=3", "alpha=3")
    ]
    assert [[lane["l1"] for lane in one["lanes"]] for one in told] == [[1.0, 2.0]] * 2
    assert told[0]["lanes"] == told[1]["lanes"]
