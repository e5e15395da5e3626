"""Tables on the command line, as users have them."""

import gzip
from pathlib import Path

import numpy as np

from tests.cli.conftest import Thresher
from tests.data.tables import write_jsonl, write_parquet
from tests.layouts import layout_again, layout_of
from thresher.data import open_source


def clicks(count: int, seed: int = 0) -> bytes:
    """A click log without header: label, 2 counts, 3 categories, some of them missing."""
    random, lines = np.random.default_rng(seed), []
    for _ in range(count):
        cells = [str(int(random.random() < 0.3)), *(str(random.integers(0, 9)) for _ in range(2))]
        cells += [f"{random.integers(0, 50) * 7919:08x}" for _ in range(3)]
        lines.append("\t".join("" if k and random.random() < 0.2 else cell for k, cell in enumerate(cells)))
    return "\n".join(lines).encode() + b"\n"


def test_a_log_without_header(thresher: Thresher, folder: Path) -> None:
    (folder / "log.txt.gz").write_bytes(gzip.compress(clicks(500)))
    (folder / "new.txt").write_bytes(clicks(50, 1))
    train = "train log.txt.gz --format tsv --no-header --label 1 --categorical 4-6 -m m -q --json --passes 1"
    ran = thresher(train)
    assert ran.status == 0, ran.err
    assert ran.json["examples"] == 500
    assert ran.json["features_seen"] == 2 + 150
    assert thresher("evaluate m new.txt --json").json["examples"] == 50
    whole = thresher("predict m new.txt").out
    assert len(whole.splitlines()) == 50
    bare = [line.partition(b"\t")[2] for line in (folder / "new.txt").read_bytes().splitlines()]
    (folder / "bare.txt").write_bytes(b"\n".join(bare))
    assert thresher("predict m bare.txt").out == whole
    ran = thresher("evaluate m bare.txt")
    assert ran.status == 1
    assert "bare.txt: 5 columns, but the training data had 6" in ran.err


def test_data_written_in_another_way(thresher: Thresher, folder: Path) -> None:
    (folder / "a.csv").write_text("label;n;c\n1;NA;u\n0;2;v\n1;3;NA\n")
    ran = thresher("train a.csv -m m -q --delimiter ; --missing NA --json")
    assert (ran.status, ran.json["features_seen"]) == (0, 3), ran.err
    assert thresher("train a.csv -m n -q --delimiter ; --json").json["features_seen"] == 6
    wanted = thresher("predict m a.csv").out
    assert len(wanted.splitlines()) == 3
    (folder / "b.tsv").write_text("u\t?\nv\t2\n\t3\n")
    assert thresher("predict m b.tsv --format tsv --no-header --missing ?").status == 1  # by position
    (folder / "b.tsv").write_text("?\tu\n2\tv\n3\t\n")
    ran = thresher("predict m b.tsv --format tsv --no-header --missing ?")
    assert (ran.status, ran.out) == (0, wanted), ran.err
    (folder / "c.csv").write_text('n,c,label\n-,u,1\n2,v,0\n3,"-",1\n')
    figures = thresher("evaluate m a.csv --json").json
    assert thresher("evaluate m c.csv --delimiter , --missing - --json").json == figures
    assert "in column 'n', found '-'" in thresher("evaluate m c.csv --delimiter ,").err
    assert "one byte" in thresher("evaluate m c.csv --delimiter ,,").err


def test_some_of_the_rows(thresher: Thresher, folder: Path) -> None:
    rows = [{"label": k % 2, "n": k, "city": ["Ulm", "Kiel"][k % 2]} for k in range(100)]
    write_parquet(rows, folder / "all.parquet")
    write_parquet(rows[:60], folder / "early.parquet")
    where = ["--where", "n < 60"]
    ran = thresher("train", "all.parquet", "-m", "m", "-q", "--json", "--passes", "2", *where)
    assert (ran.status, ran.json["examples"]) == (0, 120), ran.err
    assert thresher("train early.parquet -m n -q --passes 2").status == 0
    weights = thresher("weights m").out
    assert weights == thresher("weights n").out
    assert thresher("train all.parquet -m whole -q --passes 2 --json").json["examples"] == 200
    assert thresher("weights whole").out != weights
    assert len(thresher("predict m all.parquet").out.splitlines()) == 100
    assert len(thresher("predict", "m", "all.parquet", *where).out.splitlines()) == 60
    assert thresher("evaluate", "m", "all.parquet", "--json", *where).json["examples"] == 60
    once = ["-q", "--json", "--passes", "1"]
    ran = thresher("train", "all.parquet", "-m", "h", *once, "--holdout", "all.parquet", *where)
    assert (ran.json["examples"], ran.json["holdout_examples"]) == (60, 100)
    ran = thresher("train", "all.parquet", "-m", "m", "-q", "--where", "n < Ulm")
    assert ran.err == (
        "thresher: --where n < Ulm: expected a number, true, false, or a text in single quotes, found Ulm\n"
    )


def test_what_is_wrong_is_said_in_a_line(thresher: Thresher, folder: Path) -> None:
    (folder / "a.csv").write_text("y,x\n1,2\n0,3\n")
    ran = thresher("train a.csv -m m")
    assert (ran.status, ran.err) == (
        1,
        "thresher: a.csv: name the label column (--label COL); the columns are: y, x\n",
    )
    ran = thresher("train train.svm -m m --label y")
    assert ran.status == 1
    assert (
        ran.err
        == "thresher: svmlight has no columns: --label is only for csv, tsv, jsonl, parquet and arrow;"
        " train.svm, by its name, is read as svmlight: for a table, add --format csv\n"
    )
    (folder / "b.csv").write_text("y,x\n1,2\n0,3 4\n")
    ran = thresher("train b.csv -m m --label y --numeric x -q")
    assert ran.err == "thresher: b.csv:3:3: expected a finite number in column 'x', found '3 4'\n"
    ran = thresher("train b.csv -m m --label y --numeric x -q --on-error skip --json --passes 1")
    assert (ran.json["examples"], ran.json["skipped"]) == (1, 1)
    ran = thresher("train b.csv -m m --label y --numeric x --ignore y -q")
    assert ran.err == "thresher: b.csv: 'y' is listed in both --label and --ignore\n"


def test_what_is_said_again_may_mean_the_same(folder: Path) -> None:
    (folder / "a.csv").write_text("y,x,z\n1,2,3\n0,3,4\n")
    said = {"label": "y", "categorical": "x"}
    trained = open_source("a.csv", layout=layout_of(said)).layout
    assert layout_again(trained, **said) == layout_again(trained) == trained
    assert layout_again(trained, label="1", numeric="z") == trained


def test_reviews_on_the_command_line(thresher: Thresher) -> None:
    good, bad = ["a fine book", "fine and short"], ["a dull book", "dull and long"]
    rows = [{"label": 1, "review": text} for text in good] + [{"label": -1, "review": text} for text in bad]
    write_jsonl(rows * 50, Path("reviews.jsonl"))
    ran = thresher("train reviews.jsonl -m m --text review --ngrams words=1-2 -q --json")
    assert ran.status == 0, ran.err
    assert thresher("evaluate m reviews.jsonl --json").json["error"] == 0.0
    write_jsonl([{"review": "dull"}, {"review": "fine"}], Path("new.jsonl"))
    assert thresher("predict m new.jsonl --output label").out == "-1\n1\n"
    ran = thresher("train reviews.jsonl -m n --text review --ngrams bigrams")
    assert ran.status == 2
    assert "n-grams are given as words=LO-HI" in ran.err


def test_columns_that_the_training_data_did_not_have(thresher: Thresher) -> None:
    Path("t.csv").write_text("label,a\n" + "1,2\n0,1\n" * 20)
    Path("more.csv").write_text("label,a,extra\n1,2,x\n0,1,y\n")
    assert thresher("train t.csv -m m -q").status == 0
    for command in ("predict", "evaluate"):
        found = thresher(f"{command} m more.csv")
        assert (
            "warning: column extra (more.csv) is ignored, because the model was trained without" in found.err
        )
        assert (found.status, thresher(f"{command} m more.csv --ignore extra").err) == (0, "")
        assert "the model was trained on this column" in thresher(f"{command} m more.csv --ignore a").err
    assert thresher("predict m more.csv --ignore extra,label").status == 0
