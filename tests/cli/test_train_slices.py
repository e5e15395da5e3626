"""`thresher train --slice`: the table, `--json`, the model file and the report."""

from pathlib import Path

from tests.cli.conftest import Thresher
from thresher import Model


def test_the_command_its_json_and_the_report(thresher: Thresher, folder: Path) -> None:
    rows = [f"{int(k % 7 < 3)},{1 + k % 2},s{k % 4}" for k in range(300)]
    Path("clicks.csv").write_text("\n".join(["click,w,site", *rows, ""]))
    train = "train clicks.csv -m m --label click --weight w --rule sgd --passes 2"
    told = thresher(f"{train} --slice site --json -q").json["slices"]
    assert told == Model.load("m").slices
    assert [row["weight"] for row in told["site"]] == [150, 150, 75, 75]
    shown = thresher(f"{train} --slice site -q").out
    assert "by site (progressive, first pass)\nvalue  examples  weight " in shown
    assert all(f"\n{row['value']} " in shown for row in told["site"])
    assert thresher("report m -o m.html").status == 0
    page = Path("m.html").read_text()
    assert "By site, while learning" in page
    assert all(f'<th scope="row">{row["value"]}<' in page for row in told["site"])
    assert "by site" not in thresher(f"{train} -q").out
    assert thresher("report m -o m.html").status == 0
    assert "while learning" not in Path("m.html").read_text()
    several = thresher(f"{train} --slice site --ensemble 2 -q".replace("-m m", "-m many"))
    assert (several.status, "--slice is for one model" in several.err) == (2, True)
