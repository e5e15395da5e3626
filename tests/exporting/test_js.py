"""Models as JavaScript predict what Python does."""

import json
import re
import shutil
import subprocess
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher
from tests.data.reference import BadLineError, float32_of
from tests.data.table_reference import cells_of
from tests.exporting.engines import c_program, js_answers, quickjs
from tests.exporting.rows import TRIALS, ExportTrial, trained, written
from tests.plain import not_compiled
from thresher.exporting.description import describe

ROWS = 300
TOO_LARGE = 1e300
ULPS = 2
"""Engines compute exp with errors of less than one unit in the last place each."""


def rows_of(trial: ExportTrial, model: Any, data: Path) -> list[Any]:
    """The rows of a file as JavaScript takes them, with a letter for each byte."""
    lines = data.read_bytes().split(b"\n")[bool(trial.header) : -1]
    if trial.file.endswith("svm"):
        return [[*map(pair, line.split()[1:])] for line in lines]
    csv, columns = trial.file.endswith("csv"), describe(model).columns
    cells = [cells_of(line, b"," if csv else b"\t", csv) or [] for line in lines]
    return [[row[one.place].decode("latin-1") for one in columns] for row in cells]


def near(found: Any, expected: Any) -> bool:
    with np.errstate(invalid="ignore"):
        same = (found == expected) | (abs(found - expected) <= ULPS * np.spacing(expected))
    return bool(same.all())


def pair(word: bytes) -> list[Any]:
    key, _, value = word.partition(b":")
    try:
        return [int(key), float(float32_of(value.decode()))]
    except (ValueError, BadLineError):
        return [0, TOO_LARGE]


@pytest.mark.parametrize("trial", TRIALS, ids=lambda one: one.name)
def test_every_bit_of_a_margin(trial: ExportTrial, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, data = trained(trial, tmp_path), written(trial, tmp_path / trial.file, ROWS, 3)
        output: Any = "probability" if model.head.joint.PROBABILITY else "label"
        margins, expected = (model.predict(data, one, on_error="skip") for one in ("margin", output))
    rows = rows_of(trial, model, data)
    found = js_answers(str(thresher.export(model, "js")), tmp_path / "model.js", rows)
    for row, one, *wanted in zip(
        rows, found, margins.reshape(ROWS, -1), expected.reshape(ROWS, -1), strict=True
    ):
        if isinstance(one, str):
            assert one.startswith(("RangeError: ", "Error: column ")), one
            assert np.isnan(wanted[0]).all(), row
        elif np.isnan(wanted[0]).any():
            assert "\\u0000" in json.dumps(row), row  # which text files may not have
        else:
            assert [*map(float, one[0])] == wanted[0].tolist(), row
            assert near(np.array(one[1], np.float64), wanted[1]), row


TABLE = "label,age,city,day\n" + "".join(
    f"{'no' if k % 3 else 'yes'},{k % 7}.5,{('Oslo', 'Rome', 'Bern')[k % 3]},2024-05-0{1 + k % 4}\n"
    for k in range(90)
)


@pytest.mark.parametrize("run", ["any", "quickjs"])
def test_rows_are_objects_of_values(tmp_path: Path, run: str) -> None:
    data = tmp_path / "d.csv"
    data.write_text(TABLE)
    model = thresher.train(data, passes=1, categorical="day")
    rows = [{"age": 2.5, "city": "Rome", "day": "2024-05-02"}, {"city": None, "other": 1}]
    text, path = str(thresher.export(model, "js")), tmp_path / "model.js"
    found = (
        json.loads(quickjs(text, path, json.dumps(rows)))
        if run == "quickjs"
        else js_answers(text, path, rows)
    )
    new = tmp_path / "new.csv"
    new.write_text("age,city,day\n2.5,Rome,2024-05-02\n,,\n")
    expected = model.predict(new)
    assert [one[0] for one in found] == expected.reshape(-1, 1).tolist()
    assert [one[2] for one in found] == [*model.predict(new, "label")]


@pytest.mark.parametrize("run", ["any", "quickjs"])
def test_what_is_no_row_is_an_error(tmp_path: Path, run: str) -> None:
    data = tmp_path / "d.csv"
    data.write_text(TABLE)
    text, path = (
        str(thresher.export(thresher.train(data, passes=1, categorical="day"), "js")),
        tmp_path / "m.js",
    )
    wrong: dict[str, Any] = {
        "no column is named nosuch, Age; there are age, city, day": {"nosuch": 1, "Age": 2},
        'column "age" takes a finite number or a boolean, not old': ["old"],  # as bytes
        'column "age" takes a finite number or a boolean, not an object': {"age": {}},
        'column "city" takes text, a number or a boolean, not an object': {"city": {"name": "Oslo"}},
        "a row has 3 values, not 4": ["yes", 2.5, "Oslo", None],
    }
    rows = [*wrong.values()]
    found = (
        json.loads(quickjs(text, path, json.dumps(rows)))
        if run == "quickjs"
        else js_answers(text, path, rows)
    )
    assert found == [f"Error: {one}" for one in wrong]


def test_categories_that_are_numbers_are_finite(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("label,c\n" + "1,3\n0,2.0\n" * 30)
    with not_compiled():
        model = thresher.train(tmp_path / "d.csv", passes=1, categorical="c")
    rows = [{"c": one} for one in (3, "3.0", None, "nan", "-INF", 1e999)]
    text = str(thresher.export(model, "js"))
    same, three, _, *bad = json.loads(
        quickjs(text, tmp_path / "m.js", json.dumps(rows).replace("Infinity", "1e999"))
    )
    assert same == three
    assert all(one.startswith('Error: column "c" takes a finite number') for one in bad)


def test_texts_that_javascript_alone_takes_for_infinite_are_categories(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("label,c\n" + "1,3\n0,2.0\n" * 30)
    cells = ["Infinity", "-Infinity", "+Infinity", "1e400", "-1e400", "+inf", "inf", "-inf", "3"]
    (tmp_path / "new.csv").write_text("c\n" + "".join(f"{one}\n" for one in cells))
    with not_compiled(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = thresher.train(tmp_path / "d.csv", passes=1, categorical="c")
        expected = model.predict(tmp_path / "new.csv", "margin", on_error="skip").reshape(-1)
    c = c_program(str(thresher.export(model, "c")), tmp_path / "m")
    in_c = [float(one) for one in c("margin", (tmp_path / "new.csv").read_bytes())[1].split()]
    found = js_answers(str(thresher.export(model, "js")), tmp_path / "m.js", [{"c": one} for one in cells])
    in_js = [np.nan if isinstance(one, str) else one[0][0] for one in found]
    np.testing.assert_array_equal(in_c, in_js)
    np.testing.assert_allclose(in_js, expected, rtol=1e-6)  # not compiled, products are in float64
    assert [cell for cell, one in zip(cells, in_js, strict=True) if np.isnan(one)] == ["inf", "-inf"]


def test_what_is_no_object_of_columns_is_an_error(tmp_path: Path) -> None:
    from quickjs import Context

    with not_compiled():
        (tmp_path / "d.csv").write_text("label,n\n" + "1,3\n0,2\n" * 30)
        columns = thresher.export(thresher.train(tmp_path / "d.csv", passes=1, rule="sgd"), "js")
        ids = thresher.export(thresher.train(np.eye(2), [1.0, -1.0], passes=1, rule="sgd"), "js")

    def said(text: object, rows: str) -> list[str]:
        code = "row => { try { return `${thresher.margins(row).length}`; } catch (one) { return `${one}`; } }"
        return list(json.loads(Context().eval(f"{text}\nJSON.stringify([{rows}].map({code}))")))

    wrong = "5, null, undefined, 'text', new Map([['n', 1]]), new Date(0), Object.create({n: 1})"
    above = "new (class { get n() { return 1; } })()"
    need = "Error: a row is an object that has the columns as properties of its own, or an array of values"
    assert said(columns, f"{wrong}, {above}") == [need] * 8
    right = "{}, [], {n: 1}, Object.create(null), new (class { n = 1; })()"
    assert said(columns, right) == ["1"] * 5
    bigint = 'Error: column "n" takes a finite number or a boolean, not a BigInt'
    assert said(columns, "{n: 1n}") == [bigint]
    assert said(ids, f"{wrong}, [5], ['12']") == ["Error: a row is an array of pairs [id, value]"] * 9
    assert said(ids, "[[0, 1]], []") == ["1"] * 2


def test_what_is_no_id_is_an_error(tmp_path: Path) -> None:
    with not_compiled():
        model = thresher.train(np.eye(4), [1.0, -1.0, 1.0, -1.0], passes=1, rule="sgd")
    text = str(thresher.export(model, "js"))
    wrong: list[Any] = [-1, 0.5, "x", None, 2.0**64, "18446744073709551616"]
    good, *bad = js_answers(text, tmp_path / "m.js", [[["1", 2]], *([[1, 2], [one, 1]] for one in wrong)])
    assert good[0] == model.predict(np.eye(4)[1:2] * 2).tolist()
    assert all(re.fullmatch(r"Error: .* is no id: a whole number below 2\^64", one) for one in bad)


def test_no_text_of_a_model_ends_its_script(tmp_path: Path) -> None:
    names = ["</script><script>alert(1)//", '"};throw 1;//', "*/ ??/", "${x}`", "__proto__", "\u2028", "a\\"]
    data = tmp_path / "d.csv"
    head = ",".join('"' + name.replace('"', '""') + '"' for name in ["label", *names])
    words = ["</script>", 'say ""hi""\\']
    data.write_text(
        head
        + "\n"
        + "".join(
            f'"{words[k % 2]}",' + ",".join(str(k % (3 + j)) for j in range(7)) + "\n" for k in range(60)
        )
    )
    model = thresher.train(data, passes=1)
    for target in ("js", "mjs", "c", "json"):
        assert b"</script" not in str(thresher.export(model, target)).encode() or target == "json"
    row = {name: 2 for name in names if name != "__proto__"}
    found = js_answers(
        str(thresher.export(model, "js")), tmp_path / "model.js", [[2] * 7, row | {"__proto__": 2}]
    )
    new = tmp_path / "new.csv"
    new.write_text(",".join('"' + name.replace('"', '""') + '"' for name in names) + "\n" + "2," * 6 + "2\n")
    assert found[0][0] == found[1][0] == model.predict(new).tolist()
    assert found[0][2] == model.predict(new, "label")[0]


def test_a_module_says_the_same(tmp_path: Path) -> None:
    data = tmp_path / "d.csv"
    data.write_text(TABLE)
    model = thresher.train(data, passes=1)
    script, module = (str(thresher.export(model, to)) for to in ("js", "mjs"))
    assert script.splitlines()[:-1] == module.splitlines()[:-2]
    assert module.endswith("export default thresher;\n")
    if shutil.which("node"):
        path = tmp_path / "model.mjs"
        path.write_text(module)
        code = (
            f"import {{ predict }} from {json.dumps(str(path))}; console.log(predict([2.5, 'Rome', null])[0])"
        )
        ran = subprocess.run(
            ["node", "--input-type=module", "-e", code], capture_output=True, text=True, check=True
        )
        assert 0 < float(ran.stdout) < 1


def test_large_numbers_are_categories_as_in_training(tmp_path: Path) -> None:
    """JavaScript writes 1e+21 where the training data have 1e21."""
    rows = [{"label": k % 2, "c": (1e21, 2.5e300, 1e-7)[k % 3] if k % 2 else 3} for k in range(120)]
    (tmp_path / "d.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with not_compiled(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = thresher.train(tmp_path / "d.jsonl", passes=1, categorical="c", rule="ftrl:l1=0")
    cells = [{"c": one} for one in (1e21, 2.5e300, 1e-7)]
    found = json.loads(quickjs(str(thresher.export(model, "js")), tmp_path / "m.js", json.dumps(cells)))
    (tmp_path / "new.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in cells))
    with not_compiled():
        expected = model.predict(tmp_path / "new.jsonl", "margin").reshape(-1)
    np.testing.assert_allclose([one[0][0] for one in found], expected, rtol=1e-6)
