"""`thresher report` and ``--plot FILE.svg``: files, output, slices; pictures agree with the figures."""

import html
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import thresher as package
from tests.cli.conftest import Thresher
from tests.test_report import Checked
from thresher.learning.evaluation import slices
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
    told = thresher("report v visits.csv --slice site --slice count -o r.html --json").json
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
        again = thresher(f"report v visits.csv {columns} -o r.html --json").json
        assert again["slices"] == told["slices"]


def test_slices_have_intervals_and_small_ones_are_marked(thresher: Thresher, visits: Path) -> None:
    thresher("train visits.csv -m v --label click -q")
    told = thresher("report v visits.csv --slice site --slice price -o r.html --json").json
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
    told = thresher("report v visits.csv --slice site --threshold 0.6 -o r.html --json").json
    rows = told["slices"]["site"]
    mean = sum(row["error"] * row["weight"] for row in rows) / sum(row["weight"] for row in rows)
    assert mean == pytest.approx(told["test"]["error"])
    plain = thresher("report v visits.csv -o r.html --json").json
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


def test_bad_lines_do_not_shift_slices(thresher: Thresher, visits: Path) -> None:
    thresher("train visits.csv -m v --label click -q")
    Path("bad.csv").write_text(visits.read_text() + "maybe,a,1,0.5\nyes,a,1\n")
    told = thresher("report v bad.csv --slice site --on-error skip --json -o r.html").json
    assert sum(one["examples"] for one in told["slices"]["site"]) == 600
    assert "2 of 603 lines of the test data were bad" in Path("r.html").read_text()
    head, *lines = visits.read_text().splitlines(keepends=True)
    wrong = [line if k % 7 else "yes,a,1,cheap\n" + line for k, line in enumerate(lines)]
    Path("bad.csv").write_text(head + "".join(wrong))
    skipping = thresher("report v bad.csv --slice site --on-error skip --json -o r.html").json
    assert skipping["slices"] == told["slices"]


def test_the_command_says_what_it_wrote(thresher: Thresher, model: Path) -> None:
    told = thresher(f"report {model} test.svm --json").json
    page = Path(f"{model}.html")
    assert told["bytes"] == page.stat().st_size
    assert told["command"] in page.read_text()
    assert json.dumps(told["model"]["curve"]) == json.dumps(thresher(f"info {model} --json").json["curve"])


SVG = "{http://www.w3.org/2000/svg}"


def texts(path: str) -> list[str]:
    root = ElementTree.parse(path).getroot()
    assert root.tag == f"{SVG}svg"
    told = [one.text or "" for one in root.iter(f"{SVG}desc")]
    return [*told, *("".join(one.itertext()) for one in root.iter(f"{SVG}text"))]


def lines(path: str) -> list[list[str]]:
    """The points of each line, without the legend."""
    root = ElementTree.parse(path).getroot()
    marks = [one.get("d", "") for one in root.iter(f"{SVG}path") if "line" in one.get("class", "")]
    return [re.findall("[ML]", mark) for mark in marks if "H" not in mark]


@pytest.fixture
def drawn(thresher: Thresher) -> Thresher:
    assert thresher("train train.svm -m m --passes 1 --holdout 0.2 -q --plot train.svg --curve c").status == 0
    return thresher


def test_train_draws_its_table(drawn: Thresher) -> None:
    *_, last = Path("c").read_text().splitlines()
    examples, _, average, _, _, nonzero, seen, *_ = (float(cell) for cell in last.split("\t"))
    said, *labels = texts("train.svg")
    assert f"After {examples:,.0f} examples" in said
    assert f"loss is {average:.4g}, and {nonzero:,.0f} of {seen:,.0f} features" in said
    assert {"logistic loss", "average so far", "since the line before", "held-out rows"} <= set(labels)
    rows = len(Path("c").read_text().splitlines()) - 1
    assert [len(points) for points in lines("train.svg")] == [rows] * 4


def test_evaluate_draws_the_calibration(drawn: Thresher) -> None:
    figures = drawn("evaluate m test.svm --json --plot e.svg").json
    said, *labels = texts("e.svg")
    assert f"the mean distance from the diagonal is {figures['calibration_error']:.3g}." in said
    assert "perfect calibration" in labels
    root = ElementTree.parse("e.svg").getroot()
    titles = [one.text for mark in root.iter(f"{SVG}circle") for one in mark]
    assert titles == [
        f"predicted {one['predicted']:.4g}, observed {one['observed']:.4g}" for one in figures["calibration"]
    ]


@pytest.mark.usefixtures("narrow")
def test_path_draws_the_frontier(thresher: Thresher) -> None:
    ran = thresher.ok("path train.svm -m f --rule ftrl --l1 0.1:1:3 --plot f.svg --json")
    chosen = ran.json["lanes"][ran.json["chosen"]]
    assert f"the one chosen has {chosen['nonzero']:,} and a held-out loss" in texts("f.svg")[0]
    thresher.ok("path train.svm -m g --rule ftrl --l1 0.1:1:3 --plot g.svg --choose nnz:20 -q")
    assert texts("g.svg")[0] != texts("f.svg")[0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("train train.svm -m new --plot a.png", "ends in .svg, not 'a.png'"),
        ("train train.svm -m new.svg --plot new.svg", "named twice"),
        ("path link.svg -m f --rule ftrl --l1 0.1:1:3 --plot link.svg", "named twice"),
        ("evaluate m test.svm --plot link.svg", "exists and is not an SVG picture"),
    ],
)
def test_what_cannot_be_drawn_is_said_before_anything_is_learned(
    line: str, message: str, thresher: Thresher, model: Path
) -> None:
    Path("link.svg").symlink_to("train.svm")
    before = {path.name for path in Path().iterdir()}
    ran = thresher(line)
    assert (ran.status != 0, message in ran.err) == (True, True), ran.err
    assert {path.name for path in Path().iterdir()} == before


@pytest.fixture
def clicks() -> tuple[package.Model, pd.DataFrame]:
    names = ["no value", "all others", '"no value"', ""]
    frame = pd.DataFrame({"label": [0, 1] * 40, "site": [name for name in names for _ in range(20)]})
    return package.train(frame, passes=1), frame


@pytest.mark.filterwarnings("ignore::thresher.TroubleWarning")
def test_values_called_like_the_rows_for_others(clicks: tuple[package.Model, pd.DataFrame]) -> None:
    model, frame = clicks
    rows = package.evaluate(model, frame, slices="site")["slices"]["site"]
    assert [(row["value"], row["examples"]) for row in rows] == [
        *(('"no value"', 20), ('"all others"', 20), ('""no value""', 20), ("no value", 20)),
    ]


@pytest.mark.filterwarnings("ignore::thresher.TroubleWarning")
def test_later_values_share_a_row(
    clicks: tuple[package.Model, pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those beyond the room there is, in the order of their first rows."""
    monkeypatch.setattr(slices, "MOST_CELLS", 4)
    model, frame = clicks
    frame["site"] = ["c", "b", "a", "d"] * 20
    rows = package.evaluate(model, frame, slices="site")["slices"]["site"]
    assert [(row["value"], row["examples"]) for row in rows] == [("c", 20), ("b", 20), ("all others", 40)]
