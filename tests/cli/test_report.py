"""`thresher report`: files, output, slices."""

import html
import json
import re
from pathlib import Path

import numpy as np
import pytest

import thresher as package
from tests.cli.conftest import Thresher
from tests.test_report import Checked
from thresher.learning.evaluation.curves import wilson

TABLE = ["yes", "no"]


@pytest.fixture
def visits() -> Path:
    rng = np.random.default_rng(4)
    rows = ["click,site,count,price"]
    for k in range(600):
        site = ["a", "b", '"c, <i>"', ""][k % 4] if k % 10 else f"rare{k}"
        count = "" if k % 7 == 0 else str(k % 5)
        rows.append(f"{TABLE[int(rng.random() < 0.3 + 0.1 * (k % 4))]},{site},{count},{rng.random():.3f}")
    Path("visits.csv").write_text("\n".join(rows) + "\n")
    return Path("visits.csv")


def test_slices_are_the_figures_of_their_rows(thresher: Thresher, visits: Path) -> None:
    assert thresher("train visits.csv -m v --label click -q --json").status == 0
    told = thresher("report v --data visits.csv --slice site --slice count -o r.html --json").json
    whole = thresher("evaluate v visits.csv --json").json
    assert told["test"] == {name: value for name, value in whole.items() if name != "nonzero"}
    head, *rows = visits.read_text().splitlines()
    site = {one["value"]: one for one in told["slices"]["site"]}
    assert [*site][:3] == ["b", "c, <i>", "a"] or {"a", "b", "c, <i>"} <= {*site}
    for value, start in (("a", ",a,"), ("c, <i>", ',"c, <i>",'), ("no value", ",,")):
        chosen = [row for row in rows if re.match(f"(yes|no){re.escape(start)}", row)]
        Path("some.csv").write_text("\n".join([head, *chosen]) + "\n")
        alone = thresher("evaluate v some.csv --json").json
        assert site[value]["examples"] == alone["examples"] == len(chosen)
        assert site[value]["error"] == pytest.approx(alone["error"])
        assert site[value]["loss"] == pytest.approx(alone["loss"])
        assert site[value]["observed"] == pytest.approx(alone["base_rate"])
    for rows_of in told["slices"].values():
        assert sum(one["examples"] for one in rows_of) == 600
    counts = {one["value"]: one["examples"] for one in told["slices"]["count"]}
    assert [*counts][:2] == ["under 1", "1 to 2"]
    assert counts["no value"] == 86
    Checked(Path("r.html").read_text())
    for columns in ("--slice 2 --slice 3", "--slice 2-3", "--slice s* --slice *nt"):
        again = thresher(f"report v --data visits.csv {columns} -o r.html --json").json
        assert again["slices"] == told["slices"]


def test_slices_have_intervals_and_small_ones_are_marked(thresher: Thresher, visits: Path) -> None:
    thresher("train visits.csv -m v --label click -q")
    told = thresher("report v --data visits.csv --slice site --slice price -o r.html --json").json
    for row in [one for rows in told["slices"].values() for one in rows]:
        shares = (row["error"], row["observed"])
        for share, name in zip(shares, ("error", "observed"), strict=True):
            assert (row[f"{name}_low"], row[f"{name}_high"]) == pytest.approx(wilson(share, row["examples"]))
        assert row["examples"] == 1 or row["loss_low"] <= row["loss"] <= row["loss_high"]
        positive = row["observed"] * row["examples"]
        few = row["examples"] < 50 or min(positive, row["examples"] - positive) < 9.5
        assert row["small"] == few
    few = [row["small"] for row in told["slices"]["site"]]
    assert any(few)
    assert not all(few)
    page = Path("r.html").read_text()
    assert re.search(r"<td class=.n.>[\d.]+<br><small>[\d.]+ to [\d.]+</small></td>", page)
    assert page.count(" *</th>") == sum(row["small"] for rows in told["slices"].values() for row in rows)

    measured = thresher("evaluate v visits.csv --slice site --slice price --json").json
    assert measured["slices"] == told["slices"]
    ran = thresher("evaluate v visits.csv --slice site")
    lines = ran.out.splitlines()
    head = lines.index("by site") + 1
    assert lines[head].split("  ")[0] == "value"
    assert len(lines) - head - 2 == len(few)
    assert [line.split("  ")[0].endswith(" *") for line in lines[head + 1 : -1]] == few
    assert lines[-1].startswith("A star marks small slices: fewer than 50 examples")
    python = package.evaluate("v", "visits.csv", slices=["site", "price"])
    assert python["slices"] == told["slices"]
    assert "slices" not in package.evaluate("v", "visits.csv")


def test_slices_have_the_threshold_of_the_page(thresher: Thresher, visits: Path) -> None:
    thresher("train visits.csv -m v --label click -q")
    told = thresher("report v --data visits.csv --slice site --threshold 0.6 -o r.html --json").json
    rows = told["slices"]["site"]
    mean = sum(row["error"] * row["weight"] for row in rows) / sum(row["weight"] for row in rows)
    assert mean == pytest.approx(told["test"]["error"])
    plain = thresher("report v --data visits.csv -o r.html --json").json
    assert plain["test"]["error"] != told["test"]["error"]


def test_a_command_is_shown_whole_or_not_at_all(thresher: Thresher, folder: Path) -> None:
    for width, shown in ((30, True), (300, False)):
        names = [f"{'a_rather_long_column_name_' * 3}{k}" for k in range(width)]
        rows = ["y," + ",".join(names)] + [f"{k % 2}," + ",".join([f"{k}.5"] * width) for k in range(9)]
        Path("w.csv").write_text("\n".join([*rows, ""]))
        assert thresher("train w.csv -m w --label y -q").status == 0
        command = thresher("info w --json").json["command"]
        assert thresher("report w -o r.html").status == 0
        page = html.unescape(Path("r.html").read_text())
        assert (command in page) == shown
        assert ("too long for this page" in page) != shown


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--data visits.csv --slice city", "no column is called 'city'"),
        ("--data visits.csv --slice 9", "no column is called '9'; there are 4 columns"),
        ("--data visits.csv --slice 2-3 --slice site", "name each column once"),
        ("--data visits.csv --slice click", "'click' is the label"),
        ("--data visits.csv --slice site --slice site", "name each column once"),
        ("--slice site", "need data: give --data"),
        ("--data visits.csv -o r.txt", "ends in .html"),
        ("--data visits.csv --threshold 2", "must lie in 0..1"),
        ("--data none.csv", "none.csv"),
    ],
)
def test_what_cannot_be(options: str, said: str, thresher: Thresher, visits: Path) -> None:
    thresher("train visits.csv -m v --label click -q")
    ran = thresher(f"report v {options}")
    assert ran.status in (1, 2)
    assert said in ran.err
    assert not Path("v.html").exists()


def test_bad_lines_do_not_shift_slices(thresher: Thresher, visits: Path) -> None:
    thresher("train visits.csv -m v --label click -q")
    Path("bad.csv").write_text(visits.read_text() + "maybe,a,1,0.5\nyes,a,1\n")
    told = thresher("report v --data bad.csv --slice site --on-error skip --json -o r.html").json
    assert sum(one["examples"] for one in told["slices"]["site"]) == 600
    assert "2 of 603 lines of the test data were bad" in Path("r.html").read_text()
    head, *lines = visits.read_text().splitlines(keepends=True)
    wrong = [line if k % 7 else "yes,a,1,cheap\n" + line for k, line in enumerate(lines)]
    Path("bad.csv").write_text(head + "".join(wrong))
    skipping = thresher("report v --data bad.csv --slice site --on-error skip --json -o r.html").json
    assert skipping["slices"] == told["slices"]


def test_slices_of_data_that_can_be_read_only_once(
    thresher: Thresher, visits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    thresher("train visits.csv -m v --label click -q")
    expected = thresher("evaluate v visits.csv --slice site --json").json
    with open("visits.csv") as stream:
        monkeypatch.setattr("sys.stdin", stream)
        assert thresher("evaluate v - --format csv --slice site --json").json == expected


def test_the_command_says_what_it_wrote(thresher: Thresher, model: Path) -> None:
    told = thresher(f"report {model} --data test.svm --json").json
    page = Path(f"{model}.html")
    assert told["bytes"] == page.stat().st_size
    assert told["command"] in page.read_text()
    assert json.dumps(told["model"]["curve"]) == json.dumps(thresher(f"info {model} --json").json["curve"])
