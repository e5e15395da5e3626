"""Tables and VW text on the command line, as users have them, and rows in groups."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Thresher
from tests.data.tables import write_parquet
from tests.layouts import layout_again, layout_of
from thresher import Model
from thresher.data import open_source


def clicks(count: int, seed: int = 0) -> bytes:
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
    ran = thresher.ok(train)
    assert ran.json["examples"] == 500
    assert ran.json["features_seen"] == 2 + 150
    assert thresher("evaluate m new.txt --json").json["examples"] == 50
    whole = thresher("predict m new.txt").out
    assert len(whole.splitlines()) == 50
    bare = [line.partition(b"\t")[2] for line in (folder / "new.txt").read_bytes().splitlines()]
    (folder / "bare.txt").write_bytes(b"\n".join(bare))
    assert thresher("predict m bare.txt").out == whole
    thresher.fails("evaluate m bare.txt", 1, "bare.txt: 5 columns, but the training data had 6")


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


def test_what_is_said_again_may_mean_the_same(folder: Path) -> None:
    (folder / "a.csv").write_text("y,x,z\n1,2,3\n0,3,4\n")
    said = {"label": "y", "categorical": "x"}
    trained = open_source("a.csv", layout=layout_of(said)).layout
    assert layout_again(trained, **said) == layout_again(trained) == trained
    assert layout_again(trained, label="1", numeric="z") == trained


LINES = "".join(f"{1 if k % 5 == 0 else -1} qid:{k // 5} {k % 7 + 1}:1 {k % 11 + 8}:1\n" for k in range(300))


def test_a_column_of_groups_is_no_feature_and_fresh_data_need_none(thresher: Thresher) -> None:
    rows = [f"{k % 2},user{k // 4},{k % 7}" for k in range(80)]
    with open("rows.csv", "w") as file:
        file.write("\n".join(["label,user,x", *rows]) + "\n")
    with open("new.csv", "w") as file:
        file.write("label,x\n1,3\n0,2\n")
    thresher("train rows.csv -q --rule ftrl:l1=0.001 --group user --holdout 0.2 -m m --passes 2")
    assert len(thresher("predict m new.csv").out.split()) == 2
    assert thresher("evaluate m new.csv --json").json["examples"] == 2
    for data in ("new.csv", "rows.csv"):
        ran = thresher(f"train {data} -q --init m -m m3 --json")
        assert (ran.status, ran.json["warnings"], ran.json["features_seen"]) == (0, [], 1), ran.err
    assert thresher("train rows.csv -q --init m -m m3 --ignore user --json").json["features_seen"] == 1
    ran = thresher("train rows.csv -q --init m -m m3 --group user --holdout 0.2 --json")
    assert (ran.status, ran.json["holdout_examples"] % 4) == (0, 0), ran.err
    for command in ("train rows.csv -m m2", "cv rows.csv"):
        assert "no column is called 'usr'" in thresher(f"{command} --group usr").err


def test_a_model_of_dictionaries_reads_no_table(folder: Path, thresher: Thresher) -> None:
    model = Model()
    for k in range(10):
        model.learn_one({"a": k, "b": "xy"[k % 2]}, k % 2)
    model.save(folder / "m.model")
    (folder / "rows.jsonl").write_text('{"a": 1, "b": "x"}\n')
    (folder / "table.csv").write_text("a,b,click\n1,x,1\n")
    (folder / "rows.vw").write_text("| a:1 |b x\n")
    for data, title in (("rows.jsonl", "JSON lines"), ("table.csv", "CSV")):
        learn = (
            f"trained on rows of named features, not on {title}: let a new model learn a table, Model.learn("
        )
        thresher.fails(f"predict m.model {data} --format {data.partition('.')[2]}", 1, learn)
    thresher.fails(
        "evaluate m.model table.csv", 1, "give rows as in training, or let a new model learn a table"
    )
    (folder / "labelled.jsonl").write_text('{"a": 1, "b": "x", "label": 1}\n')
    (folder / "ids.svm").write_text("1 1:1\n")
    for data in ("labelled.jsonl", "ids.svm"):
        thresher.fails(f"train {data} --continue m.model -m n", 1, "learned from rows of named features, ")
    found = thresher.ok("predict m.model rows.vw").out
    assert float(found) == pytest.approx(model.predict_one({"a": 1, "b": "x"}))
