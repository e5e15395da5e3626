"""``thresher export``: what is written where, and what is refused before."""

import json
import runpy
from pathlib import Path

import pytest

import thresher as package
from tests.cli.conftest import Thresher
from thresher.data.features.murmur import hash_bytes
from thresher.exporting.description import Link, link_of
from thresher.learning.model.objective import Objective

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def clicks(folder: Path, thresher: Thresher, plainly: None) -> Path:
    """A model of a table, in ``m``."""
    rows = "".join(f"{k % 2},{1 + k % 2 + k % 3},{'ab'[k % 2]}\n" for k in range(60))
    (folder / "d.csv").write_text("label,x,c\n" + rows)
    assert thresher("train d.csv -m m -q --passes 1").status == 0
    return folder / "m"


def test_to_standard_output_or_a_file(thresher: Thresher, clicks: Path) -> None:
    for target in ("c", "js", "mjs", "json"):
        printed = thresher(f"export m --to {target}")
        assert (printed.status, printed.err) == (0, "")
        ran = thresher(f"export m --to {target} -o out.{target}")
        assert (ran.status, ran.out, ran.err) == (0, "", "")
        assert Path(f"out.{target}").read_text() == printed.out
        assert thresher(f"export m --to {target} -o out.{target}").status == 0


def test_the_description_says_all(thresher: Thresher, clicks: Path) -> None:
    told = json.loads(thresher("export m --to json").out)
    assert (told["thresher_export"], told["rows"], told["labels"]) == (1, "columns", ["0", "1"])
    x, c = told["columns"]
    assert (x["name"], x["kind"], int(x["key"])) == ("x", "numeric", hash_bytes(b"x"))
    assert (c["name"], c["kind"], int(c["seed"])) == ("c", "categorical", hash_bytes(b"c"))
    (model,) = told["models"]
    assert {*map(int, model["keys"])} <= {
        hash_bytes(b"x"),
        *(hash_bytes(v, hash_bytes(b"c")) for v in (b"a", b"b")),
    }
    assert [*map(int, model["means"])] == [hash_bytes(b"x")]


def test_files_of_another_kind_are_kept(thresher: Thresher, clicks: Path) -> None:
    Path("notes.c").write_text("int main(void) { return 0; }\n")
    for target in ("notes.c", "m", "d.csv"):
        before = Path(target).read_bytes()
        ran = thresher(f"export m --to c -o {target}")
        assert ran.status != 0
        assert ran.err.count("\n") == 1
        assert Path(target).read_bytes() == before


def test_what_cannot_be_exported_is_refused(thresher: Thresher, clicks: Path) -> None:
    assert thresher("export m --to cobol").status == 2
    assert thresher("export m").status == 2
    thresher.fails(
        "export m --to onnx -o out.onnx", 1, "ONNX cannot express column 'c', which is categorical"
    )
    assert not Path("out.onnx").exists()
    model = package.train([{"size": 3.0}, {"size": -2.0}] * 30, [1, -1] * 30, passes=1)
    with pytest.raises(ValueError, match="names but no columns"):
        package.export(model, "c")
    with pytest.raises(ValueError, match="must be one of c, js"):
        package.export(model, "cobol")


@pytest.mark.parametrize(
    ("loss", "outputs", "link"),
    [
        ("logistic", "one", Link("sigmoid", 1.0)),
        ("exponential", "one", Link("sigmoid", 2.0)),
        ("modified-huber", "one", Link("ramp")),
        ("hinge", "one", Link("identity")),
        ("huber", "values:3", Link("identity")),
        ("poisson:offset=-0.25", "one", Link("exp", -0.25)),
        ("softmax", "classes:0-4", Link("softmax", 1.0)),
        ("crammer-singer", "classes:0-4", Link("identity")),
        ("logistic", "classes:0-2", Link("sigmoid", 1.0)),
    ],
)
def test_links_are_found_by_their_values(loss: str, outputs: str, link: Link) -> None:
    assert link_of(Objective(loss, outputs)) == link


def test_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "export_c.py"), run_name="__main__")
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("a model of ")
    assert rest in ([], ["the program predicts the same bits"])
