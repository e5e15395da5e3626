"""What commands say of late, missing and mistyped columns. Remedies are tried on the data at hand."""

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import thresher as package
from tests.cli.conftest import Thresher
from tests.data.test_late_columns import LATE, late_csv, late_jsonl

pytestmark = pytest.mark.usefixtures("plainly")
OPTION = re.compile(r"--(?:numeric|categorical|ignore) [^\s;]+")


def write_two(folder: Path) -> None:
    (folder / "one.csv").write_text("label,a,x\n" + "1,2,5\n0,1,6\n" * 20)
    (folder / "two.csv").write_text("b,label,a\n" + "7,1,2\n8,0,1\n" * 20)


def warned(err: str) -> list[str]:
    return [line for line in err.splitlines() if line.startswith("warning: ")]


def test_late_fields(thresher: Thresher, folder: Path) -> None:
    late_jsonl(folder, [{key: value for key, value in row.items() if key != "d"} for row in LATE[:2]])
    train = "train late.jsonl -m m -q --no-centre --ignore pad --json"
    ran = thresher(train)
    (one,) = ran.json["warnings"]
    assert one["name"] == "late-columns"
    assert one["message"] == (
        "columns b (late.jsonl:5), c (late.jsonl:5), n (late.jsonl:5) are ignored, because the first rows"
        " have no value there: use --numeric b,n --categorical c to learn from them, or --ignore b,c,n"
    )
    assert warned(ran.err) == [f"warning: {one['message']}"]
    learned = thresher(f"{train} --numeric b,n --categorical c").json
    assert (learned["warnings"], learned["features_seen"]) == ([], 4)
    ignored = thresher(f"{train[:-7]},b,c,n --json").json
    assert (ignored["warnings"], ignored["features_seen"]) == ([], 1)
    ran = thresher(f"{train} --numeric b,n,aa --categorical c").json["warnings"]
    assert [tuple(one.values()) for one in ran] == [
        ("no-such-column", "no row has a value in column aa (--numeric aa): did you mean 'a'?")
    ]


def test_a_column_without_a_value_at_first(thresher: Thresher, folder: Path) -> None:
    late_csv(folder)
    train = "train late.csv -m m -q --json --ignore pad"
    (message,) = (one["message"] for one in thresher(train).json["warnings"])
    assert "columns n (late.csv:6), c (late.csv:6) are ignored" in message
    remedies = OPTION.findall(message)
    assert remedies == ["--numeric n", "--categorical c", "--ignore n,c"]
    assert thresher(f"{train} {' '.join(remedies[:2])}").json["features_seen"] == 4
    assert thresher(f"{train},n,c").json["warnings"] == []
    assert thresher(train).status == 0
    assert "columns n (late.csv:6)" in thresher("predict m late.csv").err
    assert thresher("predict m late.csv --ignore n,c").err == ""


def test_files_with_other_columns(thresher: Thresher, folder: Path) -> None:
    write_two(folder)
    train = "train one.csv two.csv -m m -q --json"
    late, missing = thresher(train).json["warnings"]
    assert (late["name"], missing["name"]) == ("late-columns", "missing-columns")
    assert missing["message"].startswith("two.csv has no column x, so every row has a missing value there")
    remedies = OPTION.findall(f"{late['message']}; {missing['message']}")
    assert remedies == ["--numeric b", "--ignore b", "--ignore x"]
    assert "column b (two.csv) is ignored, because the first file has no such column" in late["message"]
    assert thresher(f"{train} --numeric b --ignore x").json["warnings"] == []
    assert thresher(f"{train} --ignore b,x").json["warnings"] == []
    ran = thresher("train one.csv two.csv -m m -q --numeric bb")
    assert "one.csv: no column is called 'bb'" in ran.err


@pytest.mark.parametrize("name", ["amonut", "Amount", "amount_"])
def test_a_misspelt_column_of_new_data(thresher: Thresher, folder: Path, name: str) -> None:
    (folder / "d.csv").write_text("label,amount,x\n" + "1,2,5\n0,1,6\n" * 20)
    (folder / "e.csv").write_text(f"label,{name},x,other\n" + "1,2,5,3\n0,1,6,3\n" * 20)
    assert thresher("train d.csv -m m -q").status == 0
    meant = (
        "e.csv has no column amount, so every row has a missing value there;"
        f" column {name} is ignored: did you mean amount?"
    )
    for command in ("predict", "evaluate"):
        unknown, renamed = warned(thresher(f"{command} m e.csv").err)
        assert "column other (e.csv) is ignored" in unknown
        assert renamed == f"warning: {meant}"


def test_a_misspelt_field_of_objects(thresher: Thresher, folder: Path) -> None:
    """Objects leave out what is missing, so a field counts as lacking only if another may mean it."""
    (folder / "d.csv").write_text("label,amount,x\n" + "1,2,5\n0,1,6\n" * 20)
    (folder / "e.jsonl").write_text('{"label":1,"Amount":2,"x":1,"other":3}\n{"label":0}\n' * 20)
    assert thresher("train d.csv -m m -q").status == 0
    meant = "every row has a missing value there; column Amount is ignored: did you mean amount?"
    unknown, renamed = warned(thresher("evaluate m e.jsonl").err)
    assert "column other (e.jsonl:1) is ignored" in unknown
    assert renamed == f"warning: e.jsonl has no column amount, so {meant}"
    _, heard = hears(lambda: package.load("m").predict([{"Amount": 2}, {"x": 3}]))
    assert heard == [f"the table has no column amount, so {meant} [missing-columns]"]
    (folder / "later.jsonl").write_text('{"label":1,"Amount":2,"x":1}\n{"label":0,"amount":1}\n' * 20)
    (found,) = warned(thresher("predict m later.jsonl").err)
    assert "column Amount (later.jsonl:1) is ignored, because the model was trained without" in found


def test_objects_without_any_column_of_the_model(thresher: Thresher, folder: Path) -> None:
    (folder / "d.csv").write_text("label,amount,x\n" + "1,2,5\n0,1,6\n" * 20)
    (folder / "e.jsonl").write_text('{"LABEL":1,"AMOUNT":2,"X":5}\n{"LABEL":0,"AMOUNT":1}\n')
    (folder / "f.jsonl").write_text('{"Label":1,"amount":2}\n')
    (folder / "g.jsonl").write_text('{"label":1}\n{"label":0}\n')
    (folder / "h.jsonl").write_text("{}\n{}\n")
    assert thresher("train d.csv -m m -q").status == 0
    error = "no column 'amount' (numeric in the training data); did you mean 'AMOUNT'?"
    labels = "no column 'label' of labels: name theirs, --label, to evaluate; did you mean 'LABEL'?"
    both = ("evaluate m e.jsonl", labels), ("train d.csv -m m2 --holdout e.jsonl", labels)
    for command, said in (("predict m e.jsonl", error), *both):
        ran = thresher(command)
        assert (ran.status, ran.out) == (1, "")
        assert f"e.jsonl: {said}\n" in ran.err
    with pytest.raises(package.DataError, match=re.escape(f"the table: {error}")):
        package.load("m").predict([{"AMOUNT": 2, "X": 5}])
    assert "g.jsonl: no column 'amount'" in thresher("predict m g.jsonl").err
    ran = thresher("evaluate m f.jsonl")
    assert "f.jsonl: no column 'label' of labels" in ran.err
    assert ran.err.endswith("did you mean 'Label'?\n")
    assert (
        len(thresher("predict m h.jsonl").out.splitlines()) == len(package.load("m").predict([{}, {}])) == 2
    )


def test_a_misspelt_column_among_training_files(thresher: Thresher, folder: Path) -> None:
    for name, column in (("a", "amount"), ("b", "Amount")):
        (folder / f"{name}.csv").write_text(f"label,{column},x\n" + "1,2,5\n0,1,6\n" * 20)
        (folder / f"{name}.jsonl").write_text(f'{{"label":1,"{column}":2,"x":5}}\n{{"label":0}}\n' * 20)
    for form in ("csv", "jsonl"):
        lacks = f"warning: b.{form} has no column amount, so every row has a missing value there"
        meant = f"{lacks}; column Amount is"
        found = warned(thresher(f"train a.{form} b.{form} -m m -q").err)
        assert found == [f"{meant} ignored: did you mean amount?"]
        assert thresher(f"train a.{form} -m m -q").status == 0
        for option in ("continue", "init"):
            found = warned(thresher(f"train b.{form} --{option} m -m m2 -q").err)
            assert found == [f"{meant} new: did you mean amount?"]


def test_a_start_from_a_model_with_fewer_columns(thresher: Thresher, folder: Path) -> None:
    write_two(folder)
    assert thresher("train one.csv -m m -q --ignore x").status == 0
    for options, kind in (("", "numeric"), ("--categorical b", "categorical"), ("--ignore b", "ignore")):
        ran = thresher(f"train two.csv --init m -m m2 -q {options}")
        assert (ran.status, warned(ran.err)) == (0, [])
        layout = package.load("m2").layout
        assert layout is not None
        assert dict(zip(layout.columns, layout.kinds, strict=True))["b"] == kind
    ran = thresher("train two.csv --init m -m m2 -q --categorical a")
    assert "the model was trained with other columns" in ran.err


def test_lines_that_repeat_the_header(thresher: Thresher, folder: Path) -> None:
    write_two(folder)
    once = Path("one.csv").read_text()
    Path("joined.csv").write_text(once * 2)
    (one,) = thresher("train joined.csv -m m -q --json").json["warnings"]
    assert one["message"].startswith("the line joined.csv:42 repeats the header")
    assert len(thresher("predict m joined.csv").out.splitlines()) == 80
    assert package.load("m").layout == package.train("one.csv").layout


def hears(call: Callable[[], Any]) -> tuple[Any, list[str]]:
    """The result of a call, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    return result, [str(one.message) for one in caught if one.category is package.TroubleWarning]


def test_what_python_says(folder: Path) -> None:
    write_two(folder)
    model, heard = hears(lambda: package.train(["one.csv", "two.csv"]))
    assert 'use numeric="b" to learn from it, or ignore="b" [late-columns]' in heard[0]
    assert len(heard) == 2
    wrong: list[tuple[Any, str]] = [
        (lambda: model.predict("two.csv"), "column b"),
        (lambda: package.evaluate(model, [{"label": 1, "a": 2, "x": 1, "q": 3}]), "column q"),
        (lambda: model.learn([{"label": 1, "a": 2, "x": 1, "q": 3}]), "column q"),
        (lambda: package.report(model, "two.csv", "page.html"), "column b"),
        (lambda: package.boost(["one.csv", "two.csv"]), "column b"),
    ]
    for call, which in wrong:
        assert f"{which} " in hears(call)[1][0]
    start = package.train("one.csv", ignore="x")
    again: Any = package.train("two.csv", init=start)
    assert again.layout.kinds == ("numeric", "label", "numeric", "ignore")
