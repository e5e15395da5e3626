"""``thresher predict``: one line for each row, skipped or not, and the ids beside them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import thresher as package
from tests.cli.conftest import Thresher
from thresher.data.files import blocks
from thresher.data.formats.lines.vw import tag_of

A = [1.0, None, 3.0, -2.0, None, None, 4.0, 1.0, None]
"""Values of the only feature of each row; None is a bad row."""
IDS = ["r0", "r1", "two words", 'a "b"', "", "5", "é", "t\tb", "r8"]
SHOWN = [one.replace("\t", r"\t") for one in IDS]


@pytest.mark.parametrize("words", [False, True])
def test_decisions(words: bool, thresher: Thresher) -> None:
    names = ("ham", "spam") if words else ("0", "1")
    rows = [f"{names[k % 7 < 2]},{k % 7 / 7:.3f}" for k in range(140)]
    Path("d.csv").write_text("\n".join(["label,x", *rows, ""]))
    assert thresher("train d.csv -m m -q --passes 3").status == 0
    likely = np.array([float(one) for one in thresher("predict m d.csv --output probability").out.split()])
    for option, threshold in (("--cost fn=9,fp=1", 0.1), ("--cost fn=0,fp=1", 1.0), ("--threshold .4", 0.4)):
        told = thresher(f"predict m d.csv --output decision {option}").out.split()
        assert told == [names[int(p > threshold)] for p in likely]
    assert 0 < np.count_nonzero(likely > 0.1) < len(likely)
    for options, why in (
        ("--output decision", "a decision needs --cost or --threshold"),
        ("--output decision --cost fn=1,fp=1 --threshold 0.5", "a decision needs --cost or --threshold"),
        ("--cost fn=1,fp=1", "--cost needs --output decision"),
        ("--output decision --threshold 2", "must lie in 0..1"),
    ):
        assert why in thresher(f"predict m d.csv {options}").err
    thresher("train d.csv -m h -q --loss hinge")
    why = "gives no probabilities: give --threshold, of a margin"
    assert why in thresher("predict h d.csv --output decision --cost fn=1,fp=1").err
    margins = [float(one) for one in thresher("predict h d.csv").out.split()]
    told = thresher("predict h d.csv --output decision --threshold -0.5").out.split()
    assert told == [names[int(one > -0.5)] for one in margins]
    Path("d.csv").write_text(Path("d.csv").read_text().replace("ham", "0").replace("spam", "1"))
    thresher("train d.csv -m v -q --loss squared")
    assert "which this is not" in thresher("predict v d.csv --output decision --threshold 0.5").err


def test_one_class_of_several(thresher: Thresher) -> None:
    rows = [f"{('bad', 'good', 'great')[k % 3]},{k % 3 - 1 + k % 5 / 9:.3f},{k * 7 % 11}" for k in range(90)]
    Path("d.csv").write_text("\n".join(["label,a,b", *rows, ""]))
    thresher("train d.csv -m m -q --outputs classes --rule sgd --passes 2")
    every = [line.split("\t") for line in thresher("weights m").out.splitlines()]
    for name in ("bad", "good", "great"):
        told = [line.split("\t") for line in thresher(f"weights m --class {name} --top 1").out.splitlines()]
        own = [row for row in every if row[2] == name]
        assert told == [own[0], own[-1]]
        assert own[-1][0] == "intercept"
    whole = [json.loads(line) for line in thresher("predict m d.csv --output explain").out.splitlines()]
    for of in ("predicted", "good"):
        lines = thresher(f"predict m d.csv --output explain --class {of} --top 1").out.splitlines()
        for one, all_of_them in zip(map(json.loads, lines), whole, strict=True):
            name = all_of_them["label"] if of == "predicted" else of
            for key in ("probability", "margin", "intercept"):
                assert one[key] == all_of_them[key][name]
            terms = {term["feature"]: term["contribution"][name] for term in all_of_them["features"]}
            order = sorted(filter(terms.get, terms), key=lambda key: -abs(terms[key]))[:1]
            explained = [(term["feature"], term["contribution"]) for term in one["features"]]
            assert explained == [(key, terms[key]) for key in order]
            found = one["intercept"] + sum(terms[key] for key in order) + one["rest"]
            assert found == pytest.approx(one["margin"], abs=1e-5)
            assert one["label"] == all_of_them["label"]
    assert {one["label"] for one in whole} > {"bad"}
    for command, why in (
        ("weights m --class worst", "no class is called 'worst': give one of bad, good, great"),
        ("predict m d.csv --output explain --class worst", "no class is called 'worst': give one of bad"),
        ("predict m d.csv --class good", "--class needs --output explain"),
    ):
        assert why in thresher(command).err
    Path("two.csv").write_text(Path("d.csv").read_text().replace("bad", "good"))
    thresher("train two.csv -m m -q")
    assert "no class is called 'good': the model has one output" in thresher("weights m --class good").err


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _svmlight(path: str) -> None:
    lines = [f"1 1:{'x' if a is None else a}\n" for a in A]
    Path(path).write_text("".join(["# a comment\n", *lines[:4], "\n", *lines[4:]]))


def _vw(path: str) -> None:
    tags = [one.replace(" ", "_") for one in SHOWN]
    lines = [f"1 '{tag} | 1:{'nan' if a is None else a}\n" for tag, a in zip(tags, A, strict=True)]
    Path(path).write_text("\n".join(lines).replace("1 ' |", "1 |"))


def _csv(path: str, delimiter: str = ",", quote: Callable[[str], str] = _quoted) -> None:
    rows = [f"{'x' if a is None else a}{delimiter}{quote(i)}\n" for a, i in zip(A, IDS, strict=True)]
    Path(path).write_text(f"a{delimiter}id\n" + "\n".join(rows))


def _tsv(path: str) -> None:
    _csv(path, "\t", lambda text: text.replace("\t", r"\t"))


def _jsonl(path: str) -> None:
    rows = [
        {"a": "x" if a is None else a, "id": int(i) if i == "5" else i or None}
        for a, i in zip(A, IDS, strict=True)
    ]
    Path(path).write_text("\n\n".join(json.dumps(row) for row in rows))


def _table() -> Any:
    return pa.table({"a": [float("inf") if a is None else a for a in A], "id": [one or None for one in IDS]})


FORMATS: dict[str, tuple[Callable[[str], object], str]] = {
    "svmlight": (_svmlight, ""),
    "vw": (_vw, "tag"),
    "csv": (_csv, "id"),
    "tsv": (_tsv, "2"),
    "jsonl": (_jsonl, "id"),
    "parquet": (lambda path: pq.write_table(_table(), path, row_group_size=3), "id"),
    "arrow": (lambda path: feather.write_feather(_table(), path, chunksize=2), "id"),
}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few lines, so that some hold only bad ones."""
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 24)


def learned_from(form: str, thresher: Thresher) -> str:
    """The format, whose rows are now in the file ``rows``, with a model ``m`` of such data."""
    FORMATS[form][0]("rows")
    if form in ("svmlight", "vw"):
        ran = thresher(f"train rows -m m -q --rule sgd --format {form} --on-error skip")
    else:
        Path("train.csv").write_text("a,label\n1.0,1\n2.5,0\n-1.0,0\n")
        ran = thresher("train train.csv -m m -q --rule sgd")
    assert ran.status == 0, ran.err
    return form


@pytest.fixture(params=FORMATS)
def form(request: pytest.FixtureRequest, small: None, plainly: None, thresher: Thresher) -> str:
    return learned_from(request.param, thresher)


def test_lines_match_rows(form: str, thresher: Thresher) -> None:
    bad = [a is None for a in A]
    ran = thresher.ok(f"predict m rows --format {form} --on-error skip {_ignoring(form)}")
    lines = ran.out.splitlines()
    assert [line == "nan" for line in lines] == bad
    assert dict(zip(A, lines, strict=True))[1.0] == lines[0]
    assert len(set(lines)) == 5
    for output in ("probability", "label"):
        ran = thresher(f"predict m rows --format {form} --on-error skip --output {output} {_ignoring(form)}")
        assert [line == "nan" for line in ran.out.splitlines()] == bad
    more: Any = {"ignore": ("id",)} if _ignoring(form) else {}
    for skip in ("skip", "quarantine=q"):
        found = package.load("m").predict("rows", format=form, on_error=skip, **more)
        assert [f"{margin:.9g}" for margin in found] == lines


def _ignoring(form: str) -> str:
    return "" if form in ("svmlight", "vw") else "--ignore id"


def test_ids_match_rows(form: str, thresher: Thresher) -> None:
    alone = thresher(f"predict m rows --format {form} --on-error skip {_ignoring(form)}").out.splitlines()
    identity = FORMATS[form][1]
    ran = thresher("predict", "m", "rows", "--format", form, "--on-error", "skip", "--id", identity or "id")
    if not identity:
        assert (ran.status, "has no ids" in ran.err) == (1, True)
        return
    assert ran.status == 0, ran.err
    ids = [one.replace(" ", "_") for one in SHOWN] if form == "vw" else SHOWN
    assert ran.out.splitlines() == [f"{one}\t{line}" for one, line in zip(ids, alone, strict=True)]
    words = ["predict", "m", "rows", "--format", form, "--on-error", "quarantine=q", "--id", identity]
    for _ in range(2):  # the second time over the first
        assert thresher(*words, "-o", "out").status == 0
    assert Path("out").read_text() == ran.out
    assert thresher(f"predict m rows --format {form} --on-error skip {_ignoring(form)} -o out").status == 2


def test_ids_of_quoted_cells(narrow: None, thresher: Thresher) -> None:
    Path("train.csv").write_text("a,label\n" + "1,1\n2,0\n" * 20)
    Path("new.csv").write_text('id,a\r\n"two, cells",1\r\n"odd ""one""",x\r\n')
    assert thresher("train train.csv -m m -q").status == 0
    ran = thresher("predict m new.csv --on-error skip --id 1 --output label")
    assert ran.out == 'two, cells\t1\nodd "one"\tnan\n'


def test_several_outputs_and_class_words(small: None, narrow: None, thresher: Thresher) -> None:
    Path("train.csv").write_text("a,label\n1,red\n2,blue\n3,green\nx,red\n1,red\n")
    assert thresher("train train.csv -m m -q --outputs classes --numeric a --on-error skip").status == 0
    Path("new.csv").write_text("a,key\n1,k\nx,l\n")
    first, second = thresher("predict m new.csv --on-error skip --id key").out.splitlines()
    assert (len(first.split("\t")), second) == (4, "l\tnan\tnan\tnan")
    ran = thresher("predict m new.csv --on-error skip --id key --output label")
    assert ran.out == "k\tred\nl\tnan\n"
    proba = package.load("m").predict_proba("new.csv", on_error="skip", ignore=("key",))
    assert (proba.shape, np.isnan(proba).any(axis=1).tolist()) == ((2, 3), [False, True])
    labels = package.load("m").predict("new.csv", "label", on_error="skip", ignore=("key",))
    assert labels[0] == "red"
    assert np.isnan(labels[1])


def test_an_id_may_be_a_feature_and_a_wrong_one_is_named(narrow: None, thresher: Thresher) -> None:
    Path("train.csv").write_text("a,city,label\n1,Ulm,1\n2,Kiel,0\n")
    assert thresher("train train.csv -m m -q").status == 0
    plain = thresher("predict m train.csv").out.splitlines()
    assert thresher("predict m train.csv --id city").out.splitlines() == [
        f"{city}\t{line}" for city, line in zip(("Ulm", "Kiel"), plain, strict=True)
    ]
    ran = thresher("predict m train.csv --id citty")
    assert ran.status == 1
    assert ran.err == "thresher: train.csv: --id: no column is called 'citty'; did you mean 'city'?\n"
    Path("train.vw").write_text("1 | a\n-1 | b\n")
    assert thresher("train train.vw -m v -q --rule sgd").status == 0
    ran = thresher("predict v train.vw --id city")
    assert "use --id tag" in ran.err


@pytest.mark.parametrize(
    ("line", "tag"),
    [
        *(("1 tag|f a", "tag"), ("1 'tag |f a", "tag"), ("tag| a", "tag"), ("1 2 |f a", "")),
        *(("1 |f a 'b |g", ""), ("| a", ""), ("1\t'it's\t| a", "it's"), ("no bar", "")),
    ],
)
def test_the_tag_of_a_line_of_vw_text(line: str, tag: str) -> None:
    assert tag_of(line.encode()) == tag
