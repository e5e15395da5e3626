"""A condition as hold-out: the rows that meet it are not learned, and the model is judged on them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import thresher
from thresher.data import DataError, open_source
from thresher.data.layout import Layout
from thresher.learning.files import checkpoint, model_file
from thresher.learning.files.checkpoint import TrainingState
from thresher.learning.files.model_file import ModelFileError
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.training.passes import Passes
from thresher.learning.training.shares import MatchingRows, as_text, part_of
from thresher.learning.training.trainer import Trainer, TrainingPlan

ROWS = 120
CHANCE = np.random.default_rng(3)
TABLE = pa.table(
    {
        "label": (CHANCE.random(ROWS) < 0.4).astype(int),
        "day": pa.array([None if k % 17 == 4 else k // 5 for k in range(ROWS)]),
        "x": CHANCE.random(ROWS).round(2) * 8,
        "city": [["Ulm", "Kiel", "Bonn's"][k % 3] for k in range(ROWS)],
        "new": [k % 4 == 1 for k in range(ROWS)],
    }
)
FORMS = ("parquet", "arrow", "csv", "jsonl")
OPTIONS: dict[str, Any] = {"rule": "ftrl:l1=0.01", "ignore": "day,new"}

pytestmark = pytest.mark.usefixtures("plainly")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("THRESHER_CACHE_DIR", str(tmp_path / "cache"))


def write(form: str, table: pa.Table = TABLE) -> str:
    name, rows = f"rows.{form}", table.to_pylist()
    if form == "parquet":
        pq.write_table(table, name, row_group_size=50)
    elif form == "arrow":
        with pa.ipc.new_stream(name, table.schema) as file:
            file.write_table(table, max_chunksize=30)
    elif form == "csv":
        table.to_pandas().astype({"day": "Int64"}).to_csv(name, index=False)
    else:
        Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return name


def same(one: thresher.Model, other: thresher.Model) -> bool:
    pairs = zip(one.weights(), other.weights(), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs) and one.tally == other.tally


def parts_of(condition: Any, table: pa.Table = TABLE) -> tuple[pa.Table, pa.Table]:
    """The rows that do not meet a condition in Python, and those that do; a missing value meets none."""
    met = np.array([bool(condition(row)) for row in table.to_pylist()])
    return table.filter(pa.array(~met)), table.filter(pa.array(met))


CONDITIONS: dict[str, Any] = {
    "day >= 20": lambda r: r["day"] is not None and r["day"] >= 20,
    "day<2.5": lambda r: r["day"] is not None and r["day"] < 2.5,
    "day is null": lambda r: r["day"] is None,
    "day is not null and city != 'Bonn''s'": lambda r: r["day"] is not None and r["city"] != "Bonn's",
    "city in ('Ulm', 'Rom') and x > 4": lambda r: r["city"] == "Ulm" and r["x"] > 4,
    "new = true": lambda r: r["new"],
    '"x" <= 1.04': lambda r: r["x"] <= 1.04,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_rows_that_are_held_out(form: str, condition: str) -> None:
    """In every format those of the condition in Python, wherever blocks are cut."""
    assert 0 < len(parts_of(CONDITIONS[condition])[1]) < ROWS
    layout = Layout(form, ignore=("day", "new"), numeric=("x",), categorical=("city",))
    source = open_source(write(form), layout=layout, marked=condition, threads=2, block_bytes=300)
    for _ in range(2):
        chunks = [*source.chunks()]
        groups = np.concatenate([chunk.groups for chunk in chunks if chunk.groups is not None])
        met = [bool(CONDITIONS[condition](row)) for row in TABLE.to_pylist()]
        assert (groups != 0).tolist() == met


@pytest.mark.parametrize("form", [*FORMS, "table"])
@pytest.mark.parametrize("passes", [1, 2])
def test_it_is_training_on_the_rest_and_evaluation_on_the_rows_that_meet_it(form: str, passes: int) -> None:
    data = TABLE if form == "table" else write(form)
    condition = "day >= 20"
    rest, held = parts_of(CONDITIONS[condition])
    own = thresher.train(rest, passes=passes, **OPTIONS)
    for cache in (True, False, True):
        found = thresher.train(data, holdout=condition, passes=passes, cache=cache, **OPTIONS)
        assert same(found, own)
        assert found.record.holdout == condition
    whole = thresher.train(rest, holdout=held, passes=3, early_stop=1, order="once", **OPTIONS)
    assert same(
        thresher.train(data, holdout=condition, passes=3, early_stop=1, order="once", **OPTIONS), whole
    )


def test_as_the_filter_of_the_rows_that_are_read() -> None:
    name = write("parquet")
    held = thresher.train(name, holdout="city = 'Ulm'", where="day < 20", **OPTIONS)
    own = thresher.train(name, where="day < 20 and city in ('Kiel', 'Bonn''s')", **OPTIONS)
    assert same(held, own)
    path = thresher.path(name, "ftrl", l1=[0.1, 1.0], holdout="day < 12", ignore="day,new").points
    assert path[0].holdout is not None
    later, _ = parts_of(lambda r: r["day"] is not None and r["day"] < 12)
    model = thresher.train(later, path[0].spec, ignore="day,new")
    expected = thresher.evaluate(model, name, where="day < 12")
    assert {name: path[0].holdout[name] for name in ("examples", "loss", "error", "auc")} == {
        name: expected[name] for name in ("examples", "loss", "error", "auc")
    }


def test_every_function_takes_it() -> None:
    rest, held = parts_of(CONDITIONS["day >= 20"])
    tuned = [
        thresher.tune(data, rules=["ftrl"], budget=3, holdout=judged, ignore="day,new")
        for data, judged in ((write("csv"), "day >= 20"), (rest, held))
    ]
    assert tuned[0].report == tuned[1].report
    bags = [
        thresher.ensemble(data, models=2, holdout=judged, **OPTIONS)
        for data, judged in ((write("jsonl"), "day >= 20"), (rest, held))
    ]
    assert all(same(a, b) for a, b in zip(bags[0].models, bags[1].models, strict=True))
    frame = TABLE.to_pandas()
    labels = frame.pop("label")
    one = thresher.train(frame, labels, holdout="new = true", **OPTIONS)
    assert one.examples == ROWS - 30


def test_no_row_or_every_row() -> None:
    name = write("csv")
    with pytest.warns(thresher.TroubleWarning, match=r"no row meets day > 99.* \[empty-holdout\]"):
        model = thresher.train(name, holdout="day > 99", **OPTIONS)
    assert model.examples == ROWS
    for holdout in ("x >= 0", "label in (0, 1)"):
        with pytest.raises(DataError, match=r"leaves none of 120 rows to learn from: hold out others"):
            thresher.train(name, holdout=holdout, **OPTIONS)
    with pytest.raises(DataError, match="leaves none of 9 rows to learn from: use another seed"):
        thresher.train(np.eye(9), [1, 0, 1] * 3, groups=[1] * 9, holdout=0.9)


def test_bad_lines_are_no_row() -> None:
    lines = ["label,day,x"] + [f"{k % 2},{k},{k % 7}" for k in range(40)]
    lines[10], lines[30] = "1,9,oops", "1,29,oops,too"
    Path("bad.csv").write_text("\n".join([*lines, ""]))
    found = thresher.train("bad.csv", rule="ftrl", holdout="day >= 20", on_error="skip", numeric="x")
    assert found.examples == 19
    Path("good.csv").write_text("\n".join([*lines[:10], *lines[11:21], ""]))
    assert same(found, thresher.train("good.csv", rule="ftrl", numeric="x"))


def test_cells_that_are_missing_or_no_numbers_meet_no_comparison() -> None:
    Path("odd.csv").write_text("label,n,x\n1,NA,1\n0, 12 ,2\n1,word,3\n0,9,4\n1,1e1,5\n0,,6\n")
    layout = Layout("csv", missing=("NA",), ignore=("n",))
    for condition, held in (
        ("n >= 10", [1, 4]),
        ("n != 9", [1, 4]),
        ("n is null", [0, 5]),
        ("n = 'word'", [2]),
        ("n in (9, 12)", [1, 3]),
    ):
        (chunk,) = open_source("odd.csv", layout=layout, marked=condition).chunks()
        assert chunk.groups is not None
        assert np.flatnonzero(chunk.groups).tolist() == held


@pytest.mark.parametrize("text", ["day >= 20", "day>=20", "  day is not null", '"a b" in (1, 2)', "x='a b'"])
def test_what_is_a_condition(text: str) -> None:
    part = part_of(text)
    assert isinstance(part, MatchingRows)
    assert part_of(as_text(part)) == part


def test_what_is_the_name_of_a_file() -> None:
    for text in ("test.svm", "day=20/part-0.csv", "s3://bucket/day=20/*", "in test.svm", "a is b.csv"):
        assert part_of(text) is None
    Path("day=20").write_text("1 1:1\n0 2:1\n")
    assert part_of("day=20") is None


@pytest.mark.parametrize(
    ("data", "holdout", "words"),
    [
        ("csv", "dya >= 20", r"rows\.csv: no column is called 'dya' \(hold-out: dya >= 20\)"),
        ("parquet", "dya >= 20", r"rows\.parquet: no column is called 'dya' \(hold-out: dya >= 20\)"),
        ("csv", "day => 20", "^holdout day => 20: expected a number, true, false"),
        ("parquet", "day > '20'", "column 'day' of type int64 cannot be compared with '20'"),
        ("csv", "day in (1, 'a')", r"column 'day' is compared with texts and others \(hold-out"),
        (
            "matrix",
            "day > 2",
            r"these data have no columns.*: hold out a share, holdout=0\.1, or the last rows",
        ),
    ],
)
def test_what_is_wrong(data: str, holdout: str, words: str) -> None:
    given: Any = (np.eye(4), [1, 0, 1, 0]) if data == "matrix" else write(data)
    with pytest.raises(ValueError, match=words):
        thresher.train(given, holdout=holdout)
    with pytest.raises(
        DataError, match="but the rows that meet a condition are held out, whatever their group"
    ):
        thresher.train("missing.csv", holdout="day > 2", group="user")


def test_it_is_for_data_with_columns() -> None:
    Path("rows.svm").write_text("1 1:1\n0 2:1\n")
    with pytest.raises(
        DataError, match=r"^svmlight has no columns, and the hold-out, day > 2, is a condition on"
    ):
        thresher.train("rows.svm", holdout="day > 2")


def test_going_on_from_any_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    name, condition = write("csv"), "day >= 20"
    taken, save = list[bytes](), checkpoint.save

    def keep(path: Path, models: ModelSet, state: TrainingState) -> None:
        save(path, models, state)
        taken.append(path.read_bytes())

    def ended(loaded: Any = None, held: str = condition) -> bytes:
        layout = Layout("csv", ignore=("day", "new"))
        passes = Passes(open_source(name, layout=layout, marked=held, block_bytes=300), 2, cached=True)
        plan = TrainingPlan(
            2, holdout_every=MatchingRows(held), checkpoint=Path("checkpoint"), checkpoint_every=20
        )
        model = loaded[0] if loaded else Model("ftrl")
        ready = Trainer(model, passes.first, plan, reread=passes.later)
        if loaded:
            with model_file.naming_file("checkpoint"):
                ready.continue_from(loaded[1])
        ready.run()
        model_file.save(ready.model, "model")
        return Path("model").read_bytes()

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save", keep)
        whole = ended()
    assert len(taken) > 5
    for content in taken[::2]:
        Path("checkpoint").write_bytes(content)
        assert ended(checkpoint.load(Path("checkpoint"))) == whole
    Path("checkpoint").write_bytes(taken[0])
    with pytest.raises(ModelFileError, match=r"made with holdout=.day >= 20.; leave holdout out"):
        ended(checkpoint.load(Path("checkpoint")), "day >= 21")
