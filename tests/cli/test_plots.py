"""``--plot FILE.svg``: the picture agrees with the figures."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import thresher as package
from tests.cli.conftest import Thresher

SVG = "{http://www.w3.org/2000/svg}"


def texts(path: str) -> list[str]:
    """All text in a picture, its description first."""
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


def test_later_passes_are_drawn_as_such(drawn: Thresher) -> None:
    drawn("train train.svm -m m --passes 3 -q --plot three.svg --curve c")
    heading, *rows = (line.split("\t") for line in Path("c").read_text().splitlines())
    again = [int(row[heading.index("in_pass")]) > 1 for row in rows]
    averages = {row[heading.index("average")] for row, later in zip(rows, again, strict=True) if later}
    said, *labels = texts("three.svg")
    assert len(averages) == 1
    assert f"loss is {float(averages.pop()):.4g}, that of the first pass, and" in said
    assert "rows seen before" in labels
    drawn_points = [len(points) for points in lines("three.svg")]
    assert sorted(drawn_points) == sorted([again.count(False)] * 2 + [again.count(True)] + [len(rows)] * 2)
    package.train("train.svm", passes=3, plot="python.svg")
    said, *labels = texts("python.svg")
    assert "that of the first pass" in said
    assert "rows seen before" not in labels, "the curve of a model does not know of them"


def test_python_draws_what_the_command_draws(drawn: Thresher) -> None:
    model = package.train("train.svm", passes=1, holdout=0.2, plot="python.svg")
    assert Path("python.svg").read_bytes() == Path("train.svg").read_bytes()
    assert drawn("evaluate m test.svm --plot command.svg").status == 0
    package.evaluate(model, "test.svm", plot="python.svg")
    assert Path("python.svg").read_bytes() == Path("command.svg").read_bytes()


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


def test_without_probabilities_the_error_of_each_class_is_drawn(thresher: Thresher) -> None:
    assert thresher("train train.svm -m m --loss hinge -q").status == 0
    figures = thresher("evaluate m test.svm --json --plot e.svg").json
    told = texts("e.svg")
    for one in figures["by_class"]:
        assert one["class"] in told
        missed = float(f"{100 * (1 - one['recall']):.4g}")
        assert f"{missed:g}%" in told


@pytest.mark.usefixtures("plainly")
def test_numbers_are_drawn_beside_what_was_observed(thresher: Thresher) -> None:
    Path("homes.csv").write_text("price,rooms\n" + "".join(f"{3 * k % 50},{k % 50}\n" for k in range(200)))
    assert thresher("train homes.csv -m m --label price --loss squared --numeric rooms -q").status == 0
    figures = thresher("evaluate m homes.csv --json --plot e.svg").json
    assert sum(one["weight"] for one in figures["calibration"]) == 200
    assert f"the root mean squared error is {figures['rmse']:.4g}." in texts("e.svg")[0]


def test_path_draws_the_frontier(thresher: Thresher) -> None:
    ran = thresher("path train.svm -m f --rule ftrl --l1 0.1:1:3 --plot f.svg --json")
    assert ran.status == 0
    chosen = ran.json["lanes"][ran.json["chosen"]]
    assert f"the one chosen has {chosen['nonzero']:,} and a held-out loss" in texts("f.svg")[0]
    again = thresher("path train.svm -m g --rule ftrl --l1 0.1:1:3 --plot g.svg --choose nnz:40 -q")
    assert again.status == 0
    assert texts("g.svg")[0] != texts("f.svg")[0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("train train.svm -m new --plot a.png", "ends in .svg, not 'a.png'"),
        ("train train.svm -m new --plot none/a.svg", "no such directory"),
        ("train train.svm -m new.svg --plot new.svg", "named twice"),
        ("evaluate m test.svm --plot test", "ends in .svg"),
        ("path train.svm -m f --plot none/frontier.svg", "no such directory"),
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


def test_wrong_names_in_python(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"ends in \.svg, not 'a.png'"):
        package.train("train.svm", plot="a.png")
    with pytest.raises(FileNotFoundError):
        package.train("train.svm", plot="none/a.svg")
