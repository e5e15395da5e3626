"""Labels that are words, on the command line: the same models as with numbers, and words in the output."""

import gzip
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import Thresher
from tests.data.tables import WRITERS, Cells, write_csv
from tests.stopping import full_disk
from thresher.api import load

pytestmark = pytest.mark.usefixtures("plainly")

TWO, THREE = ("ham", "spam"), ("bird", "fish", "fly")
NUMBERS = {2: (-1, 1), 3: (1, 2, 3)}
SOFTMAX = "--loss softmax --outputs classes:1-3"


def rows_of(words: tuple[str, ...], count: int = 60) -> tuple[list[Cells], list[Cells]]:
    """Rows labelled with words, not in sorted order, and the same rows labelled with numbers."""
    random = np.random.default_rng(len(words))
    named, numbered = list[Cells](), list[Cells]()
    for i in range(count):
        k = (len(words) - 1 - i) % len(words)
        cells: Cells = {"size": round(k + random.normal() * 0.7, 2), "colour": "rgb"[(k + i // 7) % 3]}
        named.append({"kind": words[k], **cells})
        numbered.append({"kind": NUMBERS[len(words)][k], **cells})
    return named, numbered


@pytest.fixture(autouse=True)
def files(folder: Path) -> None:
    for words in (TWO, THREE):
        named, numbered = rows_of(words)
        write_csv(named, folder / f"{len(words)}.csv")
        write_csv(numbered, folder / f"{len(words)}n.csv")


def weights_in(path: str) -> tuple[bytes, bytes]:
    found = load(path)
    return found.weights.tobytes(), found.bias.tobytes()


@pytest.mark.parametrize(("words", "options"), [(TWO, ""), (THREE, SOFTMAX)])
def test_words_are_learned_as_numbers_are(thresher: Thresher, folder: Path, words: Any, options: str) -> None:
    named, _ = rows_of(words)
    assert thresher(f"train {len(words)}n.csv --label kind -m n -q --passes 2 {options}").status == 0
    for file, write in WRITERS.items():
        write(named, folder / file)
        ran = thresher.ok(f"train {file} --label kind -m m --passes 2")
        assert ran.err.startswith(f"labels are {'words' if len(words) == 2 else '3 words'}"), file
        assert weights_in("m") == weights_in("n"), file
        assert load("m").classes == words, file
    assert thresher(f"train {file} --label kind -m m -q").err == ""


def test_words_of_vw_text_and_of_a_compressed_file(thresher: Thresher, folder: Path) -> None:
    named, numbered = rows_of(TWO)
    for name, rows in (("w.vw", named), ("n.vw", numbered)):
        lines = [f"{row['kind']} 't{i}| s:{row['size']} {row['colour']}" for i, row in enumerate(rows)]
        (folder / name).write_text("\n".join(lines) + "\n")
    (folder / "z.vw.gz").write_bytes(gzip.compress((folder / "w.vw").read_bytes()))
    for name in ("w.vw", "n.vw", "z.vw.gz"):
        assert thresher(f"train {name} -m {name}.m -q").status == 0
    assert weights_in("w.vw.m") == weights_in("n.vw.m")
    assert Path("w.vw.m").read_bytes() == Path("z.vw.gz.m").read_bytes()
    labelled = thresher("predict w.vw.m w.vw --output label").out
    assert set(labelled.split()) == {*TWO}
    (folder / "bare.vw").write_text("".join(f"any | s:{row['size']} {row['colour']}\n" for row in named))
    assert thresher("predict w.vw.m bare.vw --output label").out == labelled


@pytest.mark.parametrize("words", [TWO, THREE])
def test_what_is_shown_are_words(thresher: Thresher, words: tuple[str, ...]) -> None:
    data = f"{len(words)}.csv"
    thresher(f"train {data} --label kind -m m -q")
    found = thresher(f"predict m {data} --output label").out.splitlines()
    margins = np.loadtxt(thresher(f"predict m {data}").out.splitlines(), ndmin=2)
    best = margins.argmax(axis=1) if len(words) > 2 else (margins[:, 0] > 0).astype(int)
    assert found == [words[k] for k in best]
    truth = [row["kind"] for row in rows_of(words)[0]]
    wrong = np.mean([a != b for a, b in zip(found, truth, strict=True)])
    assert thresher(f"evaluate m {data} --json").json["error"] == pytest.approx(wrong)
    assert wrong < 0.5
    assert [one["class"] for one in thresher(f"evaluate m {data} --json").json["by_class"]] == [*words]
    columns = [line.split("\t")[2] for line in thresher("weights m").out.splitlines()]
    assert len(words) == 2 or {*columns} == {*words}


def test_the_order_of_classes_can_be_said(thresher: Thresher, monkeypatch: pytest.MonkeyPatch) -> None:
    thresher("train 2.csv --label kind -m sorted -q")
    ran = thresher("train 2.csv --label kind --classes spam,ham -m m")
    assert "words" not in ran.err
    assert load("m").classes == ("spam", "ham")
    assert (load("m").weights == -load("sorted").weights).all()
    assert "\nclasses                spam, ham\npositive class         ham\n" in thresher("info m").out
    command = thresher("info m --json").json["command"].removeprefix("thresher ")
    assert thresher(command.replace("DATA", "2.csv").replace("MODEL", "again")).status == 0
    assert Path("again").read_bytes() == Path("m").read_bytes()
    labels = thresher("predict m 2.csv --output label").out
    assert labels == thresher("predict sorted 2.csv --output label").out
    with Path("2.csv").open() as file, monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", file)
        assert thresher("train - --format csv --label kind --classes ham,spam -m piped -q").status == 0
    assert Path("piped").read_bytes() == Path("sorted").read_bytes()


def test_a_stream_has_to_be_told_its_words(thresher: Thresher, monkeypatch: pytest.MonkeyPatch) -> None:
    for options in ("", "--loss softmax"):
        with Path("3.csv").open() as file, monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", file)
            ran = thresher(f"train - --format csv --label kind -m m -q {options}")
        assert (ran.status == 0) is bool(options), "of softmax, classes are met on the way"
        assert options or "--classes" in ran.err


@pytest.mark.parametrize("options", ["2.csv", "3.csv", "2.csv --classes spam,ham"])
def test_stopped_and_resumed(thresher: Thresher, options: str) -> None:
    command, data = f"train {options} --label kind -m m -q --passes 2", options.split()[0]
    assert thresher(command).status == 0
    whole = Path("m").read_bytes()
    with full_disk():
        assert thresher(f"{command} --checkpoint-every 75").status == 1
    assert "leave --classes out" in thresher(f"train {data} --resume -m m -q --classes b,a").err
    assert thresher(f"{command} --resume").status == 0
    assert Path("m").read_bytes() == whole


def test_a_word_that_is_no_class_is_a_bad_line(thresher: Thresher, folder: Path) -> None:
    thresher("train 2.csv --label kind -m m -q")
    (folder / "new.csv").write_text('kind,size,colour\nham,1,r\n"spam",2,g\n spam ,2,g\neggs,3,b\n,3,b\n')
    expected = "new.csv:5:1: expected one of the classes ham, spam as label in column 'kind', found 'eggs'"
    thresher.fails("evaluate m new.csv", 1, expected)
    ran = thresher("evaluate m new.csv --on-error skip --json")
    assert ran.json["examples"] == 3
    assert thresher("predict m new.csv").out.count("\n") == 5
    thresher.fails("train 2.csv --label kind --holdout new.csv -m m -q", 1, expected)


def test_labels_are_numbers_if_most_are(thresher: Thresher, folder: Path) -> None:
    (folder / "a.csv").write_text("label,x\n" + "1,2\n0,3\n" * 9 + "NA,1\nlost,1\n")
    ran = thresher("train a.csv -m m -q")
    assert "a.csv:20:1: expected a finite number as label in column 'label', found 'NA'" in ran.err
    ran = thresher("train a.csv -m m -q --missing NA")
    assert "expected a label in column 'label', found 'NA'" in ran.err
    ran = thresher("train a.csv -m m -q --on-error skip --json --passes 1")
    assert (ran.json["examples"], ran.json["skipped"], load("m").classes) == (18, 2, ())
    (folder / "b.csv").write_text("label,x\n" + "1,2\n0,3\n" * 9 + "lost,1\n")
    assert "found 'lost'; to use words as labels, name them: --classes" in thresher("train b.csv -m m -q").err
    assert thresher("train b.csv -m m -q --classes 0,1,lost").status == 0
    (folder / "c.csv").write_text("label,x\n" + "spam,2\n" * 9)
    assert "all labels are 'spam': there must be at least two classes" in thresher("train c.csv -m m -q").err


@pytest.mark.parametrize(
    "command",
    [
        *("path --l1 .1:1:2 --holdout every-5th --passes 2", "cv --l1 .1:1:2 --folds 3 -q"),
        *("tune --budget 4 --rules ftrl -q", "boost --loss logistic -q"),
    ],
)
def test_commands_that_learn_words_as_numbers(thresher: Thresher, command: str) -> None:
    name, _, options = command.partition(" ")
    figures = []
    for data in ("2.csv", "2n.csv"):
        ran = thresher.ok(f"{name} {data} --label kind -m {data}.{name} --json {options}")
        figures.append({k: v for k, v in ran.json.items() if k not in _VARYING})
    assert figures[0] == figures[1]
    found = load(f"2.csv.{name}")
    models = found.models if name == "path" else [found]
    assert [one.classes for one in models] == [TWO] * (2 if name == "path" else 1)


_VARYING = ("model", "command", "seconds", "seconds_compiling", "examples_per_second")


def test_the_progress_table_shows_words_cut_to_its_columns(thresher: Thresher, folder: Path) -> None:
    text = "".join(f"{k},{'spam' if k % 2 else 'a very long name'}\n" for k in range(8))
    (folder / "long.csv").write_text(f"n,kind\n{text}")
    assert re.search(
        r"^ +2 .* spam +0\.\d{4} ", thresher("train long.csv --label kind -m m").err, re.MULTILINE
    )
    rows = thresher(f"train 3.csv --label kind -m m {SOFTMAX}").err
    assert re.search(r"^ +2 .* fish +fly ", rows, re.MULTILINE)
    assert " a very .. " in thresher("train long.csv --label kind -m m").err


@pytest.mark.parametrize(("terminal", "written"), [(False, "a\x1b[31m\tb"), (True, r"a\x1b[31m\tb")])
def test_only_a_terminal_is_shown_escapes(
    thresher: Thresher, folder: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool, written: str
) -> None:
    (folder / "odd.csv").write_text("n,kind\n" + '1,spam\n2,"a\x1b[31m\tb"\n' * 4)
    assert thresher("train odd.csv --label kind -m m -q").status == 0
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    assert set(thresher("predict m odd.csv --output label").out.splitlines()) <= {written, "spam"}
    assert thresher("predict m odd.csv --output label -o p").status == 0
    assert "\\" not in Path("p").read_text()
