"""Columns whose names a shell or a list of columns might read as something else, in every option."""

import ast
import csv
import io
import json
import shlex
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

import thresher as package
from tests.cli.conftest import Thresher
from thresher.data.columns import as_option_value
from thresher.data.feature_specs import as_list, in_list, names_in
from thresher.options.messages import as_shown, as_stored, mention

NAMES = [
    *("price, net", "a=b", "my col", '"q"', 'q"q', '"open', "it's", "2", "4", "1-3", "a*", "b?", "[z]", "$x"),
    *("-x", "--y", "or", "a\\b", "x.", " lead", "trail ", "é", "#"),
    *("a", "b", "a,b", ",", '"', "'", "", "::", "`"),
]
KINDS = ("numeric", "bins", "categorical", "text", "ignore")
ROWS = 12


def table(names: list[str]) -> list[dict[str, int]]:
    return [
        {name: (k * (c + 3)) % 5 + 1 for c, name in enumerate(names)} | {"the label": k % 2}
        for k in range(ROWS)
    ]


def kinds_of(model: str) -> dict[str, str]:
    layout = package.load(model).layout
    assert layout is not None
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
def test_info_prints_a_command_that_makes_the_model_again(
    name: str, thresher: Thresher, folder: Path
) -> None:
    write(folder / name, NAMES)
    for shift in range(len(KINDS)):
        kinds = dict(zip(NAMES, cycle(KINDS[shift:] + KINDS[:shift]), strict=False))
        weight, group, *_ = [one for one in NAMES[shift:] if kinds[one] == "ignore" and one]
        del kinds[weight], kinds[group]
        words = [f"--{kind}={as_list([one for one in kinds if kinds[one] == kind])}" for kind in KINDS]
        a, b, *_ = [one for one in kinds if kinds[one] == "categorical"]
        words += [f"--weight={in_list(weight)}", f"--group={in_list(group)}", f"--interact={as_list([a, b])}"]
        ran = thresher("train", name, "-m", "first", "-q", "--label", "the label", *words)
        assert ran.status == 0, ran.err
        assert kinds_of("first") == {**kinds, weight: "weight", group: "group", "the label": "label"}
        told = thresher("info", "first").out
        command = shlex.split(next(line for line in told.splitlines() if line.startswith("command"))[7:])
        command[command.index("DATA")], command[command.index("MODEL")] = name, "second"
        ran = thresher(*command[1:], "-q")
        assert ran.status == 0, ran.err
        assert Path("first").read_bytes() == Path("second").read_bytes()


@pytest.mark.usefixtures("plainly")
def test_each_option_of_one_column_takes_any_name(thresher: Thresher, folder: Path) -> None:
    write(folder / "t.csv", NAMES)
    for name in filter(None, NAMES[::4]):
        quoted = in_list(name)
        ran = thresher(
            "train", "t.csv", "-m", "m", "-q", f"--label={quoted}", "--loss=squared", "--ignore=the label"
        )
        assert ran.status == 0, ran.err
        assert kinds_of("m")[name] == "label"
    thresher("train", "t.csv", "-m", "m", "-q", "--label=the label", "--categorical=*")
    for name in filter(None, NAMES[::2]):
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
    ran = thresher("train", "t.csv", "-m", "m", "-q", "--label=the label", *options)
    assert ran.status == 0, ran.err
    package.train("t.csv", label="the label", interact=pairs, **kinds).save("n")
    assert package.load("n").layout == package.load("m").layout
    assert Path("n").read_bytes() == Path("m").read_bytes()
