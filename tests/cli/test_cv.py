"""``thresher cv`` and ``thresher select``: models judged by folds and halves of the data."""

import re
import shlex
import signal
import subprocess
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

import thresher as package
from tests.cli.conftest import NARROW, ROWS, Thresher
from tests.commands import start
from tests.stopping import in_pass, stopping
from thresher.learning.files import model_file
from thresher.learning.model.model import Model
from thresher.plans.stability import Selection

CV = "cv train.svm --rule ft-ftrl --l1 0.05:2:3 --passes 1 --folds 4 -q"
NO_NAMES = "features have no names: thresher select with --names finds those in the data"
TABLE = "label,a,b\n" + "".join(f"{n % 2},{n % 7 + n % 2}.5,{'xyz'[n % 3]}\n" for n in range(30))


def files_in(folder: Path) -> list[Path]:
    return sorted(one for one in folder.rglob("*") if one.is_file())


def same_files(before: list[str], *more: str) -> bool:
    return sorted(one.name for one in Path().iterdir()) == sorted([*before, *more])


def test_passes_and_the_second_reading_are_told(thresher: Thresher) -> None:
    told = thresher(f"{CV.replace(' -q', '').replace('--passes 1', '--passes 2')}").err.splitlines()
    assert [one for one in told if one.startswith(("pass ", "reading "))] == [
        *("pass 1 done", "pass 2 done", "reading the data again to evaluate the folds"),
    ]
    assert thresher(CV).err == ""


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize(
    "options",
    [
        "train.svm --rule ft-ftrl:alpha=0.3 --passes 3 --order once --seed 4",
        "train.svm --batch 7 --passes 1 --admit 2,bits=12 --store hashed:9 --alpha 2",
        "bad.svm --on-error skip --rule truncated-gradient --order buffer:50",
        "table --format csv --interact a,b --interact b,a --categorical b --delimiter , --missing x,y",
        "table --format csv --loss squared --label 2 --ignore 3 --no-header --scale standard",
    ],
)
def test_the_command_trains_the_model(options: str, thresher: Thresher) -> None:
    """The printed command makes the file that -m wrote, byte for byte, whatever the options."""
    Path("bad.svm").write_bytes(b"no number\n" + b"".join(NARROW[:50]))
    Path("table").write_text(TABLE.partition("\n")[2] if "--no-header" in options else TABLE)
    ran = thresher.ok(f"cv {options} --folds 3 --l1 0.001:0.1:2 -q --json -m m")
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


def test_a_stream_is_read_once_then_cached(thresher: Thresher, monkeypatch: pytest.MonkeyPatch) -> None:
    found = thresher(f"{CV} --json").json
    with open("train.svm") as stream:
        monkeypatch.setattr("sys.stdin", stream)
        ran = thresher(f"{CV} --json".replace("train.svm", "-"))
    assert ran.status == 0, ran.err
    assert ran.json["lanes"] == found["lanes"]


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
    "empty": ("cv empty.svm", 1, "empty.svm"),
    "all bad": ("cv all_bad.svm --on-error skip --l1 1:2:2", 1, "all_bad.svm"),
    "all bad, range to be found": ("cv all_bad.svm --on-error skip", 1, "no examples"),
    "bad line in the range": ("cv all_bad.svm", 1, "all_bad.svm:1:1: expected a number"),
    "stream without cache": ("cv - --l1 1:2:2 --no-cache", 1, "later passes need the cache"),
    "overwrites": ("cv train.svm -m train.svm", 2, "it would be overwritten"),
    "diverges": ("cv train.svm --rule sgd --loss squared --rate constant:1e30", 1, "is not finite"),
    "no importance": ("cv zero.svm --label-weights --l1 1:2:2 --folds 2", 1, "no model has a finite loss"),
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


def test_no_weights_so_few(thresher: Thresher) -> None:
    ran = thresher(f"{CV} --choose nnz:0 --json")
    assert "no model has at most 0 weights" in ran.err
    assert ran.json["choice"] == f"nnz:{min(one['nonzero'] for one in ran.json['lanes']):.0f}"


def test_a_run_that_is_stopped_leaves_nothing(folder: Path) -> None:
    files = files_in(folder)
    words = ("cv", "-", "--l1", "0.1:1:2", "--folds", "3", "-m", "m", "-q")
    with start(*words, folder=folder, stdin=subprocess.PIPE) as process:
        process.stdin.write(b"1 1:1\n-1 2:1\n" * 500_000)  # more than a pipe holds, so the process is reading
        process.stdin.flush()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 130
        assert process.stderr.read().endswith(b"thresher: interrupted\n")
    assert files_in(folder) == files


COMMAND = "select train.svm -m s --rule ftrl --l1 0.5 --bags 4 --nonzero 40 --passes 2 -q"


def test_it_writes_what_python_does(thresher: Thresher) -> None:
    ran = thresher.ok(f"{COMMAND} --json --order once --seed 4 --table s.tsv --plot s.svg")
    options = {"rule": "ftrl", "l1": 0.5, "bags": 4, "nonzero": 40, "passes": 2, "order": "once", "seed": 4}
    found = package.select("train.svm", **options)  # type: ignore[arg-type]
    found.save("python")
    assert Path("s").read_bytes() == Path("python").read_bytes()
    told = ran.json
    assert (told["halves"], told["selected_per_half"], told["model"]) == (4, 40.0, "s")
    assert told["kept"] == len(told["kept_features"]) == found.kept.sum() > 0
    assert told["kept_features"] == [one for one in found.rows() if one["kept"]]
    assert "s: a selection, not a model: thresher train learns one" in thresher("predict s test.svm").err
    assert (
        "s: a selection, not a model: thresher train learns one (you asked for 1)"
        in thresher("choose s 1 -m m").err
    )
    assert "a selection, whose names are found as it is made: run thresher select again with --names" in (
        thresher("name s test.svm").err
    )
    assert thresher("info s").out.splitlines()[-1] == NO_NAMES
    kept = {*found.keys[found.kept].tolist()}
    rows = [line.split("\t") for line in Path("s.tsv").read_text().splitlines()]
    assert rows[0] == ["feature", "name", "kept", "share", "mean", "low", "high", "sign_changes"]
    assert {int(row[0]) for row in rows[1:] if row[2] == "yes"} == kept
    assert sorted(path.name for path in Path().iterdir()) == sorted(
        ["cache", "python", "s", "s.svg", "s.tsv", "test.svm", "train.svm"]
    )


def test_a_half_is_a_run_on_its_rows(thresher: Thresher) -> None:
    """Law 7: shares counted from models that ``train`` makes of the rows of each half."""
    from thresher.learning.model.bags import Bags

    assert thresher(COMMAND).status == 0
    counts: dict[int, int] = {}
    X = load_svmlight_file(BytesIO(b"".join(ROWS[:400])), zero_based=True)[0].toarray()
    spreads = np.sqrt(X.var(axis=0) / np.maximum((X != 0).mean(axis=0), 1e-9))
    for learned in Bags.of("halves:4").draw(0, 400):
        Path("half.svm").write_bytes(b"".join(np.array(ROWS[:400], object)[learned > 0]))
        assert thresher("train half.svm -m m --rule ftrl --l1 0.5 --passes 2 -q").status == 0
        keys, weights = Model.load("m").weights()
        for key in keys[np.argsort(-np.abs(weights) * spreads[keys], kind="stable")[:40]].tolist():
            counts[key] = counts.get(key, 0) + 1
    found = Selection.load("s")
    assert dict(zip(found.keys.tolist(), (found.share * 4).astype(int).tolist(), strict=True)) == counts


def test_a_run_that_was_stopped_goes_on(thresher: Thresher) -> None:
    assert thresher(COMMAND.replace("-m s", "-m whole")).status == 0
    with stopping(in_pass(2)):
        ran = thresher(COMMAND)
    assert ran.status != 0
    assert Path("s.checkpoint").exists()
    assert not Path("s").exists()
    other = thresher(COMMAND.replace("--bags 4", "--bags 6") + " --resume")
    assert "the checkpoint was made with --bags 4; leave --bags out" in other.err
    thresher.ok(COMMAND + " --resume")
    assert Path("s").read_bytes() == Path("whole").read_bytes()
    assert not Path("s.checkpoint").exists()


def test_the_table_of_features(thresher: Thresher) -> None:
    ran = thresher(COMMAND.removesuffix(" -q"))
    head, *lines = ran.out.splitlines()
    columns = ["feature", "share", "mean weight", "5 % of halves", "95 % of halves", "sign changes"]
    assert re.split(r" {2,}", head.strip()) == columns
    found = Selection.load("s")
    starred = [line for line in lines if line.startswith("*")]
    assert len(starred) == min(found.kept.sum(), 20)
    left = len(found.keys) - 20
    assert (found.kept.sum() <= 20, f"... and {left} more that are not kept" in lines) == (True, True)
    assert replace(found, threshold=0.0).lines()[-1] == f"... and {left} more that are kept"
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


def test_select_says_how_features_get_names(thresher: Thresher) -> None:
    Path("t.csv").write_text("label,town\n" + "".join(f"{k % 2},{'ab'[k % 2]}\n" for k in range(400)))
    for data, hints in (("t.csv", True), ("t.csv --names", False), ("train.svm", False)):
        told = thresher.ok(f"select {data} --bags 4 --false 9 --passes 1 -m t").out
        assert (NO_NAMES in told.splitlines(), "town=" in told) == (hints, "--names" in data)


def test_info_lists_what_is_kept(thresher: Thresher) -> None:
    found = package.select("train.svm", rule="ftrl", l1=0.3, bags=4, false=400, nonzero=200)
    found.save("s t")
    told, kept = thresher("info", "s t", "--json").json, int(found.kept.sum())
    assert [one["feature"] for one in told["kept_features"]] == found.keys[found.kept].tolist()
    lines = thresher("info", "s t").out.splitlines()
    head = next(k for k, line in enumerate(lines) if line.startswith("feature "))
    assert [int(line.split()[0]) for line in lines[head + 1 : head + 21]] == found.keys[:20].tolist()
    assert kept > 20 == len(lines) - head - 4
    assert lines[-3] == f"... and {kept - 20:,} more: thresher info 's t' --table FILE.tsv writes all"
    assert "kept" not in lines[head].split()


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
