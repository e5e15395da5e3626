"""Models as C programs predict what Python does, bit for bit."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import thresher
from tests.exporting.engines import Program, c_program, compiled, tcc
from tests.exporting.rows import TRIALS, ExportTrial, trained, written
from tests.plain import not_compiled
from thresher.data.errors import DataError

ROWS = 800


def numbers(out: bytes, like: Any) -> Any:
    return np.array([one.split(b"\t") for one in out.splitlines()], np.float64).reshape(like.shape)


def check(model: Any, program: Program, data: Path, output: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = model.predict(data, output, on_error="skip")
    status, out, err = program(output, data.read_bytes())
    assert err.count("line ") == int(np.isnan(expected.reshape(len(expected), -1)[:, 0]).sum())
    assert status == int(np.isnan(expected).any())
    np.testing.assert_array_equal(numbers(out, expected), expected)


@pytest.fixture(scope="module", params=TRIALS, ids=lambda one: one.name)
def case(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[ExportTrial, Any, Path]:
    folder = tmp_path_factory.mktemp(request.param.name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return request.param, trained(request.param, folder), folder


def test_every_bit_without_a_warning(case: tuple[ExportTrial, Any, Path]) -> None:
    trial, model, folder = case
    assert all(one.nonzero > 2 for one in getattr(model, "models", [model]))
    data = written(trial, folder / trial.file, ROWS, 2)
    program = c_program(str(thresher.export(model, "c")), folder / "model")
    check(model, program, data, "margin")
    check(model, program, data, "probability" if model.head.joint.PROBABILITY else "label")
    text = str(thresher.export(case[1], "c"))
    for main in ("", "#define THRESHER_MAIN\n"):
        compiled(main + text, case[2] / "silent")


LINES = {
    "quotes.csv": (b'1,"a""b",3\n0,"",x\n0,c,2\n', b'1,"a""b",3\n\n0,c,1\n'),
    "bare.csv": (b'1,"a""b",3\n0,c,2\n', b'"a""b",3\nc,1\n'),
    "blank.csv": (b'1,"a""b",3\n0,c,2\n', b'\n\r\n1,c,3\n\n0,c,"4"\n  \n'),
    "headed.csv": (b"label,w,x\n1,a,3\n0,c,2\n", b'\n\nw,x\n\na,1\nc,""\n'),
    "single.csv": (b"label,x\n" + b"1,3\n0,2\n", b"x\n1\n\n2\n\r\n\n"),
    "finite.csv": (b"label,c\n" + b"1,3\n0,2.0\n", b"c,d\n3,\nnan,\n-INF,\n inf ,\n2,\nnano,\n"),
    "ids.svm": (b"1 1:2\n0 2:1\n", b"\n \t \n# 1:2\n1 1:3 # 2:5\n1\n  # no row\n0\n"),
    "odd.svm": (
        b"1 1:2\n0 2:1\n",
        b"1 1:1\n1,2,3\nlabel,x\nx\n1:2\n5 1:2 1:3\n1 18446744073709551616:1\n1 18446744073709551617:1\n"
        b"1 +1:1\n1 -1:1\n1 :1\n1 1:\n1 1:2 x\n1 1:2 3\n1 qid:4 1:2\nqid:x 1:2\nqid:4 1:2\n1 1:2 qid:4\n"
        b"1 qid:4 qid:5\n1 qid:\n1:2 1 3:4\n1e5 1:1\nnan 1:1\n1e39 1:1\n1 0001:3\n1 1:2#c\n"
        b"1,2 1:2\n1;2 1:2\n",
    ),
    "weighted.svm": (
        b"1:2 1:2\n0:1 2:1\n",
        b"1 1:1\n1:2 1:3\n2:1\n1:x 1:3\n1:-2 1:3\n1:0 1:2\n1: 1:2\n:1 1:2\n",
    ),
}
LINES |= {  # words, of which predict reads any as a label
    "words.svm": (
        b"ham 1:2\nspam 2:1\n",
        b"ham 1:1\nspam\nnew 1:1\n1 1:1\n1:2\n 1:1\na,b|c 1:1\nx:y 1:1\nnan 1:1\nnew qid:4 1:2\nqid:4 1:2\n"
        b":1 1:2\nx: 1:2\na\0b 1:2\n1:2 ham 1:2\n# ham\nham# 1:2\n",
    ),
    "weighted_words.svm": (
        b"ham:2 1:2\nspam:1 2:1\n",
        b"ham 1:1\nnew:2 1:1\nx:y 1:1\nx:-1 1:1\n:1 1:2\nx: 1:2\n1:2 1:1\na\0b:1 1:2\n",
    ),
}


@pytest.mark.parametrize("name", LINES)
def test_the_lines_that_are_rows_are_those_of_predict(tmp_path: Path, name: str) -> None:
    data, new = tmp_path / f"train_{name}", tmp_path / name
    trained_on, given = LINES[name]
    data.write_bytes(trained_on * 20)
    if trained_on.startswith(b"label"):
        head = trained_on.index(b"\n") + 1
        data.write_bytes(trained_on[:head] + trained_on[head:] * 20)
    new.write_bytes(given)
    options: Any = {"header": False, "label": "1", "categorical": "2"} if name[0] in "qb" else {}
    options |= {"categorical": "c"} if name[0] == "f" else {}
    options |= {"label_weights": True} if name.startswith("weighted") else {}
    options |= {"classes": ["ham", "spam"]} if "words" in name else {}
    with not_compiled():
        model = thresher.train(data, passes=1, **options)
    check(model, c_program(str(thresher.export(model, "c")), tmp_path / "model"), new, "margin")


def test_usage_and_bad_rows(tmp_path: Path, plainly: None) -> None:
    data = tmp_path / "d.csv"
    data.write_text("label,x,y\n" + "1,2,3\n0,1,4\n" * 20)
    model = thresher.train(data, passes=1, loss="squared-hinge")
    program = c_program(str(thresher.export(model, "c")), tmp_path / "model")
    (tmp_path / "d.svm").write_text("1 1:2\n0 2:1\n" * 20)
    ids = c_program(str(thresher.export(thresher.train(tmp_path / "d.svm", passes=1), "c")), tmp_path / "ids")
    assert ids("--help", b"")[2].endswith(
        "features ID:VALUE with finite values, perhaps after a number as label\n"
    )
    for words in ("nonsense", "spread", "--help", "margin label", "m"):
        status, out, err = program(words, b"x,y\n1,2\n")
        assert (status, out) == (2, b"")
        assert err.startswith("usage: ")
    status, out, err = program("probability", b"x,y\n1,2\n")
    assert (status, out) == (2, b"")
    assert "gives no probabilities; use margin or label" in err
    status, out, err = program("", b"x,y\n1,2\n\n1,much\n2\n")
    assert (status, [*map(bytes.strip, out.splitlines())][1:]) == (1, [b"nan", b"nan"])
    assert err.splitlines() == ["line 4: column 'y': not a finite number", "line 5: not a row of cells"]


@pytest.mark.parametrize("form", ["jsonl", "frame"])
def test_what_is_no_table_of_the_model_is_refused(tmp_path: Path, form: str) -> None:
    """Not answered as rows in which all is missing."""
    rows = [{"label": k % 2, "x": k % 7, "c": "ab"[k % 2]} for k in range(60)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "d.jsonl").write_text(lines)
    data: Any = tmp_path / "d.jsonl" if form == "jsonl" else pd.DataFrame(rows)
    with not_compiled():
        model = thresher.train(data, passes=1, label="label")
    program = c_program(str(thresher.export(model, "c")), tmp_path / "model")
    reads = "this program reads rows of cells separated by tabs, after a header"
    for given in (lines, "x,c\n1,a\n", '"x"\t"c"\n1\ta\n', "1\ta\n", "label\n1\n"):
        status, out, err = program("", given.encode())
        assert (status, out) == (2, b"")
        assert err == f"line 1: the header names no column of the model, such as 'x'; {reads}\n"
    status, out, err = program("", b"x\tc\tx\n1\ta\t2\n")
    assert (status, out, err) == (2, b"", "line 1: two columns are called 'x'\n")
    status, out, err = program("", b"c\tx\na\t3\nb\tmuch\nb\n")
    assert (status, out.splitlines()[1:]) == (1, [b"nan", b"nan"])
    assert float(out.splitlines()[0]) == model.predict(pd.DataFrame({"x": [3], "c": ["a"]}))[0]
    assert reads.removeprefix("this program reads ") in program("--help", b"")[2]


def test_classes_are_written_as_words(tmp_path: Path) -> None:
    words = ["no", 'y"e\\s ??/*/ % \u00e9']
    data = tmp_path / "d.csv"
    lines = [f'"{words[k % 2]}",{k % 7},{"ab"[k % 2]}'.replace('y"', 'y""') for k in range(60)]
    data.write_text("\n".join(["label,x,y", *lines]) + "\n")
    model = thresher.train(data, passes=1)
    program = c_program(str(thresher.export(model, "c")), tmp_path / "model")
    status, out, _ = program("label", data.read_bytes())
    assert (status, out.decode().splitlines()) == (0, [*model.predict(data, "label")])


@pytest.mark.parametrize("output", ["margin", "label"])
def test_several_labels_and_another_compiler(tmp_path: Path, output: Any, plainly: None) -> None:
    data = tmp_path / "d.svm"
    data.write_text("".join(f"{k % 2},{2 + k % 2} 1:{k % 5} {2 + k % 3}:1\n" for k in range(90)))
    model = thresher.train(data, outputs="labels:0-3", passes=1, dtype="float64")
    program = c_program(str(thresher.export(model, "c")), tmp_path / "model", tcc)
    status, out, _ = program(output, data.read_bytes())
    if output == "label":
        assert (status, out.decode().splitlines()) == (
            0,
            model.head.to_lines(model.predict(data, output), output),
        )
    else:
        check(model, program, data, output)


def test_no_weight_and_features_never_seen(tmp_path: Path, plainly: None) -> None:
    data = tmp_path / "d.svm"
    data.write_text("1 1:1\n-1 2:1\n" * 20)
    model = thresher.train(data, l1=1e6, passes=1)
    assert model.nonzero == 0
    check(model, c_program(str(thresher.export(model, "c")), tmp_path / "model"), data, "margin")
    # As with `simplex`, whose weights begin equal.
    model = thresher.train(np.eye(8) + np.eye(8, k=1), [1, -1] * 4, rule="simplex", passes=1)
    with pytest.raises(DataError, match="weights of features that were never seen"):
        thresher.export(model, "c")
