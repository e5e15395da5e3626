"""Files as other programs write them, and odd names of columns: a sentence that helps."""

import ast
import csv
import io
import json
import re
import shlex
import subprocess
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

import thresher as package
from tests.cli.conftest import Thresher
from thresher.data.columns import as_option_value
from thresher.data.feature_specs import as_list, in_list, names_in
from thresher.options.messages import as_shown, as_stored, mention

ROWS = "label,a,b\n1,2,x\n0,3,y\n"
CITIES = "label,город,都市\n1,Москва,東京都\n0,Нижний Новгород,𠮷野\n"
JQ = "jq -c 'if type == \"array\" then .[] else . end'"
TOLD: list[tuple[str, bytes, str, str, str]] = [
    ("utf-16.csv", ROWS.encode("utf-16"), "UTF-16 text", "iconv -f UTF-16 -t UTF-8", ""),
    ("le.svm", "1 1:2\n0 2:1\n".encode("utf-16-le"), "UTF-16 text", "iconv -f UTF-16LE -t UTF-8", ""),
    ("be.svm", "1 1:2\n0 2:1\n".encode("utf-16-be"), "UTF-16 text", "iconv -f UTF-16BE -t UTF-8", ""),
    ("big.csv", f"\ufeff{ROWS}".encode("utf-16-be"), "UTF-16 text", "iconv -f UTF-16 -t UTF-8", ""),
    ("le.csv", CITIES.encode("utf-16-le"), "UTF-16 text", "iconv -f UTF-16LE -t UTF-8", ""),
    ("be.csv", CITIES.encode("utf-16-be"), "UTF-16 text", "iconv -f UTF-16BE -t UTF-8", ""),
    ("utf-32.csv", CITIES.encode("utf-32"), "UTF-32 text", "iconv -f UTF-32 -t UTF-8", ""),
    ("blank.csv", b"label a\n1 2\n0 3\n", "is the delimiter ' '", "cat", "--delimiter ' '"),
    ("array.jsonl", b'[{"label": 1, "a": 2},\n {"label": 0, "a": 3}]\n', "JSON in several lines", JQ, ""),
    ("array.csv", b'[{"label": 1, "a": 2},{"label": 0}]\n', "in several lines", JQ, "--format jsonl"),
    ("a.jsonl", b'[\n{"label": 1},\n{"label": 0}\n]\n', "JSON in several lines", JQ, ""),
    ("o.jsonl", b'{ "label": 1,\n  "a": 2 }\n{ "label": 0,\n "a": 3 }\n', "JSON in several lines", JQ, ""),
    ("o.json", b'{\n  "label": 1 }\n{ "label": 0 }\n', "JSON in several lines", JQ, "--format jsonl"),
]


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize(("name", "data", "said", "shell", "options"), TOLD, ids=[one[0] for one in TOLD])
def test_one_hint_that_works(
    name: str, data: bytes, said: str, shell: str, options: str, thresher: Thresher
) -> None:
    Path(name).write_bytes(data)
    ran = thresher(f"train {name} -m m -q")
    assert (ran.status, "--classes" in ran.err, "--no-header" in ran.err) == (1, False, False), ran.err
    assert ran.err.count("looks like") <= 1
    assert said in ran.err
    assert shell == "cat" or shell in ran.err
    assert all(word in ran.err for word in re.findall(r"--[a-z]+ (?:'[^']*'|[a-z]+)", options))
    mended = subprocess.run(shell, shell=True, input=data, capture_output=True, check=True).stdout
    Path(f"mended-{name}").write_bytes(mended)
    again = thresher("train", f"mended-{name}", "-m", "m", "-q", "--passes", "1", *shlex.split(options))
    assert (again.status, "examples               2" in again.out) == (0, True), again.err


def test_rows_that_end_with_a_delimiter_are_not_those_of_r(thresher: Thresher) -> None:
    Path("d.csv").write_text("label,a\n1,2,\n0,3,\n")
    thresher.fails("train d.csv -m m -q", 1, "expected 2 columns, found 3")


def test_a_header_alone_has_no_examples(thresher: Thresher) -> None:
    Path("h.csv").write_text("label,a\n")
    assert re.search(r"h\.csv: no examples, only a header$", thresher("train h.csv -m m -q").err.strip())
    Path("b.csv").write_text("label,a\n\n\r\n")
    assert re.search(r"b\.csv: no examples, only a header$", thresher("train b.csv -m m -q").err.strip())


NAMES = [
    *("price, net", "a=b", "my col", '"q"', 'q"q', '"open', "it's", "2", "4", "1-3", "a*", "b?", "[z]", "$x"),
    *("-x", "--y", "or", "a\\b", "x.", " lead", "trail ", "é", "#"),
    *("a", "b", "a,b", ",", '"', "'", "", "::", "`"),
]
KINDS = ("numeric", "bins", "categorical", "text", "ignore")
NAMED = 12


def table(names: list[str]) -> list[dict[str, int]]:
    return [
        {name: (k * (c + 3)) % 5 + 1 for c, name in enumerate(names)} | {"the label": k % 2}
        for k in range(NAMED)
    ]


def kinds_of(model: str) -> dict[str, str]:
    layout = package.load(model).layout
    return dict(zip(layout.columns, layout.kinds, strict=True))


def write(path: Path, names: list[str]) -> None:
    rows = table(names)
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return
    out = io.StringIO()
    writer = csv.writer(out, delimiter="\t" if path.suffix == ".tsv" else ",")
    writer.writerows([[*rows[0]], *([*row.values()] for row in rows)])
    path.write_text(out.getvalue())


def test_a_list_is_read_as_it_is_written() -> None:
    assert names_in(as_list(NAMES)) == tuple(NAMES)
    for name in NAMES:
        assert names_in(in_list(name)) == (name,)
        option = mention(ignore=as_option_value([name, "z"], NAMES))
        assert shlex.split(as_stored(option)) == ["--ignore", as_list([name, "z"])]
        assert ast.literal_eval(as_shown(option).removeprefix("ignore=")) == as_list([name, "z"])


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_info_prints_the_command_of_the_model(name: str, thresher: Thresher, folder: Path) -> None:
    write(folder / name, NAMES)
    for shift in (0, 2):
        kinds = dict(zip(NAMES, cycle(KINDS[shift:] + KINDS[:shift]), strict=False))
        weight, group, *_ = [one for one in NAMES[shift:] if kinds[one] == "ignore" and one]
        del kinds[weight], kinds[group]
        words = [f"--{kind}={as_list([one for one in kinds if kinds[one] == kind])}" for kind in KINDS]
        a, b, *_ = [one for one in kinds if kinds[one] == "categorical"]
        words += [f"--weight={in_list(weight)}", f"--group={in_list(group)}", f"--interact={as_list([a, b])}"]
        thresher.ok("train", name, "-m", "first", "-q", "--label", "the label", *words)
        assert kinds_of("first") == {**kinds, weight: "weight", group: "group", "the label": "label"}
        told = thresher("info", "first").out
        command = shlex.split(next(line for line in told.splitlines() if line.startswith("command"))[7:])
        command[command.index("DATA")], command[command.index("MODEL")] = name, "second"
        thresher.ok(*command[1:], "-q")
        assert Path("first").read_bytes() == Path("second").read_bytes()


@pytest.mark.usefixtures("plainly")
def test_each_option_of_one_column_takes_any_name(thresher: Thresher, folder: Path) -> None:
    write(folder / "t.csv", NAMES)
    for name in filter(None, NAMES[::6]):
        quoted = in_list(name)
        ran = thresher(
            "train", "t.csv", "-m", "m", "-q", f"--label={quoted}", "--loss=squared", "--ignore=the label"
        )
        assert ran.status == 0, ran.err
        assert kinds_of("m")[name] == "label"
    thresher("train", "t.csv", "-m", "m", "-q", "--label=the label", "--categorical=*")
    for name in filter(None, NAMES[1::4]):
        quoted = '"' + name.replace('"', '""') + '"'
        ran = thresher("predict", "m", "t.csv", f"--id={quoted}")
        assert [line.split("\t")[0] for line in ran.out.splitlines()] == [
            str(row[name]) for row in table(NAMES)
        ], name
        assert thresher("evaluate", "m", "t.csv", f"--slice={quoted}").status == 0


@pytest.mark.usefixtures("plainly")
def test_lists_in_python_hold_names_as_they_are(thresher: Thresher, folder: Path) -> None:
    write(folder / "t.csv", NAMES)
    kinds: dict[str, Any] = {kind: NAMES[k::4] for k, kind in enumerate(KINDS[:4])}
    pairs = [kinds["categorical"][:2], kinds["categorical"][2:5]]
    options = [f"--{kind}={as_list(names)}" for kind, names in kinds.items()]
    options += [f"--interact={as_list(pair)}" for pair in pairs]
    thresher.ok("train", "t.csv", "-m", "m", "-q", "--label=the label", *options)
    package.train("t.csv", label="the label", interact=pairs, **kinds).save("n")
    assert package.load("n").layout == package.load("m").layout
    assert Path("n").read_bytes() == Path("m").read_bytes()
